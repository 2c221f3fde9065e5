import { runsEndlessly } from "../../core/job/endless.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { HeldSlot } from "../../core/stats/advice.ts";
import { type LimitRow, queueMark, type Store } from "../../ports/store.ts";
import { QUEUES } from "../queues/queue-settings-cache.ts";
import { remoteName, WORKERS } from "../worker/worker-record.ts";

const PAGE = 200;
/** Reads at most this many keys of limits and marks of queues, because a caller waits for the answer. */
const MOST_KEYS = 1_000;

/** Returns the jobs that hold a slot and that nothing will end; one whose worker is gone holds it until it is cancelled. */
export async function heldSlots(
  store: Pick<Store, "inspect" | "records">,
): Promise<(HeldSlot & { readonly type: string })[]> {
  const rows: JobRow[] = [];
  let looked = 0;
  for (let after: string | null = null; looked < MOST_KEYS; ) {
    const page: LimitRow[] = await store.inspect.limitKeys(after, PAGE);
    for (const { key: limitKey, active } of page)
      if (active > 0) rows.push(...(await endlessAt(store, limitKey)));
    looked += page.length;
    if (page.length < PAGE) break;
    after = (page.at(-1) as LimitRow).key;
  }
  const held = await Promise.all(rows.map((row) => heldBy(store, row)));
  return held.filter(({ key, queue }) => key !== null || queue !== null);
}

async function endlessAt({ inspect }: Pick<Store, "inspect">, limitKey: string): Promise<JobRow[]> {
  return (await inspect.jobs({ limitKey, state: "active" }, null, PAGE)).filter(runsEndlessly);
}

async function heldBy({ records }: Pick<Store, "records">, row: JobRow) {
  const remote = row.policy?.worker;
  const workerKey = WORKERS.key(remote ? remoteName(remote) : (row.worker ?? ""));
  const [worker, settings] = await records.load([workerKey, QUEUES.key(row.queue)]);
  const concurrency = settings ? QUEUES.read(settings).body.concurrency : undefined;
  return {
    key: row.limitKey === queueMark(row.queue) ? null : row.limitKey,
    queue: concurrency === undefined ? null : row.queue,
    job: row.id,
    type: row.type,
    since: row.startedAt as number,
    isWorkerGone: !worker,
  };
}
