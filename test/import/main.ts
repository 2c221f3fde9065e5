/**
 * `npm run test:import [--jobs 100000] [--from bullmq]`: moves jobs of each engine into curfew, kills the import with
 * SIGKILL at three points and repeats it, and compares what arrived with what there was.
 */
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../postgres.ts";
import { startRedis } from "../redis.ts";
import { type FilledEngine, fillBullmq, fillGraphile, fillPgBoss } from "./engines.ts";
import { killRun } from "./kill-run.ts";
import { openStore } from "./support.ts";

const { values } = parseArgs({
  options: { jobs: { type: "string", default: "100000" }, from: { type: "string" } },
});
const jobs = Number(values.jobs);
const SHARES = [0.2, 0.5, 0.8];
const names = values.from === undefined ? ["pg-boss", "graphile-worker", "bullmq"] : [values.from];
const counts = { passed: 0, failed: 0, skipped: 0 };

async function fill(name: string, source: string): Promise<FilledEngine> {
  if (name === "pg-boss") return fillPgBoss(source, jobs);
  if (name === "graphile-worker") return fillGraphile(source, jobs);
  if (name === "bullmq") return fillBullmq(source, jobs);
  throw new Error(`--from: ${name} is not known; use pg-boss, graphile-worker or bullmq`);
}

await using postgres = await startPostgres();
for (const name of names) {
  await using redis = name === "bullmq" ? await startRedis() : null;
  if (name === "bullmq" && redis === null) {
    counts.skipped += 1;
    continue;
  }
  await using database = await createDatabase(postgres.url);
  await (await openStore(database.url)).close();
  await using engine = await fill(name, redis?.url ?? database.url);
  const run = await killRun(engine, database.url, jobs, SHARES);
  const isGood = run.lost === 0 && run.doubled === 0 && run.left === 0;
  counts[isGood ? "passed" : "failed"] += 1;
  console.log(JSON.stringify({ ...run, seconds: Number(run.seconds.toFixed(1)) }));
}
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exitCode = counts.failed > 0 || counts.passed === 0 ? 1 : 0;
