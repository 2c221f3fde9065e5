import type { Json } from "../../core/schema.ts";
import {
  GRAINS,
  type Grain,
  isDueForRollUp,
  keyBefore,
  keyOf,
  startOf,
  startOfKey,
} from "../../core/stats/grains.ts";
import { type SeriesData, SeriesTable } from "../../core/stats/series.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Guard, RecordRow } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";

/** Records that are added up in one commit. */
const BATCH = 200;
/** So many commits in one round; what is left is done in the next. */
const MOST_STEPS = 20;
export const MOST_SERIES = 500;
const SLICE = 50;

export function seriesOf({ body }: RecordRow): readonly SeriesData[] {
  return (body as unknown as { readonly series: readonly SeriesData[] }).series;
}

/**
 * Adds up what is old: minutes to hours, hours to days, and days are deleted. Any engine may do it; what is added and
 * what it is added to is guarded by versions, so nothing is added twice, however many try.
 */
export class RollUp {
  readonly #parts: Pick<EngineContext, "store" | "clock">;

  constructor(parts: Pick<EngineContext, "store" | "clock">) {
    this.#parts = parts;
  }

  async round(): Promise<void> {
    for (const [index, grain] of GRAINS.entries()) {
      const coarser = GRAINS[index + 1];
      for (let step = 0; step < MOST_STEPS; step++) {
        if (!(await (coarser ? this.#addUp(grain, coarser) : this.#forget(grain)))) break;
      }
    }
  }

  /** Answers whether there may be more. */
  async #addUp(grain: Grain, coarser: Grain): Promise<boolean> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const oldest = await store.records.list(grain.kind, null, BATCH);
    const first = oldest[0];
    if (!first || !isDueForRollUp(startOfKey(first.key[1]), grain, coarser, now)) return false;
    const start = startOf(startOfKey(first.key[1]), coarser.span);
    const sources = oldest.filter(({ key }) => startOf(startOfKey(key[1]), coarser.span) === start);
    const targets = await this.#recordsOf(coarser, start);
    const table = new SeriesTable(MOST_SERIES);
    for (const record of [...targets, ...sources]) for (const data of seriesOf(record)) table.add(data);
    const effects: Effect[] = sources.map(({ key }) => ({ delete: key }));
    const all = table.data();
    for (let from = 0; from < all.length; from += SLICE) {
      const put = [coarser.kind, keyOf(start, String(from / SLICE).padStart(4, "0"))] as const;
      effects.push({
        put,
        body: { series: all.slice(from, from + SLICE) } as unknown as Json,
        wakeAt: null,
      });
    }
    const [outcome] = await store.commit([{ when: guardsOf(sources, targets, effects), effects }], { now });
    // Somebody else was faster, and does the rest of it.
    return outcome?.ok ?? false;
  }

  async #forget(grain: Grain): Promise<boolean> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    const oldest = await store.records.list(grain.kind, null, BATCH);
    const over = oldest.filter(({ key }) => startOfKey(key[1]) + grain.span + grain.kept <= now);
    if (over.length === 0) return false;
    await store.commit(
      over.map(({ key }) => ({ effects: [{ delete: key }] })),
      { now },
    );
    return over.length === BATCH;
  }

  async #recordsOf(grain: Grain, start: Instant): Promise<RecordRow[]> {
    const page = await this.#parts.store.records.list(grain.kind, keyBefore(start), BATCH);
    return page.filter(({ key }) => startOfKey(key[1]) === start);
  }
}

/** Every record that is read must still be what it was, and one that is new must still not be there. */
function guardsOf(
  sources: readonly RecordRow[],
  targets: readonly RecordRow[],
  effects: readonly Effect[],
): Guard[] {
  const known = [...sources, ...targets].map(({ key, version }): Guard => ({ record: key, version }));
  const there = new Set(targets.map(({ key }) => key[1]));
  const added = effects.flatMap((effect): Guard[] =>
    "put" in effect && !there.has(effect.put[1]) ? [{ record: effect.put, version: 0 }] : [],
  );
  return [...known, ...added];
}
