/**
 * `npm run bench -- [workload or contender names] [--rounds 5] [--jobs 30000] [--url postgres://…] [--out file.json]`
 *
 * All contenders run in the same rounds, one after the other, so that whatever disturbs the machine disturbs all of
 * them. Without a URL it starts its own PostgreSQL with production settings.
 */
import { writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import pg from "pg";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import type { Contender, OpenContender } from "./contender.ts";
import { curfew } from "./contenders/curfew.ts";
import { floor } from "./contenders/floor.ts";
import { graphileWorker } from "./contenders/graphile-worker.ts";
import { pgBoss } from "./contenders/pg-boss.ts";
import { measure, type Sample, ServerMeter } from "./measure.ts";
import { printTable } from "./report.ts";

interface Workload {
  readonly name: string;
  readonly count: number;
  prepare(contender: OpenContender, count: number): Promise<void>;
  /** Gives a function that ends what it has started; it is not measured. */
  run(contender: OpenContender, count: number, begin: () => void): Promise<() => Promise<void>>;
}

const CONTENDERS: readonly Contender[] = [curfew("drop"), curfew("keep"), graphileWorker, pgBoss, floor];

function workloads(jobs: number | undefined): Workload[] {
  const drain = (concurrency: number): Workload => ({
    name: `drain-${concurrency}`,
    count: jobs ?? 30_000,
    prepare: (contender, count) => contender.enqueue(count),
    run: (contender, count, begin) => contender.drain(count, concurrency, begin),
  });
  const enqueue: Workload = {
    name: "enqueue",
    count: jobs ?? 50_000,
    prepare: async () => {},
    async run(contender, count, begin) {
      begin();
      await contender.enqueue(count);
      return async () => {};
    },
  };
  return [enqueue, drain(10), drain(100)];
}

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: "string", default: "5" },
    jobs: { type: "string" },
    url: { type: "string" },
    out: { type: "string", default: join(import.meta.dirname, "results.json") },
  },
});
const rounds = Number(options.rounds);

/** A name picks workloads or contenders that begin with it; without one, all run. */
function picked<Named extends { readonly name: string }>(all: readonly Named[]): readonly Named[] {
  const chosen = all.filter(({ name }) => names.some((wanted) => name.startsWith(wanted)));
  return chosen.length > 0 ? chosen : all;
}

interface Running {
  readonly name: string;
  readonly contender: OpenContender;
  /** Brings the statistics up to date, as autovacuum would in time: nobody is measured by a plan for an empty table. */
  analyze(): Promise<void>;
  close(): Promise<void>;
}

/** Gives each contender a database of its own. */
async function openAll(url: string): Promise<Running[]> {
  const running: Running[] = [];
  for (const { name, open } of picked(CONTENDERS)) {
    const database = await createDatabase(url);
    const contender = await open(database.url);
    const pool = new pg.Pool({ connectionString: database.url, max: 1 });
    const close = async () => {
      await contender.close();
      await pool.end();
      await database[Symbol.asyncDispose]();
    };
    running.push({ name, contender, analyze: async () => void (await pool.query("vacuum analyze")), close });
  }
  return running;
}

/** Prepares, measures and cleans up one contender once. */
async function sampleOf(
  workload: Workload,
  { contender, analyze }: Running,
  meter: ServerMeter,
): Promise<Sample> {
  const { count } = workload;
  await workload.prepare(contender, count);
  await analyze();
  let stop = async () => {};
  const sample = await measure(count, meter, async (begin) => {
    stop = await workload.run(contender, count, begin);
  });
  await stop();
  await contender.clear();
  return sample;
}

type Samples = Record<string, Sample[]>;

/** The first round only warms up: plans are made, code is compiled, files are grown. */
async function runRounds(
  workload: Workload,
  running: readonly Running[],
  meter: ServerMeter,
): Promise<Samples> {
  const samples: Samples = Object.fromEntries(running.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const each of running) {
      const { name } = each;
      const sample = await sampleOf(workload, each, meter);
      if (round > 0) samples[name]?.push(sample);
      const label = round === 0 ? "warm-up" : `round ${round}/${rounds}`;
      console.error(`${workload.name} ${label}: ${name} ${Math.round(sample.rate).toLocaleString("en")}/s`);
    }
  }
  return samples;
}

/**
 * The first write to a page after a checkpoint costs a copy of the whole page, so checkpoints come as they do in
 * production: by the clock, and not by the amount that a benchmark writes.
 */
async function readVersion(url: string, isOwn: boolean): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  if (isOwn) {
    await client.query("alter system set max_wal_size = '8GB'");
    await client.query("select pg_reload_conf()");
  }
  const { rows } = await client.query<{ version: string }>("select version()");
  await client.end();
  return rows[0]?.version ?? "unknown";
}

async function main(): Promise<void> {
  const server = options.url ? undefined : await startPostgres();
  const url = options.url ?? (server?.url as string);
  const postgres = await readVersion(url, server !== undefined);
  const meter = await ServerMeter.of(url);
  const running = await openAll(url);
  const samples: Record<string, Samples> = {};
  for (const workload of picked(workloads(options.jobs ? Number(options.jobs) : undefined))) {
    const ofWorkload = await runRounds(workload, running, meter);
    samples[workload.name] = ofWorkload;
    printTable(workload.name, workload.count, ofWorkload);
  }
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version, postgres };
  writeFileSync(options.out, `${JSON.stringify({ at: new Date(), machine, rounds, samples }, null, 2)}\n`);
  for (const { close } of running) await close();
  await server?.[Symbol.asyncDispose]();
}

await main();
