import type { Job } from "../../../ojs/replies/wire-replies.ts";

export type DeadlineKind = "wait" | "attempt" | "total";

/** The next instant at which a limit of a job ends something. */
export interface Deadline {
  readonly kind: DeadlineKind;
  readonly at: number;
  readonly job: Job;
}

/** The limit that fires next, by what a list of jobs says of them; null where none does. */
export function deadlineOf(job: Job): Deadline | null {
  const created = Date.parse(job.created_at);
  const total =
    job.total_timeout_ms === undefined ? Number.POSITIVE_INFINITY : created + job.total_timeout_ms;
  const found = (kind: DeadlineKind, at: number): Deadline | null =>
    Number.isFinite(Math.min(at, total))
      ? total < at
        ? { kind: "total", at: total, job }
        : { kind, at, job }
      : null;
  if (job.state === "active") {
    const started = job.started_at === undefined ? created : Date.parse(job.started_at);
    return found(
      "attempt",
      job.timeout_ms === undefined ? Number.POSITIVE_INFINITY : started + job.timeout_ms,
    );
  }
  if (job.attempt > 0) return found("total", total);
  const expires = job.expires_at ? Date.parse(job.expires_at) : Number.POSITIVE_INFINITY;
  const wait = job.enqueue_ttl_ms === undefined ? expires : Math.min(expires, created + job.enqueue_ttl_ms);
  return found("wait", wait);
}
