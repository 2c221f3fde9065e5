import { describe, expect, it } from "vitest";
import type { PolicyOptions } from "../../src/index.ts";
import { logOf } from "../../src/testing/read-store.ts";
import {
  deaf,
  errorOf,
  jobOf,
  jobWith,
  openOver,
  openPair,
  openStage,
  START,
  type Stage,
  silent,
  sleepOn,
  slowStarts,
} from "./stage.ts";

describe("5.3 extend", () => {
  const settings: PolicyOptions = {
    timeouts: { attempt: "10s", total: "1m", grace: "1s" },
    retry: { attempts: 1 },
  };

  it.each([
    ["before its start is marked", "100ms"],
    ["once it is", "5s"],
  ] as const)("a running job, %s", async (_name, after) => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(30_000), settings);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance(after);
    await stage.engine.extend(job.id, { attempt: "40s" });
    await stage.advance("35s");
    expect(await stage.load(job)).toMatchObject({ state: "completed", softAt: START + 40_000 });
    expect(stage.names(job.id)).toContain("job.extended");
    expect(stage.counters()).toMatchObject({ late: 0, timeouts: [] });
  });

  it("the handler sees its new deadline within a second, even if another engine extended it", async () => {
    const pair = await openPair(silent);
    const deadlines: (number | null)[] = [];
    const { definition, processors } = jobWith(async (context) => {
      for (;;) {
        await sleepOn(pair.second.system, 1_000);
        deadlines.push((context.deadline ?? 0) - START);
      }
    }, settings);
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(4_500);
    await pair.first.engine.extend(job.id, { attempt: "50s" });
    await pair.advance(2_000);
    expect(new Set(deadlines.map((at) => (at ?? 0) > 45_000))).toEqual(new Set([false, true]));
  });

  it("if the store sends hints, the worker of another engine gets the new deadline at once", async () => {
    const pair = await openPair();
    let deadline: () => number | null = () => null;
    const { definition, processors } = jobWith((context) => {
      deadline = () => (context.deadline ?? 0) - START;
      return deaf();
    }, settings);
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(3_000);
    await pair.first.engine.extend(job.id, { attempt: "50s" });
    await pair.second.settle();
    expect(deadline()).toBeGreaterThanOrEqual(50_000);
  });

  it("an attempt whose start was committed before its entry keeps its whole time", async () => {
    // The extension overtakes the second commit, which says that the attempt counts from its entry.
    const delays = [100, 200];
    const stage: Stage = await openOver((store) => slowStarts(store, delays, (delay) => stage.sleep(delay)));
    const heard: { deadline: number | null; at: number }[] = [];
    const { definition, processors } = jobWith(({ id, deadline, signal }) => {
      void stage.engine.extend(id, { total: "1h" });
      signal.addEventListener("abort", () => heard.push({ deadline, at: stage.engine.now() }));
      return deaf();
    }, settings);
    stage.work(processors);
    const limit = { key: "k", rate: { limit: 5, per: "1s" as const } };
    const job = await stage.engine.enqueue(definition, null, { limit });
    await stage.advance("5s");
    expect(delays).toEqual([]);
    expect((await stage.load(job)).startedAt).toBe(START + 100);
    await stage.advance("6s");
    expect(heard).toEqual([{ deadline: START + 10_100, at: START + 10_100 }]);
  });

  it("it is audited: the job's log says what was changed and when", async () => {
    const stage = await openStage();
    const job = await stage.engine.enqueue(jobOf(settings));
    await stage.advance("2s");
    await stage.engine.extend(job.id, { attempt: "40s", total: "2h", heartbeat: "none" });
    expect(await logOf(stage.engine.store, job.id)).toEqual([
      { at: START + 2_000, attempt: 0, message: "Extended: attempt 40s, total 2h, heartbeat none" },
    ]);
  });

  it("total and heartbeat of a running job can be changed", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, {
      timeouts: { total: "10s", heartbeat: "8s", grace: "0s" },
      retry: { attempts: 1 },
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    await stage.engine.extend(job.id, { total: "1h", heartbeat: "20s" });
    await stage.advance("19s");
    expect((await stage.load(job)).state).toBe("active");
    await stage.advance("2s");
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ type: "stalled", limit: 20_000 });
  });

  it('"none" removes a limit', async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(() => stage.sleep(120_000), settings);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("5s");
    await stage.engine.extend(job.id, { attempt: "none", total: "none" });
    await stage.advance("2m");
    expect((await stage.load(job)).state).toBe("completed");
  });

  it("a waiting job: its total at once, the rest at its start; explain() names the settings", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, settings);
    const job = await stage.engine.enqueue(definition);
    await stage.engine.extend(job.id, { total: "2h", attempt: "30s" });
    expect((await stage.load(job)).totalAt).toBe(START + 7_200_000);
    await stage.advance("61s");
    stage.work(processors);
    await stage.advance("1s");
    const row = await stage.load(job);
    expect((row.softAt ?? 0) - (row.startedAt ?? 0)).toBe(30_000);
    const explained = await stage.engine.explain(job.id, definition);
    expect(explained.fields.find(({ field }) => field === "attempt")).toMatchObject({
      value: "30s",
      source: "enqueue",
    });
  });

  it("an attempt that has timed out and an ended job cannot be extended", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(deaf, {
      ...settings,
      timeouts: { attempt: "10s", grace: "10s" },
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("11s");
    const early = await errorOf(stage.engine.extend(job.id, { attempt: "1h" }));
    expect(early).toMatchObject({
      code: "invalid_state",
      message: expect.stringContaining("has timed out"),
    });
    await stage.advance("10s");
    expect(await errorOf(stage.engine.extend(job.id, { attempt: "1h" }))).toMatchObject({
      code: "invalid_state",
    });
  });

  it("a job that is extended during its claim is released and then runs under its new total", async () => {
    let answer: () => void = () => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const stage = await openOver((store) => ({
      ...store,
      jobs: {
        ...store.jobs,
        claim: async (request) => {
          const rows = await store.jobs.claim(request);
          await answered;
          return rows;
        },
      },
    }));
    const { definition, processors } = jobWith(() => "done", { timeouts: { total: "2s" } });
    const job = await stage.engine.enqueue(definition);
    stage.work(processors);
    await stage.settle();
    await stage.engine.extend(job.id, { total: "1h" });
    await stage.advance("3s");
    answer();
    await stage.advance("3s");
    expect(await stage.load(job)).toMatchObject({ state: "completed", attempt: 1 });
  });
});
