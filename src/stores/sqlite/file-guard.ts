import { fstatSync, ftruncateSync, type Stats, statSync } from "node:fs";
import type { CurfewError } from "../../core/errors.ts";
import { ProcessFiles } from "./process-files.ts";
import { failed } from "./sqlite-errors.ts";

/** How long a loss may go unnoticed while nothing is acknowledged, in milliseconds. */
const LOOK_EVERY = 1_000;

const NOTHING_MORE = "nothing more is acknowledged";
const OWN_DATABASE =
  "close it, or pass it as `openSqliteStore({ database })`, so that both use one copy; then open the store again";

/**
 * Notices that the file which SQLite has open is no longer the one with its name. SQLite goes on with the old one, and
 * what it commits is gone when the process ends. After a loss nothing works until the file is opened again.
 */
export class FileGuard {
  readonly #path: string;
  readonly #log: number;
  readonly #fileId: string;
  readonly #logId: string;
  readonly #process: ProcessFiles;
  #lookAt = 0;
  #lost: CurfewError | undefined;

  /** `log` is the open log, and `fileId` the file that was opened. */
  constructor(path: string, log: number, fileId: string) {
    this.#path = path;
    this.#log = log;
    this.#fileId = fileId;
    this.#logId = idOf(fstatSync(log));
    this.#process = new ProcessFiles(path);
  }

  /** Throws if the file is lost. Reads two inodes, which takes 2 µs. Call it before an acknowledgement. */
  check(): void {
    if (this.#lost) throw this.#lost;
    const says = this.#fileProblem() ?? this.#logProblem();
    if (says) this.#lose(says);
  }

  /** The check at rest: at most once a second. It also notices a copy of SQLite that has done no harm yet. */
  look(now: number): void {
    if (this.#lost) throw this.#lost;
    if (now < this.#lookAt) return;
    this.#lookAt = now + LOOK_EVERY;
    this.check();
    const problem = this.#process.look();
    if (problem === "copies") {
      this.#lose(
        `is also open with another copy of SQLite in this process, whose locks do not keep the two apart: ${NOTHING_MORE}; ${OWN_DATABASE}`,
      );
    }
    if (problem === "dropped") {
      this.#lose(
        `was opened and closed again by another part of this process, and with that this store lost its locks: ${NOTHING_MORE}; ${OWN_DATABASE}`,
      );
    }
  }

  /**
   * Keeps a connection that is being closed from bringing its log into the file, if others have begun a new log: it
   * would overwrite what they wrote. Nothing in the old log was acknowledged since it was lost.
   */
  voidLostLog(): void {
    const there = statSync(`${this.#path}-wal`, { throwIfNoEntry: false });
    if (there && idOf(there) !== this.#logId && fstatSync(this.#log).nlink === 0) ftruncateSync(this.#log);
  }

  #fileProblem(): string | undefined {
    const found = statSync(this.#path, { throwIfNoEntry: false });
    if (found && idOf(found) === this.#fileId) return undefined;
    const what = found ? "was replaced by another file" : "was deleted or moved";
    return `${what} while it was open: ${NOTHING_MORE}; stop this process, put the right file there (restoreSqlite does), and start again`;
  }

  #logProblem(): string | undefined {
    const found = statSync(`${this.#path}-wal`, { throwIfNoEntry: false });
    if (found && idOf(found) === this.#logId) return undefined;
    return `lost its log (-wal) while it was open: ${NOTHING_MORE}; if a part of this process opens the file with another copy of SQLite, ${OWN_DATABASE}`;
  }

  #lose(says: string): never {
    this.#lost = failed(this.#path, says);
    throw this.#lost;
  }
}

/** What tells a file from another one of the same name; undefined if there is none. */
export function fileIdOf(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && idOf(found);
}

function idOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}
