/**
 * Figures without counting history: how much, how fast, how late, what timed out and what came near. And advice on
 * attempt timeouts, with a look at what another one would have cut off.
 */
import { defineJob, processor } from "curfew";
import { openTestEngine } from "curfew/testing";
import { z } from "zod";

const render = defineJob({
  type: "report.render",
  payload: z.object({ seconds: z.number() }),
  timeouts: { attempt: "30s", grace: "1s" },
  retry: { attempts: 1 },
});

await using test = await openTestEngine();
const { engine } = test;
engine.work({
  processors: [
    processor(render, async ({ payload, signal }) => {
      await test.sleep(`${payload.seconds}s`, signal);
    }),
  ],
});

// 400 reports in an hour: most take 2 s, some 14 s, a few come near the limit, two run into it.
for (let n = 0; n < 400; n++) {
  const seconds = n % 200 === 0 ? 60 : n % 50 === 1 ? 28 : n % 10 === 2 ? 14 : 2;
  await engine.enqueue(render, { seconds });
  await test.advance("9s");
}
await test.advance("1m");

const { total, points } = await engine.stats({ since: "2h", step: "15m", type: "report.render" });
console.log(
  `${total.completed} completed, ${total.timeouts.execution} timed out, ${total.nearMisses} came near`,
);
console.log(`deadlines kept: ${((total.attainment ?? 0) * 100).toFixed(1)} %`);
console.log(`run time: p50 ${total.run?.p50} ms, p95 ${total.run?.p95} ms, p99 ${total.run?.p99} ms`);
for (const { at, completed, run } of points)
  console.log(`  ${new Date(at).toISOString().slice(11, 16)}  ${completed} completed, p95 ${run?.p95} ms`);

const [advice] = await engine.advise({ type: "report.render", attempt: "20s" });
console.log(advice?.text);
if (advice?.whatIf) {
  const { attempt, runs, wouldCut } = advice.whatIf;
  console.log(
    `A limit of ${attempt / 1000} s would have cut off ${wouldCut.atMost} of ${runs} runs that succeeded.`,
  );
}
