import type { NewEvent } from "../../core/event/new-event.ts";
import type { JobId } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Hint } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import { HINTED_WITHIN } from "../../ports/timeouts.ts";
import type { Connection } from "./connection.ts";
import type { Session } from "./session.ts";
import { ADD_HINTS, DATA_VERSION, LAST_HINT, READ_HINTS, TRIM_HINTS } from "./statements.ts";

/** What one transaction has to tell; a queue is named once, however many of its jobs became available. */
export class HintBatch {
  readonly #ready = new Set<string>();
  readonly #jobs: Hint[] = [];
  #timeoutsAt: Instant | null = null;
  /** What the transaction tells the readers of events; it is written as one row. Made on first use. */
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

/** Hints that one transaction leaves for other processes; beyond them polling finds what there is. */
const MOST_WRITTEN = 100;
/** Transactions whose hints are kept at least: far more than can be committed between two looks. */
const KEPT = 1_000;
/** Old hints are deleted so many at a time: one by one, each transaction would write one more page. */
const TRIMMED_AT_ONCE = 100;
/** A process looks this often right after something happened, and ever less often the longer nothing does. */
const SHORTEST_INTERVAL = 2;
const LONGEST_INTERVAL = 20;
/** After a quiet second the longest interval is reached: an idle process then looks 50 times a second, for microseconds. */
const QUIET_PER_INTERVAL = 50;
/** Stands for whoever commits a caller's transaction: this store cannot know when that happens, so it listens too. */
const NOBODY = 0;

/**
 * Tells the store's own listeners at once. For those of other processes the hints are written with the work itself;
 * they notice that the file was changed by another connection, and then read them.
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
    // A function of our own, so that one listener given twice is heard twice and taken back once.
    const listener = (hint: Hint) => onHint(hint);
    if (this.#listeners.size === 0) {
      // The version first: what is committed in between is then read once too often and not missed.
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

  /** Writes hints into the transaction they tell of. */
  write(session: Session, batch: HintBatch, origin = this.#origin): void {
    if (batch.isEmpty) return;
    const hints = batch.hints().slice(0, MOST_WRITTEN);
    const seq = session.add(ADD_HINTS, [origin, JSON.stringify(hints)]);
    if (seq % TRIMMED_AT_ONCE === 0) session.run(TRIM_HINTS, [seq - KEPT]);
  }

  /** Writes hints into a caller's transaction, whose commit this store hears of like everybody else. */
  writeForAll(session: Session, batch: HintBatch): void {
    this.write(session, batch, NOBODY);
  }

  /** Tells the listeners here, after the commit. */
  tell(batch: HintBatch): void {
    if (this.#listeners.size === 0 || batch.isEmpty) return;
    // In a microtask of its own: a listener that throws, or calls the store, must not reach into the call it is told of.
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
      // Whoever listens polls as well, so hints that could not be read are only late.
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
