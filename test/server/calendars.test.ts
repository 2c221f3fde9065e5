import { describe, expect, it } from "vitest";
import { openStage } from "./stage.ts";

const HOURS = "09:00-17:00";
const week = { mon: HOURS, tue: HOURS, wed: HOURS, thu: HOURS, fri: HOURS };
const frankfurt = { zone: "Europe/Berlin", week, days: [{ date: "2030-01-03", name: "Stocktaking" }] };
const PATH = "/admin/calendars/frankfurt";

describe("business calendars over HTTP (SEMANTICS 12)", () => {
  it("stores, lists, shows, explains and deletes", async () => {
    await using stage = await openStage();
    expect((await stage.get(PATH)).status).toBe(404);
    const put = await stage.call("PUT", PATH, frankfurt);
    expect([put.status, put.body.moved, put.body.calendar.days]).toEqual([200, 0, frankfurt.days]);
    expect((await stage.get("/admin/calendars")).body.items).toMatchObject([
      { name: "frankfurt", until: null },
    ]);
    const when = { calendar: "frankfurt", working_days: 2, at: "17:00", cut_off: "15:00" };
    const { body } = await stage.post("/admin/when", { when, now: "2030-01-01T00:00:00Z" });
    expect(body).toMatchObject({ at: "2030-01-04T16:00:00.000Z", calendar: "frankfurt" });
    const deleted = await stage.call("DELETE", PATH);
    expect([deleted.status, deleted.body.deleted]).toEqual([200, true]);
  });

  it("reads an iCalendar text", async () => {
    await using stage = await openStage();
    const ics = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20300501\nSUMMARY:May Day\nEND:VEVENT\nEND:VCALENDAR";
    const { body } = await stage.call("PUT", PATH, { zone: "Europe/Berlin", week, ics, years: 50 });
    expect(body.calendar.days).toEqual([{ date: "2030-05-01", name: "May Day" }]);
  });

  it("a cron says its calendar, fires on its days, and keeps it from being deleted", async () => {
    await using stage = await openStage();
    await stage.call("PUT", PATH, frankfurt);
    const { status, body } = await stage.post("/cron", {
      name: "pay",
      expression: "0 9 5 * *",
      calendar: "frankfurt",
      closed_days: "previous",
      job_template: { type: "pay.all", args: [] },
    });
    expect([status, body.cron]).toEqual([
      201,
      expect.objectContaining({ calendar: "frankfurt", closed_days: "previous", timezone: "Europe/Berlin" }),
    ]);
    // 5 January 2030 is a Saturday.
    expect(body.cron.next_run_at).toBe("2030-01-04T08:00:00.000Z");
    expect((await stage.call("DELETE", PATH)).status).toBe(409);
    const changed = await stage.call("PATCH", "/cron/pay", { closed_days: "next" });
    expect(changed.body.cron.next_run_at).toBe("2030-01-07T08:00:00.000Z");
  });

  it.each([
    ["no zone", { week }],
    ["no working day", { ...frankfurt, week: {} }],
    ["hours that are none", { ...frankfurt, week: { mon: "9 to 5" } }],
    ["days and ics", { ...frankfurt, ics: "BEGIN:VCALENDAR" }],
    ["a file that is no calendar", { zone: "UTC", week, ics: "hello" }],
  ])("refuses %s", async (_what, sent) => {
    await using stage = await openStage();
    const { status, body } = await stage.call("PUT", PATH, sent);
    expect([status, body.error.message]).toEqual([400, expect.stringMatching(/.+/)]);
  });
});
