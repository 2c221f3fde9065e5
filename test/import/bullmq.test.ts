import { FlowProducer, Queue, type QueueOptions, Worker } from "bullmq";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { defineJob, processor, unchecked } from "../../src/index.ts";
import { curfew } from "../cli/stage.ts";
import { startRedis, type TestRedis } from "../redis.ts";
import {
  createSqlite,
  type ImportOptions,
  importFrom,
  jobsIn,
  neverRemoves,
  openStore,
  reasons,
} from "./support.ts";

/** Null skips the tests below, and says so. */
const server: TestRedis | null = await startRedis();
const url = server?.url ?? "";
const queues: Queue[] = [];
let redis: Redis;
let store: Awaited<ReturnType<typeof createSqlite>>;

beforeAll(async () => {
  store = await createSqlite();
  if (server) redis = new Redis(url, { maxRetriesPerRequest: null });
});
afterAll(async () => {
  for (const queue of queues) await queue.close();
  redis?.disconnect();
  await server?.[Symbol.asyncDispose]();
  await store[Symbol.asyncDispose]();
});

function open(name: string, options: Partial<QueueOptions> = {}): Queue {
  const queue = new Queue(name, { connection: redis, ...options });
  queues.push(queue);
  return queue;
}

const from = (only: readonly string[], more: Partial<ImportOptions> = {}): ImportOptions => ({
  from: "bullmq",
  source: url,
  store: store.address,
  only,
  ...more,
});

describe.skipIf(server === null)("an import from BullMQ", () => {
  it("moves a delayed job with its turned priority, attempts and backoff, and pauses the queue", async () => {
    const mail = open("mail");
    const backoff = { type: "exponential", delay: 2_000 };
    const job = await mail.add(
      "welcome",
      { to: "mia" },
      { delay: 3_600_000, priority: 7, attempts: 4, backoff },
    );
    const flags = ["--from", "bullmq", "--source", url, "--store", store.address, "--only", "mail"];
    const dry = await curfew(["import", ...flags, "--dry-run"]);
    expect(dry).toEqual({ code: 0, stdout: "1 job would be moved.\n", stderr: "" });
    expect(await mail.isPaused()).toBe(false);
    const { code, stdout, stderr } = await curfew(["import", ...flags, "--json"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toMatchObject({ moved: 1, is_atomic: false, is_complete: true });
    expect(JSON.parse(stdout).notes[0]).toContain('"mail" was paused');
    expect(await mail.getJobCounts()).toMatchObject({ delayed: 0, waiting: 0 });
    expect(await jobsIn(store.address, "mail")).toMatchObject([
      {
        type: "welcome",
        priority: -7,
        state: "scheduled",
        dueAt: new Date(job.timestamp + 3_600_000).toISOString(),
        payload: '{"to":"mia"}',
        options: {
          meta: { importedFrom: `bullmq:mail:${job.id}` },
          settings: { retry: { attempts: 4, backoff: { kind: "exponential", first: 2_000, factor: 2 } } },
        },
      },
    ]);
  });

  it("moves waiting, prioritized, retried and failed jobs of a queue that workers used", async () => {
    const used = open("used");
    const fails = async () => {
      throw new Error("no network");
    };
    const connection = redis.duplicate();
    const worker = new Worker("used", fails, { connection });
    await used.add("once", {}, { attempts: 1 });
    const again = await used.add("again", {}, { attempts: 3, backoff: 600_000 });
    await expect.poll(async () => (await used.getJobCounts("failed", "delayed")).failed).toBe(1);
    await expect.poll(async () => (await used.getJobCounts("delayed")).delayed).toBe(1);
    await worker.close();
    connection.disconnect();
    await used.add("plain", { n: 1 });
    await used.add("later", { n: 2 }, { priority: 500 });
    const report = await importFrom(from(["used"]));
    expect(report).toMatchObject({ moved: 4, isComplete: true, refused: [] });
    expect(reasons(report.changed)).toEqual({ priority: 1 });
    const jobs = new Map((await jobsIn(store.address, "used")).map((job) => [job.type, job]));
    expect(jobs.get("once")).toMatchObject({ state: "discarded", deadLetter: true, attempt: 1 });
    expect(jobs.get("once")?.errors).toMatchObject([{ message: "no network" }]);
    expect(jobs.get("again")).toMatchObject({ state: "retryable", attempt: 1 });
    const dueIn = Date.parse(jobs.get("again")?.dueAt ?? "") - again.timestamp;
    expect(dueIn).toBeGreaterThanOrEqual(600_000);
    expect(dueIn).toBeLessThan(660_000);
    expect(jobs.get("plain")).toMatchObject({ state: "available", priority: 0 });
    expect(jobs.get("later")).toMatchObject({ state: "available", priority: -100 });
  });

  it("moves schedulers with their zone, and not their next run as well", async () => {
    const nightly = open("nightly");
    const template = { name: "report", data: { n: 1 }, opts: { attempts: 2 } };
    await nightly.upsertJobScheduler("daily", { pattern: "30 3 * * *", tz: "Europe/Berlin" }, template);
    await nightly.upsertJobScheduler("often", { every: 300_000, immediately: false }, template);
    await nightly.upsertJobScheduler("odd", { every: 420_000 }, template);
    await nightly.upsertJobScheduler("ends", { pattern: "0 * * * *", limit: 5 }, template);
    const report = await importFrom(from(["nightly"]));
    expect(report.crons).toBe(2);
    expect(reasons(report.refused)).toEqual({ cron_interval: 1, cron_end: 1, scheduler: 2 });
    await using engine = await openStore(store.address);
    expect(await engine.crons.get("nightly/daily")).toMatchObject({
      cron: "30 3 * * *",
      zone: "Europe/Berlin",
      type: "report",
      queue: "nightly",
      payload: { n: 1 },
      options: { retry: { attempts: 2 } },
    });
    expect(await engine.crons.get("nightly/often")).toMatchObject({ cron: "*/5 * * * *" });
    expect((await nightly.getJobSchedulers()).map(({ key }) => key).sort()).toEqual(["ends", "odd"]);
  });

  it("reports flows, broken data and keys, and leaves them in Redis", async () => {
    const odd = open("odd");
    const flows = new FlowProducer({ connection: redis });
    await flows.add({ name: "parent", queueName: "odd", children: [{ name: "child", queueName: "odd" }] });
    await flows.close();
    const broken = await odd.add("broken", {});
    await redis.hset(`bull:odd:${broken.id}`, "data", "{oops");
    const gone = await odd.add("gone", {});
    await redis.del(`bull:odd:${gone.id}`);
    await odd.add("huge", { text: "x".repeat(1_100_000) });
    await odd.add("tab\t", {});
    await odd.add("sendMail", {}, { deduplication: { id: "mia" } });
    const report = await importFrom(from(["odd"]));
    expect(report.moved).toBe(1);
    expect(reasons(report.refused)).toEqual({ flow: 2, not_json: 1, missing: 1, too_large: 1, name: 1 });
    expect(await odd.getJobCounts("waiting-children")).toMatchObject({
      "waiting-children": 1,
    });
    await using engine = await openStore(store.address);
    const sendMail = defineJob({ type: "send-mail", queue: "odd" });
    expect((await engine.enqueue(sendMail, undefined, { unique: { key: "mia" } })).duplicate).toBe(true);
  });

  it("leaves active jobs to their worker and counts them", async () => {
    const busy = open("busy");
    await busy.add("a", {});
    const connection = redis.duplicate();
    const worker = new Worker("busy", null, { connection });
    await worker.getNextJob("token");
    await busy.add("b", {});
    expect(await importFrom(from(["busy"]))).toMatchObject({ moved: 1, active: 1, isComplete: false });
    await worker.close(true);
    connection.disconnect();
    expect(await busy.getJobCounts("active")).toEqual({ active: 1 });
  });

  it("stores nothing twice, even if the first copy has run and was deleted", async () => {
    const twice = open("twice");
    await twice.addBulk(Array.from({ length: 30 }, (_, n) => ({ name: "count", data: { n } })));
    const options = from(["twice"]);
    await expect(importFrom(options, neverRemoves)).rejects.toThrow("killed");
    const seen: number[] = [];
    const count = defineJob({
      type: "count",
      queue: "twice",
      payload: unchecked<{ n: number }>(),
      retention: "0s",
    });
    const processors = [processor(count, ({ payload }) => void seen.push(payload.n))];
    {
      await using engine = await openStore(store.address);
      engine.work({ processors, queues: { twice: { concurrency: 1 } } });
      await expect.poll(() => seen.length).toBeGreaterThanOrEqual(25);
    }
    const ran = seen.length;
    expect(await importFrom(options)).toMatchObject({ moved: 30 - ran, known: ran, isComplete: true });
    await using engine = await openStore(store.address);
    engine.work({ processors, queues: { twice: { concurrency: 1 } } });
    await expect.poll(() => seen.length).toBe(30);
    expect(seen).toEqual(Array.from({ length: 30 }, (_, n) => n));
  });

  it("finds all queues of a prefix, and says what is wrong with an address", async () => {
    const own = open("one", { prefix: "shop" });
    await own.add("a", {});
    const other = open("two", { prefix: "shop" });
    await other.add("b", {});
    expect(await importFrom(from([], { prefix: "shop", isDry: true }))).toMatchObject({ moved: 2 });
    await expect(importFrom(from([], { source: "redis://127.0.0.1:1" }))).rejects.toThrow("ECONNREFUSED");
  });
});
