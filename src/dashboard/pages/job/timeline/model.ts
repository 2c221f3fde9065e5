import type { Explanation, Job, WireEvent } from "../../../../ojs/replies/wire-replies.ts";
import { isLastAttempt } from "../../../ui/attempts.ts";
import { durationText } from "../../../ui/format.ts";
import type { LimitName } from "../../../ui/look.ts";
import type { Segment, TimelineMark } from "./drawn.ts";
import { type Fold, foldRuns } from "./fold.ts";
import { type Limits, nextBackoff } from "./limits.ts";
import { endedAt, type Run, runsOf } from "./runs.ts";
import { type Scale, scaleOf } from "./scale.ts";
import { stuckMarks, stuckSegments, stuckUntil } from "./stuck.ts";

export interface Guide {
  readonly kind: "soft" | "force" | "now";
  readonly at: number;
}

/** A label above the lane; of those that collide, the one that stands first in the list stays. */
export interface Label {
  readonly at: number;
  readonly text: string;
  readonly tone: "" | "soft" | "force" | "done" | "accent";
}

/** What comes after the running attempt if nobody acts; undefined: nothing does. */
export interface Prediction {
  readonly attempt: number;
  readonly at: number;
  readonly until: number;
  readonly backoff: number;
  readonly fits: boolean;
  readonly isExact: boolean;
}

export interface TimelineModel {
  readonly job: Job;
  readonly limits: Limits;
  readonly runs: readonly Run[];
  /** The attempts that are drawn one by one; older ones are the fold. */
  readonly shown: readonly Run[];
  readonly fold: Fold | null;
  readonly running: Run | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly scale: Scale;
  readonly segments: readonly Segment[];
  readonly marks: readonly TimelineMark[];
  readonly guides: readonly Guide[];
  readonly labels: readonly Label[];
  readonly prediction: Prediction | null;
  /** The limit that fires next and that no beat can move. */
  readonly next: LimitName | null;
  readonly now: number;
  readonly isPreview: boolean;
}

export interface TimelineInput {
  readonly job: Job;
  readonly limits: Limits;
  readonly explanation: Explanation;
  readonly events: readonly WireEvent[];
  readonly now: number;
  readonly isPreview?: boolean;
}

export function timelineOf(input: TimelineInput): TimelineModel {
  const { job, limits, events, now, isPreview = false } = input;
  const runs = runsOf(job, events);
  const running = runs.find(({ to }) => to === null) ?? null;
  const end = endedAt(job);
  const createdAt = Date.parse(job.created_at);
  const prediction = end === null ? predict(input, running) : null;
  const parts = {
    ...input,
    ...foldRuns(runs),
    isPreview,
    runs,
    running,
    createdAt,
    endedAt: end,
    prediction,
  };
  const segments = segmentsOf(parts);
  const marks = marksOf(parts);
  const guides = guidesOf(parts);
  const until = spanEnd(parts);
  const instants = [...marks, ...guides]
    .map(({ at }) => at)
    .concat(segments.flatMap(({ from, to }) => [from, to]));
  const ends = [runs.length === 0 ? limits.waitAt : null, limits.totalAt].filter(
    (at): at is number => at !== null,
  );
  // What is folded may be cut: it is one bar, however long it took. A job that only waited has nothing else to show.
  const isOnlyWait = end !== null && runs.length === 0;
  const busy = segments.filter(({ kind }) =>
    kind === "wait" ? isOnlyWait : kind !== "backoff" && kind !== "folded",
  );
  return {
    ...parts,
    scale: scaleOf(createdAt, until, [...instants, ...ends, now], busy),
    segments,
    marks,
    guides,
    labels: labelsOf(parts),
    next: nextLimit(parts),
  };
}

type Parts = TimelineInput &
  Pick<
    TimelineModel,
    "runs" | "shown" | "fold" | "running" | "createdAt" | "endedAt" | "prediction" | "isPreview"
  >;

/** An ended job is shown to its verdict; one that lives to the last thing that can still happen. */
function spanEnd({ limits, running, createdAt, endedAt: end, prediction, now, runs }: Parts): number {
  if (end !== null) {
    const nearest = runs.at(-1)?.from ?? createdAt;
    const limit =
      runs.length === 0 ? limits.waitAt : limits.attempt === null ? null : nearest + limits.attempt;
    const shown = limit !== null && limit - createdAt < (end - createdAt) * 3 ? Math.max(end, limit) : end;
    return Math.max(
      shown,
      createdAt + 1_000,
      ...runs.slice(-1).map((run) => stuckUntil(run, createdAt, now) ?? 0),
    );
  }
  const first = running ? [] : [limits.dueAt, limits.waitAt];
  const all = [
    limits.totalAt,
    running ? limits.hardAt : null,
    running ? limits.softAt : null,
    prediction?.until,
    now,
    ...first,
  ];
  const last = Math.max(...all.filter((at): at is number => typeof at === "number"));
  return Math.max(last, createdAt + 1_000);
}

function predict(
  { job, limits, explanation }: Parts | TimelineInput,
  running: Run | null,
): Prediction | null {
  if (!running || limits.hardAt === null || job.timeout_mode === "discard") return null;
  const backoff = nextBackoff(job, explanation);
  if (isLastAttempt(job) || !backoff) return null;
  const at = limits.hardAt + backoff.span;
  const until = limits.attempt === null ? at : at + limits.attempt;
  const isWhole = explanation.fields.find(({ field }) => field === "retryFit")?.value !== "any";
  const needed = isWhole ? until : at;
  const fits = limits.totalAt === null || needed <= limits.totalAt;
  return { attempt: job.attempt + 1, at, until, backoff: backoff.span, fits, isExact: backoff.isExact };
}

function segmentsOf({
  job,
  limits,
  runs,
  shown,
  fold,
  createdAt,
  endedAt: end,
  prediction,
  now,
  isPreview,
}: Parts): Segment[] {
  const firstAt = runs[0]?.from ?? end ?? now;
  const segments: Segment[] = [];
  if (firstAt > createdAt)
    segments.push({
      kind: "wait",
      from: createdAt,
      to: firstAt,
      text: `waiting ${durationText(firstAt - createdAt)}`,
    });
  if (fold) {
    segments.push({ kind: "folded", from: fold.from, to: fold.to });
    const next = shown[0]?.from ?? fold.to;
    if (next > fold.to)
      segments.push({ kind: "backoff", from: fold.to, to: next, text: durationText(next - fold.to) });
  }
  shown.forEach((run, index) => {
    const to = run.to ?? now;
    const soft =
      run.softAt ?? (run.to === null && limits.softAt !== null && limits.softAt < now ? limits.softAt : null);
    const ran = `attempt ${run.attempt}${run.to === null ? "" : ` ran ${durationText((soft ?? to) - run.from)}`}`;
    segments.push({ kind: "run", from: run.from, to: soft ?? to, text: ran });
    if (soft !== null) segments.push({ kind: "grace", from: soft, to });
    const next = shown[index + 1]?.from ?? (job.state === "retryable" ? limits.dueAt : undefined);
    if (run.to !== null && next !== undefined && next > run.to)
      segments.push({ kind: "backoff", from: run.to, to: next, text: durationText(next - run.to) });
  });
  segments.push(...stuckSegments(shown, createdAt, now));
  if (end !== null) return segments;
  const running = runs.at(-1)?.to === null;
  if (running && limits.softAt !== null && limits.softAt > now)
    segments.push({ kind: isPreview ? "preview" : "run-future", from: now, to: limits.softAt });
  if (running && limits.softAt !== null && limits.hardAt !== null && limits.hardAt > now)
    segments.push({ kind: "grace-future", from: Math.max(now, limits.softAt), to: limits.hardAt });
  if (prediction?.fits && limits.hardAt !== null) {
    const about = prediction.isExact ? "" : "about ";
    segments.push({
      kind: "backoff",
      from: limits.hardAt,
      to: prediction.at,
      text: `${about}${durationText(prediction.backoff)}`,
    });
    segments.push({
      kind: "ghost",
      from: prediction.at,
      to: prediction.until,
      text: `attempt ${prediction.attempt}, if needed`,
    });
  }
  if (!running && limits.softAt !== null && (job.state === "scheduled" || job.state === "retryable"))
    segments.push({
      kind: "ghost",
      from: limits.dueAt,
      to: limits.dueAt + (limits.attempt ?? 0),
      text: `attempt ${job.attempt + 1}`,
    });
  return segments;
}

function marksOf({ job, runs, shown, createdAt, endedAt: end, now }: Parts): TimelineMark[] {
  const marks: TimelineMark[] = [{ kind: "created", at: createdAt, text: "created" }];
  for (const run of shown) {
    const name = `attempt ${run.attempt}`;
    if (run.softAt !== null) marks.push({ kind: "signal", at: run.softAt, text: `${name} was told to stop` });
    if (run.to === null) continue;
    if (run.end === "completed")
      marks.push({
        kind: run.isLate ? "late" : "done",
        at: run.to,
        text: `${name} completed${run.isLate ? ", late" : ""}`,
      });
    else if (run.end === "cancelled")
      marks.push({ kind: "cancelled", at: run.to, text: `${name} was cancelled` });
    else if (run.isForced)
      marks.push({
        kind: "kill",
        at: run.to,
        text: `${name} was ended by force: ${run.error?.message ?? ""}`,
      });
    else marks.push({ kind: "fail", at: run.to, text: `${name} failed: ${run.error?.message ?? ""}` });
  }
  const isCovered = runs.at(-1)?.to === end;
  if (end !== null && !isCovered)
    marks.push({
      kind: job.state === "cancelled" ? "cancelled" : "kill",
      at: end,
      text: job.error?.message ?? job.state,
    });
  return [...marks, ...stuckMarks(shown, createdAt, now)];
}

function guidesOf({ limits, shown, running, endedAt: end, now }: Parts): Guide[] {
  const guides: Guide[] = [];
  for (const run of shown) {
    if (run.softAt !== null) guides.push({ kind: "soft", at: run.softAt });
    if (run.isForced && run.to !== null) guides.push({ kind: "force", at: run.to });
  }
  if (end !== null) return guides;
  if (running && limits.softAt !== null) guides.push({ kind: "soft", at: limits.softAt });
  if (running && limits.hardAt !== null) guides.push({ kind: "force", at: limits.hardAt });
  if (limits.totalAt !== null) guides.push({ kind: "force", at: limits.totalAt });
  guides.push({ kind: "now", at: now });
  return guides;
}

function labelsOf({
  limits,
  runs,
  shown,
  fold,
  running,
  createdAt,
  endedAt: end,
  job,
  isPreview,
}: Parts): Label[] {
  const labels: Label[] = [];
  const ahead = isPreview ? "accent" : "soft";
  if (fold) {
    const text = `attempts ${fold.first} to ${fold.last}, ${durationText(fold.to - fold.from)}`;
    labels.push({ at: (fold.from + fold.to) / 2, text, tone: "" });
  }
  if (end === null && limits.totalAt !== null)
    labels.push({ at: limits.totalAt, text: "end of total", tone: "force" });
  if (running && limits.softAt !== null) labels.push({ at: limits.softAt, text: "signal", tone: ahead });
  if (running && limits.hardAt !== null) labels.push({ at: limits.hardAt, text: "kill", tone: "force" });
  for (const run of [...shown].reverse()) {
    if (run.to === null) continue;
    if (run.softAt !== null) labels.push({ at: run.softAt, text: "signal", tone: "soft" });
    if (run.end === "completed")
      labels.push({
        at: run.to,
        text: run.isLate ? `late by ${durationText(run.to - (run.softAt ?? run.to))}` : "completed",
        tone: run.isLate ? "soft" : "done",
      });
    else if (run.isForced) labels.push({ at: run.to, text: "killed", tone: "force" });
    else if (run.end === "failed")
      labels.push({
        at: run.to,
        text: run.error?.timeout_kind === "stalled" ? "stalled" : "failed",
        tone: "force",
      });
  }
  if (end !== null && runs.length === 0)
    labels.push({
      at: end,
      text: job.state === "cancelled" ? "cancelled" : "expired",
      tone: job.state === "cancelled" ? "" : "force",
    });
  if (!running && end === null && runs.length === 0 && limits.dueAt > createdAt + 1_000)
    labels.push({ at: limits.dueAt, text: "starts", tone: "" });
  labels.push({ at: createdAt, text: "created", tone: "" });
  return labels;
}

function nextLimit({ job, limits, running, endedAt: end, now }: Parts): LimitName | null {
  if (end !== null) return null;
  if (running) {
    if (limits.softAt !== null && limits.softAt <= now) return "grace";
    if (
      limits.stallAt !== null &&
      limits.stallAt - now < 10_000 &&
      limits.stallAt < (limits.softAt ?? limits.stallAt + 1)
    )
      return "heartbeat";
    if (limits.softAt === null) return limits.totalAt === null ? null : "total";
    return limits.totalAt !== null && limits.totalAt <= limits.softAt ? "total" : "attempt";
  }
  const isFirst = job.attempt === 0;
  if (isFirst && limits.waitAt !== null && (limits.totalAt === null || limits.waitAt <= limits.totalAt))
    return "wait";
  return limits.totalAt === null ? null : "total";
}
