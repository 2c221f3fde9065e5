import { describe, expect, it } from "vitest";
import { Engine } from "../../../src/engine/engine.ts";
import { type CalendarDay, defineJob, icsHolidays } from "../../../src/index.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import { jobsOf } from "../../../src/testing/read-store.ts";
import { diary } from "../saga-stage.ts";
import { openStage, type Stage } from "../stage.ts";

const HOURS = "09:00-17:00";
const WEEK = { mon: HOURS, tue: HOURS, wed: HOURS, thu: HOURS, fri: HOURS };
const FRANKFURT = { zone: "Europe/Berlin", week: WEEK };
const CLOSED: CalendarDay[] = [{ date: "2030-01-03", name: "Stocktaking" }];
const plain = defineJob({ type: "test.plain" });
const dueOf = async (stage: Stage, id: string) =>
  new Date((await stage.engine.timeouts.get(id))?.dueAt as number).toISOString();

/** A second process on the same store. */
async function secondEngine(stage: Stage, idlePollFactor = 1): Promise<Engine> {
  const store = { ...stage.engine.store, close: async () => {} };
  return Engine.open({ store, system: stage.system, logger: silentLogger, idlePollFactor });
}

// The stage begins on Tuesday, 2030-01-01T00:00Z.
describe("business calendars (SEMANTICS 12)", () => {
  it("a timeout is due by the stored calendar, to the millisecond", async () => {
    const stage = await openStage();
    await stage.engine.calendars.put("frankfurt", { ...FRANKFURT, days: CLOSED });
    const fired: number[] = [];
    stage.engine.timeouts.serve("mail", () => fired.push(stage.engine.now()));
    const id = await stage.engine.timeouts.insert({
      destination: "mail",
      dueAt: { calendar: "frankfurt", workingDays: 2, at: "17:00", cutOff: "15:00" },
    });
    expect(await dueOf(stage, id)).toBe("2030-01-04T16:00:00.000Z");
    await stage.advance("5d");
    expect(fired).toEqual([Date.parse("2030-01-04T16:00:00Z")]);
  });

  it("a saga and a delayed job name calendars too", async () => {
    const stage = await openStage();
    await stage.engine.calendars.put("frankfurt", FRANKFURT);
    const { saga, seen } = diary((context, text) => {
      if (text === "begin")
        context.request("rung", { calendar: "frankfurt", workingDays: 1, at: "open" }, { text: "rang" });
    });
    stage.engine.host([saga]);
    await stage.engine.send(saga, "begun", { id: "a", text: "begin" });
    await stage.engine.timeouts.enqueue(plain, undefined, {
      dueAt: { calendar: "frankfurt", workingDays: 0 },
    });
    await stage.advance("2d");
    expect(seen.map(({ text, at }) => [text, new Date(at).toISOString()])).toEqual([
      ["begin", "2030-01-01T00:00:00.000Z"],
      ["rang", "2030-01-02T08:00:00.000Z"],
    ]);
    const [job] = await jobsOf(stage.engine.store, { type: "test.plain" });
    expect(job?.createdAt).toBe(Date.parse("2030-01-01T16:00:00Z"));
  });

  it("a changed calendar moves what is pending and leaves what is not its own", async () => {
    const stage = await openStage();
    const { calendars, timeouts, crons } = stage.engine;
    await calendars.put("frankfurt", FRANKFURT);
    await calendars.put("munich", FRANKFURT);
    const when = (calendar: string) => ({ calendar, workingDays: 2, at: "17:00" });
    const mine = await timeouts.insert({ destination: "mail", dueAt: when("frankfurt") });
    const other = await timeouts.insert({ destination: "mail", dueAt: when("munich") });
    await crons.put("nightly", { cron: "0 3 3 * *", calendar: "frankfurt", closed: "next", job: plain });
    expect(await calendars.put("frankfurt", { ...FRANKFURT, days: CLOSED })).toMatchObject({ moved: 2 });
    expect([await dueOf(stage, mine), await dueOf(stage, other)]).toEqual([
      "2030-01-04T16:00:00.000Z",
      "2030-01-03T16:00:00.000Z",
    ]);
    expect((await crons.get("nightly"))?.nextAt).toBe(Date.parse("2030-01-04T02:00:00Z"));
    // Repeating it moves nothing. What has passed by the new calendar is due at once; the cron waits for February.
    expect(await calendars.put("frankfurt", { ...FRANKFURT, days: CLOSED })).toMatchObject({ moved: 0 });
    await stage.advance("52h");
    const opened = [{ date: "2030-01-03", hours: "00:00-01:00" }];
    expect(await calendars.put("frankfurt", { ...FRANKFURT, days: opened })).toMatchObject({ moved: 2 });
    expect(await timeouts.claimDue()).toMatchObject([{ id: mine }]);
  });

  it("what another process stored by an older copy is resolved again within 15 s", async () => {
    const stage = await openStage();
    await stage.engine.calendars.put("frankfurt", FRANKFURT);
    await stage.advance("1m");
    const second = await secondEngine(stage);
    await stage.settle();
    await stage.engine.calendars.put("frankfurt", { ...FRANKFURT, days: CLOSED });
    const id = await second.timeouts.insert({
      destination: "mail",
      dueAt: { calendar: "frankfurt", workingDays: 2, at: "17:00" },
    });
    expect(await dueOf(stage, id)).toBe("2030-01-03T16:00:00.000Z");
    await stage.advance("16s");
    expect(await dueOf(stage, id)).toBe("2030-01-04T16:00:00.000Z");
    const fresh = await second.timeouts.insert({
      destination: "mail",
      dueAt: { calendar: "frankfurt", workingDays: 2, at: "17:00" },
    });
    expect(await dueOf(stage, fresh)).toBe("2030-01-04T16:00:00.000Z");
    const closed = second.close();
    await stage.advance("1s");
    await closed;
  });

  it("a day that is closed at the last moment does not fire its cron", async () => {
    const stage = await openStage();
    const { calendars, crons } = stage.engine;
    await calendars.put("frankfurt", FRANKFURT);
    await crons.put("daily", { cron: "0 9 * * *", calendar: "frankfurt", job: plain });
    const second = await secondEngine(stage, 60);
    await stage.advance("31h"); // 08:00 in Berlin on 2 January
    await second.calendars.put("frankfurt", { ...FRANKFURT, days: [{ date: "2030-01-02" }, ...CLOSED] });
    await stage.advance("4d");
    const rows = await jobsOf(stage.engine.store, { type: "test.plain" });
    expect(rows.map(({ options }) => options?.meta?.scheduledFor)).toEqual([
      "2030-01-01T08:00:00.000Z",
      "2030-01-04T08:00:00.000Z",
    ]);
    const closed = second.close();
    await stage.advance("1s");
    await closed;
  });

  it("a calendar in use is not deleted, and timeouts outlive theirs", async () => {
    const stage = await openStage();
    const { calendars, crons, timeouts } = stage.engine;
    await calendars.put("frankfurt", FRANKFURT);
    await crons.put("daily", { cron: "0 9 * * *", calendar: "frankfurt", job: plain });
    await expect(calendars.delete("frankfurt")).rejects.toThrow(/used by the cron "daily"/);
    await crons.delete("daily");
    const id = await timeouts.insert({
      destination: "mail",
      dueAt: { calendar: "frankfurt", workingDays: 1 },
    });
    expect(await calendars.delete("frankfurt")).toBe(true);
    expect(await calendars.delete("frankfurt")).toBe(false);
    await stage.advance("1m");
    expect(await dueOf(stage, id)).toBe("2030-01-02T16:00:00.000Z");
    await expect(timeouts.insert({ destination: "mail", dueAt: { calendar: "frankfurt" } })).rejects.toThrow(
      /timeout.dueAt.calendar: "frankfurt" is not a known business calendar/,
    );
  });

  it("a cron whose calendar is gone rests, and goes on when it is stored again", async () => {
    const stage = await openStage();
    const { calendars, crons, store } = stage.engine;
    await calendars.put("frankfurt", FRANKFURT);
    await crons.put("daily", { cron: "0 9 * * *", calendar: "frankfurt", job: plain });
    // Only a restore from a backup, or a race of two operators, does this.
    const effects = [
      { delete: ["calendar", "frankfurt"] as const },
      { put: ["calendars", "revision"] as const, body: {}, wakeAt: null },
    ];
    await store.commit([{ effects }], { now: stage.engine.now() });
    await stage.advance("2d");
    expect(await crons.get("daily")).toMatchObject({ nextAt: null, runs: [] });
    await calendars.put("frankfurt", FRANKFURT);
    await stage.advance("1d");
    expect((await crons.get("daily"))?.runs.length).toBe(1);
  });

  it("asks a provider once, for whole years, and says how far it is known", async () => {
    const stage = await openStage();
    const asked: unknown[] = [];
    const days = {
      days(span: unknown) {
        asked.push(span);
        return CLOSED;
      },
    };
    const view = await stage.engine.calendars.put("frankfurt", { ...FRANKFURT, days, years: 2 });
    expect(asked).toEqual([{ from: "2030-01-01", to: "2031-12-31" }]);
    expect(view).toMatchObject({ days: CLOSED, until: "2031-12-31" });
    const ics = icsHolidays(
      "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20200501\nRRULE:FREQ=YEARLY\nEND:VEVENT\nEND:VCALENDAR",
    );
    const { days: read } = await stage.engine.calendars.put("ics", { ...FRANKFURT, days: ics });
    expect(read).toEqual([{ date: "2030-05-01" }, { date: "2031-05-01" }, { date: "2032-05-01" }]);
  });

  it("refuses another zone, an endless list and what is no calendar, and stores nothing", async () => {
    const stage = await openStage();
    const { calendars } = stage.engine;
    await calendars.put("frankfurt", FRANKFURT);
    await expect(calendars.put("frankfurt", { ...FRANKFURT, zone: "Asia/Tokyo" })).rejects.toThrow(
      /calendar.zone/,
    );
    await expect(calendars.put("x", { ...FRANKFURT, week: {} })).rejects.toThrow(/no working day/);
    await expect(calendars.put("", FRANKFURT)).rejects.toThrow(/name/);
    await expect(calendars.put("x", { ...FRANKFURT, years: 3 })).rejects.toThrow(/calendar.years/);
    await expect(
      calendars.put("x", { ...FRANKFURT, days: { days: () => [], extra: 1 }, years: 51 } as never),
    ).rejects.toThrow(/51/);
    expect((await calendars.list()).map(({ name }) => name)).toEqual(["frankfurt"]);
    expect(await calendars.get("x")).toBeNull();
    const { text } = await calendars.explain({ calendar: "frankfurt", workingDays: 1, at: "17:00" });
    expect(text).toMatch(
      /^2030-01-02T16:00:00.000Z = .* 1 working day after 2030-01-01 by the calendar frankfurt/,
    );
  });

  it("an operator's change is in the audit", async () => {
    const stage = await openStage();
    await stage.engine.calendars.as({ actor: "ana" }).put("frankfurt", FRANKFURT);
    const { entries } = await stage.engine.audit.read();
    expect(entries).toMatchObject([
      { action: "calendar.put", actor: "ana", details: { calendar: "frankfurt" } },
    ]);
  });
});
