import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, inject, it } from "vitest";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { createDatabase } from "../postgres.ts";
import { valueAt } from "./timeouts-suite/paths.ts";
import { loadSuite, runSuite, type SuiteCase } from "./timeouts-suite/runner.ts";

const FOLDER = join(import.meta.dirname, "timeouts-suite");
/** As many as the README of the suite names; fewer would mean that the folder was not read. */
const FEWEST = 89;
/** The cases wait for real deadlines, about three minutes in all, and most of that side by side. */
const LONGEST = 120_000;

const cases = await loadSuite(FOLDER);

async function run(store: string): Promise<void> {
  await using engine = await openEngine({ store, logger: silentLogger });
  const listening = await listen(createServer(engine), { port: 0 });
  try {
    const results = await runSuite(cases, { url: listening.url, suffix: "t", concurrency: 8 });
    expect(results.filter(({ failures }) => failures.length > 0)).toEqual([]);
    expect(results.length).toBeGreaterThanOrEqual(FEWEST);
  } finally {
    await listening.close();
  }
}

describe.concurrent("all five timeouts over the wire", () => {
  it("are kept on memory", () => run("memory:"), LONGEST);

  it(
    "are kept on SQLite",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "curfew-timeouts-"));
      try {
        await run(`sqlite:${join(folder, "jobs.db")}`);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    LONGEST,
  );

  it(
    "are kept on PostgreSQL",
    async () => {
      await using database = await createDatabase(inject("postgresUrl"));
      await run(database.url);
    },
    LONGEST,
  );
});

describe("the suite", () => {
  it("names every case once, by its file", () => {
    const ids = cases.map(({ test_id }) => test_id);
    expect(new Set(ids).size).toBe(cases.length);
    for (const { name } of cases) expect(existsSync(join(FOLDER, `${name}.json`))).toBe(true);
  });

  it("finds what does not hold", async () => {
    await using engine = await openEngine({ store: "memory:", logger: silentLogger });
    const listening = await listen(createServer(engine), { port: 0 });
    try {
      const wrong = cases.slice(0, 12).map(withWrongStatus);
      const results = await runSuite(wrong, { url: listening.url, suffix: "w", concurrency: 12 });
      expect(results.filter(({ failures }) => failures.length === 0)).toEqual([]);
    } finally {
      await listening.close();
    }
  });

  it("is understood by the runner of the sample suites", async ({ skip }) => {
    const beside = join(FOLDER, "..", "..", "..", "..", "shared", "ojs-conformance");
    const runner = join(process.env.CURFEW_OJS_SUITES ?? beside, "run.mjs");
    if (!existsSync(runner)) skip();
    const { problemsOf } = (await import(pathToFileURL(runner).href)) as {
      problemsOf: (suiteCase: SuiteCase) => string[];
    };
    expect(cases.flatMap(problemsOf)).toEqual([]);
  });

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
