/**
 * `npm run bench:engine`: what the engine itself costs, on the memory store in one process: no-op jobs from enqueue to
 * settled, with and without recorded events and these on SQLite and PostgreSQL too (whose own CPU is left out: `npm run
 * bench` has it), an empty sweep beside a million deadlines, and how
 * late deadlines fire in real time. `npm run bench:engine -- events` runs the rows about events alone; BENCH_JOBS and
 * BENCH_ROUNDS make it shorter, to see whether it works.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createIdSource } from "../src/core/ids.ts";
import { prepareJob, preparePayload, stamp } from "../src/core/job/enqueue/envelope.ts";
import { realSystem } from "../src/engine/runtime/real-system.ts";
import { defineJob, openEngine, processor, silentLogger } from "../src/index.ts";
import { createMemoryStore } from "../src/stores/memory/memory-store.ts";
import { createDatabase, startPostgres } from "../test/postgres.ts";

const JOBS = Number(process.env.BENCH_JOBS ?? 100_000);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 7);
const CHUNK = 1_000;

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number;
}

interface Figures {
  readonly rates: number[];
  readonly cpu: number[];
}

interface Setting {
  readonly retention: "0s" | "1h";
  readonly events: "off" | "durable";
  readonly store: "memory:" | "sqlite:" | "postgres:";
  /** Of a PostgreSQL server. */
  readonly url?: string;
}

/** No-op jobs, enqueued and worked on in the same process, until the last verdict is committed. */
async function round({ retention, events, store, url }: Setting, { rates, cpu }: Figures): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "curfew-bench-"));
  await using database = url === undefined ? undefined : await createDatabase(url);
  const address = store === "memory:" ? store : `sqlite:${join(folder, "jobs.db")}`;
  const engine = await openEngine({ store: database?.url ?? address, events, logger: silentLogger });
  const noop = defineJob({ type: "noop", retention });
  engine.work({ queues: { default: { concurrency: 100 } }, processors: [processor(noop, async () => {})] });
  const usage = process.cpuUsage();
  const startedAt = performance.now();
  for (let from = 0; from < JOBS; from += CHUNK)
    await engine.enqueueMany(noop, new Array(CHUNK).fill({ n: from }));
  while (engine.counters().completed < JOBS) await new Promise((resolve) => setImmediate(resolve));
  rates.push((JOBS / (performance.now() - startedAt)) * 1_000);
  const { user, system } = process.cpuUsage(usage);
  cpu.push((user + system) / JOBS);
  process.stderr.write(`  ${store} events ${events}: ${Math.round(rates.at(-1) as number)} jobs/s\n`);
  await engine.close();
  rmSync(folder, { recursive: true });
}

/** Settings that are compared take turns, so that a machine that slows down slows all of them down. */
async function throughput(...settings: readonly Setting[]): Promise<void> {
  const figures = settings.map((): Figures => ({ rates: [], cpu: [] }));
  for (let turn = 0; turn < ROUNDS; turn++) {
    for (const [index, setting] of settings.entries()) await round(setting, figures[index] as Figures);
  }
  for (const [index, { store, retention, events }] of settings.entries()) {
    const { rates, cpu } = figures[index] as Figures;
    const spread = `${Math.round(Math.min(...rates))} to ${Math.round(Math.max(...rates))}`;
    console.log(
      `no-op jobs, ${store} concurrency 100, retention ${retention}, events ${events}: median ${Math.round(median(rates))} jobs/s (${spread}), ${median(cpu).toFixed(1)} µs CPU per job`,
    );
  }
}

/** A job without and with everything recorded that happens to it: enqueued, started, completed. */
async function eventCosts(): Promise<void> {
  await using server = await startPostgres();
  for (const store of ["memory:", "sqlite:", "postgres:"] as const) {
    const { url } = server;
    for (const retention of ["0s", "1h"] as const) {
      const setting = { store, retention, ...(store === "postgres:" && { url }) };
      await throughput({ ...setting, events: "off" }, { ...setting, events: "durable" });
    }
  }
}

/** The cost of a sweep follows what is due, not what is stored. */
async function emptySweep(pending: number): Promise<void> {
  const store = createMemoryStore({ clock: () => 0 });
  const nextId = createIdSource(() => 1, realSystem.fill);
  const later = defineJob({ type: "later", timeouts: { total: "1d" } });
  const template = prepareJob(later, { delay: "1h" }, { now: 1, nextId, hash: (text) => text });
  const payload = await preparePayload(later, null);
  for (let from = 0; from < pending; from += CHUNK) {
    const jobs = Array.from({ length: CHUNK }, () => stamp(template, payload, nextId));
    await store.jobs.enqueue(jobs, { now: 1 });
  }
  const costs: number[] = [];
  for (let round = 0; round < 1_000; round++) {
    const startedAt = performance.now();
    await store.jobs.sweep({ now: 2, limit: 200, holdUntil: 10_000 });
    costs.push((performance.now() - startedAt) * 1_000);
  }
  console.log(
    `sweep, ${pending} pending and none due: median ${median(costs).toFixed(1)} µs, p99 ${percentile(costs, 0.99).toFixed(1)} µs`,
  );
}

/** From the instant of a deadline to the moment the handler hears the signal. */
async function lateness(): Promise<void> {
  await using engine = await openEngine({ store: "memory:" });
  const late: number[] = [];
  const waits = defineJob({ type: "waits", retry: { attempts: 1 }, timeouts: { grace: "1s" } });
  engine.work({
    queues: { default: { concurrency: 1_000 } },
    processors: [
      processor(
        waits,
        ({ signal, deadline }) =>
          new Promise<void>((resolve) => {
            signal.addEventListener("abort", () => {
              late.push(engine.now() - (deadline ?? 0));
              resolve();
            });
          }),
      ),
    ],
  });
  const handles = [];
  for (let n = 0; n < 1_000; n++)
    handles.push(
      await engine.enqueue(waits, null, { timeouts: { attempt: `${200 + ((n * 7) % 3_000)}ms` } }),
    );
  await Promise.all(handles.map((handle) => handle.result()));
  console.log(
    `deadlines in real time, 1,000 over 3 s: p50 ${percentile(late, 0.5)} ms, p99 ${percentile(late, 0.99)} ms, worst ${Math.max(...late)} ms late`,
  );
}

await eventCosts();
if (!process.argv.includes("events")) {
  await emptySweep(1_000);
  await emptySweep(1_000_000);
  await lateness();
}
