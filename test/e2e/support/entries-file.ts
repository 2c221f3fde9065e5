import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Engine, type OpenOptions, openEngine, silentLogger } from "../../../src/index.ts";

interface Run<Report> {
  run(): Promise<Report>;
  end(): Promise<void>;
}

/** Runs with an engine and a file to which processes write their entries into handlers. Both are gone afterwards. */
export async function withEntriesFile<Report>(
  name: string,
  options: OpenOptions,
  begin: (engine: Engine, entriesFile: string) => Run<Report>,
): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), `curfew-${name}-`));
  const entriesFile = join(folder, "entries");
  await writeFile(entriesFile, "");
  const engine = await openEngine({ logger: silentLogger, ...options });
  const run = begin(engine, entriesFile);
  try {
    return await run.run();
  } finally {
    await run.end();
    await engine.close({ drain: "0s" });
    await rm(folder, { recursive: true, force: true });
  }
}
