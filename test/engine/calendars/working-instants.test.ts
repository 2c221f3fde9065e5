import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { describe, expect, it } from "vitest";
import { type CalendarInput, parseCalendar } from "../../../src/core/calendar/business-calendar.ts";
import { parseDay } from "../../../src/core/calendar/calendar-date.ts";
import { parseCron } from "../../../src/core/cron/cron.ts";
import { parseSchedule, type ScheduleOptions, scheduleInstants } from "../../../src/core/cron/expression.ts";
import { instantsOf, preview } from "../../../src/core/cron/instants-of.ts";
import { THIRTY_ZONES } from "./thirty-zones.ts";

const HOURS = "09:00-17:00";
const WEEK = { mon: HOURS, tue: HOURS, wed: HOURS, thu: HOURS, fri: HOURS };
const BERLIN: CalendarInput = { zone: "Europe/Berlin", week: WEEK, days: [{ date: "2026-12-25" }] };
const calendarsOf = (input: CalendarInput) => {
  const calendar = parseCalendar(input, parseDay("2026-01-01", "from"), "calendar");
  return { find: (name: string) => (name === "c" ? calendar : undefined) };
};
const next = (options: ScheduleOptions, from: string, count = 3, input = BERLIN) => {
  const calendars = calendarsOf(input);
  const schedule = parseSchedule({ calendar: "c", ...options }, "", calendars);
  return preview(schedule, Date.parse(from), count, calendars).map(({ local }) => local);
};

describe("crons on working days (SEMANTICS 12.4)", () => {
  it("leaves out closed days", () => {
    expect(next({ cron: "0 9 * * *" }, "2026-12-23T12:00:00Z")).toEqual([
      "2026-12-24T09:00:00",
      "2026-12-28T09:00:00",
      "2026-12-29T09:00:00",
    ]);
  });

  it("moves a closed day to the working day after or before it, and runs once for both", () => {
    // 25 July 2026 is a Saturday, 25 October a Sunday, 25 December a holiday on a Friday.
    expect(next({ cron: "0 9 25 * *", closed: "previous" }, "2026-07-01T00:00:00Z", 6)).toEqual([
      "2026-07-24T09:00:00",
      "2026-08-25T09:00:00",
      "2026-09-25T09:00:00",
      "2026-10-23T09:00:00",
      "2026-11-25T09:00:00",
      "2026-12-24T09:00:00",
    ]);
    expect(next({ cron: "0 9 25-28 12 *", closed: "next" }, "2026-12-01T00:00:00Z", 2)).toEqual([
      "2026-12-28T09:00:00",
      "2027-12-27T09:00:00",
    ]);
    expect(next({ cron: "0 17 L * *", closed: "previous" }, "2026-10-01T00:00:00Z", 2)).toEqual([
      "2026-10-30T17:00:00",
      "2026-11-30T17:00:00",
    ]);
  });

  it("is in the calendar's zone", () => {
    const calendars = calendarsOf(BERLIN);
    expect(parseSchedule({ cron: "0 9 * * *", calendar: "c" }, "", calendars).zone).toBe("Europe/Berlin");
  });

  it.each([
    [{ cron: "0 9 * * *", calendar: "other" }, /calendar: "other" is not a known business calendar/],
    [{ cron: "0 9 * * *", calendar: "c", zone: "UTC" }, /zone: "UTC" .* the calendar's zone, Europe\/Berlin/],
    [{ cron: "0 9 * * *", closed: "next" }, /closed: "next" .* name the calendar/],
    [{ cron: "0 * * * *", calendar: "c", closed: "next" }, /closed: "next" .* one time of day/],
    [{ cron: "0 9 * * *", calendar: "c", closed: "never" }, /closed: "never"/],
    [{ every: "5m", calendar: "c" }, /calendar: "c" .* leave it out/],
    [
      { cron: "0 9 * * SUN", calendar: "c" },
      /cron: "0 9 \* \* SUN" .* names no working day of c within ten years/,
    ],
  ])("refuses %j", (options, message) => {
    const calendars = calendarsOf(BERLIN);
    expect(() => parseCron(options as ScheduleOptions, Date.parse("2026-01-01"), "", calendars)).toThrow(
      message,
    );
  });
});

const START = Date.parse("2000-01-01T00:00:00Z");
const DAY = 86_400_000;
const date = fc
  .integer({ min: 0, max: 50 * 365 })
  .map((days) => new Date(START + days * DAY).toISOString().slice(0, 10));
const hours = fc.constantFrom("00:00-24:00", "09:00-17:00", "22:00-23:30");
const anyCalendar = fc.record({
  zone: fc.constantFrom(...THIRTY_ZONES),
  week: fc
    .record({ mon: hours, tue: hours, thu: hours, sat: hours, sun: hours }, { requiredKeys: [] })
    .map((week) => ({ ...week, wed: "09:00-17:00" })),
  days: fc.uniqueArray(fc.record({ date, hours }, { requiredKeys: ["date"] }), {
    selector: (day) => day.date,
    maxLength: 200,
  }),
});
const clockChange = fc.record(
  { gap: fc.constantFrom("later", "earlier", "skip"), overlap: fc.constantFrom("earlier", "later", "both") },
  { requiredKeys: [] },
);

/** The model asks this for every day. */
function opens({ week, days = [] }: CalendarInput, day: Temporal.PlainDate): boolean {
  const special = days.find(({ date }) => date === day.toString());
  const names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;
  return special ? special.hours !== undefined : week[names[day.dayOfWeek - 1] as "mon"] !== undefined;
}

/** Moves one named day to its working day, and its local time to its instants, on Temporal's own types. */
function movedTo(
  input: CalendarInput,
  { gap, overlap }: { gap: string; overlap: string },
  named: Temporal.PlainDate,
  time: string,
  step: 1 | -1,
): number[] {
  let day = named;
  while (!opens(input, day)) day = day.add({ days: step });
  const local = day.toPlainDateTime(Temporal.PlainTime.from(time));
  const [early, late] = (["earlier", "later"] as const).map((disambiguation) =>
    local.toZonedDateTime(input.zone, { disambiguation }),
  ) as [Temporal.ZonedDateTime, Temporal.ZonedDateTime];
  const [a, b] = [early.epochMilliseconds, late.epochMilliseconds];
  if (a === b) return [a];
  if (early.toPlainDateTime().equals(local))
    return overlap === "both" ? [a, b] : [overlap === "later" ? b : a];
  return gap === "skip" ? [] : [gap === "earlier" ? a : b];
}

const RUNS = Number(process.env.CURFEW_CALENDAR_RUNS ?? 60);

describe("against a model that asks every day: 50 years, 30 zones, random holidays", () => {
  it("skip: the instants of the expression that fall on working days", () => {
    const crons = fc.constantFrom(
      "30 0 * * *",
      "15 */7 * * *",
      "0 9 * * *",
      "*/20 23,0,1 * * *",
      "0 12 1,15 * *",
      "30 2 * * 3,6",
    );
    fc.assert(
      fc.property(
        anyCalendar,
        crons,
        clockChange,
        fc.integer({ min: 0, max: 50 * 365 * DAY }),
        (input, cron, change, offset) => {
          const calendars = calendarsOf(input as CalendarInput);
          const schedule = parseSchedule(
            { cron, calendar: "c", clockChange: change } as ScheduleOptions,
            "",
            calendars,
          );
          const all = scheduleInstants(schedule);
          const expected: number[] = [];
          for (let at = all.after(START + offset); at !== null && expected.length < 12; at = all.after(at)) {
            const day = Temporal.Instant.fromEpochMilliseconds(at)
              .toZonedDateTimeISO(input.zone)
              .toPlainDate();
            if (opens(input as CalendarInput, day)) expected.push(at);
          }
          const found: number[] = [];
          const source = instantsOf(schedule, calendars);
          for (let at = source.after(START + offset); at !== null && found.length < 12; at = source.after(at))
            found.push(at);
          expect(found).toEqual(expected);
          expect(source.lastUpTo(found[11] as number, START + offset)).toBe(found[11]);
          expect(source.lastUpTo((found[11] as number) - 1, START + offset)).toBe(found[10]);
        },
      ),
      { numRuns: RUNS },
    );
  });

  it("next and previous: every named day, moved to its working day", () => {
    const crons = fc.constantFrom<[string, string, (day: Temporal.PlainDate) => boolean]>(
      ["0 9 * * *", "09:00", () => true],
      ["30 0 25 * *", "00:30", ({ day }) => day === 25],
      ["30 2 * * 0,6", "02:30", ({ dayOfWeek }) => dayOfWeek >= 6],
      ["59 23 1,2,3 * *", "23:59", ({ day }) => day <= 3],
    );
    const moves = fc.constantFrom<["next" | "previous", 1 | -1]>(["next", 1], ["previous", -1]);
    fc.assert(
      fc.property(
        anyCalendar,
        crons,
        moves,
        clockChange,
        fc.integer({ min: 0, max: 50 * 365 * DAY }),
        (input, [cron, time, names], [closed, step], change, offset) => {
          const calendars = calendarsOf(input as CalendarInput);
          const schedule = parseSchedule(
            { cron, calendar: "c", closed, clockChange: change } as ScheduleOptions,
            "",
            calendars,
          );
          const from = START + offset;
          const expected = new Set<number>();
          let day = Temporal.Instant.fromEpochMilliseconds(from)
            .toZonedDateTimeISO(input.zone)
            .toPlainDate()
            .subtract({ days: 40 });
          for (let days = 0; days < 240; days++, day = day.add({ days: 1 }))
            if (names(day))
              for (const at of movedTo(input as CalendarInput, schedule, day, time, step))
                if (at > from) expected.add(at);
          const wanted = [...expected].sort((a, b) => a - b).slice(0, 3);
          const source = instantsOf(schedule, calendars);
          const found: number[] = [];
          for (
            let at = source.after(from);
            at !== null && found.length < wanted.length;
            at = source.after(at)
          )
            found.push(at);
          expect(found).toEqual(wanted);
          expect(found.length).toBe(3);
        },
      ),
      { numRuns: RUNS },
    );
  });
});
