import { describe, expect, it } from "vitest";
import { createLatch } from "../../src/testing/index.ts";
import { jobWith, openOver, openPair, START, type Stage, slowStarts } from "./stage.ts";

describe("3.1 a start that is delayed because the deadline is too close", () => {
  it("3.1 confirms its claim first if the process was blocked meanwhile", async () => {
    const reading = createLatch();
    let isSlow = false;
    const pair = await openPair((store) => ({
      ...store,
      clock: async () => {
        if (isSlow) await reading.pass();
        return store.clock();
      },
    }));
    let entered = 0;
    const { definition, processors } = jobWith(() => void entered++);
    pair.second.work(processors);
    await pair.advance(100);
    isSlow = true;
    // Taken for a sleep, so the time is not known before the store's clock is read.
    pair.second.system.stepWall(3_600_000);
    const job = await pair.first.engine.enqueue(definition);
    await pair.second.settle();
    expect(await pair.first.load(job)).toMatchObject({ state: "active", startedAt: null });
    await pair.first.engine.cancel(job.id);
    reading.open();
    await pair.pauseSecond(600);
    await pair.advance(1_000);
    expect(entered).toBe(0);
  });
});

describe("3.1 a start that is committed before the entry", () => {
  it("3.1 is released if its commit took longer than the heartbeat", async () => {
    const delays = [200];
    const stage: Stage = await openOver((store) => slowStarts(store, delays, (delay) => stage.sleep(delay)));
    const entries: { attempt: number; after: number }[] = [];
    const { definition, processors } = jobWith(
      ({ attempt }) => void entries.push({ attempt, after: stage.engine.now() - START }),
      { timeouts: { heartbeat: "150ms" } },
    );
    stage.work(processors);
    const limit = { key: "k", rate: { limit: 5, per: "1s" as const } };
    const job = await stage.engine.enqueue(definition, null, { limit });
    await stage.advance("210ms");
    expect(delays).toEqual([]);
    expect(stage.names(job.id)).toContain("job.released");
    await stage.advance("2s");
    expect(entries).toEqual([{ attempt: 1, after: 200 }]);
    expect(await stage.load(job)).toMatchObject({ state: "completed", attempt: 1, expiredClaims: 0 });
  });
});
