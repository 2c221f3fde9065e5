import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import {
  type GapPolicy,
  type OverlapPolicy,
  parseWallClock,
  resolveAgain,
  resolveWallClock,
  type WallClock,
} from "./wall-clock.ts";
import { parseWhen } from "./when.ts";

const at = (text: string) => Date.parse(text);
const clock = (local: string, zone: string, policy: Partial<WallClock> = {}): WallClock => ({
  local,
  zone,
  gap: "later",
  overlap: "earlier",
  ...policy,
});

/** Clock changes that happened or are in the zone data: local time, zone, policy, the instant and the rule. */
const CHANGES: [string, string, GapPolicy | OverlapPolicy, string, string][] = [
  // Berlin springs from 02:00 to 03:00, and falls from 03:00 to 02:00.
  ["2026-03-29T02:30:00", "Europe/Berlin", "later", "2026-03-29T01:30:00Z", "gap-later"],
  ["2026-03-29T02:30:00", "Europe/Berlin", "earlier", "2026-03-29T00:30:00Z", "gap-earlier"],
  ["2026-03-29T02:00:00", "Europe/Berlin", "later", "2026-03-29T01:00:00Z", "gap-later"],
  ["2026-03-29T03:00:00", "Europe/Berlin", "later", "2026-03-29T01:00:00Z", "exact"],
  ["2026-03-29T01:59:59", "Europe/Berlin", "later", "2026-03-29T00:59:59Z", "exact"],
  ["2026-10-25T02:30:00", "Europe/Berlin", "earlier", "2026-10-25T00:30:00Z", "overlap-earlier"],
  ["2026-10-25T02:30:00", "Europe/Berlin", "later", "2026-10-25T01:30:00Z", "overlap-later"],
  ["2026-10-25T03:00:00", "Europe/Berlin", "later", "2026-10-25T02:00:00Z", "exact"],
  // New York does it at 02:00, weeks away from Berlin.
  ["2026-03-08T02:30:00", "America/New_York", "later", "2026-03-08T07:30:00Z", "gap-later"],
  ["2026-03-08T02:30:00", "America/New_York", "earlier", "2026-03-08T06:30:00Z", "gap-earlier"],
  ["2026-11-01T01:30:00", "America/New_York", "earlier", "2026-11-01T05:30:00Z", "overlap-earlier"],
  ["2026-11-01T01:30:00", "America/New_York", "later", "2026-11-01T06:30:00Z", "overlap-later"],
  // Lord Howe Island moves by half an hour.
  ["2026-10-04T02:15:00", "Australia/Lord_Howe", "later", "2026-10-03T15:45:00Z", "gap-later"],
  ["2026-10-04T02:15:00", "Australia/Lord_Howe", "earlier", "2026-10-03T15:15:00Z", "gap-earlier"],
  ["2026-04-05T01:45:00", "Australia/Lord_Howe", "earlier", "2026-04-04T14:45:00Z", "overlap-earlier"],
  ["2026-04-05T01:45:00", "Australia/Lord_Howe", "later", "2026-04-04T15:15:00Z", "overlap-later"],
  // Samoa crossed the date line: there was no 30 December 2011.
  ["2011-12-30T12:00:00", "Pacific/Apia", "later", "2011-12-30T22:00:00Z", "gap-later"],
  ["2011-12-30T12:00:00", "Pacific/Apia", "earlier", "2011-12-29T22:00:00Z", "gap-earlier"],
  // Morocco leaves its summer time for Ramadan, so the year begins with an overlap.
  ["2026-02-15T02:30:00", "Africa/Casablanca", "earlier", "2026-02-15T01:30:00Z", "overlap-earlier"],
  ["2026-02-15T02:30:00", "Africa/Casablanca", "later", "2026-02-15T02:30:00Z", "overlap-later"],
  ["2026-03-22T02:30:00", "Africa/Casablanca", "later", "2026-03-22T02:30:00Z", "gap-later"],
  ["2026-03-22T02:30:00", "Africa/Casablanca", "earlier", "2026-03-22T01:30:00Z", "gap-earlier"],
  // Ireland's winter time is the exception by law; the clock moves all the same.
  ["2026-03-29T01:30:00", "Europe/Dublin", "later", "2026-03-29T01:30:00Z", "gap-later"],
  // Zones without changes, with a quarter of an hour and without an offset.
  ["2026-03-29T02:30:00", "Asia/Kathmandu", "later", "2026-03-28T20:45:00Z", "exact"],
  ["2026-03-29T02:30:00", "UTC", "later", "2026-03-29T02:30:00Z", "exact"],
];

describe("SEMANTICS 7.8: clock changes", () => {
  it.each(CHANGES)("%s in %s, %s, is %s (%s)", (local, zone, policy, instant, rule) => {
    const resolved = resolveWallClock(clock(local, zone, { gap: policy, overlap: policy }));
    expect(new Date(resolved.at).toISOString()).toBe(new Date(instant).toISOString());
    expect(resolved.rule).toBe(rule);
  });

  it.each(CHANGES.filter(([, , , , rule]) => rule !== "exact"))(
    "%s in %s is refused by reject",
    (local, zone) => {
      const rejecting = clock(local, zone, { gap: "reject", overlap: "reject" });
      expect(() => resolveWallClock(rejecting)).toThrow(
        expect.objectContaining({ code: "no_such_time", message: expect.stringContaining(zone) }),
      );
    },
  );

  it("policies of gap and overlap do not touch each other", () => {
    const gap = clock("2026-03-29T02:30:00", "Europe/Berlin", { overlap: "reject", gap: "earlier" });
    expect(resolveWallClock(gap).rule).toBe("gap-earlier");
    const overlap = clock("2026-10-25T02:30:00", "Europe/Berlin", { gap: "reject", overlap: "later" });
    expect(resolveWallClock(overlap).rule).toBe("overlap-later");
  });

  it("what was accepted once is not refused when newer zone data moves a clock change onto it", () => {
    const stored = clock("2026-03-29T02:30:00", "Europe/Berlin", { gap: "reject", overlap: "reject" });
    expect(resolveAgain({ ...stored })).toBe(at("2026-03-29T01:30:00Z"));
    expect(resolveAgain({ ...stored, zone: "Atlantis/Capital" })).toBeNull();
    expect(resolveAgain({ nonsense: true })).toBeNull();
    expect(resolveAgain(null)).toBeNull();
  });
});

describe("SEMANTICS 7.8: calendar arithmetic", () => {
  const beforeSpring = at("2026-03-28T16:00:00Z"); // 17:00 in Berlin, the day before a day of 23 hours
  const local = (input: Parameters<typeof parseWallClock>[0], now: number) =>
    parseWallClock(input, now, "when").local;

  it("one day in a zone is not 24 hours", () => {
    const day = parseWhen({ days: 1, zone: "Europe/Berlin" }, beforeSpring);
    expect(day.dueAt - beforeSpring).toBe(23 * 3_600_000);
    expect(parseWhen({ days: 1 }, beforeSpring).dueAt - beforeSpring).toBe(24 * 3_600_000);
    expect(parseWhen("24h", beforeSpring).dueAt - beforeSpring).toBe(24 * 3_600_000);
    const beforeAutumn = at("2026-10-24T15:00:00Z");
    const long = parseWhen({ at: "17:00", days: 1, zone: "Europe/Berlin" }, beforeAutumn);
    expect(long.dueAt - beforeAutumn).toBe(25 * 3_600_000);
  });

  it("days count from today in the zone, not from today in UTC", () => {
    const now = at("2026-06-30T23:30:00Z"); // already 1 July in Berlin, still 30 June in New York
    expect(local({ at: "17:00", days: 0, zone: "Europe/Berlin" }, now)).toBe("2026-07-01T17:00:00");
    expect(local({ at: "17:00", days: 0, zone: "America/New_York" }, now)).toBe("2026-06-30T17:00:00");
    expect(local({ at: "17:00", days: 7, zone: "Europe/Berlin" }, now)).toBe("2026-07-08T17:00:00");
  });

  it("days count from a date where one is given", () => {
    const input = { at: "09:00:30", date: "2028-02-28", days: 1, zone: "Europe/Berlin" };
    expect(local(input, 0)).toBe("2028-02-29T09:00:30");
    expect(local({ at: "09:00", date: "2028-02-28", zone: "Europe/Berlin" }, 0)).toBe("2028-02-28T09:00:00");
  });

  it("days across the day that Samoa skipped", () => {
    const now = at("2011-12-29T22:00:00Z"); // noon of 29 December in Apia
    expect(parseWhen({ days: 1, zone: "Pacific/Apia" }, now).dueAt).toBe(at("2011-12-30T22:00:00Z"));
    expect(parseWhen({ days: 2, zone: "Pacific/Apia" }, now).dueAt).toBe(at("2011-12-30T22:00:00Z"));
  });

  it("without date and days it is the next such time, and never now", () => {
    const zone = "Europe/Berlin";
    const five = at("2026-06-30T15:00:00Z");
    expect(local({ at: "17:00", zone }, five - 1)).toBe("2026-06-30T17:00:00");
    expect(local({ at: "17:00", zone }, five)).toBe("2026-07-01T17:00:00");
    expect(local({ at: "17:00", zone }, five + 1)).toBe("2026-07-01T17:00:00");
  });

  it("the second of two equal times still comes, if that is the one asked for", () => {
    const zone = "Europe/Berlin";
    const between = at("2026-10-25T00:45:00Z"); // 02:45 for the first time
    expect(local({ at: "02:30", zone }, between)).toBe("2026-10-26T02:30:00");
    expect(local({ at: "02:30", zone, overlap: "later" }, between)).toBe("2026-10-25T02:30:00");
  });

  it("zone names are kept in one spelling", () => {
    expect(parseWallClock({ at: "17:00", zone: "europe/berlin" }, 0, "when").zone).toBe("Europe/Berlin");
  });
});

describe("SEMANTICS 7.8: refusals", () => {
  const refusal = (input: unknown) => {
    try {
      parseWhen(input, 0);
    } catch (error) {
      return error as Error & { code?: string; field?: string };
    }
    throw new Error("it was accepted");
  };

  it.each([
    [{ at: "17:00", zone: "Europe/Atlantis" }, "unknown_zone", "when.zone"],
    [{ at: "17:00", zone: "+02:00" }, "unknown_zone", "when.zone"],
    [{ at: "17:00", zone: 7 }, "unknown_zone", "when.zone"],
    [{ at: "5pm", zone: "UTC" }, "invalid_when", "when.at"],
    [{ at: "24:00", zone: "UTC" }, "invalid_when", "when.at"],
    [{ at: "2030-01-01T17:00", zone: "UTC" }, "invalid_when", "when.at"],
    [{ date: "2030-01-01", zone: "UTC" }, "invalid_when", "when.at"],
    [{ at: "17:00", date: "2030-02-30", zone: "UTC" }, "invalid_when", "when.date"],
    [{ at: "17:00", date: "1.2.2030", zone: "UTC" }, "invalid_when", "when.date"],
    [{ at: "17:00", date: "1969-01-01", zone: "UTC" }, "invalid_when", "when"],
    [{ at: "17:00", days: 1.5, zone: "UTC" }, "invalid_when", "when.days"],
    [{ at: "17:00", days: 4_000, zone: "UTC" }, "invalid_when", "when.days"],
    [{ at: "17:00", zone: "UTC", gap: "skip" }, "invalid_option", "when.gap"],
    [{ at: "17:00", zone: "UTC", overlap: "both" }, "invalid_option", "when.overlap"],
    [{ at: "17:00", zone: "UTC", hours: 1 }, "unknown_option", "when.hours"],
  ])("%j is refused as %s at %s", (input, code, field) => {
    expect(refusal(input)).toMatchObject({ code, field });
  });

  it("a local time without a zone is a TypeError, days that count backward are a RangeError", () => {
    expect(refusal({ at: "17:00" })).toBeInstanceOf(TypeError);
    expect(refusal({ at: "17:00" })).toMatchObject({ code: "invalid_when", field: "when.zone" });
    expect(refusal({ at: "17:00", days: -1, zone: "UTC" })).toBeInstanceOf(RangeError);
  });
});

const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Africa/Casablanca",
  "America/St_Johns",
  "Asia/Tehran",
  "Antarctica/Troll",
];

describe("properties of wall-clock times", () => {
  const zones = fc.constantFrom(...ZONES);
  const instants = fc.integer({ min: at("1990-01-01"), max: at("2040-01-01") });
  const policies = fc.record({
    gap: fc.constantFrom<GapPolicy>("later", "earlier"),
    overlap: fc.constantFrom<OverlapPolicy>("later", "earlier"),
  });
  const localAt = (instant: number, zone: string) =>
    Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO(zone).toPlainDateTime().toString();

  it("the local time of an instant leads back to it, or to its twin in an overlap", () => {
    fc.assert(
      fc.property(instants, zones, (instant, zone) => {
        const local = localAt(instant, zone);
        const found = (["earlier", "later"] as const).map(
          (overlap) => resolveWallClock(clock(local, zone, { overlap })).at,
        );
        expect(found).toContain(instant);
      }),
    );
  });

  it("outside a gap the wall shows the time that was asked for", () => {
    fc.assert(
      fc.property(instants, zones, policies, (seed, zone, policy) => {
        const local = new Date(seed).toISOString().slice(0, 19);
        const resolved = resolveWallClock(clock(local, zone, policy));
        if (!resolved.rule.startsWith("gap")) expect(localAt(resolved.at, zone)).toBe(local);
        else expect(localAt(resolved.at, zone)).not.toBe(local);
      }),
    );
  });

  it("a later policy is never before an earlier one", () => {
    fc.assert(
      fc.property(instants, zones, (seed, zone) => {
        const local = new Date(seed).toISOString().slice(0, 19);
        const early = resolveWallClock(clock(local, zone, { gap: "earlier", overlap: "earlier" }));
        const late = resolveWallClock(clock(local, zone, { gap: "later", overlap: "later" }));
        expect(late.at - early.at).toBeGreaterThanOrEqual(0);
        expect(late.at === early.at).toBe(late.rule === "exact");
      }),
    );
  });

  it("the next such time is after now, and within two days and a change", () => {
    const times = fc.tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 0, max: 59 }));
    fc.assert(
      fc.property(instants, zones, policies, times, (now, zone, policy, [hour, minute]) => {
        const two = (value: number) => String(value).padStart(2, "0");
        const input = { at: `${two(hour)}:${two(minute)}`, zone, ...policy };
        const { dueAt } = parseWhen(input, now);
        expect(dueAt).toBeGreaterThan(now);
        expect(dueAt - now).toBeLessThanOrEqual(51 * 3_600_000);
      }),
    );
  });

  it("the stored form gives the same instant again", () => {
    fc.assert(
      fc.property(instants, zones, fc.integer({ min: 0, max: 400 }), (now, zone, days) => {
        const parsed = parseWhen({ days, zone }, now);
        if (parsed.kind !== "wall-clock") throw new Error("not a wall clock");
        expect(resolveAgain(JSON.parse(JSON.stringify(parsed.wallClock)))).toBe(parsed.dueAt);
      }),
    );
  });
});
