import { describe, expect, it } from "vitest";
import { z } from "zod";
import { openClient } from "../../src/client/index.ts";
import {
  constant,
  defineJob,
  delays,
  exponential,
  JobFailedError,
  type Logger,
  linear,
  polynomial,
} from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createKey } from "../../src/server/access/auth.ts";
import { createServer } from "../../src/server/app.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { deaf, errorOf, jobWith, START } from "../engine/stage.ts";
import { openClientStage, Wire } from "./client-stage.ts";

const ID = "01890000-0000-7000-8000-000000000001";
const plain = defineJob({ type: "plain.job" });

describe("enqueue over HTTP (1.2, 5.4)", () => {
  it("a remote enqueue stores the same row as a local one", async () => {
    const { client, engine, load } = await openClientStage();
    const definition = defineJob({
      type: "card.charge",
      payload: z.object({ cents: z.number() }),
      queue: "money",
      priority: 3,
      timeouts: { attempt: "30s", grace: "5s", mode: "discard", wait: "1h" },
      retry: { attempts: 5, backoff: exponential({ first: "2s", max: "1m", factor: 3, jitter: false }) },
      retention: { completed: "1h" },
    });
    const options = {
      delay: "90s",
      priority: -7,
      meta: { tenant: "a", "x.y": [1, null] },
      timeouts: { total: "2h", heartbeat: "1m", attempt: "none", grace: "unbounded" },
      retry: { except: ["Fatal.*"], retryFit: "any", onStall: "discard", onExhausted: "dead-letter" },
    } as const;
    const far = await load(await client.enqueue(definition, { cents: 5 }, options));
    const near = await load(await engine.enqueue(definition, { cents: 5 }, options));
    const { id: _far, options: farOptions, ...rest } = far;
    const { id: _near, options: nearOptions, ...expected } = near;
    expect(rest).toEqual(expected);
    // What the definition says travels as part of the enqueue, since the server has no definition.
    expect(farOptions).toMatchObject({ meta: options.meta, total: 7_200_000, wait: 3_600_000 });
    expect(farOptions?.settings).toEqual({
      timeouts: { ...nearOptions?.settings?.timeouts, mode: "discard", wait: 3_600_000 },
      retry: { ...nearOptions?.settings?.retry, ...definition.settings.retry },
      retention: { completed: 3_600_000 },
    });
  });

  it.each([constant({ first: "3s" }), linear(), polynomial({ power: 3 }), delays(["1s", "5s", "1m"])])(
    "keeps the backoff $kind as it was written",
    async (backoff) => {
      const { client, load } = await openClientStage();
      const row = await load(await client.enqueue(plain, null, { retry: { backoff } }));
      expect(row.options?.settings?.retry?.backoff).toEqual(backoff);
    },
  );

  it("a total shorter than the definition's attempt cuts it, and does not contradict it", async () => {
    const { client, load } = await openClientStage();
    const definition = defineJob({ type: "a.b", timeouts: { attempt: "30s" } });
    const row = await load(await client.enqueue(definition, null, { timeouts: { total: "10s" } }));
    expect((row.totalAt as number) - row.createdAt).toBe(10_000);
    const wrong = client.enqueue(plain, null, { timeouts: { attempt: "30s", total: "10s" } });
    expect(await errorOf(wrong)).toMatchObject({ code: "timeouts_contradict" });
  });

  it("starts at an instant, and expires at one", async () => {
    const { client, load } = await openClientStage();
    const at = new Date(START + 60_000);
    const expiresAt = new Date(START + 120_000);
    const row = await load(await client.enqueue(plain, 1, { at, expiresAt }));
    expect([row.state, row.wakeAt, row.waitAt]).toEqual(["scheduled", at.getTime(), expiresAt.getTime()]);
  });

  it("a known id gives the old job, marked as a duplicate", async () => {
    const { client } = await openClientStage();
    const first = await client.enqueue(plain, 1, { id: ID });
    const second = await client.enqueue(plain, 2, { id: ID });
    expect([first.duplicate, second.duplicate, second.id]).toEqual([false, true, ID]);
    expect((await second.load())?.payload).toBe(1);
  });

  it("checks the payload before anything is sent", async () => {
    const { client, wire } = await openClientStage();
    const definition = defineJob({ type: "a.b", payload: z.object({ cents: z.number() }) });
    const wrong = client.enqueue(definition, { cents: "5" } as never);
    expect(await errorOf(wrong)).toMatchObject({ code: "invalid_payload", field: "payload.cents" });
    const many = client.enqueueMany(definition, [{ cents: 1 }, { cents: "5" } as never]);
    expect(await errorOf(many)).toMatchObject({ code: "invalid_payload" });
    expect(await errorOf(client.enqueue(plain, new Date(0) as never))).toMatchObject({ code: "not_json" });
    expect(wire.calls).toEqual([]);
  });

  it.each([
    [{ tx: {} }, "not_over_http", /options\.tx.*openEngine/],
    [{ id: "00000000-0000-4000-8000-000000000001" }, "invalid_option", /options\.id.*UUIDv7/],
    [{ id: 5 }, "invalid_option", /options\.id/],
    [{ detach: 1 }, "invalid_option", /options\.detach/],
    [{ delay: "1s", at: new Date() }, "invalid_option", /either delay or at/],
    [{ delay: 5 }, "invalid_duration", /options\.delay/],
    [{ timeout: "5s" }, "unknown_option", /options\.timeout/],
    [{ queue: "NO" }, "invalid_name", /options\.queue/],
    [{ priority: 101 }, "invalid_priority", /options\.priority/],
    [{ meta: [] }, "invalid_option", /options\.meta/],
  ])("refuses %j before anything is sent", async (options, code, message) => {
    const { client, wire } = await openClientStage();
    const error = await errorOf(client.enqueue(plain, null, options as never));
    expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)]);
    expect(wire.calls).toEqual([]);
  });

  it("a refused enqueue rejects with the error of an engine, in the words of the library", async () => {
    const { client } = await openClientStage();
    const error = await errorOf(client.enqueue(plain, null, { delay: "2h", timeouts: { total: "1h" } }));
    expect(error.code).toBe("never_runs");
    expect(error.message).toMatch(/^options\.timeouts\.total: |^timeouts\.total: /);
  });

  it("enqueueMany sends batches, and gives a handle on each", async () => {
    const { client, engine, wire } = await openClientStage();
    const jobs = await client.enqueueMany(
      plain,
      Array.from({ length: 1_201 }, (_, nth) => ({ nth })),
    );
    expect(jobs.length).toBe(1_201);
    expect(wire.calls.map(({ path, body }) => [path, (body.jobs as []).length])).toEqual([
      ["/jobs/batch", 500],
      ["/jobs/batch", 500],
      ["/jobs/batch", 201],
    ]);
    expect(await engine.queues.depth()).toMatchObject({ available: 1_201 });
    expect((await jobs[1_200]?.load())?.payload).toEqual({ nth: 1_200 });
    const large = "x".repeat(900_000);
    await client.enqueueMany(plain, [large, large, large]);
    expect(
      wire
        .sent("/batch")
        .slice(3)
        .map(({ body }) => (body.jobs as []).length),
    ).toEqual([2, 1]);
    expect(await client.enqueueMany(plain, [])).toEqual([]);
  });
});

describe("lost replies", () => {
  it("an enqueue whose reply is lost is sent again under its id, and makes one job", async () => {
    const { client, engine, wire, advance } = await openClientStage();
    const fates = ["unanswered", "unsent", "unanswered", "served"] as const;
    let tries = 0;
    wire.fate = () => fates[tries++] ?? "served";
    const enqueuing = client.enqueue(plain, 1);
    await advance("10s");
    const job = await enqueuing;
    expect([tries, job.duplicate]).toEqual([4, false]);
    expect((await jobsOf(engine.store)).map(({ id }) => id)).toEqual([job.id]);
  });

  it("a batch whose reply was lost is stored once", async () => {
    const { client, engine, wire, advance } = await openClientStage();
    let tries = 0;
    wire.fate = () => (tries++ < 2 ? "unanswered" : "served");
    const enqueuing = client.enqueueMany(plain, [1, 2, 3]);
    await advance("10s");
    const jobs = await enqueuing;
    expect(tries).toBe(3);
    expect((await jobsOf(engine.store)).map(({ id }) => id)).toEqual(jobs.map(({ id }) => id));
  });

  it("a cancel whose reply is lost has still cancelled", async () => {
    const { client, wire, advance } = await openClientStage();
    const job = await client.enqueue(plain, 1);
    let tries = 0;
    wire.fate = () => (tries++ < 1 ? "unanswered" : "served");
    const cancelling = job.cancel();
    await advance("10s");
    expect((await cancelling).state).toBe("cancelled");
    expect(await errorOf(job.cancel())).toMatchObject({ code: "invalid_state" });
  });

  it("Retry-After is obeyed, within the limit of tries", async () => {
    const { client, wire, advance } = await openClientStage();
    let asked = 0;
    wire.answer = () => {
      asked += 1;
      return Response.json(
        { error: { message: "slow down" } },
        { status: 429, headers: { "Retry-After": "3" } },
      );
    };
    let failure: Error | undefined;
    const failing = errorOf(client.enqueue(plain)).then((error) => (failure = error));
    await advance("11900ms");
    expect([asked, failure]).toEqual([4, undefined]);
    await advance("200ms");
    await failing;
    expect([asked, failure?.message]).toEqual([
      5,
      "enqueue: the server answered 429: slow down (tried 5 times)",
    ]);
  });

  it("a request ends at its time limit even if fetch ignores the signal", async () => {
    const { system, advance } = await openClientStage();
    const client = openClient({
      url: "http://127.0.0.1",
      fetch: () => new Promise<never>(() => {}),
      timeout: "2s",
      tries: 2,
      system,
    });
    const failing = errorOf(client.enqueue(plain));
    await advance("5s");
    expect(await failing).toMatchObject({
      code: "server_failed",
      message: "enqueue: no answer within 2000 ms (tried 2 times)",
    });
  });

  it("a reply has its size limit", async () => {
    const { system } = await openClientStage();
    let sent = 0;
    const endless = () =>
      new ReadableStream({
        pull(controller) {
          sent += 1_000;
          controller.enqueue(new TextEncoder().encode(" ".repeat(1_000)));
        },
      });
    const fetch = async () => new Response(endless(), { status: 200 });
    const client = openClient({ url: "http://127.0.0.1", fetch, replyLimit: 10_000, system });
    expect((await errorOf(client.enqueue(plain))).message).toMatch(/more than 10000 bytes/);
    expect(sent).toBeLessThan(20_000);
  });

  it("a reply that is not JSON counts as no answer", async () => {
    const { client, wire, advance } = await openClientStage();
    wire.answer = () => new Response("<html>welcome</html>");
    const failing = errorOf(client.enqueue(plain));
    await advance("30s");
    expect((await failing).message).toMatch(/the reply is not JSON: "<html>/);
    wire.answer = () => new Response("<html>moved</html>", { status: 302, headers: { location: "/" } });
    expect((await errorOf(client.enqueue(plain))).message).toMatch(/the server answered 302/);
  });
});

describe("a handle (5.4)", () => {
  it("gives the result, as soon as there is one", async () => {
    const { client, engine, advance, sleep } = await openClientStage();
    const { definition, processors } = jobWith(() => sleep(3_300).then(() => ({ receipt: "r" })));
    engine.work({ processors });
    const job = await client.enqueue(definition);
    let at = 0;
    const result = job.result().then((value) => {
      at = engine.now();
      return value;
    });
    await advance("10s");
    expect(await result).toEqual({ receipt: "r" });
    expect(at - START).toBeLessThan(3_400);
  });

  it("rejects when the time of the caller is up, and the job goes on", async () => {
    const { client, advance } = await openClientStage();
    const job = await client.enqueue(plain);
    const waiting = errorOf(job.result({ within: "5s" }));
    const stop = new AbortController();
    const aborted = errorOf(job.result({ signal: stop.signal }));
    await advance("6s");
    stop.abort(new Error("enough"));
    expect((await waiting).code).toBe("result_timeout");
    expect((await aborted).message).toBe("enough");
    expect((await job.load())?.state).toBe("available");
  });

  it("rejects with what ended the job", async () => {
    const { client, engine, advance } = await openClientStage();
    const { definition, processors } = jobWith(
      () => {
        throw new TypeError("no such card");
      },
      { retry: { attempts: 1 } },
    );
    engine.work({ processors });
    const job = await client.enqueue(definition);
    const failing = errorOf(job.result());
    await advance("5s");
    const error = (await failing) as unknown as JobFailedError;
    expect(error).toBeInstanceOf(JobFailedError);
    expect([error.state, error.record?.type, error.record?.message]).toEqual([
      "discarded",
      "TypeError",
      "no such card",
    ]);
  });

  it("waits through an outage of the server, and ends with its client", async () => {
    const { client, wire, advance, engine } = await openClientStage();
    const job = await client.enqueue(plain);
    const waiting = errorOf(job.result());
    wire.cut();
    await advance("2m");
    wire.mend();
    await engine.cancel(job.id);
    await advance("10s");
    expect(await waiting).toMatchObject({ code: "job_failed", state: "cancelled" });
    const again = await client.enqueue(plain);
    const closed = errorOf(again.result());
    await advance("1s");
    const closing = client.close();
    await advance("1s");
    await closing;
    expect((await closed).code).toBe("closed");
    expect((await errorOf(client.enqueue(plain))).code).toBe("closed");
    expect(() => client.work({ processors: jobWith(deaf).processors })).toThrow(/closed/);
  });

  it("result() of an unknown job rejects with result_gone", async () => {
    const { client, advance } = await openClientStage();
    expect(await client.load(ID)).toBeNull();
    expect((await errorOf(client.job(ID).cancel())).code).toBe("not_found");
    const gone = errorOf(client.job(ID).result());
    await advance("1s");
    expect((await gone).code).toBe("result_gone");
    expect((await errorOf(client.load("../../health"))).code).toBe("invalid_option");
  });
});

describe("openClient", () => {
  it.each([
    [{ url: "localhost" }, /client\.url/],
    [{ url: "ftp://a" }, /client\.url/],
    [{ url: "http://a/?x=1" }, /client\.url/],
    [{ url: "http://a", tries: 0 }, /client\.tries/],
    [{ url: "http://a", timeout: 5 }, /client\.timeout/],
    [{ url: "http://a", store: "memory:" }, /client\.store/],
    [{ url: "http://a", fetch: 1 }, /client\.fetch/],
  ])("refuses %j", (options, message) => {
    expect(() => openClient(options as never)).toThrow(message);
  });

  it("keeps its key out of errors and logs", async () => {
    const { engine, system } = await openClientStage();
    const { key, hash } = createKey();
    const lines: unknown[] = [];
    const log = (fields: object, message: string) => void lines.push(fields, message);
    const logger: Logger = { debug: log, info: log, warn: log, error: log };
    const server = createServer(engine, { keys: [{ name: "web", role: "producer", hash }] });
    const wire = new Wire(server);
    const open = (given: string) =>
      openClient({ url: "http://jobs.test", key: given, fetch: wire.fetch, logger, system });
    const client = open(key);
    expect((await client.enqueue(plain)).duplicate).toBe(false);
    const worker = client.work({ processors: jobWith(deaf).processors });
    await system.advance(10_000);
    expect(worker.status().ready).toBe(false);
    wire.cut();
    const failing = errorOf(client.enqueue(plain));
    await system.advance(60_000);
    wire.mend();
    const refused = await errorOf(open(`${key}x`).enqueue(plain));
    const closing = client.close();
    await system.advance(60_000);
    await closing;
    const bad = () => open(`${key}\n`);
    expect(bad).toThrow(/client\.key/);
    const withSecret = () => openClient({ url: `http://user:${key}@jobs.test` });
    expect(withSecret).toThrow(/client\.url/);
    const texts = [lines, await failing, refused, thrownBy(bad), thrownBy(withSecret)].map(shown).join("\n");
    expect(texts).not.toContain(key);
    expect(texts).toContain("ECONNREFUSED");
    expect(shown(lines)).toContain("the key is sent unencrypted");
  });

  it("a worker's key fetches, reports and enqueues for its handlers; a producer's key does not work", async () => {
    const { engine, system } = await openClientStage();
    const [producer, worker] = [createKey(), createKey()];
    const server = createServer(engine, {
      keys: [
        { name: "web", role: "producer", hash: producer.hash },
        { name: "work", role: "worker", hash: worker.hash },
      ],
    });
    const { fetch } = new Wire(server);
    const web = openClient({
      url: "http://127.0.0.1",
      key: producer.key,
      fetch,
      system,
      logger: silentLogger,
    });
    const remote = openClient({
      url: "http://127.0.0.1",
      key: worker.key,
      fetch,
      system,
      logger: silentLogger,
    });
    const child = defineJob({ type: "child.job" });
    const { definition, processors } = jobWith(async ({ enqueue }) => (await enqueue(child, 1)).id);
    remote.work({ processors });
    const job = await web.enqueue(definition);
    const result = job.result();
    await system.advance(1_000);
    expect((await web.load((await result) as string))?.type).toBe("child.job");
    const idle = web.work({ processors });
    await system.advance(1_000);
    expect(idle.status().reason).toMatch(/answered 403.*use a key whose role allows it/);
    const closing = Promise.all([web.close(), remote.close()]);
    await system.advance(30_000);
    await closing;
  });

  it("a wrong key rejects with the fix in the message", async () => {
    const { engine, system } = await openClientStage();
    const server = createServer(engine, {
      keys: [{ name: "web", role: "read-only", hash: createKey().hash }],
    });
    const client = openClient({ url: "http://127.0.0.1", fetch: new Wire(server).fetch, system });
    const error = await errorOf(client.enqueue(plain));
    expect([error.code, error.message]).toEqual([
      "server_refused",
      expect.stringMatching(/answered 401.*pass openClient a key/),
    ]);
  });
});

function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  return undefined;
}

/** Everything that could be printed of a value, causes and stacks included. */
function shown(value: unknown): string {
  if (value instanceof Error)
    return [value.stack, JSON.stringify(value), value.cause && shown(value.cause)].join(" ");
  if (Array.isArray(value)) return value.map(shown).join("\n");
  if (typeof value === "object" && value !== null) return Object.values(value).map(shown).join(" ");
  return String(value);
}
