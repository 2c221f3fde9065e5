import { earlier, type Instant } from "../../time.ts";
import { dueAtOf, type ErrorRecord, type JobOptions, type JobRow } from "../job.ts";
import { type Decision, discard, waitingImage, withError } from "./decision.ts";
import type { EventOf } from "./job-events.ts";

/**
 * The queue of jobs that are never run: the barriers and the end of each workflow. They belong to no user and are not
 * counted.
 */
export const BOOKKEEPING_QUEUE = "curfew.workflows";

/** Whether a job is never run and only waits for its workflow. */
export function isBookkeeping(job: JobRow): boolean {
  const role = job.options?.step?.waitsFor?.role;
  return role === "barrier" || role === "end";
}

/**
 * Makes a step of a workflow ready. From here on it is like a job that is enqueued now: its delay, `wait` and `total`
 * count from now, and the remaining time of the workflow shortens its total (SEMANTICS 4.7).
 */
export function unblock(job: JobRow, event: EventOf<"unblock">, now: Instant): Decision {
  const { step, ...options } = job.options ?? {};
  if (!step?.waitsFor || isBookkeeping(job)) return { ok: false, because: "invalid_state" };
  const { results, size = results.length, limit = Number.POSITIVE_INFINITY } = event;
  if (size > limit) return tooMuch(job, size, limit, now);
  const { role, delay, endsAt } = step.waitsFor;
  const dueAt = Math.max(now, delay === undefined ? dueAtOf(job.rank) : now + delay);
  const ownTotalAt = options.total === undefined ? null : now + options.total;
  const isCut = endsAt !== undefined && (ownTotalAt === null || endsAt < ownTotalAt);
  const state = dueAt > now ? "scheduled" : job.limitKey !== null ? "pending" : "available";
  const stored: JobOptions = {
    ...options,
    ...(options.total !== undefined && { anchoredAt: now }),
    ...(isCut && job.workflow !== null && { inheritedFrom: job.workflow }),
    parentResults: results,
    ...(event.hidesResults && { redact: [...(options.redact ?? []), ["parentResults"]] }),
    // The batch of a callback has ended. No step depends on the callback.
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
    // The sweep asks its limit for admission at once.
    image: state === "pending" ? { ...image, wakeAt: now } : image,
    documents: { options: stored },
    events: [{ name }],
  };
}

/** Results that are too large end the step. Running it without them would be worse. */
function tooMuch(job: JobRow, size: number, limit: number, now: Instant): Decision {
  const error: ErrorRecord = {
    type: "parent_results_too_large",
    code: "parent_results_too_large",
    message: `The results of the steps before it have at least ${size} characters, and at most ${limit} are passed on: return references, or raise documentLimit`,
    attempt: job.attempt,
    at: now,
  };
  return discard(job, withError(job, error), now, [{ name: "job.failed", error }], false);
}
