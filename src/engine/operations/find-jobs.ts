import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Store } from "../../ports/store.ts";
import { isMeant, type ParsedQuery } from "./job-query.ts";

/** A page of jobs; `cursor` is the `after` of the next one, and null says that there is none. */
export interface JobPage {
  readonly jobs: readonly JobRow[];
  readonly cursor: string | null;
}

export interface PageOptions {
  /** The cursor of the page before. */
  readonly after?: string | null;
  /** The most jobs of a page, 100 by default. A page may be shorter and still not be the last. */
  readonly limit?: number;
  readonly newestFirst?: boolean;
}

const MOST_JOBS = 1_000;
/** Steps of the store for one page: a page does a bounded amount of work, however rare what it looks for is. */
const MOST_STEPS = 5;

export function parsePage(page: PageOptions, field: string): Required<PageOptions> {
  refuseUnknownKeys(page, field, ["after", "limit", "newestFirst"]);
  const { after = null, limit = 100, newestFirst = false } = page;
  if (!Number.isInteger(limit) || limit < 1 || limit > MOST_JOBS)
    throw refuse("invalid_limit", `${field}.limit`, limit, `use a whole number from 1 to ${MOST_JOBS}`);
  if (after !== null && typeof after !== "string")
    throw refuse("invalid_option", `${field}.after`, after, "use the cursor of the page before");
  if (typeof newestFirst !== "boolean")
    throw refuse("invalid_option", `${field}.newestFirst`, newestFirst, "use true or false");
  return { after, limit, newestFirst };
}

/** The next of the jobs that were named, whatever they are; the cursor is the number of the one after them. */
export async function loadNamed(
  { jobs }: Pick<Store, "jobs">,
  ids: readonly JobId[],
  after: string | null,
  count: number,
): Promise<JobPage> {
  const from = Number(after ?? 0);
  if (!Number.isInteger(from) || from < 0)
    throw refuse("invalid_option", "cursor", after, "use the cursor that the page before answered with");
  const named = ids.slice(from, from + count);
  const rows = named.length === 0 ? [] : await jobs.load(named);
  const next = from + count;
  return { jobs: rows.filter((row) => row !== null), cursor: next >= ids.length ? null : String(next) };
}

/** One page of what a query means. */
export async function findJobs(
  store: Pick<Store, "inspect" | "jobs">,
  query: ParsedQuery,
  { after, limit, newestFirst }: Required<PageOptions>,
): Promise<JobPage> {
  const { inspect } = store;
  if (query.ids) {
    const page = await loadNamed(store, query.ids, after, limit);
    return { ...page, jobs: page.jobs.filter((row) => isMeant(row, query)) };
  }
  const jobs: JobRow[] = [];
  let cursor = after;
  for (let steps = 0; steps < MOST_STEPS && jobs.length < limit; steps++) {
    const walk = { filter: query.filter, after: cursor, newestFirst };
    const page = await inspect.page(walk, limit - jobs.length);
    for (const row of page.jobs) if (isMeant(row, query)) jobs.push(row);
    cursor = page.cursor;
    if (cursor === null) break;
  }
  return { jobs, cursor };
}

/** How many jobs were counted, and whether that is all of them. */
export interface JobCount {
  readonly count: number;
  readonly isComplete: boolean;
}

/** How many jobs a query means, as far as a bounded number of steps of the store comes. */
export async function countSome({ inspect }: Pick<Store, "inspect">, query: ParsedQuery): Promise<JobCount> {
  let count = 0;
  let cursor: string | null = null;
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const walk: { filter: ParsedQuery["filter"]; after: string | null } = {
      filter: query.filter,
      after: cursor,
    };
    const step = await inspect.count(walk);
    count += step.count;
    cursor = step.cursor;
    if (cursor === null) break;
  }
  return { count, isComplete: cursor === null };
}

/** How many jobs a query means, step by step to the end. */
export async function countJobs(
  { inspect, jobs }: Pick<Store, "inspect" | "jobs">,
  query: ParsedQuery,
  signal?: AbortSignal,
): Promise<number> {
  const isPlain = query.errorType === undefined && query.errorCode === undefined;
  let count = 0;
  if (query.ids) {
    for (let from = 0; from < query.ids.length; from += MOST_JOBS) {
      signal?.throwIfAborted();
      const rows = await jobs.load(query.ids.slice(from, from + MOST_JOBS));
      for (const row of rows) if (row && isMeant(row, query)) count += 1;
    }
    return count;
  }
  for (let cursor: string | null = null; ; ) {
    signal?.throwIfAborted();
    const walk: { filter: ParsedQuery["filter"]; after: string | null } = {
      filter: query.filter,
      after: cursor,
    };
    if (isPlain) {
      const step = await inspect.count(walk);
      count += step.count;
      cursor = step.cursor;
    } else {
      const page = await inspect.page(walk, MOST_JOBS);
      for (const row of page.jobs) if (isMeant(row, query)) count += 1;
      cursor = page.cursor;
    }
    if (cursor === null) return count;
  }
}
