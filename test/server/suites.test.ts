import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { areUnderstood, passOnEachStore, runOn } from "./suite-stage.ts";
import { loadSuite } from "./timeouts-suite/runner.ts";

/** Suites that the public ones do not have, beside that of the timeouts. */
const FOLDER = join(import.meta.dirname, "suites");
const FOLDERS = ["ext-fairness", "ext-fences", "ext-silent-options", "ext-tenancy", "ext-webhooks-safety"];
/** As many as the README names; fewer would mean that a folder was not read. */
const FEWEST = 47;

const cases = (await Promise.all(FOLDERS.map((name) => loadSuite(join(FOLDER, name))))).flat();

describe.concurrent("what the public suites do not ask", () => {
  passOnEachStore(cases, FEWEST);
});

describe("the suites", () => {
  it("name every case once, by its file and in the README", () => {
    expect(readdirSync(FOLDER).sort()).toEqual(["README.md", ...FOLDERS].sort());
    const readme = readFileSync(join(FOLDER, "README.md"), "utf8");
    expect(new Set(cases.map(({ test_id }) => test_id)).size).toBe(cases.length);
    for (const name of FOLDERS)
      for (const file of readdirSync(join(FOLDER, name))) expect(readme).toContain(`(${name}/${file})`);
  });

  it("find what does not hold", async () => {
    const wrong = cases.map((suiteCase) => ({
      ...suiteCase,
      steps: suiteCase.steps.map((step) => ({ ...step, assertions: { ...step.assertions, status: 418 } })),
    }));
    const results = await runOn("memory:", wrong);
    expect(results.filter(({ failures }) => failures.length === 0)).toEqual([]);
  });

  areUnderstood(cases);
});
