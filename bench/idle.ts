/**
 * `npm run bench:idle`: what engines cost PostgreSQL while they do nothing. `-- --processes 500 --queues 1 --crons 0 --seconds
 * 30 --settle 45` opens that many engines with a worker each, in programs of 50, waits until they have settled, and tells
 * statements, transactions, connections and the CPU of the server. `--top` lists the statements.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import pg from "pg";
import { defineJob, openEngine, processor, silentLogger, unchecked } from "../src/index.ts";
import { startOwnPostgres } from "../test/postgres.ts";
import { ServerMeter } from "./measure.ts";

const PER_PROGRAM = 50;
/** An engine that opens needs more connections than one at rest. */
const BETWEEN = 15_000;

const { values } = parseArgs({
  options: {
    processes: { type: "string", default: "1" },
    queues: { type: "string", default: "1" },
    crons: { type: "string", default: "0" },
    seconds: { type: "string", default: "30" },
    /** Connections that are not used are closed within half a minute. */
    settle: { type: "string", default: "45" },
    top: { type: "boolean", default: false },
    url: { type: "string" },
    child: { type: "string" },
  },
});
const seconds = Number(values.seconds);
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

if (values.child === undefined) await main();
else await child(Number(values.child));

/** Opens engines and rests until its parent ends it. */
async function child(count: number): Promise<void> {
  const job = defineJob({ type: "idle", payload: unchecked<number>() });
  const names = Array.from({ length: Number(values.queues) }, (_, nth) => `queue-${nth}`);
  const queues = Object.fromEntries(names.map((name) => [name, { concurrency: 1 }]));
  for (let nth = 0; nth < count; nth++) {
    const engine = await openEngine({ store: values.url as string, logger: silentLogger });
    engine.work({ queues, processors: [processor(job, () => {})] });
    engine.timeouts.serve("idle", () => {});
  }
  process.send?.("ready");
  process.on("disconnect", () => process.exit());
}

async function addCrons(url: string, count: number): Promise<void> {
  const job = defineJob({ type: "idle", payload: unchecked<number>() });
  const engine = await openEngine({ store: url, logger: silentLogger });
  for (let from = 0; from < count; from += 100)
    await Promise.all(
      Array.from({ length: Math.min(100, count - from) }, (_, nth) =>
        engine.crons.put(`cron-${from + nth}`, { cron: "0 0 1 1 *", job, payload: nth }),
      ),
    );
  await engine.close();
}

async function main(): Promise<void> {
  await using server = await startOwnPostgres(undefined, [
    "shared_preload_libraries=pg_stat_statements",
    "max_connections=2000",
  ]);
  const processes = Number(values.processes);
  await (await openEngine({ store: server.url, logger: silentLogger })).close();
  await addCrons(server.url, Number(values.crons));
  const programs = [];
  for (let left = processes; left > 0; left -= PER_PROGRAM) {
    const args = [
      "--child",
      String(Math.min(left, PER_PROGRAM)),
      "--queues",
      values.queues,
      "--url",
      server.url,
    ];
    const program = fork(import.meta.filename, args);
    programs.push(program);
    await once(program, "message");
    if (left > PER_PROGRAM) await rest(BETWEEN);
  }
  const watcher = new pg.Client(server.url);
  await watcher.connect();
  await watcher.query("create extension if not exists pg_stat_statements");
  await rest(Number(values.settle) * 1_000);
  await watcher.query("select pg_stat_statements_reset()");
  const meter = await ServerMeter.of(server.url);
  const [cpu, from] = [meter.cpu(), performance.now()];
  await rest(seconds * 1_000);
  const [used, elapsed] = [meter.cpu() - cpu, (performance.now() - from) / 1_000];
  const mine = "where query not like '%pg_stat%'";
  const { rows: counted } = await watcher.query(
    `select sum(calls)::int as calls from pg_stat_statements ${mine}`,
  );
  const { rows: open } = await watcher.query(
    "select count(*)::int as count from pg_stat_activity where application_name = 'curfew'",
  );
  const per = (count: number) => (count / elapsed / processes).toFixed(2);
  console.log(
    `${processes} engines, ${values.queues} queues each, ${values.crons} crons: ${per(counted[0].calls)} statements/s and ` +
      `${(open[0].count / processes).toFixed(1)} connections each; the server takes ${((used / elapsed / 1e6) * 100).toFixed(1)} % of a core`,
  );
  if (values.top) {
    const { rows } = await watcher.query(
      `select calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 90) as query, (total_exec_time / calls * 1000)::int as us
         from pg_stat_statements ${mine} order by calls desc limit 25`,
    );
    console.table(rows);
  }
  await watcher.end();
  for (const program of programs) program.disconnect();
}
