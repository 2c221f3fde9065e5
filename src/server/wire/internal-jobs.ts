import { BOOKKEEPING_QUEUE } from "../../core/job/decide/step-rules.ts";
import { isInternalQueue, WEBHOOK_QUEUE } from "../../core/job/internal-queue.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Engine } from "../../engine/engine.ts";
import type { JobCount, PageOptions, RowPage } from "../../engine/find/find-jobs.ts";
import type { JobQuery } from "../../engine/find/job-query.ts";

export function isInternal({ queue }: Pick<JobRow, "queue">): boolean {
  return isInternalQueue(queue);
}

/** Reads that a page repeats at most until it is full. */
const MOST_READS = 20;

/** Leaves the engine's own jobs out of what a search finds. */
export function withoutInternal(
  find: (page: PageOptions) => Promise<RowPage>,
): (page: PageOptions & { readonly limit: number }) => Promise<RowPage> {
  return async (page) => {
    const jobs: JobRow[] = [];
    let [after, scanned] = [page.after ?? null, 0];
    for (let reads = 0; ; reads++) {
      const found: RowPage = await find({ ...page, after, limit: page.limit - jobs.length });
      jobs.push(...found.jobs.filter((row) => !isInternal(row)));
      scanned += found.scanned;
      const isShort = found.jobs.length < page.limit && found.jobs.length === jobs.length;
      after = found.cursor;
      if (after === null || isShort || jobs.length >= page.limit || reads >= MOST_READS)
        return { ...found, jobs, cursor: after, scanned };
    }
  };
}

/** Counts jobs without the engine's own. */
export async function countOwn(engine: Engine, filter: JobQuery): Promise<JobCount> {
  const isNamed = filter.queue !== undefined || filter.type !== undefined;
  const queues = isNamed ? [] : [BOOKKEEPING_QUEUE, WEBHOOK_QUEUE];
  const [all, ...internal] = await Promise.all([
    engine.bulk.countSome(filter),
    ...queues.map((queue) => engine.bulk.countSome({ ...filter, queue })),
  ]);
  const ofEngine = internal.reduce((sum, { count }) => sum + count, 0);
  const isComplete = [all, ...internal].every((counted) => counted.isComplete);
  return { ...all, count: Math.max(0, all.count - ofEngine), isComplete };
}
