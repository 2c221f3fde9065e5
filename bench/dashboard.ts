/**
 * `npm run bench:dashboard`: what the dashboard costs. First the time of the routes behind its lists, filters and search,
 * beside 1,000,000 jobs. Then the CPU of the server at 2,000 jobs/s, with no tab, with one and with ten open, in `--rounds N`. Arguments:
 * stores to measure (sqlite, postgres, or the address of an empty PostgreSQL database), `--jobs N`, `--seconds N`. `postgres` is the
 * server of the tests, with fsync on.
 * `--at <folder>` keeps the SQLite store there and uses it again, and `--fill` does nothing else: filling takes minutes, in
 * which the machine need not be quiet. `--no-index` leaves out the search index, which takes minutes to build.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { defineJob, type Engine, openEngine, processor, silentLogger } from "../src/index.ts";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    jobs: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "20" },
    rounds: { type: "string", default: "3" },
    repeats: { type: "string", default: "40" },
    at: { type: "string" },
    fill: { type: "boolean", default: false },
    "no-index": { type: "boolean", default: false },
  },
});
const JOBS = Number(values.jobs);
const SECONDS = Number(values.seconds);
const ROUNDS = Number(values.rounds);
const REPEATS = Number(values.repeats);
const STORES = positionals.length > 0 ? positionals : ["sqlite", "postgres"];
const RATE = 2_000;
const BATCH = 5_000;
const QUEUES = 20;
const TYPES = 10;

const definitions = Array.from({ length: TYPES }, (_, type) => defineJob({ type: `bench.type-${type}` }));
const done = defineJob({ type: "bench.done", queue: "done" });
const failed = defineJob({ type: "bench.failed", queue: "done", retry: { attempts: 1 } });

/** A tenth scheduled, a tenth completed, a fiftieth discarded, the rest waits in many queues under many types. */
async function fill(engine: Engine): Promise<void> {
  const payloads = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => ({
      customer: `customer-${from + index}`,
      order: { id: from + index, lines: ["book", "lamp"], note: "leave it with the neighbour" },
    }));
  const add = async (
    share: number,
    enqueue: (items: ReturnType<typeof payloads>, nth: number) => Promise<unknown>,
  ) => {
    const count = Math.ceil(JOBS * share);
    for (let from = 0; from < count; from += BATCH)
      await enqueue(payloads(from, Math.min(BATCH, count - from)), from / BATCH);
  };
  await add(0.1, (items) => engine.enqueueMany(done, items));
  await add(0.02, (items) => engine.enqueueMany(failed, items));
  await drain(engine, Math.ceil(JOBS * 0.1) + Math.ceil(JOBS * 0.02));
  const definitionOf = (nth: number) => definitions[nth % TYPES] as (typeof definitions)[number];
  await add(0.1, (items, nth) => engine.enqueueMany(definitionOf(nth), items, { delay: "1d" }));
  await add(0.78, (items, nth) =>
    engine.enqueueMany(definitionOf(nth), items, { queue: `queue-${nth % QUEUES}` }),
  );
}

async function drain(engine: Engine, count: number): Promise<void> {
  let left = count;
  const { promise, resolve } = Promise.withResolvers<void>();
  const note = () => {
    left -= 1;
    if (left === 0) resolve();
  };
  engine.on("job.completed", note);
  engine.on("job.discarded", note);
  const worker = engine.work({
    queues: { done: { concurrency: 200 } },
    processors: [
      processor(done, () => {}),
      processor(failed, () => {
        throw new Error("the receiver did not answer");
      }),
    ],
  });
  await promise;
  await worker.close();
}

const LIST = "/admin/jobs?per_page=50";
const ROUTES: readonly (readonly [what: string, path: string])[] = [
  ["jobs, newest first", LIST],
  ["jobs, oldest first", `${LIST}&order=asc`],
  ["by state, many", `${LIST}&state=available`],
  ["by state, few", `${LIST}&state=discarded`],
  ["by queue", `${LIST}&queue=queue-7`],
  ["by type", `${LIST}&type=bench.type-3`],
  ["by state, queue and type", `${LIST}&state=available&queue=queue-3&type=bench.type-3`],
  ["by state, queue and type, none fits", `${LIST}&state=discarded&queue=queue-3&type=bench.type-3`],
  ["by state and time", `${LIST}&state=scheduled&since=2020-01-01T00:00:00Z`],
  ["payload search, found early", `${LIST}&search=neighbour`],
  ["payload search, none in 10,000", `${LIST}&search=no-such-customer`],
  ["payload search with state and type", `${LIST}&search=no-such-customer&state=available&type=bench.type-3`],
  ["near misses", "/admin/jobs/near-misses?per_page=50"],
  ["timeouts that fired", "/admin/timeouts-fired?per_page=50"],
  ["statistics", "/admin/stats"],
  ["queues", "/admin/queues?per_page=200"],
  ["history of an hour", "/admin/stats/history?period=1m"],
  ["dead letters", "/admin/dead-letter/stats"],
];

/** The same searches with the index, and some that only it can do within one request. */
const INDEXED: readonly (readonly [what: string, path: string])[] = [
  ["index: found early", `${LIST}&search=neighbour`],
  ["index: none in all jobs", `${LIST}&search=no-such-customer`],
  ["index: one of all jobs, old", `${LIST}&search=customer-77777%22`],
  ["index: one of all jobs, with state and type", `${LIST}&search=customer-77777%22&state=available`],
  ["index: some hundred of all jobs", `${LIST}&search=customer-777`],
];

interface Row {
  readonly what: string;
  readonly [figure: string]: string;
}

async function timeRoutes(url: string): Promise<Row[]> {
  return timeAll(url, [...ROUTES, ["jobs, the 20th page", await pageOf(url, 20)]]);
}

async function timeAll(url: string, routes: typeof ROUTES): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [what, path] of routes) rows.push({ what, ...(await timeOf(`${url}/ojs/v1${path}`)) });
  return rows;
}

/** The address of a later page of the list, found as a reader does: page by page. */
async function pageOf(url: string, nth: number): Promise<string> {
  let path = LIST;
  for (let page = 1; page < nth; page++) {
    const body = (await (await fetch(`${url}/ojs/v1${path}`)).json()) as {
      readonly pagination: { readonly next_cursor: string };
    };
    path = `${LIST}&cursor=${encodeURIComponent(body.pagination.next_cursor)}`;
  }
  return path;
}

async function timeOf(address: string): Promise<Record<"p50" | "p95" | "most", string>> {
  const took: number[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const from = performance.now();
    const reply = await fetch(address);
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${address}: ${reply.status} ${text.slice(0, 200)}`);
    took.push(performance.now() - from);
  }
  took.sort((a, b) => a - b);
  const at = (share: number) => (took[Math.min(REPEATS - 1, Math.floor(REPEATS * share))] ?? 0).toFixed(1);
  return { p50: at(0.5), p95: at(0.95), most: at(1) };
}

const rest = (span: number) => new Promise<void>((resolve) => setTimeout(resolve, span));

async function ask<Reply>(child: ChildProcess, message: unknown): Promise<Reply> {
  child.send(message as string);
  const [reply] = await once(child, "message");
  return reply as Reply;
}

interface Tabs {
  readonly tabs: number;
  readonly reads: boolean;
}

const LOADS: readonly Tabs[] = [
  { tabs: 0, reads: false },
  { tabs: 1, reads: true },
  { tabs: 10, reads: true },
  { tabs: 10, reads: false },
];

/** Per cent of a core that the server uses, and what it did meanwhile. */
async function loadWith(server: ChildProcess, url: string, { tabs, reads }: Tabs): Promise<Row> {
  const script = join(import.meta.dirname, "dashboard-tabs.ts");
  const readers = tabs > 0 ? fork(script, [url, String(tabs), reads ? "reads" : "listens"]) : undefined;
  if (readers) await once(readers, "message");
  await rest(3_000);
  await ask(server, "usage");
  const from = performance.now();
  await rest(SECONDS * 1_000);
  const { cpu, ended } = await ask<{ cpu: number; ended: number }>(server, "usage");
  const span = performance.now() - from;
  const heard = readers && (await ask<{ pulses: number; replies: number }>(readers, "figures"));
  readers?.disconnect();
  return {
    what: `${tabs} tabs${tabs > 0 && !reads ? " that only listen" : ""}`,
    [CPU]: (cpu / 10 / span).toFixed(1),
    "jobs/s": (ended / (span / 1_000)).toFixed(0),
    replies: String(heard?.replies ?? 0),
  };
}

const CPU = "CPU, % of a core";

/** What each load costs beyond no tab, in the median of the rounds. */
function costsOf(rounds: readonly (readonly Row[])[]): Row[] {
  return LOADS.slice(1).map((_, index) => {
    const costs = rounds.map((rows) => Number(rows[index + 1]?.[CPU]) - Number(rows[0]?.[CPU]));
    const sorted = costs.toSorted((a, b) => a - b);
    return {
      what: rounds[0]?.[index + 1]?.what ?? "",
      "costs, % of a core": (sorted[Math.floor(sorted.length / 2)] ?? 0).toFixed(1),
      "of each round": costs.map((cost) => cost.toFixed(1)).join(", "),
    };
  });
}

/** What an enqueue costs without the index and with it, how long it takes to build, and what a search takes then. */
async function timeIndex(store: string, url: string): Promise<void> {
  const engine = await openEngine({ store, logger: silentLogger });
  const probe = defineJob({ type: "bench.probe", queue: "probe" });
  const enqueue = async () => {
    const from = performance.now();
    for (let nth = 0; nth < 20; nth++)
      await engine.enqueueMany(
        probe,
        Array.from({ length: 1_000 }, (_, index) => ({
          customer: `probe-${nth}-${index}`,
          note: "leave it",
        })),
      );
    return ((performance.now() - from) / 20_000) * 1_000;
  };
  const without = await enqueue();
  const from = performance.now();
  await engine.store.search?.build(() => {});
  const seconds = (performance.now() - from) / 1_000;
  const withIndex = await enqueue();
  await engine.close();
  console.log(
    `the index was built in ${seconds.toFixed(0)} s; an enqueue in a batch of 1,000 takes ${without.toFixed(0)} µs without it, ${withIndex.toFixed(0)} µs with it`,
  );
  console.table(await timeAll(url, INDEXED));
}

async function measure(name: string, store: string): Promise<void> {
  const startedAt = performance.now();
  const engine = await openEngine({ store, logger: silentLogger });
  const { jobs } = await engine.find({}, { limit: 1 });
  if (jobs.length === 0) await fill(engine);
  await engine.close();
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  console.log(
    `${name}: ${JOBS.toLocaleString("en")} jobs after ${seconds} s; load of the machine ${loadavg()[0]}`,
  );
  if (values.fill) return;
  const server = fork(join(import.meta.dirname, "dashboard-server.ts"), [store]);
  const [{ url }] = (await once(server, "message")) as [{ url: string }];
  if (REPEATS > 0) console.table(await timeRoutes(url));
  if (!values["no-index"]) await timeIndex(store, url);
  if (SECONDS === 0) {
    server.send("close");
    await once(server, "exit");
    return;
  }
  server.send({ rate: RATE });
  // In turns, so that a slower minute of the machine falls on all loads.
  const rounds: Row[][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const rows: Row[] = [];
    for (const load of LOADS) rows.push(await loadWith(server, url, load));
    console.table(rows);
    rounds.push(rows);
  }
  console.table(costsOf(rounds));
  server.send({ rate: 0 });
  server.send("close");
  await once(server, "exit");
}

const folder = values.at ?? mkdtempSync(join(tmpdir(), "curfew-bench-dashboard-"));
if (values.at !== undefined) mkdirSync(folder, { recursive: true });
try {
  if (STORES.includes("sqlite")) await measure("sqlite", `sqlite:${join(folder, "dashboard.db")}`);
  if (STORES.includes("postgres")) {
    await using server = await startOwnPostgres();
    await using database = await createDatabase(server.url);
    await measure("postgres", database.url);
  }
  // A server of yours keeps what was filled, as `--at` does.
  for (const url of STORES.filter((store) => store.startsWith("postgres://"))) await measure("postgres", url);
} finally {
  if (values.at === undefined) rmSync(folder, { recursive: true });
}
