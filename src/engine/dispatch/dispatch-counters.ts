import { LATENESS_BOUNDS } from "../statistics/counters.ts";
import { Histogram, type HistogramSnapshot } from "../statistics/lateness-histogram.ts";

/** Counts of this process since it started. */
export interface DispatchCounts {
  /** Delivered and removed. */
  readonly sent: number;
  readonly failed: number;
  /** Given up after the last try. */
  readonly dead: number;
  /** Postponed by their destination. */
  readonly postponed: number;
  /** Delivered, and then found revoked, replaced or removed by another process. */
  readonly gone: number;
  /** Leases that were lost before or during a delivery: these timeouts are sent again. */
  readonly lapsed: number;
  /** Delay of the sends: counts per bound of LATENESS_BOUNDS, and the sum in milliseconds. */
  readonly lateness: HistogramSnapshot;
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
  readonly #lateness = new Histogram(LATENESS_BOUNDS);

  add(name: Counted): void {
    this.#counts[name] += 1;
  }

  /** Adds the milliseconds between a timeout's instant and its delivery. */
  fired(lateness: number): void {
    this.#lateness.add(lateness);
  }

  snapshot(): DispatchCounts {
    return { ...this.#counts, lateness: this.#lateness.snapshot() };
  }
}
