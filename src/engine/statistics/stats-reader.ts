import { GRAINS, keyBefore, startOf, startOfKey } from "../../core/stats/grains.ts";
import type { SeriesData } from "../../core/stats/series.ts";
import type { WaitPeak } from "../../core/stats/waits.ts";
import type { Instant } from "../../core/time.ts";
import type { Store } from "../../ports/store.ts";
import { statsKind } from "./roll-up.ts";

const PAGE = 200;

/** The counts of one span of time. */
export interface ReadRange {
  readonly start: Instant;
  readonly span: number;
  readonly series: readonly SeriesData[];
  readonly waits: readonly WaitPeak[];
}

/**
 * Stored stats of a time range, oldest first within each width. The span that contains `since` counts as a whole. A
 * roll-up during the read may be counted twice: stats are for people, and nothing is decided by them.
 */
export async function* readRanges(
  store: Pick<Store, "records">,
  since: Instant,
  until: Instant,
): AsyncGenerator<ReadRange, void, undefined> {
  // Coarser records are older, so the newest come last.
  for (const grain of [...GRAINS].reverse()) {
    const { span } = grain;
    const kind = statsKind(grain);
    let after = keyBefore(startOf(since, span));
    for (;;) {
      const page = await kind.list(store, after, PAGE);
      for (const record of page) {
        const start = startOfKey(record.name);
        if (start >= until) break;
        yield { start, span, series: record.body.series, waits: record.body.waits ?? [] };
      }
      const last = page.at(-1)?.name;
      if (last === undefined || page.length < PAGE || startOfKey(last) >= until) break;
      after = last;
    }
  }
}
