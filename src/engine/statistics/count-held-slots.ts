import type { JobRow } from "../../core/job/job.ts";
import { runsEndlessly } from "../../core/job/policy/endless.ts";
import type { HeldSlot } from "../../core/stats/advice.ts";
import { type LimitRow, queueMark, type Store } from "../../ports/store.ts";
import { QUEUES } from "../queues/queue-settings-cache.ts";
import { remoteName, WORKERS } from "../worker/worker-record.ts";

const PAGE = 200;
/** Reads at most this many keys of limits and marks of queues, because a caller waits for the answer. */
const MOST_KEYS = 1_000;

/** Returns running jobs that hold a slot and have no deadline: nothing but a cancel ends one whose worker died. */
export async function heldSlots(
  store: Pick<Store, "inspect" | "records">,
): Promise<(HeldSlot & { readonly type: string })[]> {
  const rows: JobRow[] = [];
  let read = 0;
  for (let after: string | null = null; read < MOST_KEYS; ) {
    const page: LimitRow[] = await store.inspect.limitKeys(after, PAGE);
    for (const { key: limitKey, active } of page)
      if (active > 0) rows.push(...(await endlessAt(store, limitKey)));
    read += page.length;
    if (page.length < PAGE) break;
    after = (page.at(-1) as LimitRow).key;
  }
  const slots = await Promise.all(rows.map((row) => heldBy(store, row)));
  return slots.filter(({ key, queue }) => key !== null || queue !== null);
}

async function endlessAt({ inspect }: Pick<Store, "inspect">, limitKey: string): Promise<JobRow[]> {
  return (await inspect.limitJobs(limitKey, "active", PAGE)).filter(runsEndlessly);
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
