import { byKey, json, type Reply, type Route, type RouteContext, route } from "../route.ts";
import { pausedReply, queueReply, queueStatsReply, queuesReply } from "../wire/admin-replies.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import { pageOf } from "../wire/pages.ts";
import { describeQueue, describeQueues, queueOf } from "../wire/queues.ts";
import { emptySchema } from "../wire/schemas.ts";

const TAG = "queues";
/** The same queues under both names: the interface of the specification, and the one for operators. */
const PATHS = ["/ojs/v1/queues", "/ojs/v1/admin/queues"] as const;

const listBy = (path: string) =>
  route({
    method: "GET",
    path,
    right: "read",
    tag: TAG,
    summary: "List queues",
    reply: queuesReply,
    query: adminPageQuery,
    replies: { 200: "A page of queues" },
    async run({ query }, { engine }) {
      const { items, pagination } = pageOf(await describeQueues(engine), query);
      return json(200, { queues: items, items, pagination });
    },
  });

const getBy = (path: string) =>
  route({
    method: "GET",
    path: `${path}/:queue`,
    right: "read",
    tag: TAG,
    summary: "Look at a queue",
    reply: queueReply,
    replies: { 200: "The queue, whether it has anything or not" },
    async run({ params }, { engine }) {
      const queue = await describeQueue(engine, queueOf(params));
      return json(200, { ...queue, queue });
    },
  });

const stats = route({
  method: "GET",
  path: "/ojs/v1/queues/:queue/stats",
  right: "read",
  tag: TAG,
  summary: "How many jobs a queue has",
  reply: queueStatsReply,
  replies: { 200: "Jobs that wait or run now, and those that ended in the last 24 hours" },
  async run({ params }, { engine }) {
    const { counts, name, depth, ...rest } = await describeQueue(engine, queueOf(params));
    const { paused, status, throughput } = rest;
    const flat = { name, depth, paused, status, ...counts };
    return json(200, { ...flat, throughput, queue: flat, stats: { ...flat, queue: name } });
  },
});

async function paused(name: string, isPaused: boolean, { engine }: RouteContext): Promise<Reply> {
  const status = isPaused ? "paused" : "active";
  const fields = { name, paused: isPaused, status, state: status };
  const at = isPaused ? { paused_at: new Date(engine.now()).toISOString() } : {};
  return json(200, { ...fields, ...at, queue: { ...fields, ...at } });
}

const pauseBy = (path: string) =>
  route({
    method: "POST",
    path: `${path}/:queue/pause`,
    right: "operate",
    tag: TAG,
    summary: "Hand out no more jobs of a queue; it goes on taking them in",
    reply: pausedReply,
    body: emptySchema,
    replies: { 200: "It is paused, for every worker" },
    async run({ params, identity }, context) {
      const name = queueOf(params);
      await context.engine.pause(name, byKey(identity));
      return paused(name, true, context);
    },
  });

const resumeBy = (path: string) =>
  route({
    method: "POST",
    path: `${path}/:queue/resume`,
    right: "operate",
    tag: TAG,
    summary: "Hand out jobs of a queue again",
    reply: pausedReply,
    body: emptySchema,
    replies: { 200: "It is not paused" },
    async run({ params, identity }, context) {
      const name = queueOf(params);
      await context.engine.resume(name, byKey(identity));
      return paused(name, false, context);
    },
  });

export const queueRoutes: readonly Route[] = [
  stats,
  ...PATHS.flatMap((path) => [listBy(path), getBy(path), pauseBy(path), resumeBy(path)]),
];
