import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { EnqueuedJob, EnqueueOptions } from "../../core/job/enqueue/envelope.ts";
import type { JobId } from "../../core/job/job.ts";
import { type AnyDefinition, assertDefinition, type JobDefinition } from "../../core/job/job-definition.ts";
import type { Snooze } from "../../core/job/reasons.ts";
import type { Json, KeepsLiterals } from "../../core/schema.ts";
import { type Duration, type Instant, parseDuration } from "../../core/time.ts";
import type { SandboxDeps, SandboxRunner } from "../../ports/sandbox.ts";

/**
 * What a handler gets. Every property is made when it is read, so a handler pays only for what it uses. Destructure it
 * (`({ payload, signal }) => …`) or pass it on whole: a spread copy is empty.
 */
export interface AttemptContext<Payload = unknown, Parents = unknown> {
  /** The job's id: the idempotency key for the outside world. */
  readonly id: JobId;
  readonly type: string;
  readonly queue: string;
  readonly payload: Payload;
  /** 1 for the first attempt. */
  readonly attempt: number;
  readonly meta: { readonly [key: string]: Json };
  /**
   * The results of the steps before this one in its workflow, in their order; empty for a first step and a plain job.
   * Typed if the definition names its `parents`.
   */
  readonly parentResults: unknown extends Parents ? readonly Json[] : Parents;
  /** Aborts at the soft deadline, at a cancel, at shutdown and when the claim is lost; `signal.reason` says which. */
  readonly signal: AbortSignal;
  /** When the soft signal comes; null without `attempt` and `total`. */
  readonly deadline: Instant | null;
  /** Milliseconds until the soft signal, never negative; Infinity without a deadline. */
  readonly remaining: () => number;
  /** Reports how far the work is (0 to 1), with an optional note. Counts as a beat. */
  readonly progress: (fraction: number, note?: Json) => void;
  /** Saves where to resume; resolves when it is durable. The next attempt finds it as `lastCheckpoint`. */
  readonly checkpoint: (state: Json) => Promise<void>;
  readonly lastCheckpoint: Json | undefined;
  /** A sign of life. Needed only if a source sets `heartbeat`. */
  readonly beat: () => void;
  /** Adds a line to the job's log. */
  readonly log: (message: string, fields?: { readonly [key: string]: Json }) => void;
  /** Runs once when the signal aborts, beside the handler; its error is only logged. */
  readonly onCleanup: (hook: () => void | Promise<void>) => void;
  /** Enqueues a job that inherits the rest of this job's `total`, unless its options say `detach: true`. */
  readonly enqueue: <Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options?: EnqueueOptions,
  ) => Promise<EnqueuedJob>;
}

/** What a handler may return: its result, a snooze, or nothing if the definition declares no result. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement has the type void, not undefined.
export type Returned<Result> = Result | Snooze | (undefined extends Result ? void : never);

export type Handler<Payload, Result, Parents = unknown> = (
  context: AttemptContext<Payload, Parents>,
) => KeepsLiterals<Returned<Result>> | Promise<KeepsLiterals<Returned<Result>>>;

/** What the module of a sandbox may export as `onCleanup`: it runs at the signal of each of its attempts. */
export type CleanupHook<Definition> =
  Definition extends JobDefinition<unknown, infer Payload, unknown, infer Parents>
    ? (context: AttemptContext<Payload, Parents>) => void | Promise<void>
    : never;

/** How jobs are gathered for one call of a handler. */
export interface BatchOptions {
  /** The handler is called when this many jobs have joined, from 1 to 1,000. */
  readonly size: number;
  /** And this long after the first of them joined, at the latest. At most 10 s, and shorter than `attempt`. */
  readonly within: Duration;
}

/** One job of a batch: its context, and a way to give it a verdict before the batch has ended. */
export interface BatchJob<Payload = unknown, Result = unknown> extends AttemptContext<Payload> {
  /** Gives this job its verdict now: its result, a `snooze`, or an error. Later verdicts change nothing. */
  readonly settle: (value: Returned<Result> | Error) => void;
}

/** What the handler of a batch gets. */
export interface BatchContext<Payload = unknown, Result = unknown> {
  readonly jobs: readonly BatchJob<Payload, Result>[];
  /** Aborts when every job of the batch has its verdict or was told to stop. */
  readonly signal: AbortSignal;
  /** Milliseconds until the last soft signal of its jobs, never negative; Infinity if one has no deadline. */
  readonly remaining: () => number;
}

/** One element per job, or nothing, or one snooze for all. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a return statement has the type void, not undefined.
type ReturnedByBatch<Result> = readonly (KeepsLiterals<Returned<Result>> | Error)[] | Snooze | void;

export type BatchHandler<Payload, Result> = (
  batch: BatchContext<Payload, Result>,
) => ReturnedByBatch<Result> | Promise<ReturnedByBatch<Result>>;

export interface BatchSettings {
  readonly size: number;
  /** Milliseconds. */
  readonly within: number;
  readonly handler: BatchHandler<never, unknown>;
}

/** A definition and the function that runs its attempts. */
export interface Processor {
  readonly definition: AnyDefinition;
  readonly handler: Handler<never, unknown>;
  /** Opens the sandboxes that run the attempts instead of `handler`; see `sandboxed`. */
  readonly sandbox?: (host: SandboxDeps) => SandboxRunner;
  /** Gathers jobs and handles many at once instead of calling `handler`; see `batchProcessor`. */
  readonly batch?: BatchSettings;
}

/** Binds a handler to a definition. The compiler checks payload and result against it. */
export function processor<Payload, Result, Parents = unknown>(
  definition: JobDefinition<unknown, Payload, Result, Parents>,
  handler: Handler<Payload, NoInfer<Result>, NoInfer<Parents>>,
): Processor {
  assertDefinition(definition, "definition");
  if (typeof handler !== "function") throw refuse("invalid_option", "handler", handler, "pass a function");
  return { definition, handler: handler as Handler<never, unknown> };
}

const MOST_IN_BATCH = 1_000;
const LONGEST_GATHERING = 10_000;

/** Binds a handler that takes many jobs in one call. Each of them keeps its own deadlines, retries and verdict. */
export function batchProcessor<Payload, Result>(
  definition: JobDefinition<unknown, Payload, Result>,
  batch: BatchOptions,
  handler: BatchHandler<Payload, NoInfer<Result>>,
): Processor {
  assertDefinition(definition, "definition");
  refuseUnknownKeys(batch, "batch", ["size", "within"]);
  const { size } = batch;
  if (!Number.isInteger(size) || size < 1 || size > MOST_IN_BATCH)
    throw refuse("invalid_limit", "batch.size", size, `use a whole number from 1 to ${MOST_IN_BATCH}`);
  const within = parseDuration(batch.within, "batch.within");
  if (within > LONGEST_GATHERING)
    throw refuse("invalid_duration", "batch.within", batch.within, "use at most 10s");
  const attempt = definition.settings.timeouts?.attempt;
  if (typeof attempt === "number" && attempt <= within)
    throw refuse(
      "invalid_duration",
      "batch.within",
      batch.within,
      `use less than timeouts.attempt of "${definition.type}": the time of gathering is part of the attempt`,
    );
  if (typeof handler !== "function") throw refuse("invalid_option", "handler", handler, "pass a function");
  return {
    definition,
    handler: () => {
      throw new Error(`the processor of "${definition.type}" takes batches; it cannot run in a sandbox`);
    },
    batch: { size, within, handler: handler as BatchHandler<never, unknown> },
  };
}

/** Wraps every attempt, outer to inner; `next()` runs the rest and rejects with a TimeoutError when time is up. */
export type Middleware = (context: AttemptContext, next: () => Promise<unknown>) => Promise<unknown>;
