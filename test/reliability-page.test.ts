import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { reliabilityPage } from "../scripts/reliability-page.ts";
import { testFolder } from "./support/folders.ts";
import { addRun, type NewRun } from "./support/run-report.ts";

function openFolder(): string {
  const folder = testFolder();
  return folder;
}

const run = (fields: Partial<NewRun>): NewRun => ({
  command: "npm run chaos",
  on: "SQLite",
  startedAt: performance.now(),
  counts: { acknowledged: 1_000, lost: 0 },
  findings: [],
  ...fields,
});

describe("the page of long runs", () => {
  it("adds up the runs of one store, and keeps stores apart", () => {
    const folder = openFolder();
    const file = join(folder, "chaos.json");
    addRun(file, "chaos", run({}));
    addRun(file, "chaos", run({ counts: { acknowledged: 500, lost: 2 } }));
    addRun(file, "chaos", run({ on: "PostgreSQL" }));
    const rows = reliabilityPage(folder).split("\n");
    expect(rows.find((row) => row.startsWith("| SQLite | 2 |"))).toMatch(/\| 1,500 \|.*\| 2 \|/);
    expect(rows.find((row) => row.startsWith("| PostgreSQL | 1 |"))).toMatch(/\| 1,000 \|/);
  });

  it("shows every finding with the command that repeats it", () => {
    const folder = openFolder();
    addRun(join(folder, "a.json"), "chaos", run({ findings: ["2 acknowledged jobs are gone"] }));
    expect(reliabilityPage(folder)).toMatch(
      /- \d{4}-\d\d-\d\d, `npm run chaos`: 2 acknowledged jobs are gone/,
    );
  });

  it("says how the cause of a finding was mended, and nothing of one that is open", () => {
    const folder = openFolder();
    const findings = [
      'seed 70200987 broke "every commit is told once"',
      'seed 70200988 broke "no job is lost"',
    ];
    addRun(join(folder, "a.json"), "simulator", run({ command: "npm run sim", on: "jobs", findings }));
    const lines = reliabilityPage(folder).split("\n");
    expect(lines.find((line) => line.includes("seed 70200987 broke"))).toMatch(
      /once"\. \*\*Mended\*\*: a verdict overtook a start mark .* again\. The seed runs in every `npm test`\.$/,
    );
    expect(lines.find((line) => line.includes("seed 70200988 broke"))).toMatch(/no job is lost"$/);
  });

  it("says of a lane without results that none are kept", () => {
    expect(reliabilityPage(openFolder())).toContain("No results are kept.");
  });

  it("refuses to add a run to the file of another lane", () => {
    const file = join(openFolder(), "a.json");
    addRun(file, "chaos", run({}));
    expect(() => addRun(file, "fuzz", run({}))).toThrow("has runs of the lane chaos");
  });
});
