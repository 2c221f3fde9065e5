import type { z } from "zod";
import { checkQueueWeights } from "../../core/fair/worker-pool.ts";
import type { Sender } from "../../core/job/decide/holder.ts";
import { softKind } from "../../core/job/policy/deadlines.ts";
import type { BeatReport, JobBeat } from "../../engine/remote/remote-beats.ts";
import type { RemoteWorker } from "../../engine/remote/remote-workers.ts";
import type { Reported } from "../../engine/remote/report-types.ts";
import { BASE, PATHS } from "../../ojs/paths.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { deadlinesText, fetchedText, settledText } from "../../ojs/write-job.ts";
import type { Identity } from "../access/auth.ts";
import { conflict, notFound } from "../http/failures.ts";
import { json, type Reply, type Route, type RouteContext, reply, routesOf } from "../route.ts";
import { readDefinitions, visibilityOf } from "../wire/enqueue.ts";
import { beatReplySchema, fetchReplySchema, settledReplySchema } from "../wire/replies.ts";
import { callerOf, readFailure, readSuccess, senderOf } from "../wire/report.ts";
import * as schemas from "../wire/schemas.ts";
import { handlersOf, readVersions, type Versions } from "../wire/versions.ts";
import { jobId } from "./job-actions.ts";

const route = routesOf({ tag: "workers", scope: "tenant" });
/** Characters of fetched jobs in one reply. */
const FETCH_SIZE = 16_000_000;
/** Characters of the job types of one worker. All workers are read at once. */
const MOST_TYPES = 8_000;

/** What the fetch says, or else what the last beat of the worker said. */
async function versionsOf(
  { versions, handlers, worker_id: worker }: FetchBody,
  { service }: RouteContext,
): Promise<Versions | undefined> {
  const said = readVersions(versions, handlers);
  if (said || worker == null) return said;
  return readVersions(null, handlersOf((await service.workers.find(worker))?.about));
}

const fetchBy = (path: string) =>
  route("POST", path, "work", {
    summary: "Take jobs: their attempts start with this reply",
    reply: fetchReplySchema,
    body: schemas.fetchSchema,
    keepsNone: true,
    replies: { 200: "The jobs, each with its fence and deadlines; an empty list if there is none" },
    async run({ body, isGone, identity }, context) {
      const { service, engine } = context;
      if (body.pool != null && !service.pools.has(body.pool)) throw notFound("pool", body.pool);
      if (body.weights != null) checkQueueWeights(body.weights, body.queues, "weights");
      const rows = await service.fetch({
        isGone,
        queues: body.queues,
        pool: body.pool ?? undefined,
        strategy: body.strategy ?? undefined,
        weights: body.weights ?? undefined,
        count: body.count ?? 1,
        worker: body.worker_id ?? undefined,
        caller: callerOf(identity),
        hears: body.soft_timeout === true,
        visibility: visibilityOf(body.visibility_timeout_ms, body.visibility_timeout),
        definitions: readDefinitions(body.definitions),
        versions: await versionsOf(body, context),
        wait: body.wait_ms ?? undefined,
        key: body.fetch_id ?? undefined,
      });
      const now = engine.now();
      const texts: string[] = [];
      let size = 0;
      for (const row of rows) {
        // The rest goes back unspent: its worker could not read such a reply.
        if (size > FETCH_SIZE) {
          await service.report(row.id, { fence: row.fence }, () => ({ type: "release" }));
          continue;
        }
        const text = fetchedText(row, now);
        size += text.length;
        texts.push(text);
      }
      return reply(200, `{"jobs":[${texts.join(",")}]}`);
    },
  });

/** The reply to a report: 404 for an unknown job, 409 if the sender does not hold the job. */
function reported(id: string, sender: Sender, outcome: Reported, what: string): Reply {
  return reply(200, settledText(counted(id, sender, outcome, what)));
}

export function counted(id: string, sender: Sender, outcome: Reported, what: string) {
  if (outcome.ok) return outcome.row;
  if (outcome.because === "gone") throw notFound("job", id);
  throw conflict(outcome.row, what, sender);
}

const REPORT = {
  404: "There is no such job",
  409: "The sender does not hold the job; nothing was changed",
};

type FetchBody = Pick<z.output<typeof schemas.fetchSchema>, "versions" | "handlers" | "worker_id">;
type SucceedBody = Parameters<typeof readSuccess>[0];
type FailBody = Parameters<typeof readFailure>[0];

async function ack(id: string, body: SucceedBody, identity: Identity, context: RouteContext): Promise<Reply> {
  const sender = senderOf(body, identity, context);
  const { service } = context;
  const eventOf = readSuccess(body, service.documentLimit);
  return reported(id, sender, await service.report(id, sender, eventOf), "ack");
}

async function nack(id: string, body: FailBody, identity: Identity, context: RouteContext): Promise<Reply> {
  const sender = senderOf(body, identity, context);
  const eventOf = readFailure(body, context.engine.now());
  return reported(id, sender, await context.service.report(id, sender, eventOf), "nack");
}

const ACK = {
  summary: "Report that a job succeeded",
  reply: settledReplySchema,
  replies: { 200: "The job is completed", ...REPORT },
};

const ackJob = route("POST", `${BASE}${PATHS.ack}`, "work", {
  ...ACK,
  body: schemas.succeedSchema,
  run: ({ body, identity }, context) => ack(jobId({ id: body.job_id }), body, identity, context),
});

const ackByPath = route("POST", "/ojs/v1/jobs/:id/ack", "work", {
  ...ACK,
  body: schemas.succeedByPathSchema,
  run: ({ body, params, identity }, context) => ack(jobId(params), body ?? {}, identity, context),
});

const NACK = {
  summary: "Report that a job failed, or give it back",
  reply: settledReplySchema,
  replies: { 200: "The job waits for its retry, was given back, or has ended", ...REPORT },
};

const nackJob = route("POST", `${BASE}${PATHS.nack}`, "work", {
  ...NACK,
  body: schemas.failSchema,
  run: ({ body, identity }, context) => nack(jobId({ id: body.job_id }), body, identity, context),
});

const nackByPath = route("POST", "/ojs/v1/jobs/:id/nack", "work", {
  ...NACK,
  body: schemas.failByPathSchema,
  run: ({ body, params, identity }, context) => nack(jobId(params), body, identity, context),
});

/** The jobs that a beat names. `active_jobs` may be a plain number. */
function namedJobs(body: schemas.BeatBody, identity: Identity, context: RouteContext): JobBeat[] {
  const listed = Array.isArray(body.active_jobs) ? body.active_jobs : [];
  const worker = body.worker_id;
  const named = new Map<string, JobBeat>();
  const add = (entry: (typeof listed)[number], isWatched: boolean) => {
    const { id, fence } = typeof entry === "string" ? { id: entry, fence: undefined } : entry;
    const key = `${id} ${fence ?? ""}`;
    if (named.has(key)) return;
    named.set(key, { id, sender: senderOf({ fence, worker_id: worker }, identity, context), isWatched });
  };
  for (const entry of [...listed, ...(body.active_job_ids ?? [])]) add(entry, false);
  for (const entry of body.watched_jobs ?? []) add(entry, true);
  return [...named.values()];
}

function workerOf(body: schemas.BeatBody, now: number, running: number): RemoteWorker {
  const { hostname, pid, queues, handlers, concurrency, labels } = body;
  // A range that nobody can read must not reach the fetches of the worker.
  readVersions(null, handlers);
  // Without a list, the worker counts as one that takes all types.
  const job_types = JSON.stringify(body.job_types ?? []).length <= MOST_TYPES ? body.job_types : undefined;
  const about = Object.fromEntries(
    Object.entries({ hostname, pid, queues, job_types, handlers, concurrency, labels }).filter(
      ([, value]) => value != null,
    ),
  ) as RemoteWorker["about"];
  return {
    id: body.worker_id,
    seenAt: now,
    state: body.state ?? (body.shutdown ? "drain" : "running"),
    running,
    ...(about && { about }),
  };
}

async function beat(body: schemas.BeatBody, identity: Identity, context: RouteContext): Promise<Reply> {
  const { service, engine, isConformance } = context;
  const jobs = namedJobs(body, identity, context);
  const running = typeof body.active_jobs === "number" ? body.active_jobs : jobs.length;
  const worker = workerOf(body, engine.now(), running);
  const report = await service.beat(worker, jobs, body.visibility_timeout_ms ?? undefined);
  const hook = isConformance ? report.jobs.map(({ row }) => row?.options?.meta?.test_directive) : [];
  const wanted = hook.find((directive) => directive === "quiet" || directive === "terminate");
  const state = wanted ?? report.directive ?? "running";
  const extended = report.jobs.filter(({ directive, beat }) => directive === "continue" && !beat.isWatched);
  const told = report.jobs.map((job) => directiveText(job, report.now)).join(",");
  return reply(
    200,
    `{"acknowledged":true,"state":"${state}","directive":"${state}","jobs_extended":${extended.length}` +
      `,"server_time":"${instantText(report.now)}","jobs":[${told}]}`,
  );
}

/** The directive for one job that a beat named. */
function directiveText(
  { beat: { id, sender }, directive, row }: BeatReport["jobs"][number],
  now: number,
): string {
  const fence = sender.fence === undefined ? "" : `,"fence":${sender.fence}`;
  const head = `{"id":${JSON.stringify(id)}${fence},"directive":"${directive}"`;
  if (row === null || directive === "cancel" || directive === "lost") return `${head}}`;
  const deadlines = `,"deadlines":${deadlinesText(row, now)}`;
  if (directive === "continue") return `${head}${deadlines}}`;
  const hardAt = row.hardAt === null ? "null" : `"${instantText(row.hardAt)}"`;
  return `${head}${deadlines},"deadline":${hardAt},"kind":"${softKind(row)}"}`;
}

const beatBy = (path: string) =>
  route("POST", path, "work", {
    summary: "Send a heartbeat for the worker and for each job it names",
    reply: beatReplySchema,
    body: schemas.beatSchema,
    keepsNone: true,
    replies: { 200: "The directive for the worker and for each named job" },
    run: ({ body, identity }, context) => beat(body, identity, context),
  });

const STOPPING = new Set(["drain", "draining", "terminate", "shutting_down"]);

const health = route("GET", "/ojs/v1/workers/:id/health", "read", {
  summary: "The health of a remote worker",
  replies: { 200: "It works", 404: "No worker of this name sent a heartbeat lately", 503: "It is stopping" },
  async run({ params }, { service }) {
    const id = params.id ?? "";
    const worker = schemas.workerId.safeParse(id).success ? await service.workers.load(id) : null;
    if (!worker) throw notFound("worker", id);
    return json(STOPPING.has(worker.state) ? 503 : 200, {
      worker_id: id,
      state: worker.state,
      active_jobs: worker.running,
      last_heartbeat_at: instantText(worker.seenAt),
      ...worker.about,
    });
  },
});

export const workerRoutes: readonly Route[] = [
  fetchBy(`${BASE}${PATHS.fetch}`),
  fetchBy("/ojs/v1/jobs/fetch"),
  ackJob,
  ackByPath,
  nackJob,
  nackByPath,
  beatBy(`${BASE}${PATHS.beat}`),
  beatBy("/ojs/v1/workers/beat"),
  health,
];
