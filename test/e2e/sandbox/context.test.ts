import { describe, expect, it, onTestFinished } from "vitest";
import { type AttemptContext, chain, group, openEngine, sandboxed, step } from "../../../src/index.ts";
import { jobsOf, logOf, rowOf } from "../../../src/testing/read-store.ts";
import { act } from "./act-job.ts";
import { follow, greet } from "./jobs.ts";
import { LONG_GRACE, openStage, reapersOf } from "./stage.ts";

const KINDS = ["process", "thread"] as const;
const CLEANUP = new URL("./act-cleanup.ts", import.meta.url);
const GREET = new URL("./act-greet.ts", import.meta.url);

describe("3.2 cleanup hooks", () => {
  it.each(KINDS)(
    "the cleanup of the module and of the attempt run once at the soft signal, in a %s",
    async (kind) => {
      const stage = await openStage({ concurrency: 1, kind, module: CLEANUP });
      const row = await stage.play("anything", null, LONG_GRACE);
      expect(row).toMatchObject({
        checkpoint: '"cleaned"',
        errors: [{ type: "timeout", cause: { type: "TimeoutError" } }],
      });
      expect(row.errors?.[0]).not.toHaveProperty("forced");
      const lines = await logOf(stage.engine.store, row.id);
      expect(lines).toMatchObject([
        { message: "exported hook of anything", fields: { kind: "execution", attempt: 1 } },
        { message: "registered hook" },
        { message: expect.stringMatching(/^Timed out after/) },
      ]);
      const failed = await stage.told("job.cleanup_failed", row.id);
      expect(failed.error).toMatchObject({ type: "Error", message: "nothing is left to clean" });
    },
  );

  it("run at a cancel and at a shutdown, too", async () => {
    const stage = await openStage({ concurrency: 2, module: CLEANUP });
    // A child on a busy machine may need longer than the usual grace for its hooks.
    const timeouts = { attempt: "2m" as const, grace: "1m" as const };
    const [cancelled, given] = await Promise.all(
      ["cancelled", "shut down"].map((name) => stage.enqueue(name, null, { timeouts })),
    );
    await Promise.all([cancelled, given].map((id) => stage.told("job.started", id)));
    await stage.engine.cancel(cancelled as string);
    await stage.told("job.cleanup_failed", cancelled);
    await stage.worker.close({ drain: "0s" });
    await stage.told("job.cleanup_failed", given);
    expect(await rowOf(stage.engine.store, given as string)).toMatchObject({
      state: "available",
      attempt: 0,
      checkpoint: '"cleaned"',
    });
    // What a cancelled job writes is refused: its verdict stands.
    expect(await stage.lines(cancelled as string)).toEqual([]);
    expect(await logOf(stage.engine.store, given as string)).toMatchObject([
      { message: "exported hook of shut down", fields: { kind: "shutdown" } },
      { message: "registered hook" },
    ]);
  });
});

it.each(KINDS)("10.6 a call inside a %s gets what is left of the attempt", async (kind) => {
  const stage = await openStage({ concurrency: 1, kind, module: new URL("./act-call.ts", import.meta.url) });
  const row = await stage.play("anything", null, LONG_GRACE);
  expect(row.errors).toMatchObject([{ type: "timeout", kind: "execution", cause: { type: "TimeoutError" } }]);
  expect(row.errors?.[0]).not.toHaveProperty("forced");
  // The call's own end and the signal of the attempt come at the same time; either may be first.
  expect((await stage.lines(row.id)).slice(0, 2)).toEqual([
    "left: true",
    expect.stringMatching(/^ended: TimeoutError (total|execution)$/),
  ]);
});

describe("a step of a workflow", () => {
  it.each(KINDS)("gets the results of those before it inside a %s", async (kind) => {
    const stage = await openStage({ concurrency: 2, kind });
    const timeouts = { attempt: "30s" as const };
    const workflow = await stage.engine.workflows.start(
      chain([
        group([
          step(act, { name: "echo", argument: [1] }, { timeouts }),
          step(act, { name: "echo", argument: "two" }, { timeouts }),
        ]),
        step(act, { name: "parentResults" }, { timeouts }),
      ]),
    );
    expect(await workflow.result({ within: "1m" })).toEqual([[1], "two"]);
  });
});

describe("5.3 an extension", () => {
  it.each(KINDS)("reaches the handler inside a %s", async (kind) => {
    const stage = await openStage({ concurrency: 1, kind });
    // Long enough for a busy machine to extend it.
    const id = await stage.enqueue("untilExtended", null, { timeouts: { attempt: "8s" } });
    await stage.told("job.progress", id);
    await stage.engine.extend(id, { attempt: "1m" });
    const row = await stage.ended(id);
    const { before, after, isAborted } = JSON.parse(row.result ?? "{}");
    expect(row.state).toBe("completed");
    expect(stage.engine.counters().late).toBe(0);
    expect(after.deadline).toBe(row.softAt);
    expect(after.deadline - before.deadline).toBe(52_000);
    expect(before.remaining).toBeLessThanOrEqual(8_000);
    expect(after.remaining).toBeGreaterThan(45_000);
    expect(isAborted).toBe(false);
  });
});

describe("the context inside", () => {
  async function openGreeting(kind: "process" | "thread") {
    const engine = await openEngine({ store: "memory:" });
    onTestFinished(() => engine.close({ drain: "0s" }));
    const seen: AttemptContext[] = [];
    engine.work({
      processors: [sandboxed(greet, GREET, { kind })],
      middleware: [
        (context, next) => {
          seen.push(context);
          return next();
        },
      ],
    });
    return { engine, seen };
  }

  it.each(KINDS)("enqueues by the worker's rules, from a %s", async (kind) => {
    const { engine } = await openGreeting(kind);
    const job = await engine.enqueue(greet, { at: "2030-05-06T00:00:00Z" });
    expect(await job.result({ within: "1m" })).toEqual({ year: 2030, times: 2 });
    const parent = await rowOf(engine.store, job.id);
    const lines = await logOf(engine.store, job.id);
    // The id is that of the parent, so the first is a duplicate of it as well.
    expect(lines[0]).toMatchObject({ fields: { first: { id: job.id, duplicate: true } } });
    expect(lines.slice(1)).toMatchObject([
      { fields: { name: "CurfewError", code: "invalid_payload", field: "payload.nth" } },
      { fields: { name: "CurfewError", code: "never_runs", field: "timeouts.wait" } },
      { fields: { name: "CurfewError", code: "invalid_option", field: "options.tx" } },
      { fields: { name: "CurfewError", code: "invalid_definition", field: "definition" } },
    ]);
    const followers = await jobsOf(engine.store, { type: follow.type });
    const nths = followers.map(({ payload }) => JSON.parse(payload).nth);
    expect(nths.sort((a, b) => a - b)).toEqual(Array.from({ length: 301 }, (_, index) => index + 1));
    for (const row of followers) {
      const isDetached = JSON.parse(row.payload).nth === 301;
      expect(row).toMatchObject({
        state: "available",
        queue: "later",
        priority: 7,
        totalAt: isDetached ? null : parent?.totalAt,
      });
      // `wait` counts from the latest instant that it may have been, a round trip of the clock after createdAt at most.
      const wait = (row.waitAt ?? 0) - row.createdAt;
      expect(wait).toBeGreaterThanOrEqual(30 * 60_000);
      expect(wait).toBeLessThan(30 * 60_000 + 5_000);
    }
  });

  it("what it may not say is refused where it says it, and costs it nothing else", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("logTooMuch", null, { timeouts: { attempt: "10s" } });
    expect(row).toMatchObject({ state: "completed", checkpoint: null, progress: null });
    expect(JSON.parse(row.result ?? "")).toEqual(["too_large", "too_large", "not_json", "too_large"]);
    expect(await stage.lines(row.id)).toEqual([]);
  });

  it.each(KINDS)("a flood of reports from a %s is thinned out, and the last one counts", async (kind) => {
    const stage = await openStage({ concurrency: 1, kind });
    const row = await stage.play("reportFlood", 50_000, { timeouts: { attempt: "20s" } });
    expect(row).toMatchObject({ state: "completed", progress: '{"value":1,"note":50000}' });
    expect((await stage.lines(row.id)).at(-1)).toContain("The log of this attempt is full");
    await stage.told("job.completed", row.id);
    expect(stage.events.filter(({ name }) => name === "job.progress").length).toBeLessThan(10_000);
  });

  it("middleware sees the payload that the handler sees", async () => {
    const { engine, seen } = await openGreeting("process");
    const job = await engine.enqueue(greet, { at: "2031-05-06T00:00:00Z", times: 5 });
    expect(await job.result({ within: "1m" })).toEqual({ year: 2031, times: 5 });
    expect(seen[0]?.payload).toEqual({ at: new Date("2031-05-06T00:00:00Z"), times: 5 });
  });
});

describe("8.6 what code prints", () => {
  it.each(KINDS)("is in the log of its own job, in order and to the last line, from a %s", async (kind) => {
    const stage = await openStage({ concurrency: 1, spare: 0, kind });
    const first = await stage.play("printAndLeave", "from the first");
    const second = await stage.play("afterPrint");
    expect(second.result).toBe(first.result);
    expect(await logOf(stage.engine.store, first.id)).toMatchObject([
      { message: "from the first", fields: { stream: "stdout" } },
      { message: "to stderr", fields: { stream: "stderr" } },
      { message: "from the first, without an end", fields: { stream: "stdout" } },
    ]);
    expect(await stage.lines(second.id)).toEqual(["from the second"]);
  });

  it("right before it hangs is kept", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("printAndLoop");
    expect((await stage.lines(row.id))[0]).toBe("printed before it hung");
  });
});

describe("8.8 the reaper", () => {
  it("is shared by the engines of a process, and goes with the last of them", async () => {
    const first = await openStage({ concurrency: 1 });
    const second = await openStage({ concurrency: 1 });
    const loop = await second.enqueue("loop", null, { timeouts: { attempt: "5m" } });
    await Promise.all([first.play("noop"), second.told("job.started", loop)]);
    const reapers = reapersOf(process.pid);
    expect(reapers).toHaveLength(1);
    await first.engine.close({ drain: "0s" });
    await expect.poll(() => first.processes()).toEqual([]);
    expect(reapersOf(process.pid)).toEqual(reapers);
    // Another one killed it: its successor knows what is running.
    process.kill(reapers[0] as number, "SIGKILL");
    await expect.poll(() => reapersOf(process.pid).filter((pid) => pid !== reapers[0])).toHaveLength(1);
    expect(second.processes().length).toBeGreaterThan(0);
    await second.engine.close({ drain: "0s" });
    await expect.poll(() => second.processes()).toEqual([]);
    expect(reapersOf(process.pid)).toEqual([]);
  });
});
