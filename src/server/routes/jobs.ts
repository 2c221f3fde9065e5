import { z } from "zod";
import { show } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { dueAtOf, type JobRow, type JobState } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import { loadBrief } from "../../engine/find/bounded-reader.ts";
import { firstJobs } from "../../engine/find/find-jobs.ts";
import type { RemoteEnqueued, RemoteJob } from "../../engine/remote/service.ts";
import { BASE, PATHS } from "../../ojs/paths.ts";
import { errorFields, instantText } from "../../ojs/wire-fields.ts";
import { briefText, jobText } from "../../ojs/write-job.ts";
import { warned } from "../http/body-warnings.ts";
import { conflict, notFound } from "../http/failures.ts";
import { HttpError, refusedField } from "../http/http-error.ts";
import { turn } from "../http/turn.ts";
import { byKey, json, type Reply, type Route, type RouteContext, reply, route } from "../route.ts";
import { readJob } from "../wire/enqueue.ts";
import { countOwn, isInternal, withoutInternal } from "../wire/internal-jobs.ts";
import { type JobTexts, readTexts } from "../wire/job-page.ts";
import { cursorAfter, pageRequestOf } from "../wire/pages.ts";
import { pressureHeaders, refuseTooMany } from "../wire/pressure.ts";
import { retryFields } from "../wire/queue-config.ts";
import { batchReplySchema, jobReplySchema, jobsReplySchema, retriesReplySchema } from "../wire/replies.ts";
import {
  batchSchema,
  type EnqueueBody,
  emptySchema,
  enqueueSchema,
  extendSchema,
  jobQuery,
  jobsQuery,
  resultQuery,
} from "../wire/schemas.ts";
import { versionWarnings } from "../wire/unknown-version.ts";
import { cancelBy, jobId, jobReply, loadJob, ownJob, plainRoutes, retryBy } from "./job-actions.ts";

const TAG = "jobs";
/** Characters. Larger payloads are checked in one turn of the event loop and stored in the next. */
const LARGE_PAYLOAD = 100_000;
const PLAIN = plainRoutes(TAG);

/** A middleware of the conformance suite; only with its flag. */
function refuseForSuite(body: EnqueueBody): void {
  if (body.type !== "test.middleware.reject" || body.args.length > 0 || body.meta?.ojs_validate !== true)
    return;
  throw new HttpError(422, "schema_validation", "args: the validating middleware refused an empty list");
}

function prepare(body: EnqueueBody, now: Instant, { isConformance, service }: RouteContext): RemoteJob {
  if (isConformance) refuseForSuite(body);
  return readJob(body, now, service.documentLimit);
}

function notUnique({ type }: JobRow, existing: string | undefined): HttpError {
  const message = `unique: job ${existing} of type ${type} has the same key, and nothing was added`;
  return new HttpError(409, "duplicate", message, {
    details: { existing_job_id: existing ?? null, unique_key_conflict: true },
  });
}

/** A batch is all or none, but a taken key shows only when a job is added. */
function refuseRejecting(jobs: readonly EnqueueBody[]): void {
  const index = jobs.findIndex(({ unique, options }) => {
    const rule = options?.unique ?? unique;
    const isPaced = rule?.debounce != null || rule?.throttle != null;
    return rule && !isPaced && (rule.on_conflict ?? "reject") === "reject";
  });
  if (index < 0) return;
  throw refusedField(
    `jobs.${index}.unique`,
    'a batch is stored as a whole, so no job of it can be rejected; write on_conflict "ignore" or "replace", or enqueue the job alone',
  );
}

function duplicate(id: string): HttpError {
  return new HttpError(409, "duplicate", `A job with the id ${id} exists already`, {
    details: { job_id: id, existing_job_id: id },
  });
}

const enqueue = route("POST", `${BASE}${PATHS.jobs}`, "enqueue", {
  scope: "tenant",
  tag: TAG,
  summary: "Enqueue a job",
  reply: jobReplySchema,
  body: enqueueSchema,
  replies: {
    200: "Another job has its unique key: that one",
    201: "The job is durable",
    409: "The id is known, or another job has its unique key",
    422: "The retry policy cannot be kept",
  },
  run: ({ body }, context) => enqueueJob(body, context),
});

export async function enqueueJob(body: EnqueueBody, context: RouteContext): Promise<Reply> {
  const now = context.engine.now();
  const job = prepare(body, now, context);
  if (job.payload.length > LARGE_PAYLOAD) await turn();
  const [made] = await context.service.enqueue([job], now);
  const { row, duplicate: isKnown, existing, isRejected } = made as RemoteEnqueued;
  if (isRejected) throw notUnique(row, existing);
  if (existing !== undefined) return jobReply(200, row);
  if (isKnown) throw duplicate(row.id);
  const stored = reply(201, `{"job":${jobText(row)}}`, {
    Location: `/ojs/v1/jobs/${row.id}`,
    ...pressureHeaders(row.queue, context),
  });
  return job.wire ? warned(stored, versionWarnings(context.engine.schemas, job)) : stored;
}

const enqueueBatch = route("POST", `${BASE}${PATHS.batch}`, "enqueue", {
  scope: "tenant",
  tag: TAG,
  summary: "Enqueue many jobs: all or none",
  reply: batchReplySchema,
  body: batchSchema,
  replies: { 201: "All jobs are durable", 409: "An id is known, and nothing was stored" },
  async run({ body }, context) {
    const now = context.engine.now();
    refuseRejecting(body.jobs);
    const jobs = body.jobs.map((job) => prepare(job, now, context));
    const ids = body.jobs.flatMap(({ id }) => (id ? [id] : []));
    await refuseKnown(ids, context);
    await refuseTooMany(jobs, context);
    const made = await context.service.enqueue(jobs, now);
    const known = made.find((job) => job.duplicate && job.existing === undefined);
    if (known) throw duplicate(known.row.id);
    const texts = made.map(({ row, isBrief }) => (isBrief ? briefText(row) : jobText(row)));
    const warnings = jobs.flatMap((job, index) =>
      job.wire ? versionWarnings(context.engine.schemas, job, `jobs.${index}.`) : [],
    );
    return warned(reply(201, `{"jobs":[${texts.join(",")}],"count":${texts.length}}`), warnings);
  },
});

/** Looks up the client's own ids first, so that a known id stops the whole batch. */
async function refuseKnown(ids: readonly string[], { engine }: RouteContext): Promise<void> {
  const seen = new Set<string>();
  for (const id of ids) {
    if (seen.has(id)) throw duplicate(id);
    seen.add(id);
  }
  if (ids.length === 0) return;
  const rows = await loadBrief(engine.store, ids);
  const known = rows.find((row) => row !== null);
  if (known) throw duplicate(known.id);
}

const get = route("GET", "/ojs/v1/jobs/:id", "read", {
  scope: "tenant",
  tag: TAG,
  summary: "Look at a job",
  reply: jobReplySchema,
  query: jobQuery,
  replies: { 200: "The job", 404: "There is no such job" },
  async run({ params, query }, context) {
    const { wait_ms } = query;
    if (wait_ms === undefined) return jobReply(200, await loadJob(params.id ?? "", context));
    const id = jobId(params);
    const row = await context.service.whenEnded(id, wait_ms);
    if (!row || isInternal(row)) throw notFound("job", id);
    return jobReply(200, row);
  },
});

const list = route("GET", `${BASE}${PATHS.jobs}`, "read", {
  scope: "tenant",
  tag: TAG,
  summary: "List jobs in the order of their ids",
  reply: jobsReplySchema,
  query: jobsQuery,
  replies: { 200: "A page of jobs" },
  async run({ query }, { engine }) {
    const { queue, type, state, cursor, offset, limit = 50 } = query;

    const filter = {
      ...(queue && { queue }),
      ...(type && { type }),
      ...(state && { state: state as JobState }),
    };
    const { skipped } = pageRequestOf({ limit, offset, cursor });
    const find = withoutInternal(async ({ after = null, limit: count = 1 }) => {
      const rows = await firstJobs(engine.store, filter, after, count + 1);
      const jobs = rows.slice(0, count);
      const last = rows.length > count ? (jobs.at(-1)?.id ?? null) : null;
      return { jobs, cursor: last, scanned: jobs.length };
    });
    const read = (from: string | null, count: number) => find({ after: from, limit: count });
    const after = cursor ? checkCursor(cursor) : await cursorAfter(skipped, read);
    const [page, total] = await Promise.all([
      after === "end" ? { texts: [], cursor: null } : readTexts(read, after, limit),
      countOwn(engine, filter),
    ]);
    return listReply(page, limit, { total: total.count, total_is_exact: total.isComplete });
  },
});

function checkCursor(cursor: string): string {
  if (!UUID.test(cursor))
    throw refusedField(
      "cursor",
      `${show(cursor)} is not a cursor of this server; leave it out to start over`,
    );
  return cursor;
}

/** A page of jobs. The last page has no cursor. */
export function listReply(
  { texts, cursor }: Pick<JobTexts, "texts" | "cursor">,
  limit: number,
  total = {},
): Reply {
  const pagination = { ...total, has_more: cursor !== null, next_cursor: cursor, limit };
  const end = JSON.stringify({ pagination, ...total }).slice(1);
  return reply(200, `{"jobs":[${texts.join(",")}],${end}`);
}

const activate = route("POST", "/ojs/v1/jobs/:id/activate", "operate", {
  scope: "tenant",
  tag: TAG,
  summary: "Make a pending job available",
  reply: jobReplySchema,
  body: emptySchema,
  replies: {
    200: "The job",
    404: "There is no such job",
    409: "The job is not pending, or only its limit holds it",
  },
  run: async ({ params, identity }, context) =>
    jobReply(200, await context.service.rows.activate(await ownJob(params, context), byKey(identity))),
});

const result = route("GET", "/ojs/v1/jobs/:id/result", "read", {
  scope: "tenant",
  tag: TAG,
  summary: "The result or the error of an ended job",
  query: resultQuery,
  replies: {
    200: "Its result, or the error that it ended with",
    404: "There is no such job",
    408: "It did not end within the timeout",
    409: "It has not ended",
  },
  async run({ params, query }, { service }) {
    const id = jobId(params);
    const isWaited = query.wait === "true";
    const wait = (query.timeout ?? LONGEST_WAIT) * 1_000;
    const row = isWaited ? await service.whenEnded(id, wait) : await service.rows.load(id);
    if (!row) throw notFound("job", id);
    if (isTerminal(row.state)) return reply(200, endText(row));
    if (!isWaited) throw conflict(row, "result");
    const message = `result: the job is still ${row.state}; ask again`;
    throw new HttpError(408, "timeout", message, { retryable: true, details: { state: row.state } });
  },
});

/** Seconds. */
const LONGEST_WAIT = 30;

function endText(row: JobRow): string {
  const { id, state, finishedAt, errors } = row;
  const last = state === "discarded" ? errors?.at(-1) : undefined;
  const head = JSON.stringify({
    job_id: id,
    state,
    completed_at: instantText(finishedAt as Instant),
    ...(last && { error: errorFields(last) }),
  });
  return state === "completed" ? `${head.slice(0, -1)},"result":${row.result ?? "null"}}` : head;
}

const retries = route("GET", "/ojs/v1/jobs/:id/retries", "read", {
  scope: "tenant",
  tag: TAG,
  summary: "The failed attempts of a job, and its retry policy",
  reply: retriesReplySchema,
  replies: { 200: "The failed attempts that are remembered, oldest first", 404: "There is no such job" },
  async run({ params }, context) {
    const row = await loadJob(params.id ?? "", context);
    const errors = row.errors ?? [];
    const isWaiting = row.state === "retryable";
    const retries = errors.map((error, index) => {
      const { attempt, message, type, code, occurred_at } = errorFields(error);
      const isLast = index === errors.length - 1;
      return {
        attempt,
        state: isLast && row.state === "discarded" ? "discarded" : "failed",
        error: message,
        type,
        code,
        failed_at: occurred_at,
        ...(isLast && isWaiting && { next_retry_at: instantText(dueAtOf(row.rank)) }),
      };
    });
    const retry = row.policy?.retry ?? row.options?.settings?.retry;
    const policy = retry ? retryFields(retry) : {};
    return json(200, { job_id: row.id, state: row.state, attempt: row.attempt, retries, policy });
  },
});

const limit = (value: number | "none" | null | undefined) =>
  value === "none" ? ("none" as const) : ({ milliseconds: value as number } as const);

const extend = route("PATCH", "/ojs/v1/jobs/:id", "operate", {
  scope: "tenant",
  tag: TAG,
  summary: "Change the limits of a waiting or running job, or the priority of a waiting one",
  reply: jobReplySchema,
  body: extendSchema,
  replies: { 200: "The job", 404: "There is no such job", 409: "Its time is already up" },
  async run({ params, body, identity }, context) {
    const { service } = context;
    const { timeout_ms, total_timeout_ms, heartbeat_timeout_ms, priority } = body;
    const limits = {
      ...(timeout_ms != null && { attempt: limit(timeout_ms) }),
      ...(total_timeout_ms != null && { total: limit(total_timeout_ms) }),
      ...(heartbeat_timeout_ms != null && { heartbeat: limit(heartbeat_timeout_ms) }),
    };
    const id = await ownJob(params, context);
    const by = byKey(identity);
    if (priority == null) return jobReply(200, await service.rows.extend(id, limits, by));
    const row = await service.rows.prioritise(id, priority, by);
    return jobReply(200, Object.keys(limits).length === 0 ? row : await service.rows.extend(id, limits, by));
  },
});

const explain = route("GET", "/ojs/v1/jobs/:id/explain", "read", {
  scope: "tenant",
  tag: TAG,
  summary: "Explain for every limit of a job who set it, and its effect",
  query: z.looseObject({}),
  replies: { 200: "The explanation", 404: "There is no such job" },
  run: async ({ params }, { engine }) => json(200, { explanation: await engine.explain(jobId(params)) }),
});

export const jobRoutes: readonly Route[] = [
  enqueue,
  enqueueBatch,
  list,
  get,
  cancelBy("DELETE", "/ojs/v1/jobs/:id", "cancel", PLAIN),
  cancelBy("POST", "/ojs/v1/jobs/:id/cancel", "cancel", PLAIN),
  activate,
  retryBy("/ojs/v1/jobs/:id/retry", PLAIN),
  result,
  retries,
  extend,
  explain,
];
