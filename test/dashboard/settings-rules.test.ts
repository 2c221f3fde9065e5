import { describe, expect, it } from "vitest";
import { detailsText, jobsText, namedTarget } from "../../src/dashboard/pages/audit/details-text.ts";
import {
  daysText,
  monthBy,
  monthOf,
  openText,
  readDays,
  weekWords,
} from "../../src/dashboard/pages/calendars/calendar-words.ts";
import { apart } from "../../src/dashboard/pages/job/timeline/axis-labels.ts";
import { runsOf } from "../../src/dashboard/pages/job/timeline/runs.ts";
import { readWeights, weightsText } from "../../src/dashboard/pages/queue/weights.ts";
import { fieldsOf } from "../../src/dashboard/pages/schemas/schema-words.ts";

const week = { mon: "09:00-17:00", tue: "09:00-17:00", wed: "09:00-17:00", fri: "09:00-15:00" };

describe("a business calendar", () => {
  it("says its week in a line", () => {
    expect(weekWords({ week })).toBe("Mo to We 09:00-17:00, Fr 09:00-15:00");
    expect(weekWords({ week: {} })).toBe("closed on all days of the week");
    expect(["09:00-17:00", "10:30-12:00", "00:00-24:00"].map(openText)).toEqual(["9–17", "10:30–12", "0–24"]);
  });

  it("has whole weeks from Monday, whatever the zone of the browser, and other days in them", () => {
    const days = [
      { date: "2026-12-24", hours: "09:00-12:00", name: "Christmas Eve" },
      { date: "2026-12-25" },
    ];
    const cells = monthOf({ name: "a", zone: "Asia/Tokyo", week, days }, "2026-12") ?? [];
    expect(cells).toHaveLength(35);
    expect(cells[0]).toMatchObject({ date: "2026-11-30", isInMonth: false, hours: "09:00-17:00" });
    expect(cells.find(({ date }) => date === "2026-12-24")).toMatchObject({
      isSpecial: true,
      name: "Christmas Eve",
    });
    expect(cells.find(({ date }) => date === "2026-12-25")).toMatchObject({ isSpecial: true, hours: null });
    expect(cells.find(({ date }) => date === "2026-12-26")).toMatchObject({ isSpecial: false, hours: null });
    for (const month of ["2026-13", "<b>", "", "26-1"])
      expect(monthOf({ name: "a", zone: "UTC", week, days }, month)).toBeNull();
    expect([monthBy("2026-12", 1), monthBy("2026-01", -1)]).toEqual(["2027-01", "2025-12"]);
  });

  it("is written as lines, and read back the same", () => {
    const days = [
      { date: "2026-12-24", hours: "09:00-12:00", name: "Christmas Eve" },
      { date: "2026-12-25", name: "Christmas" },
      { date: "2026-12-26" },
    ];
    expect(readDays(daysText(days))).toEqual({ days });
    expect(readDays("Christmas").error).toContain("Christmas");
  });
});

describe("weights of fair turns", () => {
  it("are written as lines, and read back the same", () => {
    const weights = { enterprise: 5, "a key with spaces": 2 };
    expect(readWeights(weightsText(weights))).toEqual({ weights });
    for (const line of ["enterprise", "enterprise 0", "enterprise 1001", "5"])
      expect(readWeights(line).error, line).toContain(line);
  });
});

describe("a schema", () => {
  it("is said field by field", () => {
    const fields = fieldsOf({
      type: "array",
      minItems: 1,
      prefixItems: [
        {
          type: "object",
          required: ["cents"],
          properties: {
            cents: { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
            lines: { type: "array", items: { enum: ["book", "lamp"] } },
          },
        },
      ],
    });
    expect(fields.map(({ path, is, isRequired }) => [path, is, isRequired])).toEqual([
      ["args[0]", "object", true],
      ["args[0].cents", "integer, at least 1", true],
      ["args[0].lines", "array", false],
      ["args[0].lines[]", 'one of "book", "lamp"', false],
    ]);
  });
});

describe("an entry of the audit", () => {
  it("says limits as code does, and leaves out what the target says already", () => {
    const details = { attempt: 45_000, cron: "digest", to: 3 };
    expect(detailsText({ action: "job.extend", details })).toBe("attempt 45s, to 3");
    expect(detailsText({ action: "job.cancel" })).toBe("");
    const jobs = ["a", "b", "c", "d", "e"];
    expect(detailsText({ action: "bulk.delete", details: { jobs } })).toBe("jobs a b c and 2 more");
    expect(jobsText({ details: { jobs } })).toBe("5 jobs");
    expect(jobsText({})).toBe("–");
  });

  it("leads to what it names, but takes the type of jobs for a schema only where one was changed", () => {
    const details = { type: "card.charge", version: 2 };
    expect(namedTarget({ action: "schema.put", details })).toEqual({
      name: "card.charge",
      path: "schemas/card.charge",
    });
    expect(detailsText({ action: "schema.put", details })).toBe("version 2");
    expect(namedTarget({ action: "job.retry", details })).toBeUndefined();
    expect(detailsText({ action: "job.retry", details })).toBe("type card.charge, version 2");
    expect(namedTarget({ action: "cron.pause", details: { cron: "a b" } })?.path).toBe("crons/a%20b");
  });
});

describe("the timeline", () => {
  it("has no attempt for a job that expired before its start", () => {
    const error = {
      type: "TimeoutError",
      message: "Expired",
      attempt: 0,
      occurred_at: "2026-11-02T15:00:00Z",
    };
    const job = { state: "discarded", attempt: 0, errors: [error], discarded_at: error.occurred_at };
    expect(runsOf(job as never, [])).toEqual([]);
  });

  it("leaves out labels of the axis that have no room", () => {
    const label = (x: number, text = "Wed 12:35") => ({ at: x, x, text });
    expect(apart([label(10), label(14), label(22)], []).map(({ x }) => x)).toEqual([10, 22]);
    expect(apart([label(10)], [[8, 12]])).toEqual([]);
  });
});
