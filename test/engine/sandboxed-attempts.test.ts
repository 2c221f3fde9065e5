import { describe, expect, it } from "vitest";
import type { JobDefinition, Processor } from "../../src/index.ts";
import { defineJob, processor, sandboxed } from "../../src/index.ts";
import type { SandboxCall, SandboxRun } from "../../src/ports/sandbox.ts";
import { deaf, jobOf, openStage, START } from "./stage.ts";

/** A runner without processes: what it has ready, and how its runs go, is up to the test. */
function sandboxOf(definition: JobDefinition<never, unknown, unknown> | ReturnType<typeof jobOf>) {
  const waiting = new Map<string, () => void>();
  const calls: SandboxCall[] = [];
  const sandbox = {
    waiting,
    calls,
    isReady: false,
    /** What each run gives back, and how long it takes until it is known where it hung. */
    result: async (): Promise<unknown> => "done",
    lookAfter: undefined as (() => Promise<void>) | undefined,
    killed: 0,
    /** Whether a killed run is gone at once. */
    isGone: true,
    ready(): void {
      sandbox.isReady = true;
      for (const [key, again] of waiting) {
        waiting.delete(key);
        again();
      }
    },
  };
  const run = (call: SandboxCall): SandboxRun => {
    calls.push(call);
    return {
      result: sandbox.result(),
      abort: () => {},
      deadline: () => {},
      condemn: () => sandbox.lookAfter?.() ?? Promise.resolve(),
      where: () => "It hung here:\n    at spin",
      kill: async () => {
        sandbox.killed += 1;
        return { isGone: sandbox.isGone, where: "It hung here:\n    at spin" };
      },
    };
  };
  const sandboxed = {
    definition,
    handler: () => {
      throw new Error("it runs elsewhere");
    },
    sandbox: () => ({
      admits: (key: string, again: () => void) => {
        if (!sandbox.isReady) waiting.set(key, again);
        return sandbox.isReady;
      },
      dismiss: (key: string) => void waiting.delete(key),
      run,
      refusal: () => null,
      close: async () => {},
    }),
  } as unknown as Processor;
  return { sandbox, processors: [sandboxed] };
}

describe("3.1 an attempt starts when its handler is entered, in a sandbox too (4.4, 5.2)", () => {
  it("its deadlines count from when its sandbox is ready", async () => {
    const stage = await openStage();
    const definition = jobOf({ timeouts: { attempt: "1s" } });
    const { sandbox, processors } = sandboxOf(definition);
    const job = await stage.engine.enqueue(definition);
    stage.work(processors);
    await stage.advance("4s");
    expect(sandbox.calls).toEqual([]);
    expect(await stage.load(job)).toMatchObject({ state: "active", startedAt: null, attempt: 0 });
    sandbox.ready();
    await stage.advance("100ms");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "completed", attempt: 1, result: '"done"' });
    expect(row.startedAt).toBeGreaterThanOrEqual(START + 4_000);
    expect((row.softAt as number) - (row.startedAt as number)).toBe(1_000);
    expect(sandbox.calls[0]?.job.remaining).toBeGreaterThan(990);
  });

  it("a job that waits too long for its sandbox is released unspent, and other types run meanwhile", async () => {
    const stage = await openStage();
    const definition = jobOf({}, "test.slow");
    const other = jobOf({}, "test.other");
    const { sandbox, processors } = sandboxOf(definition);
    const job = await stage.engine.enqueue(definition);
    stage.work([...processors, processor(other, () => undefined)], {
      queues: { default: { concurrency: 2 } },
    });
    await stage.advance("1s");
    const others = await Promise.all([1, 2, 3].map(() => stage.engine.enqueue(other)));
    await stage.advance("1s");
    for (const { id } of others) expect(stage.names(id)).toContain("job.completed");
    await stage.advance("20s");
    const given = stage.names(job.id).filter((name) => name === "job.released");
    expect(given.length).toBeGreaterThanOrEqual(3);
    expect(given.length).toBeLessThanOrEqual(5);
    // Only the claim of now waits; those that were given up are forgotten.
    expect(sandbox.waiting.size).toBeLessThanOrEqual(1);
    sandbox.ready();
    await stage.advance("1s");
    expect(await stage.load(job)).toMatchObject({
      state: "completed",
      attempt: 1,
      returns: 0,
      expiredClaims: 0,
    });
  });

  it("a job that is cancelled or expires while it waits is never entered", async () => {
    const stage = await openStage();
    const definition = jobOf();
    const { sandbox, processors } = sandboxOf(definition);
    const cancelled = await stage.engine.enqueue(definition);
    const expired = await stage.engine.enqueue(definition, undefined, { timeouts: { wait: "2s" } });
    const spent = await stage.engine.enqueue(definition, undefined, { timeouts: { total: "2s" } });
    stage.work(processors);
    await stage.advance("1s");
    expect(sandbox.waiting.size).toBe(3);
    await stage.engine.cancel(cancelled.id);
    await stage.advance("1500ms");
    sandbox.ready();
    await stage.advance("10s");
    expect(sandbox.calls).toEqual([]);
    expect((await stage.load(cancelled)).state).toBe("cancelled");
    expect((await stage.load(expired)).errors).toMatchObject([{ type: "enqueue_ttl_expired" }]);
    expect((await stage.load(spent)).errors).toMatchObject([{ type: "total_timeout" }]);
  });

  it("close() releases jobs that wait for a sandbox at once", async () => {
    const stage = await openStage();
    const definition = jobOf();
    const { sandbox, processors } = sandboxOf(definition);
    const job = await stage.engine.enqueue(definition);
    const worker = stage.work(processors);
    await stage.advance("1s");
    let isClosed = false;
    void worker.close().then(() => {
      isClosed = true;
    });
    await stage.advance("100ms");
    expect(isClosed).toBe(true);
    expect(sandbox.waiting.size).toBe(0);
    expect(await stage.load(job)).toMatchObject({ state: "available", attempt: 0, expiredClaims: 0 });
  });
});

describe("8.3 the verdict is given at the hard deadline (8.4)", () => {
  async function openLoop(delay: number) {
    const stage = await openStage();
    const definition = jobOf({ timeouts: { attempt: "1s", grace: "0s" }, retry: { attempts: 1 } });
    const { sandbox, processors } = sandboxOf(definition);
    sandbox.isReady = true;
    sandbox.result = deaf;
    sandbox.lookAfter = () => stage.sleep(delay);
    const job = await stage.engine.enqueue(definition);
    return { stage, sandbox, job, worker: stage.work(processors) };
  }

  it("the verdict has the stack that is known a moment later", async () => {
    const { stage, sandbox, job } = await openLoop(80);
    await stage.advance("1050ms");
    expect((await stage.load(job)).state).toBe("active");
    expect(sandbox.killed).toBe(0);
    await stage.advance("50ms");
    const row = await stage.load(job);
    expect(row.errors).toMatchObject([
      { type: "timeout", forced: true, stack: "It hung here:\n    at spin" },
    ]);
    expect(row.finishedAt).toBeLessThanOrEqual((row.hardAt as number) + 90);
    await stage.advance("1m");
    expect(sandbox.killed).toBe(1);
    expect(stage.names(job.id).filter((name) => name === "job.failed")).toHaveLength(1);
    expect(stage.counters().stuck).toBe(0);
  });

  it.each(["result", "error"])("a %s in between is refused", async (what) => {
    const { stage, sandbox, job } = await openLoop(80);
    sandbox.result = async () => {
      await stage.sleep(1_040);
      if (what === "error") throw new Error("too late");
      return "too late";
    };
    await stage.advance("1m");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "discarded", result: null });
    expect(row.errors).toMatchObject([
      { type: "timeout", forced: true, stack: expect.stringContaining("spin") },
    ]);
    expect(row.errors?.[0]).not.toHaveProperty("cause");
    expect(stage.names(job.id).filter((name) => name === "job.failed")).toHaveLength(1);
    expect(stage.names(job.id).filter((name) => name === "job.killed")).toHaveLength(1);
    expect(stage.counters().stuck).toBe(0);
  });

  it("a sandbox that is gone late is stuck until then, and is announced as killed then", async () => {
    const { stage, sandbox, job, worker } = await openLoop(80);
    let exit = () => {};
    sandbox.isGone = false;
    sandbox.result = () =>
      new Promise((_, reject) => {
        exit = () => reject(new Error("killed"));
      });
    await stage.advance("5s");
    expect(stage.names(job.id)).toContain("job.stuck");
    expect(stage.names(job.id)).not.toContain("job.killed");
    expect(worker.status().stuck).toBe(1);
    exit();
    await stage.advance("1s");
    expect(stage.names(job.id).slice(-2).sort()).toEqual(["job.killed", "job.unstuck"]);
    expect(worker.status().stuck).toBe(0);
  });

  it("a close or a cancel in between finds one verdict", async () => {
    const closing = await openLoop(80);
    await closing.stage.advance("1050ms");
    void closing.worker.close({ drain: "0s" });
    await closing.stage.advance("10s");
    expect((await closing.stage.load(closing.job)).errors).toMatchObject([{ type: "timeout" }]);
    expect(closing.sandbox.killed).toBe(1);

    const cancelling = await openLoop(80);
    await cancelling.stage.advance("1050ms");
    await cancelling.stage.engine.cancel(cancelling.job.id);
    await cancelling.stage.advance("10s");
    expect(await cancelling.stage.load(cancelling.job)).toMatchObject({ state: "cancelled", errors: null });
    expect(cancelling.sandbox.killed).toBe(1);
  });
});

describe("a sandboxed processor under virtual time", () => {
  it("is refused with the reason when the worker starts", async () => {
    const stage = await openStage();
    const definition = defineJob({ type: "sandboxed.job" });
    const module = new URL("./no-such-module.ts", import.meta.url);
    expect(() => stage.work([sandboxed(definition, module)])).toThrow(
      'work.processors: "the sandboxed \\"sandboxed.job\\"" is not a valid value here; use openEngine',
    );
  });
});
