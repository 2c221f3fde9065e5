/**
 * `npm run bench:why`: what `why` and `ls` cost beside 1,000,000 jobs, on SQLite and on PostgreSQL. The time is that of the
 * whole call, so it bounds the time that the store takes. `npm run bench:why -- 100000` takes fewer jobs.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defineJob, type Engine, type JobQuery, openEngine, silentLogger } from "../src/index.ts";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";

const JOBS = Number(process.argv[2] ?? 1_000_000);
const WORKERS = 100;
const PROCESSORS = 50;
const REPEATS = 100;
const BATCH = 10_000;

const plain = defineJob({ type: "mail.send" });
const limited = defineJob({ type: "mail.push", limit: { key: "smtp", concurrency: 1 } });

/** The last job of each kind that was added. */
type Asked = Record<string, string>;

async function fill(store: string): Promise<Asked> {
  const engine = await openEngine({ store, logger: silentLogger });
  const last: Asked = {};
  const add = async (name: string, share: number, enqueue: (count: number) => Promise<{ id: string }[]>) => {
    for (let left = Math.ceil(JOBS * share); left > 0; left -= BATCH)
      last[name] = (await enqueue(Math.min(BATCH, left))).at(-1)?.id as string;
  };
  const many = (count: number) => Array(count).fill(null);
  await add("available", 0.4, (count) => engine.enqueueMany(plain, many(count)));
  await add("scheduled", 0.2, (count) => engine.enqueueMany(plain, many(count), { delay: "1d" }));
  await add("at a limit", 0.2, (count) => engine.enqueueMany(limited, many(count)));
  await add("scheduled, with a limit", 0.2, (count) =>
    engine.enqueueMany(limited, many(count), { delay: "1d" }),
  );
  await beat(engine);
  await engine.close();
  return last;
}

/** Records as workers write them, with a few dozen processors each. */
async function beat(engine: Engine): Promise<void> {
  const now = engine.now();
  const types = Array.from(
    { length: PROCESSORS },
    (_, index) => `some.job.type-${String.fromCharCode(97 + (index % 26))}`,
  );
  const processors = [plain.type, limited.type, ...types].map((type) => [
    type,
    "default",
    { timeouts: { attempt: 30_000, total: 600_000 } },
  ]);
  for (let index = 0; index < WORKERS; index++) {
    const body = {
      seenAt: now + 3_600_000,
      queues: ["default"],
      running: 10,
      slots: { default: [10, 10] },
      processors,
    };
    await engine.store.jobs.beat({
      now,
      worker: { id: `worker-${index}`, body, wakeAt: now + 7_200_000 },
      jobs: [],
    });
  }
}

async function measure(name: string, store: string): Promise<void> {
  const asked = await fill(store);
  const engine = await openEngine({ store, logger: silentLogger });
  for (const [what, id] of Object.entries(asked)) {
    const why = await engine.why(id);
    await time(`${name}: why, ${what} (${why.reasons[0]?.code})`, () => engine.why(id));
  }
  for (const [what, query] of Object.entries(LISTS))
    await time(`${name}: ls ${what}`, () => engine.find(query, { limit: 50, newestFirst: true }));
  await time(`${name}: queues.unattended`, () => engine.queues.unattended());
  await engine.close();
}

/** What `curfew ls` asks for, each with the options of the command. */
const LISTS: Readonly<Record<string, JobQuery>> = {
  "": {},
  "--state available": { state: "available" },
  "--state scheduled --queue default": { state: "scheduled", queue: "default" },
  "--type mail.push": { type: "mail.push" },
  "--state discarded": { state: "discarded" },
  "--type no.such": { type: "no.such" },
  "--queue no-such": { queue: "no-such" },
};

async function time(name: string, run: () => Promise<unknown>): Promise<void> {
  const took: number[] = [];
  const cpu = process.cpuUsage();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const from = performance.now();
    await run();
    took.push(performance.now() - from);
  }
  const { user, system } = process.cpuUsage(cpu);
  const each = ((user + system) / 1_000 / REPEATS).toFixed(1);
  took.sort((a, b) => a - b);
  const at = (share: number) =>
    (took[Math.min(REPEATS - 1, Math.floor(REPEATS * share))] as number).toFixed(1);
  console.log(
    `${name.padEnd(70)} fastest ${at(0)} ms, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms, CPU of this process ${each} ms`,
  );
}

const folder = mkdtempSync(join(tmpdir(), "curfew-bench-why-"));
try {
  console.log(`${JOBS.toLocaleString("en")} jobs, ${WORKERS} workers, ${REPEATS} calls of each`);
  await measure("sqlite", `sqlite:${join(folder, "why.db")}`);
  await using server = await startOwnPostgres();
  await using database = await createDatabase(server.url);
  await measure("postgres", database.url);
} finally {
  rmSync(folder, { recursive: true });
}
