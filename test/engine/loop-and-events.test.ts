import { describe, expect, it } from "vitest";
import { Loop } from "../../src/engine/runtime/loop.ts";
import type { EngineEvent } from "../../src/index.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createDeferred, createSimSystem } from "../../src/testing/index.ts";
import { jobOf, jobWith, openStage, START } from "./stage.ts";

function loopOf(round: () => Promise<number | null>) {
  const system = createSimSystem({ seed: 1, startAt: START });
  const errors: unknown[] = [];
  const onError = (error: unknown) => void errors.push(error);
  return { system, errors, loop: new Loop({ name: "test", system, logger: silentLogger, round, onError }) };
}

describe("a loop", () => {
  it("runs at its own pace, and a second start changes nothing", async () => {
    const ranAt: number[] = [];
    const { loop, system } = loopOf(async () => {
      ranAt.push(system.monotonic());
      return 100;
    });
    loop.start();
    loop.start();
    await system.advance(350);
    expect(ranAt).toEqual([0, 100, 200, 300]);
    await loop.stop();
    expect(system.pendingTimers).toBe(0);
  });

  it("stops for good, even before its start, and a second stop changes nothing", async () => {
    let runs = 0;
    const { loop, system } = loopOf(async () => {
      runs += 1;
      return 10;
    });
    await loop.stop();
    await loop.stop();
    loop.start();
    loop.wake();
    await system.advance(1_000);
    expect([runs, system.pendingTimers]).toEqual([0, 0]);
  });

  it("stop waits for the current round, and no round follows", async () => {
    const round = createDeferred<number>();
    let runs = 0;
    const { loop, system } = loopOf(() => {
      runs += 1;
      return round.promise;
    });
    loop.start();
    let isStopped = false;
    const stopping = loop.stop().then(() => (isStopped = true));
    await system.settle();
    expect(isStopped).toBe(false);
    round.resolve(0);
    await stopping;
    await system.advance(1_000);
    expect(runs).toBe(1);
  });

  it("rests until woken if a round returns null; a wake during a round makes one more", async () => {
    const limits = [createDeferred<null>(), createDeferred<null>(), createDeferred<null>()];
    let runs = 0;
    const { loop, system } = loopOf(() => (limits[runs++] as (typeof limits)[0]).promise);
    loop.start();
    for (let nth = 0; nth < 5; nth++) loop.wake();
    limits[0]?.resolve(null);
    await system.settle();
    expect(runs).toBe(2);
    limits[1]?.resolve(null);
    await system.advance(100_000);
    expect(runs).toBe(2);
    loop.wake();
    expect(runs).toBe(3);
    limits[2]?.resolve(null);
    await loop.stop();
  });

  it("a failing round is reported and retried with a growing delay, which a success resets", async () => {
    const ranAt: number[] = [];
    let fails = true;
    const { loop, system, errors } = loopOf(async () => {
      ranAt.push(system.monotonic());
      if (fails) throw new Error("no");
      return 1_000;
    });
    loop.start();
    await system.advance(800);
    expect(ranAt).toEqual([0, 100, 300, 700]);
    expect([errors.length, loop.isFailing]).toEqual([4, true]);
    await system.advance(60_000);
    expect((ranAt.at(-1) ?? 0) - (ranAt.at(-2) ?? 0)).toBe(5_000);
    fails = false;
    await system.advance(5_000);
    expect(loop.isFailing).toBe(false);
    await loop.stop();
  });

  it("sweepOnce and pruneOnce are rounds that an operator may run", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf({ timeouts: { wait: "1m" } }));
    stage.system.pause(60_000);
    await stage.engine.sweepOnce();
    expect((await stage.load(job)).state).toBe("discarded");
    await stage.engine.pruneOnce();
  });
});

describe("events", () => {
  it("a listener that throws or rejects is logged, and the others still run", async () => {
    const errors: object[] = [];
    const logger = { ...silentLogger, error: (fields: object) => void errors.push(fields) };
    const stage = await openStage({ logger });
    const seen: string[] = [];
    stage.engine.on("job.enqueued", () => {
      throw new Error("at once");
    });
    stage.engine.on("job.enqueued", async () => {
      throw new Error("later");
    });
    stage.engine.on("job.enqueued", ({ id }) => void seen.push(id));
    const job = await stage.engine.enqueue(jobOf());
    await stage.settle();
    expect(seen).toEqual([job.id]);
    expect(errors).toMatchObject([
      { event: "job.enqueued", error: { message: "at once" } },
      { event: "job.enqueued", error: { message: "later" } },
    ]);
  });

  it("on() returns the function that stops it; calling it twice stops no other listener", async () => {
    const stage = await openStage();
    const seen: string[] = [];
    const stop = stage.engine.on("job.cancelled", () => void seen.push("first"));
    stop();
    stage.engine.on("job.cancelled", () => void seen.push("second"));
    stop();
    const job = await stage.engine.enqueue(jobOf());
    await stage.engine.cancel(job.id);
    expect(seen).toEqual(["second"]);
  });

  it("the iterator gives events in order, and ends with its signal, by break, and with the engine", async () => {
    const stage = await openStage();
    const collect = async (signal?: AbortSignal, most = Number.POSITIVE_INFINITY) => {
      const names: string[] = [];
      for await (const { name } of stage.engine.events(signal)) {
        names.push(name);
        if (names.length >= most) break;
      }
      return names;
    };
    const stop = new AbortController();
    const [bySignal, byBreak, byClose] = [collect(stop.signal), collect(undefined, 1), collect()];
    const job = await stage.engine.enqueue(jobOf());
    await stage.engine.cancel(job.id);
    await stage.settle();
    stop.abort();
    expect(await bySignal).toEqual(["job.enqueued", "job.cancelled"]);
    expect(await byBreak).toEqual(["job.enqueued"]);
    await stage.engine.close();
    expect(await byClose).toEqual(["job.enqueued", "job.cancelled"]);
    expect(await collect()).toEqual([]);
  });

  it("a slow reader loses the oldest events beyond the buffer's limit", async () => {
    const stage = await openStage();
    const events = stage.engine.events();
    const first = events.next();
    await stage.engine.enqueue(jobOf(), "first");
    await first;
    for (let batch = 0; batch < 12; batch++)
      await stage.engine.enqueueMany(jobOf(), new Array(1_000).fill(batch));
    const last = await stage.engine.enqueue(jobOf(), "last", { delay: "1h" });
    const kept: EngineEvent[] = [];
    for (;;) {
      const { value } = await events.next();
      if (!value) break;
      kept.push(value);
      if (value.name === "job.scheduled") break;
    }
    expect(kept).toHaveLength(10_000);
    expect(kept.at(-1)).toMatchObject({ id: last.id });
    await events.return();
  });
});

describe("counters", () => {
  it("count the events of this process", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      ({ payload }) => {
        if (payload === "bad") throw new Error("no");
        return "ok";
      },
      { retry: { attempts: 2 } },
    );
    stage.work(processors);
    await stage.engine.enqueueMany(definition, ["good", "good", "bad"]);
    const job = await stage.engine.enqueue(definition, "later", { delay: "1h" });
    await stage.engine.cancel(job.id);
    await stage.advance("10s");
    expect(stage.counters()).toMatchObject({
      enqueued: 4,
      started: 4,
      completed: 2,
      failed: 2,
      retrying: 1,
      discarded: 1,
      cancelled: 1,
      late: 0,
      stuck: 0,
      lost: 0,
    });
  });

  it("reports of a handler after its verdict are ignored and counted", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      async ({ progress, log, checkpoint }) => {
        await stage.sleep(10_000);
        progress(0.5);
        log("late");
        await checkpoint(1).catch(() => {});
        return "late too";
      },
      { timeouts: { attempt: "1s", grace: "1s" }, retry: { attempts: 1 } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    expect([(await stage.load(job)).state, stage.counters().ignored]).toEqual(["discarded", 0]);
    await stage.advance("10s");
    expect(stage.counters().ignored).toBe(4);
  });
});

describe("the logger", () => {
  it("never gets a payload, a result, a checkpoint or a progress note", async () => {
    const lines: string[] = [];
    const keep = (fields: object, message: string) => void lines.push(message + JSON.stringify(fields));
    const stage = await openStage({ logger: { debug: keep, info: keep, warn: keep, error: keep } });
    const { definition, processors } = jobWith(
      async (context) => {
        context.onCleanup(() => {
          throw new Error("hook");
        });
        context.progress(0.5, "secret note");
        context.checkpoint("secret checkpoint").catch(() => {});
        await stage.sleep(context.payload === "secret deaf" ? 60_000 : 6_000);
        return "secret result";
      },
      { timeouts: { attempt: "5s", grace: "2s" }, retry: { attempts: 1 } },
    );
    stage.work(processors, { maxStuck: 1 });
    await stage.engine.enqueue(definition, "secret payload");
    await stage.engine.enqueue(definition, "secret deaf");
    await stage.engine.enqueue(jobOf({}, "unknown.type"), "secret unknown");
    stage.engine.on("job.completed", () => {
      throw new Error("listener");
    });
    await stage.advance("3s");
    stage.system.pause(1_000);
    await stage.advance("10s");
    expect(lines.length).toBeGreaterThan(4);
    expect(lines.join("\n")).not.toContain("secret");
  });
});
