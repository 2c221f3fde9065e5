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
import { mergeWaits, type WaitPeak } from "../../core/stats/waits.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Guard } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import { type RecordKind, recordKind, type StoredRecord } from "../commit/record-kind.ts";
import type { EngineContext } from "../context.ts";

/** Records per commit. */
const BATCH = 200;
/** Commits per round; the next round does the rest. */
const MOST_STEPS = 20;
export const MOST_SERIES = 500;
const SLICE = 50;

interface StatsBody {
  readonly series: readonly SeriesData[];
  /** What waited in the period, as far as an engine looked. */
  readonly waits?: readonly WaitPeak[];
}
type StatsRecord = StoredRecord<StatsBody>;

/** Records of one width. */
export function statsKind({ kind }: Grain): RecordKind<StatsBody> {
  return recordKind<StatsBody>(kind);
}

/**
 * Adds minutes up to hours and hours up to days, and deletes old days. Any engine may do it: guards on the versions of
 * all records make sure that nothing is added twice. No changeRecord: many records become one.
 */
export class RollUp {
  readonly #context: Pick<EngineContext, "store" | "clock">;

  constructor(context: Pick<EngineContext, "store" | "clock">) {
    this.#context = context;
  }

  async round(): Promise<void> {
    for (const [index, grain] of GRAINS.entries()) {
      const coarser = GRAINS[index + 1];
      for (let step = 0; step < MOST_STEPS; step++) {
        if (!(await (coarser ? this.#addUp(grain, coarser) : this.#forget(grain)))) break;
      }
    }
  }

  /** Returns whether there may be more. */
  async #addUp(grain: Grain, coarser: Grain): Promise<boolean> {
    const { store, clock } = this.#context;
    const now = clock.now();
    const [from, to] = [statsKind(grain), statsKind(coarser)];
    const oldest = await from.list(store, null, BATCH);
    const first = oldest[0];
    if (!first || !isDueForRollUp(startOfKey(first.name), grain, coarser, now)) return false;
    const start = startOf(startOfKey(first.name), coarser.span);
    const sources = oldest.filter(({ name }) => startOf(startOfKey(name), coarser.span) === start);
    const targets = await this.#recordsOf(coarser, start);
    const table = new SeriesTable(MOST_SERIES);
    let waits: readonly WaitPeak[] = [];
    for (const { body } of [...targets, ...sources]) {
      for (const data of body.series) table.add(data);
      waits = mergeWaits(waits, body.waits ?? []);
    }
    const all = table.data();
    const slices = Array.from({ length: Math.max(1, Math.ceil(all.length / SLICE)) }, (_, slice) => ({
      name: keyOf(start, String(slice).padStart(4, "0")),
      series: all.slice(slice * SLICE, (slice + 1) * SLICE),
    }));
    const effects: Effect[] = [
      ...sources.map(({ name }) => from.remove(name)),
      ...slices.map(({ name, series }, slice) =>
        to.put(name, slice === 0 && waits.length > 0 ? { series, waits } : { series }, null),
      ),
    ];
    // Every record that was read must be unchanged, and a new one must not exist yet.
    const versions = new Map([...slices, ...targets].map((record) => [record.name, 0]));
    for (const { name, version } of targets) versions.set(name, version);
    const when: Guard[] = [
      ...sources.map(({ name, version }) => from.guard(name, version)),
      ...Array.from(versions, ([name, version]) => to.guard(name, version)),
    ];
    const [outcome] = await commitUnits(this.#context, [{ when, effects }]);
    // If refused, another process did it and does the rest.
    return outcome?.ok ?? false;
  }

  async #forget(grain: Grain): Promise<boolean> {
    const { store, clock } = this.#context;
    const now = clock.now();
    const kind = statsKind(grain);
    const oldest = await kind.list(store, null, BATCH);
    const over = oldest.filter(({ name }) => startOfKey(name) + grain.span + grain.kept <= now);
    await commitUnits(
      this.#context,
      over.map(({ name }) => ({ effects: [kind.remove(name)] })),
    );
    return over.length === BATCH;
  }

  async #recordsOf(grain: Grain, start: Instant): Promise<StatsRecord[]> {
    const page = await statsKind(grain).list(this.#context.store, keyBefore(start), BATCH);
    return page.filter(({ name }) => startOfKey(name) === start);
  }
}
