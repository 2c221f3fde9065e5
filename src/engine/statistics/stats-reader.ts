import { GRAINS, keyBefore, startOf, startOfKey } from "../../core/stats/grains.ts";
import type { SeriesData } from "../../core/stats/series.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import { statsKind } from "./roll-up.ts";

const PAGE = 200;

/** What was counted in one stretch of time. */
export interface ReadRange {
  readonly start: Instant;
  readonly span: number;
  readonly series: readonly SeriesData[];
}

/**
 * What is stored of a range, the oldest first within each width. The stretch in which the range begins counts as a
 * whole. A roll-up at the very moment of reading may be seen before and after: figures are for people, and nothing is decided by
 * them.
 */
export async function* readStretches(
  store: Pick<Store, "records">,
  since: Instant,
  until: Instant,
): AsyncGenerator<ReadRange, void, undefined> {
  // Coarse ones are older, and what was seen last is the newest that way.
  for (const grain of [...GRAINS].reverse()) {
    const { span } = grain;
    const kind = statsKind(grain);
    let after = keyBefore(startOf(since, span));
    for (;;) {
      const page = await kind.list(store, after, PAGE);
      for (const record of page) {
        const start = startOfKey(record.name);
        if (start >= until) break;
        yield { start, span, series: record.body.series };
      }
      const last = page.at(-1)?.name;
      if (last === undefined || page.length < PAGE || startOfKey(last) >= until) break;
      after = last;
    }
  }
}
