import { describe, expect, it, onTestFinished } from "vitest";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";

interface Frame {
  readonly id: string;
  readonly event: string;
  readonly data: { readonly subject: string; readonly data: { readonly queue: string } };
}

async function openServer() {
  const engine = await openEngine({ store: "memory:", logger: silentLogger });
  const listening = await listen(createServer(engine), { port: 0 });
  onTestFinished(async () => {
    await listening.close();
    await engine.close();
  });
  const post = async (path: string, body: object) => {
    const response = await fetch(`${listening.url}/ojs/v1${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    });
    return (await response.json()) as { job: { id: string } };
  };
  return { engine, listening, post };
}

/** A stream whose reply has begun: from then on the server sends it everything. */
interface Connected {
  /** Reads frames until there are `count`, or the line ends. */
  read(count: number): Promise<Frame[]>;
}

async function connect(url: string, headers: Record<string, string> = {}): Promise<Connected> {
  const controller = new AbortController();
  const response = await fetch(url, { headers, signal: controller.signal });
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  return { read: (count) => readFrames(response, controller, count) };
}

async function frames(url: string, count: number, headers: Record<string, string>): Promise<Frame[]> {
  return (await connect(url, headers)).read(count);
}

async function readFrames(response: Response, controller: AbortController, count: number): Promise<Frame[]> {
  const found: Frame[] = [];
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s).slice(0, 2)));
      if (fields.data) found.push({ ...fields, data: JSON.parse(fields.data) } as Frame);
    }
    if (found.length >= count) break;
  }
  controller.abort();
  return found;
}

describe("live events", () => {
  it("live events reach only readers whose filter matches", async () => {
    const { listening, post } = await openServer();
    const base = `${listening.url}/ojs/v1`;
    const { job } = await post("/jobs", { type: "a", args: [], options: { queue: "mine" } });
    const all = await connect(`${base}/events/stream`);
    const mine = await connect(`${base}/queues/mine/events`);
    const one = await connect(`${base}/events/stream?channel=job:${job.id}`);
    await post("/jobs", { type: "b", args: [], options: { queue: "other" } });
    await post("/workers/fetch", { queues: ["mine"] });
    await post("/workers/ack", { job_id: job.id });
    const names = (await all.read(3)).map(({ event }) => event);
    expect(names).toEqual(["job.enqueued", "job.started", "job.completed"]);
    for (const read of [await mine.read(2), await one.read(2)])
      expect(read.map(({ event, data }) => [event, data.subject])).toEqual([
        ["job.started", job.id],
        ["job.completed", job.id],
      ]);
  });

  it("a stream continues after Last-Event-ID", async () => {
    const { listening, post } = await openServer();
    const url = `${listening.url}/ojs/v1/events/stream?types=job.enqueued`;
    const { job: first } = await post("/jobs", { type: "a", args: [] });
    await post("/jobs", { type: "a", args: [] });
    const events = (await (await fetch(`${listening.url}/ojs/v1/events`)).json()) as { cursor: string };
    const { job: third } = await post("/jobs", { type: "a", args: [] });
    const [next] = await frames(url, 1, { "Last-Event-ID": events.cursor });
    expect(next?.data.subject).toBe(third.id);
    expect(next?.id).not.toBe(first.id);
  });

  it("a reader misses no event while it catches up", async () => {
    const { listening, post } = await openServer();
    await post("/jobs", { type: "a", args: [] });
    const first = (await (await fetch(`${listening.url}/ojs/v1/events?after=0`)).json()) as {
      cursor: string;
    };
    const url = `${listening.url}/ojs/v1/events/stream?types=job.enqueued`;
    const ids: string[] = [];
    const enqueue = async () => {
      for (let nth = 0; nth < 100; nth++) ids.push((await post("/jobs", { type: "a", args: [] })).job.id);
    };
    const enqueued = enqueue();
    const read = await Promise.all(
      Array.from({ length: 10 }, () => frames(url, 100, { "Last-Event-ID": first.cursor })),
    );
    await enqueued;
    for (const found of read) expect(new Set(found.map(({ data }) => data.subject))).toEqual(new Set(ids));
  });

  it("streams end at once when the server closes", async () => {
    const { listening } = await openServer();
    const stream = await connect(`${listening.url}/ojs/v1/events/stream`);
    const closing = listening.close();
    expect(await stream.read(1)).toEqual([]);
    await closing;
  });

  it("a change of state is told to readers that name it", async () => {
    const { listening, post } = await openServer();
    const base = `${listening.url}/ojs/v1`;
    const plain = await connect(`${base}/events/stream?types=job.*`);
    const changes = await connect(`${base}/events/stream?types=job.state_changed`);
    const both = await connect(`${base}/events/stream?types=job.state_changed,job.started`);
    const { job } = await post("/jobs", { type: "a", args: [], options: { queue: "mine" } });
    await post("/workers/fetch", { queues: ["mine"] });
    await post("/workers/ack", { job_id: job.id });
    const names = async (line: Connected, count: number) =>
      (await line.read(count)).map(({ event }) => event);
    expect(await names(plain, 3)).toEqual(["job.enqueued", "job.started", "job.completed"]);
    const told = await changes.read(3);
    expect(told.map(({ event, data }) => [event, data.subject, data.data])).toMatchObject([
      ["job.state_changed", job.id, { from: null, to: "available", queue: "mine" }],
      ["job.state_changed", job.id, { from: "available", to: "active" }],
      ["job.state_changed", job.id, { from: "active", to: "completed", job_id: job.id }],
    ]);
    const change = "job.state_changed";
    expect(await names(both, 4)).toEqual([change, "job.started", change, change]);
    const listed = await fetch(`${base}/events?types=job.state_changed`);
    const { events } = (await listed.json()) as { events: { id: string; type: string }[] };
    expect(events.map(({ type }) => type)).toEqual([change, change, change]);
    expect(new Set(events.map(({ id }) => id)).size).toBe(3);
  });

  it.each(["channel=nonsense", "after=x'y"])("refuses %s", async (query) => {
    const { listening } = await openServer();
    expect((await fetch(`${listening.url}/ojs/v1/events/stream?${query}`)).status).toBe(400);
  });
});
