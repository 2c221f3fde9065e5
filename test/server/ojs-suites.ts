import { execFile } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "vitest";
import { realSystem } from "../../src/engine/runtime/real-system.ts";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { createServer } from "../../src/server/app.ts";
import { listen } from "../../src/server/listen.ts";
import { createDatabase } from "../postgres.ts";
import { DURABLE, findRedis, startNode } from "../redis.ts";

/**
 * Runs the suites of Open Job Spec against a real server. The suites are not part of this repository: they lie beside
 * it, or where CURFEW_OJS_SUITES says.
 */
const named =
  process.env.CURFEW_OJS_SUITES ?? join(import.meta.dirname, "..", "..", "..", "shared", "ojs-conformance");
export const hasSuites = existsSync(join(named, "run.mjs"));
// The runner recognises itself by its real path.
const folder = hasSuites ? realpathSync(named) : named;
const runner = join(folder, "run.mjs");

export interface Result {
  readonly test_id: string;
  readonly file: string;
  readonly status: string;
  readonly failures: readonly unknown[];
}

async function runSuites(url: string, scratch: string, which: readonly string[]): Promise<readonly Result[]> {
  const report = join(scratch, "report.json");
  const args = [
    ...[runner, "--suites", join(folder, "suites"), "--url", url],
    ...["--concurrency", "8", ...which, "--json", report],
  ];
  // It leaves with 1 when a case failed, and L1-RTR-014 always does: the report says more.
  await new Promise<void>((resolve) => execFile(process.execPath, args, () => resolve()));
  return (JSON.parse(await readFile(report, "utf8")) as { results: Result[] }).results;
}

export async function conformance(
  store: string,
  scratch: string,
  which: readonly string[],
): Promise<readonly Result[]> {
  // Some cases wait exactly as long as the longest jitter of a retry (1.5), so the jitter ends at 1.1 here: a nack, a
  // backoff of 1 s and the fetch after it then have 400 ms for the machine.
  const system = { ...realSystem, random: () => 0.6 * realSystem.random() };
  await using engine = await openEngine({ store, system, logger: silentLogger });
  const server = createServer(engine, { conformance: true });
  const listening = await listen(server, { port: 0 });
  try {
    return await runSuites(listening.url, scratch, which);
  } finally {
    await listening.close();
  }
}

/** Leaves a test out where there are no suites. */
export function skipWithoutSuites(skip: () => void): void {
  if (hasSuites) return;
  console.log(`conformance: ${runner} is not there; name its folder with CURFEW_OJS_SUITES`);
  skip();
}

type RunOn = (url: string, scratch: string) => Promise<void>;

/** The stores that the suites run on. Each calls `skip` where it cannot be had. */
export const OJS_STORES: {
  readonly [name: string]: (run: RunOn, skip: () => void) => Promise<void>;
} = {
  memory: (run) => inScratch((scratch) => run("memory:", scratch)),
  SQLite: (run) => inScratch((scratch) => run(`sqlite:${join(scratch, "jobs.db")}`, scratch)),
  PostgreSQL: (run) =>
    inScratch(async (scratch) => {
      await using database = await createDatabase(inject("postgresUrl"));
      await run(database.url, scratch);
    }),
  Redis: (run, skip) =>
    inScratch(async (scratch) => {
      const program = await findRedis();
      if (!program) return skip();
      await using node = await startNode(program, DURABLE);
      await run(node.url, scratch);
    }),
};

async function inScratch(run: (scratch: string) => Promise<void>): Promise<void> {
  const scratch = await mkdtemp(join(tmpdir(), "curfew-ojs-"));
  try {
    await run(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
