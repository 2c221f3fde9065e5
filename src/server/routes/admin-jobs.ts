import type { z } from "zod";
import { loadInParts } from "../../engine/find/bounded-reader.ts";
import type { PageOptions } from "../../engine/find/find-jobs.ts";
import { isIdPrefix, type JobQuery } from "../../engine/find/job-query.ts";
import type { BulkOptions, BulkResult } from "../../engine/operations/bulk.ts";
import { BASE, PATHS } from "../../ojs/paths.ts";
import { revealedText } from "../../ojs/write-job.ts";
import { type HttpError, refusedField } from "../http/http-error.ts";
import { byKey, type Route, type RouteContext, reply, routesOf } from "../route.ts";
import {
  adminJobReply,
  adminJobsReply,
  bulkReply as bulkReplySchema,
  nearMissesReply,
} from "../wire/admin-replies.ts";
import {
  adminJobsQuery,
  type BulkBody,
  bulkSchema,
  nearMissesQuery,
  prioritySchema,
} from "../wire/admin-schemas.ts";
import { filledCopy } from "../wire/enqueue.ts";
import { bulkReply, readBulk, readFilter } from "../wire/filter.ts";
import { countOwn, withoutInternal } from "../wire/internal-jobs.ts";
import { jobsPage, nearMissText, pageRequestOf, scannedPage } from "../wire/pages.ts";
import { jobReplySchema } from "../wire/replies.ts";
import { emptySchema, enqueueSchema } from "../wire/schemas.ts";
import { isSortKey, sortedPage } from "../wire/sorted-jobs.ts";
import { ADMIN, cancelBy, loadJob, ownJob, retryBy } from "./job-actions.ts";
import { enqueueJob } from "./jobs.ts";

const route = routesOf({ tag: "admin", scope: "tenant" });
const PATH = "/ojs/v1/admin/jobs";

export const listJobs = route("GET", PATH, "read", {
  summary: "Look for jobs, the newest first",
  isShared: true,
  reply: adminJobsReply,
  query: adminJobsQuery,
  replies: { 200: "A page of jobs; a short page may not be the last" },
  run({ query }, context) {
    const { engine, service } = context;
    if (query.search !== undefined) return searchPage(query, query.search, context);
    const filter = readFilter(query, engine.now());
    if (isSortKey(query.sort))
      return sortedPage(query, {
        by: query.sort,
        isUpward: query.order === "asc",
        find: withoutInternal((page) => service.rows.findBrief(filter, page)),
        load: (ids) => loadInParts(engine.store, ids),
      });
    const isUpward = query.order === "asc" || (query.sort === "created_at" && query.order === undefined);
    return jobsPage(
      query,
      withoutInternal((page) => service.rows.find(filter, { ...page, newestFirst: !isUpward })),
      () => countOwn(engine, filter),
    );
  },
});

/** A shorter text is no id prefix: it would match too many payloads. */
const SHORTEST_PREFIX = 8;

/** Finds jobs by id prefix, else by a text in the payload. Only the payload search has a cursor. */
async function searchPage(
  query: z.output<typeof adminJobsQuery>,
  text: string,
  { engine, service }: RouteContext,
) {
  const { perPage, cursor, skipped } = pageRequestOf(query);
  if (skipped > 0) throw searchedByCursor(query.offset === undefined ? "page" : "offset");
  const filter = readFilter(query, engine.now());
  if (cursor === null && text.length >= SHORTEST_PREFIX && isIdPrefix(text)) {
    const byId = (page: PageOptions) => service.rows.find({ ...filter, idPrefix: text }, page);
    const first = await byId({ limit: 1 });
    if (first.jobs.length > 0) return scannedPage(byId, null, perPage, { more: { matched_by: "id" } });
  }
  const newestFirst = query.order !== "asc";
  return scannedPage(
    (page) => service.rows.find({ ...filter, text }, { ...page, newestFirst }),
    cursor,
    perPage,
    { more: { matched_by: "payload" } },
  );
}

function searchedByCursor(field: "page" | "offset"): HttpError {
  return refusedField(field, "a search begins at its first page; continue with cursor");
}

const nearMisses = route("GET", `${PATH}/near-misses`, "read", {
  summary: "Completed jobs that used more than 80 % of a limit or were late, the newest first",
  reply: nearMissesReply,
  query: nearMissesQuery,
  replies: { 200: "A page; a request looks at 10,000 jobs at most, and says how far it came" },
  run({ query }, { engine, service }) {
    const { perPage, cursor } = pageRequestOf(query);
    const filter = { ...readFilter(query, engine.now()), nearMiss: true as const };
    const find = (page: PageOptions) => service.rows.find(filter, { ...page, newestFirst: true });
    return scannedPage(find, cursor, perPage, { show: nearMissText });
  },
});

const get = route("GET", `${PATH}/:id`, "read", {
  summary: "Look at a job and all that happened to it",
  reply: adminJobReply,
  replies: { 200: "The job", 404: "There is no such job" },
  run: async ({ params }, context) => ADMIN.show(await loadJob(params.id ?? "", context)),
});

const prioritise = route("PATCH", `${PATH}/:id`, "operate", {
  summary: "Give a waiting job another priority",
  reply: adminJobReply,
  body: prioritySchema,
  replies: { 200: "The job", 404: "There is no such job", 409: "The job does not wait" },
  async run({ params, body, identity }, context) {
    const id = await ownJob(params, context);
    return ADMIN.show(await context.service.rows.prioritise(id, body.priority, byKey(identity)));
  },
});

const run = route("POST", `${PATH}/:id/run`, "operate", {
  summary: "Run a scheduled or retryable job now: what is left of its delay or backoff is dropped",
  reply: adminJobReply,
  body: emptySchema,
  replies: {
    200: "The job; it waits for its limit if it has one",
    404: "There is no such job",
    409: "The job is neither scheduled nor retryable",
  },
  run: async ({ params, identity }, context) =>
    ADMIN.show(await context.service.rows.runNow(await ownJob(params, context), byKey(identity))),
});

const reveal = route("POST", `${PATH}/:id/reveal`, "operate", {
  summary: "See a job with what is redacted; the audit records who did and why",
  reply: jobReplySchema,
  body: emptySchema,
  replies: { 200: "The job, nothing redacted", 404: "There is no such job" },
  async run({ params, identity }, context) {
    const row = await context.service.rows.reveal(await ownJob(params, context), byKey(identity));
    return reply(200, `{"job":${revealedText(row)}}`, { "Cache-Control": "no-store" });
  },
});

const copy = route("POST", `${PATH}/:id/copy`, "enqueue", {
  summary: 'Enqueue a job like this one: "[redacted]" stands for what the job has at the same place',
  reply: jobReplySchema,
  body: enqueueSchema,
  replies: { 201: "The copy is durable", 404: "There is no such job", 409: "Another job has its unique key" },
  async run({ params, body }, context) {
    const source = await loadJob(params.id ?? "", context);
    return enqueueJob(filledCopy(body, source), context);
  },
});

const BULK: Readonly<
  Record<string, (query: JobQuery, options: BulkOptions, context: RouteContext) => Promise<BulkResult>>
> = {
  retry: (query, options, { engine }) => engine.bulk.retry(query, options),
  cancel: (query, options, { engine }) => engine.bulk.cancel(query, options),
  delete: (query, options, { engine }) => engine.bulk.delete(query, options),
};

/** The jobs of a bulk action. All jobs only with `all: true`. */
function meant({ filter, job_ids }: BulkBody, now: number): JobQuery {
  const query = { ...(filter && readFilter(filter, now)), ...(job_ids && { ids: job_ids }) };
  if (Object.keys(query).length === 0)
    throw refusedField("filter", "it is empty; send a filter, job_ids, or all: true for every job");
  return query;
}

function countsFromEnd(): HttpError {
  return refusedField(
    "filter.older_than",
    "it counts from the end of a job, and ended jobs cannot be cancelled; use until",
  );
}

const DONE = { retry: "retried", cancel: "cancelled", delete: "deleted" } as const;

const bulkBy = (path: string, action: keyof typeof DONE, what: string, isConfirmed = false) =>
  route("POST", `${path}/bulk/${action}`, "operate", {
    summary: what,
    reply: bulkReplySchema,
    body: bulkSchema,
    replies: { 200: "What was done" },
    async run({ body, identity, isGone }, context) {
      const options = readBulk(isConfirmed ? { ...body, confirm: true } : body, identity, isGone);
      if (action === "cancel" && body.filter?.older_than) throw countsFromEnd();
      const act = BULK[action] as (typeof BULK)[string];
      const result = await act(meant(body, context.engine.now()), options, context);
      return bulkReply(action, options, result, DONE[action]);
    },
  });

const bulkRoutesBy = (path: string, isConfirmed?: boolean) => [
  bulkBy(path, "retry", "Run discarded jobs again", isConfirmed),
  bulkBy(path, "cancel", "End jobs that wait or run", isConfirmed),
  bulkBy(path, "delete", "Delete jobs that have ended", isConfirmed),
];

/**
 * Bulk routes for producers and the public command line, which send no `confirm`. They too must name the jobs. They stand
 * before the routes of single jobs, whose id could be "bulk".
 */
export const bulkRoutes: readonly Route[] = bulkRoutesBy(`${BASE}${PATHS.jobs}`, true);

export const adminJobRoutes: readonly Route[] = [
  listJobs,
  nearMisses,
  ...bulkRoutesBy(PATH),
  get,
  cancelBy("POST", `${PATH}/:id/cancel`, "operate", ADMIN),
  retryBy(`${PATH}/:id/retry`, ADMIN),
  run,
  reveal,
  copy,
  prioritise,
];
