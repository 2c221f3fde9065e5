import { existsSync, readdirSync, readFileSync } from "node:fs";
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
import { loadSuite, runSuite, type SuiteCase } from "./timeouts-suite/runner.ts";

/** Suites that the public ones do not have, beside that of the timeouts. */
const FOLDER = join(import.meta.dirname, "suites");
const FOLDERS = ["ext-fairness", "ext-fences", "ext-silent-options", "ext-tenancy", "ext-webhooks-safety"];
/** As many as the README names; fewer would mean that a folder was not read. */
const FEWEST = 47;
const LONGEST = 120_000;

const cases = (await Promise.all(FOLDERS.map((name) => loadSuite(join(FOLDER, name))))).flat();

async function run(store: string, which: readonly SuiteCase[] = cases) {
  // Webhooks are stored and listed. Nothing is called: the endpoints of the cases have no events.
  await using engine = await openEngine({ store, logger: silentLogger, webhooks: {} });
  const listening = await listen(createServer(engine), { port: 0 });
  try {
    return await runSuite(which, { url: listening.url, suffix: "s", concurrency: 8 });
  } finally {
    await listening.close();
  }
}

async function passes(store: string): Promise<void> {
  const results = await run(store);
  expect(results.filter(({ failures }) => failures.length > 0)).toEqual([]);
  expect(results.length).toBeGreaterThanOrEqual(FEWEST);
}

describe.concurrent("what the public suites do not ask", () => {
  it("is kept on memory", () => passes("memory:"), LONGEST);

  it(
    "is kept on SQLite",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "curfew-suites-"));
      try {
        await passes(`sqlite:${join(folder, "jobs.db")}`);
      } finally {
        await rm(folder, { recursive: true, force: true });
      }
    },
    LONGEST,
  );

  it(
    "is kept on PostgreSQL",
    async () => {
      await using database = await createDatabase(inject("postgresUrl"));
      await passes(database.url);
    },
    LONGEST,
  );
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
    const results = await run("memory:", wrong);
    expect(results.filter(({ failures }) => failures.length === 0)).toEqual([]);
  });

  it("are understood by the runner of the sample suites", async ({ skip }) => {
    const beside = join(FOLDER, "..", "..", "..", "..", "shared", "ojs-conformance");
    const runner = join(process.env.CURFEW_OJS_SUITES ?? beside, "run.mjs");
    if (!existsSync(runner)) skip();
    const { problemsOf } = (await import(pathToFileURL(runner).href)) as {
      problemsOf: (suiteCase: SuiteCase) => string[];
    };
    expect(cases.flatMap(problemsOf)).toEqual([]);
  });
});
