import { describe, expect, it } from "vitest";
import { rowOf } from "../../../src/testing/read-store.ts";
import { LONG_GRACE, openStage } from "./stage.ts";

describe("8.3 a sandbox that dies in the middle of its attempt", () => {
  it.each([0, 7])("an attempt whose child exits with code %i is killed and fails", async (code) => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("exit", code);
    expect(row.errors).toMatchObject([
      {
        type: "killed",
        code: "killed",
        message: `The sandbox ended during the attempt (exit code ${code})`,
        details: { exitCode: code, signal: null },
      },
    ]);
    expect(row.errors?.[0]).not.toHaveProperty("kind");
  });

  it("an attempt whose child gets a signal from outside is killed, and the error names the signal", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("suicide", null, { timeouts: { attempt: "30s" } });
    expect(row.errors).toMatchObject([{ type: "killed", details: { exitCode: null, signal: "SIGKILL" } }]);
  });

  it("an uncaught error is the error of the attempt", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("uncaught");
    expect(row.errors).toMatchObject([
      { type: "TypeError", code: "E_UNCAUGHT", message: "nobody caught this" },
    ]);
    expect(row.errors?.[0]?.stack).toContain("act.ts");
  });

  it("a child without heap is killed, and the error says so", async () => {
    const stage = await openStage({ concurrency: 1, memory: "64mb" });
    const row = await stage.play("outOfHeap", null, { timeouts: { attempt: "30s" } });
    expect(row.errors).toMatchObject([{ type: "killed", message: expect.stringContaining("out of memory") }]);
  });

  it("a child that takes too much memory outside of its heap is killed, and the error says so", async () => {
    const stage = await openStage({ concurrency: 1, memory: "128mb" });
    const row = await stage.play("outOfBuffers", null, { timeouts: { attempt: "30s" } });
    expect(row.errors).toMatchObject([
      { type: "killed", message: expect.stringMatching(/it used \d+ MB, and 128 MB are allowed/) },
    ]);
  });

  it.runIf(process.platform === "linux")(
    "memory of the processes that it has started counts too",
    async () => {
      const stage = await openStage({ concurrency: 1, memory: "128mb" });
      const row = await stage.play("outOfChildMemory", null, { timeouts: { attempt: "30s" } });
      expect(row.errors).toMatchObject([
        { type: "killed", message: expect.stringMatching(/it used \d+ MB, and 128 MB are allowed/) },
      ]);
    },
  );

  it("exit 0 and an uncaught error end an attempt in a thread too", async () => {
    const stage = await openStage({ concurrency: 1, kind: "thread" });
    expect((await stage.play("exit", 0)).errors).toMatchObject([
      { type: "killed", details: { exitCode: 0 } },
    ]);
    expect((await stage.play("uncaught")).errors).toMatchObject([{ type: "TypeError", code: "E_UNCAUGHT" }]);
  });

  it("the death of a child after its result changes nothing, and the next job is not given to it", async () => {
    const stage = await openStage({ concurrency: 1, spare: 0 });
    // The next job comes while the child exits, and may be given to it.
    for (let round = 0; round < 5; round++) {
      expect(await stage.play("exitAfterReturn")).toMatchObject({ state: "completed", result: '"done"' });
      const next = await stage.play("echo", round);
      expect(next).toMatchObject({ state: "completed", attempt: 1, errors: null, result: String(round) });
    }
  });

  it("is replaced, and the next job runs", async () => {
    const stage = await openStage({ concurrency: 1 });
    await stage.play("exit", 1);
    expect(await stage.play("echo", "next")).toMatchObject({ state: "completed", result: '"next"' });
  });
});

describe("8.6 what crosses (8.1)", () => {
  it("a plain throw: name, message, code, stack and cause; the child is used again", async () => {
    const stage = await openStage({ concurrency: 1, spare: 0 });
    const before = await stage.play("pid");
    const row = await stage.play("throwPlain");
    expect(row.errors).toMatchObject([
      {
        type: "RangeError",
        code: "E_FAR",
        message: "too far",
        stack: expect.stringContaining("act.ts"),
        cause: { type: "Error", message: "because" },
      },
    ]);
    expect((await stage.play("pid")).result).toBe(before.result);
  });

  it("Discard and snooze mean what they mean in the worker itself", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("discard", null, { retry: { attempts: 5 } });
    expect(row).toMatchObject({ state: "discarded", attempt: 1, errors: [{ message: "no use" }] });
    const id = await stage.enqueue("snoozed");
    await stage.told("job.snoozed", id);
    expect(await rowOf(stage.engine.store, id)).toMatchObject({ state: "scheduled", attempt: 0 });
  });

  it("the reason of the signal", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("reason", null, LONG_GRACE);
    expect(JSON.parse(row.result ?? "")).toEqual({
      name: "TimeoutError",
      kind: "execution",
      limit: 500,
      isError: true,
    });
    expect(stage.engine.counters().late).toBe(1);
  });

  it("cleanup runs beside the work at the soft signal, and what it writes is kept", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("cleanupRuns", null, LONG_GRACE);
    expect(row).toMatchObject({
      checkpoint: '"cleaned"',
      errors: [{ type: "timeout", cause: { type: "TimeoutError" } }],
    });
    expect(row.errors?.[0]).not.toHaveProperty("forced");
    expect(await stage.lines(row.id)).toEqual(["cleaning up", "Timed out after 500ms"]);
  });

  it("late talk of job A never touches job B in the same child", async () => {
    const stage = await openStage({ concurrency: 1, spare: 0 });
    const first = await stage.play("talkLater");
    const second = await stage.play("afterTalk");
    expect(second.result).toBe(first.result);
    for (const row of [first, second]) {
      expect(row).toMatchObject({ state: "completed", progress: null, checkpoint: null });
      expect(await stage.lines(row.id)).toEqual([]);
    }
  });

  it("a child that closes its pipe is ended", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("closePipe", null, { timeouts: { attempt: "20s" } });
    expect(row.errors).toMatchObject([{ type: "killed" }]);
    expect(await stage.play("echo", 2)).toMatchObject({ state: "completed" });
  });

  it.each(["malformed", "oversized"])(
    "a message that is %s ends the child and not the parent",
    async (name) => {
      const stage = await openStage({ concurrency: 1 });
      const row = await stage.play(name, null, { timeouts: { attempt: "20s" } });
      expect(row.errors).toMatchObject([{ type: "killed", message: expect.stringContaining("a message") }]);
      expect(await stage.play("echo", 2)).toMatchObject({ state: "completed" });
    },
  );
});

describe("8.7 isolation (8.4)", () => {
  it("sees only the environment that was named", async () => {
    process.env.CURFEW_DATABASE_PASSWORD = "secret";
    process.env.CURFEW_NAMED = "yes";
    const stage = await openStage({ concurrency: 1, env: ["CURFEW_NAMED"] });
    const env = JSON.parse((await stage.play("environment")).result ?? "{}");
    expect(env).toMatchObject({ CURFEW_NAMED: "yes", PATH: process.env.PATH });
    expect(
      Object.keys(env)
        .filter((name) => !["PATH", "HOME", "TZ", "LANG", "NODE_ENV"].includes(name))
        .sort(),
    ).toEqual(["CURFEW_NAMED", "CURFEW_TEST_MARK", "NODE_COMPILE_CACHE"]);
  });

  it("its output becomes lines of the job's log, and is bounded", async () => {
    const stage = await openStage({ concurrency: 1 });
    const row = await stage.play("print");
    expect((await stage.lines(row.id)).sort()).toEqual(["to stderr", "to stdout"]);
    const flood = await stage.play("flood", null, { timeouts: { attempt: "20s" } });
    const lines = await stage.lines(flood.id);
    expect(lines).toHaveLength(500);
    expect(lines.at(-1)).toBe("(more than 500 lines of output: the rest is dropped)");
  });

  it("under the permission model files are refused, and no stack is captured", async () => {
    const source = new URL("../../../", import.meta.url).pathname;
    const stage = await openStage({ concurrency: 1, permissions: [`--allow-fs-read=${source}`] });
    const denied = await stage.play("readSecret", null, { timeouts: { attempt: "10s" } });
    expect(denied.errors).toMatchObject([{ code: "ERR_ACCESS_DENIED" }]);
    const row = await stage.play("loop");
    expect(row.errors).toMatchObject([{ forced: true, stack: "(no stack: capture is turned off)" }]);
  });
});
