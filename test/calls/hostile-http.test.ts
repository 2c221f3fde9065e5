import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Koa from "koa";
import { describe, expect, it, onTestFinished } from "vitest";
import { createCalls, deadlineFetch, expressDeadline, koaDeadline } from "../../src/calls/index.ts";

/** SEMANTICS 10.6 against clients and handlers that do what they should not, over real HTTP in real time. */

async function listen(handle: (request: IncomingMessage, reply: ServerResponse) => void): Promise<string> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

const aborted = (signal: AbortSignal) =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(signal.reason), { once: true }));

describe("middleware of plain Node", () => {
  it("two around one handler answer 504 once, and the client gets it whole", async () => {
    const calls = createCalls();
    const outer = expressDeadline(calls, { attempt: "30ms", name: "outer" });
    const inner = expressDeadline(calls, { attempt: "10s", name: "inner" });
    const url = await listen((request, reply) =>
      outer(request, reply, () => inner(request, reply, () => {})),
    );
    for (let count = 0; count < 5; count++) {
      const reply = await fetch(url);
      expect([reply.status, await reply.json()]).toMatchObject([
        504,
        { error: { code: "deadline_exceeded" } },
      ]);
    }
  });

  it("drops what the handler said about a body that it never sent", async () => {
    const guard = expressDeadline(createCalls(), { attempt: "30ms" });
    const url = await listen((request, reply) =>
      guard(request, reply, () => {
        reply.setHeader("content-length", "5000");
        reply.setHeader("content-encoding", "gzip");
        reply.setHeader("etag", '"a"');
        reply.setHeader("access-control-allow-origin", "*");
      }),
    );
    const reply = await fetch(url);
    expect(reply.status).toBe(504);
    expect(await reply.json()).toMatchObject({ error: { code: "deadline_exceeded" } });
    expect([reply.headers.get("etag"), reply.headers.get("access-control-allow-origin")]).toEqual([
      null,
      "*",
    ]);
  });

  it.each([
    ["a reply", 1, (reply: ServerResponse) => reply.end("late")],
    ["a reply in pieces", 1, (reply: ServerResponse) => [reply.write("late"), reply.end("later")]],
    ["a reply with a head", 1, (reply: ServerResponse) => reply.writeHead(200, {}).end("late")],
    ["an error", 0, (reply: ServerResponse) => reply.writeHead(500).end("late")],
    ["another error", 0, (reply: ServerResponse) => Object.assign(reply, { statusCode: 503 }).end("late")],
  ])("counts %s after the 504 %i times, and a log still sees 504", async (_what, ignored, send) => {
    const calls = createCalls();
    const guard = expressDeadline(calls, { attempt: "20ms" });
    const seen = Promise.withResolvers<number>();
    const url = await listen((incoming, reply) =>
      guard(incoming, reply, () => {
        const { signal } = incoming as unknown as { signal: AbortSignal };
        signal.addEventListener("abort", () => {
          send(reply);
          reply.end("again", () => seen.resolve(reply.statusCode));
        });
      }),
    );
    expect((await fetch(url)).status).toBe(504);
    expect(await seen.promise).toBe(504);
    expect(calls.counts()).toMatchObject([{ timeouts: { execution: 1 }, ignored, stuck: 0 }]);
  });

  it("ends at once for a reply that was sent before it", async () => {
    const calls = createCalls();
    const guard = expressDeadline(calls, { attempt: "10s" });
    const entered = Promise.withResolvers<void>();
    const url = await listen((request, reply) => {
      reply.end("first");
      reply.once("close", () => {
        guard(request, reply, () => {});
        entered.resolve();
      });
    });
    expect(await (await fetch(url)).text()).toBe("first");
    await entered.promise;
    await new Promise(setImmediate);
    expect(calls.pending).toBe(0);
  });

  it("does not enter the handler of a client that left before it", async () => {
    const calls = createCalls();
    const guard = expressDeadline(calls, { attempt: "10s" });
    const closed = Promise.withResolvers<void>();
    const client = new AbortController();
    let entered = 0;
    const url = await listen((incoming, reply) => {
      reply.once("close", () => {
        guard(incoming, reply, () => ++entered);
        closed.resolve();
      });
      client.abort();
    });
    await fetch(url, { signal: client.signal }).catch(() => {});
    await closed.promise;
    expect([entered, calls.pending]).toEqual([0, 0]);
  });

  it("enters a handler once, whatever retries and limits the calls have as defaults", async () => {
    const retry = { attempts: 3, backoff: { kind: "constant", first: 1, max: 1, jitter: false } } as const;
    const calls = createCalls({ defaults: { retry, attempt: "1ms", total: "10ms", grace: "10s" } });
    let entered = 0;
    const guard = expressDeadline(calls, { attempt: "50ms" });
    const url = await listen((incoming, reply) => guard(incoming, reply, () => ++entered));
    const startedAt = performance.now();
    expect((await fetch(url)).status).toBe(504);
    const took = performance.now() - startedAt;
    expect(took).toBeGreaterThanOrEqual(49);
    expect(took).toBeLessThan(5_000);
    expect(entered).toBe(1);
  });

  it.each([
    [{ atempt: "1s" }, "did you mean attempt?"],
    [{ name: "" }, "deadline.name"],
    [{ attempt: "none" }, "deadline.attempt"],
  ])("refuses %j when it is made", (options, message) => {
    expect(() => expressDeadline(createCalls(), options as never)).toThrow(message);
  });

  it("cuts a reply that still streams at the deadline", async () => {
    const guard = expressDeadline(createCalls(), { attempt: "50ms" });
    const url = await listen((request, reply) => guard(request, reply, () => void reply.write("begun")));
    const reply = await fetch(url);
    expect(reply.status).toBe(200);
    await expect(reply.text()).rejects.toThrow();
  });

  it.each([
    ["twice", ["1000", "2000"]],
    ["empty", [""]],
  ])("refuses a header that is sent %s", async (_name, values) => {
    let entered = 0;
    const guard = expressDeadline(createCalls());
    const url = await listen((incoming, reply) =>
      guard(incoming, reply, () => void reply.end(`${++entered}`)),
    );
    const sent = request(url, { headers: { "curfew-timeout-ms": values } }).end();
    const [reply] = (await once(sent, "response")) as [IncomingMessage];
    reply.resume();
    expect([reply.statusCode, entered]).toEqual([400, 0]);
  });
});

it("a client of Koa that leaves aborts the signal, and is no error of the app", async () => {
  const app = new Koa();
  const errors: unknown[] = [];
  const entered = Promise.withResolvers<AbortSignal>();
  app.on("error", (error) => errors.push(error));
  app.use(koaDeadline(createCalls()) as never);
  app.use((ctx) => {
    entered.resolve(ctx.state.signal);
    return new Promise(() => {});
  });
  const url = await listen(app.callback());
  const client = new AbortController();
  const sent = fetch(url, { signal: client.signal }).catch(() => {});
  const signal = await entered.promise;
  const heard = aborted(signal);
  client.abort();
  expect(await heard).toMatchObject({ name: "StopError" });
  await sent;
  await new Promise(setImmediate);
  expect(errors).toEqual([]);
});

describe("deadlineFetch", () => {
  it("keeps the body, the headers and the signal of a Request, also through a redirect", async () => {
    const seen: unknown[] = [];
    const url = await listen(async (incoming, reply) => {
      let body = "";
      for await (const chunk of incoming) body += chunk;
      seen.push([incoming.method, incoming.url, body, incoming.headers["x-own"]]);
      if (incoming.url === "/") reply.writeHead(307, { location: "/next" });
      if (incoming.url !== "/hang") reply.end("ok");
    });
    const calls = createCalls();
    const post = { method: "POST", body: "text", headers: { "x-own": "1" } };
    const reply = await calls.within({}, async () => (await deadlineFetch(new Request(url, post))).text());
    expect(reply).toBe("ok");
    expect(seen).toEqual([
      ["POST", "/", "text", "1"],
      ["POST", "/next", "text", "1"],
    ]);
    const own = new AbortController();
    const hung = new Request(`${url}hang`, { ...post, signal: own.signal });
    const call = calls.within({}, () => deadlineFetch(hung));
    setImmediate(() => own.abort(new Error("mine")));
    await expect(call).rejects.toThrow("mine");
  });
});
