/** Working days: a deadline with a cut-off and a holiday, a cron that avoids closed days, and a calendar that changes. */
import { defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";

const salaries = defineJob({ type: "salaries.pay" });

// Friday, 2030-12-20, 15:30 in Frankfurt.
await using test = await openTestEngine({ startAt: "2030-12-20T14:30:00Z" });
const { engine } = test;
const say = (text: string) => console.log(`${new Date(test.now()).toISOString().slice(0, 16)}  ${text}`);

const hours = "09:00-17:00";
const frankfurt = {
  zone: "Europe/Berlin",
  week: { mon: hours, tue: hours, wed: hours, thu: hours, fri: hours },
  days: [{ date: "2030-12-25", name: "Christmas" }, { date: "2030-12-26" }, { date: "2031-01-01" }],
};
await engine.calendars.put("frankfurt", frankfurt);

const when = { calendar: "frankfurt", workingDays: 2, at: "17:00", cutOff: "15:00" } as const;
const { text } = await engine.calendars.explain(when);
console.log(text);

engine.timeouts.serve("offers", ({ payload }) => say(`${payload} has ended`));
await engine.timeouts.insert({ destination: "offers", dueAt: when, payload: "the offer" });

engine.work({ processors: [processor(salaries, () => say("salaries are paid"))] });
await engine.crons.put("salaries", {
  cron: "0 9 25 * *",
  calendar: "frankfurt",
  closed: "previous",
  job: salaries,
});
for (const { local } of await engine.crons.preview("salaries", { count: 3 }))
  console.log(`  pays on ${local}`);

await test.advance("1d");

// The Friday after Christmas becomes a half day: what is pending moves with it.
const days = [...frankfurt.days, { date: "2030-12-27", hours: "09:00-12:00" }];
const { moved } = await engine.calendars.put("frankfurt", { ...frankfurt, days });
say(`the calendar changed, moved: ${moved}`);

await test.advance("10d");
