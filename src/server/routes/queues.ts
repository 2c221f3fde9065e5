import { instantText } from "../../core/event/wire-fields.ts";
import { byKey, json, type Route, route } from "../route.ts";
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

const PAUSES = {
  pause: {
    summary: "Hand out no more jobs of a queue; it goes on taking them in",
    replies: { 200: "It is paused, for every worker" },
  },
  resume: { summary: "Hand out jobs of a queue again", replies: { 200: "It is not paused" } },
} as const;

const pauseBy = (path: string, action: "pause" | "resume") =>
  route({
    method: "POST",
    path: `${path}/:queue/${action}`,
    right: "operate",
    tag: TAG,
    reply: pausedReply,
    body: emptySchema,
    ...PAUSES[action],
    async run({ params, identity }, { engine }) {
      const name = queueOf(params);
      await engine[action](name, byKey(identity));
      const isPaused = action === "pause";
      const status = isPaused ? "paused" : "active";
      const at = isPaused ? { paused_at: instantText(engine.now()) } : {};
      const queue = { name, paused: isPaused, status, state: status, ...at };
      return json(200, { ...queue, queue });
    },
  });

export const queueRoutes: readonly Route[] = [
  stats,
  ...PATHS.flatMap((path) => [listBy(path), getBy(path), pauseBy(path, "pause"), pauseBy(path, "resume")]),
];
