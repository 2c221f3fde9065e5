import type { JobCount, JobPage, PageOptions } from "../../engine/bulk/finder.ts";
import { HttpError } from "../errors.ts";
import { type Reply, reply } from "../route.ts";
import type { PageQuery } from "./admin-schemas.ts";
import { jobText } from "./job.ts";

const PER_PAGE = 20;
/** Who asks for a page by its number walks over all pages before it; a cursor costs the same everywhere. */
const MOST_SKIPPED = 5_000;
const STEP = 1_000;

/** Where a list is to be read. */
interface Place {
  readonly page: number;
  readonly perPage: number;
  readonly cursor: string | null;
}

export function placeOf({ page = 1, per_page, limit, cursor }: PageQuery): Place {
  return { page, perPage: per_page ?? limit ?? PER_PAGE, cursor: cursor || null };
}

/** A page out of a list that is held as a whole. */
export function pageOf<Item>(all: readonly Item[], query: PageQuery) {
  const { page, perPage } = placeOf(query);
  const from = (page - 1) * perPage;
  const items = all.slice(from, from + perPage);
  const hasMore = from + perPage < all.length;
  const pagination = { total: all.length, page, per_page: perPage, has_more: hasMore, next_cursor: null };
  return { items, pagination };
}

/** What follows a page of a list that was asked for one item more than it shows. */
export function cursorPage<Item>(found: readonly Item[], limit: number, cursorOf: (item: Item) => string) {
  const items = found.slice(0, limit);
  const last = found.length > limit ? items.at(-1) : undefined;
  return { items, pagination: { has_more: last !== undefined, next_cursor: last ? cursorOf(last) : null } };
}

/** A page of jobs, by number or by cursor, and how many there are as far as that was counted. */
export async function jobsPage(
  query: PageQuery,
  find: (page: PageOptions) => Promise<JobPage>,
  count: () => Promise<JobCount>,
): Promise<Reply> {
  const { page, perPage, cursor } = placeOf(query);
  const after = cursor ?? (page === 1 ? null : await skipped((page - 1) * perPage, find));
  const [found, counted] = await Promise.all([
    after === "end" ? END : find({ after, limit: perPage }),
    count(),
  ]);
  const pagination = {
    total: counted.count,
    total_is_exact: counted.isComplete,
    page,
    per_page: perPage,
    has_more: found.cursor !== null,
    next_cursor: found.cursor,
  };
  const items = found.jobs.map((row) => jobText(row)).join(",");
  return reply(200, `{"items":[${items}],"pagination":${JSON.stringify(pagination)}}`);
}

const END: JobPage = { jobs: [], cursor: null };

/** The cursor behind so many jobs. A step may find less than it was asked for, so it is steps that are counted, too. */
async function skipped(count: number, find: (page: PageOptions) => Promise<JobPage>): Promise<string> {
  if (count > MOST_SKIPPED) throw tooFar();
  let cursor: string | null = null;
  let left = count;
  for (let steps = 0; left > 0; steps++) {
    if (steps > MOST_SKIPPED / STEP) throw tooFar();
    const found: JobPage = await find({ after: cursor, limit: Math.min(left, STEP) });
    left -= found.jobs.length;
    if (found.cursor === null) return "end";
    cursor = found.cursor;
  }
  return cursor as string;
}

function tooFar(): HttpError {
  const message = `page: the first ${MOST_SKIPPED} jobs can be read by page; go on with cursor, or narrow the filter`;
  return new HttpError(400, "invalid_request", message, { details: { field: "page" } });
}
