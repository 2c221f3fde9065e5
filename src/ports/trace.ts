import type { LifecycleEvent } from "../core/job/decide/decision.ts";
import type { JobRow, JobState } from "../core/job/job.ts";
import type { AbortReason } from "../core/job/reasons.ts";
import type { Instant } from "../core/time.ts";

/**
 * Reports to a tracer what happens to jobs. The `meta` of a job carries the trace context, so its spans belong
 * together even if different processes enqueue, run and settle it. An engine without a tracer pays nothing.
 */
export interface Tracing {
  enqueue(what: EnqueueToTrace): EnqueueTrace;
  /** Called before this process enters a handler. */
  enter(row: JobRow): AttemptTrace;
  /** An attempt of another process ended: its worker reported it, or the sweep ended it because no report came. */
  ended(row: JobRow, verdict: TracedVerdict): void;
}

export interface EnqueueToTrace {
  readonly type: string;
  readonly queue: string;
  readonly count: number;
  readonly meta: Readonly<Record<string, unknown>>;
}

export interface EnqueueTrace {
  /** Added to the `meta` of the jobs. */
  readonly meta: Readonly<Record<string, string>>;
  ended(outcome: { readonly ids: readonly string[] } | { readonly error: unknown }): void;
}

export interface AttemptTrace {
  /** Calls the handler in the context of this span, so that the handler's spans become its children. */
  run<Value>(call: () => Value): Value;
  /** The attempt's abort signal fired. */
  aborted(reason: AbortReason): void;
  settled(verdict: TracedVerdict): void;
}

/** Reports to a tracer what happens to calls (SEMANTICS 10). */
export interface CallTracing {
  /** A call of this name begins. */
  call(name: string): CallTrace;
}

/** `run` is called for each try, and `aborted` at its soft deadline. */
export interface CallTrace extends Pick<AttemptTrace, "run" | "aborted"> {
  ended(end: TracedCall): void;
}

export interface TracedCall {
  readonly outcome: string;
  readonly attempts: number;
  /** Which limit ended it. */
  readonly kind?: string;
  readonly limit: number | null;
  readonly error?: unknown;
}

export interface TracedVerdict {
  /** The state of the job afterwards; `lost` if the store refused the verdict. */
  readonly state: JobState | "lost";
  readonly events: readonly LifecycleEvent[];
  /** When the verdict was decided. `committedAt` is when the store had it. */
  readonly at: Instant;
  readonly committedAt: Instant;
}
