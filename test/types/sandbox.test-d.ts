import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import {
  type CleanupHook,
  defineJob,
  type Processor,
  processor,
  type SandboxedProcessor,
  sandboxed,
} from "../../src/index.ts";

const render = defineJob({
  type: "invoice.render",
  payload: z.object({ pages: z.int(), at: z.iso.datetime().transform((text) => new Date(text)) }),
  result: z.object({ path: z.string() }),
});
declare const module: URL;

describe("the module of a sandbox", () => {
  it("exports a processor and a hook that fit the definition", () => {
    const exported = processor(render, ({ payload }) => ({
      path: `${payload.at.getTime()}-${payload.pages}`,
    }));
    expectTypeOf(exported).toEqualTypeOf<Processor>();
    const onCleanup: CleanupHook<typeof render> = ({ payload, log, signal }) => {
      expectTypeOf(payload).toEqualTypeOf<{ pages: number; at: Date }>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      log("cleaned");
    };
    expectTypeOf(onCleanup).returns.toEqualTypeOf<void | Promise<void>>();
  });

  it("that does not fit is a compile error", () => {
    // @ts-expect-error another result
    processor(render, () => ({ pages: 1 }));
    // @ts-expect-error no result
    processor(render, () => {});
    // @ts-expect-error the payload has no such field
    processor(render, ({ payload }) => ({ path: payload.path }));
    // @ts-expect-error the payload is parsed: a Date and no text
    processor(render, ({ payload }) => ({ path: payload.at.slice(1) }));
    // @ts-expect-error the payload has no such field
    const hook: CleanupHook<typeof render> = ({ payload }) => payload.path;
    // @ts-expect-error a hook is for one definition
    const other: CleanupHook<string> = () => {};
    expectTypeOf([hook, other]).toBeArray();
  });
});

describe("sandboxed", () => {
  it("takes a definition, the address of a module, and limits", () => {
    expectTypeOf(sandboxed(render, module)).toEqualTypeOf<SandboxedProcessor>();
    sandboxed(render, module, {
      kind: "thread",
      memory: "1.5gb",
      size: 2,
      spare: 0,
      load: "5s",
      capture: false,
    });
    sandboxed(render, module, { jobs: 100, age: "1h", env: ["A"], flags: ["--import=tsx"], permissions: [] });
    sandboxed(render, module, { isolation: "strict", debugSignal: true });
  });

  it("misuse is a compile error", () => {
    // @ts-expect-error a module is named by its URL
    sandboxed(render, "./render.ts");
    // @ts-expect-error the handler belongs into the module
    sandboxed(render, () => ({ path: "" }));
    // @ts-expect-error a definition comes first
    sandboxed("invoice.render", module);
    // @ts-expect-error a bare number does not say its unit
    sandboxed(render, module, { memory: 256 });
    // @ts-expect-error a bare number does not say its unit
    sandboxed(render, module, { load: 30 });
    // @ts-expect-error no such isolation
    sandboxed(render, module, { isolation: "none" });
    // @ts-expect-error no such kind
    sandboxed(render, module, { kind: "vm" });
    // @ts-expect-error no such option
    sandboxed(render, module, { threads: 4 });
  });
});
