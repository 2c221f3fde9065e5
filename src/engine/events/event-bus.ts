import { refuse } from "../../core/errors.ts";
import type { LifecycleEvent } from "../../core/job/decide/decision.ts";
import type { ErrorRecord, JobId, JobRow } from "../../core/job/job.ts";
import { LIFECYCLE_EVENTS, type LifecycleEventName } from "../../core/job/lifecycle-events.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { callSafely } from "../../core/user-values.ts";
import type { Logger } from "../../ports/log.ts";
import type { CronSkipped, CronTriggered } from "./cron-events.ts";
import type { SagaEventDetail, SagaEventName } from "./saga-events.ts";
import type { TimeoutEventDetail, TimeoutEventName } from "./timeout-events.ts";
import type { WorkflowEventDetail, WorkflowEventName } from "./workflow-events.ts";

export interface JobEventDetail {
  readonly name: EngineEventName;
  readonly id: JobId;
  readonly type: string;
  readonly queue: string;
  readonly attempt: number;
  readonly at: Instant;
  readonly error?: ErrorRecord;
  readonly dueAt?: Instant;
  readonly late?: true;
  readonly deadLetter?: true;
  /** Milliseconds from the start of the attempt to its verdict. */
  readonly elapsed?: number;
  readonly progress?: unknown;
  /** Until when its worker may be silent; only in `job.heartbeat`. */
  readonly visibleUntil?: Instant;
  /** The worker of the attempt; only in `job.started`. */
  readonly worker?: string;
  /** The number of attempts that the job may have; only in `job.retrying`. */
  readonly maxAttempts?: number;
  /** Where the code of a sandbox hung, if that is known. */
  readonly where?: string;
}

/** The event loop of a worker was blocked: no heartbeat, timeout or commit could run during the gap. */
export interface BlockedDetail {
  readonly name: "worker.blocked";
  readonly at: Instant;
  readonly worker: string;
  readonly gap: number;
  readonly jobs: readonly { readonly id: JobId; readonly type: string }[];
}

/**
 * The life of a worker. `worker.quiet`: it takes no more jobs. `worker.resumed`: it takes jobs again. `worker.stopped`:
 * it has closed. `worker.lost`: it went silent; its jobs are taken back when their own deadlines pass.
 */
export interface WorkerDetail {
  readonly name: "worker.started" | "worker.quiet" | "worker.resumed" | "worker.stopped" | "worker.lost";
  readonly at: Instant;
  readonly worker: string;
  /** It works over HTTP. */
  readonly remote?: true;
  readonly queues?: readonly string[];
  readonly reason?: string;
  /** The last sign of life; only in `worker.lost`. */
  readonly seenAt?: Instant;
}

export interface UnreadyDetail {
  readonly name: "worker.unready" | "worker.ready";
  readonly at: Instant;
  readonly worker: string;
  readonly reason: string;
}

/** The module of a sandboxed processor cannot be loaded, or can be again. Until then its jobs are released. */
export interface SandboxDetail {
  readonly name: "sandbox.broken" | "sandbox.mended";
  readonly at: Instant;
  readonly worker: string;
  readonly type: string;
  readonly reason: string | null;
}

export interface StoreErrorDetail {
  readonly name: "store.error";
  readonly at: Instant;
  readonly during: string;
  readonly error: unknown;
}

/** A change of a queue. `waiting` and `most` are set in events about its bound. */
export interface QueueDetail {
  readonly name: "queue.paused" | "queue.resumed" | "queue.pressure" | "queue.relieved" | "queue.full";
  readonly at: Instant;
  readonly queue: string;
  readonly waiting?: number;
  readonly most?: number;
}

/**
 * How a pool of remote workers shares its queues out: a queue with available jobs gave none for 30 s, the pool runs as many
 * jobs as it may while others wait, or its strategy or weights were changed.
 */
export interface SchedulingDetail {
  readonly name: "scheduling.queue_starved" | "scheduling.pool_overloaded" | "scheduling.rebalanced";
  readonly at: Instant;
  readonly pool: string;
  readonly queue?: string;
  readonly data: { readonly [field: string]: Json };
}

/** An operator changed the limit of a key, or removed the override. */
export interface LimitDetail {
  readonly name: "limit.changed";
  readonly at: Instant;
  readonly key: string;
}

/** Events that only the process that runs the job can know. */
const WORKER_JOB_EVENTS = [
  "job.stuck",
  "job.unstuck",
  "job.lost",
  "job.killed",
  "job.unknown_type",
  "job.progress",
  "job.heartbeat",
  "job.cleanup_failed",
] as const;
type JobEventNames = LifecycleEventName | (typeof WORKER_JOB_EVENTS)[number];

export type EngineEvents = { readonly [Name in JobEventNames]: JobEventDetail & { readonly name: Name } } & {
  readonly "worker.blocked": BlockedDetail;
  readonly "worker.unready": UnreadyDetail;
  readonly "worker.ready": UnreadyDetail;
  readonly "sandbox.broken": SandboxDetail;
  readonly "sandbox.mended": SandboxDetail;
  readonly "store.error": StoreErrorDetail;
  readonly "cron.triggered": CronTriggered;
  readonly "cron.skipped": CronSkipped;
  readonly "limit.changed": LimitDetail;
} & { readonly [Name in QueueDetail["name"]]: QueueDetail & { readonly name: Name } } & {
  readonly [Name in SchedulingDetail["name"]]: SchedulingDetail & { readonly name: Name };
} & {
  readonly [Name in WorkerDetail["name"]]: WorkerDetail & { readonly name: Name };
} & {
  readonly [Name in SagaEventName]: SagaEventDetail & { readonly name: Name };
} & {
  readonly [Name in TimeoutEventName]: TimeoutEventDetail & { readonly name: Name };
} & { readonly [Name in WorkflowEventName]: WorkflowEventDetail & { readonly name: Name } };

export type EngineEventName = keyof EngineEvents;

/** A record, so that the compiler reports a missing name. */
const PROCESS_EVENTS: Record<Exclude<EngineEventName, JobEventNames>, true> = {
  "worker.started": true,
  "worker.quiet": true,
  "worker.resumed": true,
  "worker.stopped": true,
  "worker.lost": true,
  "worker.blocked": true,
  "worker.unready": true,
  "worker.ready": true,
  "sandbox.broken": true,
  "sandbox.mended": true,
  "store.error": true,
  "cron.triggered": true,
  "cron.skipped": true,
  "limit.changed": true,
  "queue.paused": true,
  "queue.resumed": true,
  "queue.pressure": true,
  "queue.relieved": true,
  "queue.full": true,
  "scheduling.queue_starved": true,
  "scheduling.pool_overloaded": true,
  "scheduling.rebalanced": true,
  "saga.started": true,
  "saga.handled": true,
  "saga.completed": true,
  "saga.ignored": true,
  "saga.not_found": true,
  "saga.failed": true,
  "timeout.sent": true,
  "timeout.failed": true,
  "timeout.dead": true,
  "workflow.started": true,
  "workflow.completed": true,
  "workflow.failed": true,
  "workflow.cancelled": true,
};
export const EVENT_NAMES: ReadonlySet<string> = new Set([
  ...LIFECYCLE_EVENTS,
  ...WORKER_JOB_EVENTS,
  ...Object.keys(PROCESS_EVENTS),
]);
export type EngineEvent = EngineEvents[EngineEventName];

type Listener = (event: never) => unknown;
const BUFFER_LIMIT = 10_000;

/** In-process events. A listener that throws is logged, and the others still run. */
export class EventBus {
  readonly #logger: Logger;
  readonly #listeners = new Map<EngineEventName | "*", Set<Listener>>();
  readonly #ends = new Set<() => void>();
  #isClosed = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  on<Name extends EngineEventName>(name: Name, listener: (event: EngineEvents[Name]) => void): () => void {
    if (!EVENT_NAMES.has(name))
      throw refuse("invalid_option", "on", name, `use one of ${[...EVENT_NAMES].join(", ")}`);
    if (typeof listener !== "function")
      throw refuse("invalid_option", `on(${name})`, listener, "pass a function");
    return this.#add(name, listener as Listener);
  }

  #add(name: EngineEventName | "*", listener: Listener): () => void {
    const set = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, set.add(listener));
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.#listeners.get(name) === set) this.#listeners.delete(name);
    };
  }

  /** Whether an event has listeners; build it only then. */
  wants(name: EngineEventName): boolean {
    return this.#listeners.size > 0 && (this.#listeners.has(name) || this.#listeners.has("*"));
  }

  emit(event: EngineEvent): void {
    for (const key of [event.name, "*"] as const) {
      for (const listener of this.#listeners.get(key) ?? []) {
        callSafely(
          () => listener(event as never),
          (error) => this.#threw(event.name, error),
        );
      }
    }
  }

  #threw(event: EngineEventName, error: unknown): void {
    this.#logger.error({ error, event }, "an event listener threw; the other listeners still run");
  }

  /** Ends the streams after their buffered events. */
  close(): void {
    this.#isClosed = true;
    for (const end of this.#ends) end();
  }

  /** Emits the events of a committed decision. */
  announce(job: JobRow, events: readonly LifecycleEvent[], at: Instant): void {
    if (this.#listeners.size === 0) return;
    for (const event of events) {
      if (!this.wants(event.name)) continue;
      this.emit({ ...this.detail(job, event.name, at), ...moreOf(job, event.name), ...event } as EngineEvent);
    }
  }

  detail<Name extends JobEventNames>(
    job: JobRow,
    name: Name,
    at: Instant,
  ): JobEventDetail & { readonly name: Name } {
    return {
      name,
      id: job.id,
      type: job.type,
      queue: job.queue,
      attempt: job.attempt,
      at,
      ...(job.startedAt !== null && { elapsed: at - job.startedAt }),
    };
  }

  /** All events as an async iterator with a bounded buffer: a slow reader loses the oldest events. */
  async *stream(signal?: AbortSignal): AsyncGenerator<EngineEvent, void, undefined> {
    const buffer: EngineEvent[] = [];
    let notify: (() => void) | undefined;
    const off = this.#add("*", ((event: EngineEvent) => {
      if (buffer.length >= BUFFER_LIMIT) buffer.shift();
      buffer.push(event);
      notify?.();
    }) as Listener);
    const wake = () => notify?.();
    signal?.addEventListener("abort", wake);
    this.#ends.add(wake);
    try {
      while (!signal?.aborted) {
        const event = buffer.shift();
        if (event) yield event;
        else if (this.#isClosed) return;
        else await new Promise<void>((resolve) => (notify = resolve));
      }
    } finally {
      off();
      this.#ends.delete(wake);
      signal?.removeEventListener("abort", wake);
    }
  }
}

/** Fields that only some events have. */
function moreOf(
  job: JobRow,
  name: LifecycleEventName,
): Pick<JobEventDetail, "worker" | "maxAttempts"> | null {
  if (name === "job.started") {
    // The policy names a remote worker; the row names the engine that claimed for it.
    const worker = job.policy?.worker ?? job.worker;
    return worker ? { worker } : null;
  }
  if (name === "job.retrying" && job.policy) return { maxAttempts: job.policy.retry.attempts };
  return null;
}
