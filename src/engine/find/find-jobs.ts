import { checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { openedRow, type Sealing } from "../../core/job/documents/sealed.ts";
import { isInternalQueue } from "../../core/job/internal-queue.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { type Job, jobView } from "../../core/job/job-view.ts";
import {
  SCAN_STEP,
  type Scan,
  type ScanFilter,
  type ScannedCount,
  type ScannedJobs,
  type Store,
} from "../../ports/store.ts";
import { loadInParts } from "./bounded-reader.ts";
import { findIndexed, type RowPage } from "./find-indexed.ts";
import { firstIdOf, hasOwnFilter, matches, type ParsedQuery } from "./job-query.ts";

/** A page of jobs. `cursor` is the `after` of the next page; null on the last one. */
export interface JobPage {
  readonly jobs: readonly Job[];
  readonly cursor: string | null;
}

/** A page as users see it. */
export function pageView({ jobs, cursor }: RowPage, sealing: Sealing | undefined): JobPage {
  return { jobs: jobs.map((row) => jobView(openedRow(sealing, row))), cursor };
}

export type { RowPage };

export interface PageOptions {
  /** The cursor of the page before. */
  readonly after?: string | null;
  /** At most this many jobs, from 1 to 1,000; default 100. A page may be shorter and still not be the last. */
  readonly limit?: number;
  readonly newestFirst?: boolean;
}

const MOST_JOBS = 1_000;
/** At most this many store steps for one page, so that a rare match costs a bounded amount of work. */
const MOST_STEPS = 5;
/** Rows of the first read whose jobs are filtered here. Their size says how many to read next. */
const FIRST_ROWS = 25;
/** Characters of rows that one such read may hold. */
const READ_SIZE = 16_000_000;

export function parsePage(page: PageOptions, field: string): Required<PageOptions> {
  refuseUnknownKeys(page, field, ["after", "limit", "newestFirst"]);
  const { after = null, limit = 100, newestFirst = false } = page;
  checkCount(limit, `${field}.limit`, MOST_JOBS);
  if (after !== null && typeof after !== "string")
    throw refuse("invalid_option", `${field}.after`, after, "use the cursor of the page before");
  if (typeof newestFirst !== "boolean")
    throw refuse("invalid_option", `${field}.newestFirst`, newestFirst, "use true or false");
  return { after, limit, newestFirst };
}

/** The brief rows of these jobs by id; unknown ids are left out. */
export async function rowsById(
  store: Pick<Store, "jobs">,
  ids: readonly JobId[],
): Promise<ReadonlyMap<JobId, JobRow>> {
  const rows = new Map<JobId, JobRow>();
  for await (const row of loadInParts(store, ids, { isBrief: true })) if (row) rows.set(row.id, row);
  return rows;
}

/** Loads the next jobs of a list of ids. The cursor is the index of the first id that is left. */
export async function loadNamed(
  { jobs }: Pick<Store, "jobs">,
  ids: readonly JobId[],
  after: string | null,
  count: number,
): Promise<RowPage> {
  const from = Number(after ?? 0);
  if (!Number.isInteger(from) || from < 0)
    throw refuse("invalid_option", "cursor", after, "use the cursor of the page before");
  const named = ids.slice(from, from + count);
  const rows = named.length === 0 ? [] : await jobs.load(named);
  const next = from + count;
  const known = rows.filter((row) => row !== null);
  return { jobs: known, cursor: next >= ids.length ? null : String(next), scanned: named.length };
}

/** One page of the jobs that match a query. */
export async function findJobs(
  store: Pick<Store, "inspect" | "jobs" | "search">,
  query: ParsedQuery,
  { after, limit, newestFirst }: Required<PageOptions>,
  isBrief = false,
): Promise<RowPage> {
  if (query.ids) {
    const page = await loadNamed(store, query.ids, after, limit);
    return { ...page, jobs: page.jobs.filter((row) => matches(row, query)) };
  }
  if (query.idPrefix !== undefined) return findByPrefix(store, query, query.idPrefix, after, limit);
  const indexed = newestFirst ? await findIndexed(store, query, after, limit) : null;
  if (indexed) return indexed;
  const jobs: JobRow[] = [];
  let cursor = after;
  let steps = 0;
  let rows = FIRST_ROWS;
  while (steps < MOST_STEPS && jobs.length < limit) {
    steps += 1;
    // A filter of this file needs whole rows.
    const scan = {
      filter: query.filter,
      after: cursor,
      newestFirst,
      isBrief: isBrief && !hasOwnFilter(query),
    };
    const page = await stepOf(store, query, scan, { wanted: limit - jobs.length, rows });
    rows = page.rows;
    jobs.push(...ownJobs(query.filter, page.jobs));
    cursor = page.cursor;
    if (cursor === null) break;
  }
  return { jobs, cursor, scanned: steps * SCAN_STEP };
}

/** Leaves out the engine's own jobs, unless the filter names their queue. */
export function ownJobs({ queue }: ScanFilter, rows: readonly JobRow[]): readonly JobRow[] {
  if (queue !== undefined || rows.every((row) => !isInternalQueue(row.queue))) return rows;
  return rows.filter((row) => !isInternalQueue(row.queue));
}

/** One store step. If this file filters the rows, it reads many of them even if the caller wants few. */
async function stepOf(
  { inspect }: Pick<Store, "inspect">,
  query: ParsedQuery,
  scan: Scan,
  { wanted, rows }: { readonly wanted: number; readonly rows: number },
): Promise<ScannedJobs & { readonly rows: number }> {
  if (!hasOwnFilter(query)) return { ...(await inspect.page(scan, wanted)), rows };
  const page = await inspect.page(scan, rows);
  const next = rowsThatFit(page.jobs);
  const matching = page.jobs.filter((row) => matches(row, query));
  if (matching.length <= wanted) return { jobs: matching, cursor: page.cursor, rows: next };
  // Only the store can make the cursor behind the last job of the page.
  const last = matching[wanted - 1] as JobRow;
  const { cursor } = await inspect.page(scan, page.jobs.indexOf(last) + 1);
  return { jobs: matching.slice(0, wanted), cursor, rows: next };
}

/** How many rows of the size of these the next read may hold. */
function rowsThatFit(rows: readonly JobRow[]): number {
  let size = 0;
  for (const { payload, result, checkpoint } of rows)
    size += 500 + payload.length + (result?.length ?? 0) + (checkpoint?.length ?? 0);
  return Math.min(MOST_JOBS, Math.max(1, Math.floor((READ_SIZE * rows.length) / Math.max(1, size))));
}

/** Jobs whose id begins with the prefix. Ids are sorted, so they follow the lowest id with this prefix. */
async function findByPrefix(
  { inspect }: Pick<Store, "inspect">,
  query: ParsedQuery,
  prefix: string,
  after: string | null,
  limit: number,
): Promise<RowPage> {
  const { jobs: rows } = await inspect.page(
    { filter: {}, after: after ?? before(firstIdOf(prefix)) },
    limit + 1,
  );
  const same = rows.filter(({ id }) => id.startsWith(prefix));
  const page = same.slice(0, limit);
  const cursor = same.length > limit ? (page.at(-1)?.id ?? null) : null;
  return { jobs: page.filter((row) => matches(row, query)), cursor, scanned: rows.length };
}

/** The id before one that ends in zeros; null if there is none. */
function before(id: JobId): JobId | null {
  const digits = id.replaceAll("-", "");
  if (/^0*$/.test(digits)) return null;
  const hex = (BigInt(`0x${digits}`) - 1n).toString(16).padStart(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The first matching jobs in the order of ids. Fewer than `limit` means that there are no more. */
export async function firstJobs(
  { inspect }: Pick<Store, "inspect">,
  filter: ScanFilter,
  after: JobId | null,
  limit: number,
): Promise<JobRow[]> {
  const jobs: JobRow[] = [];
  for (let cursor: string | null = after; ; ) {
    const left = Math.min(limit - jobs.length, MOST_JOBS);
    const page: ScannedJobs = await inspect.page({ filter, after: cursor }, left);
    jobs.push(...page.jobs);
    cursor = page.cursor;
    if (cursor === null || jobs.length >= limit) return jobs;
  }
}

export interface JobCount {
  readonly count: number;
  readonly isComplete: boolean;
}

/** One store step of a count. If this file filters the rows, it reads at most `rows` of them. */
async function countStep(
  { inspect }: Pick<Store, "inspect">,
  query: ParsedQuery,
  scan: Scan,
  rows: number,
): Promise<ScannedCount & { readonly rows: number }> {
  if (!hasOwnFilter(query) && query.idPrefix === undefined) return { ...(await inspect.count(scan)), rows };
  const page = await inspect.page(scan, rows);
  const count = page.jobs.filter((row) => matches(row, query)).length;
  return { count, cursor: page.cursor, rows: rowsThatFit(page.jobs) };
}

/** Counts the jobs that match a query, step by step: the count so far, and where the next step begins. */
async function* countSteps(
  { inspect }: Pick<Store, "inspect">,
  query: ParsedQuery,
): AsyncGenerator<{ readonly count: number; readonly cursor: string | null }> {
  let count = 0;
  let cursor: string | null = null;
  let rows = FIRST_ROWS;
  do {
    const scan: { filter: ParsedQuery["filter"]; after: string | null } = {
      filter: query.filter,
      after: cursor,
    };
    const step = await countStep({ inspect }, query, scan, rows);
    count += step.count;
    ({ cursor, rows } = step);
    yield { count, cursor };
  } while (cursor !== null);
}

/** Counts the jobs that match a query, in a bounded number of store steps. */
export async function countSome(store: Pick<Store, "inspect">, query: ParsedQuery): Promise<JobCount> {
  let steps = 0;
  for await (const { count, cursor } of countSteps(store, query))
    if (cursor === null || ++steps === MOST_STEPS) return { count, isComplete: cursor === null };
  return { count: 0, isComplete: true };
}

/** Counts all jobs that match a query. */
export async function countJobs(
  { inspect, jobs }: Pick<Store, "inspect" | "jobs">,
  query: ParsedQuery,
  signal?: AbortSignal,
): Promise<number> {
  signal?.throwIfAborted();
  let count = 0;
  if (query.ids) {
    for await (const row of loadInParts({ jobs }, query.ids)) {
      signal?.throwIfAborted();
      if (row && matches(row, query)) count += 1;
    }
    return count;
  }
  for await (const step of countSteps({ inspect }, query)) {
    signal?.throwIfAborted();
    count = step.count;
  }
  return count;
}
