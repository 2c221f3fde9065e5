import { describe, expect, it } from "vitest";
import { dueAtOf } from "../../src/core/job/job.ts";
import { defineJob, processor, snooze, type UniqueOptions, unchecked } from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { openPair, openStage, START, type Stage } from "./stage.ts";

const define = (unique: UniqueOptions, more: object = {}) =>
  defineJob({ type: "search.index", payload: unchecked<number | string>(), unique, ...more });
const debounced = (most?: "10s") =>
  define({ payload: false, debounce: { quiet: "2s", ...(most && { most }) } });
const throttled = define({ payload: false, throttle: "10s" });

/** What ran, and when. */
function watch(stage: Stage): [number, unknown][] {
  const ran: [number, unknown][] = [];
  const handler = ({ payload }: { payload: unknown }) => void ran.push([stage.now() - START, payload]);
  stage.work([processor(defineJob({ type: "search.index" }), handler)]);
  return ran;
}

describe("4.8 debounce", () => {
  it("the last one wins, exactly `quiet` after it", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    const job = debounced();
    const first = await stage.engine.enqueue(job, 1);
    await stage.advance("1999ms");
    const last = await stage.engine.enqueue(job, 2);
    await stage.advance("1999ms");
    expect(ran).toEqual([]);
    await stage.advance("1ms");
    expect(ran).toEqual([[3_999, 2]]);
    expect(last.duplicate).toBe(false);
    const row = await stage.load(first);
    expect([row.state, row.options?.replacedBy]).toEqual(["cancelled", last.id]);
    // A burst leaves nothing behind for long.
    expect(row.pruneAt).toBe(START + 1_999 + 60_000);
    // The next burst begins anew.
    await stage.engine.enqueue(job, 3);
    await stage.advance("2s");
    expect(ran[1]).toEqual([5_999, 3]);
  });

  it("waits at most `most` after the first one of the burst", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    for (let index = 0; index < 15; index++) {
      await stage.engine.enqueue(debounced("10s"), index);
      await stage.advance("1s");
    }
    await stage.advance("10s");
    expect(ran).toEqual([
      [10_000, 9],
      [16_000, 14],
    ]);
  });

  it("in one call the last payload stands for the others", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    const jobs = await stage.engine.enqueueMany(debounced(), [1, 2, 3]);
    expect(jobs.map(({ duplicate }) => duplicate)).toEqual([true, true, false]);
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
    expect(await jobsOf(stage.engine.store)).toHaveLength(1);
    await stage.advance("2s");
    expect(ran).toEqual([[2_000, 3]]);
  });

  it("goes by the fields that count", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    const job = defineJob({
      type: "search.index",
      payload: unchecked<{ id: number; text: string }>(),
      unique: { payload: ["id"], debounce: { quiet: "1s" } },
    });
    await stage.engine.enqueue(job, { id: 1, text: "a" });
    await stage.engine.enqueue(job, { id: 2, text: "b" });
    await stage.engine.enqueue(job, { id: 1, text: "c" });
    await stage.advance("1s");
    expect(ran.map(([, payload]) => payload)).toEqual([
      { id: 2, text: "b" },
      { id: 1, text: "c" },
    ]);
  });

  it("a job that has begun is not replaced, also if its handler put it off", async () => {
    const stage = await openStage();
    const seen: unknown[] = [];
    stage.work([
      processor(defineJob({ type: "search.index" }), ({ payload }) => {
        seen.push(payload);
        return seen.length === 1 ? (snooze({ after: "1m" }) as never) : undefined;
      }),
    ]);
    await stage.engine.enqueue(debounced(), "first");
    await stage.advance("10s");
    await stage.engine.enqueue(debounced(), "second");
    await stage.advance("2m");
    expect(seen).toEqual(["first", "second", "first"]);
  });

  it("says in why what the job waits for", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(debounced("10s"), 1);
    const why = await stage.engine.why(job.id);
    expect(why?.reasons[0]).toMatchObject({ code: "debounced" });
    expect(why?.reasons[0]?.sentence).toBe(
      "It is debounced: it starts in 2s, unless another job with its key comes before.",
    );
  });
});

describe("4.8 throttle", () => {
  it("runs the first at once and the last of the others after the period, exactly", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    for (let second = 0; second < 25; second++) {
      await stage.engine.enqueue(throttled, second);
      await stage.advance("1s");
    }
    await stage.advance("1m");
    expect(ran).toEqual([
      [0, 0],
      [10_000, 9],
      [20_000, 19],
      [30_000, 24],
    ]);
    // Long after the last period, the next one runs at once.
    await stage.engine.enqueue(throttled, "late");
    await stage.settle();
    expect(ran[4]).toEqual([85_000, "late"]);
  });

  it("counts from when a job was due, not from when a worker took it", async () => {
    const stage = await openStage();
    await stage.engine.enqueue(throttled, 1);
    await stage.advance("9s");
    const second = await stage.engine.enqueue(throttled, 2);
    await stage.advance("30s");
    const ran = watch(stage);
    await stage.settle();
    expect(ran.map(([, payload]) => payload)).toEqual([1, 2]);
    expect((await stage.load(second)).state).toBe("completed");
  });

  it("a cancelled trailing job leaves room for another", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    await stage.engine.enqueue(throttled, 1);
    await stage.advance("1s");
    const trailing = await stage.engine.enqueue(throttled, 2);
    await stage.engine.cancel(trailing.id);
    await stage.engine.enqueue(throttled, 3);
    await stage.advance("1m");
    expect(ran).toEqual([
      [0, 1],
      [10_000, 3],
    ]);
  });
});

describe("4.8 throttle, attacked", () => {
  it("the period holds although the trailing job is cancelled again and again", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    await stage.engine.enqueue(throttled, "first");
    for (let nth = 0; nth < 5; nth++) {
      await stage.advance("1s");
      await stage.engine.cancel((await stage.engine.enqueue(throttled, nth)).id);
    }
    await stage.engine.enqueue(throttled, "last");
    await stage.advance("1m");
    expect(ran).toEqual([
      [0, "first"],
      [10_000, "last"],
    ]);
  });

  it("a trailing job that an operator runs now begins a period", async () => {
    const stage = await openStage();
    const ran = watch(stage);
    await stage.engine.enqueue(throttled, 1);
    await stage.advance("2s");
    const trailing = await stage.engine.enqueue(throttled, 2);
    await stage.engine.job(trailing.id).runNow();
    await stage.advance("1s");
    await stage.engine.enqueue(throttled, 3);
    await stage.advance("1s");
    await stage.engine.enqueue(throttled, 4);
    await stage.advance("1m");
    expect(ran).toEqual([
      [0, 1],
      [2_000, 2],
      [13_000, 4],
    ]);
  });

  it("jobs of the key under a rule without a pace are not forgotten", async () => {
    const stage = await openStage();
    const once = define({ payload: false, period: "1h" });
    const first = await stage.engine.enqueue(once, 1);
    await stage.engine.enqueue(throttled, 2);
    await stage.engine.enqueue(throttled, 3);
    await stage.advance("10m");
    const again = await stage.engine.enqueue(once, 4);
    expect([first.duplicate, again.duplicate]).toEqual([false, true]);
  });
});

describe("4.8 together with the rest", () => {
  it("two processes share one burst: one job runs, with the last payload", async () => {
    const pair = await openPair();
    const ran = watch(pair.first);
    for (let index = 0; index < 10; index++) {
      const engine = (index % 2 === 0 ? pair.first : pair.second).engine;
      await engine.enqueue(debounced(), index);
      await pair.advance(100);
    }
    await Promise.all([
      pair.first.engine.enqueueMany(debounced(), [100, 101]),
      pair.second.engine.enqueueMany(debounced(), [200, 201]),
    ]);
    await pair.advance(5_000);
    expect(ran).toHaveLength(1);
    expect([101, 201]).toContain(ran[0]?.[1]);
  });

  it("a process whose clock is behind makes no period shorter", async () => {
    const pair = await openPair();
    await pair.first.system.advance(40);
    const first = await pair.first.engine.enqueue(throttled, 1);
    const second = await pair.second.engine.enqueue(throttled, 2);
    const dueAts = [await pair.first.load(first), await pair.first.load(second)].map(({ rank }) =>
      dueAtOf(rank),
    );
    expect(dueAts).toEqual([START + 40, START + 40 + 10_000]);
  });

  it("an enqueue whose reply was lost is not added twice and does not undo a later one", async () => {
    const pair = await openPair((store) => {
      let lost = 0;
      return {
        ...store,
        async commit(units, options) {
          const outcomes = await store.commit(units, options);
          const isEnqueue = units.some(({ effects }) => effects?.some((effect) => "enqueue" in effect));
          if (isEnqueue && lost++ === 0) throw new Error("the reply was lost");
          return outcomes;
        },
      };
    });
    const ran = watch(pair.first);
    const adding = pair.first.engine.enqueueMany(debounced(), [1, 2, 3]);
    await pair.advance(1_000);
    const jobs = await adding;
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
    await pair.advance(5_000);
    expect(ran.map(([, payload]) => payload)).toEqual([3]);
  });

  it("refuses what contradicts it, and names the field", async () => {
    const { engine } = await openStage();
    const debounce = { quiet: "1s" } as const;
    const wrong: [UniqueOptions, string][] = [
      [{ debounce }, "unique.payload"],
      [{ payload: false, debounce, throttle: "1s" }, "unique.throttle"],
      [{ payload: false, debounce, period: "1s" }, "unique.period"],
      [{ payload: false, throttle: "1s", onConflict: "reject" }, "unique.onConflict"],
      [{ payload: false, throttle: "1s", states: ["active"] }, "unique.states"],
      [{ payload: false, debounce: { quiet: "2s", most: "1s" } }, "unique.debounce.most"],
      [{ payload: false, debounce: { quiet: "0s" } }, "unique.debounce.quiet"],
      [{ payload: false, debounce: { quiet: "1s", max: "1s" } as never }, "max"],
    ];
    for (const [unique, field] of wrong) expect(() => define(unique)).toThrow(field);
    await expect(engine.enqueue(debounced(), 1, { delay: "1s" })).rejects.toThrow("options.delay");
    await expect(engine.enqueue(debounced(), 1, { timeouts: { wait: "1s" } })).rejects.toMatchObject({
      code: "never_runs",
    });
  });
});
