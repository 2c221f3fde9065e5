import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { type EnqueueContext, type EnqueueOptions, prepareJob } from "../../src/core/job/enqueue/envelope.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";

const job = defineJob({ type: "a", payload: z.string() });
declare const context: EnqueueContext;
const enqueue = (options: EnqueueOptions) => prepareJob(job, options, context);

describe("the options of an enqueue", () => {
  it("name timeouts, retry and retention like a definition, and when to start", () => {
    enqueue({});
    enqueue({ timeouts: { attempt: "2m", mode: "fail" }, retry: { attempts: 1 }, retention: "0s" });
    enqueue({ delay: "5m", priority: 10, queue: "mail", meta: { a: [1, null] } });
    enqueue({ at: new Date(0), expiresAt: "2030-01-31T12:00:00Z", detach: true });
    enqueue({ at: { epochMilliseconds: 5 } });
    expectTypeOf(enqueue).returns.toHaveProperty("image");
  });

  it("misuse is a compile error", () => {
    // @ts-expect-error a space and a word
    enqueue({ delay: "30 sec" });
    // @ts-expect-error a bare number does not say its unit
    enqueue({ delay: 30 });
    // @ts-expect-error a bare number may be seconds or milliseconds
    enqueue({ at: 1_800_000_000_000 });
    // @ts-expect-error the key is timeouts
    enqueue({ timeout: "30s" });
    // @ts-expect-error the key is wait
    enqueue({ timeouts: { ttl: "30s" } });
    // @ts-expect-error no such mode
    enqueue({ timeouts: { mode: "kill" } });
    // @ts-expect-error a priority is a number
    enqueue({ priority: "high" });
    // @ts-expect-error a date is not JSON
    enqueue({ meta: { at: new Date(0) } });
    // @ts-expect-error a definition is made by defineJob
    prepareJob({ type: "a" }, {}, context);
  });
});
