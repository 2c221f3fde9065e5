import { describe, expect, it, vi } from "vitest";
import type { JobRow } from "../../src/core/job/job.ts";
import type { Job } from "../../src/core/job/job-view.ts";
import { batch, chain, group, processor, type StepNode, step } from "../../src/index.ts";
import { depthOf } from "../../src/testing/read-store.ts";
import { errorOf, openStage } from "./stage.ts";
import { echo, fails, openWorkflows, waits } from "./workflow-stage.ts";

describe("operators and steps", () => {
  it("a step that is not ready cannot be cancelled, extended or activated", async () => {
    const { stage } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(chain([step(waits, "a"), step(echo, "b")]));
    const [, second] = await workflow.steps();
    const id = second?.id as string;
    for (const refused of [
      stage.engine.cancel(id),
      stage.engine.extend(id, { total: "1h" }),
      stage.engine.activate(id),
    ])
      expect(await errorOf(refused)).toMatchObject({
        code: "invalid_state",
        message: expect.stringContaining(`waits for other steps of workflow ${workflow.id}`),
      });
  });

  it("a step can be retried by hand only after its workflow has ended, and then runs alone", async () => {
    const { stage, ran } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      chain([group([step(fails, "a"), step(waits, "b")]), step(echo, "c")]),
    );
    await stage.advance("1s");
    const [first, second] = (await workflow.steps()) as Job[];
    expect(await errorOf(stage.engine.retry(first?.id as string))).toMatchObject({
      code: "invalid_state",
      message: expect.stringContaining(`belongs to workflow ${workflow.id}`),
    });
    await stage.engine.cancel(second?.id as string);
    await stage.advance("2s");
    expect(await workflow.view()).toMatchObject({ state: "failed" });
    await stage.engine.retry(first?.id as string);
    await stage.advance("2s");
    expect(ran()).toEqual(["a", "b", "a"]);
    expect(await workflow.view()).toMatchObject({ state: "failed", progress: { discarded: 1 } });
  });
});

it("a cancel with an operator writes an audit entry", async () => {
  const { stage } = await openWorkflows();
  const { workflows, audit } = stage.engine;
  const by = { actor: "mia", reason: "ordered twice" };
  const first = await workflows.start(chain([step(waits, "a")]));
  await stage.engine.as(by).workflows.cancel(first.id);
  const second = await workflows.start(chain([step(waits, "b")]));
  expect(await errorOf(second.cancel({ actor: "" }))).toMatchObject({ code: "invalid_option" });
  await second.cancel();
  const { entries } = await audit.read();
  expect(entries).toMatchObject([{ ...by, action: "workflow.cancel", details: { workflow: first.id } }]);
});

describe("bounds", () => {
  it("a step whose dependencies have too large results is discarded with a clear error", async () => {
    const { stage } = await openWorkflows({ documentLimit: 2_000 });
    const workflow = await stage.engine.workflows.start(
      chain([group([step(echo, "x".repeat(1_200)), step(echo, "y".repeat(1_200))]), step(echo, "c")]),
    );
    await stage.advance("2s");
    const rows = await workflow.steps();
    expect(rows[2]?.errors?.at(-1)).toMatchObject({
      code: "parent_results_too_large",
      message: expect.stringContaining("at most 2000 are passed on"),
    });
    expect(await workflow.view()).toMatchObject({ state: "failed" });
  });

  it("results that nobody can get are not loaded: many large ones would fill the memory", async () => {
    const { stage } = await openWorkflows({ documentLimit: 2_000 });
    const steps = Array.from({ length: 60 }, () => step(echo, "x".repeat(1_500)));
    const large = group(steps as unknown as [StepNode]);
    const load = vi.spyOn(stage.engine.store.jobs, "load");
    const ended = await stage.engine.workflows.start(large);
    const continued = await stage.engine.workflows.start(chain([large, step(echo, "last")]));
    await stage.advance("5s");
    expect(await ended.view()).toMatchObject({ state: "completed" });
    expect(await continued.view()).toMatchObject({ state: "failed" });
    expect((await continued.steps()).at(-1)?.errors?.at(-1)).toMatchObject({
      code: "parent_results_too_large",
    });
    const pages = await Promise.all(
      load.mock.results.map(({ value }) => value as Promise<(JobRow | null)[]>),
    );
    const results = pages.map((rows) => rows.reduce((sum, row) => sum + (row?.result?.length ?? 0), 0));
    // `steps()` of this test loads all 61. A close and a step that is decided load a few.
    expect(results.toSorted((a, b) => b - a)[1]).toBeLessThan(20_000);
  });

  it("a workflow of 10,000 steps is stored in pieces, visible as a whole, and ends", async () => {
    const { stage, seen, live } = await openWorkflows();
    const members = Array.from({ length: 9_998 }, (_, nth) => step(echo, `${nth}`));
    const workflow = await stage.engine.workflows.start(
      chain([step(echo, "first"), group(members as unknown as [StepNode]), step(echo, "last")]),
    );
    expect(await workflow.view()).toMatchObject({ state: "running", total: 10_000 });
    await stage.advance("2m");
    expect(await workflow.view()).toMatchObject({ state: "completed", progress: { completed: 10_000 } });
    expect(seen).toHaveLength(10_000);
    expect(seen.at(-1)).toMatchObject({ payload: "last" });
    expect(seen.at(-1)?.parents).toHaveLength(9_998);
    expect(await live()).toBe(0);
  });

  it("an interrupted start of a large workflow is never visible, and is deleted", async () => {
    const stage = await openStage();
    const { store } = stage.engine;
    const enqueue = store.jobs.enqueue.bind(store.jobs);
    let calls = 0;
    (store.jobs as { enqueue: typeof enqueue }).enqueue = (jobs, options) =>
      ++calls > 2 ? Promise.reject(new Error("cut off")) : enqueue(jobs, options);
    const members = Array.from({ length: 3_000 }, (_, nth) => step(echo, `${nth}`));
    const starting = errorOf(stage.engine.workflows.start(group(members as unknown as [StepNode])));
    await stage.advance("10s");
    expect(await starting).toMatchObject({ code: "store_failed" });
    expect(await stage.engine.workflows.list()).toEqual([]);
    expect((await depthOf(store)).pending).toBe(2_000);
    const [{ key: [, id] = ["", ""] } = {}] = await store.records.list("workflow", null, 10);
    expect(await stage.engine.workflows.get(id).view()).toBeNull();
    const again = stage.engine.workflows.start(chain([step(echo, "a")]), { id });
    expect(await errorOf(again)).toMatchObject({
      code: "invalid_state",
      message: expect.stringContaining("use another id"),
    });
    await stage.advance("11m");
    expect((await depthOf(store)).pending).toBe(0);
    await stage.advance("11m");
    expect(await store.records.list("workflow", null, 10)).toEqual([]);
    expect(await store.records.list("workflow.plan", null, 10)).toEqual([]);
  });
});

describe("bad input is refused at the call", () => {
  it("the builders refuse bad input", () => {
    const wrong = (make: () => unknown) => {
      try {
        make();
      } catch (error) {
        return (error as Error).message;
      }
      throw new Error("it was accepted");
    };
    expect(wrong(() => chain([] as never))).toContain("chain: [] is not a valid workflow");
    expect(wrong(() => group([{ kind: "step" }] as never))).toContain("group[0]");
    expect(wrong(() => chain("a" as never))).toContain("pass a list");
    expect(wrong(() => batch([step(echo, "a")], { onSuccess: {} as never }))).toContain("batch.onSuccess");
    expect(wrong(() => batch([step(echo, "a")], { onDone: step(echo, "b") } as never))).toContain("onDone");
    expect(wrong(() => step({} as never, "a"))).toContain("defineJob");
    expect(wrong(() => step(echo, "a", { id: "b" } as never))).toContain("step.options.id");
    const deep = () => {
      let node: unknown = step(echo, "a");
      for (let level = 0; level < 21; level++) node = chain([node as never]);
    };
    expect(wrong(deep)).toContain("nest at most 20 levels");
  });

  it("start refuses bad input before anything is stored", async () => {
    const { stage, live } = await openWorkflows();
    const { workflows } = stage.engine;
    const good = chain([step(echo, "a")]);
    const late = chain([step(echo, "a", { delay: "2m" })]);
    const checks: [Promise<unknown>, string][] = [
      [workflows.start({} as never), "make it with step, chain, group, batch or graph"],
      [workflows.start(good, { timeout: "0s" as never }), "options.timeout"],
      [workflows.start(good, { id: "no" }), "options.id"],
      [workflows.start(good, { name: "" }), "options.name"],
      [workflows.start(good, { meta: [] as never }), "options.meta"],
      [workflows.start(good, { tx: {} as never }), "options.tx"],
      [workflows.start(good, { retries: 3 } as never), "options.retries"],
      [workflows.start(late, { timeout: "1m" }), "options.timeout"],
      [workflows.start(chain([step(echo, "a"), step(echo, 1n as never)])), "payload"],
      [workflows.list({ limit: 0 }), "page.limit"],
      [workflows.get("unknown").cancel(), "there is no workflow"],
    ];
    for (const [refused, words] of checks) expect((await errorOf(refused)).message).toContain(words);
    const many = Array.from({ length: 10_001 }, () => step(echo, "a")) as unknown as [StepNode];
    expect((await errorOf(workflows.start(group(many)))).message).toContain("use at most 10000");
    expect(await live()).toBe(0);
  });
});

it("events of steps and workflows are recorded in the commits of their changes, each once and in order", async () => {
  const stage = await openStage({ events: "durable" });
  stage.work([
    processor(echo, ({ payload }) => payload),
    processor(fails, () => Promise.reject(new Error("no"))),
  ]);
  const { workflows, journal } = stage.engine;
  const good = await workflows.start(chain([step(echo, "a"), step(echo, "b")]));
  await stage.advance("2s");
  const bad = await workflows.start(chain([step(fails, "c"), group([step(echo, "d")])]));
  await stage.advance("2s");
  const { events } = await journal.read({ limit: 100 });
  const rows = [...(await good.steps()), ...(await bad.steps())];
  const [a, b, c, d] = rows.map((row) => row?.id);
  const names = events.map(({ name, job, subject }) => [name, job ?? subject]);
  expect(names.filter(([name]) => name !== "job.started" && name !== "worker.started")).toEqual([
    ["workflow.started", good.id],
    ["job.enqueued", a],
    ["job.completed", a],
    ["job.enqueued", b],
    ["job.completed", b],
    ["workflow.completed", good.id],
    ["workflow.started", bad.id],
    ["job.enqueued", c],
    ["job.failed", c],
    ["job.discarded", c],
    ["job.cancelled", d],
    ["workflow.failed", bad.id],
  ]);
  expect(events.at(-1)).toMatchObject({ data: { kind: "chain", total: 2, failure: { type: "wf.fails" } } });
});
