import type { Instant } from "../../core/time.ts";
import type { Engine } from "../../engine/engine.ts";
import type { MaintenanceView } from "../../engine/queues/maintenance-record.ts";
import { durationOf } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { byKey, json, type Reply, type Route, reply, route } from "../route.ts";
import { configReply, maintenanceReply, metricsReply, middlewareReply } from "../wire/admin-replies.ts";
import { maintenanceSchema, metricsQuery } from "../wire/admin-schemas.ts";
import { RECENTLY } from "../wire/counts.ts";

const TAG = "admin";

const at = (instant: Instant | null) => (instant === null ? null : instantText(instant));

/** Field names of the specification, and of the public clients. */
function maintenanceFields(view: MaintenanceView | null): Reply {
  const startedAt = at(view?.startedAt ?? null);
  return json(200, {
    enabled: view !== null,
    maintenance: view !== null,
    reason: view?.reason ?? null,
    started_at: startedAt,
    enabled_at: startedAt,
    ends_at: at(view?.endsAt ?? null),
    estimated_end: at(view?.estimatedEnd ?? view?.endsAt ?? null),
  });
}

/** The schema has checked that it is a duration. */
const timeOf = (text: string) => ({ milliseconds: durationOf(text) as number });

const getMaintenance = (path: string) =>
  route("GET", path, "read", {
    scope: "tenant",
    tag: TAG,
    summary: "Whether jobs are handed out",
    isShared: true,
    reply: maintenanceReply,
    replies: { 200: "Whether it is on, since when, and until when" },
    run: async (_call, { engine }) => maintenanceFields(await engine.maintenance.status()),
  });

const setMaintenance = (method: "POST" | "PUT", path: string) =>
  route(method, path, "operate", {
    scope: "tenant",
    tag: TAG,
    summary: "Hand out no more jobs of any queue, or go on",
    reply: maintenanceReply,
    body: maintenanceSchema,
    replies: {
      200: "Fetches get nothing and crons do not fire, here at once and in other processes within 5 s; jobs are taken in",
    },
    async run({ body, identity }, { engine }) {
      const by = byKey(identity);
      if (!body.enabled) {
        await engine.maintenance.end(by);
        return maintenanceFields(null);
      }
      const { reason, duration, estimated_duration } = body;
      return maintenanceFields(
        await engine.maintenance.begin(
          {
            ...(reason && { reason }),
            ...(duration && { for: timeOf(duration) }),
            ...(estimated_duration && { estimate: timeOf(estimated_duration) }),
          },
          by,
        ),
      );
    },
  });

const getConfig = (path: string) =>
  route("GET", path, "read", {
    scope: "anyone",
    tag: TAG,
    summary: "The settings of this server, without secrets",
    reply: configReply,
    replies: { 200: "Its settings" },
    run: (_call, { engine, config, uptime, version }) => {
      const { capabilities } = engine.store;
      return json(200, {
        implementation: { name: "curfew", version },
        uptime_seconds: uptime(),
        store: capabilities,
        backend: capabilities.name,
        events: { recorded: !engine.journal.isForbidden },
        ...config,
      });
    },
  });

/** Names of the middleware of the workers, outer to inner, each once. */
function workerMiddleware({ ownWorkers }: Pick<Engine, "ownWorkers">): readonly string[] {
  const all = new Set(ownWorkers.flatMap(({ middleware }) => middleware));
  return [...all].map(({ name }) => name || "anonymous");
}

const middleware = route("GET", "/ojs/v1/middleware", "read", {
  scope: "tenant",
  tag: TAG,
  summary: "The middleware of this process; remote workers do not report theirs",
  reply: middlewareReply,
  replies: { 200: "Middleware by phase, outer to inner" },
  run: (_call, { engine, isConformance }) => {
    const enqueue = isConformance ? ["conformance.validate"] : [];
    const fields = (phase: string) => (name: string, index: number) => ({ name, phase, order: index + 1 });
    return json(200, {
      enqueue: enqueue.map(fields("enqueue")),
      execution: workerMiddleware(engine).map(fields("execution")),
    });
  },
});

const metrics = route("GET", "/ojs/v1/metrics", "read", {
  scope: "tenant",
  tag: "system",
  summary: "The main counters as JSON; all of them for Prometheus with format=prometheus, or at /metrics",
  reply: metricsReply,
  query: metricsQuery,
  replies: { 200: "Counters of this process, and what all processes do now" },
  async run({ query }, { engine, service, metrics, uptime }) {
    if (query.format === "prometheus") return reply(200, await metrics(), { "Content-Type": "text/plain" });
    const counters = engine.counters();
    const [stats, workers] = await Promise.all([
      engine.stats({ since: RECENTLY, by: "queue" }),
      service.workers.list(),
    ]);
    const { depth, completed, failed, run } = stats.total;
    const seconds = Math.max(1, (stats.until - stats.since) / 1_000);
    return json(200, {
      uptime_seconds: uptime(),
      jobs_enqueued_total: counters.enqueued,
      jobs_completed_total: counters.completed,
      jobs_failed_total: counters.failed,
      jobs_discarded_total: counters.discarded,
      jobs_cancelled_total: counters.cancelled,
      jobs_active: depth.active,
      jobs_available: depth.available,
      queues_active: stats.groups.length,
      workers_active: workers.length,
      avg_latency_ms: run === null ? 0 : Math.round(run.mean * 100) / 100,
      throughput_per_second: Math.round(((completed + failed) / seconds) * 100) / 100,
    });
  },
});

/** The specification and the public admin page write `system`, the public command line omits it. */
const MAINTENANCE = ["/ojs/v1/admin/system/maintenance", "/ojs/v1/admin/maintenance"];
const CONFIG = ["/ojs/v1/admin/system/config", "/ojs/v1/admin/config"];

export const adminSystemRoutes: readonly Route[] = [
  ...MAINTENANCE.flatMap((path) => [
    getMaintenance(path),
    setMaintenance("POST", path),
    setMaintenance("PUT", path),
  ]),
  ...CONFIG.map(getConfig),
  middleware,
  metrics,
];
