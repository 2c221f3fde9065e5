import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/ports/log.ts";
import { createSimSystem } from "../../src/testing/index.ts";
import { deafWith, jobWith, openStage, START, storeOn } from "./stage.ts";

describe("3.10 one clock", () => {
  it.each([600_000, -600_000])(
    "a jump of the wall clock by %i ms neither fires nor postpones",
    async (jump) => {
      const stage = await openStage();
      const abortedAt: number[] = [];
      const { definition, processors } = jobWith(
        deafWith(() => abortedAt.push(stage.now())),
        { timeouts: { attempt: "1m", grace: "1m" } },
      );
      const startedAt: number[] = [];
      const later = jobWith(() => void startedAt.push(stage.now()), {}, "later.job");
      stage.work([...processors, ...later.processors]);
      await stage.engine.enqueue(definition);
      await stage.engine.enqueue(later.definition, null, { delay: "2m" });
      await stage.advance("30s");
      stage.system.stepWall(jump);
      await stage.advance("29999ms");
      expect(abortedAt).toEqual([]);
      await stage.advance("1ms");
      expect(abortedAt).toEqual([START + 60_000]);
      await stage.advance("61s");
      expect((startedAt[0] ?? 0) - START).toBeLessThanOrEqual(120_002);
      expect((startedAt[0] ?? 0) - START).toBeGreaterThanOrEqual(120_000);
    },
  );

  it("the engine's time never goes backwards, even if the store's does", async () => {
    const system = createSimSystem({ seed: 1, startAt: START });
    let stepped = 0;
    const inner = storeOn(system);
    const store = { ...inner, clock: async () => (await inner.clock()) - stepped };
    const { Engine } = await import("../../src/engine/engine.ts");
    const engine = await Engine.open({ system, store, logger: silentLogger });
    const seen: number[] = [];
    for (let nth = 0; nth < 200; nth++) {
      if (nth === 50) stepped = 10_000;
      await system.advance(1_000);
      seen.push(engine.now());
    }
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    // It has come within a second of the store, and creeps the rest of the way: 70 ms in the 140 s since it knows.
    expect(seen.at(-1)).toBe(START + 190_930);
    await engine.close();
  });

  it("the store's clock is read again every 30 s, and followed to within a second", async () => {
    const system = createSimSystem({ seed: 1, startAt: START });
    let drift = 0;
    const inner = storeOn(system);
    const store = { ...inner, clock: async () => (await inner.clock()) + drift };
    const { Engine } = await import("../../src/engine/engine.ts");
    const engine = await Engine.open({ system, store, logger: silentLogger });
    drift = 5_000;
    await system.advance(29_999);
    expect(engine.now()).toBe(START + 29_999);
    await system.advance(2);
    expect(engine.now()).toBe(START + 34_001);
    await engine.close();
  });
});
