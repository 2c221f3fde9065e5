import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import {
  type BusinessCalendar,
  type CalendarInput,
  parseCalendar,
} from "../../../src/core/calendar/business-calendar.ts";
import {
  type BusinessTime,
  type BusinessTimeInput,
  resolveBusinessTime,
} from "../../../src/core/calendar/business-time.ts";
import { parseDay } from "../../../src/core/calendar/calendar-date.ts";
import { explainWhen, parseWhen } from "../../../src/core/timeout/when.ts";
import { THIRTY_ZONES } from "./thirty-zones.ts";

const at = (text: string) => Date.parse(text);
const WEEK = {
  mon: "09:00-17:00",
  tue: "09:00-17:00",
  wed: "09:00-17:00",
  thu: "09:00-17:00",
  fri: "09:00-17:00",
};
const calendar = (input: Partial<CalendarInput> = {}) =>
  parseCalendar({ zone: "Europe/Berlin", week: WEEK, ...input }, parseDay("2026-01-01", "from"), "calendar");
const named = (found: BusinessCalendar) => ({
  find: (name: string) => (name === "frankfurt" ? found : undefined),
});
const due = (when: Omit<BusinessTimeInput, "calendar">, now: string, found = calendar()) =>
  new Date(parseWhen({ calendar: "frankfurt", ...when }, at(now), "when", named(found)).dueAt).toISOString();

describe("times by a business calendar (SEMANTICS 12.2)", () => {
  it("counts working days from today before the cut-off, and from the next working day after it", () => {
    const when = { workingDays: 2, at: "17:00", cutOff: "15:00" };
    // Thursday, 14:59:59.999 and 15:00 in Berlin.
    expect(due(when, "2026-11-19T13:59:59.999Z")).toBe("2026-11-23T16:00:00.000Z");
    expect(due(when, "2026-11-19T14:00:00.000Z")).toBe("2026-11-24T16:00:00.000Z");
    // Saturday counts as Monday.
    expect(due(when, "2026-11-21T10:00:00.000Z")).toBe("2026-11-25T16:00:00.000Z");
  });

  it("leaves out holidays, and ends at the closing of a half day", () => {
    const found = calendar({
      days: [{ date: "2026-12-24", hours: "09:00-12:00", name: "Christmas Eve" }, { date: "2026-12-25" }],
    });
    expect(due({ workingDays: 1, at: "17:00" }, "2026-12-23T10:00:00Z", found)).toBe(
      "2026-12-24T11:00:00.000Z",
    );
    expect(due({ workingDays: 2, at: "close" }, "2026-12-23T10:00:00Z", found)).toBe(
      "2026-12-28T16:00:00.000Z",
    );
    // The half day has closed, so it is no longer day 0.
    expect(due({ workingDays: 0, at: "open" }, "2026-12-24T11:00:00Z", found)).toBe(
      "2026-12-28T08:00:00.000Z",
    );
  });

  it("opens a Saturday that has hours", () => {
    const found = calendar({ days: [{ date: "2026-11-21", hours: "10:00-14:00" }] });
    expect(due({ workingDays: 1 }, "2026-11-20T10:00:00Z", found)).toBe("2026-11-21T13:00:00.000Z");
  });

  it("counts back from a date, and a closed date stands for the working day before", () => {
    expect(due({ date: "2026-11-30", workingDays: -2, at: "17:00" }, "2026-11-01T00:00:00Z")).toBe(
      "2026-11-26T16:00:00.000Z",
    );
    expect(due({ date: "2026-11-29", workingDays: -1 }, "2026-11-01T00:00:00Z")).toBe(
      "2026-11-26T16:00:00.000Z",
    );
    expect(due({ date: "2026-11-29", workingDays: 1 }, "2026-11-01T00:00:00Z")).toBe(
      "2026-12-01T16:00:00.000Z",
    );
  });

  it("finds the next such time, never now", () => {
    expect(due({ at: "open" }, "2026-11-20T08:00:00Z")).toBe("2026-11-23T08:00:00.000Z");
    expect(due({ at: "open" }, "2026-11-20T07:59:59.999Z")).toBe("2026-11-20T08:00:00.000Z");
  });

  it("keeps the local time over a clock change", () => {
    // The Sunday of 2027-03-28 has 23 hours in Berlin.
    expect(due({ workingDays: 1, at: "close" }, "2027-03-26T09:00:00Z")).toBe("2027-03-29T15:00:00.000Z");
    const night = calendar({ week: { sat: "00:00-24:00", sun: "00:00-24:00", mon: "00:00-24:00" } });
    expect(due({ workingDays: 1, at: "02:30" }, "2027-03-27T09:00:00Z", night)).toBe(
      "2027-03-28T01:30:00.000Z",
    );
    expect(due({ workingDays: 0, at: "close" }, "2027-03-28T09:00:00Z", night)).toBe(
      "2027-03-28T22:00:00.000Z",
    );
    expect(() => due({ workingDays: 1, at: "02:30", gap: "reject" }, "2027-03-27T09:00:00Z", night)).toThrow(
      /when: "2027-03-28T02:30:00" is skipped/,
    );
  });

  it("says in words what it did, and that the holidays end", () => {
    const calendars = named(calendar({ until: "2026-11-20" }));
    const when = { calendar: "frankfurt", workingDays: 2, at: "17:00", cutOff: "15:00" };
    const { text, calendar: used, local } = explainWhen(when, { now: "2026-11-19T14:00:00Z", calendars });
    expect({ used, local }).toEqual({ used: "frankfurt", local: "2026-11-24T17:00:00" });
    expect(text).toBe(
      "2026-11-24T16:00:00.000Z = 2026-11-24T17:00:00+01:00 in Europe/Berlin: 2 working days after 2026-11-20 by the calendar frankfurt; today is closed or its cut-off has passed, so the next working day is day 0; its holidays are known until 2026-11-20, so this may change; 2026-11-24T17:00:00 exists once there",
    );
  });

  it.each([
    [{ calendar: "munich", workingDays: 1 }, /when.calendar: "munich" is not a known business calendar/],
    [{ calendar: "frankfurt", workingDays: 1.5 }, /when.workingDays: 1.5 .* whole days from 0 to 1000/],
    [{ calendar: "frankfurt", workingDays: 1_001 }, /when.workingDays: 1001/],
    [{ calendar: "frankfurt", workingDays: -1 }, /when.workingDays: -1 .* name the date to count back from/],
    [{ calendar: "frankfurt", at: "25:00" }, /when.at: "25:00"/],
    [{ calendar: "frankfurt", cutOff: "15:00" }, /when.cutOff: "15:00" .* with workingDays/],
    [{ calendar: "frankfurt", date: "2026-02-30" }, /when.date: "2026-02-30"/],
    [{ calendar: "frankfurt", zone: "UTC" }, /zone/],
  ])("refuses %j", (when, message) => {
    expect(() => parseWhen(when, 0, "when", named(calendar()))).toThrow(message);
    expect(() => parseWhen({ calendar: "x" }, 0)).toThrow(/calendars are records of an engine/);
  });

  it.each([
    [{ week: {} }, /calendar: the calendar has no working day between 2026-01-01 and 2036-01-02/],
    [{ week: { mon: "17:00-09:00" } }, /calendar.week.mon: "17:00-09:00"/],
    [{ week: { mon: "9-17" } }, /calendar.week.mon/],
    [{ week: { monday: "09:00-17:00" } }, /monday/],
    [{ zone: "Atlantis/Capital" }, /calendar.zone/],
    [{ days: [{ date: "2026-13-01" }] }, /calendar.days\[0\].date/],
    [{ days: [{ date: "2026-12-25" }, { date: "2026-12-25" }] }, /calendar.days\[1\].date/],
    [
      { days: Array.from({ length: 2_001 }, () => ({ date: "2026-12-25" })) },
      /calendar.days: 2001 .* at most 2000/,
    ],
    [{ until: "soon" }, /calendar.until/],
  ])("a calendar refuses %j", (input, message) => {
    expect(() => calendar(input as Partial<CalendarInput>)).toThrow(message);
  });
});

/** Walks day by day on Temporal's own types, and knows nothing of the code under test. */
function naive(input: CalendarInput, when: Omit<BusinessTimeInput, "calendar">, now: number): number {
  const special = new Map((input.days ?? []).map((day) => [day.date, day]));
  const names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
  const hours = (day: Temporal.PlainDate): [string, string] | null => {
    const found = special.get(day.toString());
    const text = found ? found.hours : input.week[names[day.dayOfWeek - 1] as "mon"];
    return text === undefined ? null : (text.split("-") as [string, string]);
  };
  const instant = (day: Temporal.PlainDate, time: string) => {
    const local =
      time === "24:00"
        ? day.add({ days: 1 }).toPlainDateTime()
        : day.toPlainDateTime(Temporal.PlainTime.from(time));
    return local.toZonedDateTime(input.zone, { disambiguation: "compatible" }).epochMilliseconds;
  };
  const timeOn = (day: Temporal.PlainDate) => {
    const [opens, closes] = hours(day) as [string, string];
    const { at: wanted = "close" } = when;
    if (wanted === "open" || wanted < opens) return opens;
    return wanted === "close" || wanted > closes ? closes : wanted;
  };
  const today = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(input.zone).toPlainDate();
  if (when.workingDays === undefined) {
    for (let day = today; ; day = day.add({ days: 1 }))
      if (hours(day) && instant(day, timeOn(day)) > now) return instant(day, timeOn(day));
  }
  const back = when.workingDays < 0;
  let day = when.date === undefined ? today : Temporal.PlainDate.from(when.date);
  if (when.date === undefined) {
    const open = hours(day);
    const end = open && (when.cutOff !== undefined && when.cutOff < open[1] ? when.cutOff : open[1]);
    if (end === null || now >= instant(day, end)) day = day.add({ days: 1 });
  }
  while (!hours(day)) day = day.add({ days: back ? -1 : 1 });
  for (let left = Math.abs(when.workingDays); left > 0; ) {
    day = day.add({ days: back ? -1 : 1 });
    if (hours(day)) left -= 1;
  }
  return instant(day, timeOn(day));
}

const START = at("2000-01-01T00:00:00Z");
const FIFTY_YEARS = 50 * 365.25 * 86_400_000;
const date = fc
  .integer({ min: 0, max: 50 * 365 })
  .map((days) => new Date(START + days * 86_400_000).toISOString().slice(0, 10));
const time = fc.integer({ min: 0, max: 1_439 }).map((minutes) => {
  const pad = (value: number) => String(value).padStart(2, "0");
  return `${pad(Math.floor(minutes / 60))}:${pad(minutes % 60)}`;
});
const hoursText = fc
  .tuple(time, fc.oneof(time, fc.constant("24:00")))
  .map(([a, b]) => (a < b ? `${a}-${b}` : b < a ? `${b}-${a}` : `00:00-24:00`));
const anyCalendar = fc.record({
  zone: fc.constantFrom(...THIRTY_ZONES),
  week: fc
    .tuple(
      fc.constantFrom("mon", "tue", "wed", "thu", "fri"),
      fc.record(
        {
          mon: hoursText,
          tue: hoursText,
          wed: hoursText,
          thu: hoursText,
          fri: hoursText,
          sat: hoursText,
          sun: hoursText,
        },
        { requiredKeys: [] },
      ),
    )
    .chain(([always, week]) => hoursText.map((open) => ({ ...week, [always]: open }))),
  days: fc.uniqueArray(fc.record({ date, hours: hoursText }, { requiredKeys: ["date"] }), {
    selector: (day) => day.date,
    maxLength: 400,
  }),
});
const anyWhen = fc.oneof(
  fc.record({ at: fc.oneof(time, fc.constant("open"), fc.constant("close")) }, { requiredKeys: [] }),
  fc.record(
    { workingDays: fc.integer({ min: 0, max: 60 }), at: time, cutOff: time },
    { requiredKeys: ["workingDays"] },
  ),
  fc.record(
    { workingDays: fc.integer({ min: -60, max: 60 }), date, at: time },
    { requiredKeys: ["workingDays", "date"] },
  ),
);

/** `CURFEW_CALENDAR_RUNS=100000` goes on for longer. */
const RUNS = Number(process.env.CURFEW_CALENDAR_RUNS ?? 300);

describe("against a model that walks day by day: 50 years, 30 zones, random holidays", () => {
  it("resolves to the same instant, and to the same again from its stored form", () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(anyCalendar, anyWhen, fc.integer({ min: 0, max: FIFTY_YEARS }), (input, when, offset) => {
        const now = START + offset;
        const found = calendar(input as CalendarInput);
        const parsed = parseWhen({ calendar: "frankfurt", ...when }, now, "when", named(found));
        expect(parsed.dueAt).toBe(naive(input as CalendarInput, when as BusinessTimeInput, now));
        const { wallClock } = parsed as { wallClock: BusinessTime };
        const stored = JSON.parse(JSON.stringify(wallClock)) as BusinessTime;
        expect(resolveBusinessTime(stored, named(found))).toBe(parsed.dueAt);
        seen.add(input.zone);
      }),
      { numRuns: RUNS },
    );
    expect(seen.size).toBe(THIRTY_ZONES.length);
  });
});
