import { refuse } from "../errors.ts";
import {
  type Duration,
  formatDuration,
  type Instant,
  type InstantInput,
  parseDuration,
  parseInstant,
} from "../time.ts";
import type { TimeoutKind } from "./job.ts";

/** The limits that only streams have (SEMANTICS 10.7). */
type StreamLimit = "first" | "idle";

/** The abort reason of a timeout. Middleware gets it as the error of an attempt that timed out. */
export class TimeoutError extends Error {
  override readonly name = "TimeoutError";
  readonly kind: TimeoutKind | StreamLimit;
  /** The limit that was exceeded, in milliseconds. */
  readonly limit: number;
  readonly elapsed: number;
  /** When the attempt is ended by force; null if grace is unbounded. */
  readonly deadline: Instant | null;

  constructor(
    kind: TimeoutKind | StreamLimit,
    limit: number,
    elapsed: number,
    deadline: Instant | null,
    cause?: unknown,
  ) {
    super(`Timed out (${kind}) after ${formatDuration(limit)}`, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.limit = limit;
    this.elapsed = elapsed;
    this.deadline = deadline;
  }
}

/** The abort reason of everything else: the job was cancelled, the worker shuts down, or the fence was lost. */
export class StopError extends Error {
  override readonly name = "StopError";
  readonly kind: "cancelled" | "shutdown" | "lost";
  readonly limit = 0;
  readonly elapsed: number;
  readonly deadline: Instant | null;

  constructor(kind: "cancelled" | "shutdown" | "lost", elapsed: number, deadline: Instant | null) {
    const says = {
      cancelled: "The job was cancelled",
      shutdown: "The worker is shutting down",
      lost: "The claim on the job was lost",
    };
    super(says[kind]);
    this.kind = kind;
    this.elapsed = elapsed;
    this.deadline = deadline;
  }
}

export type AbortReason = TimeoutError | StopError;

/** The error on a job that a closing worker released. */
export const SHUTDOWN = {
  type: "shutdown",
  code: "shutdown",
  message: "The worker shut down before the attempt ended",
};

/** Thrown by a handler that knows that no retry can help. The job ends, never as a dead letter. */
export class Discard extends Error {
  override readonly name = "Discard";
}

/** Returned by a handler to be called again later. It is no failure and spends no attempt. */
export class Snooze {
  readonly after: Duration | undefined;
  readonly until: InstantInput | undefined;

  constructor(when: { after: Duration } | { until: InstantInput }) {
    if (typeof when !== "object" || when === null)
      throw refuse("invalid_option", "snooze", when, 'write { after: "10m" } or { until: an instant }');
    this.after = "after" in when ? when.after : undefined;
    this.until = "until" in when ? when.until : undefined;
  }
}

/** `return snooze({ after: "1m" })`, or `{ until }` an instant. */
export function snooze(when: { readonly after: Duration } | { readonly until: InstantInput }): Snooze {
  return new Snooze(when);
}

/** The instant that a snooze names, but not before now. */
export function snoozedUntil(value: Snooze, now: Instant): Instant {
  const dueAt =
    value.after === undefined
      ? parseInstant(value.until, "snooze.until")
      : now + parseDuration(value.after, "snooze.after");
  return Math.max(dueAt, now);
}
