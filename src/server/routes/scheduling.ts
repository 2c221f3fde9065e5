import { INTERNAL } from "../../core/job/internal-queue.ts";
import type { Engine } from "../../engine/engine.ts";
import { QUEUES } from "../../engine/queues/queue-settings-cache.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { json, type Route, routesOf } from "../route.ts";
import { schedulingReply, sharesReply } from "../wire/fair.ts";
import { queueOf } from "../wire/queues.ts";

const route = routesOf({ tag: "queues", scope: "tenant" });
/** What the figures are counted over. Statistics have minutes, and the running one is not whole. */
const WINDOW = "5m";
const MINUTES = 5;
const MOST_FAIR_QUEUES = 20;
const KEYS_SHOWN = 20;

async function sharesFields(engine: Engine, queue: string, most: number) {
  const { isFair, keys, hasMore } = await engine.queues.shares(queue);
  return {
    queue,
    fair: isFair,
    items: keys.slice(0, most).map(({ key, weight, share, waiting, nextDueAt }) => ({
      key,
      weight,
      share,
      waiting,
      next_due_at: instantText(nextDueAt),
    })),
    has_more: hasMore || keys.length > most,
  };
}

const shares = route("GET", "/ojs/v1/admin/queues/:queue/shares", "read", {
  summary: "What waits of each fair key of a queue, the keys with the most jobs first",
  reply: sharesReply,
  replies: { 200: "At most 1,000 keys; up to 10,000 jobs are counted of each" },
  run: async ({ params }, { engine }) => json(200, await sharesFields(engine, queueOf(params), 1_000)),
});

const stats = route("GET", "/ojs/v1/admin/scheduling/stats", "read", {
  summary: "How starts are distributed over queues, and over the fair keys of fair queues",
  reply: schedulingReply,
  replies: { 200: "The last five minutes" },
  async run(_call, { engine }) {
    const [recent, settings] = await Promise.all([
      engine.stats({ since: WINDOW, by: "queue" }),
      QUEUES.all(engine.store),
    ]);
    const groups = recent.groups.filter(({ queue }) => queue !== null && !queue.startsWith(INTERNAL));
    const started = groups.reduce((sum, group) => sum + group.started, 0);
    const queues = groups.map(({ queue, started: own, wait, depth }) => ({
      name: queue as string,
      dispatch_count: own,
      dispatch_count_1m: Math.round(own / MINUTES),
      dispatch_ratio: started === 0 ? 0 : own / started,
      dispatch_ratio_1m: started === 0 ? 0 : own / started,
      median_wait_ms: wait?.p50 ?? null,
      active_jobs: depth.active,
      available_jobs: depth.available,
    }));
    const names = [...settings].filter(([, { body }]) => body.fair).map(([name]) => name);
    const fair = await Promise.all(
      names.slice(0, MOST_FAIR_QUEUES).map((name) => sharesFields(engine, name, KEYS_SHOWN)),
    );
    const body = { queues, fair_queues: fair, window: "PT5M" };
    return json(200, { ...body, stats: body });
  },
});

export const schedulingRoutes: readonly Route[] = [shares, stats];
