import { describe, expectTypeOf, it } from "vitest";
import type { z } from "zod";
import type { WireAck, WireBeat, WireEnqueue, WireFetch, WireNack } from "../../src/ojs/wire-types.ts";
import type {
  beatSchema,
  enqueueSchema,
  failSchema,
  fetchSchema,
  retrySchema,
  succeedSchema,
} from "../../src/server/wire/schemas.ts";

/** Fields that the client sends and the server does not know: they would be kept and do nothing. */
type Unknown<Sent, Schema extends z.ZodObject> = Exclude<keyof Sent, keyof Schema["shape"]>;

describe("what the client sends", () => {
  it("has no field that the server does not know", () => {
    expectTypeOf<Unknown<WireEnqueue, typeof enqueueSchema>>().toBeNever();
    expectTypeOf<Unknown<NonNullable<WireEnqueue["retry"]>, typeof retrySchema>>().toBeNever();
    expectTypeOf<Unknown<WireFetch, typeof fetchSchema>>().toBeNever();
    expectTypeOf<Unknown<WireBeat, typeof beatSchema>>().toBeNever();
    expectTypeOf<Unknown<WireAck, typeof succeedSchema>>().toBeNever();
    expectTypeOf<Unknown<WireNack, typeof failSchema>>().toBeNever();
  });

  it("has the types that the server reads", () => {
    expectTypeOf<WireEnqueue>().toExtend<Omit<z.input<typeof enqueueSchema>, "args">>();
    expectTypeOf<WireFetch>().toExtend<z.input<typeof fetchSchema>>();
    expectTypeOf<WireBeat>().toExtend<z.input<typeof beatSchema>>();
    expectTypeOf<WireAck>().toExtend<z.input<typeof succeedSchema>>();
    expectTypeOf<WireNack>().toExtend<z.input<typeof failSchema>>();
  });
});
