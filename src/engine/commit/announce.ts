import { applied } from "../../core/job/decide/decide.ts";
import type { LifecycleEvent } from "../../core/job/decide/decision.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { isInternalQueue } from "../../core/job/internal-queue.ts";
import type { JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Enqueued } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { announcedRow, type DecidedJob, endsStep, startOverAt } from "./unit.ts";

/** Announces a committed decision in this process: traces, counters, events, waiters, the sweep and the workers. */
export function announce(context: EngineContext, job: DecidedJob): void {
  const { row, decision, at } = job;
  const { image, events } = decision;
  trace(context, job);
  if (job.deadline !== undefined && job.deadline !== null)
    context.counters.fired(Math.max(0, at - job.deadline));
  if (job.start) announceEvents(context, row, job.start, row.startedAt ?? at);
  if (events.length > 0) announceEvents(context, announcedRow(row, decision), events, at);
  if (image.wakeAt !== null) context.wakeSweepAt(image.wakeAt);
  if (image.state === "active" && row.limitKey !== null) wakeAfterStart(context, announcedRow(row, decision));
  if (endsStep(row, decision) || job.effects?.some(isCountdown)) context.wakeSweepAt(context.clock.now());
  if (isTerminal(image.state) && context.waiters.has(row.id)) context.waiters.settled(applied(row, decision));
  // A worker that gives a job back must not wake itself.
  if (job.by === "outsider" && image.state === "available" && isNews(row, image)) context.ready(row.queue);
}

/** Counts and emits lifecycle events of a job, and nothing else. The engine's own jobs have none. */
export function announceEvents(
  { counters, bus }: Pick<EngineContext, "counters" | "bus">,
  row: JobRow,
  events: readonly LifecycleEvent[],
  at: Instant,
): void {
  if (isInternalQueue(row.queue)) return;
  counters.record(row, events, at);
  bus.announce(row, events, at);
}

/** Announces jobs that are durable now. Without answers, the commit created all of them. */
export function announceEnqueued(
  { bus, counters, wakeSweepAt }: Pick<EngineContext, "bus" | "counters" | "wakeSweepAt">,
  jobs: readonly NewJob[],
  answers?: readonly Enqueued[],
): void {
  let wakeAt = Number.POSITIVE_INFINITY;
  const wants = bus.wants("job.enqueued") || bus.wants("job.scheduled");
  for (let index = 0; index < jobs.length; index++) {
    if (answers && answers[index] !== "created") continue;
    const { id, type, queue, createdAt: at, image } = jobs[index] as NewJob;
    if (image.wakeAt !== null && image.wakeAt < wakeAt) wakeAt = image.wakeAt;
    if (isInternalQueue(queue)) continue;
    counters.enqueued(type, queue);
    if (!wants) continue;
    const name = image.state === "scheduled" ? "job.scheduled" : "job.enqueued";
    bus.emit({ name, id, type, queue, attempt: 0, at });
  }
  if (wakeAt !== Number.POSITIVE_INFINITY) wakeSweepAt(wakeAt);
}

/** Wakes the sweep when this start no longer counts against its rate limit. */
export function wakeAfterStart({ wakeSweepAt }: Pick<EngineContext, "wakeSweepAt">, row: JobRow): void {
  const overAt = startOverAt(row);
  if (overAt !== null) wakeSweepAt(overAt);
}

/** Ends the open span. Without one, adds the spans of the attempt or job that this decision ended. */
function trace({ tracing, clock }: EngineContext, job: DecidedJob): void {
  if (tracing === undefined) return;
  const { row, decision, at } = job;
  const { image, events } = decision;
  const endsAttempt = row.state === "active" && row.startedAt !== null && image.state !== "active";
  const endsJob = isTerminal(image.state) && !isTerminal(row.state);
  if (!job.trace && !endsAttempt && !endsJob) return;
  const verdict = { state: image.state, events, at, committedAt: clock.now() };
  if (job.trace) job.trace.settled(verdict);
  else if (events.length > 0) tracing.ended(row, verdict);
}

function isCountdown(effect: Effect): boolean {
  return "countdown" in effect;
}

/** Whether an available job was not available before, or had another rank. */
function isNews(row: JobRow, image: Pick<JobRow, "rank">): boolean {
  return row.state !== "available" || image.rank !== row.rank;
}
