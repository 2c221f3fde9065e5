import { earlier, type Instant } from "../time.ts";
import { type Decision, discard, waitingImage, withError } from "./decision.ts";
import { dueAtOf, type ErrorRecord, type JobOptions, type JobRow } from "./job.ts";
import type { EventOf } from "./job-events.ts";

/** Where the jobs wait that nobody runs: the turnstiles and the end of each workflow. They are no user's, and not counted. */
export const BOOKKEEPING_QUEUE = "curfew.workflows";

/** Whether a job is never run, but waits in the name of its workflow. */
export function isBookkeeping(job: JobRow): boolean {
  const role = job.options?.step?.waitsFor?.role;
  return role === "turnstile" || role === "end";
}

/**
 * The turn of a job in its workflow has come. From here on it is a job as if it had been enqueued now: its delay, `wait`
 * and `total` count from this moment, and what is left of the workflow's own time cuts its total (SEMANTICS 4.7).
 */
export function reach(job: JobRow, event: EventOf<"reach">, now: Instant): Decision {
  const { step, ...options } = job.options ?? {};
  if (!step?.waitsFor || isBookkeeping(job)) return { ok: false, because: "invalid_state" };
  const { results, limit = Number.POSITIVE_INFINITY } = event;
  if (results.length > limit) return tooMuch(job, results.length, limit, now);
  const { role, delay, endsAt } = step.waitsFor;
  const dueAt = Math.max(now, delay === undefined ? dueAtOf(job.rank) : now + delay);
  const ownTotalAt = options.total === undefined ? null : now + options.total;
  const isCut = endsAt !== undefined && (ownTotalAt === null || endsAt < ownTotalAt);
  const state = dueAt > now ? "scheduled" : job.limitKey !== null ? "pending" : "available";
  const kept: JobOptions = {
    ...options,
    ...(options.total !== undefined && { anchoredAt: now }),
    ...(isCut && job.workflow !== null && { inheritedFrom: job.workflow }),
    parentResults: results,
    // The batch of a callback has ended: nobody waits for it any more.
    ...(role === "step" && { step: { wakes: step.wakes } }),
  };
  const image = waitingImage(job, state, {
    dueAt,
    waitAt: earlier(options.wait === undefined ? null : now + options.wait, options.expiresAt ?? null),
    totalAt: isCut ? endsAt : ownTotalAt,
  });
  const name = state === "scheduled" ? "job.scheduled" : "job.enqueued";
  return {
    ok: true,
    // Whoever keeps the limit looks at it at once.
    image: state === "pending" ? { ...image, wakeAt: now } : image,
    documents: { options: kept },
    events: [{ name }],
  };
}

/** What cannot be handed on ends the step: running it without what it was promised would be worse. */
function tooMuch(job: JobRow, size: number, limit: number, now: Instant): Decision {
  const error: ErrorRecord = {
    type: "parent_results_too_large",
    code: "parent_results_too_large",
    message: `The results of the steps before it have ${size} characters, and at most ${limit} are handed on: return references, or raise documentLimit`,
    attempt: job.attempt,
    at: now,
  };
  return discard(job, withError(job, error), now, [{ name: "job.failed", error }], false);
}
