import { describe, expect, it } from "vitest";
import { defineJob, type PolicyOptions } from "../../src/index.ts";
import { depthOf, rowOf } from "../../src/testing/read-store.ts";
import {
  deaf,
  errorOf,
  jobOf,
  jobWith,
  openPair,
  openStage,
  openWithJob,
  type Pair,
  START,
  type Stage,
  silent,
} from "./stage.ts";

const DAY = 86_400_000;

/** Lets days pass at once and the loops look after them. */
async function passDays(stage: Stage, days: number): Promise<void> {
  stage.system.pause(days * DAY);
  await stage.advance("2m");
}

describe("9 retention", () => {
  async function oneOfEach(settings: PolicyOptions = {}) {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      ({ payload }) => {
        if (payload === "completed") return "ok";
        throw new Error("no");
      },
      { retry: { attempts: 1 }, ...settings },
    );
    const worker = stage.work(processors);
    const completed = await stage.engine.enqueue(definition, "completed");
    const discarded = await stage.engine.enqueue(definition, "discarded");
    await stage.settle();
    await worker.close();
    const cancelled = await stage.engine.enqueue(definition);
    await stage.engine.cancel(cancelled.id);
    const isKept = async () =>
      Promise.all(
        [completed, discarded, cancelled].map(
          async ({ id }) => (await rowOf(stage.engine.store, id)) !== null,
        ),
      );
    return { stage, isKept };
  }

  it("completed is kept 24 h, discarded and cancelled 14 d; prune deletes them by itself", async () => {
    const { stage, isKept } = await oneOfEach();
    await stage.advance("1m");
    await passDays(stage, 0.99);
    expect(await isKept()).toEqual([true, true, true]);
    await passDays(stage, 0.02);
    expect(await isKept()).toEqual([false, true, true]);
    await passDays(stage, 12.9);
    expect(await isKept()).toEqual([false, true, true]);
    await passDays(stage, 0.2);
    expect(await isKept()).toEqual([false, false, false]);
  });

  it("the sources set the retention of each state", async () => {
    const { stage, isKept } = await oneOfEach({ retention: { completed: "30d", cancelled: "1d" } });
    await passDays(stage, 2);
    expect(await isKept()).toEqual([true, true, false]);
    await passDays(stage, 13);
    expect(await isKept()).toEqual([true, false, false]);
  });

  it("dead letters are kept until removed", async () => {
    const { stage, isKept } = await oneOfEach({
      retry: { attempts: 1, onExhausted: "dead-letter" },
      retention: "1d",
    });
    await passDays(stage, 400);
    expect(await isKept()).toEqual([false, true, false]);
  });

  it("many old jobs are pruned in several batches", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => null, { retention: "1m" });
    stage.work(processors, { queues: { default: { concurrency: 100 } } });
    await stage.engine.enqueueMany(definition, new Array(1_700).fill(null));
    await stage.advance("30s");
    expect((await depthOf(stage.engine.store)).completed).toBe(1_700);
    await stage.advance("3m");
    expect((await depthOf(stage.engine.store)).completed).toBe(0);
  });

  it("pruneOnce deletes what is due now", async () => {
    const { stage, isKept } = await oneOfEach({ retention: "1h" });
    stage.system.pause(3_600_000);
    await stage.engine.pruneOnce();
    expect(await isKept()).toEqual([false, false, false]);
  });
});

describe("9 retention of 0s", () => {
  const gone: PolicyOptions = { retention: "0s", retry: { attempts: 1 } };

  it("a retention of 0s deletes the job in its settle, and still announces its end", async () => {
    const { stage, job } = await openWithJob(() => "done", gone);
    await stage.settle();
    expect(await rowOf(stage.engine.store, job.id)).toBeNull();
    expect(stage.names(job.id)).toEqual(["job.enqueued", "job.started", "job.completed"]);
  });

  it("a job whose result() is awaited is kept for a minute", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(5_000).then(() => "done"), gone);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    const result = job.result();
    await stage.advance("5s");
    expect(await result).toBe("done");
    expect(await stage.load(job)).toMatchObject({ state: "completed", pruneAt: START + 65_000 });
    expect(await job.result()).toBe("done");
    await stage.advance("3m");
    expect(await errorOf(job.result())).toMatchObject({ code: "result_gone" });
  });

  it("a result() is answered although another process claims the job while it asks", async () => {
    let claim: (() => Promise<void>) | undefined;
    const pair: Pair = await openPair((store) => ({
      ...store,
      async commit(units, options) {
        const isMark = units.some(({ job }) => job?.documents?.options?.awaited);
        const first = isMark ? claim : undefined;
        if (first) claim = undefined;
        await first?.();
        return store.commit(units, options);
      },
    }));
    const { definition, processors } = jobWith(async () => {
      await pair.second.sleep(500);
      return "kept";
    }, gone);
    const job = await pair.first.engine.enqueue(definition);
    claim = async () => {
      pair.second.work(processors);
      await pair.second.settle();
    };
    const result = job.result();
    await pair.advance(2_000);
    expect(claim).toBeUndefined();
    await expect(result).resolves.toBe("kept");
  });

  it("a result() that comes too late says that the job is gone", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => "gone", gone);
    const job = await stage.engine.enqueue(definition);
    stage.work(processors);
    await stage.settle();
    await expect(job.result()).rejects.toMatchObject({
      code: "result_gone",
      message: `result: job ${job.id} is not in the store: it ended and its retention is over ("0s" deletes it at once), or the id is wrong; set a longer retention, or call result() before it ends`,
    });
  });

  it("a failed job whose result() is awaited is kept too, so the caller gets its error", async () => {
    const pair = await openPair(silent);
    const { definition, processors } = jobWith(
      async () => {
        await pair.second.sleep(3_000);
        throw new RangeError("no");
      },
      { retention: { discarded: "0s" }, retry: { attempts: 1 } },
    );
    pair.second.work(processors);
    const job = await pair.first.engine.enqueue(definition);
    const waiting = errorOf(job.result());
    await pair.advance(8_000);
    expect(await waiting).toMatchObject({ code: "job_failed", message: expect.stringContaining("no") });
  });

  it("result() of a missing job rejects with result_gone and does not hang", async () => {
    const { stage, job } = await openWithJob(() => "done", gone);
    await stage.settle();
    expect(await errorOf(job.result())).toMatchObject({ code: "result_gone" });
    const unknown = stage.engine.job("01890000-0000-7000-8000-000000000009");
    expect(await errorOf(unknown.result())).toMatchObject({ code: "result_gone" });
    expect(stage.system.pendingTimers).toBeLessThan(20);
  });

  it("a cancelled job is deleted at once, and its result() rejects", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf(gone));
    const waiting = errorOf(job.result());
    await stage.settle();
    await stage.engine.cancel(job.id);
    expect(await waiting).toMatchObject({ code: "job_failed", state: "cancelled" });
    const other = await stage.engine.enqueue(jobOf(gone));
    await stage.engine.cancel(other.id);
    expect(await rowOf(stage.engine.store, other.id)).toBeNull();
  });
});

describe("9 at least once, fenced", () => {
  it("the job id is the idempotency key, the same for every attempt", async () => {
    const stage = await openStage();
    const ids: string[] = [];
    const { definition, processors } = jobWith(({ id, attempt }) => {
      ids.push(id);
      if (attempt < 3) throw new Error("again");
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("1m");
    expect(ids).toEqual([job.id, job.id, job.id]);
  });

  it("a handler gets type, queue, payload as parsed, meta and attempt", async () => {
    const { z } = await import("zod");
    const { processor } = await import("../../src/index.ts");
    const stage = await openStage();
    const definition = defineJob({
      type: "card.charge",
      queue: "money",
      payload: z.object({ cents: z.string().transform(Number) }),
    });
    const seen: unknown[] = [];
    stage.work(
      [
        processor(definition, ({ type, queue, payload, meta, attempt, lastCheckpoint }) => {
          seen.push({ type, queue, payload, meta, attempt, lastCheckpoint });
          return null;
        }),
      ],
      { queues: { money: { concurrency: 1 } } },
    );
    await stage.engine.enqueue(definition, { cents: "42" }, { meta: { trace: "t1" } });
    await stage.settle();
    expect(seen).toEqual([
      {
        type: "card.charge",
        queue: "money",
        payload: { cents: 42 },
        meta: { trace: "t1" },
        attempt: 1,
        lastCheckpoint: undefined,
      },
    ]);
  });

  it("the worker awaits a thenable that a handler returns", async () => {
    const stage = await openStage();
    let ran = 0;
    // biome-ignore lint/suspicious/noThenProperty: query builders are such objects
    const query = { then: (resolve: (rows: number[]) => void) => resolve([++ran]) };
    const { definition, processors } = jobWith(() => query);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    expect(await job.result()).toEqual([1]);
    void deaf;
  });
});
