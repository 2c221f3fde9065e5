/**
 * `npm run fuzz`: strange requests against the server, `--requests 1000000` from `--seed 1`. What is found is printed
 * with the request that did it. `--store postgres` starts a PostgreSQL behind it, in real time and with tenants;
 * `--store postgres://…` takes one of yours, and `--store memory` needs none. These stop after `--minutes 8`: another
 * seed continues.
 */
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../postgres.ts";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import { fuzz, fuzzStore } from "./fuzz/run.ts";
import { fuzzSocket } from "./fuzz/socket.ts";

const { values } = parseArgs({
  options: {
    requests: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    store: { type: "string" },
    minutes: { type: "string", default: "8" },
    report: { type: "string" },
  },
});
const requests = wholeNumber("requests", values.requests, 1);
const seed = wholeNumber("seed", values.seed);
const startedAt = performance.now();

function keep(on: string, store: string, sent: number, findings: readonly string[], growth: number): void {
  const command = `npm run fuzz -- --requests ${sent} --seed ${seed}${store}`;
  const worst = { growth: Math.round(growth / 1e5) / 10 };
  addRun(values.report, "fuzz", { command, on, startedAt, counts: { requests: sent }, worst, findings });
}

const MOST_GROWTH = 32_000_000;
const shown = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const onEpoch = (sent: number, heap: number) =>
  console.log(`${String(sent).padStart(9)} sent, live heap ${shown(heap)}`);

/** Caches fill at first; what still grows after a quarter of the run would grow for ever. */
function growthOf(heaps: readonly number[], findings: string[]): number {
  const settled = heaps.slice(Math.floor(heaps.length / 4));
  const growth = (settled.at(-1) ?? 0) - (settled[0] ?? 0);
  if (growth > MOST_GROWTH) findings.push(`the live heap grew by ${shown(growth)}`);
  return growth;
}

async function onStore(store: string): Promise<number> {
  const within = wholeNumber("minutes", values.minutes, 1) * 60_000;
  const report = await fuzzStore({ seed, requests, store, within, hasTenants: true, onEpoch });
  const findings = [...report.findings];
  const growth = growthOf(report.heaps, findings);
  for (const finding of findings) console.log(finding);
  const statuses = JSON.stringify(Object.fromEntries(report.statuses));
  console.log(`${report.sent} sent, by status ${statuses}, ${findings.length} findings`);
  const [kind = ""] = store.split(":");
  const shownStore = { memory: "memory", postgres: "postgres", postgresql: "postgres" }[kind] ?? "<address>";
  const on = `${shownStore === "postgres" ? "PostgreSQL" : kind}, with tenants`;
  keep(on, ` --store ${shownStore}`, report.sent, findings, growth);
  return findings.length;
}

async function inProcess(): Promise<number> {
  const overSocket = Math.round(requests / 10);
  const report = await fuzz({ seed, requests: requests - overSocket, onEpoch });
  const socket = await fuzzSocket({ seed, requests: overSocket });
  const findings = [...report.findings, ...socket.findings];
  const growth = growthOf(report.heaps, findings);
  for (const finding of findings) console.log(finding);
  for (const [where, { sent, statuses }] of Object.entries({ "in process": report, "over a socket": socket }))
    console.log(`${where}: ${sent} sent, by status ${JSON.stringify(Object.fromEntries(statuses))}`);
  console.log(`${findings.length} findings`);
  keep("memory", "", report.sent + socket.sent, findings, growth);
  return findings.length;
}

async function run(): Promise<number> {
  if (values.store === undefined) return inProcess();
  if (values.store === "memory") return onStore("memory:");
  if (values.store !== "postgres") return onStore(values.store);
  await using postgres = await startPostgres();
  await using database = await createDatabase(postgres.url);
  return await onStore(database.url);
}

process.exit((await run()) === 0 ? 0 : 1);
