import { describe, it } from "vitest";
import { conformance, OJS_STORES, skipWithoutSuites } from "./ojs-suites.ts";

/** They wait for crons to fire, which takes two minutes and little CPU. Crons have five seconds to fire in. */
const LONG = ["L2-CRON-004", "L2-CRON-005"];

describe("crons of Open Job Spec fire and skip in their own time", () => {
  for (const [name, open] of Object.entries(OJS_STORES))
    it.concurrent(`on ${name}`, async ({ skip, expect }) => {
      skipWithoutSuites(skip);
      await open(async (url, scratch) => {
        const results = await conformance(url, scratch, ["--only", LONG.join(",")]);
        expect(results.map(({ test_id, status }) => [test_id, status])).toEqual(
          LONG.map((id) => [id, "passed"]),
        );
      }, skip);
    });
});
