/**
 * `npm run bench:batches [-- --jobs 4000 --rounds 5 --size 100]`: how fast jobs leave a queue on PostgreSQL when their
 * handler makes one insert per call: one job per call, and one batch per call. The rounds take turns, so that a machine
 * that becomes slower slows both. Prints the median of each and their ratio.
 */
import { parseArgs } from "node:util";
import pg from "pg";
import { batchProcessor, defineJob, openEngine, type Processor, processor, unchecked } from "../src/index.ts";
import { createDatabase, startPostgres } from "../test/postgres.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "4000" },
    rounds: { type: "string", default: "5" },
    size: { type: "string", default: "100" },
  },
});
const [jobs, rounds, size] = [Number(values.jobs), Number(values.rounds), Number(values.size)];

await using server = await startPostgres();
await using database = await createDatabase(server.url);
const { url } = database;
await using engine = await openEngine({ store: url });
const pool = new pg.Pool({ connectionString: url, max: 10 });
await pool.query("CREATE TABLE added (nth int NOT NULL)");
const add = defineJob({ type: "row.add", payload: unchecked<number>() });

const insert = (rows: readonly number[]) =>
  pool.query("INSERT INTO added SELECT unnest($1::int[])", [rows]).then(() => undefined);
const ways: Record<string, Processor> = {
  single: processor(add, ({ payload }) => insert([payload])),
  batch: batchProcessor(add, { size, within: "50ms" }, (batch) =>
    insert(batch.jobs.map((job) => job.payload)),
  ),
};

/** Jobs per second from the start of the worker until the last one is committed. */
async function drain(one: Processor): Promise<number> {
  await pool.query("TRUNCATE added");
  await engine.enqueueMany(
    add,
    Array.from({ length: jobs }, (_, index) => index),
  );
  const done = Promise.withResolvers<void>();
  let completed = 0;
  const stop = engine.on("job.completed", () => {
    completed += 1;
    if (completed === jobs) done.resolve();
  });
  const startedAt = performance.now();
  const worker = engine.work({ processors: [one], queues: { default: { concurrency: 2 * size } } });
  await done.promise;
  const elapsed = performance.now() - startedAt;
  stop();
  await worker.close();
  const { rows } = await pool.query(
    "SELECT count(*)::int AS rows, count(DISTINCT nth)::int AS jobs FROM added",
  );
  if (rows[0].jobs !== jobs || rows[0].rows !== jobs) throw new Error(`inserted ${JSON.stringify(rows[0])}`);
  return (jobs / elapsed) * 1_000;
}

const seen = new Map<string, number[]>(Object.keys(ways).map((name) => [name, []]));
for (let round = 0; round < rounds; round++)
  for (const [name, one] of Object.entries(ways)) seen.get(name)?.push(await drain(one));
const median = (all: readonly number[] = []) =>
  all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] as number;
for (const [name, all] of seen)
  console.log(`${name}: ${Math.round(median(all))} jobs/s (${all.map(Math.round)})`);
console.log(`batch / single: ${(median(seen.get("batch")) / median(seen.get("single"))).toFixed(1)}`);
await pool.end();
