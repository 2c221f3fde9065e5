import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { Json } from "../../src/core/schema.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { batch, chain, defineJob, graph, group, processor, step } from "../../src/index.ts";

const price = defineJob({ type: "price", payload: z.object({ sku: z.string() }), result: z.number() });
const label = defineJob({ type: "label", payload: z.string(), result: z.object({ url: z.string() }) });
const tidy = defineJob({ type: "tidy" });
declare const engine: Engine;

describe("workflows", () => {
  it("know their results: of a chain the last one, of a group and a batch all", async () => {
    const last = await engine.workflows.start(chain([step(price, { sku: "a" }), step(label, "b")]));
    expectTypeOf(await last.result()).toEqualTypeOf<{ url: string }>();
    const all = await engine.workflows.start(group([step(price, { sku: "a" }), step(label, "b")]));
    expectTypeOf(await all.result()).toEqualTypeOf<[number, { url: string }]>();
    const nested = await engine.workflows.start(
      chain([
        step(label, "a"),
        batch([chain([step(label, "b"), step(price, { sku: "c" })]), step(label, "d")]),
      ]),
    );
    expectTypeOf(await nested.result()).toEqualTypeOf<[number, { url: string }]>();
    await engine.workflows.start(step(tidy), { name: "tidy up", timeout: "1h", retention: "7d" });
  });

  it("take steps with the payloads of their definitions", () => {
    step(price, { sku: "a" }, { delay: "5m", timeouts: { attempt: "1s" }, priority: 5 });
    step(tidy);
    // @ts-expect-error the payload is missing
    step(price);
    // @ts-expect-error another definition's payload
    step(price, "a");
    // @ts-expect-error a bare number does not say its unit
    step(label, "a", { delay: 5 });
    // @ts-expect-error a step has no id of its own: the workflow has
    step(label, "a", { id: "b" });
    // @ts-expect-error a step belongs to its workflow
    step(label, "a", { detach: true });
  });

  it("are made of nodes, and of at least one", () => {
    // @ts-expect-error there is nothing in it
    chain([]);
    // @ts-expect-error a definition is no step
    group([label]);
    // @ts-expect-error a callback is one step
    batch([step(label, "a")], { onSuccess: chain([step(label, "b")]) });
    // @ts-expect-error no such callback
    batch([step(label, "a")], { onDone: step(label, "b") });
    // @ts-expect-error plain data is no workflow
    void engine.workflows.start({ chain: [] });
    // @ts-expect-error the key is timeout
    void engine.workflows.start(step(tidy), { timeouts: { total: "1h" } });
  });

  it("hand results on as JSON, for a step does not know what comes before it", () => {
    processor(label, ({ parentResults }) => {
      expectTypeOf(parentResults).toEqualTypeOf<readonly Json[]>();
      return { url: "" };
    });
  });

  it("of a graph have the results of the steps that no other waits for, by name", async () => {
    const made = await engine.workflows.start(
      graph({
        a: step(price, { sku: "a" }),
        b: { after: ["a"], run: step(label, "b") },
        c: { after: ["a"], run: group([step(price, { sku: "c" }), step(label, "c")]) },
      }),
    );
    expectTypeOf(await made.result()).toEqualTypeOf<{ b: { url: string }; c: [number, { url: string }] }>();
    // @ts-expect-error no such step
    graph({ a: step(tidy), b: { after: ["x"], run: step(tidy) } });
    // @ts-expect-error it waits for itself
    graph({ a: step(tidy), b: { after: ["b"], run: step(tidy) } });
    // @ts-expect-error a definition is no step
    graph({ a: tidy });
  });

  it("give a handler the results of the parents that its definition names", () => {
    const ship = defineJob({ type: "ship", parents: [price, label] });
    processor(ship, ({ parentResults }) => {
      expectTypeOf(parentResults).toEqualTypeOf<readonly [number, { url: string }]>();
    });
    const sum = defineJob({ type: "sum", parents: price, result: z.number() });
    processor(sum, ({ parentResults }) => {
      expectTypeOf(parentResults).toEqualTypeOf<readonly number[]>();
      return 1;
    });
    const [p, l] = [step(price, { sku: "a" }), step(label, "b")];
    graph({ p, l, ship: { after: ["p", "l"], run: step(ship) }, sum: { after: ["p"], run: step(sum) } });
    // @ts-expect-error the other order
    graph({ p, l, ship: { after: ["l", "p"], run: step(ship) } });
    // @ts-expect-error too few
    graph({ p, ship: { after: ["p"], run: step(ship) } });
    // @ts-expect-error results of another type
    graph({ l, sum: { after: ["l"], run: step(sum) } });
    // @ts-expect-error a text is no definition
    defineJob({ type: "x", parents: "price" });
  });
});
