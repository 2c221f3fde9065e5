import type { JobRow } from "../../core/job/job.ts";
import type { System } from "../../ports/system.ts";

const KEPT_FOR = 30_000;
const MOST = 10_000;

interface Kept {
  readonly rows: Promise<JobRow[]>;
  readonly until: number;
}

/**
 * Fetches by the name that their worker gave them. One whose reply was lost on the way is asked again and gets the same
 * jobs, which would otherwise lie idle until they stall. It is kept in memory only: a help, not a promise.
 */
export class Repeats {
  readonly #system: Pick<System, "monotonic">;
  readonly #kept = new Map<string, Kept>();

  constructor(system: Pick<System, "monotonic">) {
    this.#system = system;
  }

  find(key: string): Promise<JobRow[]> | undefined {
    const kept = this.#kept.get(key);
    return kept && kept.until > this.#system.monotonic() ? kept.rows : undefined;
  }

  keep(key: string, rows: Promise<JobRow[]>): void {
    const now = this.#system.monotonic();
    for (const [oldest, { until }] of this.#kept) {
      if (until > now && this.#kept.size < MOST) break;
      this.#kept.delete(oldest);
    }
    this.#kept.set(key, { rows, until: now + KEPT_FOR });
    // A fetch that failed has nothing to repeat.
    rows.catch(() => this.#kept.delete(key));
  }
}
