import type { PolicySettings } from "../../core/job/job.ts";
import type { QueueDepth, StoredQueue } from "../../core/limit/queue-settings.ts";
import type { Instant } from "../../core/time.ts";
import type { RecordKey, RecordRow, Store } from "../../ports/store.ts";
import { MAINTENANCE_KEY, maintenanceIn } from "./maintenance-record.ts";

const KIND = "queue";
const PAGE = 500;

interface Known {
  readonly settings: StoredQueue;
  readonly version: number;
}

/** Queue settings are records in the store, so that all processes resolve the same (SEMANTICS 2). */
export class QueueSettings {
  readonly #store: Store;
  #known: ReadonlyMap<string, Known> = new Map();
  #bounds: ReadonlyMap<string, number> | undefined;
  readonly #waiting = new Map<string, number>();
  /** Grows whenever a setting changed: policies that were resolved under an older one are resolved anew. */
  #epoch = 0;
  #maintenance: RecordRow | null | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Whether nothing is handed out, of no queue at all. */
  isClosed(now: Instant): boolean {
    return maintenanceIn(this.#maintenance, now) !== null;
  }

  policyOf(queue: string): PolicySettings | undefined {
    return this.#known.get(queue)?.settings;
  }

  settingsOf(queue: string): StoredQueue | undefined {
    return this.#known.get(queue)?.settings;
  }

  concurrencyOf(queue: string): number | undefined {
    return this.#known.get(queue)?.settings.concurrency;
  }

  depthOf(queue: string): QueueDepth | undefined {
    return this.#known.get(queue)?.settings.depth;
  }

  /** How many jobs wait in a bounded queue, as counted when this process last enqueued into it. */
  noteWaiting(queue: string, waiting: number): void {
    this.#waiting.set(queue, waiting);
  }

  waitingIn(queue: string): number | undefined {
    return this.#waiting.get(queue);
  }

  /** How many jobs may wait, of the queues that are bounded; undefined where none is. */
  get bounds(): ReadonlyMap<string, number> | undefined {
    return this.#bounds;
  }

  async refresh(): Promise<void> {
    const known = new Map<string, Known>();
    [this.#maintenance] = await this.#store.records.load([MAINTENANCE_KEY]);
    let after: string | null = null;
    for (;;) {
      const page: RecordRow[] = await this.#store.records.list(KIND, after, PAGE);
      for (const { key, body, version } of page) {
        const old = this.#known.get(key[1]);
        // The same object again, so that whoever compares by identity sees that nothing changed.
        known.set(key[1], old?.version === version ? old : { settings: body as StoredQueue, version });
      }
      if (page.length < PAGE) break;
      after = (page[page.length - 1] as RecordRow).key[1];
    }
    const isSame =
      known.size === this.#known.size &&
      [...known].every(([queue, { version }]) => this.#known.get(queue)?.version === version);
    if (isSame) return;
    this.#epoch += 1;
    this.#known = known;
    const bounds = [...known].flatMap(([queue, { settings }]) =>
      settings.depth ? [[queue, settings.depth.most] as const] : [],
    );
    this.#bounds = bounds.length > 0 ? new Map(bounds) : undefined;
    for (const queue of this.#waiting.keys()) if (!this.#bounds?.has(queue)) this.#waiting.delete(queue);
  }

  static key(queue: string): RecordKey {
    return [KIND, queue];
  }
}
