import { refuse } from "../../core/errors.ts";
import { isInternalQueue } from "../../core/job/internal-queue.ts";
import type { JobRow } from "../../core/job/job.ts";
import { tenantOf } from "../../core/tenant/tenant-name.ts";
import type { Store } from "../../ports/store.ts";
import { loadInParts } from "./bounded-reader.ts";
import { matches, type ParsedQuery } from "./job-query.ts";

/** A page of stored rows. */
export interface RowPage {
  readonly jobs: readonly JobRow[];
  readonly cursor: string | null;
  /** Upper bound of the rows that were read for this page. */
  readonly scanned: number;
  /** An index found them: all jobs were searched, not only those that were read. */
  readonly isIndexed?: true;
}

/** Marks the cursor of an index, which a scan cannot continue. */
const INDEXED = "index:";
/** Candidates that one request loads, and how many at a time: each may hold 3 MB. */
const MOST_CANDIDATES = 1_000;
const LOADED_AT_ONCE = 50;
/** Steps of one request that find no candidate: the text is common, but not here. */
const MOST_EMPTY = 3;
const SHORTEST_INDEXED = 3;

/** One page of a search by the index of the store; null if a scan has to do it. */
export async function findIndexed(
  { search, jobs }: Pick<Store, "jobs" | "search">,
  query: ParsedQuery,
  after: string | null,
  limit: number,
): Promise<RowPage | null> {
  const { text } = query.filter;
  const isContinued = after?.startsWith(INDEXED) ?? false;
  if (!search || text === undefined || (after !== null && !isContinued)) return null;
  if ([...text].length < SHORTEST_INDEXED) return null;
  const found: JobRow[] = [];
  let before = after === null ? null : after.slice(INDEXED.length);
  for (let scanned = 0; ; ) {
    const step = await search.find(text, before, LOADED_AT_ONCE);
    if (step === null) {
      if (isContinued) throw refuse("invalid_option", "cursor", after, "search again: the index is gone");
      return null;
    }
    const { candidates, next } = step;
    const rows = loadInParts(
      { jobs },
      candidates.map(({ id }) => id),
    );
    scanned += Math.max(1, candidates.length);
    let index = -1;
    for await (const row of rows) {
      index += 1;
      const { cursor } = candidates[index] as (typeof candidates)[number];
      // The index has the jobs of tenants too; their engines search without it.
      const isOwn = row && !isInternalQueue(row.queue) && tenantOf(row.queue) === undefined;
      if (isOwn && matches(row, query)) found.push(row);
      const isEnd = index === candidates.length - 1 && next === null;
      if (found.length >= limit)
        return { jobs: found, cursor: isEnd ? null : INDEXED + cursor, scanned, isIndexed: true };
    }
    if (next === null) return { jobs: found, cursor: null, scanned, isIndexed: true };
    before = next;
    if (scanned >= MOST_CANDIDATES || (candidates.length === 0 && scanned >= MOST_EMPTY))
      return { jobs: found, cursor: INDEXED + before, scanned, isIndexed: true };
  }
}
