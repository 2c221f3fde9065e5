import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import { createServer as createNodeServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { serve } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";
import Koa from "koa";
import { describe, expect, it, onTestFinished } from "vitest";
import {
  type Calls,
  createCalls,
  deadlineFetch,
  expressDeadline,
  fastifyDeadline,
  honoDeadline,
  koaDeadline,
  type RouteOptions,
  TimeoutError,
  type WithDeadline,
} from "../../src/calls/index.ts";
import { openTelemetry } from "../../src/tracing.ts";
import { setUpTracer } from "../tracer.ts";

/** SEMANTICS 10.6 over real HTTP, in real time: limits are short, and nothing here sleeps. */

/** What a handler does with its request: it gets the body and the signal, and gives a JSON reply. */
type Handle = (signal: AbortSignal, body: unknown) => unknown;
type Framework = (calls: Calls, options: RouteOptions, handle: Handle) => Promise<string>;

async function addressOf(server: Server): Promise<string> {
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  if (!server.listening) await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const frameworks: Record<string, Framework> = {
  Express: (calls, options, handle) => {
    const app = express();
    app.use(expressDeadline(calls, options), express.json());
    app.post("/", async (request, reply) => {
      reply.json(await handle((request as WithDeadline).signal as AbortSignal, request.body));
    });
    return addressOf(app.listen(0, "127.0.0.1"));
  },
  Fastify: async (calls, options, handle) => {
    const app = fastify();
    fastifyDeadline(app, calls, options);
    app.post("/", (request) => handle((request.raw as WithDeadline).signal as AbortSignal, request.body));
    await app.listen({ port: 0, host: "127.0.0.1" });
    return addressOf(app.server);
  },
  Hono: (calls, options, handle) => {
    const app = new Hono<{ Variables: { signal: AbortSignal } }>();
    app.use(honoDeadline(calls, options) as never);
    app.post("/", async (c) => c.json((await handle(c.get("signal"), await c.req.json())) as never));
    return addressOf(serve({ fetch: app.fetch, port: 0, hostname: "127.0.0.1" }) as Server);
  },
  Koa: (calls, options, handle) => {
    const app = new Koa();
    app.use(koaDeadline(calls, options) as never);
    app.use(async (ctx) => {
      let text = "";
      for await (const chunk of ctx.req) text += chunk;
      ctx.body = await handle(ctx.state.signal, JSON.parse(text));
    });
    return addressOf(createNodeServer(app.callback()).listen(0, "127.0.0.1"));
  },
};

const post = (url: string, init: RequestInit = {}) =>
  fetch(url, {
    method: "POST",
    body: "{}",
    ...init,
    headers: { "content-type": "application/json", ...init.headers },
  });

/** Resolves with the reason when the signal aborts. */
const aborted = (signal: AbortSignal) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

/** Express and Fastify do not say when a handler ends. */
const KNOWS_ENDS = ["Hono", "Koa"];

it("Fastify: a handler keeps its deadline and its span when a hook before it leaves the async context", async () => {
  const { tracer, spans, tearDown } = setUpTracer();
  onTestFinished(tearDown);
  const calls = createCalls({ tracing: openTelemetry({ tracer }) });
  const outside = AsyncLocalStorage.snapshot();
  const app = fastify();
  fastifyDeadline(app, calls, { name: "route", attempt: "10s" });
  // As a pool of connections does that calls back from the context of another request.
  app.addHook("preValidation", (_request, _reply, done) => outside(done));
  app.post("/", () => {
    tracer.startSpan("inside").end();
    return calls.within({ attempt: "1h" }, ({ remaining }) => ({ left: Math.ceil(remaining() / 1_000) }));
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  const reply = await post(await addressOf(app.server));
  expect(await reply.json()).toEqual({ left: 10 });
  const route = spans.find((span) => span.name === "call route");
  expect(route).toBeDefined();
  const children = spans.filter((span) => span.parentId === route?.spanId).map((span) => span.name);
  expect(children).toEqual(["inside", "call within"]);
});

describe.each(Object.entries(frameworks))("%s", (name, open) => {
  it("spans of a handler that read a body are children of the call's span", async () => {
    const { tracer, spans, tearDown } = setUpTracer();
    onTestFinished(tearDown);
    const calls = createCalls({ tracing: openTelemetry({ tracer }) });
    const url = await open(calls, { name: "route" }, () => {
      tracer.startSpan("inside").end();
      return {};
    });
    expect((await post(url, { body: JSON.stringify({ long: "x".repeat(100_000) }) })).status).toBe(200);
    const route = spans.find((span) => span.name === "call route");
    expect(route).toBeDefined();
    expect(spans.find((span) => span.name === "inside")?.parentId).toBe(route?.spanId);
  });

  it("answers as the handler does, and the handler knows what is left", async () => {
    const calls = createCalls();
    const url = await open(calls, { attempt: "10s" }, async (_signal, body) => ({
      body,
      left: await calls.within({ attempt: "1h" }, ({ remaining }) => Math.ceil(remaining() / 1_000)),
    }));
    const own = await post(url, { body: '{"a":1}' });
    expect([own.status, await own.json()]).toEqual([200, { body: { a: 1 }, left: 10 }]);
    const cut = await post(url, { headers: { "curfew-timeout-ms": "5000" } });
    expect(await cut.json()).toMatchObject({ left: 5 });
    const longer = await post(url, { headers: { "curfew-timeout-ms": "60000" } });
    expect(await longer.json()).toMatchObject({ left: 10 });
  });

  it("answers 504 at the deadline and aborts the signal", async () => {
    const calls = createCalls();
    const reasons: Promise<unknown>[] = [];
    const url = await open(calls, { attempt: "50ms", name: "slow" }, async (signal) => {
      reasons.push(aborted(signal));
      await aborted(signal);
      // A handler that never answers, although it heard the signal.
      return new Promise(() => {});
    });
    const reply = await post(url);
    expect([reply.status, await reply.json()]).toEqual([
      504,
      { error: { code: "deadline_exceeded", message: "The request was not answered within 50ms" } },
    ]);
    expect(await reasons[0]).toBeInstanceOf(TimeoutError);
    const stuck = KNOWS_ENDS.includes(name) ? 1 : 0;
    expect(calls.counts()).toMatchObject([
      { name: "slow", calls: 1, timeouts: { execution: 1 }, ignored: 0, stuck },
    ]);
    expect(calls.pending).toBe(0);
  });

  it.each(["returns", "throws", "throws a little later"])(
    "answers 504 to a client whose handler %s at its signal",
    async (how) => {
      const calls = createCalls();
      const url = await open(calls, { attempt: "30ms" }, async (signal) => {
        await aborted(signal);
        if (how === "returns") return { late: true };
        if (how === "throws a little later") await Promise.resolve().then(() => {});
        throw signal.reason;
      });
      const reply = await post(url);
      expect([reply.status, await reply.json()]).toMatchObject([
        504,
        { error: { code: "deadline_exceeded" } },
      ]);
      const ignored = how === "returns" ? 1 : 0;
      expect(calls.counts()).toMatchObject([{ timeouts: { execution: 1 }, failed: 0, ignored, stuck: 0 }]);
    },
  );

  it.each(["returns", "throws"])(
    "counts as stopped a client that left, whose handler then %s",
    async (how) => {
      const calls = createCalls();
      const entered = Promise.withResolvers<void>();
      const ended = Promise.withResolvers<void>();
      const url = await open(calls, {}, async (signal) => {
        entered.resolve();
        await aborted(signal);
        setImmediate(ended.resolve);
        if (how === "throws") throw signal.reason;
        return { late: true };
      });
      const client = new AbortController();
      const sent = post(url, { signal: client.signal }).catch(() => {});
      await entered.promise;
      client.abort();
      await Promise.all([sent, ended.promise]);
      const ignored = how === "returns" ? 1 : 0;
      expect(calls.counts()).toMatchObject([{ calls: 1, stopped: 1, ignored, stuck: 0 }]);
    },
  );

  it.each(["", "0", "-1", "1.5", "abc", "1e3", "99999999999999"])(
    "refuses a header of %s",
    async (header) => {
      let entered = 0;
      const url = await open(createCalls(), {}, () => ++entered);
      const reply = await post(url, { headers: { "curfew-timeout-ms": header } });
      expect([reply.status, await reply.json(), entered]).toMatchObject([
        400,
        { error: { code: "invalid_deadline" } },
        0,
      ]);
    },
  );
});

it("a client that leaves aborts the signal of its request", async () => {
  for (const name of Object.keys(frameworks)) {
    const entered = Promise.withResolvers<AbortSignal>();
    const url = await (frameworks[name] as Framework)(createCalls(), {}, (signal) => {
      entered.resolve(signal);
      return new Promise(() => {});
    });
    const client = new AbortController();
    const sent = post(url, { signal: client.signal }).catch(() => {});
    const signal = await entered.promise;
    const heard = aborted(signal);
    client.abort();
    expect(await heard, name).toMatchObject({ name: "StopError", kind: "cancelled" });
    await sent;
  }
});

it("the deadline of the first of three services reaches the last", async () => {
  const open = (name: string) => frameworks[name] as Framework;
  const last = Promise.withResolvers<AbortSignal>();
  const c = await open("Hono")(createCalls(), { attempt: "1h" }, (signal) => {
    last.resolve(signal);
    return new Promise(() => {});
  });
  const pass = (url: string) => async () => {
    const init = { method: "POST", body: "{}", headers: { "content-type": "application/json" } };
    return (await deadlineFetch(url, init)).json();
  };
  const b = await open("Fastify")(createCalls(), { attempt: "1h" }, pass(c));
  const a = await open("Express")(createCalls(), { attempt: "300ms" }, pass(b));
  const reply = post(a);
  const signal = await last.promise;
  // By its own timer, or because the service before it hung up first: both come from the same deadline.
  await aborted(signal);
  expect((await reply).status).toBe(504);
});

describe("deadlineFetch", () => {
  it("is plain fetch outside of calls, and sends nothing when no time is left", async () => {
    const seen: (string | undefined)[] = [];
    const server = createNodeServer((request, reply) => {
      seen.push(request.headers["curfew-timeout-ms"] as string | undefined);
      reply.end("{}");
    }).listen(0, "127.0.0.1");
    const url = await addressOf(server);
    await (await deadlineFetch(url)).text();
    const calls = createCalls();
    await calls.within({ attempt: "10s" }, async () => (await deadlineFetch(new Request(url))).text());
    expect(seen[0]).toBeUndefined();
    expect(Number(seen[1])).toBeGreaterThan(9_000);
    const late = calls.within({ attempt: "20ms", grace: "10s" }, async ({ signal }) => {
      await aborted(signal);
      await deadlineFetch(url);
    });
    await expect(late).rejects.toMatchObject({ name: "TimeoutError" });
    expect(seen).toHaveLength(2);
  });
});
