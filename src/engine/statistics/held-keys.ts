import { runsEndlessly } from "../../core/job/endless.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { HeldKey } from "../../core/stats/advice.ts";
import { type GateRow, queueMark, type RecordKey, type Store } from "../../ports/store.ts";
import { RemoteWorkers } from "../remote/remote-workers.ts";

const PAGE = 200;
/** More keys than these are not looked at: somebody waits for the answer. */
const MOST_KEYS = 1_000;

/** Jobs that hold a place of a key and that nothing will end; those whose worker is gone hold it for ever. */
export async function heldKeys(
  store: Pick<Store, "inspect" | "records">,
): Promise<(HeldKey & { readonly type: string })[]> {
  const rows: JobRow[] = [];
  let looked = 0;
  for (let after: string | null = null; looked < MOST_KEYS; ) {
    const page: GateRow[] = await store.inspect.gates(after, PAGE);
    for (const { gate, active } of page)
      if (active > 0 && !gate.startsWith(queueMark(""))) rows.push(...(await endlessAt(store, gate)));
    looked += page.length;
    if (page.length < PAGE) break;
    after = (page.at(-1) as GateRow).gate;
  }
  return Promise.all(rows.map((row) => heldBy(store, row)));
}

async function endlessAt({ inspect }: Pick<Store, "inspect">, gate: string): Promise<JobRow[]> {
  return (await inspect.jobs({ gate, state: "active" }, null, PAGE)).filter(runsEndlessly);
}

async function heldBy({ records }: Pick<Store, "records">, row: JobRow) {
  const remote = row.policy?.worker;
  const key: RecordKey = ["worker", remote ? RemoteWorkers.recordId(remote) : (row.worker ?? "")];
  const [worker] = await records.load([key]);
  return {
    key: row.gate as string,
    job: row.id,
    type: row.type,
    since: row.startedAt as number,
    isWorkerGone: !worker,
  };
}
