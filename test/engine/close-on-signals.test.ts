import { EventEmitter } from "node:events";
import { describe, expect, it } from "vitest";
import { closeOnSignals } from "../../src/engine/runtime/close-on-signals.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createLatch } from "../../src/testing/index.ts";
import { errorOf, jobWith, openOver, openStage } from "./stage.ts";

describe("5.2 closeOnSignals", () => {
  it("closes once, and keeps its listeners until the close has ended", async () => {
    const source = new EventEmitter();
    const closed = createLatch();
    let calls = 0;
    const close = () => {
      calls += 1;
      return closed.pass();
    };
    closeOnSignals({}, silentLogger, close, source as never);
    source.emit("SIGTERM", "SIGTERM");
    source.emit("SIGTERM", "SIGTERM");
    source.emit("SIGINT", "SIGINT");
    expect([calls, source.listenerCount("SIGTERM")]).toEqual([1, 1]);
    closed.open();
    await new Promise((resolve) => setImmediate(resolve));
    expect([source.listenerCount("SIGTERM"), source.listenerCount("SIGINT")]).toEqual([0, 0]);
  });

  it("removes its listeners when it is undone, and refuses bad options", async () => {
    const { engine } = await openStage();
    const before = process.listenerCount("SIGUSR2");
    const undo = engine.closeOnSignals({ drain: "5s", signals: ["SIGUSR2"] });
    expect(process.listenerCount("SIGUSR2")).toBe(before + 1);
    undo();
    expect(process.listenerCount("SIGUSR2")).toBe(before);
    const bad = async (options: object) => engine.closeOnSignals(options as never);
    expect(await errorOf(bad({ signals: [] }))).toMatchObject({ field: "closeOnSignals.signals" });
    expect(await errorOf(bad({ drian: "5s" }))).toMatchObject({ code: "unknown_option" });
  });
});

describe("the readiness of a worker whose store fails", () => {
  it("is announced once, and once more when the store answers again", async () => {
    let isDown = false;
    const stage = await openOver((store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        claim: async (request) => {
          if (isDown) throw new Error("the store is down");
          return store.jobs.claim(request);
        },
      },
    }));
    const { processors } = jobWith(() => 1);
    const worker = stage.work(processors, {
      queues: { default: { concurrency: 1 }, other: { concurrency: 1 } },
    });
    const told = () => stage.names().filter((name) => name === "worker.unready" || name === "worker.ready");
    await stage.advance("10s");
    expect(told()).toEqual([]);
    isDown = true;
    await stage.advance("1h");
    expect(told()).toEqual(["worker.unready"]);
    expect(stage.told("worker.unready")).toMatchObject({
      worker: worker.id,
      reason: expect.stringContaining("claims from queue"),
    });
    isDown = false;
    await stage.advance("1h");
    expect([told(), worker.status().ready]).toEqual([["worker.unready", "worker.ready"], true]);
  });
});
