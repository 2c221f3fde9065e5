/**
 * `npm run bench:server`: round trips over HTTP (enqueue, fetch, ack: three requests), with one keep-alive client and
 * with 16, on each store. The server is a process of its own; the clients share this one. Arguments: stores to measure
 * (memory, sqlite, postgres), `--seconds N`, `--rounds N`. PostgreSQL is the one of the tests, with fsync on.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import { HttpClient } from "./http-client.ts";

/** What the reference servers of Open Job Spec publish, from one client on 2 cores. */
const REFERENCE = { memory: 12_093, sqlite: 4_779, postgres: 2_635 } as const;
type StoreName = keyof typeof REFERENCE;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "5" }, rounds: { type: "string", default: "3" } },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const stores = (positionals.length > 0 ? positionals : Object.keys(REFERENCE)) as StoreName[];

/** One client: round trips until the time is up; answers how many there were. */
async function roundTrips(url: string, worker: string, until: number): Promise<number> {
  const client = await HttpClient.open(url);
  const enqueue = JSON.stringify({ type: "bench.noop", args: [{ n: 1 }] });
  const fetch = JSON.stringify({ queues: ["default"], worker_id: worker });
  let count = 0;
  while (performance.now() < until) {
    await client.post("/ojs/v1/jobs", enqueue);
    const { jobs } = JSON.parse(await client.post("/ojs/v1/workers/fetch", fetch));
    const [job] = jobs as { id: string; fence: number }[];
    // Another client may have fetched ours; then there is nothing to report, and one more to fetch for somebody.
    if (!job) continue;
    const ack = JSON.stringify({ job_id: job.id, fence: job.fence, worker_id: worker });
    await client.post("/ojs/v1/workers/ack", ack);
    count += 1;
  }
  client.close();
  return count;
}

async function measure(url: string, clients: number, duration: number): Promise<number> {
  const startedAt = performance.now();
  const until = startedAt + duration * 1_000;
  const counts = await Promise.all(
    Array.from({ length: clients }, (_, index) => roundTrips(url, `bench-${index}`, until)),
  );
  const total = counts.reduce((sum, count) => sum + count, 0);
  return (total / (performance.now() - startedAt)) * 1_000;
}

function median(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] as number;
}

async function benchStore(name: StoreName, address: string): Promise<void> {
  const server = fork(join(import.meta.dirname, "server-main.ts"), [address]);
  const [{ url }] = (await once(server, "message")) as [{ url: string }];
  for (const clients of [1, 16]) {
    await measure(url, clients, 1);
    const rates: number[] = [];
    const costs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      await ask(server);
      const rate = await measure(url, clients, seconds);
      const { cpu } = await ask(server);
      rates.push(rate);
      costs.push(cpu / (rate * seconds));
    }
    const spread = `${Math.round(Math.min(...rates))} to ${Math.round(Math.max(...rates))}`;
    const share = (median(rates) / REFERENCE[name]).toFixed(2);
    console.log(
      `${name}, ${clients} client${clients === 1 ? "" : "s"}: median ${Math.round(median(rates))} round trips/s (${spread}), ` +
        `${median(costs).toFixed(0)} µs of the server's CPU each, ${share} of the reference`,
    );
  }
  server.send("close");
  await once(server, "exit");
}

async function ask(server: ReturnType<typeof fork>): Promise<{ cpu: number }> {
  server.send("usage");
  const [answer] = (await once(server, "message")) as [{ cpu: number }];
  return answer;
}

const scratch = await mkdtemp(join(tmpdir(), "curfew-bench-"));
for (const name of stores) {
  if (name === "postgres") {
    await using server = await startPostgres();
    await using database = await createDatabase(server.url);
    await benchStore(name, database.url);
  } else await benchStore(name, name === "memory" ? "memory:" : `sqlite:${join(scratch, "jobs.db")}`);
}
await rm(scratch, { recursive: true, force: true });
