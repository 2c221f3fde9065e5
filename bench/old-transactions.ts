/**
 * `npm run bench:old-transactions`: what somebody's open transaction does to a queue. While it is open, no vacuum may remove a row
 * that was deleted or replaced after it began. For each contender, on a database of its own: jobs come at a steady rate and a
 * worker runs them, first without such a transaction, then beside one. `-- curfew graphile --minutes 1 --rate 50000 --windows 5`
 * picks contenders, the time beside the transaction, jobs a minute, and into how many rows of the table that time is cut.
 *
 * A probe every 200 ms tells how long a job takes from its enqueue to its start: the time of a claim, as users see it.
 */
import { parseArgs } from "node:util";
import pg from "pg";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";
import type { Contender, OpenContender } from "./contender.ts";
import { CONTENDERS, keyOf } from "./contenders/all.ts";
import { percentile, ServerMeter } from "./measure.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: "string", default: "10" },
    rate: { type: "string", default: "50000" },
    windows: { type: "string", default: "5" },
  },
});
const NAMES = ["curfew-drop", "curfew-keep", "graphile-worker", "pg-boss"];
const window = (Number(values.minutes) * 60_000) / Number(values.windows);
const FEED_EVERY = 100;
const PROBE_EVERY = 200;
const FIRST_PROBE = 1_000_000_000;
const perFeed = Math.round((Number(values.rate) / 60_000) * FEED_EVERY);
const rest = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Feeds jobs and probes until it is stopped, and counts what the worker does. */
class Load {
  readonly #queue: OpenContender;
  readonly #sent = new Map<number, number>();
  readonly timers: NodeJS.Timeout[] = [];
  #probes = 0;
  done = 0;
  fed = 0;
  waits: number[] = [];

  constructor(queue: OpenContender) {
    this.#queue = queue;
  }

  handle(n: number): void {
    this.done += 1;
    const sentAt = this.#sent.get(n);
    if (sentAt === undefined) return;
    this.#sent.delete(n);
    this.waits.push(performance.now() - sentAt);
  }

  start(): void {
    const feed = () => {
      this.fed += perFeed;
      void this.#queue.enqueue(perFeed);
    };
    const probe = () => {
      const n = FIRST_PROBE + this.#probes++;
      this.#sent.set(n, performance.now());
      this.fed += 1;
      void this.#queue.add(n);
    };
    this.timers.push(setInterval(feed, FEED_EVERY), setInterval(probe, PROBE_EVERY));
  }

  stop(): void {
    for (const timer of this.timers) clearInterval(timer);
  }
}

const SIZES = `
select coalesce(sum(n_dead_tup), 0)::int as dead, (pg_database_size(current_database()) / 1e6)::int as size
  from pg_stat_user_tables`;

async function measure(contender: Contender, server: string): Promise<void> {
  await using database = await createDatabase(server);
  const meter = await ServerMeter.of(server);
  const queue = await contender.open(database.url);
  const watcher = new pg.Client(database.url);
  await watcher.connect();
  const load = new Load(queue);
  const stop = await queue.work(10, (n) => load.handle(n));
  load.start();
  await rest(Math.min(window, 10_000));
  const holder = new pg.Client(database.url);
  await holder.connect();
  for (let nth = 0; nth <= Number(values.windows); nth++) {
    if (nth === 1) await holder.query("begin isolation level repeatable read; select count(*) from pg_class");
    Object.assign(load, { done: 0, fed: 0, waits: [] });
    const [cpu, from] = [meter.cpu(), performance.now()];
    await rest(window);
    const seconds = (performance.now() - from) / 1_000;
    const { rows } = await watcher.query(SIZES);
    const cells = [
      contender.name,
      nth === 0 ? "none" : `${((nth * window) / 60_000).toFixed(1)} min`,
      Math.round(load.fed / seconds),
      Math.round(load.done / seconds),
      ...[0.5, 0.99].map((share) => (load.waits.length > 0 ? percentile(load.waits, share).toFixed(1) : "–")),
      ((meter.cpu() - cpu) / Math.max(1, load.done)).toFixed(0),
      rows[0].dead,
      rows[0].size,
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
  load.stop();
  await holder.end();
  await stop();
  await queue.close();
  await watcher.end();
}

await using server = await startOwnPostgres(undefined, ["shared_buffers=1GB", "max_wal_size=8GB"]);
const wanted = CONTENDERS.filter(
  ({ database, name }) => database === "postgres" && NAMES.includes(name.replaceAll(" ", "-")),
).filter(
  (each) =>
    positionals.length === 0 || positionals.some((start) => keyOf(each).startsWith(`postgres/${start}`)),
);
console.log(
  "| contender | transaction open for | fed/s | done/s | start p50 ms | p99 ms | server µs/job | dead rows | MB |",
);
console.log("|---|---:|---:|---:|---:|---:|---:|---:|---:|");
for (const contender of wanted) await measure(contender, server.url);
