import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import { explainWhen, parseWhen } from "./when.ts";

const NOW = Date.parse("2026-03-28T16:00:00Z");
const dueAt = (when: unknown) => parseWhen(when, NOW).dueAt;

function refusal(when: unknown): Error & { code?: string; field?: string } {
  try {
    parseWhen(when, NOW);
  } catch (error) {
    return error as Error;
  }
  throw new Error("it was accepted");
}

describe("SEMANTICS 7.2: when", () => {
  it("is a delay, written as text, as fields or after", () => {
    expect(dueAt("90s")).toBe(NOW + 90_000);
    expect(dueAt({ hours: 24 })).toBe(NOW + 86_400_000);
    expect(dueAt({ after: "24h" })).toBe(NOW + 86_400_000);
    expect(dueAt({ after: { minutes: 5 } })).toBe(NOW + 300_000);
    expect(dueAt(Temporal.Duration.from({ minutes: 5 }))).toBe(NOW + 300_000);
  });

  it("is an instant, in any of its forms", () => {
    const instant = Date.parse("2030-01-31T12:00:00Z");
    expect(dueAt(new Date(instant))).toBe(instant);
    expect(dueAt(Temporal.Instant.fromEpochMilliseconds(instant))).toBe(instant);
    expect(dueAt(Temporal.ZonedDateTime.from("2030-01-31T13:00:00[Europe/Berlin]"))).toBe(instant);
    expect(dueAt("2030-01-31T12:00:00Z")).toBe(instant);
    expect(dueAt("2030-01-31T13:00:00+01:00")).toBe(instant);
  });

  it("zero and the past are accepted: they are due at once", () => {
    expect(dueAt("0s")).toBe(NOW);
    expect(dueAt(new Date(1_000))).toBe(1_000);
    expect(dueAt({ at: "17:00", date: "2020-01-01", zone: "UTC" })).toBe(Date.parse("2020-01-01T17:00:00Z"));
  });

  it.each([
    "-5m",
    { minutes: -5 },
    { after: "-5m" },
    { after: { hours: -1 } },
    Temporal.Duration.from("-PT1S"),
  ])("a negative delay is a RangeError: %s", (when) => {
    expect(refusal(when)).toBeInstanceOf(RangeError);
    expect(refusal(when)).toMatchObject({ code: "invalid_when" });
  });

  it.each([
    "2030-01-31T12:00:00",
    "2030-01-31T12:00",
    "2030-01-31 12:00:00",
    "2030-01-31",
    "12:00",
    Temporal.PlainDateTime.from("2030-01-31T12:00"),
    Temporal.PlainDate.from("2030-01-31"),
    Temporal.PlainTime.from("12:00"),
  ])("a local time without a zone is a TypeError: %s", (when) => {
    expect(refusal(when)).toBeInstanceOf(TypeError);
    expect(refusal(when)).toMatchObject({ code: "invalid_when", field: "when" });
  });

  it.each([
    [undefined, "invalid_when"],
    [null, "invalid_when"],
    [5, "invalid_when"],
    ["soon", "invalid_when"],
    ["", "invalid_when"],
    ["2030-02-31T12:00:00Z", "invalid_instant"],
    [new Date(Number.NaN), "invalid_instant"],
    [{ months: 1 }, "invalid_duration"],
    [{}, "invalid_duration"],
    ["4000d", "invalid_duration"],
    [{ after: "1h", zone: "UTC" }, "unknown_option"],
  ])("%j is refused as %s", (when, code) => {
    expect(refusal(when)).toMatchObject({ code });
  });
});

describe("explainWhen", () => {
  const now = new Date(NOW);

  it("says the instant, the offset and the rule of a wall-clock time", () => {
    const gap = explainWhen({ at: "02:30", days: 1, zone: "Europe/Berlin" }, { now });
    expect(gap).toEqual({
      kind: "wall-clock",
      calendar: null,
      dueAt: Date.parse("2026-03-29T01:30:00Z"),
      instant: "2026-03-29T01:30:00.000Z",
      local: "2026-03-29T03:30:00",
      zone: "Europe/Berlin",
      offset: "+02:00",
      rule: "gap-later",
      text:
        "2026-03-29T01:30:00.000Z = 2026-03-29T03:30:00+02:00 in Europe/Berlin: 2026-03-29T02:30:00 is skipped by a " +
        "clock change there, so the later time counts (gap: later)",
    });
    const twice = explainWhen({ at: "02:30", date: "2026-10-25", zone: "Europe/Berlin" }, { now });
    expect(twice.text).toContain("occurs twice there, and the first one counts (overlap: earlier)");
    const exact = explainWhen({ at: "17:00", zone: "America/New_York" }, { now });
    expect(exact).toMatchObject({ rule: "exact", offset: "-04:00" });
  });

  it("says what a delay and an instant are, and what has passed", () => {
    expect(explainWhen("24h", { now }).text).toBe("2026-03-29T16:00:00.000Z: 1d after now");
    expect(explainWhen(now, { now }).text).toBe(
      "2026-03-28T16:00:00.000Z, which is now or has passed: it fires at once",
    );
  });

  it("refuses what request would refuse", () => {
    expect(() => explainWhen("-1s", { now })).toThrow(RangeError);
    expect(() => explainWhen("1s", { now: "today" })).toThrow(/options\.now/);
  });
});
