import { expect, it } from "vitest";
import { arranged } from "./workflow-graph.ts";

const step = (id: string, ...depends_on: string[]) => ({ id, type: `t.${id}`, args: [], depends_on });
const job = (id: string) => ({ type: `t.${id}`, args: [], step_id: id });

it("makes a chain of steps that wait for each other, whatever their order", () => {
  const chain = { type: "chain", steps: [job("a"), job("b"), job("c")] };
  expect(arranged([step("a"), step("b", "a"), step("c", "b")])).toEqual(chain);
  expect(arranged([step("c", "b"), step("a"), step("b", "a")])).toEqual(chain);
});

it("makes a group of steps that wait for nobody", () => {
  expect(arranged([step("a"), step("b")])).toEqual({ type: "group", jobs: [job("a"), job("b")] });
});

it("takes one step, with or without a name", () => {
  expect(arranged([step("a")])).toEqual({ type: "chain", steps: [job("a")] });
  expect(arranged([{ type: "t.a", args: [] }])).toEqual({
    type: "chain",
    steps: [{ type: "t.a", args: [] }],
  });
});

it("spreads out and comes together again", () => {
  const steps = [step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")];
  expect(arranged(steps)).toEqual({
    type: "chain",
    steps: [job("a"), { type: "group", jobs: [job("b"), job("c")] }, job("d")],
  });
});

it.each([
  ["a step that waits for one of two", [step("a"), step("b"), step("c", "a")]],
  ["a step that reaches over another", [step("a"), step("b", "a"), step("c", "a", "b")]],
  ["a circle", [step("a", "b"), step("b", "a")]],
  ["a name that nobody has", [step("a"), step("b", "x")]],
  ["a name that two have", [step("a"), step("a")]],
  ["two steps without a name", [{ type: "t.a" }, { type: "t.b" }]],
])("does not guess at %s", (_name, steps) => {
  expect(arranged(steps)).toBeNull();
});

it("takes a long chain and a wide group without counting everything again and again", () => {
  const chain = Array.from({ length: 10_000 }, (_, index) =>
    index === 0 ? step("0") : step(String(index), String(index - 1)),
  );
  // CPU time of this thread, so that other load does not count.
  const from = process.threadCpuUsage();
  expect(arranged(chain)).toMatchObject({ type: "chain" });
  const wide = [...Array.from({ length: 10_000 }, (_, index) => step(String(index))), step("x", "1")];
  expect(arranged(wide)).toBeNull();
  expect(process.threadCpuUsage(from).user / 1_000).toBeLessThan(2_000);
});
