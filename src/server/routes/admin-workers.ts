import { instantText } from "../../core/event/wire-fields.ts";
import type { Instant } from "../../core/time.ts";
import { RemoteWorkers, type WorkerDirective, type WorkerView } from "../../engine/remote/remote-workers.ts";
import { notFound } from "../failures.ts";
import { byKey, json, type Route, route } from "../route.ts";
import { workerReply, workersReply } from "../wire/admin-replies.ts";
import { adminPageQuery, workerParam } from "../wire/admin-schemas.ts";
import { pageOf } from "../wire/pages.ts";
import { emptySchema } from "../wire/schemas.ts";

const TAG = "admin";
const PATH = "/ojs/v1/admin/workers";

type State = "running" | "quiet" | "terminate" | "stale";

function stateOf(worker: WorkerView, now: Instant): State {
  if (RemoteWorkers.isStale(worker, now)) return "stale";
  if (worker.directive) return worker.directive;
  if (worker.state === "terminate") return "terminate";
  return RemoteWorkers.isStopped(worker) ? "quiet" : "running";
}

function fieldsOf(worker: WorkerView, now: Instant) {
  const { id, isRemote, seenAt, running, directive, about, state } = worker;
  return {
    queues: [],
    ...about,
    id,
    worker_id: id,
    state: stateOf(worker, now),
    reported_state: state,
    directive: directive ?? null,
    remote: isRemote,
    active_jobs: running,
    last_heartbeat_at: instantText(seenAt),
  };
}

function workerOf(params: Readonly<Record<string, string>>): string {
  const id = params.id ?? "";
  if (!workerParam.safeParse(id).success) throw notFound("worker", id);
  return id;
}

const list = route({
  method: "GET",
  path: PATH,
  right: "read",
  tag: TAG,
  summary: "List workers, in processes that have the store open and over the wire",
  reply: workersReply,
  query: adminPageQuery,
  replies: { 200: "A page of workers" },
  async run({ query }, { service, engine }) {
    const now = engine.now();
    const all = (await service.workers.list()).map((worker) => fieldsOf(worker, now));
    const summary = { total: all.length, running: 0, quiet: 0, terminate: 0, stale: 0 };
    for (const { state } of all) summary[state] += 1;
    return json(200, { ...pageOf(all, query), summary });
  },
});

const get = route({
  method: "GET",
  path: `${PATH}/:id`,
  right: "read",
  tag: TAG,
  summary: "Look at a worker",
  reply: workerReply,
  replies: { 200: "The worker", 404: "Nobody of that name was heard of lately" },
  async run({ params }, { service, engine }) {
    const id = workerOf(params);
    const worker = await service.workers.view(id);
    if (!worker) throw notFound("worker", id);
    const fields = fieldsOf(worker, engine.now());
    return json(200, { ...fields, worker: fields });
  },
});

const directBy = (action: string, directive: WorkerDirective | null, summary: string) =>
  route({
    method: "POST",
    path: `${PATH}/:id/${action}`,
    right: "operate",
    tag: TAG,
    summary,
    reply: workerReply,
    body: emptySchema,
    replies: {
      200: "It is told with its next beat",
      404: "Nobody of that name was heard of lately",
      409: "It is no remote worker: stop the process that it lives in",
    },
    async run({ params, identity }, { service, engine }) {
      const worker = await service.workers.direct(workerOf(params), directive, byKey(identity));
      const fields = fieldsOf(worker, engine.now());
      return json(200, { ...fields, worker: fields });
    },
  });

const remove = route({
  method: "DELETE",
  path: `${PATH}/:id`,
  right: "operate",
  tag: TAG,
  summary: "Forget a worker that stopped or is not heard of any more",
  replies: {
    200: "It is forgotten; its jobs are taken back when their own silence is over",
    404: "Nobody of that name was heard of lately",
    409: "It is alive, or no remote worker",
  },
  async run({ params, identity }, { service }) {
    const id = workerOf(params);
    await service.workers.forget(id, byKey(identity));
    return json(200, { deleted: true, worker_id: id });
  },
});

export const adminWorkerRoutes: readonly Route[] = [
  list,
  get,
  directBy("quiet", "quiet", "Tell a worker to take no more jobs"),
  directBy("terminate", "terminate", "Tell a worker to end"),
  directBy("resume", null, "Let a worker take jobs again"),
  remove,
];
