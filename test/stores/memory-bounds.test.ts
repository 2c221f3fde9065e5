import { describe, expect, it } from "vitest";
import type { Effect, Hint } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";
import { logOf } from "../../src/testing/read-store.ts";

const NOW = 1_800_000_000_000;
const open = () => createMemoryStore({ clock: () => NOW });
const job = (id: string) => sketchJob({ id }, NOW, () => id);

/** What the memory store promises beyond the port: it holds no more than it must, and tells each thing once. */
describe("the memory store", () => {
  it("keeps the last 1,000 lines of a job's log", async () => {
    const store = open();
    await store.jobs.enqueue([job("a")], { now: NOW });
    for (let batch = 0; batch < 3; batch++) {
      const effects = Array.from({ length: 500 }, (_, n): Effect => ({ log: batch * 500 + n, job: "a" }));
      await store.commit([{ effects }], { now: NOW });
    }
    const logs = await logOf(store, "a");
    expect([logs.length, logs[0], logs.at(-1)]).toEqual([1_000, 500, 1_499]);
  });

  it("keeps the last 100,000 events, and an old cursor goes on with the oldest that is left", async () => {
    const store = open();
    for (let batch = 0; batch < 120; batch++) {
      const effects = Array.from({ length: 1_000 }, (_, n): Effect => ({ event: batch * 1_000 + n }));
      await store.commit([{ effects }], { now: NOW });
    }
    const { events } = await store.inspect.events("5", 200_000);
    expect(events.length).toBeGreaterThanOrEqual(100_000);
    expect(events.length).toBeLessThan(110_000);
    expect(events.at(-1)).toBe(119_999);
  });

  it("hands out rows that later writes do not change", async () => {
    const store = open();
    await store.jobs.enqueue([job("a")], { now: NOW });
    const [before] = await store.jobs.load(["a"]);
    const copy = structuredClone(before);
    const request = { queue: "default", limit: 1, now: NOW, lease: 1, salt: 1, worker: "w", from: 0 };
    const [claimed] = await store.jobs.claim(request);
    expect(before).toEqual(copy);
    expect(claimed?.state).toBe("active");
  });

  it("tells once per call and queue that a queue is ready", async () => {
    const store = open();
    const hints: Hint[] = [];
    await store.listen((hint) => hints.push(hint));
    await store.jobs.enqueue([job("a"), job("b"), job("c")], { now: NOW });
    await Promise.resolve();
    expect(hints).toEqual([{ ready: "default" }]);
  });

  it("knows its clock from its caller alone", async () => {
    expect(await open().clock()).toBe(NOW);
  });
});
