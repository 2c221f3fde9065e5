import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { Json } from "../../src/core/schema.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { batch, chain, defineJob, group, processor, step } from "../../src/index.ts";

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
});
