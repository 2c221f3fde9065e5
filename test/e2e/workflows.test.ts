import { describe, expect, it } from "vitest";
import { storeAddresses } from "./support/addresses.ts";
import { type RunReport, workflowRun } from "./workflows/workflow-run.ts";

/** A sample; `npm run test:long` runs 1,000. */
const WORKFLOWS = Number(process.env.CURFEW_WORKFLOWS ?? 60);
const SEED = Number(process.env.CURFEW_WORKFLOW_SEED ?? 1);
const LIMIT = 900_000;

const { sqliteAddress, postgresAddress } = storeAddresses("workflows");

function expectRight(name: string, report: RunReport): void {
  const { violations, ...numbers } = report;
  console.log(`${WORKFLOWS} workflows of 10 steps on ${name}, seed ${SEED}: ${JSON.stringify(numbers)}`);
  expect(violations).toEqual([]);
  expect(report.completed + report.failed).toBe(WORKFLOWS);
  expect(report.kills).toBeGreaterThan(3);
}

describe.concurrent("workflows whose workers are killed", () => {
  it("SQLite: all end right", { timeout: LIMIT }, async () => {
    const store = await sqliteAddress();
    expectRight("SQLite", await workflowRun({ store, workflows: WORKFLOWS, workers: 4, seed: SEED }));
  });

  it("PostgreSQL: all end right", { timeout: LIMIT }, async () => {
    const store = await postgresAddress();
    expectRight("PostgreSQL", await workflowRun({ store, workflows: WORKFLOWS, workers: 4, seed: SEED }));
  });
});
