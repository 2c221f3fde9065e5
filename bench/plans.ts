/**
 * `npm run bench:plans`: what claims and sweeps cost beside 1,000 and beside 1,000,000 pending jobs, and by which plans
 * the databases run them. The plans are those that ran, told by the server itself, and not those that might.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { realSystem } from "../src/engine/runtime/real-system.ts";
import { defineJob, openEngine, type Store, unchecked } from "../src/index.ts";
import { openPostgresStore } from "../src/stores/postgres/postgres-store.ts";
import { openSqliteStore } from "../src/stores/sqlite/sqlite-store.ts";
import * as sqlite from "../src/stores/sqlite/statements.ts";
import { createDatabase, startOwnPostgres } from "../test/postgres.ts";
import { type Payload, payloads } from "./contender.ts";
import { median } from "./measure.ts";

const SIZES = [1_000, 1_000_000];
const BATCH = 200;
const REPEATS = 20;
const READY = BATCH * (REPEATS + 5);
const QUEUE = "default";
/** Time enough to add what is due soon and to close the engine, which would promote it. */
const SOON = 5_000;

/** Jobs for tomorrow, jobs that can be claimed, and jobs that fall due when nobody looks. */
async function fill(store: string, pending: number): Promise<void> {
  const later = defineJob({
    type: "later",
    payload: unchecked<Payload>(),
    timeouts: { wait: "2d", attempt: "5m", total: "3d", grace: "30s" },
  });
  const engine = await openEngine({ store });
  for (let from = 0; from < pending; from += 10_000) {
    const count = Math.min(10_000, pending - from);
    await engine.enqueueMany(later, payloads(0, count), { delay: "1d" });
  }
  await engine.enqueueMany(later, payloads(0, READY));
  await engine.enqueueMany(later, payloads(0, READY), { at: new Date(Date.now() + SOON) });
  await engine.close();
  await new Promise((resolve) => setTimeout(resolve, SOON));
}

interface Calls {
  readonly [name: string]: () => Promise<unknown>;
}

async function callsOf(store: Store): Promise<Calls> {
  const now = await store.clock();
  const claim = (queue: string) =>
    store.jobs.claim({ queue, limit: BATCH, now, lease: 10_000, salt: 1, worker: "bench", from: 0 });
  const sweep = (at: number) => store.jobs.sweep({ now: at, limit: BATCH, holdUntil: now + 10_000 });
  return {
    "claim of 200": () => claim(QUEUE),
    "claim from an empty queue": () => claim("empty"),
    "sweep that promotes 200": () => sweep(now),
    "sweep with nothing due": () => sweep(1),
  };
}

interface Times {
  readonly median: number;
  /** What it costs when nothing else runs on the machine. */
  readonly fastest: number;
}

async function timesOf(store: Store): Promise<Map<string, Times>> {
  const times = new Map<string, Times>();
  for (const [name, call] of Object.entries(await callsOf(store))) {
    const costs: number[] = [];
    for (let repeat = 0; repeat < REPEATS; repeat++) {
      const from = performance.now();
      await call();
      costs.push(performance.now() - from);
    }
    times.set(name, { median: median(costs), fastest: Math.min(...costs) });
  }
  return times;
}

interface PlanNode {
  readonly "Node Type": string;
  readonly "Index Name"?: string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly Plans?: readonly PlanNode[];
}

function shown(node: PlanNode, depth = 0): string[] {
  const index = node["Index Name"] ? ` using ${node["Index Name"]}` : "";
  const relation = node["Relation Name"] ? ` on ${node["Relation Name"]}` : "";
  const line = `${"  ".repeat(depth)}${node["Node Type"]}${index}${relation}, ${node["Actual Rows"]} rows`;
  return [line, ...(node.Plans ?? []).flatMap((each) => shown(each, depth + 1))];
}

const EXPLAINED = [
  "session_preload_libraries=auto_explain",
  "auto_explain.log_min_duration=0",
  "auto_explain.log_analyze=on",
  "auto_explain.log_format=json",
  "client_min_messages=log",
];

/** The plans of what the store's own connections ran, with the settings they have. */
async function postgresPlans(url: string): Promise<string[]> {
  const options = EXPLAINED.map((setting) => `-c ${setting}`).join(" ");
  const pool = new pg.Pool({ connectionString: url, options, max: 10 });
  let plans: string[] = [];
  pool.on("connect", (client) =>
    client.on("notice", ({ message }) => {
      const json = message?.split("plan:\n")[1];
      if (json) plans.push(shown((JSON.parse(json) as { Plan: PlanNode }).Plan).join("\n"));
    }),
  );
  const store = await openPostgresStore({ connection: pool, system: realSystem });
  const calls = await callsOf(store);
  const lines: string[] = [];
  for (const [name, call] of Object.entries(calls)) {
    plans = [];
    await call();
    lines.push(`-- ${name}`, ...plans);
  }
  await store.close();
  await pool.end();
  return lines;
}

/** SQLite tells what it would do; `indexed by` leaves it no choice. */
function sqlitePlans(path: string): string[] {
  const file = new DatabaseSync(path, { readOnly: true });
  const { PEEK, CLAIMABLE, CLAIM, NEXT_WAKE, PROMOTABLE, PROMOTE, UNDECIDED, HOLD_DUE_JOBS } = sqlite;
  const texts = { PEEK, CLAIMABLE, CLAIM, NEXT_WAKE, PROMOTABLE, PROMOTE, UNDECIDED, HOLD_DUE_JOBS };
  const lines = Object.entries(texts).flatMap(([name, text]) => {
    const values = [...text.matchAll(/\?/g)].map(() => 0);
    const rows = file.prepare(`explain query plan ${text}`).all(...values) as unknown as { detail: string }[];
    return [`-- ${name}`, ...rows.map(({ detail }) => detail)];
  });
  file.close();
  return lines;
}

interface Measured {
  readonly name: string;
  readonly times: Map<string, Times>;
  readonly plans: readonly string[];
}

async function onPostgres(serverUrl: string, pending: number): Promise<Measured> {
  await using database = await createDatabase(serverUrl);
  await fill(database.url, pending);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("vacuum analyze");
  await client.end();
  const store = await openPostgresStore({ connection: database.url, system: realSystem });
  const times = await timesOf(store);
  await store.close();
  return { name: "PostgreSQL", times, plans: await postgresPlans(database.url) };
}

async function onSqlite(pending: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  const path = join(folder, "jobs.db");
  await fill(`sqlite:${path}`, pending);
  const store = await openSqliteStore({ path, system: realSystem });
  const times = await timesOf(store);
  await store.close();
  const plans = sqlitePlans(path);
  rmSync(folder, { recursive: true });
  return { name: "SQLite", times, plans };
}

function shownTimes({ median: middle, fastest }: Times): string {
  return `${middle.toFixed(2)} (${fastest.toFixed(2)})`;
}

async function main(): Promise<void> {
  await using server = await startOwnPostgres();
  for (const measure of [(size: number) => onPostgres(server.url, size), onSqlite]) {
    const measured: Measured[] = [];
    for (const size of SIZES) {
      console.error(`beside ${size.toLocaleString("en")} pending jobs …`);
      measured.push(await measure(size));
    }
    const [small, large] = measured as [Measured, Measured];
    console.log(
      `\n| ${small.name}, ms: median (fastest) | beside 1,000 | beside 1,000,000 |\n|---|---:|---:|`,
    );
    for (const [name, time] of small.times) {
      console.log(`| ${name} | ${shownTimes(time)} | ${shownTimes(large.times.get(name) as Times)} |`);
    }
    const isSame = small.plans.join() === large.plans.join();
    console.log(`\nPlans beside 1,000,000 (${isSame ? "the same" : "not the same"} beside 1,000):\n`);
    console.log(large.plans.join("\n"));
    if (!isSame) console.log(`\nbeside 1,000:\n\n${small.plans.join("\n")}`);
  }
}

await main();
