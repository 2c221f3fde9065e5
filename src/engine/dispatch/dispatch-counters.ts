import { LATENESS_BOUNDS } from "../statistics/counters.ts";

/** What the dispatcher of this process did since it started. */
export interface DispatchCounts {
  /** Delivered and removed. */
  readonly sent: number;
  readonly failed: number;
  /** Given up after the last try. */
  readonly dead: number;
  /** Put off by their destination, without a try. */
  readonly postponed: number;
  /** Delivered, and then found revoked, replaced or removed by somebody else. */
  readonly gone: number;
  /** Leases that were lost during a delivery, or before it: these timeouts are sent again. */
  readonly lapsed: number;
  /** How late they were sent: counts per bound of LATENESS_BOUNDS, and the sum in milliseconds. */
  readonly lateness: { readonly counts: readonly number[]; readonly sum: number; readonly total: number };
}

type Counted = Exclude<keyof DispatchCounts, "lateness">;

export class DispatchCounters {
  readonly #counts: Record<Counted, number> = {
    sent: 0,
    failed: 0,
    dead: 0,
    postponed: 0,
    gone: 0,
    lapsed: 0,
  };
  readonly #lateness: number[] = new Array(LATENESS_BOUNDS.length + 1).fill(0);
  #sum = 0;
  #total = 0;

  add(name: Counted): void {
    this.#counts[name] += 1;
  }

  /** How many milliseconds after its instant a timeout was sent. */
  fired(lateness: number): void {
    const found = LATENESS_BOUNDS.findIndex((bound) => lateness <= bound);
    const bucket = found === -1 ? LATENESS_BOUNDS.length : found;
    this.#lateness[bucket] = (this.#lateness[bucket] ?? 0) + 1;
    this.#sum += lateness;
    this.#total += 1;
  }

  snapshot(): DispatchCounts {
    return {
      ...this.#counts,
      lateness: { counts: [...this.#lateness], sum: this.#sum, total: this.#total },
    };
  }
}
