import { expect, it } from "vitest";
import { conformance, inScratch, skipWithoutSuites } from "./ojs-suites.ts";

/** They wait for crons to fire, which takes two minutes and no CPU. Crons have five seconds to fire in. */
const LONG = ["L2-CRON-004", "L2-CRON-005"];

it("crons of Open Job Spec fire and skip in their own time", async ({ skip }) => {
  skipWithoutSuites(skip);
  await inScratch(async (scratch) => {
    const results = await conformance("memory:", scratch, ["--only", LONG.join(",")]);
    expect(results.map(({ test_id, status }) => [test_id, status])).toEqual(LONG.map((id) => [id, "passed"]));
  });
}, 240_000);
