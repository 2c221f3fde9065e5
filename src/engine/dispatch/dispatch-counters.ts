import { LATENESS_BOUNDS } from "../statistics/counters.ts";
import { Histogram, type HistogramSnapshot } from "../statistics/lateness-histogram.ts";

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

  /** How many milliseconds after its instant a timeout was sent. */
  fired(lateness: number): void {
    this.#lateness.add(lateness);
  }

  snapshot(): DispatchCounts {
    return { ...this.#counts, lateness: this.#lateness.snapshot() };
  }
}
