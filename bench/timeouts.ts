/**
 * `npm run bench:timeouts -- sqlite|postgres|memory [pending]`: what a million pending timeouts cost (SEMANTICS 6). Insert
 * rate, the cost of a claim beside a thousand and beside all of them, how late timeouts fire while 2,000 fall due each
 * second, and how long a process that starts needs until the first is delivered.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openEngine } from "../src/index.ts";
import { type OpenedTimeouts, openTimeouts } from "../src/timeouts.ts";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import { percentile } from "./measure.ts";

const FEW = 1_000;
const ROUNDS = 40;
const BATCH = 1_000;
const PER_SECOND = 2_000;
const SECONDS = 15;
const LEAD = 3_000;
const LANES = 4;

function print(line: string): void {
  console.log(line);
}

function megabytes(): string {
  globalThis.gc?.();
  return `${Math.round(process.memoryUsage().rss / 2 ** 20)} MB`;
}

/** Inserts timeouts that are due in an hour or later, and gives the rate. */
async function fill(timeouts: OpenedTimeouts, count: number): Promise<number> {
  const startedAt = performance.now();
  let left = count;
  const lane = async () => {
    while (left > 0) {
      const size = Math.min(BATCH, left);
      left -= size;
      const batch = Array.from({ length: size }, (_, index) => ({
        destination: "bench",
        dueAt: { after: `${3_600_000 + ((index * 7_919) % 1_000_000)}ms` as const },
        payload: { n: index },
      }));
      await timeouts.insertMany(batch);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return (count / (performance.now() - startedAt)) * 1_000;
}

/** The middle cost of claiming 100 that are due and removing them, in milliseconds. */
async function claimCost(timeouts: OpenedTimeouts): Promise<{ claim: number; next: number }> {
  const claims: number[] = [];
  const nexts: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await timeouts.insertMany(
      Array.from({ length: 100 }, () => ({ destination: "due", dueAt: "0s" as const })),
    );
    let from = performance.now();
    const claimed = await timeouts.claimDue();
    claims.push(performance.now() - from);
    if (claimed.length !== 100) throw new Error(`claimed ${claimed.length} of 100`);
    await Promise.all(claimed.map(({ id, owner }) => timeouts.remove(id, owner)));
    from = performance.now();
    await timeouts.nextDueAt();
    nexts.push(performance.now() - from);
  }
  return { claim: percentile(claims, 0.5), next: percentile(nexts, 0.5) };
}

async function growth(store: string, pending: number): Promise<void> {
  await using timeouts = await openTimeouts({ store });
  await claimCost(timeouts);
  await fill(timeouts, FEW);
  const small = await claimCost(timeouts);
  const before = megabytes();
  const rate = await fill(timeouts, pending - FEW);
  const large = await claimCost(timeouts);
  print(`insert: ${Math.round(rate)}/s; memory of the process ${before} before, ${megabytes()} after`);
  print(
    `claim of 100: ${small.claim.toFixed(2)} ms beside ${FEW}, ${large.claim.toFixed(2)} ms beside ${pending}; nextDueAt: ${small.next.toFixed(2)} and ${large.next.toFixed(2)} ms`,
  );
}

/** How late timeouts are delivered while so many fall due each second, beside all that are pending. */
async function lateness(store: string): Promise<void> {
  await using engine = await openEngine({ store });
  const total = PER_SECOND * SECONDS;
  const firstAt = engine.now() + LEAD + total / 20;
  for (let from = 0; from < total; from += BATCH) {
    await engine.timeouts.insertMany(
      Array.from({ length: BATCH }, (_, index) => ({
        destination: "late",
        dueAt: new Date(firstAt + Math.floor(((from + index) * 1_000) / PER_SECOND)),
      })),
    );
  }
  if (engine.now() > firstAt) throw new Error("the first is due before the last was inserted");
  const delays: number[] = [];
  let done = () => {};
  const ended = new Promise<void>((resolve) => (done = resolve));
  const usage = process.cpuUsage();
  engine.timeouts.serve("late", ({ dueAt }) => {
    delays.push(engine.now() - dueAt);
    if (delays.length === total) done();
  });
  await ended;
  const { user, system } = process.cpuUsage(usage);
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => percentile(delays, share).toFixed(0));
  print(
    `lateness at ${PER_SECOND}/s for ${SECONDS} s: p50 ${p50} ms, p99 ${p99} ms, most ${most} ms; ${((user + system) / total).toFixed(0)} µs CPU of this process each; none early: ${delays.every((delay) => delay >= 0)}`,
  );
}

/** From the start of a process to its first delivery. */
async function restart(store: string): Promise<void> {
  {
    await using timeouts = await openTimeouts({ store });
    await timeouts.insert({ destination: "restart", dueAt: "0s" });
  }
  const startedAt = performance.now();
  const child = fork(join(import.meta.dirname, "timeouts-child.ts"), [store], { execArgv: [] });
  await once(child, "message");
  print(
    `restart: ${Math.round(performance.now() - startedAt)} ms from the start of a process to its first delivery`,
  );
  await once(child, "exit");
}

async function main(): Promise<void> {
  const [kind = "sqlite", pending = "1000000"] = process.argv.slice(2);
  print(`${kind}, ${pending} pending timeouts`);
  const run = async (store: string) => {
    await growth(store, Number(pending));
    if (kind === "memory") return;
    await lateness(store);
    await restart(store);
  };
  if (kind === "memory") return run("memory:");
  if (kind === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "curfew-bench-"));
    await run(`sqlite:${join(folder, "curfew.db")}`);
    rmSync(folder, { recursive: true });
    return;
  }
  await using server = await startPostgres();
  await using database = await createDatabase(server.url);
  await run(database.url);
}

await main();
