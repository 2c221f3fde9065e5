import { describe, expect, it } from "vitest";
import { icsHolidays } from "./ics.ts";

const file = (...events: string[]) =>
  [
    "BEGIN:VCALENDAR",
    "VERSION:2.0",
    ...events.map((event) => `BEGIN:VEVENT\r\n${event}\r\nEND:VEVENT`),
    "END:VCALENDAR",
    "",
  ].join("\r\n");
const days = (text: string, from = "2026-01-01", to = "2028-12-31") => icsHolidays(text).days({ from, to });

describe("holidays from iCalendar files (SEMANTICS 12.5)", () => {
  it("reads all-day events, folded lines, escapes and spans", () => {
    const text = file(
      "DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261227\r\nSUMMARY:Christmas\\, both\r\n  days",
      "DTSTART;VALUE=DATE:20270101\r\nSUMMARY;LANGUAGE=en:New Year",
      "DTSTART;VALUE=DATE:20270329\r\nDURATION:P1D\r\nSUMMARY:Easter Monday",
      "DTSTART;VALUE=DATE:20270501\r\nSTATUS:CANCELLED\r\nSUMMARY:off",
    );
    expect(days(text)).toEqual([
      { date: "2026-12-25", name: "Christmas, both days" },
      { date: "2026-12-26", name: "Christmas, both days" },
      { date: "2027-01-01", name: "New Year" },
      { date: "2027-03-29", name: "Easter Monday" },
    ]);
  });

  it("repeats yearly events by date and by weekday, up to their end, without their exceptions", () => {
    const dates = (rule: string, start = "20200101") =>
      (days(file(`DTSTART;VALUE=DATE:${start}\r\n${rule}`)) as { date: string }[]).map(({ date }) => date);
    expect(dates("RRULE:FREQ=YEARLY")).toEqual(["2026-01-01", "2027-01-01", "2028-01-01"]);
    expect(dates("RRULE:FREQ=YEARLY;COUNT=8")).toEqual(["2026-01-01", "2027-01-01"]);
    expect(dates("RRULE:FREQ=YEARLY;UNTIL=20270101")).toEqual(["2026-01-01", "2027-01-01"]);
    expect(dates("RRULE:FREQ=YEARLY;INTERVAL=4")).toEqual(["2028-01-01"]);
    expect(dates("RRULE:FREQ=YEARLY\r\nEXDATE;VALUE=DATE:20270101")).toEqual(["2026-01-01", "2028-01-01"]);
    expect(dates("RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "20201126")).toEqual([
      "2026-11-26",
      "2027-11-25",
      "2028-11-23",
    ]);
    expect(dates("RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO", "20200525")).toEqual([
      "2026-05-25",
      "2027-05-31",
      "2028-05-29",
    ]);
    expect(dates("RRULE:FREQ=YEARLY", "20240229")).toEqual(["2028-02-29"]);
  });

  it.each([
    ["no calendar", /BEGIN:VCALENDAR/],
    [file("DTSTART:20261224T120000\r\nSUMMARY:half"), /ics event "half".DTSTART: .* has a time of day/],
    [file("SUMMARY:no day"), /ics event "no day".DTSTART/],
    [file("DTSTART;VALUE=DATE:20261301\r\nSUMMARY:month 13"), /20261301|2026-13-01/],
    [file("DTSTART;VALUE=DATE:20260101\r\nRRULE:FREQ=MONTHLY"), /RRULE: "FREQ=MONTHLY"/],
    [file("DTSTART;VALUE=DATE:20260101\r\nRRULE:FREQ=YEARLY;BYSETPOS=1"), /RRULE/],
    [file("DTSTART;VALUE=DATE:20260101\r\nRDATE:20260102"), /RDATE/],
    [file("DTSTART;VALUE=DATE:20260101\r\nDTEND;VALUE=DATE:20270101"), /DTEND: "20270101" .* 1 to 100 days/],
    [file("DTSTART;VALUE=DATE:20260102\r\nDTEND;VALUE=DATE:20260101"), /DTEND/],
    ["BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20260101", /cut off/],
    ["x".repeat(1_000_001), /at most 1000000 characters/],
    [
      file(`DTSTART;VALUE=DATE:20260101\r\nEXDATE:${"20260101,".repeat(100)}20260101`),
      /EXDATE: 101 .* leave out at most 100 days/,
    ],
    [
      file(...Array.from({ length: 100 }, () => "DTSTART;VALUE=DATE:00010101\r\nRRULE:FREQ=YEARLY")),
      /its events have too many days and years/,
    ],
  ])("refuses what it cannot read: %#", (text, message) => {
    expect(() => days(text)).toThrow(message);
  });

  it("leaves out events with a time of day if told to", () => {
    const text = file("DTSTART:20261224T120000\r\nSUMMARY:half", "DTSTART;VALUE=DATE:20261225");
    expect(icsHolidays(text, { timed: "ignore" }).days({ from: "2026-01-01", to: "2026-12-31" })).toEqual([
      { date: "2026-12-25" },
    ]);
  });
});
