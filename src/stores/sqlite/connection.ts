import { CurfewError } from "../../core/errors.ts";
import { backoff } from "../../core/pace.ts";
import { rest, type System } from "../../ports/system.ts";
import { type BatchSize, batchesOf } from "../sql/batches.ts";
import type { Binding, Handle, SqliteFile } from "./binding.ts";
import { Checkpointer } from "./checkpointer.ts";
import { DiskSync } from "./disk-sync.ts";
import { fileIdOf } from "./file-guard.ts";
import { Session } from "./session.ts";
import { explained, failed, isBusy } from "./sqlite-errors.ts";
import {
  BEGIN,
  COMMIT,
  JOURNAL_DELETE,
  JOURNAL_WAL,
  LOG_SIZE,
  ROLLBACK,
  SNAPSHOT,
  TELLS_LOG_SIZE,
} from "./statements.ts";
import { WriteQueue } from "./write-queue.ts";

/**
 * The most that one transaction takes: enough to share its cost, and little enough that the event loop runs again
 * within milliseconds. Writing a million characters takes about 5 ms, and claiming a row writes all of it again.
 */
export const BATCH: BatchSize = { items: 512, text: 1_000_000 };

/**
 * Pages of the log (80 MB) after which this thread runs a checkpoint itself, because the other thread does not keep
 * up.
 */
const MOST_BEHIND = 20_000;
const SQLITE_DEFAULT = 1_000;

/** How much of the file SQLite keeps in memory, in kB. Jobs that wait fill its default of 2,000, and a commit then reads pages again. */
const CACHE = 16_000;

/** How long a call waits for the lock of another connection before it fails, in milliseconds. */
const LOCK_WAIT = 5_000;
const BACKOFF = { first: 1, factor: 2, most: 20 };

/**
 * The one connection of a store. It never waits in SQLite, neither for other programs nor for the disk, because that
 * would stop the event loop. Work that finds the file busy is tried again later. Work that must be durable waits for
 * a sync in another thread.
 *
 * A commit survives every end of the process. A power cut undoes only commits that no caller has waited for: the log
 * is synced as a whole, and read back only as far as it is complete.
 */
export class Connection {
  readonly path: string;
  readonly binding: Binding;
  readonly #database: Handle;
  readonly #session: Session;
  readonly #fileId: string;
  readonly #system: System;
  #disk: DiskSync | undefined;
  #checkpointer: Checkpointer | undefined;
  readonly #writes: WriteQueue;
  #isClosed = false;

  constructor({ path, binding }: SqliteFile, system: System) {
    this.path = path;
    this.binding = binding;
    this.#system = system;
    // Before the file is opened: if a restore replaces it meanwhile, the file of that name is another one.
    const fileId = fileIdOf(path);
    try {
      this.#database = binding.open(path);
    } catch (error) {
      throw explained(error, path);
    }
    this.#fileId = fileId ?? fileIdOf(path) ?? "";
    this.#session = new Session(this.#database);
    this.#writes = new WriteQueue({
      system,
      transact: (work, from) => this.#untilFree(() => this.#transaction(work), from),
    });
  }

  assertOpen(): void {
    if (this.#isClosed) throw new CurfewError("closed", "The SQLite store is closed");
  }

  /** Chooses how SQLite writes. Refuses a file that cannot have a write-ahead log. */
  configure(): void {
    const mode = this.#session.get(JOURNAL_WAL)?.[0];
    if (mode !== "wal") {
      const says = `cannot have a write-ahead log (its journal mode is "${mode}"): put it on a local disk`;
      throw failed(this.path, says);
    }
    // Commits do not wait for the disk. Checkpoints do, or a power cut could damage the file.
    this.#database.exec("pragma synchronous = normal");
    // On macOS a plain sync leaves data in the cache of the drive.
    this.#database.exec("pragma checkpoint_fullfsync = on");
    this.#database.exec(`pragma cache_size = ${-CACHE}`);
    // A copy of SQLite that another thread cannot find, or that cannot tell how long its log is, runs checkpoints in
    // commits, as is SQLite's default.
    if (!this.binding.isShared || !this.#session.get(TELLS_LOG_SIZE)?.[0]) return;
    this.#checkpointEvery(MOST_BEHIND);
    this.#checkpointer = new Checkpointer({
      path: this.path,
      binding: this.binding.name,
      waiting: () => this.#logBehind(),
      onFailure: () => this.#checkpointEvery(SQLITE_DEFAULT),
    });
  }

  /**
   * Keeps what SQLite needs to undo a statement in memory: it would write it to a temporary file from 64 kB on. A
   * transaction bounds it. Not before migrations: an index of a large table is sorted in temporary files.
   */
  undoInMemory(): void {
    this.#database.exec("pragma temp_store = memory");
  }

  /** Lets SQLite run a checkpoint in the commit that makes the log this long. */
  #checkpointEvery(pages: number): void {
    if (!this.#isClosed) this.#database.exec(`pragma wal_autocheckpoint = ${pages}`);
  }

  #logBehind(): number {
    const [, all, done] = this.#session.get(LOG_SIZE) as [number, number, number];
    return all - done;
  }

  /** Takes the file exclusively at its first use. That use fails if another connection has it open. */
  claimAlone(): void {
    this.#database.exec("pragma locking_mode = exclusive");
  }

  /** Takes the file exclusively until this connection closes, and brings its whole log into it. Call it first. */
  takeAlone(): void {
    this.claimAlone();
    try {
      this.#session.get(JOURNAL_DELETE);
      this.#database.exec("begin exclusive");
    } catch (error) {
      if (!isBusy(error)) throw explained(error, this.path);
      throw failed(this.path, "is in use: stop every process that has it open, and try again", error);
    }
  }

  /** Copies the file as it is now. Nobody waits for it. */
  async copyTo(path: string): Promise<void> {
    // SQLite would begin anew after each commit of another connection if this one had no transaction.
    await this.whenFree(() => {
      if (!this.#session.inTransaction) this.#database.exec("begin");
      this.#session.get(SNAPSHOT);
    });
    try {
      await this.#database.copyTo(path);
    } catch (error) {
      throw explained(error, this.path);
    }
  }

  /** Resolves when everything committed before this call is on disk. */
  async synced(): Promise<void> {
    this.assertOpen();
    this.#disk ??= new DiskSync(this.path, this.#fileId);
    return this.#disk.synced();
  }

  /** Runs a script of settings or migrations, unprepared. */
  execute(script: string): void {
    this.#database.exec(script);
  }

  /** A single statement sees one state of the file. */
  read<Result>(work: (session: Session) => Result): Promise<Result> {
    return this.whenFree(() => work(this.#session));
  }

  /**
   * Writes if `isNeeded` finds a reason, which it looks for without the lock. Undefined if it finds none, and the event loop
   * has run then.
   */
  async writeIf<Result>(
    isNeeded: (session: Session) => boolean,
    work: (session: Session) => Result,
  ): Promise<Result | undefined> {
    this.assertOpen();
    const isWritten = await this.#untilFree(() => isNeeded(this.#session), this.#system.monotonic());
    if (isWritten) return this.write(work);
    await this.#turn();
    return undefined;
  }

  /**
   * All or nothing. The work runs synchronously and may be repeated, with other work in the same transaction. Await `synced` to
   * know that it is durable.
   */
  async write<Result>(
    work: (session: Session) => Result,
    committed?: (result: Result) => void,
  ): Promise<Result> {
    this.assertOpen();
    return this.#writes.add(work, committed);
  }

  /** A write that nobody waits for. If the file is busy or the write fails, it is skipped. */
  writeIfFree(work: (session: Session) => void): void {
    try {
      this.#disk?.guard.check();
      this.#transaction(work);
    } catch {
      // The next call that matters reports the error.
    }
  }

  #transaction<Result>(work: (session: Session) => Result): Result {
    const session = this.#session;
    session.run(BEGIN);
    try {
      const result = work(session);
      session.run(COMMIT);
      this.#checkpointer?.committed();
      return result;
    } catch (error) {
      if (session.inTransaction) session.run(ROLLBACK);
      throw error;
    }
  }

  /**
   * Works through items one transaction's worth at a time; other work may run in between. `work` may answer for fewer
   * items than it got, but at least one.
   */
  async inBatches<Item, Answer>(
    items: readonly Item[],
    textOf: (item: Item) => number,
    work: (batch: readonly Item[]) => Promise<Answer[]>,
  ): Promise<Answer[]> {
    const answers: Answer[] = [];
    for (const batch of batchesOf(items, BATCH, textOf)) {
      for (let rest = batch; rest.length > 0; ) {
        const answered = await work(rest);
        for (const answer of answered) answers.push(answer);
        rest = rest.slice(answered.length);
      }
    }
    return answers;
  }

  /**
   * Works through items like `inBatches`, but asks for all transactions at once: what fits into one turn shares a
   * transaction, and the next call can write while this one waits for the disk. `work` answers for all items it gets.
   */
  async allBatches<Item, Answer>(
    items: readonly Item[],
    textOf: (item: Item) => number,
    work: (batch: readonly Item[]) => Promise<Answer[]>,
  ): Promise<Answer[]> {
    const written = await Promise.allSettled(batchesOf(items, BATCH, textOf).map(work));
    return written.flatMap((one) => {
      if (one.status === "rejected") throw one.reason;
      return one.value;
    });
  }

  /** Tries until the file is free, without blocking the event loop. */
  async whenFree<Result>(attempt: () => Result): Promise<Result> {
    this.assertOpen();
    const result = await this.#untilFree(attempt, this.#system.monotonic());
    // Yield, or a caller in a tight loop would block everything else in this process.
    await this.#turn();
    return result;
  }

  #turn(): Promise<void> {
    return new Promise((resolve) => this.#system.soon(resolve));
  }

  /** Waits for the file, counted from `from`. What was asked for before a close is tried once more. */
  async #untilFree<Result>(attempt: () => Result, from: number): Promise<Result> {
    const giveUpAt = from + LOCK_WAIT;
    for (let tries = 1; ; tries++) {
      if (tries > 1) this.assertOpen();
      if (this.#disk) this.#disk.guard.look(this.#system.monotonic());
      else this.#assertSameFile();
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error)) throw explained(error, this.path);
        if (this.#system.monotonic() >= giveUpAt) throw this.#lockedTooLong(error);
      }
      // A random part, so that processes that were refused together do not retry together.
      await rest(this.#system, backoff(tries, BACKOFF) * (0.5 + this.#system.random()));
    }
  }

  /** While it is being opened, it may wait for a restore, and have the old file open afterwards. */
  #assertSameFile(): void {
    if (this.#fileId === fileIdOf(this.path)) return;
    throw failed(this.path, "was replaced or deleted while it was being opened: open it again");
  }

  #lockedTooLong(cause: unknown): CurfewError {
    const says = `was locked by another program for ${LOCK_WAIT / 1_000} seconds: end its transaction`;
    return failed(this.path, `${says}, or find it with \`fuser\``, cause);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#writes.idle();
    await this.#disk?.end();
    await this.#checkpointer?.close();
    this.#disk?.guard.voidLostLog();
    this.#database.close();
    this.#disk?.close();
  }
}
