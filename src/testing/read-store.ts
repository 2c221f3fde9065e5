import { type JobId, type JobRow, type JobState, sumDepths } from "../core/job/job.ts";
import type { ScanFilter } from "../core/job/job-filter.ts";
import type { Json } from "../core/schema.ts";
import { BATCH_LIMIT, LOG_LIMIT, type Store } from "../ports/store.ts";

/* What tests read of a store at once, and an inspector gives in pages. */

/** All jobs that match, in the order of their ids. */
export async function jobsOf(
  { inspect }: Pick<Store, "inspect">,
  filter: ScanFilter = {},
): Promise<JobRow[]> {
  const jobs: JobRow[] = [];
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<Store["inspect"]["page"]>> = await inspect.page(
      { filter, after },
      BATCH_LIMIT,
    );
    jobs.push(...page.jobs);
    if (page.cursor === null) return jobs;
    after = page.cursor;
  }
}

/** How many jobs are in each state, in one queue or in all. */
export async function depthOf(
  { inspect }: Pick<Store, "inspect">,
  queue?: string,
): Promise<Record<JobState, number>> {
  return sumDepths((await inspect.depths(queue)).values());
}

/** All lines that are kept of a job's log. */
export async function logOf({ inspect }: Pick<Store, "inspect">, id: JobId): Promise<Json[]> {
  return (await inspect.logLines(id, 0, LOG_LIMIT)).map(({ line }) => line);
}

/** One job as it is stored, or null. */
export async function rowOf({ jobs }: Pick<Store, "jobs">, id: JobId): Promise<JobRow | null> {
  return (await jobs.load([id]))[0] ?? null;
}
