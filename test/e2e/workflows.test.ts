import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { createDatabase } from "../postgres.ts";
import { type RunReport, workflowRun } from "./workflows/workflow-run.ts";

/** `CURFEW_WORKFLOWS=1000` is the full run. */
const WORKFLOWS = Number(process.env.CURFEW_WORKFLOWS ?? 100);
const SEED = Number(process.env.CURFEW_WORKFLOW_SEED ?? 1);
const LIMIT = 900_000;

function expectRight(name: string, report: RunReport): void {
  const { violations, ...numbers } = report;
  console.log(`${WORKFLOWS} workflows of 10 steps on ${name}, seed ${SEED}: ${JSON.stringify(numbers)}`);
  expect(violations).toEqual([]);
  expect(report.completed + report.failed).toBe(WORKFLOWS);
  expect(report.kills).toBeGreaterThan(3);
}

describe("workflows whose workers are killed", () => {
  it("SQLite: all end right", { timeout: LIMIT }, async () => {
    const folder = await mkdtemp(join(tmpdir(), "curfew-workflows-db-"));
    try {
      const store = `sqlite:${join(folder, "workflows.db")}`;
      expectRight("SQLite", await workflowRun({ store, workflows: WORKFLOWS, workers: 4, seed: SEED }));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it("PostgreSQL: all end right", { timeout: LIMIT }, async () => {
    await using database = await createDatabase(inject("postgresUrl"));
    const store = database.url;
    expectRight("PostgreSQL", await workflowRun({ store, workflows: WORKFLOWS, workers: 4, seed: SEED }));
  });
});
