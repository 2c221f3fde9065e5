import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { RecordKey } from "../../ports/store.ts";
import type { Parts } from "../parts.ts";

/** What a remote worker says of itself, and when it was last heard of. */
export interface RemoteWorker {
  readonly id: string;
  readonly seenAt: Instant;
  readonly state: string;
  readonly running: number;
  /** What an operator wants of it: told with the next beat. */
  readonly directive?: "quiet" | "terminate";
  readonly about?: { readonly [key: string]: Json };
}

const KNOWN_FOR = 5_000;
const MOST_KNOWN = 10_000;
/** A worker in one of these states gets no jobs. */
const STOPPED: ReadonlySet<string> = new Set(["quiet", "drain", "draining", "terminate", "shutting_down"]);

/**
 * Remote workers by their records in the store, so that every server sees the same. Their names are their own, so they
 * live under a prefix and never meet the worker of an engine.
 */
export class RemoteWorkers {
  readonly #parts: Parts;
  readonly #known = new Map<string, { readonly worker: RemoteWorker | null; readonly until: number }>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  static recordId(id: string): string {
    return `remote:${id}`;
  }

  static bodyOf(worker: RemoteWorker): Json {
    const { id: _id, directive, about, ...rest } = worker;
    return { ...rest, remote: true, ...(directive && { directive }), ...(about && { about }) };
  }

  /** What is known of a worker; a moment old at most, so that a fetch does not cost a read each time. */
  async find(id: string): Promise<RemoteWorker | null> {
    const known = this.#known.get(id);
    if (known && known.until > this.#parts.system.monotonic()) return known.worker;
    return this.load(id);
  }

  async load(id: string): Promise<RemoteWorker | null> {
    const key: RecordKey = ["worker", RemoteWorkers.recordId(id)];
    const [record] = await this.#parts.store.records.load([key]);
    const worker = record ? ({ ...(record.body as object), id } as RemoteWorker) : null;
    this.learn(id, worker);
    return worker;
  }

  learn(id: string, worker: RemoteWorker | null): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, { worker, until: this.#parts.system.monotonic() + KNOWN_FOR });
  }

  async mayFetch(id: string): Promise<boolean> {
    const worker = await this.find(id);
    return worker === null || !RemoteWorkers.isStopped(worker);
  }

  static isStopped({ state, directive }: RemoteWorker): boolean {
    return STOPPED.has(state) || directive !== undefined;
  }
}
