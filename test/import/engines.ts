import { Queue } from "bullmq";
import { makeWorkerUtils } from "graphile-worker";
import { Redis } from "ioredis";
import pg from "pg";
import { PgBoss } from "pg-boss";

/** A job system with waiting jobs, each of which has its number as payload. */
export interface FilledEngine extends AsyncDisposable {
  readonly name: string;
  /** The flags of `curfew import` that name it. */
  readonly flags: readonly string[];
  /** How many jobs it still has. */
  left(): Promise<number>;
}

const CHUNK = 1_000;

/** The numbers from 0 up to `count`, in lists. */
function* chunks(count: number): Generator<number[]> {
  for (let first = 0; first < count; first += CHUNK)
    yield Array.from({ length: Math.min(CHUNK, count - first) }, (_, index) => first + index);
}

export async function fillPgBoss(source: string, count: number): Promise<FilledEngine> {
  const boss = new PgBoss({ connectionString: source, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue("numbers");
  for (const numbers of chunks(count))
    await boss.insert(
      "numbers",
      numbers.map((n) => ({ data: { n } })),
    );
  await boss.stop({ graceful: false });
  return postgresEngine(
    "pg-boss",
    source,
    "select count(*)::int as count from pgboss.job where name = 'numbers'",
  );
}

export async function fillGraphile(source: string, count: number): Promise<FilledEngine> {
  const utils = await makeWorkerUtils({ connectionString: source });
  await utils.migrate();
  for (const numbers of chunks(count))
    await utils.addJobs(numbers.map((n) => ({ identifier: "numbers", payload: { n } })));
  await utils.release();
  return postgresEngine("graphile-worker", source, "select count(*)::int as count from graphile_worker.jobs");
}

async function postgresEngine(name: string, source: string, statement: string): Promise<FilledEngine> {
  const client = new pg.Client({ connectionString: source });
  await client.connect();
  return {
    name,
    flags: ["--from", name, "--source", source],
    left: async () => (await client.query<{ count: number }>(statement)).rows[0]?.count ?? 0,
    [Symbol.asyncDispose]: () => client.end(),
  };
}

export async function fillBullmq(source: string, count: number): Promise<FilledEngine> {
  const redis = new Redis(source, { maxRetriesPerRequest: null });
  const queue = new Queue("numbers", { connection: redis });
  for (const numbers of chunks(count))
    await queue.addBulk(numbers.map((n) => ({ name: "number", data: { n } })));
  return {
    name: "bullmq",
    flags: ["--from", "bullmq", "--source", source, "--only", "numbers"],
    left: () => queue.getJobCountByTypes("waiting"),
    async [Symbol.asyncDispose]() {
      await queue.close();
      redis.disconnect();
    },
  };
}
