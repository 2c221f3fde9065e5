import type { JobRow } from "../../core/job/job.ts";
import { type NearMiss, nearMissOf } from "../../core/job/policy/near-miss.ts";
import type { JobCount, PageOptions, RowPage } from "../../engine/find/find-jobs.ts";
import { jobText } from "../../ojs/write-job.ts";
import { type HttpError, refusedField } from "../http/http-error.ts";
import { type Reply, reply } from "../route.ts";
import type { PageQuery } from "./admin-schemas.ts";
import { type JobTexts, readTexts, skipRows } from "./job-page.ts";

const PER_PAGE = 20;
/** A page by number reads all pages before it. A cursor costs the same everywhere. */
const MOST_SKIPPED = 5_000;
const STEP = 1_000;

interface PageRequest {
  readonly page: number;
  readonly perPage: number;
  readonly cursor: string | null;
  /** Entries before the page; 0 with a cursor. */
  readonly skipped: number;
}

/** Where a page begins: after a cursor, at an offset, or at a page by number. */
export function pageRequestOf(query: PageQuery, usual = PER_PAGE): PageRequest {
  const { per_page, limit, offset } = query;
  const perPage = per_page ?? limit ?? usual;
  const cursor = query.cursor || null;
  if (offset !== undefined && (query.page !== undefined || cursor !== null)) {
    const other = cursor === null ? "page" : "cursor";
    throw refusedField("offset", `${offset} contradicts ${other}; send one of them`);
  }
  const page = query.page ?? Math.floor((offset ?? 0) / perPage) + 1;
  return { page, perPage, cursor, skipped: cursor === null ? (offset ?? (page - 1) * perPage) : 0 };
}

/** A page of a list in memory, which is in the order of its cursors. */
export function pageOf<Item>(all: readonly Item[], query: PageQuery, cursorOf: (item: Item) => string) {
  const { page, perPage, cursor, skipped } = pageRequestOf(query);
  const from = cursor === null ? skipped : all.filter((item) => cursorOf(item) <= cursor).length;
  const items = all.slice(from, from + perPage);
  const last = items.at(-1);
  const hasMore = from + perPage < all.length && last !== undefined;
  const total = { count: all.length, isComplete: true };
  return { items, pagination: pagination(total, { page, perPage }, hasMore ? cursorOf(last) : null) };
}

/** What a reply says about its page. `next` is the cursor of the next one; null if there is none. */
export function pagination(
  total: JobCount,
  { page, perPage }: Pick<PageRequest, "page" | "perPage">,
  next: string | null,
) {
  return {
    total: total.count,
    total_is_exact: total.isComplete,
    page,
    per_page: perPage,
    has_more: next !== null,
    next_cursor: next,
  };
}

interface Listing<Item> {
  /** Items after a cursor, in cursor order. */
  readonly list: (after: string | null, limit: number) => Promise<readonly Item[]>;
  readonly cursorOf: (item: Item) => string;
  /** The filter. Left out: all items. */
  readonly isWanted?: ((item: Item) => boolean) | undefined;
  /** The default page size. */
  readonly usual?: number;
}

/**
 * A page of a list in cursor order. A page by number is read from the start. With a filter, a page may be short without
 * being the last.
 */
export async function listedPage<Item>(query: PageQuery, { list, cursorOf, isWanted, usual }: Listing<Item>) {
  const { page, perPage, cursor, skipped } = pageRequestOf(query, usual);
  const wanted = skipped + perPage + 1;
  const found: Item[] = [];
  let after = cursor;
  let isEnd = false;
  for (let looked = 0; !isEnd && found.length < wanted && looked < MOST_SKIPPED; ) {
    const asked = isWanted ? STEP : Math.min(wanted - found.length, STEP);
    const some = await list(after, asked);
    found.push(...(isWanted ? some.filter(isWanted) : some));
    looked += some.length;
    isEnd = some.length < asked;
    const last = some.at(-1);
    if (last !== undefined) after = cursorOf(last);
  }
  if (!isEnd && found.length < wanted && skipped > 0) throw tooFar();
  const items = found.slice(skipped, skipped + perPage);
  const last = items.at(-1);
  const next = found.length < wanted ? after : last === undefined ? null : cursorOf(last);
  const hasMore = found.length >= wanted || !isEnd;
  const total = { count: found.length, isComplete: isEnd && cursor === null };
  return { items, pagination: pagination(total, { page, perPage }, hasMore ? next : null) };
}

/** A page of jobs, by number or by cursor, and the count as far as it goes. */
export async function jobsPage(
  query: PageQuery,
  find: (page: PageOptions & { readonly limit: number }) => Promise<RowPage>,
  count: () => Promise<JobCount>,
): Promise<Reply> {
  const { page, perPage, cursor, skipped } = pageRequestOf(query);
  const read = (after: string | null, limit: number) => find({ after, limit });
  const after = cursor ?? (await cursorAfter(skipped, read));
  const [found, counted] = await Promise.all([
    after === "end" ? END : readTexts(read, after, perPage),
    count(),
  ]);
  return jobsReply(
    found.texts,
    pagination(counted, { page, perPage }, await cursorOfMore(read, found.cursor)),
  );
}

/** The cursor, or null if no job follows it: a full last page ends with a cursor, too, and leads to an empty one. */
export async function cursorOfMore(
  read: Parameters<typeof skipRows>[0],
  cursor: string | null,
): Promise<string | null> {
  if (cursor === null) return null;
  const next = await read(cursor, 1);
  return next.jobs.length > 0 || next.cursor !== null ? cursor : null;
}

/** Jobs that are JSON texts already, and their page. */
export function jobsReply(texts: readonly string[], page: ReturnType<typeof pagination>): Reply {
  return reply(200, `{"items":[${texts.join(",")}],"pagination":${JSON.stringify(page)}}`);
}

/** A page of a search that reads jobs one by one. It says how many it read. */
export async function scannedPage(
  find: (page: PageOptions) => Promise<RowPage>,
  after: string | null,
  perPage: number,
  { show, more }: { readonly show?: (row: JobRow) => string; readonly more?: object } = {},
): Promise<Reply> {
  const read = (from: string | null, limit: number) => find({ after: from, limit });
  const { texts, cursor, scanned, isIndexed } = await readTexts(read, after, perPage, show);
  const pagination = { per_page: perPage, has_more: cursor !== null, next_cursor: cursor };
  const said = JSON.stringify({
    scanned,
    is_complete: cursor === null,
    by_index: isIndexed,
    ...more,
    pagination,
  });
  return reply(200, `{"items":[${texts.join(",")}],${said.slice(1)}`);
}

/** A job that nearly timed out, and the limit. */
export function nearMissText(row: JobRow): string {
  const { kind, used, limit, late } = nearMissOf(row) as NearMiss;
  const said = JSON.stringify({ kind, used: Math.round(used * 1_000) / 1_000, limit_ms: limit, late });
  return `${said.slice(0, -1)},"job":${jobText(row)}}`;
}

const END: JobTexts = { texts: [], cursor: null, scanned: 0, isIndexed: false };

/** The cursor after `count` jobs from the start; "end" if there are fewer. */
export async function cursorAfter(
  count: number,
  read: Parameters<typeof skipRows>[0],
): Promise<string | null> {
  if (count === 0) return null;
  const cursor = count > MOST_SKIPPED ? null : await skipRows(read, count);
  if (cursor === null) throw tooFar();
  return cursor;
}

function tooFar(): HttpError {
  return refusedField(
    "page",
    `only the first ${MOST_SKIPPED} entries can be read by page or offset, fewer if they are large; continue with cursor, or narrow the filter`,
  );
}
