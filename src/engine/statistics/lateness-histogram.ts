export interface HistogramSnapshot {
  /** Counts per bound, not cumulative; the last one counts values above all bounds. */
  readonly counts: readonly number[];
  /** In milliseconds. */
  readonly sum: number;
  readonly total: number;
}

/**
 * Counts of durations by upper bounds in milliseconds. `LogHistogram` of core cannot do this: Prometheus publishes round
 * bounds (50, 100, 200, 500, 1,000 ms), and its buckets end at 51, 103, 207, 511 and 1,023 ms.
 */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #total = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  add(value: number): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket += 1;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += value;
    this.#total += 1;
  }

  snapshot(): HistogramSnapshot {
    return { counts: [...this.#counts], sum: this.#sum, total: this.#total };
  }
}
