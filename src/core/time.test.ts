import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  earlier,
  formatDuration,
  INSTANT_LIMIT,
  LONGEST_DURATION,
  parseDuration,
  parseInstant,
} from "./time.ts";

describe("1.1 durations (1.3)", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
    ["1.5h", 5_400_000],
    ["0.25s", 250],
    ["3650d", LONGEST_DURATION],
  ])("%s is %d ms", (text, milliseconds) => {
    expect(parseDuration(text, "timeouts.attempt")).toBe(milliseconds);
  });

  it("fields like those of a Temporal.Duration are added up", () => {
    expect(parseDuration({ hours: 1, minutes: 30, seconds: 5, milliseconds: 7 }, "x")).toBe(5_405_007);
    expect(parseDuration({ weeks: 1, days: 1 }, "x")).toBe(8 * 86_400_000);
  });

  it("a Temporal.Duration has its fields as getters, the unusable ones as zeros", () => {
    class FakeDuration {
      get years() {
        return 0;
      }
      get months() {
        return 0;
      }
      get minutes() {
        return 5;
      }
      get nanoseconds() {
        return 0;
      }
    }
    expect(parseDuration(new FakeDuration(), "x")).toBe(300_000);
  });

  it.each<[string, unknown]>([
    ["0", "0s"],
    ["zero fields", { seconds: 0 }],
    ["negative", "-5s"],
    ["negative fields", { seconds: -5 }],
    ["not a number", "NaNs"],
    ["NaN in a field", { seconds: Number.NaN }],
    ["infinite", "Infinity"],
    ["infinite fields", { days: Number.POSITIVE_INFINITY }],
    ["an endless number", `${"9".repeat(400)}s`],
    ["over ten years", "3651d"],
    ["a millisecond over ten years", { days: 3_650, milliseconds: 1 }],
    ["a word", "30 sec"],
    ["a space", "30 s"],
    ["an unknown unit", "3w"],
    ["an exponent", "1e3s"],
    ["no unit", "30"],
    ["no amount", "s"],
    ["nothing", ""],
    ["a bare number", 30],
    ["NaN", Number.NaN],
    ["null", null],
    ["undefined", undefined],
    ["true", true],
    ["a list", ["30s"]],
    ["an empty object", {}],
    ["a date", new Date(0)],
    ["an unknown field", { second: 5 }],
    ["calendar units", { months: 1 }],
    ["years", { years: 1, days: 1 }],
    ["parts of a millisecond", "0.5ms"],
    ["microseconds", { microseconds: 5 }],
    ["text in a field", { seconds: "5" }],
  ])("%s is refused, naming the field, the value and the fix", (_name, value) => {
    const refusal = refusalOf(() => parseDuration(value, "timeouts.attempt"));
    expect(refusal).toMatchObject({ code: "invalid_duration", field: "timeouts.attempt" });
    expect(refusal.message).toMatch(/^timeouts\.attempt: .+ is not a valid duration; .+/);
  });

  it("the message shows what was written", () => {
    expect(refusalOf(() => parseDuration("30 sec", "options.delay")).message).toBe(
      'options.delay: "30 sec" is not a valid duration; write "250ms", "30s", "5m", "2h" or "7d"',
    );
    expect(refusalOf(() => parseDuration(30, "options.delay")).message).toContain("options.delay: 30 is not");
    expect(refusalOf(() => parseDuration("3651d", "x")).message).toContain("10 years");
  });

  it("zero is allowed only where the caller says so", () => {
    expect(parseDuration("0s", "grace", { zero: true })).toBe(0);
    expect(() => parseDuration("-1s", "grace", { zero: true })).toThrow("grace");
  });

  it("durations beyond 2^31 ms are exact", () => {
    expect(parseDuration("25d", "x")).toBe(2_160_000_000);
    expect(parseDuration(`${2 ** 31 + 1}ms`, "x")).toBe(2 ** 31 + 1);
  });
});

describe("writing durations", () => {
  it.each([
    [1, "1ms"],
    [1_000, "1s"],
    [60_000, "60s"],
    [90_000, "90s"],
    [300_000, "5m"],
    [3_600_000, "1h"],
    [5_400_000, "90m"],
    [86_400_000, "1d"],
    [1_001, "1001ms"],
    [0, "0ms"],
  ])("%d ms is %s", (milliseconds, text) => {
    expect(formatDuration(milliseconds)).toBe(text);
  });

  it("every valid duration reads back as it was written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: LONGEST_DURATION }), (milliseconds) => {
        expect(parseDuration(formatDuration(milliseconds), "x")).toBe(milliseconds);
      }),
    );
  });

  it("every whole count of a unit reads back, too", () => {
    const units = fc.constantFrom(
      ["ms", 1],
      ["s", 1e3],
      ["m", 6e4],
      ["h", 36e5],
      ["d", 864e5],
    ) as fc.Arbitrary<[string, number]>;
    fc.assert(
      fc.property(units, fc.integer({ min: 1, max: 3_650 }), ([unit, size], count) => {
        const parsed = parseDuration(`${count}${unit}`, "x");
        expect(parsed).toBe(count * size);
        expect(parseDuration(formatDuration(parsed), "x")).toBe(parsed);
      }),
    );
  });

  it("no text at all makes anything but a whole, bounded number or a refusal", () => {
    const texts = fc.oneof(fc.string(), fc.stringMatching(/^-?[0-9.e+]{1,8}(ms|s|m|h|d|w| s)?$/));
    fc.assert(
      fc.property(texts, (text) => {
        try {
          const parsed = parseDuration(text, "x");
          expect(Number.isInteger(parsed) && parsed > 0 && parsed <= LONGEST_DURATION).toBe(true);
        } catch (error) {
          expect(error).toMatchObject({ code: "invalid_duration" });
        }
      }),
    );
  });
});

describe("instants", () => {
  it("a Date, a Temporal.Instant and RFC 3339 with an offset name one", () => {
    const instant = Date.UTC(2030, 0, 31, 12);
    expect(parseInstant(new Date(instant), "at")).toBe(instant);
    expect(parseInstant({ epochMilliseconds: instant }, "at")).toBe(instant);
    expect(parseInstant("2030-01-31T12:00:00Z", "at")).toBe(instant);
    expect(parseInstant("2030-01-31T14:00:00+02:00", "at")).toBe(instant);
    expect(parseInstant("2030-01-31T12:00:00.123456Z", "at")).toBe(instant + 123);
    expect(parseInstant("2028-02-29T00:00:00Z", "at")).toBe(Date.UTC(2028, 1, 29));
  });

  it.each<[string, unknown]>([
    ["a local time without a zone", "2030-01-31T12:00:00"],
    ["a date alone", "2030-01-31"],
    ["a day its month does not have", "2030-02-31T12:00:00Z"],
    ["a leap day of another year", "2030-02-29T12:00:00Z"],
    ["a 13th month", "2030-13-01T12:00:00Z"],
    ["an invalid date", new Date(Number.NaN)],
    ["a number", 1_800_000_000_000],
    ["a word", "tomorrow"],
    ["before 1970", new Date(-1)],
    ["after 3084", new Date(INSTANT_LIMIT)],
    ["null", null],
    ["text for a number", { epochMilliseconds: "5" }],
  ])("%s is refused, naming the field and the fix", (_name, value) => {
    const refusal = refusalOf(() => parseInstant(value, "options.at"));
    expect(refusal).toMatchObject({ code: "invalid_instant", field: "options.at" });
    expect(refusal.message).toMatch(/^options\.at: .+ is not a valid instant; .+/);
  });

  it("the earlier of two instants treats null as never", () => {
    expect([earlier(1, 2), earlier(2, 1), earlier(null, 2), earlier(1, null)]).toEqual([1, 1, 2, 1]);
    expect(earlier(null, null)).toBeNull();
  });
});

function refusalOf(act: () => unknown): Error & { code: string; field: string } {
  try {
    act();
  } catch (error) {
    return error as Error & { code: string; field: string };
  }
  throw new Error("nothing was refused");
}
