import { type CronBody, rezonedCron } from "../../core/cron/cron.ts";
import { BATCH_LIMIT, type RecordRow, type Unit } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { putCron } from "./cron-jobs.ts";

/**
 * Finds the next instants of all crons anew, by newer zone data. One that changes meanwhile is left alone: whoever wrote
 * it may have had the same data, and if not, its judge looks at the data again. Answers how many were moved.
 */
export async function resolveCrons({
  store,
  clock,
}: Pick<EngineContext, "store" | "clock">): Promise<number> {
  let moved = 0;
  for (let after: string | null = null; ; ) {
    const records: RecordRow[] = await store.records.list("cron", after, BATCH_LIMIT);
    const now = clock.now();
    const units = records.flatMap(({ key, version, body }): Unit[] => {
      const rezoned = rezonedCron(body as unknown as CronBody, now);
      return rezoned ? [{ when: [{ record: key, version }], effects: [putCron(key[1], rezoned)] }] : [];
    });
    if (units.length > 0) moved += (await store.commit(units, { now })).filter(({ ok }) => ok).length;
    if (records.length < BATCH_LIMIT) return moved;
    after = records.at(-1)?.key[1] ?? null;
  }
}
