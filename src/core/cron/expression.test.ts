import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import { type ClockChangeOptions, Instants, parseSchedule, type ScheduleOptions } from "./expression.ts";
import { preview } from "./instants-of.ts";

const schedule = (options: ScheduleOptions) => parseSchedule(options, "");

/** The next local times with their offsets, from a local time in the zone on. */
function next(cron: string, zone: string, from: string, count: number, clockChange?: ClockChangeOptions) {
  const start = Temporal.ZonedDateTime.from(`${from}[${zone}]`).epochMilliseconds - 1;
  const options = { cron, zone, ...(clockChange && { clockChange }) };
  return preview(schedule(options), start, count).map(({ local, offset }) => `${local.slice(5)}${offset}`);
}

describe("expressions", () => {
  it.each([
    ["0 3 * * *", "2030-01-01T03:00:00"],
    ["*/15 * * * *", "2030-01-01T00:15:00"],
    ["30 0 0 * * *", "2030-01-01T00:00:30"],
    ["0 12 * * MON-FRI", "2030-01-01T12:00:00"],
    ["0 0 * JAN,MAR SUN", "2030-01-06T00:00:00"],
    ["0 0 1 * 1", "2030-01-07T00:00:00"],
    ["0 0 29 2 *", "2032-02-29T00:00:00"],
    ["0 0 L * *", "2030-01-31T00:00:00"],
    ["@yearly", "2031-01-01T00:00:00"],
    ["@annually", "2031-01-01T00:00:00"],
    ["@monthly", "2030-02-01T00:00:00"],
    ["@weekly", "2030-01-06T00:00:00"],
    ["@daily", "2030-01-02T00:00:00"],
    ["@midnight", "2030-01-02T00:00:00"],
    ["@hourly", "2030-01-01T01:00:00"],
    ["  0  3 * *   * ", "2030-01-01T03:00:00"],
  ])("%s", (cron, local) => {
    const [first] = preview(schedule({ cron }), Date.UTC(2030, 0, 1), 1);
    expect(first).toEqual({ at: Date.parse(`${local}Z`), local, offset: "+00:00" });
  });

  it.each([
    "",
    "5 4 * *",
    "60 * * * *",
    "*/0 * * * *",
    "0 0 * * * * 2030",
    "@reboot",
    "@often",
    "a b c d e",
    7,
  ])("refuses %j", (cron) => {
    expect(() => schedule({ cron: cron as string })).toThrow(
      expect.objectContaining({ code: "invalid_cron", field: "cron" }),
    );
  });

  it("refuses what never happens, unknown zones and fixed offsets, and names them", () => {
    expect(() => schedule({ cron: "0 0 30 2 *" })).toThrow("it never matches a date");
    for (const zone of ["Mars/Olympus", "+02:00", ""])
      expect(() => schedule({ cron: "@daily", zone })).toThrow(expect.objectContaining({ field: "zone" }));
    const gap = { cron: "@daily", clockChange: { gap: "reject" as never } };
    expect(() => schedule(gap)).toThrow(expect.objectContaining({ field: "clockChange.gap" }));
    const overlap = { cron: "@daily", clockChange: { overlap: "first" as never } };
    expect(() => schedule(overlap)).toThrow(expect.objectContaining({ field: "clockChange.overlap" }));
  });
});

describe("clock changes", () => {
  const BERLIN = "Europe/Berlin";
  const SPRING = "2030-03-30T12:00";
  const AUTUMN = "2030-10-26T12:00";

  it("run a skipped time as much later, as Temporal has it, and not where croner would", () => {
    expect(next("30 2 * * *", BERLIN, SPRING, 2)).toEqual(["03-31T03:30:00+02:00", "04-01T02:30:00+02:00"]);
    expect(next("30 2 * * *", "America/New_York", "2027-03-13T12:00", 1)).toEqual(["03-14T03:30:00-04:00"]);
  });

  it("run it earlier, or not at all, where that is said", () => {
    expect(next("30 2 * * *", BERLIN, SPRING, 2, { gap: "earlier" })).toEqual([
      "03-31T01:30:00+01:00",
      "04-01T02:30:00+02:00",
    ]);
    expect(next("30 2 * * *", BERLIN, SPRING, 1, { gap: "skip" })).toEqual(["04-01T02:30:00+02:00"]);
  });

  it("run once what two times of a day become, and in the order of the instants", () => {
    expect(next("30 2,3 * * *", BERLIN, SPRING, 2)).toEqual(["03-31T03:30:00+02:00", "04-01T02:30:00+02:00"]);
    expect(next("0,45 2,3 * * *", BERLIN, SPRING, 3)).toEqual([
      "03-31T03:00:00+02:00",
      "03-31T03:45:00+02:00",
      "04-01T02:00:00+02:00",
    ]);
    expect(next("40 1,2 * * *", BERLIN, SPRING, 2, { gap: "earlier" })).toEqual([
      "03-31T01:40:00+01:00",
      "04-01T01:40:00+02:00",
    ]);
    expect(next("10 1 * * *", BERLIN, SPRING, 1, { gap: "earlier" })).toEqual(["03-31T01:10:00+01:00"]);
    expect(next("20 1 31 * *", BERLIN, SPRING, 1)).toEqual(["03-31T01:20:00+01:00"]);
  });

  it("run a repeated time at the first of the two", () => {
    expect(next("30 2 * * *", BERLIN, AUTUMN, 2)).toEqual(["10-27T02:30:00+02:00", "10-28T02:30:00+01:00"]);
    expect(next("30 2 * * *", BERLIN, AUTUMN, 2, { overlap: "later" })).toEqual([
      "10-27T02:30:00+01:00",
      "10-28T02:30:00+01:00",
    ]);
    expect(next("30 2 * * *", BERLIN, AUTUMN, 3, { overlap: "both" })).toEqual([
      "10-27T02:30:00+02:00",
      "10-27T02:30:00+01:00",
      "10-28T02:30:00+01:00",
    ]);
  });

  it("do not disturb what happens every few minutes", () => {
    expect(next("*/30 * * * *", BERLIN, "2030-03-31T01:00", 4)).toEqual([
      "03-31T01:00:00+01:00",
      "03-31T01:30:00+01:00",
      "03-31T03:00:00+02:00",
      "03-31T03:30:00+02:00",
    ]);
    expect(next("*/30 * * * *", BERLIN, "2030-10-27T02:00:00+02:00", 5)).toEqual([
      "10-27T02:00:00+02:00",
      "10-27T02:30:00+02:00",
      "10-27T02:00:00+01:00",
      "10-27T02:30:00+01:00",
      "10-27T03:00:00+01:00",
    ]);
  });

  it("a change of half an hour (Lord Howe), of a day (Samoa) or at midnight (Santiago) follows the same rules", () => {
    expect(next("15 2 * * *", "Australia/Lord_Howe", "2030-10-05T12:00", 1)).toEqual([
      "10-06T02:45:00+11:00",
    ]);
    expect(next("0 12 * * *", "Pacific/Apia", "2011-12-29T11:00", 3, { gap: "skip" })).toEqual([
      "12-29T12:00:00-10:00",
      "12-31T12:00:00+14:00",
      "01-01T12:00:00+14:00",
    ]);
    expect(next("0 0 * * *", "America/Santiago", "2025-09-06T12:00", 2)).toEqual([
      "09-07T01:00:00-03:00",
      "09-08T00:00:00-03:00",
    ]);
  });

  it("in every zone each instant shows a time that matches, or was moved out of a gap", () => {
    const zones = [BERLIN, "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns"];
    fc.assert(
      fc.property(
        fc.constantFrom(...zones),
        fc.integer({ min: Date.UTC(2029, 0, 1), max: Date.UTC(2031, 0, 1) }),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        (zone, from, hour, minute) => {
          const instants = new Instants(schedule({ cron: `${minute} ${hour} * * *`, zone }));
          const at = instants.after(from) as number;
          const day = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(zone).toPlainDate();
          // What Temporal makes of that time of day, today or tomorrow: the first one after `from`.
          const expected = [0, 1]
            .map((days) =>
              day
                .add({ days })
                .toPlainDateTime({ hour, minute })
                .toZonedDateTime(zone, { disambiguation: "compatible" }),
            )
            .map(({ epochMilliseconds }) => epochMilliseconds)
            .find((instant) => instant > from);
          expect(at).toBe(expected);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("the last instant up to now", () => {
  it("is found without counting what lies between", () => {
    const at = (cron: string, zone = "UTC") => new Instants(schedule({ cron, zone }));
    const now = Date.UTC(2030, 6, 1, 9, 30, 15, 500);
    expect(at("* * * * * *").lastUpTo(now, 0)).toBe(now - 500);
    expect(at("0 3 * * *").lastUpTo(now, Date.UTC(2020, 0, 1))).toBe(Date.UTC(2030, 6, 1, 3));
    expect(at("0 0 1 1 *").lastUpTo(now, Date.UTC(2000, 0, 1))).toBe(Date.UTC(2030, 0, 1));
    expect(at("* * 3 * * *").lastUpTo(now, Date.UTC(2030, 5, 1))).toBe(Date.UTC(2030, 6, 1, 3, 59, 59));
    expect(at("0 3 * * *").lastUpTo(now, Date.UTC(2030, 6, 1, 3))).toBeNull();
    expect(at("0 3 * * *").lastUpTo(Date.UTC(2030, 6, 1, 3), Date.UTC(2030, 6, 1, 2))).toBe(
      Date.UTC(2030, 6, 1, 3),
    );
  });
});

describe("schedules by period", () => {
  it("fire at whole periods since 1970", () => {
    const instants = new Instants(schedule({ every: "15m" }));
    expect(instants.after(Date.UTC(2030, 0, 1, 10, 1))).toBe(Date.UTC(2030, 0, 1, 10, 15));
    expect(instants.after(Date.UTC(2030, 0, 1, 10, 15))).toBe(Date.UTC(2030, 0, 1, 10, 30));
    expect(instants.lastUpTo(Date.UTC(2030, 0, 1, 12, 44), Date.UTC(2029, 0, 1))).toBe(
      Date.UTC(2030, 0, 1, 12, 30),
    );
    expect(schedule({ every: "90s" })).toEqual(schedule({ cron: "@every 90s" }));
    expect(schedule({ every: "90s" })).toEqual(schedule({ cron: " @Every  90s " }));
  });

  it.each<[ScheduleOptions, string]>([
    [{ every: "500ms" }, "use whole seconds"],
    [{ every: "0s" }, "every"],
    [{ cron: "@every x" }, "cron"],
    [{ every: "5m", cron: "* * * * *" }, "leave it out"],
    [{ every: "5m", zone: "Europe/Berlin" }, "leave it out"],
    [{}, "cron"],
  ])("%j is refused", (options, message) => {
    expect(() => schedule(options)).toThrow(message);
  });
});
