import type { Logger } from "../../ports/log.ts";
import { silentLogger } from "../../ports/log.ts";
import type { Identity } from "../access/auth.ts";
import type { RequestGuard } from "../access/request-guard.ts";
import type { TenantContexts } from "../access/tenant-contexts.ts";
import type { Metrics, RouteMeter } from "../metrics/metrics.ts";
import { isAudited, type Reply, type Route, type RouteContext } from "../route.ts";
import type { Incoming } from "./body-limits.ts";
import { warningsOn, withWarnings } from "./body-warnings.ts";
import { checked } from "./checked.ts";
import { asHttpError, errorText } from "./failures.ts";
import { HttpError, type PlainHeaders } from "./http-error.ts";
import { readQuery } from "./query-names.ts";
import type { RequestHead } from "./request-head.ts";
import { acceptedAge, SharedReplies } from "./shared-replies.ts";

/** The parts of a request that routes need: a web Request and Node's cheaper request both fit. */
export interface RouteCall {
  readonly request: RequestHead;
  readonly incoming: Incoming | undefined;
  readonly params: () => Record<string, string>;
  /** The values of each parameter of the query. */
  readonly query: () => Record<string, readonly string[]>;
  readonly isGone: () => boolean;
}

/** A reply that is ready to be written. */
export interface HttpReply {
  readonly status: number;
  readonly text: string | null;
  readonly headers: PlainHeaders;
  readonly body?: ReadableStream<Uint8Array>;
}

/** What the handler reads of a checked request. */
interface MadeCall {
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly header: (name: string) => string | null;
}

const CONTENT_TYPE = "application/openjobspec+json";
const NO_PARAMS: Readonly<Record<string, string>> = {};

/** Runs the route of a request. Every request gets a reply and a log line, even if its route throws. */
export class RequestHandler {
  readonly #guard: RequestGuard;
  readonly #context: RouteContext;
  readonly #logger: Logger | null;
  readonly #meters = new Map<Route, RouteMeter>();
  readonly #shared: SharedReplies;
  readonly #tenants: TenantContexts;

  constructor(
    guard: RequestGuard,
    metrics: Metrics,
    context: RouteContext,
    routes: readonly Route[],
    tenants: TenantContexts,
  ) {
    const { logger } = context;
    this.#guard = guard;
    this.#tenants = tenants;
    this.#context = context;
    this.#logger = logger === silentLogger ? null : logger;
    this.#shared = new SharedReplies(() => context.service.system.monotonic());
    for (const route of routes) this.#meters.set(route, metrics.route(route.method, route.path));
  }

  async answer(route: Route, { request, incoming, params, query, isGone }: RouteCall): Promise<HttpReply> {
    const { system } = this.#context.service;
    const startedAt = system.monotonic();
    const call = this.#guard.open(request);
    let status = 500;
    let caller: string | undefined;
    let tenant: string | undefined;
    try {
      checkVersion(request.headers.get("ojs-version"));
      const admitted = this.#guard.admit(request, route.right, incoming, call);
      const identity = admitted instanceof Promise ? await admitted : admitted;
      caller = identity.name;
      tenant = identity.tenant;
      const context = tenant === undefined ? this.#context : await this.#contextOf(route, tenant, identity);
      const sent = readQuery(route, query());
      const body = route.body && (await this.#guard.body(request, incoming));
      const made = {
        params: route.path.includes(":") ? params() : NO_PARAMS,
        body: route.body && checked(route.body, body),
        query: route.query && checked(route.query, sent),
        identity,
        requestId: call.requestId,
        param: (name: string) => sent[name],
        header: (name: string) => request.headers.get(name),
        isGone,
      };
      const warnings = route.body
        ? warningsOn(route.body, body, route.keepsNone ?? route.right === "operate")
        : [];
      const plain = await this.#run(route, made, context);
      const reply = warnings.length === 0 ? plain : withWarnings(plain, warnings);
      status = reply.status;
      const answer = ready(reply.status, reply.text, call.headers, reply.headers);
      return reply.body ? { ...answer, body: reply.body } : answer;
    } catch (thrown) {
      const error = asHttpError(thrown);
      status = error.status;
      if (status >= 500) this.#failed(thrown, call.requestId);
      return refused(error, call);
    } finally {
      const elapsed = system.monotonic() - startedAt;
      this.#meters.get(route)?.count(status, elapsed);
      if (this.#logger) this.#log(this.#logger, route, status, elapsed, call.requestId, caller, tenant);
    }
  }

  /** What a caller within a tenant gets to see. */
  async #contextOf({ scope, method }: Route, tenant: string, { tenants }: Identity): Promise<RouteContext> {
    if (scope === "tenant") return this.#tenants.open(tenant, method !== "GET");
    // A caller that may choose any tenant may also choose none.
    if (scope === "anyone" || !Array.isArray(tenants)) return this.#context;
    throw new HttpError(
      403,
      "forbidden",
      "This is about the whole server; callers within a tenant may not see it",
    );
  }

  async #run(route: Route, made: MadeCall, context: RouteContext): Promise<Reply> {
    const run = () => route.run(made as never, context);
    const age = route.isShared ? acceptedAge(made.header("cache-control")) : 0;
    const { tenantName } = context.engine;
    if (age > 0)
      return this.#shared.get(JSON.stringify([tenantName, route.path, made.params, made.query]), age, run);
    if (!isAudited(route)) return run();
    try {
      return await run();
    } finally {
      this.#shared.clear();
    }
  }

  #failed(error: unknown, requestId: string): void {
    this.#logger?.error({ error, requestId }, "request failed");
  }

  #log(
    logger: Logger,
    route: Route,
    status: number,
    elapsed: number,
    requestId: string,
    caller: string | undefined,
    tenant: string | undefined,
  ): void {
    const fields = {
      requestId,
      method: route.method,
      route: route.path,
      status,
      elapsed: Math.round(elapsed * 1_000) / 1_000,
      ...(caller !== undefined && { caller }),
      ...(tenant !== undefined && { tenant }),
    };
    if (status >= 400) logger.info(fields, "request refused");
    else logger.debug(fields, "request");
  }

  /** The reply to a request without a route: a preflight, a wrong method or an unknown path. */
  unknown(request: RequestHead, path: string, methods: readonly string[]): HttpReply | Response {
    const call = this.#guard.open(request);
    const preflight = this.#guard.preflight(request, call);
    if (preflight) return preflight;
    if (methods.length === 0)
      return refused(new HttpError(404, "not_found", `Nothing is served at ${path.slice(0, 200)}`), call);
    const headers = { Allow: ["OPTIONS", ...methods].join(", ") };
    if (request.method === "OPTIONS") return ready(204, null, call.headers, headers);
    const message = `${request.method.slice(0, 20)} is not served at this path; use ${methods.join(" or ")}`;
    return refused(new HttpError(405, "invalid_request", message, { headers }), call);
  }

  /** The reply when a route failed. It holds nothing of the error. */
  broken(error: unknown, request: RequestHead): HttpReply {
    const call = this.#guard.open(request);
    this.#failed(error, call.requestId);
    return refused(asHttpError(error), call);
  }

  /** The headers of a dashboard file, which no route serves. */
  head(request: RequestHead): PlainHeaders {
    return this.#guard.open(request).headers;
  }
}

function checkVersion(version: string | null): void {
  if (version === null || version === "1.0" || /^1(\.\d+){0,2}(-rc\.\d+)?$/.test(version)) return;
  const shown = JSON.stringify(version.slice(0, 50));
  throw new HttpError(422, "unsupported", `OJS-Version: ${shown} is not served; send 1.0`);
}

function ready(status: number, text: string | null, headers: PlainHeaders, more?: PlainHeaders): HttpReply {
  headers["Content-Type"] = CONTENT_TYPE;
  headers["OJS-Version"] = "1.0";
  if (more) Object.assign(headers, more);
  return { status, text, headers };
}

function refused(error: HttpError, call: { requestId: string; headers: PlainHeaders }): HttpReply {
  return ready(error.status, errorText(error, call.requestId), call.headers, error.more.headers);
}
