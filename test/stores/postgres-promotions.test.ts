import { expect, it } from "vitest";
import { runFailover } from "../failover/failover-run.ts";

/** The short form of `npm run test:failover`. */
it("promotions of a synchronous standby lose no acknowledged job, verdict or event", async () => {
  const report = await runFailover({ promotions: 2, jobs: 600, synchronous: true });
  const { lost, unfinished, doubleVerdicts, missedEvents } = report;
  expect({ lost, unfinished, doubleVerdicts, missedEvents }).toEqual({
    lost: 0,
    unfinished: 0,
    doubleVerdicts: 0,
    missedEvents: 0,
  });
  expect(report.acknowledged).toBeGreaterThanOrEqual(600);
  expect(report.promotions.map(({ loss }) => loss)).toEqual(["crash", "switchover"]);
});
