import { describe, expect, it } from "vitest";
import { defineJob, type Logger, processor, type QueueOptions, unchecked } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { deaf, openPair, openStage, START } from "./stage.ts";

/** A job that nothing ends holds its slot of a limit and of its queue for ever if its worker dies. */

const ENDLESS = { attempt: "none", heartbeat: "none" } as const;
const STRICT = { key: "account 7", concurrency: 1, strict: true } as const;
const defined = (timeouts: object, limit: object | null = STRICT) =>
  defineJob({ type: "books", payload: unchecked<null>(), timeouts, ...(limit && { limit: limit as never }) });

describe("a definition whose job could hold its key for ever", () => {
  async function warnings(definition: ReturnType<typeof defined>, queue?: QueueOptions) {
    const said: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (_, message) => void said.push(message) };
    const stage = await openStage({ logger });
    if (queue) await stage.engine.queues.configure("default", queue);
    said.splice(0);
    stage.work([processor(definition, () => {})]);
    return said;
  }

  it("is named in a warning when a worker starts", async () => {
    const [warning, ...others] = await warnings(defined(ENDLESS));
    expect(warning).toMatch(/nothing ends a job.*limit "account 7".*no other job of that key.*heartbeat/);
    expect(others).toEqual([]);
    expect(await warnings(defined(ENDLESS, { key: "a", concurrency: 3 }))).toEqual([
      expect.stringContaining("3 such jobs stop all jobs of that key"),
    ]);
  });

  it("is named in a warning if its unbounded grace leaves its total unenforced", async () => {
    const unbounded = { heartbeat: "none", grace: "unbounded", total: "1h" };
    expect(await warnings(defined(unbounded))).toEqual([
      expect.stringMatching(/limit "account 7".*a grace that is not unbounded/),
    ]);
  });

  it("is named in a warning if its queue has a concurrency", async () => {
    expect(await warnings(defined(ENDLESS, null), { concurrency: 1 })).toEqual([
      expect.stringMatching(/nothing ends a job.*slot of the queue "default".*no other job of that queue/),
    ]);
    expect(await warnings(defined(ENDLESS), { concurrency: 3 })).toEqual([
      expect.stringContaining('limit "account 7"'),
      expect.stringContaining("3 such jobs stop that queue"),
    ]);
    expect(await warnings(defined({ attempt: "1m" }, null), { concurrency: 1 })).toEqual([]);
  });

  it.each([
    ["it has a heartbeat", defined({ attempt: "none" })],
    ["it has a total", defined({ ...ENDLESS, total: "1h" })],
    ["its attempts have a timeout", defined({ heartbeat: "none", attempt: "1m" })],
    ["its limit has no slots", defined(ENDLESS, { key: "a", rate: { limit: 1, per: "1s" } })],
    ["it has no limit", defined(ENDLESS, null)],
  ] as const)("is in no warning if %s", async (_, definition) => {
    expect(await warnings(definition)).toEqual([]);
  });
});

it("explain warns about a job without a deadline that holds a key", async () => {
  const { engine } = await openStage();
  const held = await engine.enqueue(defined(ENDLESS), null);
  const { warnings } = await engine.explain(held.id, defined(ENDLESS));
  expect(warnings.join("\n")).toMatch(/it holds a slot of the limit "account 7".*no other job of that key/);
  const free = await engine.enqueue(defined({ attempt: "1m" }), null);
  const { warnings: others } = await engine.explain(free.id, defined({ attempt: "1m" }));
  expect(others).toEqual([expect.stringContaining("no live worker takes queue")]);
});

it("explain warns about a job without a deadline in a queue with a concurrency", async () => {
  const { engine } = await openStage();
  const free = defined(ENDLESS, null);
  const { id } = await engine.enqueue(free, null);
  const before = (await engine.explain(id, free)).warnings;
  expect(before).toHaveLength(2);
  expect(before.join("\n")).toMatch(/no live worker takes queue/);
  expect(before.join("\n")).not.toMatch(/slot of the queue/);
  await engine.queues.configure("default", { concurrency: 1 });
  const after = (await engine.explain(id, free)).warnings;
  expect(after).toHaveLength(3);
  expect(after.join("\n")).toMatch(/slot of the queue "default"/);
});

it("advise names the job that stops a queue when its worker is gone", async () => {
  const pair = await openPair();
  const definition = defined(ENDLESS, null);
  const { engine } = pair.first;
  await engine.queues.configure("default", { concurrency: 1 });
  await pair.advance(6_000, 1_000);
  const { id } = await engine.enqueue(definition, null);
  const waits = await engine.enqueue(definition, null);
  pair.second.work([processor(definition, deaf)]);
  await pair.advance(2_000);
  pair.crashSecond();
  await pair.advance(120_000, 1_000);
  const [advice] = await engine.advise();
  expect(advice?.holds).toMatchObject([{ key: null, queue: "default", job: id, isWorkerGone: true }]);
  expect(advice?.text).toMatch(
    new RegExp(`Job ${id} holds a slot of the queue "default" since .*: cancel it`),
  );
  pair.first.work([processor(definition, () => null)]);
  await pair.advance(5_000, 1_000);
  expect((await rowOf(engine.store, waits.id))?.state).toBe("available");
  await engine.cancel(id);
  await pair.advance(2_000);
  expect((await rowOf(engine.store, waits.id))?.state).toBe("completed");
});

it("advise names the key and the queue if a job holds slots of both, and only those with slots", async () => {
  const { engine, work, advance } = await openStage();
  await engine.queues.configure("default", { concurrency: 1 });
  const { id } = await engine.enqueue(defined(ENDLESS), null);
  work([processor(defined(ENDLESS), deaf)]);
  await advance("2s");
  expect((await engine.advise())[0]?.holds).toMatchObject([{ key: "account 7", queue: "default", job: id }]);
  await engine.queues.reset("default");
  expect((await engine.advise())[0]?.holds).toMatchObject([{ key: "account 7", queue: null, job: id }]);
});

it("advise names the job that holds a key when its worker is gone, and no longer once it is cancelled", async () => {
  const pair = await openPair();
  const definition = defined(ENDLESS);
  const { engine } = pair.first;
  const { id } = await engine.enqueue(definition, null);
  const waits = await engine.enqueue(definition, null);
  pair.second.work([processor(definition, deaf)]);
  await pair.advance(2_000);
  const [before] = await engine.advise();
  expect(before?.holds).toMatchObject([{ key: "account 7", job: id, isWorkerGone: false }]);
  expect(before?.text).not.toContain("account 7");
  pair.crashSecond();
  await pair.advance(120_000, 1_000);
  const [advice] = await engine.advise({ type: "books" });
  expect(advice?.holds).toMatchObject([{ job: id, isWorkerGone: true }]);
  expect(advice?.holds[0]?.since).toBeGreaterThanOrEqual(START);
  expect(advice?.text).toMatch(new RegExp(`Job ${id} holds the key "account 7" since .*: cancel it`));
  expect((await rowOf(engine.store, waits.id))?.state).toBe("pending");
  expect(await engine.advise({ type: "other" })).toEqual([]);
  await engine.cancel(id);
  for (const { holds } of await engine.advise()) expect(holds).toEqual([]);
  expect((await rowOf(engine.store, waits.id))?.state).toBe("available");
});
