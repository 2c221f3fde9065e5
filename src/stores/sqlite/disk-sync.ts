import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { failed } from "./sqlite-errors.ts";

/**
 * Brings commits to the disk without stopping the event loop. SQLite itself would wait for the disk inside of each
 * commit (`synchronous = full`); that wait is nothing but a sync of the log after the commit, so it is done here, by
 * another thread, once for all commits that wait for it.
 */
export class DiskSync {
  readonly #path: string;
  readonly #log: number;
  /** The sync under way, or the last one. */
  #current: Promise<void> = Promise.resolve();
  /** The sync that begins when the current one has ended. */
  #next: Promise<void> | undefined;

  /** Opens the log beside the file, which a connection that has read anything has created. */
  constructor(path: string) {
    this.#path = path;
    this.#log = openSync(`${path}-wal`, "r+");
    syncFolder(dirname(path));
  }

  /** Resolves when everything committed before this call is on the disk. */
  synced(): Promise<void> {
    // The one under way may have begun before the commit that is waited for now.
    this.#next ??= this.#current.then(() => {
      this.#current = this.#next as Promise<void>;
      this.#next = undefined;
      return this.#sync();
    });
    return this.#next;
  }

  async close(): Promise<void> {
    await (this.#next ?? this.#current).catch(() => {});
    closeSync(this.#log);
  }

  /**
   * A failure is passed on to all that come after, until the file is opened again: the system forgets what it could
   * not write, and a later sync would report success for it.
   */
  #sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.#log, (error) => {
        if (error) reject(failed(this.#path, `could not be brought to the disk: ${error.message}`, error));
        else resolve();
      });
    });
  }
}

/** The log's name must last too; SQLite sees to that only when it syncs the log itself. */
function syncFolder(path: string): void {
  // Windows opens no folders, and needs no such sync.
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}
