import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { parseAllowList } from "../../src/core/webhook/endpoint.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import type { WebhookCall } from "../../src/ports/webhooks.ts";
import { httpSender } from "../../src/webhooks/http-sender.ts";
import type { Resolve } from "../../src/webhooks/shared-lookups.ts";
import { openReceiver, type Receiver } from "./webhook-receiver.ts";

const AT = Date.UTC(2030, 0, 1);

function open(allow: readonly string[], resolve?: Resolve) {
  const sender = httpSender({
    system: realSystem,
    allowed: parseAllowList(allow, "allow"),
    version: "1.0.0",
    ...(resolve && { resolve }),
  });
  onTestFinished(() => sender.close());
  return (url: string, more: Partial<WebhookCall> = {}) =>
    sender.send({
      url,
      subscription: "sub_1",
      delivery: "del_1",
      events: [
        { id: "evt_1", cursor: "1", name: "job.completed", at: AT, job: "j-1", type: "a.b", queue: "mail" },
      ],
      isBatch: false,
      secrets: ["new-secret-0123456789", "old-secret-0123456789"],
      at: AT,
      headers: {},
      signal: AbortSignal.timeout(10_000),
      ...more,
    });
}

async function receiver(...given: Parameters<typeof openReceiver>): Promise<Receiver> {
  const made = await openReceiver(...given);
  onTestFinished(() => made[Symbol.asyncDispose]());
  return made;
}

describe("a call of a webhook", () => {
  it("is a signed POST with the event, which a receiver can check with either secret", async () => {
    const { url, received } = await receiver();
    const answer = await open(["127.0.0.1"])(url);
    expect(answer).toMatchObject({ status: 200, text: "ok", retryAfter: null });
    const [{ headers, body }] = received as [Receiver["received"][number]];
    expect(headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": "OJS-Webhook/1.0 curfew/1.0.0",
      "x-ojs-event-type": "job.completed",
      "x-ojs-delivery-id": "del_1",
      "x-ojs-subscription-id": "sub_1",
      "x-ojs-timestamp": String(AT / 1_000),
    });
    expect(JSON.parse(body)).toMatchObject({
      specversion: "1.0",
      id: "evt_1",
      type: "job.completed",
      subject: "j-1",
    });
    const signatures = String(headers["x-ojs-signature"]).split(",");
    for (const [index, secret] of ["new-secret-0123456789", "old-secret-0123456789"].entries()) {
      const expected = createHmac("sha256", secret)
        .update(`${AT / 1_000}.${body}`)
        .digest();
      const given = Buffer.from((signatures[index] as string).replace("sha256=", ""), "hex");
      expect(timingSafeEqual(expected, given)).toBe(true);
    }
  });

  it("has the headers of its subscription, which replace none of the signature", async () => {
    const { url, received } = await receiver();
    await open(["127.0.0.1"])(url, { headers: { Authorization: "Bearer t0ken", accept: "text/plain" } });
    expect(received[0]?.headers).toMatchObject({
      authorization: "Bearer t0ken",
      accept: "text/plain",
      "x-ojs-subscription-id": "sub_1",
    });
  });

  it("carries a list of events in a batch", async () => {
    const { url, received } = await receiver();
    await open(["127.0.0.1"])(url, { isBatch: true });
    expect(JSON.parse(received[0]?.body as string)).toMatchObject([{ type: "job.completed" }]);
    expect(received[0]?.headers).toMatchObject({
      "x-ojs-event-type": "webhook.batch",
      "x-ojs-event-count": "1",
    });
  });

  it("does not follow a redirect", async () => {
    const secret = await receiver();
    const { url } = await receiver((response) => {
      response.writeHead(302, { Location: secret.url });
      response.end();
    });
    expect((await open(["127.0.0.1"])(url)).status).toBe(302);
    expect(secret.received).toEqual([]);
  });

  it("reads no more than the beginning of a body that is huge, slow, cut off or garbage", async () => {
    const huge = await receiver((response) => {
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(65_536)));
        response.once("drain", more);
      };
      more();
    });
    const slow = await receiver((response) => {
      response.write("slow");
      const timer = setInterval(() => response.write("."), 50);
      response.on("close", () => clearInterval(timer));
    });
    const cut = await receiver((response) => {
      response.writeHead(200, { "Content-Length": 1_000 });
      response.write("cut");
      setImmediate(() => response.destroy());
    });
    const garbage = await receiver((response) => response.end(Buffer.from([0xff, 0xfe, 0x00, 0xd8])));
    const send = open(["127.0.0.1"]);
    const answers = await Promise.all([huge, slow, cut, garbage].map(({ url }) => send(url)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers[0]?.text).toHaveLength(1_000);
    expect(answers[1]?.text).toMatch(/^slow/);
    expect(answers[3]?.text.isWellFormed()).toBe(true);
  });

  it("rejects when the endpoint hangs until its signal, closes, switches protocols or speaks no HTTP", async () => {
    const hanging = await receiver(() => {});
    const closing = await receiver((response) => response.destroy());
    const raw = (text: string) =>
      new Promise<number>((resolve) => {
        const sockets = new Set<Socket>();
        const server = createServer((socket) => {
          sockets.add(socket);
          socket.on("error", () => {});
          socket.once("data", () => socket.write(text));
        });
        onTestFinished(() => {
          for (const socket of sockets) socket.destroy();
          server.close();
        });
        server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
      });
    const bytes = await raw("SSH-2.0-OpenSSH_9.6\r\n");
    const upgrade = await raw(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
    );
    const headers = await raw(`HTTP/1.1 200 OK\r\n${"X-A: aaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(2_000)}\r\n`);
    const send = open(["127.0.0.1"]);
    await expect(send(hanging.url, { signal: AbortSignal.timeout(100) })).rejects.toThrow();
    await expect(send(closing.url)).rejects.toThrow();
    await expect(send(`http://127.0.0.1:${bytes}/`)).rejects.toThrow();
    await expect(send(`http://127.0.0.1:${upgrade}/`)).rejects.toThrow("switch protocols");
    await expect(send(`http://127.0.0.1:${headers}/`)).rejects.toThrow();
  });

  it("uses a connection again, and a new one at once if the endpoint has closed it", async () => {
    const ports = new Set<number | undefined>();
    const { url, received } = await receiver((response, _received, nth) => {
      ports.add(response.socket?.remotePort);
      response.end("ok");
      if (nth === 2) response.socket?.end();
    });
    const send = open(["127.0.0.1"]);
    await send(url);
    await send(url);
    expect(ports.size).toBe(1);
    expect((await send(url)).status).toBe(200);
    // The call on the closed connection may have arrived: at least once.
    expect(received.length).toBeGreaterThanOrEqual(3);
  });
});

describe("names", () => {
  it("that take long to look up share two look-ups, which hold no more threads of the process", async () => {
    const hosts: string[] = [];
    const answers: (() => void)[] = [];
    const send = open([], (host) => {
      hosts.push(host);
      return new Promise((resolve) => answers.push(() => resolve(["127.0.0.1"])));
    });
    const calls = ["a", "b", "a", "c", "a"].map((host) => send(`https://${host}.example/`));
    const outcomes = Promise.allSettled(calls);
    await expect.poll(() => hosts).toEqual(["a.example", "b.example"]);
    answers[1]?.();
    await expect(calls[1]).rejects.toThrow("loopback");
    await expect.poll(() => hosts).toEqual(["a.example", "b.example", "c.example"]);
    answers[0]?.();
    answers[2]?.();
    for (const outcome of await outcomes) expect(outcome.status).toBe("rejected");
    expect(hosts).toHaveLength(3);
  });

  it("that nobody waits for any more are not looked up", async () => {
    const hosts: string[] = [];
    const send = open([], (host) => {
      hosts.push(host);
      return new Promise(() => {});
    });
    const stop = new AbortController();
    const held = ["a", "b"].map((host) => send(`https://${host}.example/`, { signal: stop.signal }));
    const late = new AbortController();
    const third = send("https://c.example/", { signal: late.signal });
    await expect.poll(() => hosts).toHaveLength(2);
    late.abort(new Error("too late"));
    stop.abort(new Error("too late"));
    for (const call of [...held, third]) await expect(call).rejects.toThrow();
    expect(hosts).toHaveLength(2);
  });
});

describe("request forgery", () => {
  it("is refused on the address that a name leads to, before a byte is sent", async () => {
    const { port, received } = await receiver();
    for (const address of [
      "127.0.0.1",
      "169.254.169.254",
      "10.0.0.1",
      "::1",
      "::ffff:127.0.0.1",
      "64:ff9b::7f00:1",
    ]) {
      const send = open([], async () => [address]);
      await expect(send(`https://rebound.example:${port}/`)).rejects.toThrow("must not be called");
    }
    expect(received).toEqual([]);
  });

  it("is refused when a name changes its address between the check and the call", async () => {
    const { port, received } = await receiver();
    const answers = [["93.184.215.14"], ["127.0.0.1"]];
    let asked = 0;
    const stop = new AbortController();
    const send = open([], async () => {
      // The first call ends after its look-up, whether a network is there or not.
      setImmediate(() => stop.abort(new Error("stopped")));
      return answers[Math.min(asked++, 1)] as string[];
    });
    await expect(send(`https://rebound.example:${port}/`, { signal: stop.signal })).rejects.toThrow();
    await expect(send(`https://rebound.example:${port}/`)).rejects.toThrow("loopback");
    // One look-up per connection: what was checked is what is connected.
    expect(asked).toBe(2);
    expect(received).toEqual([]);
  });

  it("is refused when one of several addresses is private", async () => {
    const send = open([], async () => ["93.184.215.14", "127.0.0.1"]);
    await expect(send("https://mixed.example/")).rejects.toThrow("loopback");
  });

  it("is refused for literal addresses in all their spellings, other protocols, passwords and ports", async () => {
    const send = open([]);
    for (const url of [
      "https://127.0.0.1/",
      "https://2130706433/",
      "https://0x7f000001/",
      "https://127.1/",
      "https://[::1]/",
      "https://[::ffff:7f00:1]/",
      "https://localhost/",
      "https://a.localhost./",
      "http://example.com/",
      "ftp://example.com/",
      "file:///etc/passwd",
      "https://a:b@example.com/",
      "https://example.com:25/",
      "https://example.com:6667/",
    ])
      await expect(send(url), url).rejects.toThrow(/^url: /);
  });

  it("an allowed host is called on any address, and no other host is", async () => {
    const { port, received } = await receiver();
    const send = open(["hooks.internal"], async () => ["127.0.0.1"]);
    expect((await send(`http://hooks.internal:${port}/`)).status).toBe(200);
    await expect(send(`https://other.internal:${port}/`)).rejects.toThrow();
    await expect(send(`https://other.example:${port}/`)).rejects.toThrow("loopback");
    expect(received).toHaveLength(1);
  });
});
