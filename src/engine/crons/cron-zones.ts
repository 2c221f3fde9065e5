import { type CronBody, rezonedCron } from "../../core/cron/cron.ts";
import { BATCH_LIMIT, type Unit } from "../../ports/store.ts";
import { commitUnits } from "../commit/commit.ts";
import type { StoredRecord } from "../commit/records.ts";
import type { EngineContext } from "../context.ts";
import { CRONS, putCron } from "./cron-jobs.ts";

/**
 * Computes the next instants of all crons with newer zone data. Returns the number of crons that moved. No
 * changeRecord: many crons share a call. A cron that changed since it was read is skipped: its writer used its own zone
 * data.
 */
export async function resolveCrons(context: Pick<EngineContext, "store" | "clock">): Promise<number> {
  let moved = 0;
  for (let after: string | null = null; ; ) {
    const crons: StoredRecord<CronBody>[] = await CRONS.list(context.store, after, BATCH_LIMIT);
    const now = context.clock.now();
    const units = crons.flatMap(({ name, version, body }): Unit[] => {
      const rezoned = rezonedCron(body, now);
      return rezoned ? [{ when: [CRONS.guard(name, version)], effects: [putCron(name, rezoned)] }] : [];
    });
    moved += (await commitUnits(context, units)).filter(({ ok }) => ok).length;
    if (crons.length < BATCH_LIMIT) return moved;
    after = crons.at(-1)?.name ?? null;
  }
}
