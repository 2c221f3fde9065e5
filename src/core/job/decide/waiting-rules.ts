import type { JobLimit } from "../../limit/limit.ts";
import { earlier, formatDuration, type Instant } from "../../time.ts";
import { dueAtOf, type ErrorRecord, type JobRow, rankOf } from "../job.ts";
import {
  type Decision,
  discard,
  type LifecycleEvent,
  totalError,
  waitingImage,
  withError,
} from "./decision.ts";
import type { EventOf } from "./job-events.ts";

/* What happens to a job that waits: its time is up, it is due, or its time is changed. */

/** Ends a job that was not started in time. `total` is checked before `wait` (SEMANTICS 3.1). */
export function endOfWaiting(job: JobRow, now: Instant): Decision | null {
  if (job.totalAt !== null && now >= job.totalAt) {
    const error = totalError(job, now, false);
    const isDead = (job.policy?.retry.onExhausted ?? job.options?.onExhausted) === "dead-letter";
    return discard(job, withError(job, error), now, [{ name: "job.total_timeout", error }], isDead);
  }
  if (job.waitAt !== null && now >= job.waitAt) {
    // If `expiresAt` came first, it is the limit that was exceeded, not the longer `wait`.
    const wait = job.options?.expiresAt === job.waitAt ? undefined : job.options?.wait;
    const limit = wait ?? job.waitAt - job.createdAt;
    const error: ErrorRecord = {
      type: "enqueue_ttl_expired",
      code: "enqueue_ttl_expired",
      message: `Expired: not started within ${formatDuration(limit)}`,
      kind: "enqueue_ttl",
      limit,
      elapsed: Math.max(0, limit + (now - job.waitAt)),
      attempt: job.attempt,
      at: now,
    };
    const events: LifecycleEvent[] = [
      { name: "job.ttl_expired", error },
      { name: "job.expired", error },
    ];
    return discard(job, withError(job, error), now, events, false);
  }
  return null;
}

export function wakeWaiting(job: JobRow, now: Instant): Decision {
  // The step scheduler must decide on it, and finds it by its `wakeAt`.
  if (job.options?.step?.waitsFor) return { ok: false, because: "not_due" };
  const ended = endOfWaiting(job, now);
  if (ended) return ended;
  const state = job.state as "pending" | "scheduled" | "retryable" | "available";
  const limit = job.options?.limit;
  // A limit key without a limit: only the code that set it may admit the job.
  const isBlocked = state === "pending" && (job.needs > 0 || (job.limitKey !== null && limit === undefined));
  if (isBlocked || state === "available") return { ok: true, image: waitingImage(job, state), events: [] };
  if (dueAtOf(job.rank) <= now) return wakeDue(job, limit, now);
  return { ok: true, image: waitingImage(job, state === "pending" ? "scheduled" : state), events: [] };
}

/** The rest of a delay or backoff is left out. Deadlines, attempts and limits stay, so it ends as it would when it is due. */
export function runNow(job: JobRow, now: Instant): Decision {
  return wakeWaiting({ ...job, rank: rankOf(job.priority, Math.min(dueAtOf(job.rank), now)) }, now);
}

export function reschedule(job: JobRow, { dueAt }: EventOf<"reschedule">, now: Instant): Decision {
  const ended = endOfWaiting(job, now);
  if (ended) return { ok: false, because: "timing_out" };
  // A time that is not in the future is now. It may have passed since the caller named it.
  if (dueAt <= now && job.state !== "available") return runNow(job, now);
  if (dueAt <= now) return { ok: true, image: waitingImage(job, "available"), events: [] };
  // Its limit has admitted it, and would have to admit it again.
  if (job.state === "available" && job.options?.limit) return { ok: false, because: "admitted" };
  const endsAt = earlier(job.totalAt, job.waitAt);
  if (endsAt !== null && dueAt >= endsAt) return { ok: false, because: "past_deadline" };
  const state = job.state === "retryable" ? "retryable" : "scheduled";
  return { ok: true, image: waitingImage(job, state, { dueAt }), events: [] };
}

/** A waiting job that is due waits for its limit, unless it has none or still has its slot. */
function wakeDue(job: JobRow, limit: JobLimit | undefined, now: Instant): Decision {
  if (limit === undefined || (limit.strict && job.state === "retryable"))
    return { ok: true, image: waitingImage(job, "available"), events: [] };
  const { onLimit } = limit;
  if (onLimit === undefined) return { ok: true, image: waitingImage(job, "pending"), events: [] };
  // The sweep admits jobs before it decides on `onLimit`, so first let it look at the job as pending.
  if (job.state !== "pending")
    return { ok: true, image: { ...waitingImage(job, "pending"), wakeAt: now }, events: [] };
  if (onLimit !== "drop") {
    const dueAt = now + onLimit.after;
    const image = waitingImage(job, "scheduled", { dueAt });
    return { ok: true, image, events: [{ name: "job.snoozed", dueAt }] };
  }
  // A job that has run before is not dropped. It waits.
  if (job.attempt > 0) return { ok: true, image: waitingImage(job, "pending"), events: [] };
  return drop(job, "rate_limited", `Dropped: the limit "${job.limitKey}" was reached`, now);
}

export function drop(
  job: JobRow,
  code: "rate_limited" | "queue_full",
  message: string,
  now: Instant,
): Decision {
  const error: ErrorRecord = { type: code, code, message, attempt: job.attempt, at: now };
  return discard(job, withError(job, error), now, [], false);
}
