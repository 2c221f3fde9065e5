import { statSync } from "node:fs";
import type { Instant } from "../../core/time.ts";
import type { CommitOptions } from "../../ports/store.ts";
import { eventRow } from "../sql/event-pack.ts";
import { callerHandle, refusedHandle } from "./caller-handle.ts";
import type { Connection } from "./connection.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import { asHandle, isSameCopy } from "./own-database.ts";
import { Session } from "./session.ts";
import { explained, failed, isBusy } from "./sqlite-errors.ts";
import { ADD_EVENT, BEGIN_PART, DATABASE_FILE, KEEP_PART, SYNCHRONOUS, UNDO_PART } from "./statements.ts";

interface RunOptions extends CommitOptions {
  readonly whole?: boolean;
}

/** Works synchronously, and collects hints and events. */
type Work<Result> = (session: Session, hints: HintBatch) => Result;

/** Runs work and sends its hints: in the store's own transactions, or in one of the caller. */
export class Transactions {
  readonly #connection: Connection;
  readonly #channel: HintChannel;
  readonly #database: object | undefined;
  readonly #sessions = new WeakMap<object, Session>();

  /** `database` is the caller's own, if the store was opened with it. */
  constructor(connection: Connection, channel: HintChannel, database?: object) {
    this.#connection = connection;
    this.#channel = channel;
    this.#database = database;
  }

  /**
   * Works through the items of a call: in the caller's transaction, or a batch at a time. Unless `relaxed`, the
   * writes are on disk when it resolves. Work that is `whole` answers for all items that it gets.
   */
  async run<Item, Answer>(
    items: readonly Item[],
    textOf: (item: Item) => number,
    { tx, now, relaxed = false, whole = false }: RunOptions,
    work: (session: Session, items: readonly Item[], hints: HintBatch) => Answer[],
  ): Promise<Answer[]> {
    this.#connection.assertOpen();
    if (tx !== undefined) {
      const handle = await callerHandle(tx, this.#database);
      return this.#within(handle, now, (session, hints) => {
        const answers: Answer[] = [];
        while (answers.length < items.length)
          answers.push(...work(session, items.slice(answers.length), hints));
        return answers;
      });
    }
    if (items.length === 0) return [];
    let left = items.length;
    let synced: Promise<void> | undefined;
    const write = (batch: readonly Item[]) =>
      this.commit(
        now,
        (session, hints) => work(session, batch, hints),
        (answers) => {
          left -= answers.length;
          if (left > 0 || relaxed) return;
          // The sync starts at once, without waiting for a turn of the event loop.
          synced = this.#connection.synced();
          synced.catch(ignore);
        },
      );
    const answers = await this.#connection[whole ? "allBatches" : "inBatches"](items, textOf, write);
    await synced;
    return answers;
  }

  /** One transaction of the store. Its hints are sent at once, before the sync: seeing a job early does no harm. */
  async commit<Result>(
    now: Instant,
    work: Work<Result>,
    committed: (result: Result) => void = ignore,
  ): Promise<Result> {
    const { result, sent } = await this.#connection.write(
      (session) => {
        const hints = new HintBatch();
        const given = work(session, hints);
        writeEvents(session, hints, now);
        this.#channel.write(session, hints);
        return { result: given, sent: hints };
      },
      ({ result }) => committed(result),
    );
    this.#channel.notify(sent);
    return result;
  }

  /** Runs work in the caller's transaction. A failed call undoes its own writes. */
  #within<Result>(tx: unknown, now: Instant, work: Work<Result>): Result {
    const session = this.#sessionOf(tx);
    try {
      session.run(BEGIN_PART);
      const hints = new HintBatch();
      const result = work(session, hints);
      writeEvents(session, hints, now);
      this.#channel.writeForAll(session, hints);
      session.run(KEEP_PART);
      return result;
    } catch (error) {
      if (session.inTransaction) {
        session.run(UNDO_PART);
        session.run(KEEP_PART);
      }
      throw this.#explainedWithin(error);
    }
  }

  #explainedWithin(error: unknown): unknown {
    const { path } = this.#connection;
    if (!isBusy(error)) return explained(error, path);
    const says =
      "is being written by another program: begin the transaction with `begin immediate`, or repeat it";
    return failed(path, says, error);
  }

  #sessionOf(tx: unknown): Session {
    let session = this.#sessions.get(tx as object);
    if (!session) {
      const handle = asHandle(tx);
      if (!handle)
        throw refusedHandle(
          typeof tx === "object" ? "an object" : tx,
          "pass the better-sqlite3 or node:sqlite handle that began the transaction, or the Drizzle or Kysely one on it",
        );
      session = new Session(handle);
      this.#checkFile(session);
      this.#checkCopy(tx as object);
      this.#sessions.set(tx as object, session);
    }
    if (!session.inTransaction) {
      const fix =
        'begin one with db.exec("begin immediate"); db.transaction() ends before an async call in it is done';
      throw refusedHandle("a handle without a transaction", fix);
    }
    // Checked each time, because it can change at any time.
    if (session.get(SYNCHRONOUS)?.[0] === 0) {
      throw refusedHandle("synchronous = off", "use normal or full: with off, acknowledged jobs can be lost");
    }
    return session;
  }

  /** A job in another file would never be found. */
  #checkFile(session: Session): void {
    const file = session.get(DATABASE_FILE)?.[0] as string;
    const theirs = statSync(file, { throwIfNoEntry: false });
    const ours = statSync(this.#connection.path, { throwIfNoEntry: false });
    if (theirs && ours && theirs.ino === ours.ino && theirs.dev === ours.dev) return;
    throw refusedHandle(`a handle on ${file || "no file"}`, `open it on ${this.#connection.path}`);
  }

  /** Two copies would write into the file at the same time, and one would drop the locks of the other. */
  #checkCopy(tx: object): void {
    const { binding } = this.#connection;
    if (isSameCopy(binding, tx)) return;
    const own = binding.name === "node:sqlite" ? "node:sqlite" : "a better-sqlite3 of its own";
    const fix = `the store uses ${own}, and two copies damage the file: open the store with your handle, as openSqliteStore({ database })`;
    throw refusedHandle("a handle of another copy of SQLite", fix);
  }
}

function writeEvents(session: Session, { events }: HintBatch, now: Instant): void {
  if (events) session.run(ADD_EVENT, [now, eventRow(events)]);
}

function ignore(): void {}
