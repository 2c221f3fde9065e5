import Database from "better-sqlite3";
import { CurfewError } from "../../core/errors.ts";
import { backoff } from "../../core/pace.ts";
import { rest, type System } from "../../ports/system.ts";
import { type BatchSize, batchesOf } from "../sql/batches.ts";
import { Checkpointer } from "./checkpointer.ts";
import { DiskSync } from "./disk-sync.ts";
import { type DatabaseHandle, Session } from "./session.ts";
import { explained, failed, isBusy } from "./sqlite-errors.ts";
import { BEGIN, COMMIT, LOG_SIZE, ROLLBACK } from "./statements.ts";

/**
 * What one transaction takes: enough to share its cost, little enough that the event loop is back within milliseconds.
 * Writing a million characters takes about 5 ms, and claiming a row writes all of it again.
 */
export const BATCH: BatchSize = { items: 256, text: 1_000_000 };

/** Pages of the log after which a checkpoint is done in this thread after all, should the other one not keep up: 80 MB. */
const MOST_BEHIND = 20_000;
const SQLITE_DEFAULT = 1_000;

/** How long somebody else may keep the file from us before a call fails. */
const PATIENCE = 5_000;
const BACKOFF = { first: 1, factor: 2, most: 20 };

/**
 * The one connection of a store. It never waits in SQLite, neither for other programs nor for the disk, because that
 * would stop the event loop: what finds the file busy is tried again later, and what must last waits for a sync that
 * another thread does.
 *
 * A commit survives the end of the process, however it ends. A power cut takes back the last commits that nobody has
 * waited for, and no others: the log is synced as a whole, and read back only as far as it is complete.
 */
export class Connection {
  readonly path: string;
  readonly #database: InstanceType<typeof Database>;
  readonly #session: Session;
  readonly #system: System;
  #disk: DiskSync | undefined;
  #checkpointer: Checkpointer | undefined;
  #isClosed = false;

  constructor(path: string, system: System) {
    this.path = path;
    this.#system = system;
    try {
      this.#database = new Database(path, { timeout: 0 });
    } catch (error) {
      throw explained(error, path);
    }
    this.#session = new Session(this.#database as unknown as DatabaseHandle);
  }

  assertOpen(): void {
    if (this.#isClosed) throw new CurfewError("closed", "The SQLite store is closed");
  }

  /** Chooses how SQLite writes, and refuses a file where it cannot. */
  configure(): void {
    const mode = this.#database.pragma("journal_mode = wal", { simple: true });
    if (mode !== "wal") {
      const says = `cannot have a write-ahead log (its journal is "${mode}"): put it on a local disk`;
      throw failed(this.path, says);
    }
    // Commits do not wait for the disk; checkpoints do, or a power cut could damage the file.
    this.#database.pragma("synchronous = normal");
    this.#checkpointEvery(MOST_BEHIND);
    this.#checkpointer = new Checkpointer({
      path: this.path,
      waiting: () => this.#logBehind(),
      onFailure: () => this.#checkpointEvery(SQLITE_DEFAULT),
    });
    // On macOS a plain sync leaves data in the drive's own cache.
    this.#database.pragma("checkpoint_fullfsync = on");
  }

  /** Lets SQLite itself do a checkpoint in the commit that makes the log so many pages long. */
  #checkpointEvery(pages: number): void {
    if (!this.#isClosed) this.#database.pragma(`wal_autocheckpoint = ${pages}`);
  }

  #logBehind(): number {
    const [, all, done] = this.#session.get(LOG_SIZE) as [number, number, number];
    return all - done;
  }

  /** From the first use on nobody else gets at the file; that use fails if somebody has it open. */
  claimAlone(): void {
    this.#database.pragma("locking_mode = exclusive");
  }

  /** Resolves when everything committed before this call is on the disk. */
  async synced(): Promise<void> {
    this.assertOpen();
    this.#disk ??= new DiskSync(this.path);
    return this.#disk.synced();
  }

  /** Runs a script outside of what is prepared: settings and migrations. */
  execute(script: string): void {
    this.#database.exec(script);
  }

  /** Reads; a single statement sees one state of the file. */
  read<Result>(work: (session: Session) => Result): Promise<Result> {
    return this.patiently(() => work(this.#session));
  }

  /** All of the work or nothing of it. It happens at once and may be repeated; to know that it lasts, await `synced`. */
  write<Result>(work: (session: Session) => Result, committed?: () => void): Promise<Result> {
    return this.patiently(() => {
      const result = this.#transaction(work);
      committed?.();
      return result;
    });
  }

  /** A write that nobody waits for: where the file is busy or fails, it is left to the next one. */
  writeIfFree(work: (session: Session) => void): void {
    try {
      this.#transaction(work);
    } catch {
      // The next call that matters says what is wrong.
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
   * Works through items a transaction's worth at a time; between two of them others have their turn. Work that finds
   * more to do than it thought may answer for the first of its items only.
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

  /** Tries until the file is free, without ever blocking the event loop. */
  async patiently<Result>(attempt: () => Result): Promise<Result> {
    const giveUpAt = this.#system.monotonic() + PATIENCE;
    for (let tries = 1; ; tries++) {
      this.assertOpen();
      try {
        const result = attempt();
        // Whoever calls again and again would otherwise keep all others in this process waiting.
        await new Promise<void>((resolve) => this.#system.soon(resolve));
        return result;
      } catch (error) {
        if (!isBusy(error)) throw explained(error, this.path);
        if (this.#system.monotonic() >= giveUpAt) throw this.#keptLocked(error);
      }
      // A random part, so that processes that were refused together do not come back together.
      await rest(this.#system, backoff(tries, BACKOFF) * (0.5 + this.#system.random()));
    }
  }

  #keptLocked(cause: unknown): CurfewError {
    const says = `was kept locked by another program for ${PATIENCE / 1_000} seconds: end its transaction`;
    return failed(this.path, `${says}, or find it with \`fuser\``, cause);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#disk?.close();
    await this.#checkpointer?.close();
    this.#database.close();
  }
}
