import { dueAtOf, type JobRow } from "../../core/job/job.ts";
import { BoundedReader } from "../../engine/find/bounded-reader.ts";
import type { PageOptions, RowPage } from "../../engine/find/find-jobs.ts";
import { jobText } from "../../ojs/write-job.ts";
import { refusedField } from "../http/http-error.ts";
import type { Reply } from "../route.ts";
import type { PageQuery } from "./admin-schemas.ts";
import { limited } from "./job-page.ts";
import { jobsReply, pageRequestOf, pagination } from "./pages.ts";

/** No store keeps jobs in these orders, so all that fit the filter are read; only what they are sorted by is kept. */
const KEYS = {
  scheduled_at: ({ rank, finishedAt }: JobRow) => finishedAt ?? dueAtOf(rank),
  priority: ({ priority }: JobRow) => priority,
} as const;

export type SortKey = keyof typeof KEYS;

export function isSortKey(name: string | undefined): name is SortKey {
  return name !== undefined && Object.hasOwn(KEYS, name);
}

const MOST_SORTED = 5_000;
const STEP = 50;
/** Characters of rows that one step reads. */
const READ_SIZE = 4_000_000;
/** Characters of jobs in one reply. A page that is full ends early, and its cursor continues. */
const PAGE_SIZE = 2_000_000;
/** A cursor of a sorted list is a count: there is no position in the store to continue from. */
const CURSOR = /^sorted-(\d{1,7})$/;

interface SortedJobs {
  readonly by: SortKey;
  readonly isUpward: boolean;
  readonly find: (page: PageOptions & { readonly limit: number }) => Promise<RowPage>;
  readonly load: (ids: readonly string[]) => AsyncIterable<JobRow | null>;
}

/** A page of jobs in an order that no store has. Refused where the filter fits too many. */
export function sortedPage(query: PageQuery, sorted: SortedJobs): Promise<Reply> {
  return limited(() => readPage(query, sorted));
}

async function readPage(query: PageQuery, { by, isUpward, find, load }: SortedJobs): Promise<Reply> {
  const { page, perPage, cursor, skipped } = pageRequestOf(query);
  const from = cursor === null ? skipped : Number(CURSOR.exec(cursor)?.[1] ?? Number.NaN);
  if (Number.isNaN(from))
    throw refusedField("cursor", "not a cursor of this sorted list; leave it out to start over");
  const found: { readonly id: string; readonly key: number }[] = [];
  // Rows are brief, unless the filter needs whole ones, and a number of each is kept.
  const reader = new BoundedReader(READ_SIZE);
  for (let after: string | null = null; ; ) {
    const read: Pick<RowPage, "jobs" | "cursor"> = await reader.read(
      (from, limit) => find({ after: from, limit }),
      after,
      STEP,
    );
    const { jobs, cursor: next } = read;
    for (const row of jobs) found.push({ id: row.id, key: KEYS[by](row) });
    if (found.length > MOST_SORTED)
      throw refusedField(
        "sort",
        `more than ${MOST_SORTED} jobs fit, and ${by} has no index; narrow the filter`,
      );
    after = next;
    if (after === null) break;
  }
  const sign = isUpward ? 1 : -1;
  found.sort((a, b) => sign * (a.key - b.key || (a.id < b.id ? -1 : 1)));
  const ids = found.slice(from, from + perPage).map(({ id }) => id);
  const texts: string[] = [];
  let [size, read] = [0, 0];
  for await (const row of load(ids)) {
    read += 1;
    if (!row) continue;
    const text = jobText(row);
    texts.push(text);
    size += text.length;
    if (size >= PAGE_SIZE) break;
  }
  const next = from + read < found.length ? `sorted-${from + read}` : null;
  return jobsReply(texts, pagination({ count: found.length, isComplete: true }, { page, perPage }, next));
}
