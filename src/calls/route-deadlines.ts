import { type CallPolicy, resolveCall } from "../core/call/call-policy.ts";
import { DEADLINE_HEADER, readDeadline } from "../core/call/deadline-header.ts";
import { refuseUnknownKeys } from "../core/errors.ts";
import { StopError, TimeoutError } from "../core/job/reasons.ts";
import { type Duration, formatDuration, parseDuration } from "../core/time.ts";
import { isInstance } from "../core/user-values.ts";
import type { Calls } from "./calls.ts";
import { checkName } from "./check-options.ts";
import {
  type CallContext,
  type CallDeps,
  type CallFunction,
  goOnInside,
  RunningCall,
} from "./running-call.ts";

/** The limit of a route. */
export interface RouteOptions {
  /** The most that a request may take, whatever its caller allows. Default 30 s. */
  readonly attempt?: Duration;
  /** For counters and `advise`. Default `"http"`. */
  readonly name?: string;
}

interface Refusal {
  readonly status: 400 | 504;
  readonly body: { readonly error: { readonly code: string; readonly message: string } };
}

/** What the middleware of every framework shares. */
class Route {
  readonly #calls: Calls;
  readonly #name: string;
  readonly #limit: number;
  readonly #nodeHost: CallDeps;

  constructor(calls: Calls, options: RouteOptions) {
    refuseUnknownKeys(options, "deadline", ["attempt", "name"]);
    const { attempt = "30s", name = "http" } = options;
    checkName(name, "deadline.name");
    this.#calls = calls;
    this.#name = name;
    this.#limit = parseDuration(attempt, "deadline.attempt");
    this.#nodeHost = withoutEnds(calls);
  }

  /** The time that a request has; a refusal if its header is not valid. */
  limitOf(header: unknown): number | Refusal {
    const left = readDeadline(header);
    if (left !== undefined) return Math.min(this.#limit, left ?? this.#limit);
    const message = `${DEADLINE_HEADER}: send whole milliseconds from 1 to 10 years, or leave it out`;
    return { status: 400, body: { error: { code: "invalid_deadline", message } } };
  }

  /** `run` ends when the handler does. */
  run(limit: number, signal: AbortSignal, run: CallFunction<void>): Promise<void> {
    return this.#start(this.#calls, limit, signal, run);
  }

  /** `run` ends when the reply is closed. When the handler ends is unknown. */
  runUntilClosed(limit: number, signal: AbortSignal, run: CallFunction<void>): Promise<void> {
    return this.#start(this.#nodeHost, limit, signal, run);
  }

  /** The handler has sent a reply after the verdict. */
  dropped(): void {
    this.#calls.ignored(this.#name);
  }

  #start(host: CallDeps, limit: number, signal: AbortSignal, run: CallFunction<void>): Promise<void> {
    return new RunningCall(host, { name: this.#name, policy: once(limit), run, signal }).start();
  }
}

/** A request is entered once and its 504 is not delayed, whatever the defaults of the calls say. */
function once(milliseconds: number): CallPolicy {
  return resolveCall({ call: { attempt: milliseconds } });
}

/** Express and Fastify do not say when a handler has ended. The close of a reply after its 504 is no late result. */
function withoutEnds(calls: Calls): CallDeps {
  const nothing = () => {};
  return {
    system: calls.system,
    deadlines: calls.deadlines,
    trace: (name) => calls.trace(name),
    ended: (end) => calls.ended(end),
    streamEnded: nothing,
    wasCut: nothing,
    ignored: nothing,
    stuck: nothing,
    unstuck: nothing,
  };
}

/** The reply to a request whose time is up; undefined for any other error. */
function timeoutReply(error: unknown): Refusal | undefined {
  if (!isInstance(error, TimeoutError)) return undefined;
  const message = `The request was not answered within ${formatDuration(error.limit)}`;
  return { status: 504, body: { error: { code: "deadline_exceeded", message } } };
}

/** The parts of Node's requests and replies that are used. */
interface NodeRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

interface NodeReply {
  readonly headersSent: boolean;
  readonly writableFinished: boolean;
  readonly closed: boolean;
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  removeHeader(name: string): void;
  end(body: string): unknown;
  destroy(): unknown;
  once(event: "close", listener: () => void): unknown;
}

/** Where handlers find their signal. */
export interface WithDeadline {
  readonly deadline?: CallContext;
  readonly signal?: AbortSignal;
}

/** Newer Nodes have a `signal` of their own on a request, which knows nothing of deadlines and cannot be assigned to. */
function attach(request: WithDeadline, context: CallContext): void {
  Object.defineProperty(request, "deadline", { value: context, configurable: true });
  Object.defineProperty(request, "signal", { get: () => context.signal, configurable: true });
}

/** Calls back when the reply has ended: `isSent` is false if the client left before that. */
function whenClosed(reply: NodeReply, closed: (isSent: boolean) => void): void {
  const close = () => closed(reply.writableFinished);
  if (reply.closed) close();
  else reply.once("close", close);
}

const clientLeft = () => new StopError("cancelled", 0, null);

/**
 * Answers 504 at the deadline. It listens before the handler does, so a handler that ends at its signal and sends
 * something comes second.
 */
function refuseAtDeadline(signal: AbortSignal, reply: NodeReply, dropped?: () => void): void {
  const answer = () => {
    const refusal = timeoutReply(signal.reason);
    if (refusal && !reply.headersSent) sendNode(reply, refusal, dropped);
  };
  signal.addEventListener("abort", answer, { once: true });
}

interface NodeHandler {
  enter(context: CallContext): void;
  /** What a framework does with the value of its handler after the verdict; `dropped` counts it. */
  fence?(dropped: () => void): void;
}

/** Ends when the reply is sent, and stops when the client leaves before that. */
function nodeCall(route: Route, limit: number, reply: NodeReply, handler: NodeHandler): void {
  // The client left while something before us worked. A handler that only listens for the abort would miss it.
  if (reply.closed) return;
  const left = new AbortController();
  const dropped = onlyOnce(() => route.dropped());
  const call = route.runUntilClosed(limit, left.signal, (context) => {
    return new Promise<void>((resolve) => {
      refuseAtDeadline(context.signal, reply, dropped);
      whenClosed(reply, (isSent) => {
        if (!isSent) left.abort(clientLeft());
        resolve();
      });
      enterHandler(handler, context, dropped);
    });
  });
  call.catch((error) => {
    const refusal = timeoutReply(error);
    if (refusal && !reply.headersSent) sendNode(reply, refusal, dropped);
    if (refused.has(reply)) return;
    // The reply streams past its deadline, the client has left, or the next function threw.
    reply.destroy();
    fence(reply, dropped);
  });
}

function enterHandler(handler: NodeHandler, context: CallContext, dropped: () => void): void {
  if (handler.fence) context.signal.addEventListener("abort", () => handler.fence?.(dropped), { once: true });
  handler.enter(context);
}

function onlyOnce(run: () => void): () => void {
  let isRun = false;
  return () => {
    if (!isRun) run();
    isRun = true;
  };
}

/** Replies that one middleware has refused. Another one around the same handler must not cut them off. */
const refused = new WeakSet<NodeReply>();

/** Headers that a handler may have set for a body that it did not send. */
const BODY_HEADERS = [
  "content-length",
  "content-encoding",
  "content-range",
  "etag",
  "last-modified",
  "cache-control",
];

function sendNode(reply: NodeReply, { status, body }: Refusal, dropped = () => {}): void {
  refused.add(reply);
  for (const name of BODY_HEADERS) reply.removeHeader(name);
  reply.statusCode = status;
  reply.setHeader("content-type", "application/json");
  // The rest of the request, if any, belongs to nobody.
  reply.setHeader("connection", "close");
  reply.end(JSON.stringify(body));
  fence(reply, dropped);
}

const HEAD_CALLS = ["setHeader", "setHeaders", "appendHeader", "removeHeader", "flushHeaders"];

/**
 * What a handler sends after the verdict is dropped. Node would throw, and Express would cut the connection for it. A
 * reply with 5xx is not counted: it is what an app makes of a handler that ended at its signal.
 */
function fence(reply: NodeReply, dropped: () => void): void {
  const sent = reply.statusCode;
  let status = 200;
  const replace = (name: string, value: (...given: unknown[]) => unknown) =>
    Object.defineProperty(reply, name, { value, configurable: true, writable: true });
  const setStatus = (value: unknown) => {
    status = Number(value);
  };
  Object.defineProperty(reply, "statusCode", { get: () => sent, set: setStatus, configurable: true });
  for (const name of HEAD_CALLS) replace(name, () => reply);
  replace("writeHead", (value) => {
    setStatus(value);
    return reply;
  });
  const drop = (...given: unknown[]) => {
    if (status < 500) dropped();
    // A handler may wait for the callback of its write.
    const written = given.at(-1);
    if (typeof written === "function") queueMicrotask(() => written());
  };
  replace("write", (...given) => {
    drop(...given);
    return true;
  });
  replace("end", (...given) => {
    drop(...given);
    return reply;
  });
}

/** Middleware for Express, Connect and plain Node. `request.signal` aborts at the deadline. */
export function expressDeadline(calls: Calls, options: RouteOptions = {}) {
  const route = new Route(calls, options);
  return (request: NodeRequest & WithDeadline, reply: NodeReply, next: () => void): void => {
    const limit = route.limitOf(request.headers[DEADLINE_HEADER]);
    if (typeof limit !== "number") {
      sendNode(reply, limit);
      return;
    }
    nodeCall(route, limit, reply, {
      enter(context) {
        attach(request, context);
        next();
      },
    });
  };
}

interface FastifyLike {
  addHook(name: "onRequest" | "preHandler", hook: FastifyHook): unknown;
}
type FastifyHook = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;
type FastifyReply = { readonly raw: NodeReply; send(value?: unknown): unknown };
type FastifyRequest = NodeRequest & { readonly raw: WithDeadline };

/** Adds the deadline to all routes of a Fastify instance. `request.raw.signal` aborts at it. */
export function fastifyDeadline(app: FastifyLike, calls: Calls, options: RouteOptions = {}): void {
  const route = new Route(calls, options);
  app.addHook("onRequest", (request, reply, done) => {
    const limit = route.limitOf(request.headers[DEADLINE_HEADER]);
    if (typeof limit !== "number") {
      sendNode(reply.raw, limit);
      return;
    }
    nodeCall(route, limit, reply.raw, {
      enter(context) {
        attach(request.raw, context);
        done();
      },
      // Fastify knows that the reply is sent, and would only log what the handler returns.
      fence(dropped) {
        reply.send = (value) => {
          if (!isInstance(value, Error)) dropped();
          return reply;
        };
      },
    });
  });
  // Reading a body, or a hook in between, may leave the context of the first hook. The handler enters it again.
  app.addHook("preHandler", ({ raw }, _reply, done) => {
    if (raw.deadline) goOnInside(raw.deadline, done);
    else done();
  });
}

interface HonoContext {
  readonly req: { readonly raw: Request; header(name: string): string | undefined };
  set(key: "signal", value: AbortSignal): void;
  json(body: unknown, status: 400 | 504): Response;
  readonly error: unknown;
  get res(): Response;
  set res(response: Response | undefined);
}

/** Middleware for Hono. `c.get("signal")` aborts at the deadline. */
export function honoDeadline(calls: Calls, options: RouteOptions = {}) {
  const route = new Route(calls, options);
  return async (c: HonoContext, next: () => Promise<void>): Promise<Response | undefined> => {
    const limit = route.limitOf(c.req.header(DEADLINE_HEADER));
    if (typeof limit !== "number") return c.json(limit.body, limit.status);
    const left = new AbortController();
    const { signal } = c.req.raw;
    if (signal.aborted) left.abort(clientLeft());
    else signal.addEventListener("abort", () => left.abort(clientLeft()), { once: true });
    try {
      await route.run(limit, left.signal, async (context) => {
        c.set("signal", context.signal);
        await next();
        // Hono has made a reply of what the handler threw.
        if (context.signal.aborted && c.error !== undefined) throw c.error;
      });
    } catch (error) {
      // Nobody reads it, but Hono would report an error without one.
      if (left.signal.aborted) return new Response(null, { status: 499 });
      const refusal = timeoutReply(error);
      if (!refusal) throw error;
      // A handler that ends at its signal sets its response now, and Hono keeps the one that is set last.
      await new Promise<void>((resolve) => void calls.system.after(0, resolve));
      const response = c.json(refusal.body, refusal.status);
      for (const name of BODY_HEADERS) response.headers.delete(name);
      c.res = undefined;
      c.res = response;
    }
    return undefined;
  };
}

interface KoaContext {
  readonly req: NodeRequest;
  readonly res: NodeReply;
  readonly state: { signal?: AbortSignal };
  status: number;
  body: unknown;
}

/** Middleware for Koa. `ctx.state.signal` aborts at the deadline. */
export function koaDeadline(calls: Calls, options: RouteOptions = {}) {
  const route = new Route(calls, options);
  return async (ctx: KoaContext, next: () => Promise<unknown>): Promise<void> => {
    const refuseWith = ({ status, body }: Refusal) => {
      ctx.status = status;
      ctx.body = body;
    };
    const limit = route.limitOf(ctx.req.headers[DEADLINE_HEADER]);
    if (typeof limit !== "number") return refuseWith(limit);
    const left = new AbortController();
    whenClosed(ctx.res, (isSent) => isSent || left.abort(clientLeft()));
    try {
      await route.run(limit, left.signal, async ({ signal }) => {
        refuseAtDeadline(signal, ctx.res);
        ctx.state.signal = signal;
        await next();
      });
    } catch (error) {
      if (left.signal.aborted) return;
      const refusal = timeoutReply(error);
      if (!refusal) throw error;
      // Mostly sent already: then it is for the middleware around, such as a log.
      refuseWith(refusal);
    }
  };
}
