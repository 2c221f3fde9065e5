import type { LifecycleEvent } from "../core/job/decision.ts";
import type { JobRow, JobState } from "../core/job/job.ts";
import type { AbortReason } from "../core/job/reasons.ts";
import type { Instant } from "../core/time.ts";

/**
 * Tells a tracer what becomes of jobs. What connects the spans of a job travels in its `meta`, so they belong together
 * whichever process enqueues, runs and settles it. An engine without a tracer pays nothing for it.
 */
export interface Tracing {
  enqueue(what: EnqueueToTrace): EnqueueTrace;
  /** A handler of this process is about to be entered. */
  enter(row: JobRow): AttemptTrace;
  /** An attempt that ran elsewhere has been judged: by its worker's report, or for want of one. */
  ended(row: JobRow, verdict: TracedVerdict): void;
}

export interface EnqueueToTrace {
  readonly type: string;
  readonly queue: string;
  readonly count: number;
  readonly meta: Readonly<Record<string, unknown>>;
}

export interface EnqueueTrace {
  /** What the jobs' meta shall carry. */
  readonly meta: Readonly<Record<string, string>>;
  ended(outcome: { readonly ids: readonly string[] } | { readonly error: unknown }): void;
}

export interface AttemptTrace {
  /** Calls the handler where its own spans become children of this one. */
  run<Value>(call: () => Value): Value;
  /** Its signal was given. */
  aborted(reason: AbortReason): void;
  settled(verdict: TracedVerdict): void;
}

export interface TracedVerdict {
  /** The state of the job afterwards; `lost` if the verdict did not count. */
  readonly state: JobState | "lost";
  readonly events: readonly LifecycleEvent[];
  /** When it was given, and when the store had it. */
  readonly at: Instant;
  readonly committedAt: Instant;
}
