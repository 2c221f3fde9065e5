import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Context, Hono } from "hono";
import { refuseUnknownKeys } from "../core/errors.ts";
import { keysOf } from "../core/option-keys.ts";
import type { Engine } from "../engine/engine.ts";
import { type Logger, silentLogger } from "../ports/log.ts";
import { checkLimits } from "./body-limits.ts";
import { basePath, DashboardFiles, type DashboardOptions, noticeOf } from "./dashboard-files.ts";
import type { ServerEnv } from "./env.ts";
import { EventHub } from "./event-hub.ts";
import { createMetrics } from "./metrics.ts";
import { nodeHandler } from "./node-handler.ts";
import { openApiText } from "./openapi.ts";
import { createGuard, type GuardOptions } from "./request-guard.ts";
import { type HttpReply, RequestHandler } from "./request-handler.ts";
import type { Route, RouteContext } from "./route.ts";
import { ROUTES } from "./routes/all.ts";

export interface ServerOptions extends GuardOptions {
  readonly logger?: Logger;
  /** Turns on the two hooks that only a conformance suite needs. Off by default. */
  readonly conformance?: boolean;
  /** Whether events are recorded from now on, in all engines on the store, so that clients can read them. Default true. */
  readonly recordEvents?: boolean;
  /** The dashboard: on at `/` by default, at another path with `{ base: "/admin/jobs" }`, or off with `false`. */
  readonly dashboard?: boolean | DashboardOptions;
}

/** An Open Job Spec server over an engine. It listens to nothing by itself: `listen`, or any host of `fetch`, does. */
export interface CurfewServer {
  /** To be mounted into an application of one's own. */
  readonly app: Hono<ServerEnv>;
  fetch(request: Request, env?: ServerEnv["Bindings"]): Response | Promise<Response>;
  /** Serves a request straight from Node, without a web Request around it; false if it must go through `fetch`. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** Whether everybody may do everything: no keys were given. */
  readonly isOpen: boolean;
  readonly ready: boolean;
  /** Ends what would never end by itself: lines on which events are followed. */
  hangUp(): void;
  /** Hands out no more jobs and finishes what is being written. The engine stays open. */
  close(): Promise<void>;
}

const KEYS = keysOf<ServerOptions>({
  keys: true,
  authorize: true,
  limits: true,
  cors: true,
  logger: true,
  conformance: true,
  dashboard: true,
  recordEvents: true,
});

export function createServer(engine: Engine, options: ServerOptions = {}): CurfewServer {
  refuseUnknownKeys(options, "server", KEYS);
  const { service } = engine;
  const { logger = silentLogger } = options;
  const base = basePath(options.dashboard);
  const guard = createGuard(options, {
    system: service.system,
    now: () => engine.now(),
    base: base ?? "/",
  });
  const metrics = createMetrics(engine, service.system);
  const startedAt = service.system.monotonic();
  let isReady = true;
  const context: RouteContext = {
    engine,
    service,
    isConformance: options.conformance === true,
    isReady: () => isReady,
    version: packageVersion(),
    metrics: () => metrics.text(),
    uptime: () => Math.floor((service.system.monotonic() - startedAt) / 1_000),
    config: {
      limits: checkLimits(options.limits),
      authentication: !guard.isOpen,
      cors: options.cors ?? [],
      conformance: options.conformance === true,
    },
    openapi: openApiText,
    hub: new EventHub(engine, service.system, logger),
    logger,
    sessions: guard.sessions,
    notice: noticeOf(options.dashboard),
  };
  // From here on events are recorded, so that clients can read them.
  if (!engine.journal.isForbidden && options.recordEvents !== false)
    engine.journal.turnOn().catch((error: unknown) => {
      logger.error({ error }, "other engines on this store could not be told to record events");
    });
  const door = new RequestHandler(guard, metrics, context, ROUTES, logger);
  const app = createApp(door, base);
  return {
    app,
    fetch: (request, env) => app.fetch(request, env),
    handle: nodeHandler(door, ROUTES),
    isOpen: guard.isOpen,
    get ready() {
      return isReady;
    },
    hangUp: () => context.hub.close(),
    async close() {
      isReady = false;
      context.hub.close();
      await service.close();
    },
  };
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

function createApp(door: RequestHandler, base: string | undefined): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>();
  // Under the dashboard's own path too: an application then hands on one path, and the cookie is sent nowhere else.
  const prefixes = base === undefined || base === "/" ? [""] : ["", base.slice(0, -1)];
  for (const prefix of prefixes) for (const route of ROUTES) serveRoute(app, door, prefix, route);
  if (base !== undefined) serveDashboard(app, door, base);
  const served = prefixes.flatMap((prefix) =>
    ROUTES.map(({ method, path }) => ({
      methods: method === "GET" ? ["GET", "HEAD"] : [method],
      path: new RegExp(`^${prefix}${path.replaceAll(/:\w+/g, "[^/]+")}$`),
    })),
  );
  app.notFound((c) => {
    const methods = served.flatMap(({ path, methods }) => (path.test(c.req.path) ? methods : []));
    const answer = door.unknown(c.req.raw, c.req.path, methods);
    return answer instanceof Response ? answer : respond(answer);
  });
  app.onError((error, c) => respond(door.broken(error, c.req.raw)));
  return app;
}

function serveRoute(app: Hono<ServerEnv>, door: RequestHandler, prefix: string, route: Route): void {
  app.on(route.method, `${prefix}${route.path}`, async (c) => {
    const { body, ...head } = await door.answer(route, askedBy(c));
    if (!body) return respond(head);
    if (c.req.raw.method !== "HEAD") return respond({ ...head, body });
    // Who asks only for the head reads nothing, and would never be seen to leave.
    await body.cancel();
    return respond(head);
  });
}

/** Every path below the base that is no file is a page: the program in the browser reads it. The interface is not. */
function serveDashboard(app: Hono<ServerEnv>, door: RequestHandler, base: string): void {
  const files = new DashboardFiles(base);
  // Assets and links are below the base, so the base itself ends with a slash.
  if (base !== "/")
    app.get(base.slice(0, -1), () => new Response(null, { status: 308, headers: { Location: base } }));
  app.get(`${base}*`, (c, next) => {
    const path = c.req.path.slice(base.length);
    const file = /^(?:ojs|health|ready|metrics)(?:\/|$)/.test(path)
      ? null
      : files.serve(path, c.req.header("accept-encoding") ?? null);
    if (!file) return next();
    const { status, headers, bytes } = file;
    return new Response(bytes, { status, headers: { ...door.head(c.req.raw), ...headers } });
  });
}

function askedBy(c: Context<ServerEnv>) {
  const bindings = c.env as ServerEnv["Bindings"] | undefined;
  return {
    request: c.req.raw,
    incoming: bindings?.incoming,
    params: () => c.req.param(),
    query: () => c.req.query(),
    isGone: () => bindings?.outgoing?.destroyed ?? c.req.raw.signal.aborted,
  };
}

function respond({ status, text, headers, body }: HttpReply): Response {
  return new Response(body ?? text, { status, headers });
}
