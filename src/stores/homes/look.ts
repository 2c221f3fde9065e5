import { type Home, homeOf } from "../../core/home/cell.ts";
import { cellOfRecord } from "../../core/home/cell-of-row.ts";
import { earlier } from "../../core/time.ts";
import type { Looked, LookRequest } from "../../ports/look.ts";
import { checkLook } from "../check-batch.ts";
import type { HomeStore } from "./home-store.ts";
import type { Visits } from "./visits.ts";

/** Looks at all homes at once. Records are asked for in their own homes. */
export async function lookAtHomes(
  homes: readonly HomeStore[],
  { queues, destinations, records }: LookRequest,
  visits: Visits,
): Promise<Looked> {
  checkLook({ queues, destinations, records });
  const homeOfKey = (index: number): Home =>
    homeOf(cellOfRecord(records[index] as LookRequest["records"][number]), homes.length);
  const indexes = records.map((_, index) => index);
  const looked = await Promise.all(
    homes.map(async (store, home) => {
      const own = indexes.filter((index) => homeOfKey(index) === home);
      const keys = own.map((index) => records[index] as LookRequest["records"][number]);
      return { own, answer: await store.look({ queues, destinations, records: keys }) };
    }),
  );
  const ready = new Set<string>();
  const versions = new Array<number>(records.length).fill(0);
  for (const [home, { own, answer }] of looked.entries()) {
    for (const queue of answer.ready) {
      ready.add(queue);
      visits.ready(queue, home);
    }
    for (const [position, index] of own.entries()) versions[index] = answer.versions[position] ?? 0;
  }
  return {
    nextWakeAt: looked.map(({ answer }) => answer.nextWakeAt).reduce(earlier, null),
    ready: [...ready],
    nextDueAt: looked.map(({ answer }) => answer.nextDueAt).reduce(earlier, null),
    versions,
  };
}
