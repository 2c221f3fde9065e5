import type { RowPage } from "../../engine/find/find-jobs.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { HttpError } from "../http/http-error.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import {
  pausedReply,
  priorityStatsReply,
  queueReply,
  queueStatsReply,
  queuesReply,
} from "../wire/admin-replies.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import { pageOf } from "../wire/pages.ts";
import { changedConfig, newQueueSchema } from "../wire/queue-config.ts";
import { describeQueue, describeQueues, queueOf } from "../wire/queues.ts";
import { emptySchema } from "../wire/schemas.ts";

const route = routesOf({ tag: "queues", scope: "tenant" });
/** The path of the specification, and the path for operators. */
const PATHS = ["/ojs/v1/queues", "/ojs/v1/admin/queues"] as const;

const listBy = (path: string) =>
  route("GET", path, "read", {
    summary: "List queues",
    isShared: true,
    reply: queuesReply,
    query: adminPageQuery,
    replies: { 200: "A page of queues" },
    async run({ query }, { engine }) {
      const { items, pagination } = pageOf(await describeQueues(engine), query, ({ name }) => name);
      return json(200, { queues: items, items, pagination });
    },
  });

const getBy = (path: string) =>
  route("GET", `${path}/:queue`, "read", {
    summary: "Look at a queue",
    reply: queueReply,
    replies: { 200: "The queue; every valid name is one" },
    async run({ params }, { engine }) {
      const queue = await describeQueue(engine, queueOf(params));
      return json(200, { ...queue, running: queue.counts.active, queue });
    },
  });

const stats = route("GET", "/ojs/v1/queues/:queue/stats", "read", {
  summary: "How many jobs a queue has",
  reply: queueStatsReply,
  replies: { 200: "Jobs that wait or run now, and those that ended in the last 24 hours" },
  async run({ params }, { engine }) {
    const { counts, name, depth, ...rest } = await describeQueue(engine, queueOf(params));
    const { paused, status, throughput } = rest;
    const flat = { name, depth, paused, status, ...counts, dead: rest.dead_letters };
    return json(200, { ...flat, throughput, queue: flat, stats: { ...flat, queue: name } });
  },
});

const MOST_COUNTED = 10_000;
const AT_ONCE = 1_000;

const priorities = route("GET", "/ojs/v1/queues/:queue/priority-stats", "read", {
  summary: "How many available jobs of a queue have which priority",
  reply: priorityStatsReply,
  replies: { 200: "Counts by priority, the highest first" },
  async run({ params }, { service }) {
    const queue = queueOf(params);
    const counts = new Map<number, number>();
    let counted = 0;
    let after: string | null = null;
    for (let steps = 0; steps < MOST_COUNTED / AT_ONCE && counted < MOST_COUNTED; steps++) {
      const found: RowPage = await service.rows.find(
        { queue, state: "available" },
        { after, limit: AT_ONCE },
      );
      for (const { priority } of found.jobs) counts.set(priority, (counts.get(priority) ?? 0) + 1);
      counted += found.jobs.length;
      after = found.cursor;
      if (after === null) break;
    }
    const distribution = [...counts]
      .sort(([a], [b]) => b - a)
      .map(([priority, count]) => ({ priority, count }));
    return json(200, { queue, distribution, counted, is_complete: after === null });
  },
});

const create = route("POST", "/ojs/v1/queues", "operate", {
  summary: "Give a queue settings before it has jobs; a queue needs no creation",
  reply: queueReply,
  body: newQueueSchema,
  replies: { 201: "The queue" },
  async run({ body, identity }, { engine }) {
    const { name } = body;
    await engine.queues.configure(name, changedConfig({}, body), byKey(identity));
    const queue = await describeQueue(engine, name);
    return json(201, { ...queue, queue });
  },
});

const remove = route("DELETE", "/ojs/v1/queues/:queue", "operate", {
  summary: "Forget the settings and the pause of a queue that has no live jobs",
  replies: {
    200: "It is forgotten; jobs that have ended stay",
    409: "It has live jobs: purge or finish them",
  },
  async run({ params, identity }, { engine }) {
    const name = queueOf(params);
    const { depth, counts } = await describeQueue(engine, name);
    if (depth + counts.active > 0) {
      const message = `queue: "${name}" has ${depth} jobs that wait and ${counts.active} that run; purge or finish them first`;
      throw new HttpError(409, "conflict", message, {
        details: { queue: name, depth, active: counts.active },
      });
    }
    await engine.queues.reset(name, byKey(identity));
    await engine.queues.resume(name, byKey(identity));
    return json(200, { deleted: true, name });
  },
});

const PAUSES = {
  pause: {
    summary: "Hand out no more jobs of a queue; it still accepts new ones",
    replies: { 200: "It is paused for every worker" },
  },
  resume: { summary: "Hand out jobs of a queue again", replies: { 200: "It is not paused" } },
} as const;

const pauseBy = (path: string, action: "pause" | "resume") =>
  route("POST", `${path}/:queue/${action}`, "operate", {
    reply: pausedReply,
    body: emptySchema,
    ...PAUSES[action],
    async run({ params, identity }, { engine }) {
      const name = queueOf(params);
      await engine.queues[action](name, byKey(identity));
      const isPaused = action === "pause";
      const status = isPaused ? "paused" : "active";
      const at = { [isPaused ? "paused_at" : "resumed_at"]: instantText(engine.now()) };
      const queue = { name, paused: isPaused, status, state: status, ...at };
      return json(200, { ...queue, queue });
    },
  });

export const queueRoutes: readonly Route[] = [
  stats,
  priorities,
  create,
  remove,
  ...PATHS.flatMap((path) => [listBy(path), getBy(path), pauseBy(path, "pause"), pauseBy(path, "resume")]),
];
