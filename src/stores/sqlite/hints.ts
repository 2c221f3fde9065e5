import type { NewEvent } from "../../core/event/new-event.ts";
import type { JobId } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Hint } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import { HINTED_WITHIN } from "../../ports/timeouts.ts";
import type { Connection } from "./connection.ts";
import type { Session } from "./session.ts";
import { ADD_HINTS, DATA_VERSION, LAST_HINT, READ_HINTS, TRIM_HINTS } from "./statements.ts";

/** The hints of one transaction. A queue appears once, whatever the number of its jobs that became available. */
export class HintBatch {
  readonly #ready = new Set<string>();
  readonly #jobs: Hint[] = [];
  #timeoutsAt: Instant | null = null;
  /** The events that the transaction records, written as one row. Created at first use. */
  events: NewEvent[] | undefined;

  event(event: NewEvent): void {
    this.events ??= [];
    this.events.push(event);
  }

  get isEmpty(): boolean {
    return this.#ready.size + this.#jobs.length === 0 && this.#timeoutsAt === null;
  }

  ready(queue: string): void {
    this.#ready.add(queue);
  }

  settled(id: JobId): void {
    this.#jobs.push({ settled: id });
  }

  lost(id: JobId): void {
    this.#jobs.push({ lost: id });
  }

  timeout(dueAt: Instant, now: Instant): void {
    if (dueAt <= now + HINTED_WITHIN) this.#timeoutsAt = earlier(this.#timeoutsAt, dueAt);
  }

  hints(): Hint[] {
    const timeouts: Hint[] = this.#timeoutsAt === null ? [] : [{ timeouts: this.#timeoutsAt }];
    return [...Array.from(this.#ready, (queue): Hint => ({ ready: queue })), ...timeouts, ...this.#jobs];
  }
}

/** The most hints that one transaction writes for other processes. They find the rest by polling. */
const MOST_WRITTEN = 100;
/** The least number of transactions whose hints are kept: far more than commit between two looks. */
const KEPT_ROWS = 1_000;
/** Old hints are deleted this many at a time. One by one, each transaction would write one more page. */
const TRIMMED_AT_ONCE = 100;
/** A process looks this often, in milliseconds, right after a change, and less often the longer nothing changes. */
const SHORTEST_INTERVAL = 2;
const LONGEST_INTERVAL = 20;
/**
 * The longest interval is reached after a quiet second. An idle process then looks 50 times per second, for
 * microseconds each.
 */
const QUIET_PER_INTERVAL = 50;
/** The origin of hints in a caller's transaction. This store does not know when that commits, so it reads them too. */
const NO_ORIGIN = 0;

/**
 * Notifies the store's own listeners at once. For other processes, hints are written with the work. They notice that
 * another connection changed the file, and read them.
 */
export class HintChannel {
  readonly #connection: Connection;
  readonly #system: System;
  readonly #origin: number;
  readonly #listeners = new Set<(hint: Hint) => void>();
  #timer: Timer | undefined;
  #lastActiveAt = 0;
  #lastVersion: unknown;
  #lastSeq = 0;

  constructor(connection: Connection, system: System) {
    this.#connection = connection;
    this.#system = system;
    this.#origin = 1 + Math.floor(system.random() * 2 ** 48);
  }

  async listen(onHint: (hint: Hint) => void): Promise<AsyncDisposable> {
    // A new function, so that a callback that is registered twice is called twice and removed once.
    const listener = (hint: Hint) => onHint(hint);
    if (this.#listeners.size === 0) {
      // Read the version first: what commits in between is then read once too often instead of being missed.
      const [version, seq] = await this.#connection.read((session) => [
        session.get(DATA_VERSION)?.[0],
        session.get(LAST_HINT)?.[0] as number,
      ]);
      this.#lastVersion = version;
      this.#lastSeq = seq as number;
    }
    this.#listeners.add(listener);
    this.#arm();
    return {
      [Symbol.asyncDispose]: async () => {
        this.#listeners.delete(listener);
        if (this.#listeners.size === 0) this.#disarm();
      },
    };
  }

  /** Writes hints into the transaction that causes them. */
  write(session: Session, batch: HintBatch, origin = this.#origin): void {
    if (batch.isEmpty) return;
    const hints = batch.hints().slice(0, MOST_WRITTEN);
    const seq = session.add(ADD_HINTS, [origin, JSON.stringify(hints)]);
    if (seq % TRIMMED_AT_ONCE === 0) session.run(TRIM_HINTS, [seq - KEPT_ROWS]);
  }

  /** Writes hints into a caller's transaction. This store learns of its commit as other processes do. */
  writeForAll(session: Session, batch: HintBatch): void {
    this.write(session, batch, NO_ORIGIN);
  }

  /** Notifies the listeners of this store. Call it after the commit. */
  notify(batch: HintBatch): void {
    if (this.#listeners.size === 0 || batch.isEmpty) return;
    // In a new microtask: a listener that throws or calls the store must not affect the call that caused the hint.
    queueMicrotask(() => this.#emit(batch.hints()));
  }

  close(): void {
    this.#listeners.clear();
    this.#disarm();
  }

  #emit(hints: readonly Hint[]): void {
    for (const hint of hints) for (const listener of this.#listeners) listener(hint);
  }

  #arm(): void {
    const quietFor = this.#system.monotonic() - this.#lastActiveAt;
    const interval = Math.min(LONGEST_INTERVAL, Math.max(SHORTEST_INTERVAL, quietFor / QUIET_PER_INTERVAL));
    this.#timer ??= this.#system.after(interval, () => {
      this.#timer = undefined;
      void this.#look();
    });
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #look(): Promise<void> {
    const hints = await this.#connection
      .read((session) => this.#readForeign(session))
      // Listeners poll as well, so hints that could not be read only cause a delay.
      .catch((): Hint[] => []);
    if (this.#listeners.size === 0) return;
    this.#arm();
    this.#emit(hints);
  }

  #readForeign(session: Session): Hint[] {
    const version = session.get(DATA_VERSION)?.[0];
    if (version === this.#lastVersion) return [];
    const rows = session.all(READ_HINTS, [this.#lastSeq, this.#origin]);
    this.#lastVersion = version;
    this.#lastSeq = (rows.at(-1)?.[0] as number | undefined) ?? this.#lastSeq;
    this.#lastActiveAt = this.#system.monotonic();
    return rows.flatMap(([, body]) => JSON.parse(body as string) as Hint[]);
  }
}
