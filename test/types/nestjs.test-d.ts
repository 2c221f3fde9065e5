import { describe, expectTypeOf, it } from "vitest";
import type { AttemptContext, JobHandle } from "../../src/index.ts";
import { type JobQueue, Processor } from "../../src/nestjs/index.ts";
import { charge, plain } from "./jobs.ts";

type Charged = AttemptContext<{ orderId: string; cents: number }>;

describe("@Processor", () => {
  it("takes a method and a class whose handler fits the definition", () => {
    class Fits {
      @Processor(charge)
      run({ payload }: Charged) {
        return { receipt: payload.orderId };
      }

      @Processor(plain, { concurrency: 2 })
      plain() {}
    }
    @Processor(charge)
    class Whole {
      async handle(_context: Charged) {
        return { receipt: "r" };
      }
    }
    expectTypeOf(new Fits().run).toBeFunction();
    expectTypeOf(new Whole().handle).toBeFunction();
  });

  it("refuses another payload, another result and a class without handle", () => {
    class Wrong {
      // @ts-expect-error the payload has no such field
      @Processor(charge)
      payload(_context: AttemptContext<{ other: string }>) {
        return { receipt: "r" };
      }

      // @ts-expect-error the result is another one
      @Processor(charge)
      result() {
        return { other: 1 };
      }
    }
    // @ts-expect-error there is no method handle
    @Processor(charge)
    class Empty {}
    expectTypeOf(Wrong).toBeConstructibleWith();
    expectTypeOf(Empty).toBeConstructibleWith();
  });
});

describe("a JobQueue", () => {
  it("takes what the definition takes, and gives a handle on its result", () => {
    const queue = {} as JobQueue<typeof charge>;
    expectTypeOf(queue.enqueue({ orderId: "o", cents: "1" })).toEqualTypeOf<
      Promise<JobHandle<{ receipt: string }>>
    >();
    // @ts-expect-error a field is missing
    queue.enqueue({ orderId: "o" });
    // @ts-expect-error a payload is needed
    queue.enqueue();
    const optional = {} as JobQueue<typeof plain>;
    optional.enqueue();
  });
});
