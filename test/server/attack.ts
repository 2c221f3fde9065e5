/**
 * `npm run attack`: requests and streams that try to keep a server busy or to fill its memory. Prints what each did, and
 * fails if a request of up to 1 MB blocks the event loop for more than 50 ms, or if the server takes more than 512 MB.
 * The default store is a new SQLite file; `--store postgres` attacks a new PostgreSQL server, and `--store memory` the
 * store in memory. `--scale 1` is a shorter run. `--report <file>` keeps the figures.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase, startOwnPostgres } from "../postgres.ts";
import { addRun } from "../support/run-report.ts";
import { wholeNumber } from "../support/whole-number.ts";
import { FLOODS, runFlood } from "./attack/floods.ts";
import { attacks } from "./attack/requests.ts";
import { sendEach } from "./attack/run.ts";

const LONGEST_BLOCK = 50;
const MOST_MEMORY = 512_000_000;

const { values } = parseArgs({
  options: {
    store: { type: "string", default: "sqlite" },
    scale: { type: "string", default: "3" },
    /** Such as "2/5": the second fifth of the requests and floods. */
    part: { type: "string", default: "1/1" },
    report: { type: "string" },
  },
});
const scale = wholeNumber("scale", values.scale, 1);
const [, nth, parts] = /^(\d+)\/(\d+)$/.exec(values.part)?.map(Number) ?? [];
if (!nth || !parts || nth > parts) throw new RangeError(`--part: "${values.part}" is none; write 2/5`);
const isOfPart = (_: unknown, index: number) => index % parts === nth - 1;
const floods = FLOODS.filter(isOfPart);
const startedAt = performance.now();
await using resources = new AsyncDisposableStack();
const findings: string[] = [];

/** The name of the store, and a function that makes an empty one. */
async function openStores(): Promise<{ on: string; newStore: () => Promise<string> }> {
  if (values.store === "memory") return { on: "memory", newStore: async () => "memory:" };
  if (values.store === "sqlite") {
    const folder = await mkdtemp(join(tmpdir(), "curfew-attack-"));
    resources.defer(() => rm(folder, { recursive: true }));
    let stores = 0;
    return { on: "SQLite", newStore: async () => `sqlite:${join(folder, `${++stores}.db`)}` };
  }
  if (values.store !== "postgres")
    throw new RangeError(`--store: "${values.store}" is none; use sqlite, postgres or memory`);
  const server = resources.use(await startOwnPostgres());
  return { on: "PostgreSQL", newStore: async () => (await createDatabase(server.url)).url };
}

function report(isOver: boolean, line: string): void {
  if (isOver) findings.push(line.trim());
  console.log(`${isOver ? "OVER" : "ok  "} ${line}`);
}

const { on, newStore } = await openStores();
const worst = { blocked: 0, memory: 0 };
const requests = await sendEach(await newStore(), 3, attacks().filter(isOfPart));
for (const { name, status, size, longest } of requests) {
  worst.blocked = Math.max(worst.blocked, Math.round(longest * 10) / 10);
  report(
    longest > LONGEST_BLOCK || status >= 500,
    `${longest.toFixed(1).padStart(6)} ms  ${status}  ${(size / 1e6).toFixed(2)} MB  ${name}`,
  );
}
for (const flood of floods) {
  const { name, said, peak } = await runFlood(flood, await newStore(), scale);
  worst.memory = Math.max(worst.memory, Math.round(peak / 1e6));
  report(peak > MOST_MEMORY, `${(peak / 1e6).toFixed(0).padStart(6)} MB  ${name}: ${said}`);
}
console.log(`${findings.length} failures`);
const part = parts === 1 ? "" : ` --part ${values.part}`;
const command = `npm run attack -- --store ${values.store} --scale ${scale}${part}`;
const counts = { requests: requests.length, floods: floods.length };
addRun(values.report, "attack", { command, on, startedAt, counts, worst, findings });
process.exitCode = findings.length === 0 ? 0 : 1;
