import { describe, expect, it } from "vitest";
import {
  type AttemptContext,
  DuplicateJobError,
  defineJob,
  processor,
  type UniqueOptions,
} from "../../src/index.ts";
import { jobsOf, rowOf } from "../../src/testing/read-store.ts";
import { deaf, openStage, type Stage } from "./stage.ts";

const define = (unique: UniqueOptions, type = "test.unique") => defineJob({ type, unique });

/** Works on what is there: `run` may hold it. */
async function work(stage: Stage, run: (context: AttemptContext) => unknown = () => undefined) {
  const worker = stage.work([processor(defineJob({ type: "test.unique" }), run as never)], {
    queues: { default: { concurrency: 1 } },
  });
  await stage.settle();
  return worker;
}

async function runAll(stage: Stage) {
  const closed = (await work(stage)).close();
  await stage.advance("1s");
  await closed;
}

describe("unique while a job lives", () => {
  it("returns the existing job as a duplicate until it ends", async () => {
    const stage = await openStage();
    const job = define({});
    const first = await stage.engine.enqueue(job, { a: 1, b: 2 });
    const second = await stage.engine.enqueue(job, { b: 2, a: 1 });
    expect(second).toMatchObject({ id: first.id, duplicate: true });
    expect(await stage.engine.enqueue(job, { a: 2 })).toMatchObject({ duplicate: false });
    await runAll(stage);
    expect(await stage.engine.enqueue(job, { a: 1, b: 2 })).toMatchObject({ duplicate: false });
    expect(await stage.engine.queues.depth()).toMatchObject({ available: 1, completed: 2 });
  });

  it("rejects with onConflict reject, and names the job that holds the key", async () => {
    const { engine } = await openStage();
    const job = define({ onConflict: "reject" });
    const first = await engine.enqueue(job, 1);
    const error = await engine.enqueue(job, 1).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(DuplicateJobError);
    expect(error).toMatchObject({ code: "duplicate_job", existing: first.id });
  });

  it("replaces: the old one is cancelled and the new one added", async () => {
    const stage = await openStage();
    const job = define({ payload: false, onConflict: "replace" });
    const first = await stage.engine.enqueue(job, 1);
    const second = await stage.engine.enqueue(job, 2);
    await stage.settle();
    expect(second.duplicate).toBe(false);
    expect(await stage.load(first)).toMatchObject({ state: "cancelled" });
    expect(await stage.load(second)).toMatchObject({ state: "available", payload: "2" });
    expect(stage.names(first.id)).toEqual(["job.enqueued", "job.cancelled"]);
    expect(await stage.engine.enqueue(job, 3, { unique: { payload: false } })).toMatchObject({
      id: second.id,
      duplicate: true,
    });
  });

  it("replaces a running job and aborts its handler", async () => {
    const stage = await openStage();
    const job = define({ payload: false, onConflict: "replace" });
    const first = await stage.engine.enqueue(job, 1);
    let heard: unknown;
    await work(stage, ({ signal }) => {
      signal.addEventListener("abort", () => (heard = signal.reason));
      return deaf();
    });
    expect(await stage.load(first)).toMatchObject({ state: "active" });
    await stage.engine.enqueue(job, 2);
    expect(await stage.load(first)).toMatchObject({ state: "cancelled" });
    await stage.advance("2s");
    expect(heard).toMatchObject({ kind: "cancelled" });
  });

  it("replaces all but the schedule", async () => {
    const stage = await openStage();
    const job = define({ payload: false, onConflict: "replace-except-schedule" });
    const first = await stage.engine.enqueue(job, 1, { delay: "1h" });
    const second = await stage.engine.enqueue(job, 2);
    const row = await stage.load(second);
    expect(row).toMatchObject({ state: "scheduled", payload: "2", wakeAt: stage.now() + 3_600_000 });
    expect(await stage.load(first)).toMatchObject({ state: "cancelled" });
    const short = stage.engine.enqueue(job, 3, { timeouts: { wait: "10m" } });
    await expect(short).rejects.toMatchObject({ code: "never_runs" });
    expect(await stage.load(second)).toMatchObject({ state: "scheduled" });
    await stage.advance("2h");
    expect(await stage.load(second)).toMatchObject({ state: "available" });
  });

  it("enqueues many jobs, and each handle says whether it is a duplicate", async () => {
    const { engine } = await openStage();
    const handles = await engine.enqueueMany(define({ onConflict: "reject" }), [1, 2, 1, 3, 2]);
    expect(handles.map(({ duplicate }) => duplicate)).toEqual([false, false, true, false, true]);
    expect(handles[2]?.id).toBe(handles[0]?.id);
    expect((await engine.queues.depth()).available).toBe(3);
  });

  it("gives a known id precedence over the key", async () => {
    const { engine } = await openStage();
    const job = define({ onConflict: "reject" });
    const id = "018f5a6e-0000-7000-8000-000000000001";
    await engine.enqueue(job, 1, { id });
    expect(await engine.enqueue(job, 1, { id })).toMatchObject({ id, duplicate: true });
  });

  it("can be turned off or overridden by a call", async () => {
    const { engine } = await openStage();
    const job = define({});
    await engine.enqueue(job, 1);
    expect(await engine.enqueue(job, 1, { unique: false })).toMatchObject({ duplicate: false });
    await expect(engine.enqueue(job, 1, { unique: { period: "1h" } })).rejects.toMatchObject({
      field: "options.unique",
    });
  });
});

describe("unique for a period", () => {
  it("counts from creation, even if the job has ended, and ends with the period", async () => {
    const stage = await openStage();
    const job = define({ period: "1h" });
    const first = await stage.engine.enqueue(job, 1);
    await runAll(stage);
    await stage.advance("58m");
    expect(await stage.engine.enqueue(job, 1)).toMatchObject({ id: first.id, duplicate: true });
    await stage.advance("2m");
    const next = await stage.engine.enqueue(job, 1);
    expect(next).toMatchObject({ duplicate: false });
    // The period is over for a job that still waits as well.
    await stage.advance("61m");
    expect(await stage.engine.enqueue(job, 1)).toMatchObject({ duplicate: false });
    expect((await stage.engine.queues.depth()).available).toBe(2);
  });

  it("holds for jobs that are not kept after their end", async () => {
    const stage = await openStage();
    const job = define({ period: "1h", onConflict: "reject" });
    const first = await stage.engine.enqueue(job, 1, { retention: { completed: "0s" } });
    await runAll(stage);
    expect(await rowOf(stage.engine.store, first.id)).toBeNull();
    await expect(stage.engine.enqueue(job, 1)).rejects.toMatchObject({ existing: first.id });
  });

  it("does not hold for cancelled and discarded jobs, unless their states are named", async () => {
    const stage = await openStage();
    const job = define({ period: "1h" });
    const first = await stage.engine.enqueue(job, 1);
    await first.cancel();
    expect(await stage.engine.enqueue(job, 1)).toMatchObject({ duplicate: false });
    const strict = define({ period: "1h", states: ["available", "cancelled"] }, "test.strict");
    const second = await stage.engine.enqueue(strict, 1);
    await second.cancel();
    expect(await stage.engine.enqueue(strict, 1)).toMatchObject({ id: second.id, duplicate: true });
  });

  it("deletes its record when the period is over", async () => {
    const stage = await openStage();
    await stage.engine.enqueue(define({ period: "1h" }), 1);
    const records = () => stage.engine.store.records.list("unique", null, 10);
    expect(await records()).toHaveLength(1);
    await stage.advance("59m");
    expect(await records()).toHaveLength(1);
    await stage.advance("5m");
    expect(await records()).toHaveLength(0);
  });

  it("adds one job for a thousand calls at once", async () => {
    const { engine } = await openStage();
    const job = define({ period: "1h" });
    const handles = await Promise.all(Array.from({ length: 1_000 }, () => engine.enqueue(job, 1)));
    expect(new Set(handles.map(({ id }) => id)).size).toBe(1);
    expect(handles.filter(({ duplicate }) => !duplicate)).toHaveLength(1);
    expect((await engine.queues.depth()).available).toBe(1);
  });

  it("replaces one by one, so that the last of many calls at once stays", async () => {
    const stage = await openStage();
    const job = define({ period: "1h", payload: false, onConflict: "replace" });
    const handles = await Promise.all(Array.from({ length: 20 }, (_, n) => stage.engine.enqueue(job, n)));
    expect(new Set(handles.map(({ id }) => id)).size).toBe(20);
    expect(await stage.engine.queues.depth()).toMatchObject({ available: 1, cancelled: 19 });
    const [left] = await jobsOf(stage.engine.store, { state: "available" });
    expect(left?.payload).toBe("19");
  });
});

describe("unique by states", () => {
  it("counts only jobs in one of them", async () => {
    const stage = await openStage();
    const job = define({ states: ["available"], onConflict: "reject" });
    await stage.engine.enqueue(job, 1);
    await expect(stage.engine.enqueue(job, 1)).rejects.toMatchObject({ code: "duplicate_job" });
    await runAll(stage);
    expect(await stage.engine.enqueue(job, 1)).toMatchObject({ duplicate: false });
  });

  it("sees every job of the key, not only the last one", async () => {
    const stage = await openStage();
    const job = define({ states: ["active"] });
    const [first] = [await stage.engine.enqueue(job, 1)];
    await stage.engine.enqueue(job, 1);
    await work(stage, deaf);
    expect(await stage.load(first)).toMatchObject({ state: "active" });
    expect(await stage.engine.enqueue(job, 1)).toMatchObject({ id: first.id, duplicate: true });
  });

  it("deletes its record some time after the last of its jobs has ended", async () => {
    const stage = await openStage();
    await stage.engine.enqueue(define({ states: ["available", "active"] }), 1);
    const records = () => stage.engine.store.records.list("unique", null, 10);
    await stage.advance("3h");
    expect(await records()).toHaveLength(1);
    await runAll(stage);
    await stage.advance("8h");
    expect(await records()).toHaveLength(0);
  });
});

describe("unique jobs within another commit", () => {
  it("are duplicates while another one lives, and rules that need other reads are refused", async () => {
    const stage = await openStage();
    const later = { dueAt: { after: "1m" } } as const;
    await stage.engine.enqueue(define({}), 1);
    await stage.engine.timeouts.enqueue(define({}), 1, later);
    await stage.advance("2m");
    expect((await stage.engine.queues.depth()).available).toBe(1);
    for (const unique of [{ period: "1h" }, { states: ["active"] }, { onConflict: "reject" }] as const) {
      await expect(stage.engine.timeouts.enqueue(define(unique), 1, later)).rejects.toMatchObject({
        code: "invalid_option",
        field: expect.stringMatching(/^unique\./),
      });
    }
  });
});

describe("remote producers", () => {
  it("a refused duplicate names the job that has the key", async () => {
    const stage = await openStage();
    const definition = defineJob({ type: "test.unique" });
    const enqueue = async (unique: UniqueOptions, payload = "1") => {
      const [made] = await stage.engine.service.enqueue(
        [{ definition, payload, options: { unique } }],
        stage.now(),
      );
      return made;
    };
    const first = await enqueue({});
    expect(first).toMatchObject({ duplicate: false });
    expect(await enqueue({})).toMatchObject({
      duplicate: true,
      existing: first?.row.id,
      isRejected: false,
      row: { id: first?.row.id, state: "available" },
    });
    expect(await enqueue({ onConflict: "reject" })).toMatchObject({ isRejected: true });
    const replaced = await enqueue({ onConflict: "replace" });
    expect(replaced).toMatchObject({ duplicate: false, row: { state: "available" } });
    expect(await rowOf(stage.engine.store, first?.row.id as string)).toMatchObject({ state: "cancelled" });
  });
});
