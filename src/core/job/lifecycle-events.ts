/**
 * Lifecycle events, named as in Open Job Spec. They are announced after the commit that records them (SEMANTICS
 * 3.12).
 */
export const LIFECYCLE_EVENTS = [
  "job.enqueued",
  "job.scheduled",
  "job.started",
  "job.completed",
  "job.timeout",
  "job.total_timeout",
  "job.stalled",
  "job.visibility_timeout",
  "job.ttl_expired",
  "job.expired",
  "job.failed",
  "job.retrying",
  "job.discarded",
  "job.cancelled",
  "job.released",
  "job.snoozed",
  "job.claim_expired",
  "job.extended",
  "job.retried",
] as const;

export type LifecycleEventName = (typeof LIFECYCLE_EVENTS)[number];
