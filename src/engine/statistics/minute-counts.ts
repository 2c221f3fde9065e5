import { FINEST, startOf } from "../../core/stats/grains.ts";
import { type SeriesData, SeriesTable } from "../../core/stats/series.ts";
import type { Instant } from "../../core/time.ts";
import type { Series, Tallies } from "./tallies.ts";

/** What was counted in one minute: series by the slice that they are stored in. */
export interface Minute {
  readonly start: Instant;
  readonly slices: ReadonlyMap<number, readonly SeriesData[]>;
}

/** So many series are stored together: few puts where there are few, and no record that grows without bound. */
const SLICE = 50;
/** So many minutes wait for a store that is away; then the oldest two are kept as one. */
const MOST_WAITING = 120;
const MOST_SERIES = 500;

/**
 * Cuts what the tallies count into minutes. Nothing is counted a second time: a minute is the difference between two
 * looks at the tallies, so a job costs one comparison of instants.
 */
export class Minutes {
  /** From this instant on it is another minute. */
  endsAt: Instant = Number.NEGATIVE_INFINITY;
  readonly #tallies: Tallies;
  #start: Instant = 0;
  #ended: Minute[] = [];

  constructor(tallies: Tallies) {
    this.#tallies = tallies;
  }

  /** Ends the minute that was counted so far, if it is over at `at`. */
  nextMinute(at: Instant): void {
    if (at < this.endsAt) return;
    // Before the first event there was none; what was enqueued already belongs to the one that begins now.
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

  /** Everything that is not yet known to be stored: minutes that are over, and the one that runs. */
  pending(at: Instant): { readonly ended: readonly Minute[]; readonly running: Minute } {
    this.nextMinute(at);
    return { ended: [...this.#ended], running: this.#current([]) };
  }

  /** These are stored and need not be kept. */
  forget(stored: readonly Minute[]): void {
    const gone = new Set(stored);
    this.#ended = this.#ended.filter((minute) => !gone.has(minute));
  }
}

/** Two minutes as one, under the name of the earlier. */
function joined(first: Minute, second: Minute): Minute {
  const slices = new Map<number, readonly SeriesData[]>();
  for (const slice of new Set([...first.slices.keys(), ...second.slices.keys()])) {
    const table = new SeriesTable(MOST_SERIES);
    for (const { slices: part } of [first, second]) for (const data of part.get(slice) ?? []) table.add(data);
    slices.set(slice, table.data());
  }
  return { start: first.start, slices };
}
