import { expect, it } from "vitest";
import { plainStep, readGraph } from "./workflow-graph.ts";

const step = (id: string, ...depends_on: string[]) => ({ id, type: `t.${id}`, args: [], depends_on });

it("reads any graph without a cycle, whatever the order of its steps", () => {
  expect(readGraph([step("c", "a", "b"), step("a"), step("b", "a"), step("d", "a")])).toEqual({
    names: ["c", "a", "b", "d"],
    after: [[1, 2], [], [1], [1]],
  });
});

it("takes one step without a name, and a name that is repeated", () => {
  expect(readGraph([{ type: "t.a", args: [] }])).toEqual({ names: ["step"], after: [[]] });
  expect(readGraph([step("a"), step("b", "a", "a")])).toMatchObject({ after: [[], [0]] });
});

it.each([
  [
    "a cycle",
    [step("a", "c"), step("b", "a"), step("c", "b")],
    ["steps", 0, "depends_on", 0],
    "a after c after b after a",
  ],
  [
    "a step that waits for itself",
    [step("a"), step("b", "a", "b")],
    ["steps", 1, "depends_on", 1],
    "cannot wait for itself",
  ],
  [
    "a name that nobody has",
    [step("a"), step("b", "a", "x")],
    ["steps", 1, "depends_on", 1],
    '"x": there is no step',
  ],
  ["a name that two have", [step("a"), step("a")], ["steps", 1, "id"], "the name of two steps"],
  [
    "two steps without a name",
    [{ type: "t.a" }, { type: "t.b" }],
    ["steps", 0, "id"],
    "give each step a name",
  ],
  ["names that are no list", [step("a"), { id: "b", depends_on: "a" }], ["steps", 1, "depends_on"], "a list"],
  ["a name that is no text", [step("a"), { id: "b", depends_on: [1] }], ["steps", 1, "depends_on"], "a list"],
  [
    "a name like a method",
    [step("a"), step("b", "toString")],
    ["steps", 1, "depends_on", 0],
    "there is no step",
  ],
])("names the place of %s", (_name, steps, path, message) => {
  expect(readGraph(steps)).toEqual({ path, message: expect.stringContaining(message) });
});

it("keeps the client's name beside the job", () => {
  expect(plainStep(step("a"))).toEqual({ type: "t.a", args: [], depends_on: [], step_id: "a" });
});

it("reads a long chain and a wide layer in linear time", () => {
  const chain = Array.from({ length: 10_000 }, (_, index) =>
    index === 0 ? step("0") : step(String(index), String(index - 1)),
  );
  // CPU time of this thread, so that other load does not count.
  const from = process.threadCpuUsage();
  expect(readGraph(chain)).toHaveProperty("after");
  const ring = [...chain.slice(1), step("0", "9999")];
  expect(readGraph(ring)).toHaveProperty("message", expect.stringContaining("…"));
  expect(process.threadCpuUsage(from).user / 1_000).toBeLessThan(2_000);
});
