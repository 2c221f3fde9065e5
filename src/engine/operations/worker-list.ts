import type { JobRow } from "../../core/job/job.ts";
import type { AnyDefinition } from "../../core/job/job-definition.ts";
import { workerWarnings } from "../../core/job/policy/explain-workers.ts";
import type { Instant } from "../../core/time.ts";
import { isSilent, readWorker, type WorkerReport } from "../../core/worker/worker-report.ts";
import type { Store } from "../../ports/store.ts";
import { DIRECTIVES } from "../remote/remote-workers.ts";

/** Reads at most this many workers, because a caller waits for the answer. */
const MOST_WORKERS = 1_000;

export interface WorkerList {
  readonly workers: readonly WorkerReport[];
  /** There are more workers than these. */
  readonly hasMore: boolean;
}

/** The reports of all workers, including silent ones. One indexed read, and a second one if some work over HTTP. */
export async function listWorkers({ records }: Pick<Store, "records">): Promise<WorkerList> {
  const rows = await records.list("worker", null, MOST_WORKERS + 1);
  const read = rows.slice(0, MOST_WORKERS).map(({ key, body }) => readWorker(key[1], body, false));
  const hasMore = rows.length > MOST_WORKERS;
  if (!read.some(({ isRemote }) => isRemote)) return { workers: read, hasMore };
  const directives = await DIRECTIVES.list({ records }, null, MOST_WORKERS);
  const directed = new Set(directives.map(({ name }) => name));
  const workers = read.map((worker, index) =>
    directed.has(rows[index]?.key[1] as string) ? { ...worker, isStopping: true } : worker,
  );
  return { workers, hasMore };
}

/** Warnings about the live workers of a job's queue; none if not all workers were read. */
export async function workerWarningsOf(
  store: Pick<Store, "records">,
  row: JobRow,
  definition: AnyDefinition | undefined,
  now: Instant,
): Promise<string[]> {
  const { workers, hasMore } = await listWorkers(store);
  const live = workers.filter((worker) => !isSilent(worker, now));
  return hasMore ? [] : workerWarnings(row, definition, live);
}
