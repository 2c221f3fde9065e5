import type { IdSource } from "../core/ids.ts";
import type { Sealing } from "../core/job/documents/sealed.ts";
import type { EnqueuedJob, EnqueueOptions, NewJob } from "../core/job/enqueue/envelope.ts";
import type { JobId, JobRow, PolicySettings } from "../core/job/job.ts";
import type { JobDefinition } from "../core/job/job-definition.ts";
import type { Random } from "../core/random.ts";
import type { Logger } from "../ports/log.ts";
import type { Outcome, Store, Unit } from "../ports/store.ts";
import type { System } from "../ports/system.ts";
import type { Tracing } from "../ports/trace.ts";
import type { CalendarCache } from "./calendars/calendar-cache.ts";
import type { EventBus } from "./events/event-bus.ts";
import type { EventRecorder } from "./events/event-recorder.ts";
import type { QueueSettings } from "./queues/queue-settings-cache.ts";
import type { EngineClock } from "./runtime/engine-clock.ts";
import type { Pauses } from "./runtime/pauses.ts";
import type { Waiters } from "./runtime/waiters.ts";
import type { SchemaCache } from "./schemas/schema-cache.ts";
import type { Counters } from "./statistics/counters.ts";
import type { LearnedLimits } from "./statistics/learned-limits.ts";

/** What attempts need from their worker, local or remote. */
export interface AttemptParts {
  readonly system: System;
  readonly clock: Pick<EngineClock, "now" | "anchor" | "upper">;
  readonly logger: Logger;
  readonly bus: EventBus;
  readonly counters: Counters;
  readonly documentLimit: number;
  /** Left out if this process has no keys. */
  readonly sealing?: Sealing | undefined;
  /** Enqueues for a running job. The new job inherits the rest of its `total` (SEMANTICS 4.7). */
  enqueueFrom<Input>(
    parent: JobRow | undefined,
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options?: EnqueueOptions,
  ): Promise<EnqueuedJob>;
}

/** What all classes of one engine share. */
export interface EngineContext extends AttemptParts {
  /** How many milliseconds the store keeps events. */
  readonly eventsKept: number;
  /** How many milliseconds the store keeps audit entries. */
  readonly auditKept: number;
  readonly store: Store;
  /** The name of this machine; null if it was not given. */
  readonly host: string | null;
  readonly clock: EngineClock;
  readonly queues: QueueSettings;
  /** The registered schemas of jobs. */
  readonly schemas: SchemaCache;
  /** The limits that follow recorded runs. */
  readonly learned: LearnedLimits;
  /** The business calendars. */
  readonly calendars: CalendarCache;
  /** Makes the events that are committed together with their change. */
  readonly recorder: EventRecorder;
  readonly waiters: Waiters;
  /** Between two tries at a store that fails. */
  readonly pauses: Pauses;
  readonly tracing: Tracing | undefined;
  /** Commits the units of timeout deliveries, many in one call. Rejects if the store fails. */
  readonly committer: { commit(unit: Unit): Promise<Outcome> };
  /** Factor for the rests of idle loops. Above 1 only where no hint can be lost, as in tests with virtual time. */
  readonly idlePollFactor: number;
  readonly secondCommitFrom?: number;
  /** Loops that rest are woken by the lookout. */
  readonly isWatched: true;
  readonly random: Random;
  readonly nextId: IdSource;
  /** The tenant whose names the store shows; null for the engine of all that belongs to none. */
  readonly tenant: string | null;
  /** Throws if jobs do not fit into the limits of the tenant. Left out: there is no tenant. */
  readonly admit?: (jobs: readonly NewJob[]) => Promise<void> | undefined;
  /** The engine's own source (SEMANTICS 2). */
  readonly settings: PolicySettings;
  /** Throws once the engine is closed or closing. */
  assertOpen(): void;
  /** Logs and announces a failed call of the store. The caller tries again itself. */
  storeFailed(error: unknown, during: string): void;
  /** A job changed that a worker of this process may run. */
  changed(id: JobId): void;
  /** A row may be due at this instant. */
  wakeSweepAt(at: number): void;
  /** A queue has jobs to claim for the workers of this process. */
  ready(queue: string): void;
}
