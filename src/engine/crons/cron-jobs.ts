import type { CronBody, CronRun } from "../../core/cron/cron.ts";
import type { NewEvent } from "../../core/event/new-event.ts";
import { idsBeside } from "../../core/ids.ts";
import { type EnqueueContext, type NewJob, prepareJob, stamp } from "../../core/job/enqueue/envelope.ts";
import type { JobId } from "../../core/job/job.ts";
import { defineJob } from "../../core/job/job-definition.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";
import { recordKind } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";

export const CRONS = recordKind<CronBody>("cron");

/** Lets crons enqueue jobs, and announce them once they are stored. */
export interface CronDeps {
  readonly context: () => EnqueueContext;
  readonly notice: (jobs: readonly NewJob[]) => void;
}

/** When the sweep wakes for a cron; null while it is paused. */
export function cronWakeAt({ pausedAt, nextAt }: CronBody): Instant | null {
  return pausedAt === null ? nextAt : null;
}

export function putCron(name: string, body: CronBody): Effect {
  return CRONS.put(name, body, cronWakeAt(body));
}

/** The job of a cron for one instant. Its meta names the cron and the instant. */
export function cronJob(base: EnqueueContext, name: string, body: CronBody, instant: Instant): NewJob {
  const { definition, options, payload, visibility, wire } = body.job;
  // A plain job of a cron is in the home of the cron, so that both are one unit.
  const nextId = idsBeside(base.nextId, name);
  const context = { ...base, nextId, visibility, wire };
  const meta = { ...options.meta, cron: name, scheduledFor: new Date(instant).toISOString() };
  const template = prepareJob(defineJob(definition), { ...options, meta, unique: false }, context);
  return stamp(template, payload, nextId);
}

/** The events of these runs, for the commit that stores them. */
export function cronEvents(
  { recorder }: EngineContext,
  name: string,
  { job: { definition } }: CronBody,
  runs: readonly CronRun[],
): readonly NewEvent[] {
  if (!recorder.isOn) return [];
  return runs.flatMap(({ at, for: instant, job, skipped, count = 1, manual }) => {
    const scheduledFor = new Date(instant).toISOString();
    const data = skipped
      ? { type: definition.type, scheduledFor, reason: skipped, count }
      : { type: definition.type, scheduledFor, job: job as JobId, ...(manual && { manual }) };
    return recorder.effects(skipped ? "cron.skipped" : "cron.triggered", { at, subject: name, data });
  });
}

/** Announces runs after their commit. */
export function announceRuns(
  context: EngineContext,
  name: string,
  body: CronBody,
  runs: readonly CronRun[],
): void {
  const { bus } = context;
  for (const run of runs) {
    const { at, for: scheduledFor, job, skipped: reason, count = 1, manual } = run;
    const shared = { at, cron: name, type: body.job.definition.type, scheduledFor };
    if (reason) bus.emit({ name: "cron.skipped", ...shared, reason, count });
    else bus.emit({ name: "cron.triggered", ...shared, job: job as JobId, ...(manual && { manual }) });
  }
}
