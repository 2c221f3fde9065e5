import type { JobRow } from "../../core/job/job.ts";
import { takesVersion } from "../../core/registry/job-version.ts";
import type { System, Timer } from "../../ports/system.ts";
import type { RemoteFetch } from "./remote-fetch.ts";

/** How long a job waits for a worker of its version. Its claim lasts for ten seconds. */
const SHELVED_FOR = 3_000;
const MOST_SHELVED = 200;

/**
 * Claimed jobs of versions that the worker which asked does not run. They wait here for a worker that does: if they went back
 * at once, the workers of a version that asks more often would claim them again and again, and starve the other one.
 */
export class VersionShelf {
  readonly #system: System;
  readonly #release: (row: JobRow) => void;
  readonly #shelved = new Map<JobRow, Timer>();

  constructor(system: System, release: (row: JobRow) => void) {
    this.#system = system;
    this.#release = release;
  }

  /** Returns false if there is no room. */
  put(row: JobRow): boolean {
    if (this.#shelved.size >= MOST_SHELVED) return false;
    this.#shelved.set(
      row,
      this.#system.after(SHELVED_FOR, () => this.#giveUp(row)),
    );
    return true;
  }

  /** Takes jobs of a queue that the worker runs. */
  take(queue: string, versions: RemoteFetch["versions"], most: number): JobRow[] {
    if (this.#shelved.size === 0) return [];
    const taken: JobRow[] = [];
    for (const [row, timer] of this.#shelved) {
      if (taken.length === most) break;
      if (row.queue !== queue || !takesVersion(versions?.get(row.type), row)) continue;
      timer.cancel();
      this.#shelved.delete(row);
      taken.push(row);
    }
    return taken;
  }

  /** Releases all of them. */
  close(): void {
    for (const [row, timer] of [...this.#shelved]) {
      timer.cancel();
      this.#giveUp(row);
    }
  }

  #giveUp(row: JobRow): void {
    if (this.#shelved.delete(row)) this.#release(row);
  }
}
