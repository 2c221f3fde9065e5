import { describe, expect, it, onTestFinished } from "vitest";
import { Engine } from "../../src/engine/engine.ts";
import { snooze } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import { createSimSystem, type SimSystem } from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { jobWith, obedient, START, shared, sleepOn, storeOn } from "./stage.ts";

/** How far the distant engine is away: its store's replies take this long, and what they say of the time is as old. */
const AWAY = 400;

/** The same store, whose replies are late. The engine cannot know which half of a round trip took the time. */
function repliesLate(store: Store, delay: () => Promise<void>): Store {
  const late = <Part extends object>(part: Part): Part =>
    Object.fromEntries(
      Object.entries(part).map(([name, call]) => [
        name,
        typeof call !== "function"
          ? call
          : async (...args: unknown[]) => {
              const answer = await call.apply(part, args);
              await delay();
              return answer;
            },
      ]),
    ) as Part;
  const { jobs, records, timeouts } = store;
  return { ...late(store), jobs: late(jobs), records: late(records), timeouts: late(timeouts) };
}

async function opened(system: SimSystem, store: Store): Promise<Engine> {
  const opening = Engine.open({ system, store, logger: silentLogger });
  await system.advance(20 * AWAY);
  const engine = await opening;
  onTestFinished(async () => {
    const closing = engine.close({ drain: "0s" });
    await system.advance(20_000);
    await closing;
  });
  return engine;
}

/** One engine beside its store and one far away from it, in one true time. */
async function openBoth() {
  const system = createSimSystem({ seed: 11, startAt: START });
  const store = storeOn(system);
  const near = await opened(system, shared(store));
  const far = await opened(
    system,
    repliesLate(shared(store), () => sleepOn(system, AWAY)),
  );
  return { system, store, near, far, time: () => START + system.monotonic() };
}

describe("3.10 durations count from the latest instant that the clock may show", () => {
  it("3.10 a delay that a distant producer names is not cut short", async () => {
    const { system, near, far, time } = await openBoth();
    const entries: number[] = [];
    const { definition, processors } = jobWith(() => void entries.push(time()));
    near.work({ processors });
    const from = time();
    void far.enqueue(definition, null, { delay: "2s" });
    await system.advance(10_000);
    expect(entries).toHaveLength(1);
    expect((entries[0] as number) - from).toBeGreaterThanOrEqual(2_000);
    expect((entries[0] as number) - from).toBeLessThanOrEqual(2_000 + AWAY + 10);
  });

  it("3.10 the total of a distant producer's job is not cut short, even after an extension", async () => {
    const { system, near, far, time } = await openBoth();
    const signals: number[] = [];
    const { definition, processors } = jobWith(
      (context) => {
        context.signal.addEventListener("abort", () => signals.push(time()));
        return obedient(context);
      },
      { timeouts: { total: "2s" }, retry: { attempts: 1 } },
    );
    near.work({ processors });
    const from = time();
    void far.enqueue(definition, null, { timeouts: { total: "2s" } });
    const extended = far.enqueue(definition, null, { timeouts: { total: "2s" } });
    await system.advance(1_000);
    await near.extend((await extended).id, { total: "5s" });
    await system.advance(10_000);
    expect(signals).toHaveLength(2);
    for (const [index, total] of [2_000, 5_000].entries()) {
      expect((signals[index] as number) - from).toBeGreaterThanOrEqual(total);
      expect((signals[index] as number) - from).toBeLessThanOrEqual(total + AWAY + 10);
    }
  });

  it("3.10 an attempt keeps its whole time if the clock becomes more exact after its start", async () => {
    const system = createSimSystem({ seed: 12, startAt: START });
    const store = shared(storeOn(system));
    let isSlow = true;
    const clock = async () => {
      const instant = await store.clock();
      if (isSlow) await sleepOn(system, 90);
      return instant;
    };
    const engine = await opened(system, { ...store, clock });
    const times: number[] = [];
    const { definition, processors } = jobWith(
      (context) => {
        times.push(START + system.monotonic());
        context.signal.addEventListener("abort", () => times.push(START + system.monotonic()));
        return obedient(context);
      },
      { timeouts: { attempt: "1m" }, retry: { attempts: 1 } },
    );
    engine.work({ processors });
    await engine.enqueue(definition);
    await system.advance(100);
    isSlow = false;
    await system.advance(40_000);
    // The end of a shorter attempt makes the worker look at its clock again.
    await engine.enqueue(definition, null, { timeouts: { attempt: "5s" } });
    await system.advance(30_000);
    expect(times).toHaveLength(4);
    const [entered = 0, , , signalled = 0] = times;
    expect(signalled - entered).toBeGreaterThanOrEqual(60_000);
  });

  it("3.10 a snooze of a distant worker is not cut short for a near one", async () => {
    const { system, near, far, time } = await openBoth();
    const times: number[] = [];
    const { definition, processors } = jobWith(() => {
      times.push(time());
      return times.length === 1 ? snooze({ after: "2s" }) : undefined;
    });
    const worker = far.work({ processors });
    void far.enqueue(definition);
    await system.advance(1_500);
    expect(times).toHaveLength(1);
    void worker.close();
    near.work({ processors });
    await system.advance(5_000);
    expect(times).toHaveLength(2);
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(2_000);
  });

  it("3.10 a handler's beat on a distant worker moves its end by the whole heartbeat", async () => {
    const { system, near, far, time } = await openBoth();
    const rows: { stallAt: number | null; beatAt: number }[] = [];
    const { definition, processors } = jobWith(
      async (context) => {
        await sleepOn(system, 3_000);
        const beatAt = time();
        context.beat();
        await sleepOn(system, 2_500);
        rows.push({ stallAt: (await rowOf(near.store, context.id))?.stallAt ?? null, beatAt });
      },
      { timeouts: { heartbeat: "8s" } },
    );
    far.work({ processors });
    void far.enqueue(definition);
    await system.advance(10_000);
    expect(rows).toHaveLength(1);
    const { stallAt, beatAt } = rows[0] as (typeof rows)[number];
    expect((stallAt ?? 0) - beatAt).toBeGreaterThanOrEqual(8_000);
  });
});

describe("4.3 a start that is committed before the entry, far away from the store", () => {
  it("4.3 is released once, and entered when the worker has measured such a commit", async () => {
    const { system, store, near, far, time } = await openBoth();
    const runs: { entered: number; signalled: number }[] = [];
    const { definition, processors } = jobWith(
      async (context) => {
        const entered = time();
        await obedient(context).catch(() => {});
        runs.push({ entered, signalled: time() });
      },
      { timeouts: { attempt: "250ms", grace: "100ms" }, retry: { attempts: 1 } },
    );
    // A claim that runs out before its handler is entered leaves an expired claim.
    const { id } = await near.enqueue(definition);
    const claim = { queue: "default", limit: 1, lease: 1_000, salt: 1, worker: "gone", from: 0 };
    await store.jobs.claim({ ...claim, now: near.now() });
    await system.advance(3_000);
    expect(await rowOf(near.store, id)).toMatchObject({ state: "available", expiredClaims: 1 });
    far.work({ processors });
    await system.advance(20_000);
    expect(runs).toHaveLength(1);
    const [{ entered, signalled }] = runs as [(typeof runs)[number]];
    expect(signalled - entered).toBeGreaterThanOrEqual(250);
    expect(signalled - entered).toBeLessThanOrEqual(250 + AWAY + 10);
  });
});
