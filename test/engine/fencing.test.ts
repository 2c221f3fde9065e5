import { describe, expect, it } from "vitest";
import { Discard } from "../../src/index.ts";
import { logOf } from "../../src/testing/read-store.ts";
import { deaf, jobWith, openPair, type Pair, type Stage, silent, sleepOn } from "./stage.ts";

describe("3.8 a write with an old fence changes nothing", () => {
  /** The second machine runs a job and stands still; the first takes it over and ends it. */
  async function takenOver(pair: Pair, late: (stage: Stage) => unknown) {
    const stalling = jobWith(async (context) => {
      await sleepOn(pair.second.system, 95_000);
      context.log("late");
      context.progress(1, "late");
      context.checkpoint({ late: true }).catch(() => {});
      return late(pair.second);
    });
    const worker = pair.second.work(stalling.processors);
    const job = await pair.second.engine.enqueue(stalling.definition);
    await pair.advance(2_000);
    pair.first.work(jobWith(() => "taken over").processors);
    await pair.pauseSecond(90_000);
    await pair.advance(10_000);
    return { job, worker };
  }

  it.each<[string, (stage: Stage) => unknown]>([
    ["a result", () => "late"],
    [
      "an error",
      () => {
        throw new Error("late");
      },
    ],
    [
      "a Discard",
      () => {
        throw new Discard("late");
      },
    ],
  ])("%s after a takeover", async (_name, late) => {
    const pair = await openPair();
    const { job } = await takenOver(pair, late);
    const row = await pair.first.load(job);
    expect(row).toMatchObject({ state: "completed", attempt: 2, result: '"taken over"', checkpoint: null });
    expect(row.errors?.map(({ type }) => type)).toEqual(["stalled"]);
    expect(pair.second.counters()).toMatchObject({ lost: 1, completed: 0, failed: 0, discarded: 0 });
    expect(pair.second.names(job.id)).toContain("job.lost");
    expect(pair.second.names(job.id)).not.toContain("job.completed");
    expect(await logOf(pair.first.engine.store, job.id)).toEqual([
      expect.objectContaining({ message: "Stalled: no beat for 60s" }),
    ]);
  });

  it("a cancelled job refuses the handler's result even if its worker heard no hint and no beat", async () => {
    const pair = await openPair(silent);
    const { definition, processors } = jobWith(() => sleepOn(pair.second.system, 1_000));
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(950);
    await pair.first.engine.cancel(job.id);
    await pair.second.system.advance(60);
    await pair.advance(500);
    expect((await pair.first.load(job)).state).toBe("cancelled");
    expect(pair.second.counters().completed).toBe(0);
  });

  it("a handler whose job lost its claim gets the abort signal", async () => {
    const pair = await openPair();
    const kinds: string[] = [];
    const { definition, processors } = jobWith(({ signal }) => {
      signal.addEventListener("abort", () => kinds.push(signal.reason.kind));
      return deaf();
    });
    pair.second.work(processors);
    await pair.second.engine.enqueue(definition);
    await pair.advance(2_000);
    await pair.pauseSecond(90_000);
    await pair.advance(2_000);
    expect(kinds).toEqual(["lost"]);
  });
});

describe("3.8 a job that comes back to the worker that lost it", () => {
  it("runs beside its old handler, and neither slot is lost", async () => {
    const pair = await openPair();
    const { definition, processors } = jobWith(
      ({ attempt }) => (attempt === 1 ? deaf() : sleepOn(pair.second.system, 1_000)),
      { timeouts: { grace: "20s" } },
    );
    const worker = pair.second.work(processors, { queues: { default: { concurrency: 2 } } });
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(2_000);
    await pair.pauseSecond(70_000);
    await pair.advance(5_000);
    expect(await pair.first.load(job)).toMatchObject({ state: "completed", attempt: 2 });
    expect(worker.status()).toMatchObject({ running: 1, stuck: 0 });
    await pair.advance(20_000);
    expect(worker.status()).toMatchObject({ running: 0, stuck: 1 });
    const closing = worker.close();
    await pair.advance(100);
    await closing;
  });
});
