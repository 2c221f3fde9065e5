/** The process of a Host: sets up and samples one contender under one workload. */
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { contenderOf } from "./contenders/all.ts";
import type { Answer, Command, HostOptions } from "./host.ts";
import { ServerMeter } from "./measure.ts";
import type { Context } from "./workload.ts";
import { WORKLOADS } from "./workloads.ts";

const options = JSON.parse(process.argv[2] as string) as HostOptions;
const contender = contenderOf(options.key);
const workload = WORKLOADS.find(({ name }) => name === options.workload);
const context: Context = {
  ...options,
  contender,
  meter: await ServerMeter.of(options.serverUrl),
  analyze: { sqlite: analyzeFile, postgres: analyzeDatabase, redis: async () => {} }[contender.database],
};

async function analyzeDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("vacuum analyze");
  await client.end();
}

/** Without statistics SQLite guesses; a checkpoint brings the log to its usual length. */
async function analyzeFile(path: string): Promise<void> {
  const file = new DatabaseSync(path, { timeout: 5_000 });
  file.exec("pragma wal_checkpoint(passive)");
  file.close();
}

async function answer(command: Command): Promise<Answer> {
  try {
    if (command === "sample") return { figures: (await workload?.sample(context)) ?? {} };
    await workload?.setUp?.(context);
    return { figures: {} };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

process.on("message", async (command: Command) => process.send?.(await answer(command)));
// Whoever asks is gone.
process.on("disconnect", () => process.exit());
