import type { EnqueuedJob, EnqueueOptions } from "../core/job/envelope.ts";
import type { JobId, JobRow, PolicySettings } from "../core/job/job.ts";
import type { JobDefinition } from "../core/job/job-definition.ts";
import type { Random } from "../core/random.ts";
import type { Logger } from "../ports/log.ts";
import type { Outcome, Store, Unit } from "../ports/store.ts";
import type { System } from "../ports/system.ts";
import type { Tracing } from "../ports/trace.ts";
import type { EventBus } from "./events/event-bus.ts";
import type { EventRecorder } from "./events/event-recorder.ts";
import type { QueueSettings } from "./queues/queue-settings-cache.ts";
import type { EngineClock } from "./runtime/engine-clock.ts";
import type { Waiters } from "./runtime/waiters.ts";
import type { Counters } from "./statistics/counters.ts";

/** What an attempt needs around it, wherever it runs: in the worker of an engine, or in a remote one. */
export interface AttemptParts {
  readonly system: System;
  readonly clock: Pick<EngineClock, "now" | "anchor" | "upper">;
  readonly logger: Logger;
  readonly bus: EventBus;
  readonly counters: Counters;
  readonly documentLimit: number;
  /** Enqueues on behalf of a running job, which hands on what is left of its total (SEMANTICS 4.7). */
  enqueueFrom<Input>(
    parent: JobRow | undefined,
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<EnqueuedJob>;
}

/** What the pieces of one engine share. */
export interface EngineContext extends AttemptParts {
  /** How many milliseconds events are kept in the store. */
  readonly eventsKept: number;
  /** How many milliseconds entries of the audit are kept. */
  readonly auditKept: number;
  readonly store: Store;
  readonly clock: EngineClock;
  readonly queues: QueueSettings;
  /** Makes the events that are committed with what they tell of. */
  readonly recorder: EventRecorder;
  readonly waiters: Waiters;
  readonly tracing: Tracing | undefined;
  /** Commits what deliveries of timeouts write, many in one call. Rejects if the store fails. */
  readonly committer: { commit(unit: Unit): Promise<Outcome> };
  /** How many times longer than usual idle loops rest: above 1 only where no hint can be lost, as under virtual time. */
  readonly idlePollFactor: number;
  readonly random: Random;
  readonly nextId: () => JobId;
  /** The engine's own source (SEMANTICS 2). */
  readonly settings: PolicySettings;
  /** Reports a failing store once per call; loops and writers go on by themselves. */
  storeFailed(error: unknown, during: string): void;
  /** Tells the workers of this process that somebody changed a job which one of them may be running. */
  changed(id: JobId): void;
  /** Tells the sweep that something may be due at this instant. */
  wakeSweepAt(at: number): void;
  /** Tells the workers of this process that a queue has something to claim. */
  ready(queue: string): void;
}
