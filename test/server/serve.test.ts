import { once } from "node:events";
import { Agent, request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { createGuard } from "../../src/server/access/request-guard.ts";
import { HttpError } from "../../src/server/http/http-error.ts";
import { isLoopback } from "../../src/server/http/loopback.ts";
import { type Listener, type Listening, type ListenOptions, listen } from "../../src/server/listen.ts";
import { createDeferred } from "../../src/testing/index.ts";

/** A server that echoes the body it could read, and keeps a request waiting where the test says so. */
function echo(more: Partial<Listener> = {}) {
  const guard = createGuard({ limits: { body: 1_000 } }, { system: realSystem, now: () => 0 });
  const seen: string[] = [];
  const listener: Listener = {
    isOpen: true,
    async fetch(request, { incoming }) {
      seen.push(request.url);
      try {
        return Response.json({ body: (await guard.body(request, incoming as never)) ?? null });
      } catch (error) {
        if (!(error instanceof HttpError)) throw error;
        return Response.json({ code: error.code }, { status: error.status });
      }
    },
    close: async () => {},
    ...more,
  };
  return Object.assign(listener, { seen });
}

async function start(server: Listener, options: ListenOptions = {}): Promise<Listening> {
  const listening = await listen(server, { port: 0, ...options });
  onTestFinished(() => listening.close());
  return listening;
}

/** Sends bytes as they are and collects what comes back until the other side ends. */
async function raw(port: number, bytes: string | readonly string[]): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  for (const part of [bytes].flat()) socket.write(part);
  return untilEnd(socket);
}

async function untilEnd(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (part) => (text += part));
  socket.on("error", () => {});
  await once(socket, "close");
  return text;
}

describe("where a server without keys listens", () => {
  it.each(["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example.org", ""])(
    "a server without keys refuses to listen on %s",
    async (host) => {
      await expect(listen(echo(), { host, port: 0 })).rejects.toThrow(/without keys.*curfew keys new/);
    },
  );

  it.each(["127.0.0.1", "localhost"])("a server without keys listens on %s", async (host) => {
    const { url, port } = await start(echo(), { host });
    expect(url).toBe(`http://${host}:${port}`);
    expect((await fetch(url)).status).toBe(200);
  });

  it("a server with keys listens on every address", async () => {
    const { url } = await start(echo({ isOpen: false }), { host: "0.0.0.0" });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
    expect((await fetch(url)).status).toBe(200);
  });

  it("isLoopback rejects names that only look like loopback", () => {
    const inside = [
      "127.0.0.1",
      "127.9.9.9",
      "::1",
      "localhost",
      "LOCALHOST",
      "a.localhost",
      "::ffff:127.0.0.1",
    ];
    const outside = [
      "0.0.0.0",
      "::",
      "10.0.0.1",
      "localhost.example.org",
      "127.0.0.1.nip.io",
      "128.0.0.1",
      "",
      "evillocalhost",
    ];
    expect(inside.filter((host) => !isLoopback(host))).toEqual([]);
    expect(outside.filter(isLoopback)).toEqual([]);
  });

  it("a server without keys refuses Host headers of other machines", async () => {
    const server = echo();
    const { port } = await start(server);
    const ask = (host: string) => raw(port, `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    for (const host of ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[2001:db8::1]"]) {
      expect(await ask(host)).toMatch(/^HTTP\/1\.1 421 /);
    }
    expect(server.seen).toEqual([]);
    for (const host of [`127.0.0.1:${port}`, "localhost", "[::1]:80"])
      expect(await ask(host)).toMatch(/^HTTP\/1\.1 200 /);
    expect(await ask("evil.example")).toMatch(/^HTTP\/1\.1 421 /);
  });
});

describe("what cannot be listened on", () => {
  it("says that the port is in use", async () => {
    const { port } = await start(echo());
    await expect(listen(echo(), { port })).rejects.toThrow(
      `127.0.0.1:${port} is already in use; choose another port`,
    );
  });

  it.each([-1, 65_536, 1.5, Number.NaN])("refuses the port %s", async (port) => {
    await expect(listen(echo(), { port })).rejects.toThrow(/port: /);
  });
});

describe("bodies over a socket", () => {
  const head =
    "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n";

  it("a body is read whole or in chunks", async () => {
    const { port } = await start(echo());
    expect(await raw(port, `${head}Content-Length: 7\r\n\r\n{"a":1}`)).toContain('{"body":{"a":1}}');
    const chunks = [
      `${head}Transfer-Encoding: chunked\r\n\r\n`,
      '3\r\n{"a\r\n',
      '4\r\n":1}\r\n',
      "0\r\n\r\n",
    ];
    expect(await raw(port, chunks)).toContain('{"body":{"a":1}}');
  });

  it("a body above the limit is refused, with or without a Content-Length", async () => {
    const { port } = await start(echo());
    expect(await raw(port, `${head}Content-Length: 1001\r\n\r\n`)).toMatch(/^HTTP\/1\.1 413 /);
    const chunk = `3e8\r\n${"x".repeat(1_000)}\r\n`;
    expect(await raw(port, [`${head}Transfer-Encoding: chunked\r\n\r\n`, chunk, chunk])).toMatch(
      /^HTTP\/1\.1 413 /,
    );
  });

  it("a body that ends too early leaves the server serving", async () => {
    const { port, url } = await start(echo());
    const socket = connect(port, "127.0.0.1");
    socket.write(`${head}Content-Length: 100\r\n\r\n{`);
    await once(socket, "connect");
    socket.destroy();
    expect((await fetch(url)).status).toBe(200);
  });
});

describe("what is not HTTP", () => {
  it.each([
    ["an unknown method", "ASSERT / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400],
    ["garbage", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n", 400],
    ["no host", "GET / HTTP/1.1\r\n\r\n", 400],
    [
      "two lengths",
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      400,
    ],
    [
      "a length and chunks",
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
      400,
    ],
    ["huge headers", `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${"x".repeat(20_000)}\r\n\r\n`, 431],
    ["a broken host", "GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n", 400],
  ])("gets an answer: %s", async (_what, bytes, status) => {
    const { port, url } = await start(echo());
    const reply = await raw(port, bytes);
    expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect((await fetch(url)).status).toBe(200);
  });

  it("invalid HTTP gets a JSON error without internal details", async () => {
    const { port } = await start(echo());
    const reply = await raw(port, "ASSERT / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const body = JSON.parse(reply.split("\r\n\r\n")[1] as string);
    expect(body).toEqual({
      error: {
        code: "invalid_request",
        type: "invalid_request",
        message: "This is not valid HTTP",
        retryable: false,
        request_id: "none",
      },
    });
    expect(reply).toContain("Content-Type: application/openjobspec+json\r\n");
  });

  it("a client that sends slowly loses its connection", async () => {
    const { port } = await start(echo());
    const socket = connect(port, "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n");
    // A real wait: Node's own clock decides when headers have taken too long.
    expect(await untilEnd(socket)).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("connections above maxConnections are refused", async () => {
    const { port } = await start(echo(), { maxConnections: 2 });
    const sockets = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    expect(await untilEnd(connect(port, "127.0.0.1"))).toBe("");
  });
});

describe("closing", () => {
  it("close() finishes requests under way, accepts none, closes idle connections, then closes the server", async () => {
    const release = createDeferred<void>();
    const entered = createDeferred<void>();
    const order: string[] = [];
    const server = echo({
      async fetch() {
        entered.resolve();
        await release.promise;
        order.push("answered");
        return new Response("done");
      },
      close: async () => void order.push("closed"),
    });
    const listening = await listen(server, { port: 0 });
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    const idle = connect(listening.port, "127.0.0.1");
    await once(idle, "connect");
    const idleEnded = untilEnd(idle);
    const answer = new Promise<string>((resolve, reject) => {
      httpRequest({ port: listening.port, host: "127.0.0.1", agent }, (response) => {
        response.setEncoding("utf8").on("data", resolve);
      })
        .on("error", reject)
        .end();
    });
    await entered.promise;
    const closing = listening.close();
    expect(listening.close()).toBe(closing);
    await idleEnded;
    await expect(fetch(listening.url)).rejects.toThrow();
    expect(order).toEqual([]);
    release.resolve();
    expect(await answer).toBe("done");
    await closing;
    expect(order).toEqual(["answered", "closed"]);
  });

  it("close() cuts requests after closeWithin", async () => {
    const entered = createDeferred<void>();
    const server = echo({
      fetch() {
        entered.resolve();
        return new Promise<Response>(() => {});
      },
    });
    const listening = await listen(server, { port: 0, closeWithin: "50ms" });
    const hanging = fetch(listening.url);
    await entered.promise;
    await Promise.all([listening.close(), expect(hanging).rejects.toThrow()]);
  });
});
