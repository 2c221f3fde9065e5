import { FINEST, startOf } from "../../core/stats/grains.ts";
import { type SeriesData, SeriesTable } from "../../core/stats/series.ts";
import type { Instant } from "../../core/time.ts";
import type { Series, Tallies } from "./tallies.ts";

/** The counts of one minute: series by the slice in which they are stored. */
export interface Minute {
  readonly start: Instant;
  readonly slices: ReadonlyMap<number, readonly SeriesData[]>;
}

/** Series per record: few records for few series, and no record grows without bound. */
const SLICE = 50;
/** At most this many minutes wait while the store is down; then the oldest two are merged. */
const MOST_WAITING = 120;
const MOST_SERIES = 500;

/**
 * Divides the tallies into minutes. A minute is the difference between two readings of the tallies, so a job costs only
 * one comparison of instants.
 */
export class Minutes {
  /** When the current minute ends. */
  endsAt: Instant = Number.NEGATIVE_INFINITY;
  readonly #tallies: Tallies;
  #start: Instant = 0;
  #ended: Minute[] = [];

  constructor(tallies: Tallies) {
    this.#tallies = tallies;
  }

  /** Ends the current minute if it is over at `at`. */
  nextMinute(at: Instant): void {
    if (at < this.endsAt) return;
    // Before the first event there is no minute to end; earlier enqueues count for the one that begins now.
    if (this.endsAt !== Number.NEGATIVE_INFINITY) this.#end();
    this.#start = startOf(at, FINEST.span);
    this.endsAt = this.#start + FINEST.span;
  }

  #end(): void {
    const changed: Series[] = [];
    const minute = this.#current(changed);
    for (const series of changed) series.mark();
    if (minute.slices.size === 0) return;
    this.#ended.push(minute);
    if (this.#ended.length <= MOST_WAITING) return;
    const [first, second] = this.#ended as [Minute, Minute];
    this.#ended.splice(0, 2, joined(first, second));
  }

  #current(changed: Series[]): Minute {
    const slices = new Map<number, SeriesData[]>();
    for (const series of this.#tallies.all()) {
      const data = series.sinceMark();
      if (!data) continue;
      changed.push(series);
      const slice = Math.floor(series.ordinal / SLICE);
      const list = slices.get(slice);
      if (list) list.push(data);
      else slices.set(slice, [data]);
    }
    return { start: this.#start, slices };
  }

  /** All counts that are not confirmed as stored: ended minutes and the current one. */
  pending(at: Instant): { readonly ended: readonly Minute[]; readonly running: Minute } {
    this.nextMinute(at);
    return { ended: [...this.#ended], running: this.#current([]) };
  }

  /** Drops minutes that are stored. */
  forget(stored: readonly Minute[]): void {
    const storedMinutes = new Set(stored);
    this.#ended = this.#ended.filter((minute) => !storedMinutes.has(minute));
  }
}

/** Merges two minutes under the start of the first. */
function joined(first: Minute, second: Minute): Minute {
  const slices = new Map<number, readonly SeriesData[]>();
  for (const slice of new Set([...first.slices.keys(), ...second.slices.keys()])) {
    const table = new SeriesTable(MOST_SERIES);
    for (const { slices: series } of [first, second])
      for (const data of series.get(slice) ?? []) table.add(data);
    slices.set(slice, table.data());
  }
  return { start: first.start, slices };
}
