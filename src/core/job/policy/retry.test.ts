import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../../random.ts";
import { type Duration, LONGEST_DURATION } from "../../time.ts";
import type { Backoff } from "../job.ts";
import {
  BUILT_IN_RETRY,
  backoffDelay,
  constant,
  delays,
  exponential,
  isExcepted,
  linear,
  parseRetry,
  polynomial,
} from "./retry.ts";

const even = { jitter: false } as const;
const half = () => 0.5;
const first = (backoff: Backoff) => [1, 2, 3, 4].map((retry) => backoffDelay(backoff, retry, half));

describe("4.1 backoffs", () => {
  it("constant, linear, exponential, polynomial and delays", () => {
    expect(first(constant({ first: "5s", ...even }))).toEqual([5_000, 5_000, 5_000, 5_000]);
    expect(first(linear({ first: "5s", ...even }))).toEqual([5_000, 10_000, 15_000, 20_000]);
    expect(first(exponential({ first: "1s", ...even }))).toEqual([1_000, 2_000, 4_000, 8_000]);
    expect(first(exponential({ first: "1s", factor: 3, ...even }))).toEqual([1_000, 3_000, 9_000, 27_000]);
    expect(first(polynomial({ first: "1s", power: 3, ...even }))).toEqual([1_000, 8_000, 27_000, 64_000]);
    expect(first(delays(["1s", "5s", "1m"]))).toEqual([1_000, 5_000, 60_000, 60_000]);
  });

  it("max caps each of them", () => {
    for (const make of [linear, exponential, polynomial]) {
      expect(backoffDelay(make({ first: "1s", max: "10s", ...even }), 900, half)).toBe(10_000);
    }
  });

  it("delays have a max too, by default the longest of them", () => {
    expect(delays(["1s", "1h"]).max).toBe(3_600_000);
    expect(first(delays(["1s", "1h", "5s"], { max: "1m" }))).toEqual([1_000, 60_000, 5_000, 5_000]);
  });

  it("defaults as Open Job Spec: 3 attempts, exponential from 1 s, doubling, max 5 min, jitter on", () => {
    expect(BUILT_IN_RETRY).toEqual({
      attempts: 3,
      backoff: { kind: "exponential", first: 1_000, factor: 2, max: 300_000, jitter: true },
      except: [],
      retryFit: "full",
      onStall: "retry",
      onExhausted: "discard",
    });
    expect(exponential()).toEqual(BUILT_IN_RETRY.backoff);
  });

  it("a first delay beyond the default max raises it", () => {
    expect(constant({ first: "1h" })).toMatchObject({ first: 3_600_000, max: 3_600_000 });
  });

  it("except: exactly, or Prefix.*", () => {
    expect(isExcepted(["timeout"], "timeout")).toBe(true);
    expect(isExcepted(["timeout"], "timeouts")).toBe(false);
    expect(isExcepted(["Card.*"], "Card.Declined")).toBe(true);
    expect(isExcepted(["Card.*"], "Card")).toBe(false);
    expect(isExcepted([], "timeout")).toBe(false);
  });
});

describe("4.1 what is refused in a retry policy", () => {
  const refused: [string, () => unknown, string, string][] = [
    ["0 attempts", () => parseRetry({ attempts: 0 }, "retry"), "invalid_retry", "retry.attempts"],
    ["half attempts", () => parseRetry({ attempts: 1.5 }, "retry"), "invalid_retry", "retry.attempts"],
    ["NaN attempts", () => parseRetry({ attempts: Number.NaN }, "retry"), "invalid_retry", "retry.attempts"],
    ["1001 attempts", () => parseRetry({ attempts: 1_001 }, "retry"), "invalid_retry", "retry.attempts"],
    ["an unknown key", () => parseRetry(loose({ attemps: 1 }), "retry"), "unknown_option", "retry.attemps"],
    ["a retry that is no object", () => parseRetry(loose(3), "retry"), "invalid_option", "retry"],
    ["an empty except", () => parseRetry({ except: [""] }, "retry"), "invalid_retry", "retry.except"],
    ["except as text", () => parseRetry(loose({ except: "x" }), "retry"), "invalid_retry", "retry.except"],
    [
      "a bad retryFit",
      () => parseRetry(loose({ retryFit: "no" }), "retry"),
      "invalid_retry",
      "retry.retryFit",
    ],
    ["a bad onStall", () => parseRetry(loose({ onStall: "no" }), "retry"), "invalid_retry", "retry.onStall"],
    [
      "a bad onExhausted",
      () => parseRetry(loose({ onExhausted: 1 }), "retry"),
      "invalid_retry",
      "retry.onExhausted",
    ],
    ["a negative first", () => constant({ first: loose("-1s") }), "invalid_duration", "constant.first"],
    ["a bare first", () => linear({ first: loose(5) }), "invalid_duration", "linear.first"],
    ["a max of 0", () => linear({ max: "0s" }), "invalid_duration", "linear.max"],
    ["max below first", () => linear({ first: "9s", max: "8s" }), "invalid_retry", "linear.max"],
    ["a factor below 1", () => exponential({ factor: 0.5 }), "invalid_retry", "exponential.factor"],
    ["a factor of NaN", () => exponential({ factor: Number.NaN }), "invalid_retry", "exponential.factor"],
    ["a power of text", () => polynomial({ power: loose("2") }), "invalid_retry", "polynomial.power"],
    ["a jitter of text", () => constant({ jitter: loose("on") }), "invalid_retry", "constant.jitter"],
    ["an unknown backoff key", () => constant(loose({ factor: 2 })), "unknown_option", "constant.factor"],
    ["no delays", () => delays([]), "invalid_retry", "delays"],
    ["a jitter in delays", () => delays(["1s"], { jitter: loose(1) }), "invalid_retry", "delays.jitter"],
    ["a max of 0 in delays", () => delays(["1s"], { max: "0s" }), "invalid_duration", "delays.max"],
    ["an unknown delays key", () => delays(["1s"], loose({ first: "1s" })), "unknown_option", "delays.first"],
    ["a bad delay", () => delays(["1s", loose("2 sec")]), "invalid_duration", "delays[1]"],
  ];

  it.each(refused)("%s", (_name, act, code, field) => {
    expect(act).toThrow(expect.objectContaining({ code, field, message: expect.stringMatching(/: .+; .+/) }));
  });

  it.each<[string, unknown]>([
    ["text", "exponential"],
    ["an unknown kind", { kind: "bogus", first: 1, max: 1, jitter: false }],
    ["a duration where a number belongs", { kind: "linear", first: "1s", max: 1_000, jitter: false }],
    ["a missing factor", { kind: "exponential", first: 1, max: 1, jitter: false }],
    ["an endless max", { kind: "constant", first: 1, max: Number.POSITIVE_INFINITY, jitter: false }],
    ["no delays", { kind: "delays", delays: [], max: 1, jitter: false }],
    ["null", null],
  ])("a backoff not built by a function: %s", (_name, backoff) => {
    expect(() => parseRetry(loose({ backoff }), "options.retry")).toThrow(
      expect.objectContaining({ code: "invalid_retry", field: "options.retry.backoff" }),
    );
  });

  it("what the functions build is taken, and undefined says nothing", () => {
    const built = [constant(), linear(), exponential(), polynomial(), delays(["1s"])];
    for (const backoff of built) expect(parseRetry({ backoff }, "retry")).toEqual({ backoff });
    expect(parseRetry(loose({ attempts: undefined }), "retry")).toEqual({});
  });
});

const length = fc.integer({ min: 0, max: LONGEST_DURATION }).map((ms) => ({ milliseconds: ms }) as Duration);
const options = (jitter: boolean) =>
  fc.tuple(length, fc.integer({ min: 0, max: 1e9 })).map(([start, more]) => {
    const from = (start as { milliseconds: number }).milliseconds;
    return {
      first: start,
      max: { milliseconds: Math.min(Math.max(1, from + more), LONGEST_DURATION) },
      jitter,
    };
  });
const growing = (jitter: boolean): fc.Arbitrary<Backoff> =>
  fc.oneof(
    options(jitter).map(constant),
    options(jitter).map(linear),
    fc
      .tuple(options(jitter), fc.double({ min: 1, max: 100, noNaN: true }))
      .map(([said, factor]) => exponential({ ...said, factor })),
    fc
      .tuple(options(jitter), fc.double({ min: 1, max: 100, noNaN: true }))
      .map(([said, power]) => polynomial({ ...said, power })),
  );
const any = (jitter: boolean): fc.Arbitrary<Backoff> =>
  fc.oneof(
    growing(jitter),
    fc.array(length, { minLength: 1, maxLength: 9 }).map((list) => delays(list, { jitter })),
  );
const retryNumber = fc.integer({ min: 1, max: 1_000 });

describe("properties of backoffs", () => {
  it("every delay is a whole number of milliseconds between 0 and max", () => {
    fc.assert(
      fc.property(fc.oneof(any(true), any(false)), retryNumber, fc.integer(), (backoff, retry, seed) => {
        const delay = backoffDelay(backoff, retry, seededRandom(seed));
        expect(Number.isInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(0);
        expect(delay).toBeLessThanOrEqual(backoff.max);
      }),
      { numRuns: 500 },
    );
  });

  it("without jitter, growing kinds never shrink", () => {
    fc.assert(
      fc.property(growing(false), fc.integer({ min: 1, max: 999 }), (backoff, retry) => {
        expect(backoffDelay(backoff, retry + 1, half)).toBeGreaterThanOrEqual(
          backoffDelay(backoff, retry, half),
        );
      }),
    );
  });

  it("jitter multiplies by [0.5, 1.5), and what was capped stays capped", () => {
    fc.assert(
      fc.property(any(true), retryNumber, fc.integer(), (backoff, retry, seed) => {
        const plain = backoffDelay({ ...backoff, jitter: false }, retry, half);
        const delay = backoffDelay(backoff, retry, seededRandom(seed));
        // Half a millisecond of rounding, and one for the plain delay that was rounded before.
        expect(delay).toBeGreaterThanOrEqual(Math.min(plain * 0.5 - 1, backoff.max));
        expect(delay).toBeLessThanOrEqual(Math.min(plain * 1.5 + 1, backoff.max));
      }),
    );
  });

  it("a delay of nothing stays nothing, however often it is multiplied", () => {
    const nothing = exponential({ first: "0s", factor: 100 });
    expect(backoffDelay(nothing, 1_000, half)).toBe(0);
  });
});

/** What plain JavaScript may pass where TypeScript would not compile. */
function loose(value: unknown): never {
  return value as never;
}
