import { closeSync, fdatasync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { FileGuard } from "./file-guard.ts";
import { failed } from "./sqlite-errors.ts";

/**
 * Syncs commits to the disk without stopping the event loop. With `synchronous = full`, SQLite would wait for the
 * disk inside each commit. That wait is only a sync of the log after the commit, so another thread does it here, once
 * for all commits that wait.
 */
export class DiskSync {
  readonly #path: string;
  readonly #log: number;
  readonly guard: FileGuard;
  /** The running sync, or the last one. */
  #current: Promise<void> = Promise.resolve();
  /** The sync that starts when the current one has ended. */
  #next: Promise<void> | undefined;

  /** Opens the log next to the file. A connection that has read anything has created it. */
  constructor(path: string, fileId: string) {
    this.#path = path;
    this.#log = openSync(`${path}-wal`, "r+");
    this.guard = new FileGuard(path, this.#log, fileId);
    syncFolder(dirname(path));
  }

  /** Resolves when everything committed before this call is on disk. */
  synced(): Promise<void> {
    // The running sync may have started before the commit that this call waits for.
    this.#next ??= this.#current.then(() => {
      this.#current = this.#next as Promise<void>;
      this.#next = undefined;
      return this.#sync();
    });
    return this.#next;
  }

  /** Waits for the last sync. */
  async end(): Promise<void> {
    await (this.#next ?? this.#current).catch(() => {});
  }

  close(): void {
    closeSync(this.#log);
  }

  /**
   * A failure is passed to all later calls, until the file is opened again: the system drops what it could not write,
   * and a later sync would report success for it.
   */
  #sync(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.#log, (error) => {
        if (error) return reject(failed(this.#path, `could not be synced to disk: ${error.message}`, error));
        try {
          // A sync of a log that is no longer the file's own keeps nothing.
          this.guard.check();
          resolve();
        } catch (lost) {
          reject(lost);
        }
      });
    });
  }
}

/** The log's name must be durable too. SQLite ensures that only if it syncs the log itself. */
export function syncFolder(path: string): void {
  // Windows cannot open folders and needs no such sync.
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}
