/** Stored durations: their sum, and for each bucket in use its index and count, one after the other. */
export interface HistogramData {
  readonly sum: number;
  readonly buckets: readonly number[];
}

/** Each value below this has its own bucket. */
const EXACT = 32;
const EXACT_BITS = 5;
/** Buckets per doubling. */
const PARTS = 16;
const PART_BITS = 4;
/** Values of more bits (139 years) are counted in the last bucket. */
const MOST_BITS = 42;
export const BUCKETS = EXACT + (MOST_BITS - EXACT_BITS) * PARTS;
/** The largest value that 32-bit integer arithmetic can shift. */
const SHIFTABLE = 2 ** 31;
const SCALE_BITS = 20;
const SCALE = 2 ** SCALE_BITS;

/** The largest relative error of what a histogram returns. */
export const RESOLUTION = 1 / (2 * PARTS);

/** The bucket of a duration in milliseconds. It uses no loop and no logarithm: this runs for every job. */
export function bucketOf(value: number): number {
  if (!(value >= EXACT)) return value > 0 ? Math.floor(value) : 0;
  if (value < SHIFTABLE) {
    const bits = 31 - Math.clz32(value);
    return EXACT + (bits - EXACT_BITS) * PARTS + ((value >>> (bits - PART_BITS)) & (PARTS - 1));
  }
  if (value >= 2 ** MOST_BITS) return BUCKETS - 1;
  return bucketOf(value / SCALE) + SCALE_BITS * PARTS;
}

/** The smallest whole value of a bucket. */
export function lowerOf(bucket: number): number {
  if (bucket < EXACT) return bucket;
  const at = bucket - EXACT;
  return (PARTS + (at % PARTS)) * 2 ** (EXACT_BITS - PART_BITS + Math.floor(at / PARTS));
}

/** The largest whole value of a bucket. */
export function upperOf(bucket: number): number {
  return bucket < EXACT ? bucket : lowerOf(bucket + 1) - 1;
}

/** The value that stands for all values of a bucket, with an error of at most RESOLUTION. */
function middleOf(bucket: number): number {
  return Math.round((lowerOf(bucket) + upperOf(bucket)) / 2);
}

/** How many values lie above a limit. Only the values in the limit's bucket are uncertain. */
export interface Above {
  readonly atLeast: number;
  readonly atMost: number;
}

/**
 * Counts durations in buckets that grow with them, 16 per doubling. Its size is bounded, and two histograms can be
 * added without loss.
 */
export class LogHistogram {
  /** Ends with the last bucket in use and has no holes: they would make counting slower. */
  readonly #counts: number[] = [];
  #sum = 0;
  #total = 0;

  static of(data: HistogramData | undefined): LogHistogram {
    const histogram = new LogHistogram();
    if (data) histogram.merge(data);
    return histogram;
  }

  get total(): number {
    return this.#total;
  }

  get sum(): number {
    return this.#sum;
  }

  add(value: number): void {
    const bucket = bucketOf(value);
    const counts = this.#counts;
    if (bucket < counts.length) (counts[bucket] as number)++;
    else this.#grow(bucket, 1);
    this.#sum += value;
    this.#total += 1;
  }

  #grow(bucket: number, count: number): void {
    while (this.#counts.length < bucket) this.#counts.push(0);
    this.#counts.push(count);
  }

  /** Adds stored counts. Skips what is not a bucket or a count, for example of a newer version. */
  merge({ sum, buckets }: HistogramData): void {
    for (let at = 0; at + 1 < buckets.length; at += 2) {
      const bucket = buckets[at] as number;
      const count = buckets[at + 1] as number;
      if (!Number.isInteger(bucket) || bucket < 0 || bucket >= BUCKETS || !(count > 0)) continue;
      if (bucket < this.#counts.length) (this.#counts[bucket] as number) += count;
      else this.#grow(bucket, count);
      this.#total += count;
    }
    this.#sum += sum;
  }

  /** What was counted since `earlier`; undefined if nothing was. */
  since(earlier: HistogramMark | undefined): HistogramData | undefined {
    if (this.#total === (earlier?.total ?? 0)) return undefined;
    const buckets: number[] = [];
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      const count = (this.#counts[bucket] as number) - (earlier?.counts[bucket] ?? 0);
      if (count > 0) buckets.push(bucket, count);
    }
    return { sum: this.#sum - (earlier?.sum ?? 0), buckets };
  }

  mark(): HistogramMark {
    return { counts: this.#counts.slice(), sum: this.#sum, total: this.#total };
  }

  data(): HistogramData | undefined {
    return this.since(undefined);
  }

  /**
   * The value that this share of all values does not exceed, with an error of at most RESOLUTION; null if there are
   * none.
   */
  percentile(share: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.min(this.#total, Math.max(1, Math.ceil(share * this.#total)));
    let seen = 0;
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      seen += this.#counts[bucket] as number;
      if (seen >= rank) return middleOf(bucket);
    }
    return middleOf(this.#counts.length - 1);
  }

  /**
   * The largest value of the bucket of this share, so never less than the exact one. `above` further values are longer
   * than all that were counted; null if the share ends among them, or if there are no values.
   */
  upperPercentile(share: number, above = 0): number | null {
    const total = this.#total + above;
    let rank = Math.min(total, Math.max(1, Math.ceil(share * total)));
    if (rank > this.#total) return null;
    for (let bucket = 0; bucket < this.#counts.length; bucket++) {
      rank -= this.#counts[bucket] as number;
      if (rank <= 0) return upperOf(bucket);
    }
    return null;
  }

  /** How many values exceed a limit. */
  above(limit: number): Above {
    const own = bucketOf(limit);
    let atLeast = 0;
    for (let bucket = own + 1; bucket < this.#counts.length; bucket++)
      atLeast += this.#counts[bucket] as number;
    const isWhole = limit >= upperOf(own);
    return { atLeast, atMost: atLeast + (isWhole ? 0 : (this.#counts[own] ?? 0)) };
  }
}

/** A copy of the counts of a histogram, for `since`. */
export interface HistogramMark {
  readonly counts: readonly number[];
  readonly sum: number;
  readonly total: number;
}
