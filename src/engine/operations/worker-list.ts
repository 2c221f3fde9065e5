import { workerWarnings } from "../../core/job/explain-workers.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { AnyDefinition } from "../../core/job/job-definition.ts";
import type { Instant } from "../../core/time.ts";
import { isSilent, readWorker, type WorkerReport } from "../../core/worker/worker-report.ts";
import type { Store } from "../../ports/store.ts";
import { DIRECTIVES } from "../remote/remote-workers.ts";

/** Of more workers than these, the first are looked at: somebody waits for the answer. */
const MOST_WORKERS = 1_000;

export interface WorkerList {
  readonly workers: readonly WorkerReport[];
  /** There are more than were read. */
  readonly hasMore: boolean;
}

/** What workers say of themselves, silent ones included; one indexed read, and another if some work over HTTP. */
export async function listWorkers({ records }: Pick<Store, "records">): Promise<WorkerList> {
  const found = await records.list("worker", null, MOST_WORKERS + 1);
  const read = found.slice(0, MOST_WORKERS).map(({ key, body }) => readWorker(key[1], body, false));
  const hasMore = found.length > MOST_WORKERS;
  if (!read.some(({ isRemote }) => isRemote)) return { workers: read, hasMore };
  const directives = await DIRECTIVES.list({ records }, null, MOST_WORKERS);
  const directed = new Set(directives.map(({ name }) => name));
  const workers = read.map((worker, index) =>
    directed.has(found[index]?.key[1] as string) ? { ...worker, isStopping: true } : worker,
  );
  return { workers, hasMore };
}

/** What looks wrong about a job beside the workers that live. Nothing is said where not all of them were read. */
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
