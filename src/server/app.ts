import type { IncomingMessage, ServerResponse } from "node:http";
import { type Context, Hono } from "hono";
import { refuse, refuseUnknownKeys } from "../core/errors.ts";
import { keysOf } from "../core/option-keys.ts";
import type { Engine } from "../engine/engine.ts";
import { type Logger, silentLogger } from "../ports/log.ts";
import { packageVersion } from "../ports/package-file.ts";
import { createGuard, type GuardOptions } from "./access/request-guard.ts";
import { TenantContexts } from "./access/tenant-contexts.ts";
import { basePath, DashboardFiles, type DashboardOptions, noticeOf } from "./dashboard-files.ts";
import type { ServerEnv } from "./env.ts";
import { checkLimits } from "./http/body-limits.ts";
import { nodeHandler } from "./http/node-handler.ts";
import { type HttpReply, RequestHandler } from "./http/request-handler.ts";
import { EventHub } from "./live/event-hub.ts";
import { createMetrics } from "./metrics/metrics.ts";
import { openApiText } from "./openapi/openapi.ts";
import type { Route, RouteContext } from "./route.ts";
import { ROUTES } from "./routes/all.ts";

export interface ServerOptions extends GuardOptions {
  readonly logger?: Logger;
  /** Turns on the two hooks that only a conformance suite needs. Off by default. */
  readonly conformance?: boolean;
  /** Record events in all engines on the store from now on, so that clients can read them. Default true. */
  readonly recordEvents?: boolean;
  /** Refuse reports (ack, nack, beats, progress, logs) that do not name the fence of the fetched job. Default false. */
  readonly requireFence?: boolean;
  /** The dashboard: on at `/` by default, at another path with `{ base: "/admin/jobs" }`, or off with `false`. */
  readonly dashboard?: boolean | DashboardOptions;
}

/** An Open Job Spec server over an engine. It opens no port: `listen`, or any host of `fetch`, does. */
export interface CurfewServer {
  /** Mount this into your own Hono application. */
  readonly app: Hono<ServerEnv>;
  fetch(request: Request, env?: ServerEnv["Bindings"]): Response | Promise<Response>;
  /** Serves a Node request without building a web Request. False: pass it to `fetch`. */
  handle(incoming: IncomingMessage, outgoing: ServerResponse): boolean;
  /** No keys were given: every caller may do everything. */
  readonly isOpen: boolean;
  readonly ready: boolean;
  /** Ends all event streams, which never end by themselves. */
  hangUp(): void;
  /** Hands out no more jobs and waits for writes under way. The engine stays open. */
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
  requireFence: true,
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
    requiresFence: options.requireFence === true,
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
  if (!engine.journal.isForbidden && options.recordEvents !== false)
    engine.journal.turnOn().catch((error: unknown) => {
      logger.error({ error }, "could not turn on event recording in the other engines on this store");
    });
  refuseUnscoped(ROUTES);
  const tenants = new TenantContexts(context);
  const handler = new RequestHandler(guard, metrics, context, ROUTES, tenants);
  const app = createApp(handler, base);
  return {
    app,
    fetch: (request, env) => app.fetch(request, env),
    handle: nodeHandler(handler, ROUTES),
    isOpen: guard.isOpen,
    get ready() {
      return isReady;
    },
    hangUp() {
      context.hub.close();
      tenants.hangUp();
    },
    async close() {
      isReady = false;
      context.hub.close();
      await Promise.all([tenants.close(), service.close()]);
    },
  };
}

/** The types ask for a scope too; this holds for routes that are made without them. */
function refuseUnscoped(routes: readonly Route[]): void {
  const unscoped = routes.find(({ scope }) => !["tenant", "server", "anyone"].includes(scope));
  if (!unscoped) return;
  const name = `${unscoped.method} ${unscoped.path}`;
  throw refuse("invalid_option", `scope of ${name}`, unscoped.scope, 'write "tenant", "server" or "anyone"');
}

function createApp(handler: RequestHandler, base: string | undefined): Hono<ServerEnv> {
  const app = new Hono<ServerEnv>();
  // Routes are served below the dashboard's path too. An application then forwards one path, and the cookie stays below it.
  const prefixes = base === undefined || base === "/" ? [""] : ["", base.slice(0, -1)];
  for (const prefix of prefixes) for (const route of ROUTES) serveRoute(app, handler, prefix, route);
  if (base !== undefined) serveDashboard(app, handler, base);
  const served = prefixes.flatMap((prefix) =>
    ROUTES.map(({ method, path }) => ({
      methods: method === "GET" ? ["GET", "HEAD"] : [method],
      path: new RegExp(`^${prefix}${path.replaceAll(/:\w+/g, "[^/]+")}$`),
    })),
  );
  app.notFound((c) => {
    const methods = served.flatMap(({ path, methods }) => (path.test(c.req.path) ? methods : []));
    const answer = handler.unknown(c.req.raw, c.req.path, methods);
    return answer instanceof Response ? answer : respond(answer);
  });
  app.onError((error, c) => respond(handler.broken(error, c.req.raw)));
  return app;
}

function serveRoute(app: Hono<ServerEnv>, handler: RequestHandler, prefix: string, route: Route): void {
  app.on(route.method, `${prefix}${route.path}`, async (c) => {
    const { body, ...head } = await handler.answer(route, askedBy(c));
    if (!body) return respond(head);
    if (c.req.raw.method !== "HEAD") return respond({ ...head, body });
    // Nobody reads the body of a HEAD reply, so the stream would never notice that the client left.
    await body.cancel();
    return respond(head);
  });
}

/** Serves the page for every path below the base that is no file: the browser program reads the path. API paths are excluded. */
function serveDashboard(app: Hono<ServerEnv>, handler: RequestHandler, base: string): void {
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
    return new Response(bytes, { status, headers: { ...handler.head(c.req.raw), ...headers } });
  });
}

function askedBy(c: Context<ServerEnv>) {
  const bindings = c.env as ServerEnv["Bindings"] | undefined;
  return {
    request: c.req.raw,
    incoming: bindings?.incoming,
    params: () => c.req.param(),
    query: () => c.req.queries(),
    isGone: () => bindings?.outgoing?.destroyed ?? c.req.raw.signal.aborted,
  };
}

function respond({ status, text, headers, body }: HttpReply): Response {
  return new Response(body ?? text, { status, headers });
}
