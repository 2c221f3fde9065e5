import { describe, expect, it } from "vitest";
import { parseSchedule } from "../../src/core/cron/expression.ts";
import { preview } from "../../src/core/cron/instants-of.ts";
import { cronWords } from "../../src/dashboard/pages/crons/cron-words.ts";
import { nextInstants, offsetText } from "../../src/dashboard/pages/crons/instants.ts";

describe("a cron in words", () => {
  it.each([
    ["* * * * *", "every minute"],
    ["*/10 * * * *", "every 10 minutes"],
    ["0 * * * *", "every hour"],
    ["@hourly", "every hour"],
    ["@daily", "at 00:00"],
    ["@every 5m", "every 5 minutes"],
    ["@every 1d", "every day"],
    ["@weekly", "at 00:00 every Sunday"],
    ["@yearly", "at 00:00 on day 1 in January"],
    ["0 */6 * * *", "every 6 hours"],
    ["15 * * * *", "at minute 15 of every hour"],
    ["0 3 * * 1-5", "at 03:00 from Monday to Friday"],
    ["0 3 * * MON-FRI", "at 03:00 from Monday to Friday"],
    ["30 9,17 * * *", "at 09:30 and 17:30"],
    ["0 9 * * 1,3", "at 09:00 on Monday and Wednesday"],
    ["0 9 * * 7", "at 09:00 every Sunday"],
    ["0 9 1 * *", "at 09:00 on day 1 of each month"],
    ["0 9 L * *", "at 09:00 on the last day of each month"],
    ["0 9 * * 5#2", "at 09:00 on the second Friday of each month"],
    ["0 9 15 3,6 *", "at 09:00 on day 15 in March and June"],
    ["*/5 9-17 * * *", "every 5 minutes from 09:00 to 17:59"],
    ["30 0 3 * * *", "at 03:00:30"],
    ["*/15 * * * * *", "every 15 seconds"],
  ])("%s is %s", (expression, words) => {
    expect(cronWords(expression)).toBe(words);
  });

  it("leaves what is no expression as it is", () => {
    expect(cronWords("<b>never</b>")).toBe("<b>never</b>");
  });
});

describe("the next instants of a cron", () => {
  const zones = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
  ];
  const expressions = [
    "*/10 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 3 * * 1-5",
    "30 1 * * *",
    "0 9 1 * *",
    "0 0 29 2 *",
    "15 0 * * 0",
  ];
  // Before the clocks change in the north and in the south, both ways, and on an ordinary day.
  const starts = [
    "2026-11-02T15:00:00Z",
    "2027-03-27T12:00:00Z",
    "2026-10-24T12:00:00Z",
    "2027-03-13T12:00:00Z",
    "2026-10-31T12:00:00Z",
    "2027-04-03T12:00:00Z",
  ];

  it.each(zones)("are those of the server in %s, also when the clocks change", (zone) => {
    for (const expression of expressions)
      for (const start of starts) {
        const from = Date.parse(start);
        const schedule = parseSchedule({ cron: expression, zone }, "");
        const wanted = preview(schedule, from, 8).map(({ at }) => at);
        const found = nextInstants(expression, zone, from, 8).map(({ at }) => at);
        expect(found, `${expression} from ${start}`).toEqual(wanted);
      }
  });

  it("say what a clock change does to them", () => {
    const skipped = nextInstants("30 2 * * *", "Europe/Berlin", Date.parse("2027-03-27T12:00:00Z"), 2);
    expect(skipped.map(({ change }) => change)).toEqual(["skipped", null]);
    const repeated = nextInstants("30 2 * * *", "Europe/Berlin", Date.parse("2026-10-24T12:00:00Z"), 2);
    expect(repeated.map(({ change }) => change)).toEqual(["repeated", null]);
    expect(repeated.map(({ offset }) => offsetText(offset))).toEqual(["UTC+2", "UTC+1"]);
  });

  it("are none where expression or zone cannot be read", () => {
    expect(nextInstants("never", "UTC", 0, 5)).toEqual([]);
    expect(nextInstants("0 0 * * *", "Mars/Olympus", 0, 5)).toEqual([]);
    expect(nextInstants("0 0 30 2 *", "UTC", 0, 5)).toEqual([]);
  });
});
