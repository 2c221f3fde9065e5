import { describe, expect, it } from "vitest";
import { PLANS, RESULTS, WORKFLOWS } from "../../src/engine/workflows/workflow-records.ts";
import {
  batch,
  chain,
  constant,
  Discard,
  defineJob,
  group,
  processor,
  type StepNode,
  snooze,
  step,
  unchecked,
  WorkflowFailedError,
} from "../../src/index.ts";
import { errorOf } from "./stage.ts";
import { echo, fails, openWorkflows, states, waits } from "./workflow-stage.ts";

describe("a chain", () => {
  it("runs its steps one after the other and passes results on", async () => {
    const { stage, seen, live } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([step(echo, "a"), step(echo, "b"), step(echo, "c")]),
      { name: "three", meta: { order: 7 } },
    );
    expect(await workflow.view()).toMatchObject({
      kind: "chain",
      name: "three",
      meta: { order: 7 },
      state: "running",
      total: 3,
      progress: { total: 3, completed: 0 },
    });
    await stage.advance("2s");
    expect(seen).toEqual([
      { payload: "a", parents: [] },
      { payload: "b", parents: ["a!"] },
      { payload: "c", parents: ["b!"] },
    ]);
    expect(await workflow.view()).toMatchObject({
      state: "completed",
      progress: { total: 3, completed: 3, discarded: 0, cancelled: 0 },
    });
    expect(await workflow.result()).toBe("c!");
    expect(stage.told("workflow.started")).toMatchObject({ workflow: workflow.id, title: "three", total: 3 });
    expect(stage.told("workflow.completed")).toMatchObject({ workflow: workflow.id, total: 3 });
    expect(await live()).toBe(0);
  });

  it("is halted by a step that ends without success", async () => {
    const { stage, ran } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([step(echo, "a"), step(fails, "b"), step(echo, "c"), group([step(echo, "d"), step(echo, "e")])]),
    );
    await stage.advance("2s");
    expect(ran()).toEqual(["a", "b"]);
    expect(await workflow.view()).toMatchObject({
      state: "failed",
      failure: { reason: "step", type: "wf.fails", message: "as told" },
      progress: { total: 5, completed: 1, discarded: 1, cancelled: 3 },
    });
    expect(states(await workflow.steps())).toEqual([
      "completed",
      "discarded",
      "cancelled",
      "cancelled",
      "cancelled",
    ]);
    const error = await errorOf(workflow.result());
    expect(error).toBeInstanceOf(WorkflowFailedError);
    expect(error).toMatchObject({ code: "workflow_failed", state: "failed" });
    expect(stage.told("workflow.failed")).toMatchObject({ failure: { reason: "step" } });
  });

  it("is halted by a step that times out for good, and by one that an operator cancels", async () => {
    const { stage, ran } = await openWorkflows();
    const late = await stage.engine.workflows.start(
      chain([step(waits, "a", { timeouts: { total: "5s" } }), step(echo, "b")]),
    );
    const stopped = await stage.engine.workflows.start(chain([step(waits, "c"), step(echo, "d")]));
    await stage.advance("1s");
    const [running] = await stopped.steps();
    await stage.engine.cancel(running?.id as string);
    await stage.advance("9s");
    expect(await late.view()).toMatchObject({ state: "failed", failure: { job: expect.any(String) } });
    expect(await stopped.view()).toMatchObject({ state: "failed", progress: { cancelled: 2 } });
    expect(ran()).toEqual(["a", "c"]);
  });

  it("counts delay, wait and total of a step from when it is ready", async () => {
    const { stage, ran } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([
        step(echo, "a", { delay: "1h" }),
        step(echo, "b", { delay: "30m", timeouts: { wait: "40m", total: "50m" } }),
      ]),
    );
    await stage.advance("61m");
    const [, second] = await workflow.steps();
    expect(second).toMatchObject({ state: "scheduled" });
    const turn = (second?.deadlines.total ?? 0) - 50 * 60_000;
    expect(turn - (second?.createdAt ?? 0)).toBeGreaterThanOrEqual(3_600_000);
    expect(second?.deadlines.wait).toBe(turn + 40 * 60_000);
    expect(ran()).toEqual(["a"]);
    await stage.advance("30m");
    expect(await workflow.view()).toMatchObject({ state: "completed" });
  });
});

describe("a step that ends without success halts its chain in the same commit", () => {
  const broken = defineJob({
    type: "wf.broken",
    payload: unchecked<"throw" | "discard" | "snooze" | "hang">(),
    retry: { attempts: 3, backoff: constant({ first: "2s" }) },
  });
  const brokenProcessor = processor(broken, ({ payload, signal }) => {
    if (payload === "snooze") return snooze({ after: "1h" }) as never;
    if (payload === "discard") throw new Discard("no use");
    if (payload === "throw") throw new Error("as told");
    return new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const cases: [string, StepNode, string][] = [
    ["its wait is over", step(broken, "throw", { queue: "nobody", timeouts: { wait: "3s" } }), "Expired"],
    [
      "its total is over in the queue",
      step(broken, "throw", { queue: "nobody", timeouts: { total: "3s" } }),
      "deadline",
    ],
    ["no attempt is left", step(broken, "throw", { retry: { attempts: 1 } }), "as told"],
    [
      "it is a dead letter",
      step(broken, "throw", { retry: { attempts: 1, onExhausted: "dead-letter" } }),
      "as told",
    ],
    ["no retry would fit", step(broken, "throw", { timeouts: { attempt: "5s", total: "6s" } }), "deadline"],
    ["it throws Discard", step(broken, "discard"), "no use"],
    ["a snooze would end too late", step(broken, "snooze", { timeouts: { total: "1m" } }), "deadline"],
    [
      "its attempt timed out in mode discard",
      step(broken, "hang", { timeouts: { attempt: "2s", mode: "discard" } }),
      "Timed out after 2s",
    ],
  ];

  it.each(cases)("%s", async (_name, first, words) => {
    const { stage, ran, live } = await openWorkflows({}, [brokenProcessor]);
    const workflow = await stage.engine.workflows.start(
      chain([batch([first], { onFailure: step(echo, "told") }), step(echo, "never")]),
    );
    await stage.advance("20s");
    expect(await workflow.view()).toMatchObject({
      state: "failed",
      failure: { type: "wf.broken", message: expect.stringContaining(words) },
      progress: { discarded: 1, cancelled: 1 },
    });
    expect(ran()).not.toContain("never");
    expect(await live()).toBe(0);
  });
});

describe("groups and batches", () => {
  it("nest in chains and in each other, and results keep their shape", async () => {
    const { stage, seen } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([
        step(echo, "a"),
        group([chain([step(echo, "b1"), step(echo, "b2")]), step(echo, "c"), group([step(echo, "d")])]),
        batch([step(echo, "e")], {
          onSuccess: step(echo, "yes"),
          onFailure: step(echo, "no"),
          onComplete: step(echo, "end"),
        }),
      ]),
    );
    await stage.advance("3s");
    expect(Object.fromEntries(seen.map(({ payload, parents }) => [payload, parents]))).toEqual({
      a: [],
      b1: ["a!"],
      b2: ["b1!"],
      c: ["a!"],
      d: ["a!"],
      e: ["b2!", "c!", ["d!"]],
      yes: ["e!"],
      end: ["e!"],
    });
    expect(await workflow.result()).toEqual(["e!"]);
  });

  it("a member that fails is recorded, the others go on, and the group has failed", async () => {
    const { stage, ran } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      group([step(echo, "a"), step(fails, "b"), chain([step(echo, "c"), step(echo, "d")])]),
    );
    await stage.advance("2s");
    expect(ran().sort()).toEqual(["a", "b", "c", "d"]);
    expect(await workflow.view()).toMatchObject({
      state: "failed",
      progress: { total: 4, completed: 3, discarded: 1 },
    });
  });

  it("a failed batch calls onFailure and onComplete with the results that exist", async () => {
    const { stage, seen } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      batch([step(echo, "a"), step(fails, "b")], {
        onSuccess: step(echo, "yes"),
        onFailure: step(echo, "no"),
        onComplete: step(echo, "end"),
      }),
    );
    await stage.advance("2s");
    const byPayload = Object.fromEntries(seen.map(({ payload, parents }) => [payload, parents]));
    expect(byPayload).toEqual({ a: [], b: [], no: ["a!", null], end: ["a!", null] });
    expect(await workflow.view()).toMatchObject({ state: "failed", total: 2 });
  });

  it("callbacks of a batch that never started are not called", async () => {
    const { stage, ran } = await openWorkflows();
    await stage.engine.workflows.start(
      chain([step(fails, "a"), batch([step(echo, "b")], { onComplete: step(echo, "end") })]),
    );
    await stage.advance("2s");
    expect(ran()).toEqual(["a"]);
  });

  it("a callback that fails changes nothing about its workflow", async () => {
    const { stage } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      batch([step(echo, "a")], { onSuccess: step(fails, "b") }),
    );
    await stage.advance("2s");
    expect(await workflow.view()).toMatchObject({ state: "completed", progress: { total: 1, completed: 1 } });
  });
});

describe("the whole workflow", () => {
  it("can be cancelled: running steps are aborted, and waiting ones never start", async () => {
    const { stage, ran, live } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([group([step(waits, "a"), step(echo, "b")]), step(echo, "c")]),
    );
    await stage.advance("1s");
    expect(await stage.engine.workflows.cancel(workflow.id)).toMatchObject({ state: "cancelled" });
    await stage.advance("5s");
    expect(ran()).toEqual(["a", "b"]);
    expect(await workflow.view()).toMatchObject({
      state: "cancelled",
      progress: { total: 3, completed: 1, cancelled: 2 },
    });
    expect(await live()).toBe(0);
    expect(stage.told("workflow.cancelled")).toMatchObject({ workflow: workflow.id });
    expect(await errorOf(workflow.cancel())).toMatchObject({ code: "invalid_state" });
    expect(await errorOf(workflow.result())).toMatchObject({ code: "workflow_failed", state: "cancelled" });
  });

  it("passes its deadline to its steps, and a step that it ends names the workflow", async () => {
    const { stage, ran } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([
        step(echo, "a", { delay: "10s" }),
        step(waits, "b", { timeouts: { total: "1h" } }),
        step(echo, "c"),
      ]),
      { timeout: "1m" },
    );
    await stage.advance("59s");
    expect(await workflow.view()).toMatchObject({ state: "running" });
    await stage.advance("5s");
    const [, second] = await workflow.steps();
    expect(second?.errors?.at(-1)).toMatchObject({
      type: "total_timeout",
      message: `Timed out (deadline exceeded, inherited from workflow ${workflow.id})`,
    });
    expect(await workflow.view()).toMatchObject({ state: "failed", failure: { reason: "timeout" } });
    expect(ran()).toEqual(["a", "b"]);
  });

  it("starts no step past its deadline, only callbacks", async () => {
    const { stage, ran } = await openWorkflows();
    const late = defineJob({ type: "wf.late", timeouts: { grace: "10s" } });
    stage.work([processor(late, () => stage.sleep(63_000))], { queues: { slow: { concurrency: 1 } } });
    const workflow = await stage.engine.workflows.start(
      batch([chain([step(late, undefined, { queue: "slow" }), step(echo, "never")])], {
        onFailure: step(echo, "told"),
      }),
      { timeout: "1m" },
    );
    await stage.advance("70s");
    expect(ran()).toEqual(["told"]);
    expect(states(await workflow.steps())).toEqual(["completed", "cancelled"]);
    expect(await workflow.view()).toMatchObject({ state: "failed", failure: { reason: "timeout" } });
  });

  it("keeps results that a later step needs even with retention 0, and releases them at the end", async () => {
    const { stage, seen } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([
        step(echo, "a", { retention: "0s" }),
        step(echo, "b", { delay: "1d", retention: "0s" }),
        step(echo, "c", { retention: "1h" }),
      ]),
    );
    await stage.advance("1h");
    expect(states(await workflow.steps())).toEqual(["completed", "scheduled", "pending"]);
    await stage.advance("1d");
    expect(seen.at(-1)).toEqual({ payload: "c", parents: ["b!"] });
    expect(states(await workflow.steps())).toEqual([undefined, undefined, "completed"]);
    expect(await workflow.view()).toMatchObject({ progress: { completed: 3 } });
    expect(await workflow.result()).toBe("c!");
    await stage.advance("2h");
    expect(states(await workflow.steps())).toEqual([undefined, undefined, undefined]);
  });

  it("is deleted when its retention is over", async () => {
    const { stage } = await openWorkflows();
    const short = await stage.engine.workflows.start(chain([step(echo, "a")]), { retention: "1m" });
    const usual = await stage.engine.workflows.start(chain([step(echo, "b")]));
    await stage.advance("2s");
    expect((await stage.engine.workflows.list()).map(({ id }) => id)).toEqual([short.id, usual.id]);
    await stage.advance("2m");
    expect(await short.view()).toBeNull();
    expect(await errorOf(short.result())).toMatchObject({ code: "not_found" });
    const keys = [WORKFLOWS, PLANS, RESULTS].map((kind) => kind.key(short.id));
    expect(await stage.engine.store.records.load(keys)).toEqual([null, null, null]);
    expect((await stage.engine.workflows.list()).map(({ id }) => id)).toEqual([usual.id]);
  });

  it("is listed by page", async () => {
    const { stage } = await openWorkflows();
    const ids: string[] = [];
    for (let nth = 0; nth < 5; nth++)
      ids.push((await stage.engine.workflows.start(chain([step(echo, "a")]))).id);
    const first = await stage.engine.workflows.list({ limit: 2 });
    const second = await stage.engine.workflows.list({ limit: 3, after: first.at(-1)?.id as string });
    expect([...first, ...second].map(({ id }) => id)).toEqual(ids);
    expect(first[0]).toMatchObject({ kind: "chain", state: "running", total: 1, failure: null });
  });

  it("is listed from the newest on, and a cursor goes on towards the oldest", async () => {
    const { stage } = await openWorkflows();
    const { workflows } = stage.engine;
    const ids: string[] = [];
    for (let nth = 0; nth < 5; nth++) ids.push((await workflows.start(chain([step(echo, "a")]))).id);
    const first = await workflows.list({ limit: 2, order: "desc" });
    const second = await workflows.list({ limit: 9, order: "desc", after: first.at(-1)?.id as string });
    expect([first.length, second.length]).toEqual([2, 3]);
    expect([...first, ...second].map(({ id }) => id)).toEqual(ids.reverse());
    await expect(workflows.list({ order: "newest" as "desc" })).rejects.toThrow('page.order: "newest"');
  });

  it("returns the existing one if its id is started again", async () => {
    const { stage, ran } = await openWorkflows();
    const id = "01890a5d-ac96-774b-bcce-b302099a8057";
    const first = await stage.engine.workflows.start(chain([step(echo, "a")]), { id });
    const second = await stage.engine.workflows.start(chain([step(echo, "b")]), { id });
    expect([first.duplicate, second.duplicate, second.id]).toEqual([false, true, id]);
    await stage.advance("2s");
    expect(ran()).toEqual(["a"]);
  });

  it("result() rejects when its time is over, and the workflow goes on", async () => {
    const { stage } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(chain([step(echo, "a", { delay: "1m" })]));
    const impatient = errorOf(workflow.result({ within: "10s" }));
    const patient = workflow.result({ within: "2m" });
    await stage.advance("11s");
    expect(await impatient).toMatchObject({ code: "result_timeout" });
    await stage.advance("1m");
    expect(await patient).toBe("a!");
  });
});
