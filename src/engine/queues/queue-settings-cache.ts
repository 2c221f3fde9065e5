import { type FairWeights, type QueueFairness, weightsOf } from "../../core/fair/fair-options.ts";
import { ROUND_LIMITS, type RoundLimits } from "../../core/fair/round-limits.ts";
import { RoundPace } from "../../core/fair/round-pace.ts";
import { homeTurnsAfter, type LastTurns, NO_TURNS, type Turns, turnsAfter } from "../../core/fair/turns.ts";
import type { Pool } from "../../core/fair/worker-pool.ts";
import type { Home } from "../../core/home/cell.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { QueueDepth, StoredQueue } from "../../core/limit/queue-settings.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";
import { MAINTENANCE, MAINTENANCE_NAME, type MaintenanceView, maintenanceIn } from "./maintenance-record.ts";

export const QUEUES = recordKind<StoredQueue>("queue");
/** Every change of settings writes this record too, so that one small read finds out whether any queue's have changed. */
export const QUEUE_REVISION = recordKind<Record<string, never>>("queues");
export const QUEUE_REVISION_NAME = "revision";
export const QUEUES_REVISED = QUEUE_REVISION.put(QUEUE_REVISION_NAME, {}, null);
export const POOLS = recordKind<Pool>("pool");

/** The turns that this process took in a fair queue. */
interface TurnsTaken {
  last: LastTurns;
  /** For a store with several homes. */
  ofHomes: ReadonlyMap<Home, LastTurns>;
  readonly pace: RoundPace;
  readonly fair: QueueFairness;
  readonly weights: FairWeights;
}

/** Caches the queue settings, which are records in the store, so that all processes resolve the same (SEMANTICS 2). */
export class QueueSettings {
  readonly #store: Store;
  readonly #all: QueueSettings | undefined;
  readonly #limits: RoundLimits;
  #known: ReadonlyMap<string, StoredRecord<StoredQueue>> = new Map();
  #pools: ReadonlyMap<string, Pool> = new Map();
  #bounds: ReadonlyMap<string, number> | undefined;
  readonly #waiting = new Map<string, number>();
  readonly #taking = new Map<string, TurnsTaken>();
  /** Grows with each change: policies that were resolved at an older epoch are resolved again. */
  #epoch = 0;
  #maintenance: StoredRecord<MaintenanceView> | null = null;

  /** `all` are the settings of the engine of all tenants: its maintenance closes the queues of tenants too. */
  constructor(store: Store, all?: QueueSettings, limits?: RoundLimits) {
    this.#store = store;
    this.#all = all;
    this.#limits = limits ?? (all ? all.#limits : ROUND_LIMITS);
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

  /** How claims of a fair queue take turns. Undefined: the queue is not fair. `now` is monotonic. */
  turnsOf(queue: string, now: number): Turns | undefined {
    const fair = this.#known.get(queue)?.body.fair;
    if (!fair) return undefined;
    let taken = this.#taking.get(queue);
    if (taken?.fair !== fair) {
      const { last = NO_TURNS, ofHomes = new Map(), pace = new RoundPace(this.#limits) } = taken ?? {};
      taken = { last, ofHomes, pace, fair, weights: weightsOf(fair) };
      this.#taking.set(queue, taken);
    }
    const { weights, last, ofHomes, pace } = taken;
    if (this.#store.capabilities.homes > 1) return { ...weights, last, ofHomes };
    const rounds = pace.rounds(now);
    return rounds ? { ...weights, last, rounds } : { ...weights, last };
  }

  /** Remembers which fair key had the last turn. Each process takes turns for itself. `now` is monotonic. */
  noteTurns(queue: string, turns: Turns, rows: readonly JobRow[], now: number): void {
    const taken = this.#taking.get(queue);
    if (!taken) return;
    if (turns.ofHomes) {
      taken.ofHomes = homeTurnsAfter(turns.ofHomes, rows, turns, this.#store.capabilities.homes);
      return;
    }
    if (!turns.rounds) taken.last = turnsAfter(turns.last, rows, turns);
    taken.pace.note(rows.length, now);
  }

  /** Pools of remote workers, by name. */
  get pools(): ReadonlyMap<string, Pool> {
    return this.#pools;
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
    const pools = await POOLS.all(this.#store);
    this.#pools = new Map([...pools].map(([name, { body }]) => [name, body]));
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
    for (const queue of this.#taking.keys()) if (!known.get(queue)?.body.fair) this.#taking.delete(queue);
    for (const queue of this.#waiting.keys()) if (!this.#bounds?.has(queue)) this.#waiting.delete(queue);
  }
}
