import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { areUnderstood, passOnEachStore, runOn } from "./suite-stage.ts";
import { valueAt } from "./timeouts-suite/paths.ts";
import { loadSuite, type SuiteCase } from "./timeouts-suite/runner.ts";

const FOLDER = join(import.meta.dirname, "timeouts-suite");
/** As many as the README of the suite names; fewer would mean that the folder was not read. */
const FEWEST = 89;

const cases = await loadSuite(FOLDER);

describe.concurrent("all five timeouts over the wire", () => {
  passOnEachStore(cases, FEWEST);
});

describe("the suite", () => {
  it("names every case once, by its file", () => {
    const ids = cases.map(({ test_id }) => test_id);
    expect(new Set(ids).size).toBe(cases.length);
    for (const { name } of cases) expect(existsSync(join(FOLDER, `${name}.json`))).toBe(true);
  });

  it("finds what does not hold", async () => {
    const results = await runOn("memory:", cases.slice(0, 12).map(withWrongStatus));
    expect(results.filter(({ failures }) => failures.length === 0)).toEqual([]);
  });

  areUnderstood(cases);

  it("reads paths through lists and filters", () => {
    const body = { jobs: [{ id: "a" }, { id: "b", errors: [{ type: "timeout" }] }] };
    expect(valueAt(body, "$.jobs[?(@.id=='b')].errors[0].type")).toBe("timeout");
    expect(valueAt(body, "$.jobs[?(@.id=='c')].errors[0].type")).toBeUndefined();
    expect(() => valueAt(body, "$.jobs[*]")).toThrow("not understood");
  });
});

/** The same case, asking for a status that no step of the suite gets. */
function withWrongStatus(suiteCase: SuiteCase): SuiteCase {
  const [first, ...rest] = suiteCase.steps;
  if (!first) throw new Error(`${suiteCase.name} has no steps`);
  return { ...suiteCase, steps: [{ ...first, assertions: { ...first.assertions, status: 418 } }, ...rest] };
}
