import { describe, expect, it } from "vitest";
import { chain, type StepNode, type WorkflowNode } from "../../src/core/workflow/node.ts";
import { layOut } from "../../src/core/workflow/plan.ts";
import { defineJob, graph, group, openEngine, processor, step, unchecked } from "../../src/index.ts";
import { echo, fails, openWorkflows, states } from "./workflow-stage.ts";

const one = (payload: string) => step(echo, payload);

describe("a graph", () => {
  it("runs each step once all that it waits for have succeeded, with their results in the order of `after`", async () => {
    const { stage, seen } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      graph({
        d: { after: ["c", "a"], run: one("d") },
        a: one("a"),
        b: { after: ["a"], run: one("b") },
        c: { after: ["a", "b"], run: one("c") },
        e: { after: ["a"], run: one("e") },
      }),
    );
    await stage.advance("5s");
    expect(seen.map(({ payload }) => payload).toSorted()).toEqual(["a", "b", "c", "d", "e"]);
    const parents = Object.fromEntries(seen.map((each) => [each.payload, each.parents]));
    expect(parents).toEqual({ a: [], b: ["a!"], c: ["a!", "b!"], d: ["c!", "a!"], e: ["a!"] });
    expect(seen.findIndex(({ payload }) => payload === "d")).toBeGreaterThan(
      seen.findIndex(({ payload }) => payload === "c"),
    );
    expect(await workflow.result()).toEqual({ d: "d!", e: "e!" });
    expect(await workflow.view()).toMatchObject({ kind: "graph", progress: { total: 5, completed: 5 } });
    expect((await workflow.steps()).map((job) => job?.payload)).toEqual(["d", "a", "b", "c", "e"]);
  });

  it("a failure cancels what waits for it, at any distance, and nothing else", async () => {
    const { stage, ran } = await openWorkflows();
    const workflow = await stage.engine.workflows.start(
      graph({
        bad: step(fails, "bad"),
        good: one("good"),
        after_bad: { after: ["bad"], run: one("after_bad") },
        both: { after: ["bad", "good"], run: one("both") },
        far: { after: ["both", "after_bad"], run: one("far") },
        after_good: { after: ["good"], run: one("after_good") },
      }),
    );
    await stage.advance("5s");
    expect(ran().toSorted()).toEqual(["after_good", "bad", "good"]);
    expect(states(await workflow.steps())).toEqual([
      "discarded",
      "completed",
      "cancelled",
      "cancelled",
      "cancelled",
      "completed",
    ]);
    expect(await workflow.view()).toMatchObject({ state: "failed", failure: { type: "wf.fails" } });
  });

  it("may contain chains and groups, be contained in them, and hands on one object", async () => {
    const { stage, seen } = await openWorkflows();
    const inner = graph({
      many: group([one("x"), one("y")]),
      sum: { after: ["many"], run: chain([one("s"), one("t")]) },
      side: { after: ["many"], run: group([one("u"), one("v")]) },
    });
    const workflow = await stage.engine.workflows.start(chain([one("first"), inner, one("last")]));
    await stage.advance("5s");
    expect(await workflow.result()).toBe("last!");
    const parents = Object.fromEntries(seen.map((each) => [each.payload, each.parents]));
    expect([parents.x, parents.s, parents.u]).toEqual([["first!"], [["x!", "y!"]], [["x!", "y!"]]]);
    expect(parents.last).toEqual([{ sum: "t!", side: ["u!", "v!"] }]);
  });

  it.each([
    [
      "a cycle",
      { a: { after: ["b"], run: one("") }, b: { after: ["a"], run: one("") } },
      "graph.a.after[0]",
      "a after b after a",
    ],
    ["a step that waits for itself", { a: { after: ["a"], run: one("") } }, "graph.a.after[0]", "itself"],
    [
      "an unknown name",
      { a: one(""), b: { after: ["x"], run: one("") } },
      "graph.b.after[0]",
      "no step of this name",
    ],
    [
      "a repeated name",
      { a: one(""), b: { after: ["a", "a"], run: one("") } },
      "graph.b.after[1]",
      "named twice",
    ],
    ["no step at all", {}, "graph", "at least one step"],
    ["an unknown field", { a: { before: [], run: one("") } }, "graph.a", "before"],
    ["names that are no list", { a: { after: "b", run: one("") } }, "graph.a.after", "list of names"],
    ["a step that is none", { a: { after: [], run: echo } }, "graph.a.run", "make it with step"],
    ["plain data", { a: { kind: "step" } }, "graph.a", "kind"],
  ])("refuses %s, with the field", (_name, steps, field, words) => {
    expect(() => graph(steps as never)).toThrow(
      expect.objectContaining({ message: expect.stringContaining(field) }),
    );
    expect(() => graph(steps as never)).toThrow(words);
  });

  it("steps that wait for the same steps share a barrier: layers of 1,000 cost 3,000 countdowns", () => {
    const names = (layer: string) => Array.from({ length: 1_000 }, (_, nth) => `${layer}${nth}`);
    const layered = graph(
      Object.fromEntries([
        ...names("a").map((name) => [name, one("")] as const),
        ...names("b").map((name) => [name, { after: names("a"), run: one("") }] as const),
      ]) as { [name: string]: StepNode },
    );
    let ids = 0;
    const { jobs } = layOut(layered, () => `id-${ids++}`, false);
    expect(jobs).toHaveLength(2_000 + 1 + 1);
    const links = jobs.reduce((sum, { wakes }) => sum + wakes.length, 0);
    expect(links).toBe(1_000 + 1_000 + 2_000);
  });

  it("refuses a graph with more links than it could count down", () => {
    const steps = Array.from({ length: 300 }, (_, nth) => [
      `s${nth}`,
      { after: Array.from({ length: nth }, (_each, before) => `s${before}`), run: one("") },
    ]);
    expect(() => graph(Object.fromEntries(steps))).toThrow(/graph: .*45,?150 links.*at most 20000/);
  });

  it("a graph that is larger than one commit runs to its end, and cancels as one", async () => {
    const { stage } = await openWorkflows();
    const steps: [string, unknown][] = [["s0", one("0")]];
    for (let nth = 1; nth < 700; nth++)
      steps.push([`s${nth}`, { after: [`s${Math.floor((nth - 1) / 2)}`], run: one(String(nth)) }]);
    const tree = graph(Object.fromEntries(steps) as { [name: string]: StepNode });
    const workflow = await stage.engine.workflows.start(tree);
    await stage.advance("60s");
    expect(await workflow.view()).toMatchObject({ state: "completed", progress: { completed: 700 } });
    const other = await stage.engine.workflows.start(tree);
    await stage.engine.workflows.cancel(other.id);
    await stage.advance("10s");
    expect(await other.view()).toMatchObject({ state: "cancelled", progress: { total: 700 } });
  });
});

describe("parents of a definition", () => {
  const price = defineJob({ type: "p.price", payload: unchecked<number>(), result: unchecked<number>() });
  const label = defineJob({ type: "p.label", payload: unchecked<string>(), result: unchecked<string>() });
  const ship = defineJob({ type: "p.ship", parents: [price, label], result: unchecked<string>() });
  const sum = defineJob({ type: "p.sum", parents: price, result: unchecked<number>() });

  it("type what the handler gets, in graphs, groups and chains", async () => {
    await using engine = await openEngine({ store: "memory:" });
    engine.work({
      processors: [
        processor(price, ({ payload }) => payload * 2),
        processor(label, ({ payload }) => `<${payload}>`),
        processor(ship, ({ parentResults: [cents, text] }) => `${text} for ${cents.toFixed(2)}`),
        processor(sum, ({ parentResults }) => parentResults.reduce((total, each) => total + each, 0)),
      ],
    });
    const workflow = await engine.workflows.start(
      graph({
        price: step(price, 21),
        label: step(label, "lamp"),
        ship: { after: ["price", "label"], run: step(ship) },
        sum: { after: ["price"], run: step(sum) },
      }),
    );
    expect(await workflow.result({ within: "10s" })).toEqual({ ship: "<lamp> for 42.00", sum: 42 });
    const grouped = await engine.workflows.start(
      chain([group([step(price, 1), step(price, 2), step(price, 3)]), step(sum)]),
    );
    expect(await grouped.result({ within: "10s" })).toBe(12);
  });

  it.each([
    [
      "the other order",
      graph({ p: step(price, 1), l: step(label, ""), s: { after: ["l", "p"], run: step(ship) } } as never),
    ],
    ["too few", graph({ p: step(price, 1), s: { after: ["p"], run: step(ship) } } as never)],
    ["none", step(sum)],
    ["another type", chain([step(label, ""), step(sum)])],
    ["one other among many", chain([group([step(price, 1), step(label, "")]), step(sum)])],
    ["a nested list", chain([group([group([step(price, 1)])]), step(sum)])],
  ])("refuse %s before anything is stored", async (_name, node) => {
    await using engine = await openEngine({ store: "memory:" });
    await expect(engine.workflows.start(node as WorkflowNode)).rejects.toThrow(
      /parents: .*its definition wants the results of/,
    );
    expect(await engine.workflows.list()).toEqual([]);
  });

  it("refuse to be enqueued alone: the handler would get nothing", async () => {
    await using engine = await openEngine({ store: "memory:" });
    await expect(engine.enqueue(sum, undefined)).rejects.toThrow(/definition: "p.sum".*start a workflow/);
  });

  it("are definitions, and at least one", () => {
    expect(() => defineJob({ type: "x", parents: [] })).toThrow(/parents: /);
    expect(() => defineJob({ type: "x", parents: ["p.price"] as never })).toThrow(/parents\[0\]: /);
  });
});
