import type { JobRow } from "../core/job/job.ts";
import { CONFIRMED_WITHIN, SLOWLY_CONFIRMED_WITHIN } from "../core/job/policy/deadlines.ts";
import type { AttemptParts } from "../engine/context.ts";
import type { EngineClock } from "../engine/runtime/engine-clock.ts";
import { Loop } from "../engine/runtime/loop.ts";

/** A prefetched job without a slot. Its attempt has started, so its deadlines run. */
interface Held {
  readonly row: JobRow;
  readonly fetchedAt: number;
  /** When the job was last known to be ours, by `clock.elapsed()`. */
  confirmedAt: number;
}

export interface Fetched {
  readonly rows: readonly JobRow[];
  /** The server held the request until there was a job or its wait was over. */
  readonly hasWaited: boolean;
}

interface ConsumerDeps {
  readonly parts: AttemptParts;
  readonly clock: EngineClock;
  readonly canFetch: boolean;
  readonly isClosing: boolean;
  /** Unreported verdicts reduce it, so a slow server slows fetches. */
  readonly room: number;
  /** Starts the event loop monitor. */
  busy(): void;
  isFresh(since: number): boolean;
  fetch(queue: string, count: number): Promise<Fetched>;
  enter(consumer: RemoteConsumer, row: JobRow): void;
  readinessChanged(): void;
  giveBack(rows: readonly JobRow[]): void;
  confirm(rows: readonly JobRow[]): Promise<Set<JobRow>>;
  failed(error: unknown, during: string): void;
}

const MOST_AT_ONCE = 200;
/** Prefetch only for handlers with a shorter average: a prefetched job's attempt has already started. */
const SHORT_RUN = 20;
const HELD_AT_MOST = 500;
const POLL = 1_000;
const AFTER_WAIT = 10;

/** One queue of a remote worker: its slots, its prefetched jobs and its fetch loop. */
export class RemoteConsumer {
  readonly queue: string;
  readonly concurrency: number;
  readonly loop: Loop;
  /** The message of the last failed fetch. */
  failure = "";
  readonly #host: ConsumerDeps;
  #held: Held[] = [];
  #running = 0;
  #confirming = 0;
  #isDry = false;
  #isFetching = false;
  #isPumping = false;
  /** The jobs that were just confirmed, while they are entered. A handler that blocks the loop ends it early. */
  #justConfirmed: { readonly jobs: ReadonlySet<Held>; readonly until: number } | undefined;
  #averageRun: number | undefined;

  constructor(host: ConsumerDeps, queue: string, concurrency: number) {
    this.#host = host;
    this.queue = queue;
    this.concurrency = concurrency;
    const { system, logger } = host.parts;
    this.loop = new Loop({
      name: `fetch ${queue}`,
      system,
      logger,
      round: () => this.#fetch(),
      onError: (error) => {
        this.failure = error instanceof Error ? error.message : String(error);
        host.failed(error, `fetch ${queue}`);
      },
      onFailing: () => host.readinessChanged(),
    });
  }

  get running(): number {
    return this.#running;
  }

  get isBusy(): boolean {
    return this.#isFetching || this.#running > 0 || this.prefetchedCount > 0;
  }

  get prefetchedCount(): number {
    return this.#held.length + this.#confirming;
  }

  *held(): Iterable<JobRow> {
    for (const { row } of this.#held) yield row;
  }

  ranFor(elapsed: number): void {
    this.#averageRun = this.#averageRun === undefined ? elapsed : this.#averageRun * 0.9 + elapsed * 0.1;
  }

  get #ahead(): number {
    if (this.#averageRun === undefined || this.#averageRun > SHORT_RUN) return 0;
    return Math.floor((this.concurrency * SHORT_RUN) / Math.max(this.#averageRun, 1));
  }

  get #wanted(): number {
    if (!this.#host.canFetch) return 0;
    const target = Math.min(this.concurrency - this.#running + this.#ahead, this.#host.room, MOST_AT_ONCE);
    const held = this.prefetchedCount;
    // Fetch when half empty: fetches are large, and handlers seldom wait for a round trip.
    return held > target / 2 ? 0 : target - held;
  }

  async #fetch(): Promise<number | null> {
    const { clock, parts } = this.#host;
    const count = this.#wanted;
    if (count <= 0) {
      // A freed slot wakes the loop. A worker that may not fetch checks again later.
      this.#isDry = false;
      return this.#host.canFetch ? null : POLL;
    }
    this.#host.busy();
    const sentAt = clock.elapsed();
    this.#isFetching = true;
    const { rows, hasWaited } = await this.#host.fetch(this.queue, count).finally(() => {
      this.#isFetching = false;
    });
    const fetchedAt = clock.elapsed();
    const confirmedAt = this.#host.isFresh(sentAt) ? fetchedAt : sentAt;
    for (const row of rows) this.#held.push({ row, fetchedAt, confirmedAt });
    this.#isDry = rows.length < count;
    if (this.#host.isClosing) {
      this.#host.giveBack(this.takePrefetched());
      return null;
    }
    this.pump();
    if (!this.#isDry) return this.#wanted > 0 ? 0 : null;
    return hasWaited || rows.length > 0 ? AFTER_WAIT : POLL * (0.5 + 0.5 * parts.system.random());
  }

  /** Starts prefetched jobs in free slots. Not re-entrant: a handler that ends at once frees its slot from within. */
  pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      this.#fill();
    } finally {
      this.#isPumping = false;
    }
    if (!this.#isDry && this.#wanted > 0) this.loop.wake();
  }

  #fill(): void {
    while (this.#running < this.concurrency && this.#held.length > 0 && !this.#host.isClosing) {
      const [first] = this.#held as [Held];
      const now = this.#host.clock.elapsed();
      if (!this.#mayEnter(first, now)) {
        this.#reconsider(now);
        return;
      }
      this.#held.shift();
      this.#running += 1;
      this.#host.enter(this, first.row);
    }
  }

  #mayEnter(held: Held, now: number): boolean {
    const age = now - held.confirmedAt;
    const just = this.#justConfirmed;
    if (just?.jobs.has(held) && now <= just.until) return age <= SLOWLY_CONFIRMED_WITHIN;
    return now - held.fetchedAt <= HELD_AT_MOST && age <= CONFIRMED_WITHIN;
  }

  /** Gives back jobs that waited too long. Confirms the others before any of them starts (SEMANTICS 3.1). */
  #reconsider(now: number): void {
    const all = this.#held.splice(0);
    const old = all.filter((held) => now - held.fetchedAt > HELD_AT_MOST);
    const doubtful = all.filter((held) => now - held.fetchedAt <= HELD_AT_MOST);
    if (old.length > 0) {
      // Handlers became slower, so prefetch less.
      this.#averageRun = HELD_AT_MOST;
      this.#host.giveBack(old.map(({ row }) => row));
    }
    if (doubtful.length > 0) void this.#confirm(doubtful);
  }

  async #confirm(doubtful: readonly Held[]): Promise<void> {
    this.#confirming += doubtful.length;
    const sentAt = this.#host.clock.elapsed();
    let valid = new Set<JobRow>();
    try {
      valid = await this.#host.confirm(doubtful.map(({ row }) => row));
    } catch (error) {
      // Without an answer no job may start, so give them back.
      this.#host.failed(error, "confirm");
      this.#host.giveBack(doubtful.map(({ row }) => row));
    }
    this.#confirming -= doubtful.length;
    const confirmedAt = this.#host.isFresh(sentAt) ? this.#host.clock.elapsed() : sentAt;
    const kept = doubtful.filter(({ row }) => valid.has(row));
    for (const held of kept) held.confirmedAt = confirmedAt;
    this.#held.unshift(...kept);
    if (this.#host.isClosing) return this.#host.giveBack(this.takePrefetched());
    this.#justConfirmed = { jobs: new Set(kept), until: this.#host.clock.elapsed() + CONFIRMED_WITHIN };
    this.pump();
    this.#justConfirmed = undefined;
  }

  /** Gives back jobs that waited too long; called on every tick of the worker. */
  tidy(now: number): void {
    const [first] = this.#held;
    if (first && now - first.fetchedAt > HELD_AT_MOST) this.#reconsider(now);
  }

  freed(): void {
    this.#running -= 1;
    this.pump();
  }

  /** Removes and returns all prefetched jobs. */
  takePrefetched(): JobRow[] {
    return this.#held.splice(0).map(({ row }) => row);
  }
}
