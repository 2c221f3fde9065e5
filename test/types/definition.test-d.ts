import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { preparePayload } from "../../src/core/job/enqueue/envelope.ts";
import { defineJob, type JobDefinition, unchecked } from "../../src/core/job/job-definition.ts";
import { constant, delays, exponential } from "../../src/core/job/policy/retry.ts";

const chargeCard = defineJob({
  type: "card.charge",
  payload: z.object({ orderId: z.uuid(), cents: z.int().positive(), note: z.string().optional() }),
  result: z.object({ receipt: z.string() }),
  timeouts: { wait: "10m", attempt: "30s", total: "2h", grace: "5s", heartbeat: "none", mode: "discard" },
  retry: {
    attempts: 5,
    backoff: exponential({ first: "1s", max: "5m" }),
    except: ["Card.*"],
    retryFit: "any",
  },
  retention: { completed: "1h", discarded: "0s" },
});

describe("a definition", () => {
  it("carries the types of its payload and result", () => {
    type Payload = { orderId: string; cents: number; note?: string | undefined };
    expectTypeOf(chargeCard).toExtend<JobDefinition<Payload, Payload, { receipt: string }>>();
    type Input = typeof chargeCard extends JobDefinition<infer Of, unknown, unknown> ? Of : never;
    expectTypeOf<Input>().toEqualTypeOf<Payload>();
  });

  it("tells what is enqueued from what the worker sees", () => {
    const trimmed = defineJob({ type: "a", payload: z.object({ nth: z.string().transform(Number) }) });
    expectTypeOf(trimmed).toExtend<JobDefinition<{ nth: string }, { nth: number }, unknown>>();
  });

  it("does not fit where another result is expected", () => {
    // @ts-expect-error the receipt is a string
    const wrong: JobDefinition<never, unknown, { receipt: number }> = chargeCard;
    // @ts-expect-error there is no such field in the result
    const more: JobDefinition<never, unknown, { receipt: string; total: number }> = chargeCard;
    expectTypeOf([wrong, more]);
  });

  it("takes durations with their units, as text or as fields", () => {
    defineJob({ type: "a", timeouts: { attempt: { minutes: 5 }, grace: "unbounded", wait: "none" } });
    defineJob({ type: "a", retention: "7d" });
  });
});

describe("a payload", () => {
  it("that fits is taken", () => {
    preparePayload(chargeCard, { orderId: "o", cents: 1 });
    preparePayload(chargeCard, { orderId: "o", cents: 1, note: "n" });
    preparePayload(defineJob({ type: "a" }), [1, { a: null }]);
    preparePayload(defineJob({ type: "a", payload: unchecked<{ a: 1 }>() }), { a: 1 });
  });

  it("that does not fit is a compile error", () => {
    // @ts-expect-error cents is missing
    preparePayload(chargeCard, { orderId: "o" });
    // @ts-expect-error cents is a number
    preparePayload(chargeCard, { orderId: "o", cents: "1" });
    // @ts-expect-error there is no such field
    preparePayload(chargeCard, { orderId: "o", cents: 1, dollars: 1 });
    // @ts-expect-error a payload is needed
    preparePayload(chargeCard, undefined);
    // @ts-expect-error a date is not JSON
    preparePayload(defineJob({ type: "a" }), new Date(0));
    // @ts-expect-error not the type that was named
    preparePayload(defineJob({ type: "a", payload: unchecked<{ a: 1 }>() }), { a: 2 });
  });
});

describe("misuse of a definition is a compile error", () => {
  it("durations without a unit, or in words", () => {
    // @ts-expect-error a space and a word
    defineJob({ type: "a", timeouts: { attempt: "30 sec" } });
    // @ts-expect-error a bare number does not say its unit
    defineJob({ type: "a", timeouts: { attempt: 30 } });
    // @ts-expect-error text without a unit
    defineJob({ type: "a", timeouts: { total: "30" } });
    // @ts-expect-error a month has no fixed length
    defineJob({ type: "a", timeouts: { wait: { months: 1 } } });
    // @ts-expect-error a bare number does not say its unit
    defineJob({ type: "a", retention: 5 });
    // @ts-expect-error only grace may be unbounded
    defineJob({ type: "a", timeouts: { attempt: "unbounded" } });
    // @ts-expect-error grace is ended by unbounded, not by none
    defineJob({ type: "a", timeouts: { grace: "none" } });
  });

  it("unknown keys", () => {
    // @ts-expect-error the key is timeouts
    defineJob({ type: "a", timeout: "30s" });
    // @ts-expect-error the key is attempt
    defineJob({ type: "a", timeouts: { timeout: "30s" } });
    // @ts-expect-error the key is attempts
    defineJob({ type: "a", retry: { maxAttempts: 3 } });
    // @ts-expect-error an active job is not kept, it runs
    defineJob({ type: "a", retention: { active: "1d" } });
    // @ts-expect-error the type is missing
    defineJob({ timeouts: { attempt: "30s" } });
  });

  it("values that are not among the known ones", () => {
    // @ts-expect-error no such mode
    defineJob({ type: "a", timeouts: { mode: "retry" } });
    // @ts-expect-error no such fit
    defineJob({ type: "a", retry: { retryFit: "half" } });
    // @ts-expect-error no such end
    defineJob({ type: "a", retry: { onExhausted: "dead_letter" } });
    // @ts-expect-error no such answer to a stall
    defineJob({ type: "a", retry: { onStall: "ignore" } });
    // @ts-expect-error a backoff is built by a function
    defineJob({ type: "a", retry: { backoff: "exponential" } });
    // @ts-expect-error a payload needs a schema
    defineJob({ type: "a", payload: { orderId: "string" } });
  });

  it("backoffs", () => {
    constant({ first: "1s", max: { minutes: 5 }, jitter: false });
    delays(["1s", { minutes: 1 }], { jitter: true });
    // @ts-expect-error a bare number does not say its unit
    constant({ first: 1_000 });
    // @ts-expect-error a constant does not grow
    constant({ factor: 2 });
    // @ts-expect-error a bare number does not say its unit
    delays([1, 5]);
    // @ts-expect-error the factor is a number
    exponential({ factor: "2" });
  });
});

describe("a limit", () => {
  it("takes its key from the payload as it is enqueued", () => {
    defineJob({
      type: "a",
      payload: z.object({ nth: z.string().transform(Number) }),
      limit: {
        key: (payload) => {
          expectTypeOf(payload).toEqualTypeOf<{ nth: string }>();
          return payload.nth;
        },
        concurrency: 1,
      },
    });
    defineJob({
      type: "a",
      limit: { key: "k", rate: { limit: 5, per: "1m" }, onLimit: { reschedule: "5s" } },
    });
  });

  it("does not compile with a bare number of milliseconds, another word, or a key that is no text", () => {
    // @ts-expect-error: a duration has a unit.
    expectTypeOf(() => defineJob({ type: "a", limit: { key: "k", rate: { limit: 5, per: 1_000 } } }));
    // @ts-expect-error: it waits, is dropped or comes again.
    expectTypeOf(() => defineJob({ type: "a", limit: { key: "k", concurrency: 1, onLimit: "later" } }));
    // @ts-expect-error: a key is a text.
    expectTypeOf(() => defineJob({ type: "a", limit: { key: () => 7, concurrency: 1 } }));
    // @ts-expect-error: without a key nobody shares it.
    expectTypeOf(() => defineJob({ type: "a", limit: { concurrency: 1 } }));
  });
});
