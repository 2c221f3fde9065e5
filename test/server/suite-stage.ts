import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, inject, it } from "vitest";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { createDatabase } from "../postgres.ts";
import { type CaseResult, runSuite, type SuiteCase } from "./timeouts-suite/runner.ts";

/** The cases wait for real deadlines, about three minutes in all, and most of that side by side. */
const LONGEST = 120_000;

/** Runs the cases against a server of its own. */
export async function runOn(store: string, cases: readonly SuiteCase[]): Promise<readonly CaseResult[]> {
  // Webhooks are stored and listed. Nothing is called: the endpoints of the cases have no events.
  await using engine = await openEngine({ store, logger: silentLogger, webhooks: {} });
  const listening = await listen(createServer(engine), { port: 0 });
  try {
    return await runSuite(cases, { url: listening.url, suffix: "s", concurrency: 8 });
  } finally {
    await listening.close();
  }
}

/** A test for each store. `fewest` cases must run: fewer would mean that a folder was not read. */
export function passOnEachStore(cases: readonly SuiteCase[], fewest: number): void {
  const pass = async (store: string) => {
    const results = await runOn(store, cases);
    expect(results.filter(({ failures }) => failures.length > 0)).toEqual([]);
    expect(results.length).toBeGreaterThanOrEqual(fewest);
  };

  it("are kept on memory", () => pass("memory:"), LONGEST);

  it(
    "are kept on SQLite",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "curfew-suites-"));
      try {
        await pass(`sqlite:${join(folder, "jobs.db")}`);
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
      await pass(database.url);
    },
    LONGEST,
  );
}

/** A test that the runner of the sample suites understands the cases. It is skipped where that runner is not beside the project. */
export function areUnderstood(cases: readonly SuiteCase[]): void {
  it("are understood by the runner of the sample suites", async ({ skip }) => {
    const beside = join(import.meta.dirname, "..", "..", "..", "shared", "ojs-conformance");
    const runner = join(process.env.CURFEW_OJS_SUITES ?? beside, "run.mjs");
    if (!existsSync(runner)) skip();
    const { problemsOf } = (await import(pathToFileURL(runner).href)) as {
      problemsOf: (suiteCase: SuiteCase) => string[];
    };
    expect(cases.flatMap(problemsOf)).toEqual([]);
  });
}
