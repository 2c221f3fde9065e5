import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { type Context, Hono } from "hono";
import { refuseUnknownKeys } from "../core/errors.ts";
import type { Engine } from "../engine/engine.ts";
import { type Logger, silentLogger } from "../ports/log.ts";
import type { ServerEnv } from "./env.ts";
import { HttpError } from "./errors.ts";
import { asHttpError, errorText } from "./failures.ts";
import { createGate, type Gate, type GateOptions } from "./gate.ts";
import { LANDING_PAGE } from "./landing.ts";
import { createMetrics, type Metrics } from "./metrics.ts";
import { openApiText } from "./openapi.ts";
import type { Reply, Route, RouteCall, RouteContext } from "./route.ts";
import { ROUTES } from "./routes/all.ts";

export interface ServerOptions extends GateOptions {
  readonly logger?: Logger;
  /** Turns on the two hooks that only a conformance suite needs. Off by default. */
  readonly conformance?: boolean;
}

/** An Open Job Spec server over an engine. It listens to nothing by itself: `listen`, or any host of `fetch`, does. */
export interface CurfewServer {
  /** To be mounted into an application of one's own. */
  readonly app: Hono<ServerEnv>;
  fetch(request: Request, env?: ServerEnv["Bindings"]): Response | Promise<Response>;
  /** Whether everybody may do everything: no keys were given. */
  readonly isOpen: boolean;
  readonly ready: boolean;
  /** Hands out no more jobs and finishes what is being written. The engine stays open. */
  close(): Promise<void>;
}

const KEYS = ["keys", "limits", "cors", "logger", "conformance"] as const;
const CONTENT_TYPE = "application/openjobspec+json";

export function createServer(engine: Engine, options: ServerOptions = {}): CurfewServer {
  refuseUnknownKeys(options, "server", KEYS);
  const { service } = engine;
  const { logger = silentLogger } = options;
  const gate = createGate(options, { system: service.system, now: () => engine.now() });
  const metrics = createMetrics(engine, service.system);
  let isReady = true;
  const context: RouteContext = {
    engine,
    service,
    isConformance: options.conformance === true,
    isReady: () => isReady,
    version: packageVersion(),
    metrics: () => metrics.text(),
    openapi: openApiText,
  };
  // From here on events are kept, so that clients can read them.
  void service.events;
  const app = new Hono<ServerEnv>();
  const door = new Door(gate, metrics, context, logger);
  for (const each of ROUTES) app.on(each.method, each.path, door.handlerOf(each));
  app.get("/", (c) => door.landing(c));
  app.notFound((c) => door.notFound(c));
  app.onError((error, c) => door.failed(error, c));
  return {
    app,
    fetch: (request, env) => app.fetch(request, env),
    isOpen: gate.isOpen,
    get ready() {
      return isReady;
    },
    async close() {
      isReady = false;
      await service.close();
    },
  };
}

function packageVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}

/**
 * The head of a request as Node has it. Building web headers out of Node's costs as much as the rest of a small
 * request, so they are read where they are; other hosts hand in a real Request.
 */
class NodeHead {
  readonly method: string;
  readonly headers: { get(name: string): string | null };

  constructor(incoming: IncomingMessage) {
    this.method = incoming.method ?? "GET";
    this.headers = {
      get(name) {
        const value = incoming.headers[name];
        return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
      },
    };
  }
}

/** Takes requests in, lets routes answer, and sees to it that whatever happens has an answer and a line in the log. */
class Door {
  readonly #gate: Gate;
  readonly #metrics: Metrics;
  readonly #context: RouteContext;
  readonly #logger: Logger | null;

  constructor(gate: Gate, metrics: Metrics, context: RouteContext, logger: Logger) {
    this.#gate = gate;
    this.#metrics = metrics;
    this.#context = context;
    // Nothing is put together for a log that nobody reads.
    this.#logger = logger === silentLogger ? null : logger;
  }

  handlerOf(route: Route): (c: Context<ServerEnv>) => Promise<Response> {
    const { system } = this.#context.service;
    const meter = this.#metrics.route(route.method, route.path);
    return async (c) => {
      const startedAt = system.monotonic();
      const incoming = (c.env as ServerEnv["Bindings"] | undefined)?.incoming;
      const request = incoming ? (new NodeHead(incoming) as unknown as Request) : c.req.raw;
      const call = this.#gate.open(request);
      let status = 500;
      let caller: string | undefined;
      try {
        checkVersion(request.headers.get("ojs-version"));
        const identity = this.#gate.admit(request, route.right);
        caller = identity.name;
        const made: RouteCall = {
          params: c.req.param(),
          body: route.body?.parse(await this.#gate.body(incoming ? request : c.req.raw, incoming)),
          query: route.query?.parse(c.req.query()),
          identity,
          requestId: call.requestId,
        };
        const reply = await route.run(made as never, this.#context);
        status = reply.status;
        return respond(reply, call.headers);
      } catch (thrown) {
        const error = asHttpError(thrown);
        status = error.status;
        if (status >= 500)
          this.#logger?.error({ error: thrown, requestId: call.requestId }, "a request failed");
        return refusal(error, call);
      } finally {
        const elapsed = system.monotonic() - startedAt;
        meter.count(status, elapsed);
        this.#log(route, status, elapsed, call.requestId, caller);
      }
    };
  }

  #log(route: Route, status: number, elapsed: number, requestId: string, caller: string | undefined): void {
    if (this.#logger === null) return;
    const fields = {
      requestId,
      method: route.method,
      route: route.path,
      status,
      elapsed: Math.round(elapsed * 1_000) / 1_000,
      ...(caller !== undefined && { caller }),
    };
    if (status >= 400) this.#logger.info(fields, "request refused");
    else this.#logger.debug(fields, "request");
  }

  landing(c: Context<ServerEnv>): Response {
    const { headers } = this.#gate.open(c.req.raw);
    return new Response(LANDING_PAGE, {
      headers: { ...headers, "Content-Type": "text/html; charset=utf-8" },
    });
  }

  notFound(c: Context<ServerEnv>): Response {
    const call = this.#gate.open(c.req.raw);
    const preflight = this.#gate.preflight(c.req.raw, call);
    if (preflight) return preflight;
    const known = ROUTES.some(({ path }) =>
      new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`).test(c.req.path),
    );
    const error = known
      ? new HttpError(405, "invalid_request", `${c.req.method} is not served at this path`)
      : new HttpError(404, "not_found", `Nothing is served at ${c.req.path.slice(0, 200)}`);
    return refusal(error, call);
  }

  /** What a handler could not answer for itself; nothing of ours goes out with it. */
  failed(error: Error, c: Context<ServerEnv>): Response {
    const call = this.#gate.open(c.req.raw);
    this.#logger?.error({ error, requestId: call.requestId }, "a request failed");
    return refusal(asHttpError(error), call);
  }
}

function checkVersion(version: string | null): void {
  if (version === null || version === "1.0" || /^1(\.\d+){0,2}(-rc\.\d+)?$/.test(version)) return;
  throw new HttpError(
    422,
    "unsupported",
    `OJS-Version: ${JSON.stringify(version.slice(0, 50))} is not served; send 1.0`,
  );
}

function respond(reply: Reply, headers: Record<string, string>): Response {
  headers["Content-Type"] = CONTENT_TYPE;
  headers["OJS-Version"] = "1.0";
  if (reply.headers) Object.assign(headers, reply.headers);
  return new Response(reply.text, { status: reply.status, headers });
}

function refusal(error: HttpError, call: { requestId: string; headers: Record<string, string> }): Response {
  const text = errorText(error, call.requestId);
  return respond({ status: error.status, text, headers: error.more.headers ?? {} }, call.headers);
}
