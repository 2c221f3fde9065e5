import { clockText, countdownText, durationText } from "../../../ui/format.ts";
import type { LimitName } from "../../../ui/look.ts";
import type { TimelineModel } from "./model.ts";
import type { Run } from "./runs.ts";

export type BracketTone = "next" | "run" | "soft" | "force" | "wait" | "done";

export interface Bracket {
  readonly from: number;
  readonly to: number;
  /** How far it is used; undefined where it is still to come. */
  readonly used?: number | undefined;
  readonly tone: BracketTone;
  readonly isGhost?: boolean;
  /** It has no end: an arrow in the place of the cap. */
  readonly isOpen?: boolean;
  readonly isHard?: boolean;
  /** Written beside its end. */
  readonly note?: string | undefined;
}

/** One of the five rows of limits. */
export interface LimitRow {
  readonly name: LimitName;
  readonly brackets: readonly Bracket[];
  readonly beats: readonly number[];
  readonly silences: readonly { readonly from: number; readonly to: number }[];
  /** What is left of it, on the right: a strong part and what follows. */
  readonly left: readonly [strong: string, rest: string];
  readonly letter?: "next" | "soft" | "fired" | undefined;
}

const NONE: Pick<LimitRow, "brackets" | "beats" | "silences"> = { brackets: [], beats: [], silences: [] };

const NOT_RECORDED: LimitRow["left"] = ["", "not recorded"];
/** Of a job that ended before it began. */
const NOT_NEEDED: LimitRow["left"] = ["", "not needed"];

/** Always all five, in the order of a job's life. */
export function limitRows(model: TimelineModel): LimitRow[] {
  return [waitRow(model), attemptRow(model), graceRow(model), heartbeatRow(model), totalRow(model)].map(
    (row) => (model.next === row.name ? { ...row, letter: "next" } : row),
  );
}

function waitRow({ limits, runs, createdAt, endedAt, now, next, job }: TimelineModel): LimitRow {
  const { waitAt } = limits;
  if (waitAt === null) return { name: "wait", ...NONE, left: ["", "never"] };
  const begunAt = runs[0]?.from;
  const used = Math.min(begunAt ?? endedAt ?? now, waitAt);
  const hasFired = job.error?.timeout_kind === "enqueue_ttl";
  const spare = begunAt === undefined ? undefined : `began with ${durationText(waitAt - begunAt)} to spare`;
  const tone = hasFired ? "force" : next === "wait" ? "next" : "wait";
  const left: LimitRow["left"] = hasFired
    ? ["", "fired"]
    : begunAt !== undefined
      ? ["", "met"]
      : endedAt !== null
        ? ["", "did not fire"]
        : [countdownText(waitAt - now), "to begin"];
  const bracket = { from: createdAt, to: waitAt, used, tone, note: spare } as const;
  return { name: "wait", ...NONE, brackets: [bracket], left, ...(hasFired && { letter: "fired" as const }) };
}

function attemptRow(model: TimelineModel): LimitRow {
  const { limits, runs, shown, running, now, next, prediction, job, endedAt } = model;
  const { attempt } = limits;
  if (!limits.isRecorded) return { name: "attempt", ...NONE, left: NOT_RECORDED };
  if (attempt === null) return { name: "attempt", ...NONE, left: ["", "never"] };
  const brackets: Bracket[] = shown.map((run) => {
    const hasFired = run.softAt !== null;
    // What has ended ran under the limit of its time, whatever is being previewed.
    const past = run.softAt ?? run.from + (job.timeout_ms ?? attempt);
    const end = run.to === null && limits.softAt !== null ? limits.softAt : past;
    const used = Math.min(run.to ?? now, end);
    const tone: BracketTone = hasFired ? "soft" : run.to === null && next === "attempt" ? "next" : "run";
    return { from: run.from, to: end, used, tone, note: hasFired && run.to !== null ? "fired" : undefined };
  });
  if (prediction?.fits)
    brackets.push({
      from: prediction.at,
      to: prediction.until,
      tone: "run",
      isGhost: true,
      note: fitNote(model),
    });
  if (!running && endedAt === null && runs.length === 0)
    brackets.push({
      from: Math.max(now, limits.dueAt),
      to: Math.max(now, limits.dueAt) + attempt,
      tone: "run",
      isGhost: true,
    });
  const fired = runs.filter(({ softAt }) => softAt !== null).length;
  return {
    name: "attempt",
    ...NONE,
    brackets,
    left: attemptLeft(model),
    ...(fired > 0 && job.state !== "active" && { letter: "soft" as const }),
  };
}

function fitNote({ limits, prediction }: TimelineModel): string | undefined {
  if (!prediction || limits.totalAt === null) return undefined;
  return `fits, ${durationText(limits.totalAt - prediction.until)} to spare`;
}

function attemptLeft({ limits, runs, running, now, endedAt }: TimelineModel): LimitRow["left"] {
  const { softAt, totalAt, attempt } = limits;
  if (running && softAt !== null && attempt !== null) {
    if (totalAt !== null && softAt === totalAt && running.from + attempt > totalAt)
      return ["", "cut by total"];
    return softAt > now ? [countdownText(softAt - now), "to the signal"] : ["", "signal given"];
  }
  const last = runs.at(-1);
  if (endedAt !== null && !last) return NOT_NEEDED;
  if (endedAt === null || !last || last.to === null || attempt === null) return ["", "begins with the start"];
  if (last.softAt !== null) return ["", "fired"];
  return ["", `${Math.round(((last.to - last.from) / attempt) * 100)} % used`];
}

function graceRow({ limits, runs, shown, running, endedAt, now, next }: TimelineModel): LimitRow {
  const { grace, softAt, hardAt, rules } = limits;
  if (!limits.isRecorded) return { name: "grace", ...NONE, left: NOT_RECORDED };
  const isOpen = rules.grace.value === "unbounded";
  const brackets: Bracket[] = shown.flatMap((run): Bracket[] => {
    if (run.softAt === null || run.to === null) return [];
    const to = grace === null ? run.to : run.softAt + grace;
    const note = run.isForced ? "ran out" : run.isLate ? "completed in it" : undefined;
    return [
      {
        from: run.softAt,
        to,
        used: Math.min(run.to, to),
        tone: run.isForced ? "force" : "soft",
        isOpen,
        note,
      },
    ];
  });
  if (running && softAt !== null) {
    const used = softAt < now ? now : undefined;
    const to = hardAt ?? softAt + (ranFor(runs, now) || 60_000);
    brackets.push({
      from: softAt,
      to,
      used,
      tone: next === "grace" ? "next" : "soft",
      isOpen: hardAt === null,
    });
  }
  const wasForced = runs.some(({ isForced }) => isForced);
  const left: LimitRow["left"] =
    running && softAt !== null && softAt <= now && hardAt !== null
      ? [countdownText(hardAt - now), "to the kill"]
      : endedAt !== null
        ? ["", wasForced ? "ran out" : brackets.length > 0 ? "was enough" : NOT_NEEDED[1]]
        : ["", "begins with the signal"];
  return {
    name: "grace",
    ...NONE,
    brackets,
    left,
    ...(wasForced && endedAt !== null && { letter: "fired" as const }),
  };
}

const ranFor = (runs: readonly Run[], now: number) => now - (runs[0]?.from ?? now);

function heartbeatRow({ limits, runs, shown, running, now, endedAt, scale }: TimelineModel): LimitRow {
  const { heartbeat, stallAt, isBeatenByWorker } = limits;
  if (!limits.isRecorded) return { name: "heartbeat", ...NONE, left: NOT_RECORDED };
  if (heartbeat === null) return { name: "heartbeat", ...NONE, left: ["", "never"] };
  const silences = shown.flatMap((run) => {
    if (run.to === null || run.end !== "failed" || isBeatenByWorker) return [];
    const from = run.beats.at(-1) ?? run.from;
    return run.to - from > heartbeat / 4 ? [{ from, to: run.to }] : [];
  });
  const stalled = runs.some(({ error }) => error?.timeout_kind === "stalled");
  const beats = isBeatenByWorker
    ? []
    : thinned(
        shown.flatMap((run) => run.beats),
        (scale.until - scale.from) / 200,
      );
  const last = running?.beats.at(-1) ?? running?.from;
  const bracket: Bracket[] =
    running && stallAt !== null && last !== undefined
      ? [
          {
            from: last,
            to: stallAt,
            used: now,
            tone: "done",
            note: isBeatenByWorker ? undefined : `would stall ${clockText(stallAt)}`,
          },
        ]
      : [];
  const left: LimitRow["left"] =
    running && stallAt !== null
      ? [countdownText(stallAt - now), "without a beat"]
      : stalled && endedAt !== null
        ? ["", "fired"]
        : running
          ? ["", "the worker beats"]
          : endedAt === null
            ? ["", "begins with the start"]
            : runs.length === 0
              ? NOT_NEEDED
              : ["", "kept"];
  return {
    name: "heartbeat",
    brackets: bracket,
    beats,
    silences,
    left,
    ...(stalled && endedAt !== null && { letter: "fired" as const }),
  };
}

/** Keeps beats that are at least `apart` from each other: dots that touch cannot be told apart. */
function thinned(beats: readonly number[], apart: number): number[] {
  const kept: number[] = [];
  for (const at of beats) if (kept.length === 0 || at - (kept.at(-1) as number) >= apart) kept.push(at);
  return kept;
}

function totalRow({ limits, createdAt, endedAt, now, next, job }: TimelineModel): LimitRow {
  const { totalAt, total } = limits;
  if (totalAt === null) return { name: "total", ...NONE, left: ["", "never"] };
  const from = Math.max(createdAt, total === null ? createdAt : totalAt - total);
  const hasFired = job.error?.timeout_kind === "total" && endedAt !== null;
  const tone: BracketTone = hasFired
    ? "force"
    : next === "total"
      ? "next"
      : endedAt === null
        ? "run"
        : "wait";
  const used = Math.min(endedAt ?? now, totalAt);
  const note = endedAt === null ? clockText(totalAt) : undefined;
  const left: LimitRow["left"] = hasFired
    ? ["", "fired"]
    : endedAt !== null
      ? ["", `${durationText(totalAt - endedAt)} to spare`]
      : [countdownText(totalAt - now), "for everything"];
  return {
    name: "total",
    ...NONE,
    brackets: [{ from, to: totalAt, used, tone, isHard: true, note }],
    left,
    ...(hasFired && { letter: "fired" as const }),
  };
}
