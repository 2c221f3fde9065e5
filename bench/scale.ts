/**
 * `npm run bench:scale`: the drain of a PostgreSQL store by 1, 2, 4 and 8 worker processes, and from many small queues.
 * `-- --jobs 40000 --processes 1,2,4,8 --queues 1,100 --rounds 3` changes it. Each worker process runs 10 jobs at a time in all,
 * whatever the number of its queues. All of it runs on one machine: with more processes than cores, only the CPU of a job says
 * something about more machines.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import pg from "pg";
import { defineJob, openEngine, processor, silentLogger, unchecked } from "../src/index.ts";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";
import { median, ServerMeter } from "./measure.ts";

const { values } = parseArgs({
  options: {
    jobs: { type: "string", default: "40000" },
    processes: { type: "string", default: "1,2,4,8" },
    queues: { type: "string", default: "1,100" },
    rounds: { type: "string", default: "3" },
    child: { type: "string" },
    url: { type: "string" },
  },
});
const CONCURRENCY = 10;
const job = defineJob({ type: "scale", payload: unchecked<number>(), retention: "0s" });
const namesOf = (count: number) => Array.from({ length: count }, (_, nth) => `queue-${nth}`);
const numbers = (text: string) => text.split(",").map(Number);

if (values.child === undefined) await main();
else await child(namesOf(Number(values.child)));

/** Opens an engine, works when it is told to, and says what it used when it is told to end. */
async function child(names: readonly string[]): Promise<void> {
  const engine = await openEngine({ store: values.url as string, logger: silentLogger });
  const concurrency = Math.max(1, Math.floor(CONCURRENCY / names.length));
  const queues = Object.fromEntries(names.map((name) => [name, { concurrency }]));
  let from: NodeJS.CpuUsage;
  process.on("message", async (message) => {
    if (message === "work") {
      from = process.cpuUsage();
      engine.work({ queues, processors: [processor(job, () => {})] });
      return;
    }
    const { user, system } = process.cpuUsage(from);
    process.send?.(user + system);
    await engine.close({ drain: "0s" });
    process.disconnect();
  });
  process.send?.("ready");
}

interface Run {
  readonly rate: number;
  readonly node: number;
  readonly server: number;
}

async function drain(server: string, processes: number, names: readonly string[]): Promise<Run> {
  await using database = await createDatabase(server);
  const jobs = Number(values.jobs);
  const filling = await openEngine({ store: database.url, logger: silentLogger });
  const each = Math.floor(jobs / names.length);
  for (const queue of names)
    for (let left = each; left > 0; left -= 5_000)
      await filling.enqueueMany(job, new Array(Math.min(left, 5_000)).fill(0), { queue });
  await filling.close();
  const watcher = new pg.Client(database.url);
  await watcher.connect();
  await watcher.query("vacuum analyze");
  const args = ["--child", String(names.length), "--url", database.url];
  const children: ChildProcess[] = [];
  for (let nth = 0; nth < processes; nth++) {
    const started = fork(import.meta.filename, args);
    await once(started, "message");
    children.push(started);
  }
  const meter = await ServerMeter.of(server);
  const [cpu, from] = [meter.cpu(), performance.now()];
  for (const started of children) started.send("work");
  while ((await watcher.query("select 1 from curfew.jobs limit 1")).rowCount !== 0)
    await new Promise((resolve) => setTimeout(resolve, 20));
  const seconds = (performance.now() - from) / 1_000;
  const used = meter.cpu() - cpu;
  let node = 0;
  for (const started of children) {
    started.send("end");
    node += ((await once(started, "message")) as [number])[0];
    await once(started, "exit");
  }
  await watcher.end();
  const done = each * names.length;
  return { rate: done / seconds, node: node / done, server: used / done };
}

async function main(): Promise<void> {
  await using server = await startOwnPostgres(undefined, ["shared_buffers=1GB", "max_wal_size=8GB"]);
  const shapes = numbers(values.queues).flatMap((queues) =>
    numbers(values.processes).map((processes) => ({ queues, processes, runs: [] as Run[] })),
  );
  for (let round = 0; round < Number(values.rounds); round++)
    for (const { queues, processes, runs } of shapes)
      runs.push(await drain(server.url, processes, namesOf(queues)));
  console.log("| queues | worker processes | jobs/s | Node µs/job | server µs/job |");
  console.log("|---:|---:|---:|---:|---:|");
  for (const { queues, processes, runs } of shapes) {
    const of = (name: keyof Run) => median(runs.map((run) => run[name]));
    const cells = [queues, processes, Math.round(of("rate")), of("node").toFixed(1), of("server").toFixed(1)];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
