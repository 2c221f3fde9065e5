import { describe, expect, it } from "vitest";
import { RollUp } from "../../src/engine/statistics/roll-up.ts";
import { defineJob, processor } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { failFirst, faultyStore } from "../../src/testing/index.ts";
import { openStage, START, type Stage } from "./stage.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const brief = defineJob({ type: "brief", timeouts: { attempt: "10s", grace: "1s" }, retry: { attempts: 1 } });
const payload = (run: number) => ({ run });

/** A worker whose jobs take as long as their payload says. */
function workOn(stage: Stage) {
  return stage.work([
    processor(brief, async ({ payload, signal }) => {
      await stage.sleep((payload as { run: number }).run);
      signal.throwIfAborted();
    }),
  ]);
}

async function recordsOf(store: Store, kind: string) {
  return store.records.list(kind, null, 1_000);
}

/** Fewer jobs are counted for each caller. */
const MANY = 10_000;

/** An engine with `before` jobs whose counts of live jobs end when the test says so. It gives how many came after them. */
async function openSlow(before = MANY) {
  const counting: (() => void)[] = [];
  const delay = () => new Promise<void>((resolve) => counting.push(resolve));
  const stage = await openStage({
    store: (clock) =>
      faultyStore(createMemoryStore({ clock }), (call) => (call === "inspect.live" ? { delay } : undefined)),
  });
  await stage.engine.enqueueMany(brief, Array(before).fill(payload(1)));
  const available = async () => (await stage.engine.stats()).total.depth.available - before;
  return { stage, counting, available };
}

describe("statistics", () => {
  it("count jobs by outcome, their waits and runs, timeouts and near misses", async () => {
    const stage = await openStage();
    workOn(stage);
    for (const run of [100, 100, 100, 8_500, 60_000]) await stage.engine.enqueue(brief, payload(run));
    await stage.advance("30s");
    await stage.engine.enqueue(brief, payload(1), { delay: "1h" });
    const { total, groups } = await stage.engine.stats();
    expect(total).toMatchObject({
      enqueued: 6,
      started: 5,
      completed: 4,
      discarded: 1,
      nearMisses: 1,
      timeouts: { execution: 1, total: 0, enqueue_ttl: 0, stalled: 0, visibility: 0 },
      attainment: 0.8,
      depth: { scheduled: 1, available: 0, pending: 0, active: 0, retryable: 0 },
    });
    expect(total.run).toMatchObject({ count: 4, p50: 102, mean: 2_200 });
    expect(total.failedRun?.count).toBe(1);
    expect(total.wait?.count).toBe(5);
    expect(groups).toHaveLength(1);
    expect(groups[0]).toMatchObject({ queue: "default", type: "brief", completed: 4 });
  });

  it("remember how many jobs waited and for how long, minute by minute and in hours", async () => {
    const stage = await openStage();
    for (const _job of [1, 2, 3]) await stage.engine.enqueue(brief, payload(1));
    await stage.engine.enqueue(brief, payload(1), { queue: "other" });
    // The engine of a test looks every five minutes.
    await stage.advance("16m");
    const { points } = await stage.engine.stats({ step: "1m" });
    const seen = points.filter(({ waiting }) => waiting !== undefined);
    expect(seen.map(({ waiting }) => waiting)).toEqual([4, 4, 4]);
    expect(seen.map(({ oldestWait }) => oldestWait)).toEqual([300_000, 600_000, 900_000]);
    const other = await stage.engine.stats({ step: "1m", queue: "other" });
    expect(other.points.at(-1)).toMatchObject({ waiting: 1, oldestWait: 900_000 });
    const byType = await stage.engine.stats({ step: "1m", type: "brief" });
    expect(byType.points.every(({ waiting }) => waiting === undefined)).toBe(true);
    workOn(stage);
    await stage.engine.bulk.cancel({ queue: "other" });
    await stage.advance("11m");
    const later = (await stage.engine.stats({ step: "1m" })).points.at(-1);
    expect(later).toMatchObject({ waiting: 0, oldestWait: 0 });
    const { length } = await recordsOf(stage.engine.store, "stats.minute");
    await stage.advance("30m");
    // Nothing waits and nothing runs, so nothing is written.
    expect((await recordsOf(stage.engine.store, "stats.minute")).length).toBe(length);
    await stage.advance("6h");
    expect(await recordsOf(stage.engine.store, "stats.minute")).toEqual([]);
    const { points: hours } = await stage.engine.stats({ since: "8h", step: "1h" });
    expect(hours[0]).toMatchObject({ waiting: 4, oldestWait: 900_000, enqueued: 4 });
  });

  it("give a point for each step with events", async () => {
    const stage = await openStage();
    workOn(stage);
    for (const _minute of [0, 1, 2]) {
      await stage.engine.enqueue(brief, payload(100));
      await stage.advance("2m");
    }
    const { points } = await stage.engine.stats({ step: "1m" });
    expect(points.map(({ at, completed }) => [(at - START) / 60_000, completed])).toEqual([
      [0, 1],
      [2, 1],
      [4, 1],
    ]);
    const wide = await stage.engine.stats({ step: "30m" });
    expect(wide.points.map(({ completed, span }) => [completed, span])).toEqual([[3, 1_800_000]]);
  });

  it("are stored for all engines and restarts; a crash loses the last few seconds", async () => {
    let shared: Store | undefined;
    const store = (clock: () => number) => {
      shared ??= Object.assign(createMemoryStore({ clock }), { close: async () => {} });
      return shared;
    };
    const [first, second] = [await openStage({ store }), await openStage({ store, seed: 2 })];
    workOn(first);
    for (const _ of [1, 2, 3]) await first.engine.enqueue(brief, payload(100));
    await first.advance("6s");
    expect((await second.engine.stats()).total).toMatchObject({ completed: 3 });
    await first.engine.enqueue(brief, payload(100));
    await first.advance("1s");
    // The last one was counted a second ago and is in memory still: that is what a crash would lose.
    expect((await second.engine.stats()).total).toMatchObject({ completed: 3 });
    await first.close();
    expect((await second.engine.stats()).total).toMatchObject({ completed: 4 });
  });

  it("write nothing while nothing happens", async () => {
    const stage = await openStage();
    workOn(stage);
    await stage.engine.enqueue(brief, payload(100));
    await stage.advance("10m");
    const before = await recordsOf(stage.engine.store, "stats.minute");
    await stage.advance("20m");
    expect(await recordsOf(stage.engine.store, "stats.minute")).toEqual(before);
  });

  it("survive a store that is down for a while", async () => {
    let isAway = false;
    const stage = await openStage({
      store: (clock) =>
        faultyStore(createMemoryStore({ clock }), (call) =>
          isAway && call === "commit" ? "drop" : undefined,
        ),
    });
    workOn(stage);
    await stage.engine.enqueue(brief, payload(100));
    await stage.advance("1s");
    isAway = true;
    await stage.advance("3m");
    isAway = false;
    await stage.engine.enqueue(brief, payload(100));
    await stage.advance("20s");
    expect((await stage.engine.stats()).total).toMatchObject({ completed: 2, enqueued: 2 });
  });

  it("return the last count of live jobs while a slow one runs, but not for long", async () => {
    const { stage, counting, available } = await openSlow();
    const answer = async () => {
      await stage.advance("1s");
      counting.shift()?.();
      await stage.advance("1ms");
    };
    await stage.engine.enqueue(brief, payload(1));
    const first = available();
    await answer();
    expect(await first).toBe(1);
    await stage.engine.enqueue(brief, payload(1));
    await stage.advance("21s");
    expect(await available()).toBe(1);
    expect(await available()).toBe(1);
    expect(counting).toHaveLength(1);
    await answer();
    expect(await available()).toBe(2);
    await stage.engine.enqueue(brief, payload(1));
    await stage.advance("1m");
    const waits = available();
    await stage.advance("249ms");
    expect(counting).toHaveLength(1);
    await answer();
    expect(await waits).toBe(2);
    expect(await available()).toBe(3);
    await stage.engine.enqueue(brief, payload(1));
    await stage.advance("3m");
    const late = available();
    await answer();
    expect(await late).toBe(4);
  });

  it("wait a quarter of a second for a count that is late, and take it if it comes in time", async () => {
    const { stage, counting, available } = await openSlow();
    await stage.engine.enqueue(brief, payload(1));
    const first = available();
    await stage.advance("1s");
    counting.shift()?.();
    expect(await first).toBe(1);
    await stage.engine.enqueue(brief, payload(1));
    await stage.advance("1m");
    const second = available();
    await stage.advance("200ms");
    counting.shift()?.();
    expect(await second).toBe(2);
  });

  it("callers that ask together share a count", async () => {
    const { stage, counting, available } = await openSlow();
    await stage.engine.enqueue(brief, payload(1));
    const both = [available(), available()];
    await stage.advance("10ms");
    expect(counting).toHaveLength(1);
    counting.shift()?.();
    expect(await Promise.all(both)).toEqual([1, 1]);
  });

  it("count few jobs for each caller, so that it sees what it has just enqueued", async () => {
    const { stage, counting, available } = await openSlow(0);
    const first = available();
    await stage.advance("1s");
    counting.shift()?.();
    expect(await first).toBe(0);
    const [before] = [available(), await stage.advance("10ms")];
    await stage.engine.enqueue(brief, payload(1));
    const after = available();
    await stage.advance("10ms");
    expect(counting).toHaveLength(2);
    for (const end of counting) end();
    expect(await after).toBe(1);
    await before;
  });

  it("refuse bad queries", async () => {
    const { engine } = await openStage();
    const refused = (query: object, field: string) =>
      expect(engine.stats(query as never)).rejects.toThrow(field);
    await refused({ step: "1s" }, "stats.step");
    await refused({ since: "300d", step: "1m" }, "stats.step");
    await refused({ since: "2031-01-01T00:00:00Z" }, "stats.since");
    await refused({ since: "yesterday" }, "stats.since");
    await refused({ by: "day" }, "stats.by");
    await refused({ queue: "" }, "stats.queue");
    await refused({ form: 1 }, "form");
    await expect(engine.advise({ attempt: "0s" })).rejects.toThrow("advise.attempt");
  });
});

describe("old stats", () => {
  it("become hours and days without losing a count, and are deleted in the end", async () => {
    const stage = await openStage();
    const worker = workOn(stage);
    for (let hour = 0; hour < 4; hour++) {
      for (const _ of [1, 2]) await stage.engine.enqueue(brief, payload(100));
      await stage.advance("1h");
    }
    await worker.close();
    const { store } = stage.engine;
    const completed = async () => (await stage.engine.stats({ since: "400d" })).total.completed;
    expect(await completed()).toBe(8);
    await stage.advance("12h");
    expect(await recordsOf(store, "stats.hour")).toHaveLength(4);
    expect(await recordsOf(store, "stats.minute")).toHaveLength(0);
    expect(await completed()).toBe(8);
    const later = (days: number) =>
      new RollUp({ store, clock: { now: () => START + days * DAY } } as never).round();
    await later(9.5);
    expect(await recordsOf(store, "stats.day")).toHaveLength(1);
    expect(await recordsOf(store, "stats.hour")).toHaveLength(0);
    expect(await completed()).toBe(8);
    const { points } = await stage.engine.stats({ since: "20d" });
    expect(points).toMatchObject([{ at: START, span: DAY, completed: 8 }]);
    await later(400);
    expect(await completed()).toBe(8);
    await later(401);
    expect(await recordsOf(store, "stats.day")).toHaveLength(0);
  });

  it("are added up once even if several engines try, and late ones are added too", async () => {
    let now = START;
    const store = createMemoryStore({ clock: () => now });
    const clock = { now: () => now };
    const series = [{ queue: "q", type: "t", counts: { completed: 1 }, durations: {} }];
    const put = async (start: number, part: string) => {
      const key = ["stats.minute", `${String(start).padStart(13, "0")}/${part}`] as const;
      await store.commit([{ effects: [{ put: key, body: { series } as never, wakeAt: null }] }], { now });
    };
    for (let minute = 0; minute < 60; minute++)
      for (const part of ["a/0", "b/0", "c/0", "d/0", "e/0"]) await put(START + minute * 60_000, part);
    now = START + 5 * HOUR;
    const engines = [1, 2, 3].map(() => new RollUp({ store, clock } as never));
    await Promise.all(engines.map((engine) => engine.round()));
    await put(START + 60_000, "late/0");
    await Promise.all(engines.map((engine) => engine.round()));
    expect(await recordsOf(store, "stats.minute")).toEqual([]);
    const hours = await recordsOf(store, "stats.hour");
    expect(hours.map(({ body }) => body)).toEqual([
      { series: [{ queue: "q", type: "t", counts: { completed: 301 }, durations: {} }] },
    ]);
  });

  it("is bounded: beyond 500 pairs everything is counted as other, in slices of 50", async () => {
    const stage = await openStage();
    for (let n = 0; n < 600; n++) await stage.engine.enqueue(defineJob({ type: `type-${n}` }));
    const { groups, total } = await stage.engine.stats();
    expect(total.enqueued).toBe(600);
    expect(groups.length).toBeLessThanOrEqual(501);
    const stored = await recordsOf(stage.engine.store, "stats.minute");
    expect(stored.length).toBeLessThanOrEqual(11);
  });

  it("writes a lost reply again without counting twice", async () => {
    const stage = await openStage({
      store: (clock) => faultyStore(createMemoryStore({ clock }), failFirst("commit", "lose-reply", 1)),
    });
    await stage.engine.enqueue(brief, payload(1));
    await expect(stage.engine.stats()).rejects.toThrow("the reply was lost");
    expect((await stage.engine.stats()).total.enqueued).toBe(1);
  });
});

describe("advise", () => {
  it("compares the configured timeout with the recorded runs, and checks another one", async () => {
    const stage = await openStage();
    workOn(stage);
    for (let n = 0; n < 100; n++) await stage.engine.enqueue(brief, payload(n < 90 ? 1_000 : 8_000));
    await stage.advance("10m");
    const [advice] = await stage.engine.advise({ type: "brief", attempt: "5s" });
    expect(advice).toMatchObject({
      type: "brief",
      attempt: 10_000,
      verdict: "keep",
      whatIf: { runs: 100, wouldCut: { atLeast: 10, atMost: 10 }, share: 0.1 },
    });
    expect(Math.abs((advice?.run?.p99 ?? 0) - 8_000)).toBeLessThanOrEqual(8_000 * (advice?.resolution ?? 0));
    expect(await stage.engine.advise({ type: "unknown" })).toEqual([]);
  });
});
