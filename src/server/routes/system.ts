import { json, type Route, type RouteContext, reply, route } from "../route.ts";
import { healthReplySchema } from "../wire/replies.ts";

const TAG = "system";
const CHECK_WITHIN = 2_000;

/** Whether the store answers within 2 s. */
async function storeAnswers({ engine, service }: RouteContext): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = service.system.after(CHECK_WITHIN, () => resolve(false), { keepAlive: true });
    const settle = (isUp: boolean) => () => {
      timer.cancel();
      resolve(isUp);
    };
    engine.store.clock().then(settle(true), settle(false));
  });
}

/** What a health reply says about the store. */
export async function checkStore(context: RouteContext) {
  const { system } = context.service;
  const askedAt = system.monotonic();
  const status = (await storeAnswers(context)) ? "healthy" : "unhealthy";
  const latency = Math.round((system.monotonic() - askedAt) * 100) / 100;
  return { type: context.engine.store.capabilities.name, status, latency_ms: latency } as const;
}

const healthBy = (path: string) =>
  route("GET", path, "open", {
    scope: "anyone",
    tag: TAG,
    summary: "Whether the server and its store are up",
    reply: healthReplySchema,
    replies: { 200: "Both are", 503: "The store does not answer" },
    async run(_call, context) {
      const backend = await checkStore(context);
      const { status } = backend;
      return json(status === "healthy" ? 200 : 503, {
        status,
        version: context.version,
        uptime_seconds: context.uptime(),
        backend,
      });
    },
  });

const ready = route("GET", "/ready", "open", {
  scope: "anyone",
  tag: TAG,
  summary: "Whether the server takes requests, and its own workers take jobs",
  replies: {
    200: "They do",
    503: "It is closing, its store does not answer, or a worker in it takes no jobs",
  },
  async run(_call, context) {
    if (!context.isReady()) return json(503, { status: "closing" });
    if (!(await storeAnswers(context))) return json(503, { status: "store_unavailable" });
    return context.engine.ownWorkers.every((worker) => worker.status().ready)
      ? json(200, { status: "ready" })
      : json(503, { status: "worker_unready" });
  },
});

const manifest = route("GET", "/ojs/manifest", "open", {
  scope: "anyone",
  tag: TAG,
  summary: "What this server is and can do",
  replies: { 200: "The manifest" },
  run: (_call, { version, engine }) =>
    json(200, {
      specversion: "1.0",
      ojs_version: "1.0",
      implementation: { name: "curfew", version, language: "typescript" },
      conformance_level: 4,
      protocols: ["http"],
      backend: engine.store.capabilities.name,
      capabilities: {
        events: true,
        dead_letter: true,
        batch_enqueue: true,
        priority: true,
        delayed_jobs: true,
        job_ttl: true,
        queue_pause: true,
        cron: true,
        cron_jobs: true,
        workflows: true,
        unique_jobs: true,
        live_events: true,
        bulk_operations: true,
        rate_limiting: true,
        multi_tenancy: true,
        fair_scheduling: true,
        backpressure: true,
        webhooks: true,
        admin_api: true,
        timeouts: ["execution", "total", "enqueue_ttl", "grace", "heartbeat"],
        soft_timeout: true,
        fencing: true,
      },
      extensions: [
        "progress",
        "graceful-shutdown",
        "observability",
        "encryption",
        "serverless",
        "middleware",
        "durable-execution",
        "timeouts",
        "admin-api",
        "dead-letter",
        "backpressure",
        "rate-limiting",
        "schema-registry",
        "job-versioning",
        "multi-tenancy",
        "fair-scheduling",
        "webhooks",
      ],
    }),
});

const metrics = route("GET", "/metrics", "read", {
  scope: "server",
  tag: TAG,
  summary: "Counters for Prometheus",
  replies: { 200: "The text format of Prometheus" },
  run: async (_call, context) => reply(200, await context.metrics(), { "Content-Type": "text/plain" }),
});

const openapi = route("GET", "/openapi.json", "open", {
  scope: "anyone",
  tag: TAG,
  summary: "This document",
  replies: { 200: "OpenAPI 3.1" },
  run: (_call, context) => reply(200, context.openapi(), { "Content-Type": "application/json" }),
});

export const systemRoutes: readonly Route[] = [
  healthBy("/health"),
  healthBy("/ojs/v1/health"),
  ready,
  manifest,
  metrics,
  openapi,
];
