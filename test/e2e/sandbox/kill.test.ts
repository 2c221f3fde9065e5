import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, expect, it } from "vitest";
import { jobsOf, rowOf } from "../../../src/testing/read-store.ts";
import { openStage, reapersOf, type Stage } from "./stage.ts";

/** A sample; `npm run test:long` kills a thousand. */
const KILLS = Number(process.env.CURFEW_SANDBOX_KILLS ?? 24);
const LIMIT = 300_000 + KILLS * 1_000;
/** Wide, because the machine may be busy: this finds what is not killed. How fast a kill is, the bench says. */
const GONE_WITHIN = 15_000;
/** Short, because each loop takes a core; the bench lets them run for as long as the goal says. */
const LOOPED_FOR = 250;
const LOOPED_IN_GRACE = 100;

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] as number;
}

/** Plays an act that hangs; gives how long after the hard deadline its process was gone. */
async function hang(stage: Stage, name: string, limit = 500, grace = 300): Promise<number> {
  const timeouts = { attempt: `${limit}ms`, grace: `${grace}ms` } as const;
  const row = await stage.play(name, null, { timeouts });
  expect(row).toMatchObject({
    state: "discarded",
    errors: [
      { type: "timeout", kind: "execution", message: `Timed out after ${limit}ms`, limit, forced: true },
    ],
  });
  const { at } = await stage.told("job.killed", row.id);
  return at - (row.hardAt as number);
}

/** A process that takes more than a second to die is stuck until then, so a counter would say how busy the machine is. */
async function noneIsStuck({ worker }: Stage): Promise<void> {
  await expect.poll(() => worker.status().stuck).toBe(0);
}

describe("8.1 what hangs is ended at its hard deadline (5.1, 5.2, 8.2, 8.4, 8.8)", () => {
  it.each(["loop", "atomics", "exec", "ignoreSigterm", "hang", "cleanupHangs"])("%s", async (name) => {
    const stage = await openStage({ concurrency: 1 });
    expect(await hang(stage, name)).toBeLessThan(GONE_WITHIN);
    await noneIsStuck(stage);
  });

  it.each(["loop", "atomics", "hang", "cleanupHangs"])("%s in a thread", async (name) => {
    const stage = await openStage({ concurrency: 1, kind: "thread" });
    expect(await hang(stage, name)).toBeLessThan(GONE_WITHIN);
    await noneIsStuck(stage);
  });

  it("a loop in a thread says where, too", async () => {
    const stage = await openStage({ concurrency: 2, kind: "thread" });
    // A grace that leaves time for it even on a busy machine.
    const timeouts = { grace: "4s" as const };
    const rows = await Promise.all([1, 2].map(() => stage.play("logAndLoop", null, { timeouts })));
    for (const row of rows)
      expect(row.errors?.[0]?.stack).toMatch(/^It hung here:\n {4}at spin \(file:.*act\.ts:\d+:\d+\)\n/);
  });

  it("a thread inside a native call gets its verdict and counts as stuck", async () => {
    const stage = await openStage({ concurrency: 2, kind: "thread" });
    const row = await stage.play("execFor", 3);
    expect(row).toMatchObject({ errors: [{ type: "timeout", forced: true }] });
    await stage.told("job.stuck", row.id);
    await stage.told("job.unstuck", row.id);
  });

  it(`${KILLS} endless loops, four at a time: one verdict each, gone in time, no orphans`, {
    timeout: LIMIT,
  }, async () => {
    const stage = await openStage({ concurrency: 4, spare: 4, size: 8 });
    const lag = monitorEventLoopDelay({ resolution: 5 });
    lag.enable();
    const late: number[] = [];
    let begun = 0;
    const next = async () => {
      // Some have started a process of their own, which has to go with them.
      for (let nth = begun++; nth < KILLS; nth = begun++)
        late.push(await hang(stage, nth % 8 === 7 ? "grandchild" : "loop", LOOPED_FOR, LOOPED_IN_GRACE));
    };
    await Promise.all([next(), next(), next(), next()]);
    lag.disable();
    const [p50, p99] = [quantile(late, 0.5), quantile(late, 0.99)];
    const stacks = (await jobsOf(stage.engine.store)).filter((row) =>
      row.errors?.[0]?.stack?.includes("at spin (file:"),
    );
    console.log(
      `${late.length} kills: gone ${p50} ms (p50), ${p99} ms (p99) after the hard deadline; ` +
        `${stacks.length} stacks by then; the parent's loop lagged ${Math.round(lag.max / 1e6)} ms at most`,
    );
    expect(p99).toBeLessThan(GONE_WITHIN);
    const verdicts = stage.events.filter(({ name }) => name === "job.timeout");
    expect(late).toHaveLength(KILLS);
    expect(verdicts).toHaveLength(KILLS);
    await noneIsStuck(stage);
    // Whatever is left before the close is what the pool keeps ready.
    expect(stage.processes().length).toBeLessThanOrEqual(8);
    await stage.engine.close({ drain: "0s" });
    // The kernel takes a moment to end what a child had started.
    await expect.poll(() => stage.processes()).toEqual([]);
    await expect.poll(() => reapersOf(process.pid)).toEqual([]);
  });

  it("the error, the log and the event say where it hung", async () => {
    // A grace that leaves time for it even on a busy machine.
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("logAndLoop", null, { timeouts: { grace: "4s" } });
    const { where } = await stage.told("job.killed", row.id);
    expect(row.errors?.[0]?.stack).toMatch(
      /^It hung here:\n {4}at spin \(file:.*act\.ts:\d+:\d+\)\n {4}at Object\.logAndLoop/,
    );
    expect(where).toBe(row.errors?.[0]?.stack);
    const lines = await stage.lines(row.id);
    expect(lines[0]).toBe("about to hang");
    expect(lines).toContainEqual(expect.stringContaining("at spin (file:"));
    expect(lines).toContain("Timed out after 500ms");
    expect(lines).toHaveLength(3);
    expect(row.progress).toBe('{"value":0.5,"note":"half"}');
  });

  it("the error of a hung await says what is known, and the handler is not paused", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("hang", null, { timeouts: { grace: "4s" } });
    expect(row.errors?.[0]?.stack).toBe("Its event loop was running; it waited for Timeout.");
  });

  it.each([
    ["exec", /^\(no stack: .*; it sleeps inside a native call, .*, with the process "sleep" under it\)$/],
    ["atomics", /^It hung here:\n {4}at Atomics\.wait/],
  ])(
    "the error of a sleeping handler (%s) says where it sleeps, or what can be seen from outside",
    async (name, says) => {
      const stage = await openStage({ concurrency: 1 });
      const row = await stage.play(name, null, { timeouts: { grace: "4s" } });
      const { where } = await stage.told("job.killed", row.id);
      expect(row.errors?.[0]?.stack).toMatch(says);
      expect(where).toBe(row.errors?.[0]?.stack);
    },
  );

  it("without any grace the stack is captured right after the hard deadline, and is on the error", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("loop", null, { timeouts: { grace: "0s" } });
    expect(row.errors).toMatchObject([{ type: "timeout", forced: true }]);
    expect(row.errors?.[0]?.stack).toMatch(/^(It hung here:\n {4}at spin|\(no stack: )/);
    await stage.told("job.killed", row.id);
  });

  it("the capture can be switched off", async () => {
    const stage = await openStage({ concurrency: 1, capture: false });
    const row = await stage.play("loop");
    expect(row.errors?.[0]?.stack).toBe("(no stack: capture is turned off)");
  });

  it("grandchildren go with their group", async () => {
    const stage = await openStage({ concurrency: 1, spare: 0 });
    const row = await stage.play("grandchild");
    await stage.told("job.killed", row.id);
    expect((await stage.lines(row.id))[0]).toMatch(/^grandchild \d+$/);
    await expect.poll(() => stage.processes()).toEqual([]);
  });

  it("a checkpoint that was written before the kill reaches the next attempt", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("checkpointAndLoop", null, {
      timeouts: { attempt: "4s", grace: "300ms" },
      retry: { attempts: 2 },
    });
    expect(row).toMatchObject({
      state: "completed",
      attempt: 2,
      result: '"resumed"',
      errors: [{ forced: true }],
    });
  });

  it("a cancelled job is signalled, and killed after its grace", async () => {
    const stage = await openStage({ concurrency: 1 });
    const id = await stage.enqueue("loop", null, { timeouts: { attempt: "1m" } });
    await stage.told("job.started", id);
    const row = await stage.engine.cancel(id);
    const { at } = await stage.told("job.killed", id);
    expect(at - (row.finishedAt as number)).toBeGreaterThanOrEqual(300);
    expect(at - (row.finishedAt as number)).toBeLessThan(GONE_WITHIN);
    expect(await rowOf(stage.engine.store, id)).toMatchObject({ state: "cancelled", errors: null });
  });

  it("a close during a loop kills it and gives the job back", async () => {
    const stage = await openStage({ concurrency: 2 });
    const id = await stage.enqueue("loop", null, { timeouts: { attempt: "1m" } });
    await stage.told("job.started", id);
    const from = performance.now();
    await stage.worker.close({ drain: "0s" });
    expect(performance.now() - from).toBeLessThan(GONE_WITHIN);
    await expect.poll(() => stage.processes()).toEqual([]);
    expect(await rowOf(stage.engine.store, id)).toMatchObject({ state: "available", attempt: 0 });
  });

  it("a close in the middle of a kill leaves nothing behind", async () => {
    const stage = await openStage({ concurrency: 3, spare: 3 });
    const ids = await Promise.all(["loop", "loop", "loop"].map((name) => stage.enqueue(name)));
    await Promise.all(ids.map((id) => stage.told("job.timeout", id)));
    await stage.engine.close({ drain: "0s" });
    await expect.poll(() => stage.processes()).toEqual([]);
  });
});
