import { weightsOf } from "../../core/fair/fair-options.ts";
import { type Turn, type Turns, turnAfter } from "../../core/fair/turns.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { QueueDepth, StoredQueue } from "../../core/limit/queue-settings.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import { recordKind, type StoredRecord } from "../commit/records.ts";
import { MAINTENANCE, MAINTENANCE_NAME, type MaintenanceView, maintenanceIn } from "./maintenance-record.ts";

export const QUEUES = recordKind<StoredQueue>("queue");
/** Every change of settings writes this record too, so that one small read finds out whether any queue's have changed. */
export const QUEUE_REVISION = recordKind<Record<string, never>>("queues");
export const QUEUE_REVISION_NAME = "revision";

/** Caches the queue settings, which are records in the store, so that all processes resolve the same (SEMANTICS 2). */
export class QueueSettings {
  readonly #store: Store;
  readonly #all: QueueSettings | undefined;
  #known: ReadonlyMap<string, StoredRecord<StoredQueue>> = new Map();
  #bounds: ReadonlyMap<string, number> | undefined;
  readonly #waiting = new Map<string, number>();
  readonly #lastTurns = new Map<string, Turn>();
  /** Grows with each change: policies that were resolved at an older epoch are resolved again. */
  #epoch = 0;
  #maintenance: StoredRecord<MaintenanceView> | null = null;

  /** `all` are the settings of the engine of all tenants: its maintenance closes the queues of tenants too. */
  constructor(store: Store, all?: QueueSettings) {
    this.#store = store;
    this.#all = all;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Whether maintenance stops all queues. */
  isClosed(now: Instant): boolean {
    return maintenanceIn(this.#maintenance, now) !== null || this.#all?.isClosed(now) === true;
  }

  policyOf(queue: string): StoredQueue | undefined {
    return this.#known.get(queue)?.body;
  }

  settingsOf(queue: string): StoredQueue | undefined {
    return this.#known.get(queue)?.body;
  }

  concurrencyOf(queue: string): number | undefined {
    return this.#known.get(queue)?.body.concurrency;
  }

  depthOf(queue: string): QueueDepth | undefined {
    return this.#known.get(queue)?.body.depth;
  }

  isFair(queue: string): boolean {
    return this.#known.get(queue)?.body.fair !== undefined;
  }

  /** How claims of a fair queue take turns. Undefined: the queue is not fair. */
  turnsOf(queue: string): Turns | undefined {
    const fair = this.#known.get(queue)?.body.fair;
    return fair && { ...weightsOf(fair), last: this.#lastTurns.get(queue) ?? null };
  }

  /** Remembers which fair key had the last turn. Each process takes turns for itself. */
  noteTurns(queue: string, turns: Turns, rows: readonly JobRow[]): void {
    const last = turnAfter(turns.last, rows, turns);
    if (last) this.#lastTurns.set(queue, last);
  }

  /** Notes how many jobs waited in a bounded queue when this process last enqueued into it. */
  noteWaiting(queue: string, waiting: number): void {
    this.#waiting.set(queue, waiting);
  }

  waitingIn(queue: string): number | undefined {
    return this.#waiting.get(queue);
  }

  /** The most waiting jobs of each bounded queue; undefined if no queue is bounded. */
  get bounds(): ReadonlyMap<string, number> | undefined {
    return this.#bounds;
  }

  async refresh(): Promise<void> {
    this.#maintenance = await MAINTENANCE.load(this.#store, MAINTENANCE_NAME);
    const known = await QUEUES.all(this.#store);
    // Keep the old object if its version is the same: callers compare by identity.
    for (const [queue, { version }] of known) {
      const old = this.#known.get(queue);
      if (old?.version === version) known.set(queue, old);
    }
    const isSame =
      known.size === this.#known.size &&
      [...known].every(([queue, { version }]) => this.#known.get(queue)?.version === version);
    if (isSame) return;
    this.#epoch += 1;
    this.#known = known;
    const bounds = [...known].flatMap(([queue, { body }]) =>
      body.depth ? [[queue, body.depth.most] as const] : [],
    );
    this.#bounds = bounds.length > 0 ? new Map(bounds) : undefined;
    for (const queue of this.#lastTurns.keys())
      if (!known.get(queue)?.body.fair) this.#lastTurns.delete(queue);
    for (const queue of this.#waiting.keys()) if (!this.#bounds?.has(queue)) this.#waiting.delete(queue);
  }
}
