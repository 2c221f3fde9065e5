import type { JobRow } from "../../core/job/job.ts";
import type { System } from "../../ports/system.ts";

const KEPT_FOR = 30_000;
const MOST = 10_000;

interface StoredFetch {
  readonly rows: Promise<JobRow[]>;
  readonly until: number;
}

/**
 * Fetches by the key that their worker chose. A worker whose reply was lost repeats the fetch and gets the same jobs, which
 * would stall otherwise. They are in memory only, so this is no guarantee.
 */
export class RepeatedFetches {
  readonly #system: Pick<System, "monotonic">;
  readonly #fetches = new Map<string, StoredFetch>();

  constructor(system: Pick<System, "monotonic">) {
    this.#system = system;
  }

  find(key: string): Promise<JobRow[]> | undefined {
    const stored = this.#fetches.get(key);
    return stored && stored.until > this.#system.monotonic() ? stored.rows : undefined;
  }

  keep(key: string, rows: Promise<JobRow[]>): void {
    const now = this.#system.monotonic();
    for (const [oldest, { until }] of this.#fetches) {
      if (until > now && this.#fetches.size < MOST) break;
      this.#fetches.delete(oldest);
    }
    this.#fetches.set(key, { rows, until: now + KEPT_FOR });
    // A fetch that failed has nothing to repeat.
    rows.catch(() => this.#fetches.delete(key));
  }
}
