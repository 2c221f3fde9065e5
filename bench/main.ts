/**
 * `npm run bench -- [workload or contender names] [--full] [--rounds 5] [--patience 0] [--servers 15,18]
 * [--url postgres://…] [--out file.json]`
 *
 * Contenders take turns, round by round, each in a process of its own, so that whatever disturbs the machine disturbs
 * all of them. Without a URL it starts its own PostgreSQL with production settings, in each version that is named, and Redis.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase } from "../test/postgres.ts";
import { installedBun } from "./bun.ts";
import type { Contender } from "./contender.ts";
import { CONTENDERS, keyOf } from "./contenders/all.ts";
import { goalsOf } from "./goals.ts";
import { Host } from "./host.ts";
import { median, ServerMeter } from "./measure.ts";
import { Strangers } from "./quiet.ts";
import { type Row, tableOf } from "./report.ts";
import { type BenchServer, startServers } from "./servers.ts";
import type { Figures, Workload } from "./workload.ts";
import { WORKLOADS } from "./workloads.ts";

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    full: { type: "boolean", default: false },
    rounds: { type: "string" },
    patience: { type: "string", default: "0" },
    servers: { type: "string", default: "15,18" },
    url: { type: "string" },
    out: { type: "string", default: join(import.meta.dirname, "results.json") },
  },
});

const QUICK_ROUNDS = 3;
const FULL_ROUNDS = 5;
/** It takes that long until the code of all contenders is compiled for what it does, also in a short run. */
const WARM_UPS = 2;

/** A name picks the workload or contender that is called so, or else all that begin with it. */
function picked<Thing>(all: readonly Thing[], nameOf: (thing: Thing) => string): readonly Thing[] {
  const isCalled = (name: string) => all.some((thing) => nameOf(thing) === name);
  return all.filter((thing) =>
    names.some((name) => nameOf(thing) === name || (!isCalled(name) && nameOf(thing).startsWith(name))),
  );
}

function pickedWorkloads(): readonly Workload[] {
  const chosen = picked(WORKLOADS, ({ name }) => name);
  return chosen.length > 0 ? chosen : WORKLOADS.filter(({ isLong }) => options.full || !isLong);
}

function pickedContenders(): readonly Contender[] {
  const chosen = picked(CONTENDERS, keyOf);
  return chosen.length > 0 ? chosen : CONTENDERS;
}

function roundsOf(workload: Workload): number {
  if (options.rounds) return Number(options.rounds);
  const isFull = options.full || workload.isLong;
  return isFull ? (workload.rounds ?? FULL_ROUNDS) : QUICK_ROUNDS;
}

/** Where a contender runs. */
type Where = Pick<BenchServer, "title" | "url">;

interface Running {
  readonly contender: Contender;
  readonly server: string;
  readonly host: Host;
  readonly samples: Figures[];
  close(): Promise<void>;
}

async function start(workload: Workload, contender: Contender, { title, url }: Where): Promise<Running> {
  const bun = contender.runtime && installedBun();
  const common = {
    key: keyOf(contender),
    workload: workload.name,
    serverUrl: url,
    ...(bun !== undefined && { bun }),
  };
  const samples: Figures[] = [];
  if (contender.database === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "curfew-bench-"));
    const host = new Host({
      ...common,
      place: join(folder, "jobs.db"),
      emptyPlace: join(folder, "empty.db"),
    });
    const close = async () => {
      await host.end();
      rmSync(folder, { recursive: true });
    };
    return { contender, server: title, host, samples, close };
  }
  if (contender.database === "redis") {
    const host = new Host({ ...common, place: `${url}/0`, emptyPlace: `${url}/1` });
    return { contender, server: title, host, samples, close: () => host.end() };
  }
  const database = await createDatabase(url);
  const empty = await createDatabase(url);
  const host = new Host({ ...common, place: database.url, emptyPlace: empty.url });
  const close = async () => {
    await host.end();
    await database[Symbol.asyncDispose]();
    await empty[Symbol.asyncDispose]();
  };
  return { contender, server: title, host, samples, close };
}

/** A contender on each server of its database, one server after the other. */
function placesOf(contender: Contender, servers: readonly BenchServer[]): readonly Where[] {
  if (contender.database === "sqlite") return [{ title: "SQLite", url: "" }];
  return servers.filter(({ database }) => database === contender.database);
}

async function runRound(
  workload: Workload,
  label: string,
  { contender, server, host, samples }: Running,
  strangers: Strangers,
): Promise<void> {
  const from = performance.now();
  const { result: answer, strangers: share } = await strangers.without(() => host.run("sample"));
  const key = contender.database === "sqlite" ? keyOf(contender) : `${keyOf(contender)} on ${server}`;
  if ("error" in answer) {
    console.error(`${workload.name} ${label}: ${key} failed: ${answer.error}`);
    return;
  }
  samples.push({ ...answer.figures, strangers: share });
  const said = workload.columns.map(
    ({ key: column, title, digits = 0 }) => `${title} ${answer.figures[column]?.toFixed(digits)}`,
  );
  const took = ((performance.now() - from) / 1_000).toFixed(1);
  const others = `others ${Math.round(share * 100)} %`;
  console.error(`${workload.name} ${label}: ${key} ${said.join(", ")} (${took} s, ${others})`);
}

async function runWorkload(
  workload: Workload,
  servers: readonly BenchServer[],
  strangers: Strangers,
): Promise<Result> {
  const at = new Date();
  const rounds = roundsOf(workload);
  const running: Running[] = [];
  const suited = pickedContenders().filter(
    (each) => workload.suits(each) && (!each.runtime || installedBun() !== undefined),
  );
  const places = suited.flatMap((contender) =>
    placesOf(contender, servers).map((where) => ({ contender, where })),
  );
  for (const { contender, where } of places) {
    const each = await start(workload, contender, where);
    running.push(each);
    if (!workload.setUp) continue;
    const answer = await each.host.run("setUp");
    console.error(`${workload.name}: ${keyOf(contender)} ${"error" in answer ? answer.error : "is set up"}`);
  }
  for (let round = workload.warmsUp ? 1 - WARM_UPS : 1; round <= rounds; round++) {
    const label = round < 1 ? "warm-up" : `round ${round}/${rounds}`;
    for (const each of running) await runRound(workload, label, each, strangers);
    if (round === 0) for (const { samples } of running) samples.length = 0;
  }
  for (const { close } of running) await close();
  const rows = running.map(({ contender: { name, role, database }, server, samples }) => ({
    name,
    role,
    database,
    server,
    samples,
  }));
  return { title: workload.title, at, rounds, rows };
}

interface Result {
  readonly title: string;
  readonly at: Date;
  readonly rounds: number;
  readonly rows: readonly Row[];
}

function print(workload: Workload, { rounds, rows }: Result): void {
  const shares = rows.flatMap(({ samples }) => samples.map(({ strangers = Number.NaN }) => strangers * 100));
  const others = `Other programs had ${Math.round(median(shares))} % of the CPU, ${Math.round(Math.max(...shares))} % at most.`;
  const goals = goalsOf(workload.name, rows);
  console.log(`\n${tableOf(workload, rows)}\n\n${rounds} rounds. ${others}\n\n${goals.join("\n")}`);
}

/** Adds to what the file holds, so that workloads can be run one at a time. */
function save(machine: object, workload: Workload, result: Result): void {
  const before = existsSync(options.out) ? JSON.parse(readFileSync(options.out, "utf8")) : {};
  const workloads = { ...before.workloads, [workload.name]: { ...result, machine } };
  writeFileSync(options.out, `${JSON.stringify({ workloads }, null, 2)}\n`);
}

async function main(): Promise<void> {
  const wantsRedis = pickedContenders().some(({ database }) => database === "redis");
  const servers = await startServers(options.servers.split(","), options.url, wantsRedis);
  const titles = servers.map(({ title }) => title);
  const machine = { cpu: cpus()[0]?.model, cores: cpus().length, node: process.version, servers: titles };
  const meters = await Promise.all(servers.map(({ url }) => ServerMeter.of(url)));
  const ours = [process.pid, ...meters.flatMap(({ postmaster }) => postmaster ?? [])];
  const strangers = new Strangers(ours, Number(options.patience) * 60_000);
  for (const workload of pickedWorkloads()) {
    const result = await runWorkload(workload, servers, strangers);
    print(workload, result);
    save(machine, workload, result);
  }
  for (const server of servers) await server.close();
}

await main();
