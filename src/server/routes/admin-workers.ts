import type { Instant } from "../../core/time.ts";
import { RemoteWorkers, type WorkerDirective, type WorkerView } from "../../engine/remote/remote-workers.ts";
import type { Service } from "../../engine/remote/service.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { directiveReply, workerReply, workersReply } from "../wire/admin-replies.ts";
import { adminPageQuery, directiveSchema, workerParam } from "../wire/admin-schemas.ts";
import { pageOf } from "../wire/pages.ts";
import { emptySchema } from "../wire/schemas.ts";

const route = routesOf({ tag: "admin", scope: "tenant" });
const PATH = "/ojs/v1/admin/workers";

type State = "running" | "quiet" | "terminate" | "stale";

export function workerState(worker: WorkerView, now: Instant): State {
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
    state: workerState(worker, now),
    reported_state: state,
    directive: directive ?? null,
    remote: isRemote,
    active_jobs: running,
    last_heartbeat_at: instantText(seenAt),
    last_heartbeat: instantText(seenAt),
  };
}

function workerOf(params: Readonly<Record<string, string>>): string {
  const id = params.id ?? "";
  if (!workerParam.safeParse(id).success) throw notFound("worker", id);
  return id;
}

/** Lists that are being read. All workers may fill 200 MB, so requests at the same time share one read. */
const lists = new WeakMap<Service, Promise<WorkerView[]>>();

function listed(service: Service): Promise<WorkerView[]> {
  const known = lists.get(service);
  if (known) return known;
  const list = service.workers.list().finally(() => lists.delete(service));
  lists.set(service, list);
  return list;
}

const listBy = (path: string) =>
  route("GET", path, "read", {
    summary: "List workers, in processes that have the store open and over the wire",
    isShared: true,
    reply: workersReply,
    query: adminPageQuery,
    replies: { 200: "A page of workers" },
    async run({ query }, { service, engine }) {
      const now = engine.now();
      const all = (await listed(service))
        .map((worker) => fieldsOf(worker, now))
        .sort((a, b) => (a.id < b.id ? -1 : 1));
      const summary = { total: all.length, running: 0, quiet: 0, terminate: 0, stale: 0 };
      for (const { state } of all) summary[state] += 1;
      const { items, pagination } = pageOf(all, query, ({ id }) => id);
      return json(200, { items, workers: items, pagination, summary });
    },
  });

const MOST_DIRECTED = 1_000;

/** Directs every live remote worker. Workers that start later are not affected. */
const directAll = route("POST", `${PATH}/directive`, "operate", {
  summary: "Tell all remote workers to stop fetching, to shut down, or to resume",
  reply: directiveReply,
  body: directiveSchema,
  replies: {
    200: "The number of workers; each gets the directive with its next beat. Not complete above 1,000",
  },
  async run({ body, identity }, { service, engine }) {
    const now = engine.now();
    const alive = (await service.workers.list()).filter(
      (worker) => worker.isRemote && !RemoteWorkers.isStale(worker, now),
    );
    const told = alive.slice(0, MOST_DIRECTED);
    const directive = body.directive === "resume" ? null : body.directive;
    for (const { id } of told) await service.workers.direct(id, directive, byKey(identity));
    const isComplete = told.length === alive.length;
    return json(200, { directive: body.directive, workers: told.length, is_complete: isComplete });
  },
});

const get = route("GET", `${PATH}/:id`, "read", {
  summary: "Look at a worker",
  reply: workerReply,
  replies: { 200: "The worker", 404: "No worker of this name sent a heartbeat lately" },
  async run({ params }, { service, engine }) {
    const id = workerOf(params);
    const worker = await service.workers.view(id);
    if (!worker) throw notFound("worker", id);
    const fields = fieldsOf(worker, engine.now());
    return json(200, { ...fields, worker: fields });
  },
});

const directBy = (action: string, directive: WorkerDirective | null, summary: string) =>
  route("POST", `${PATH}/:id/${action}`, "operate", {
    summary,
    reply: workerReply,
    body: emptySchema,
    replies: {
      200: "It gets the directive with its next beat",
      404: "No worker of this name sent a heartbeat lately",
      409: "It is no remote worker: stop its process",
    },
    async run({ params, identity }, { service, engine }) {
      const worker = await service.workers.direct(workerOf(params), directive, byKey(identity));
      const fields = fieldsOf(worker, engine.now());
      return json(200, { ...fields, worker: fields });
    },
  });

const remove = route("DELETE", `${PATH}/:id`, "operate", {
  summary: "Forget a worker that stopped or is silent",
  replies: {
    200: "It is forgotten; its jobs are taken back when their heartbeat runs out",
    404: "No worker of this name sent a heartbeat lately",
    409: "It is alive, or no remote worker",
  },
  async run({ params, identity }, { service }) {
    const id = workerOf(params);
    await service.workers.forget(id, byKey(identity));
    return json(200, { deleted: true, worker_id: id });
  },
});

export const adminWorkerRoutes: readonly Route[] = [
  listBy(PATH),
  listBy("/ojs/v1/workers"),
  directAll,
  get,
  directBy("quiet", "quiet", "Tell a worker to stop fetching"),
  directBy("terminate", "terminate", "Tell a worker to shut down"),
  directBy("resume", null, "Let a worker fetch again"),
  remove,
];
