import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallPolicyCache } from "../../src/calls/call-policy-cache.ts";
import { type CallOptions, parseCall, resolveCall } from "../../src/core/call/call-policy.ts";
import { openCalls } from "./open-calls.ts";

/** SEMANTICS 10.1: parsed limits are kept, and nothing but the time of a call shows it. */

const parse = (options: CallOptions) => resolveCall({ call: parseCall(options, "within", ["name"]) });

const optional = (...values: unknown[]) => fc.option(fc.constantFrom(...values), { nil: undefined });
const someOptions = fc.record(
  {
    name: optional("a", "b"),
    attempt: optional("5s", "5000ms", "1m", "none", { seconds: 5 }),
    total: optional("1m", "60s", "none", { minutes: 1 }),
    grace: optional("0s", "1s", { seconds: 1 }),
    mode: optional("fail", "discard"),
    retry: fc.option(
      fc.record(
        {
          attempts: optional(1, 2, 3),
          retryFit: optional("full", "any"),
          except: optional(["timeout"], []),
        },
        { requiredKeys: [] },
      ),
      { nil: undefined },
    ),
  },
  { requiredKeys: [] },
);

describe("kept policies", () => {
  it("are those that parsing gives, in any order of calls", () => {
    fc.assert(
      fc.property(fc.array(someOptions, { minLength: 1, maxLength: 150 }), (all) => {
        const cache = new CallPolicyCache();
        for (const options of all as CallOptions[])
          expect(cache.policyOf(options, parse)).toEqual(parse(options));
      }),
    );
  });

  it("are parsed once, and beyond 100 kinds on each call", () => {
    const cache = new CallPolicyCache();
    let parsed = 0;
    const count = (options: CallOptions) => {
      parsed += 1;
      return parse(options);
    };
    const use = (seconds: number) =>
      cache.policyOf({ attempt: `${seconds}s`, total: "1h", retry: { attempts: 2 } }, count);
    for (let round = 0; round < 3; round++) for (let kind = 1; kind <= 100; kind++) use(kind);
    expect(parsed).toBe(100);
    expect([use(101).attempt, use(101).attempt, parsed]).toEqual([101_000, 101_000, 102]);
  });

  it("an invalid limit is refused on each call, also beside valid ones that are kept", () => {
    const { within } = openCalls();
    const call = (options: object) => () => within(options, () => 1);
    for (let round = 0; round < 2; round++) {
      expect(call({ attempt: "5s", total: "1m" })).not.toThrow();
      expect(call({ attempt: "5s", total: "1s" })).toThrow("within.total");
      expect(call({ attempt: "5s", total: "1m", grace: "-1s" })).toThrow("within.grace");
      expect(call({ attempt: "5s", total: "1m", mode: "snooze" })).toThrow("within.mode");
      expect(call({ attempt: "5s", total: "1m", totl: "1m" })).toThrow("totl");
      expect(call({ attempt: "5s", total: "1m", retry: { attempts: 0 } })).toThrow("within.retry.attempts");
      expect(call({ attempt: "5s", total: "1m", retry: { tries: 2 } })).toThrow("within.retry.tries");
    }
  });
});
