/** Jobs at instants that a cron expression names: in a zone, without overlap, and made up for after an outage. */
import { defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const report = defineJob({ type: "report.build", payload: z.object({ kind: z.string() }) });

await using test = await openTestEngine({ startAt: "2030-03-29T12:00:00Z" });
const { engine } = test;
const say = (text: string) => console.log(`${new Date(test.now()).toISOString().slice(5, 16)}  ${text}`);

engine.work({
  processors: [
    processor(report, ({ payload, meta }) => {
      say(`${payload.kind} report for ${String(meta.scheduledFor).slice(5, 16)}`);
    }),
  ],
});
engine.on("cron.skipped", ({ cron, reason, count }) => say(`${cron}: skipped ${count} (${reason})`));

// Every process may put its crons when it starts: what has not changed is not written.
await engine.crons.put("nightly", {
  cron: "30 2 * * *",
  zone: "Europe/Berlin",
  job: report,
  payload: { kind: "nightly" },
  overlap: "skip",
});

console.log("next:");
for (const { local, offset } of await engine.crons.preview("nightly", { count: 3 }))
  console.log(`  ${local} ${offset}`); // on March 31 there is no 02:30 in Berlin

await test.advance("2d");

// Nobody runs for three days: one run stands for those that were missed.
test.system.pause(3 * 86_400_000);
await test.advance("1m");

await engine.crons.pause("nightly");
await test.advance("2d");
await engine.crons.trigger("nightly");
await test.settle();

const cron = await engine.crons.get("nightly");
console.log(`${cron?.runs.length} entries in the history, paused: ${cron?.isPaused}`);
