import { type Home, homeOf } from "../../core/home/cell.ts";
import { cellOfRecord } from "../../core/home/cell-of-row.ts";
import { earlier } from "../../core/time.ts";
import type { Looked, LookRequest } from "../../ports/look.ts";
import { checkLook } from "../check-batch.ts";
import { askAll } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import type { Visits } from "./visits.ts";
import type { Wakes } from "./wakes.ts";

/**
 * Looks at all homes at once. Records are asked for in their own homes. A home that does not answer is left out, unless it
 * has one of the records: what it wakes for is found by the sweep and the claims when it is back.
 */
export async function lookAtHomes(
  homes: readonly HomeStore[],
  { queues, destinations, records }: LookRequest,
  { visits, wakes }: { readonly visits: Visits; readonly wakes: Wakes },
  onFailed: (home: Home, error: unknown) => void,
): Promise<Looked> {
  checkLook({ queues, destinations, records });
  const homeOfKey = (index: number): Home =>
    homeOf(cellOfRecord(records[index] as LookRequest["records"][number]), homes.length);
  const indexes = records.map((_, index) => index);
  const ownOf = (home: Home) => indexes.filter((index) => homeOfKey(index) === home);
  const looked = await askAll(
    homes,
    (store, home) => {
      const keys = ownOf(home).map((index) => records[index] as LookRequest["records"][number]);
      return store.look({ queues, destinations, records: keys });
    },
    (home, error) => {
      if (ownOf(home).length > 0) throw error;
      onFailed(home, error);
    },
  );
  const ready = new Set<string>();
  const versions = new Array<number>(records.length).fill(0);
  for (const [home, answer] of looked.entries()) {
    if (!answer) continue;
    wakes.looked(home, answer.nextWakeAt);
    for (const queue of answer.ready) {
      ready.add(queue);
      visits.ready(queue, home);
    }
    for (const [position, index] of ownOf(home).entries()) versions[index] = answer.versions[position] ?? 0;
  }
  return {
    nextWakeAt: looked.map((answer) => answer?.nextWakeAt ?? null).reduce(earlier, null),
    ready: [...ready],
    nextDueAt: looked.map((answer) => answer?.nextDueAt ?? null).reduce(earlier, null),
    versions,
  };
}
