import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from "vitest";
import { holdersIn } from "../../src/core/job/enqueue/unique-holders.ts";
import { dueAtOf, type JobRow } from "../../src/core/job/job.ts";
import { Engine } from "../../src/engine/engine.ts";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { chain, constant, defineJob, type ExportLine, processor, step, unchecked } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { openPostgresStore } from "../../src/stores/postgres/postgres-store.ts";
import { openRedisStore } from "../../src/stores/redis/open-redis.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import { failFirst, faultyStore } from "../../src/testing/faulty-store.ts";
import { createDatabase, type TestPostgres } from "../postgres.ts";
import { DURABLE, findRedis, startNode, type TestRedis } from "../redis.ts";
import { fileFolder } from "../support/folders.ts";
import { productionSystem } from "../support/system.ts";

const folder = fileFolder();
let database: TestPostgres;
let redis: TestRedis;
let opened = 0;
const program = await findRedis();
beforeAll(async () => {
  database = await createDatabase(inject("postgresUrl"));
  if (program) redis = await startNode(program, DURABLE);
});
afterAll(async () => {
  await database[Symbol.asyncDispose]();
  await redis?.[Symbol.asyncDispose]();
});

const STORES = {
  memory: async (): Promise<Store> => createMemoryStore({ clock: () => realSystem.wall() }),
  sqlite: (): Promise<Store> =>
    openSqliteStore({ path: join(folder, `${opened++}.db`), system: productionSystem }),
  postgres: (): Promise<Store> =>
    openPostgresStore({ connection: database.url, schema: `transfer_${opened++}`, system: realSystem }),
  redis: (): Promise<Store> => openRedis(1),
};
type StoreName = keyof typeof STORES;

function openRedis(homes: number): Promise<Store> {
  return openRedisStore({
    connection: redis.url,
    prefix: `transfer${opened++}`,
    homes,
    system: productionSystem,
  });
}

async function openOn(store: Store): Promise<Engine> {
  const engine = await Engine.open({ store, system: realSystem, logger: silentLogger });
  onTestFinished(() => engine.close({ drain: "0s" }));
  return engine;
}

const open = async (name: StoreName) => openOn(await STORES[name]());

const plain = defineJob({ type: "plain.job", queue: "mail", payload: unchecked<{ n: number }>() });
const failing = defineJob({
  type: "failing.job",
  queue: "payments",
  retry: { attempts: 3, backoff: constant({ first: "1h", max: "1h" }) },
});
const dying = defineJob({
  type: "dying.job",
  queue: "payments",
  retry: { attempts: 1, onExhausted: "dead-letter" },
});
const held = defineJob({ type: "held.job", queue: "payments" });
const limited = defineJob({ type: "limited.job", queue: "limited", limit: { key: "bank", concurrency: 1 } });
const single = defineJob({ type: "single.job", queue: "mail", unique: {} });
const daily = defineJob({ type: "daily.job", queue: "mail", unique: { period: "1d" } });

const quiet = defineJob({
  type: "quiet.job",
  unique: { payload: false, debounce: { quiet: "1h", most: "2h" } },
});
const paced = defineJob({ type: "paced.job", unique: { payload: false, throttle: "1d" } });

/** A store with a job of every kind. The ids are by name. */
async function fill(engine: Engine): Promise<Record<string, string>> {
  let isHeld = () => {};
  const started = new Promise<void>((resolve) => {
    isHeld = resolve;
  });
  engine.work({
    queues: { payments: { concurrency: 10 } },
    processors: [
      processor(failing, async (context) => {
        await context.checkpoint({ page: 7 });
        throw new Error("the bank said no");
      }),
      processor(dying, () => {
        throw new Error("for good");
      }),
      processor(held, async ({ signal }) => {
        isHeld();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      }),
    ],
  });
  const retrying = new Promise((resolve) => engine.on("job.retrying", resolve));
  const ids = {
    plain: await engine.enqueue(
      plain,
      { n: 1.5 },
      { priority: 7, timeouts: { total: "2h", attempt: "5m" }, meta: { who: "mia" }, retry: { attempts: 9 } },
    ),
    later: await engine.enqueue(plain, { n: 2 }, { delay: "3h", timeouts: { wait: "4h" } }),
    retryable: await engine.enqueue(failing),
    dead: await engine.enqueue(dying),
    held: await engine.enqueue(held),
    admitted: await engine.enqueue(limited),
    waiting: await engine.enqueue(limited),
    single: await engine.enqueue(single, "s"),
    daily: await engine.enqueue(daily, "d"),
    cancelled: await engine.enqueue(single, "c"),
  };
  await engine.cancel(ids.cancelled.id);
  await Promise.all([started, retrying, ids.dead.result().catch(() => {})]);
  await engine.workflows.start(chain([step(plain, { n: 3 }), step(plain, { n: 4 })]));
  return Object.fromEntries(Object.entries(ids).map(([name, { id }]) => [name, id]));
}

async function exportAll(engine: Engine, options: { ended?: boolean; limit?: number } = {}) {
  const lines: ExportLine[] = [];
  const leftOut = { running: 0, workflow: 0, importing: 0 };
  let cursor: string | null = null;
  do {
    const page = await engine.exportJobs({}, { after: cursor, limit: 4, ...options });
    lines.push(...page.lines);
    for (const name of Object.keys(leftOut) as (keyof typeof leftOut)[]) leftOut[name] += page.leftOut[name];
    cursor = page.cursor;
  } while (cursor !== null);
  return { lines: JSON.parse(JSON.stringify(lines)) as ExportLine[], leftOut };
}

/** The key that a line names for this job. */
function keyOf(lines: readonly ExportLine[], id: string): string {
  const line = lines.find(
    (each) => each.kind === "unique" && each.holders.some((holder) => holder.id === id),
  );
  return line?.kind === "unique" ? line.key : "";
}

/** The jobs that the record of a key names. */
async function holdersOf(engine: Engine, key: string) {
  const [record] = await engine.store.records.load([["unique", key]]);
  return record ? holdersIn(record.body) : [];
}

async function rowOf(engine: Engine, id: string | undefined): Promise<JobRow> {
  const [row] = await engine.store.jobs.load([id as string]);
  return row as JobRow;
}

/** What must arrive unchanged. */
function carried(row: JobRow) {
  const { fence: _fence, rev: _rev, claimedAt: _claimedAt, worker: _worker, limitKey: _key, ...rest } = row;
  return rest;
}

const PAIRS: readonly (readonly [StoreName, StoreName])[] = [
  ["memory", "sqlite"],
  ["sqlite", "postgres"],
  ["postgres", "sqlite"],
  ["postgres", "memory"],
  ...(program
    ? ([
        ["postgres", "redis"],
        ["redis", "postgres"],
      ] as const)
    : []),
];

describe.each(PAIRS)("an export from %s, imported into %s", (from, to) => {
  it("carries every kind of job with its documents, and says what it leaves out", async () => {
    const source = await open(from);
    const ids = await fill(source);
    const { lines, leftOut } = await exportAll(source, { ended: true });
    expect(leftOut).toEqual({ running: 1, workflow: expect.any(Number), importing: 0 });
    expect(leftOut.workflow).toBeGreaterThanOrEqual(2);
    const target = await open(to);
    const results = await target.importJobs(lines);
    expect(results.map(({ status, message }) => message ?? status)).toEqual(lines.map(() => "created"));
    for (const name of ["plain", "later", "retryable", "dead", "single", "daily", "cancelled"])
      expect(carried(await rowOf(target, ids[name])), name).toEqual(carried(await rowOf(source, ids[name])));
    expect(await rowOf(target, ids.retryable)).toMatchObject({
      state: "retryable",
      attempt: 1,
      checkpoint: '{"page":7}',
      errors: [{ message: "the bank said no" }],
    });
    expect(await rowOf(target, ids.dead)).toMatchObject({ state: "discarded", deadLetter: true });
    expect(await rowOf(target, ids.held)).toBeNull();
  });

  it("keeps unique keys and limits, and its jobs run", async () => {
    const source = await open(from);
    const ids = await fill(source);
    const target = await open(to);
    await target.importJobs((await exportAll(source)).lines);
    expect(await target.enqueue(single, "s")).toMatchObject({ id: ids.single, duplicate: true });
    expect(await target.enqueue(daily, "d")).toMatchObject({ id: ids.daily, duplicate: true });
    let most = 0;
    let now = 0;
    target.work({
      processors: [
        processor(limited, async () => {
          most = Math.max(most, ++now);
          await new Promise((resolve) => setImmediate(resolve));
          now -= 1;
        }),
        processor(plain, ({ payload }) => payload.n),
        processor(dying, () => "alive"),
      ],
    });
    await target.retry(ids.dead as string);
    await expect(target.job(ids.plain as string).result()).resolves.toBe(1.5);
    await expect(target.job(ids.dead as string).result()).resolves.toBe("alive");
    await target.job(ids.admitted as string).result();
    await target.job(ids.waiting as string).result();
    expect(most).toBe(1);
  });

  it("keeps the period of a job that has ended, and whose job is not exported", async () => {
    const source = await open(from);
    const [day, once] = [await source.enqueue(daily, "d"), await source.enqueue(paced, 1)];
    source.work({
      processors: [processor(daily, () => 1), processor(paced, () => 1)],
      queues: { mail: { concurrency: 1 }, default: { concurrency: 1 } },
    });
    await Promise.all([day, once].map((job) => job.result()));
    // It blocks nobody after it was cancelled, and must not do so elsewhere.
    await (await source.enqueue(daily, "no", { delay: "1h" })).cancel();
    const target = await open(to);
    const { lines } = await exportAll(source);
    expect(lines.map(({ kind }) => kind)).toEqual(["unique", "unique"]);
    await target.importJobs(lines);
    expect(await target.enqueue(daily, "d")).toMatchObject({ id: day.id, duplicate: true });
    expect(await target.enqueue(daily, "no")).toMatchObject({ duplicate: false });
    const next = await rowOf(target, (await target.enqueue(paced, 2)).id);
    expect(dueAtOf(next.rank) - dueAtOf((await rowOf(source, once.id)).rank)).toBe(86_400_000);
  });

  it("goes on with a burst and with a period where it was", async () => {
    const source = await open(from);
    const [burst, first] = [await source.enqueue(quiet, 1), await source.enqueue(paced, 1)];
    const trailing = await source.enqueue(paced, 2);
    const target = await open(to);
    const { lines } = await exportAll(source, { ended: true });
    for (let times = 0; times < 2; times++) await target.importJobs(lines);
    const [next, last] = [await target.enqueue(quiet, 2), await target.enqueue(paced, 3)];
    expect(await rowOf(target, burst.id)).toMatchObject({
      state: "cancelled",
      options: { replacedBy: next.id },
    });
    expect(await rowOf(target, trailing.id)).toMatchObject({
      state: "cancelled",
      options: { replacedBy: last.id },
    });
    const dueAt = async (engine: Engine, id: string) => dueAtOf((await rowOf(engine, id)).rank);
    expect((await dueAt(target, last.id)) - (await dueAt(source, first.id))).toBe(86_400_000);
    // At most two hours after the first of its burst, wherever that was.
    const key = keyOf(lines, burst.id);
    const before = await holdersOf(source, key);
    expect(before).toMatchObject([{ id: burst.id, paced: { since: expect.any(Number) } }]);
    expect(await holdersOf(target, key)).toMatchObject([
      { id: next.id, paced: { since: before[0]?.paced?.since } },
    ]);
  });

  it("adds nothing twice, whatever was imported before", async () => {
    const source = await open(from);
    await fill(source);
    const { lines } = await exportAll(source, { ended: true });
    const target = await open(to);
    await target.importJobs(lines.slice(0, 4));
    const dry = await target.importJobs(lines, { dryRun: true });
    const second = await target.importJobs(lines);
    const jobs = lines.filter(({ kind }) => kind === "job").length;
    expect(second.map(({ status }) => status).slice(0, 4)).toEqual(["exists", "exists", "exists", "exists"]);
    expect(dry).toEqual(second);
    const third = await target.importJobs(lines);
    expect(third.filter(({ status }) => status === "exists")).toHaveLength(jobs);
    const { jobs: found } = await target.find({}, { limit: 100 });
    expect(found).toHaveLength(jobs);
  });

  it("is completed by the next import if it was killed between its two writes", async () => {
    const source = await open(from);
    const ids = await fill(source);
    const { lines } = await exportAll(source, { ended: true });
    const store = await STORES[to]();
    const broken = await openOn(faultyStore(store, failFirst("commit", "drop", 1_000)));
    await expect(broken.importJobs(lines.filter(({ kind }) => kind === "job"))).rejects.toThrow();
    expect((await rowOf(broken, ids.dead)).options).toMatchObject({ importing: true });
    const healthy = await openOn(faultyStore(store, () => undefined));
    expect((await exportAll(healthy)).leftOut.importing).toBeGreaterThan(0);
    await healthy.importJobs(lines);
    for (const name of ["retryable", "dead", "cancelled"])
      expect(carried(await rowOf(healthy, ids[name])), name).toEqual(carried(await rowOf(source, ids[name])));
  });
});

describe.skipIf(!program)("an import into a Redis store with four homes", () => {
  it("takes plain jobs, and refuses those whose key lives in another home than their id", async () => {
    const source = await open("postgres");
    const handles = await source.enqueueMany(
      plain,
      Array.from({ length: 40 }, (_, n) => ({ n })),
    );
    for (let n = 0; n < 20; n++) await source.enqueue(single, String(n));
    const target = await openOn(await openRedis(4));
    const { lines } = await exportAll(source);
    const results = await target.importJobs(lines);
    const refused = results.filter(({ status }) => status === "invalid");
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(20);
    for (const { message } of refused) expect(message).toMatch(/home/);
    expect(results.filter(({ status }) => status === "created").length).toBe(lines.length - refused.length);
    target.work({ processors: [processor(plain, ({ payload }) => payload.n)] });
    const answers = await Promise.all(handles.map(({ id }) => target.job(id).result({ within: "1m" })));
    expect(answers).toEqual(Array.from({ length: 40 }, (_, n) => n));
  });
});

describe("an import", () => {
  it("refuses a job whose unique key a live job holds, and names that job", async () => {
    const source = await open("memory");
    const { id } = await source.enqueue(single, "s");
    const target = await open("memory");
    const rival = await target.enqueue(single, "s");
    const [result] = await target.importJobs((await exportAll(source)).lines);
    expect(result).toMatchObject({ status: "duplicate", id, message: expect.stringContaining(rival.id) });
  });

  it.each([
    ["an unknown field", { extra: 1 }, /job\.extra/],
    ["a running job", { state: "active" }, /job\.state/],
    ["an id that is none", { id: "../etc" }, /job\.id/],
    ["an end without an instant", { state: "completed" }, /job\.finishedAt/],
    ["a payload that is no JSON", { payload: "{" }, /job\.payload/],
    ["a policy with a negative timeout", { policy: { attempt: -1 } }, /job\.policy\.attempt/],
    [
      "options of another kind",
      { options: { settings: { retry: { backoff: { kind: "no" } } } } },
      /backoff\.kind/,
    ],
    ["a position in a workflow", { options: { step: { wakes: [] } } }, /job\.options\.step/],
    ["a limit key without a limit", { limitKey: "bank" }, /job\.limitKey/],
    ["a NUL in a name", { uniqueKey: "a\0b" }, /job\.uniqueKey/],
    ["an error that is none", { errors: [{ message: 1 }] }, /job\.errors\[0\]/],
  ])("refuses %s and stores the other lines", async (_name, change, says) => {
    const source = await open("memory");
    await source.enqueue(plain, { n: 1 });
    const second = await source.enqueue(plain, { n: 2 });
    const [first, other] = (await exportAll(source)).lines;
    const target = await open("memory");
    const results = await target.importJobs([{ ...first, ...change }, other]);
    expect(results[0]).toMatchObject({ status: "invalid", message: expect.stringMatching(says) });
    expect(results[1]).toEqual({ status: "created", id: second.id });
  });

  it("refuses what is no object, and a key without holders", async () => {
    const target = await open("memory");
    const results = await target.importJobs([null, 1, "x", [], { kind: "unique", key: "k", holders: [] }]);
    expect(results.map(({ status }) => status)).toEqual(Array(5).fill("invalid"));
  });

  it("leaves an entry in the audit if somebody is named", async () => {
    const source = await open("memory");
    await source.enqueue(plain, { n: 1 });
    const target = await open("memory");
    await target.importJobs((await exportAll(source)).lines, { by: { actor: "mia", reason: "moved" } });
    const { entries } = await target.audit.read();
    expect(entries).toMatchObject([
      { actor: "mia", reason: "moved", action: "jobs.import", details: { jobs: 1 } },
    ]);
  });
});
