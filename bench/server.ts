/**
 * `npm run bench:server`: round trips over HTTP (enqueue, fetch, ack: three requests), with one keep-alive client and
 * with 16, on each store. The server is a process of its own; the clients share this one. In every round a bare Node HTTP
 * server, which parses what it gets and answers with as many bytes, is measured beside it: it is what this machine
 * allows at most. Arguments: stores to measure (memory, sqlite, postgres), `--seconds N`, `--rounds N`, and `--readers N`,
 * which measures 16 clients beside so many open readers of live events too. PostgreSQL is the one of the tests, with
 * fsync on.
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
  options: {
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    readers: { type: "string", default: "0" },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const readers = Number(values.readers);
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

async function measure(
  trips: (nth: number, until: number) => Promise<number>,
  clients: number,
  duration: number,
): Promise<number> {
  const startedAt = performance.now();
  const until = startedAt + duration * 1_000;
  const counts = await Promise.all(Array.from({ length: clients }, (_, index) => trips(index, until)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  return (total / (performance.now() - startedAt)) * 1_000;
}

function median(list: readonly number[]): number {
  return [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] as number;
}

/** Three requests that are answered without any work. */
async function bareTrips(url: string, until: number): Promise<number> {
  const client = await HttpClient.open(url);
  const body = JSON.stringify({ queues: ["default"], worker_id: "bench" });
  let count = 0;
  for (; performance.now() < until; count++) for (let nth = 0; nth < 3; nth++) await client.post("/", body);
  client.close();
  return count;
}

interface Rates {
  readonly trips: number[];
  /** Microseconds of the server's CPU a round trip. */
  readonly costs: number[];
}

async function addRound(
  { trips, costs }: Rates,
  server: ReturnType<typeof fork>,
  run: () => Promise<number>,
): Promise<void> {
  await ask(server);
  const rate = await run();
  const { cpu } = await ask(server);
  trips.push(rate);
  costs.push(cpu / (rate * seconds));
}

async function benchStore(name: StoreName, address: string): Promise<void> {
  const server = fork(join(import.meta.dirname, "server-main.ts"), [address]);
  const [{ url }] = (await once(server, "message")) as [{ url: string }];
  const bare = fork(join(import.meta.dirname, "bare-server.ts"));
  const [{ url: bareUrl }] = (await once(bare, "message")) as [{ url: string }];
  const trips = (nth: number, until: number) => roundTrips(url, `bench-${nth}`, until);
  const floor = (_nth: number, until: number) => bareTrips(bareUrl, until);
  for (const clients of [1, 16]) {
    await measure(trips, clients, 1);
    await measure(floor, clients, 1);
    const ours: Rates = { trips: [], costs: [] };
    const bares: Rates = { trips: [], costs: [] };
    for (let round = 0; round < rounds; round++) {
      await addRound(ours, server, () => measure(trips, clients, seconds));
      await addRound(bares, bare, () => measure(floor, clients, seconds));
    }
    report(name, clients, ours, bares);
  }
  if (readers > 0) await benchReaders(name, url, () => measure(trips, 16, seconds));
  for (const child of [server, bare]) {
    child.send("close");
    await once(child, "exit");
  }
}

/** With and without the readers in turn, because nothing else tells a loss from the spread. */
async function benchReaders(name: StoreName, url: string, run: () => Promise<number>): Promise<void> {
  const [without, beside]: [number[], number[]] = [[], []];
  let bytes = 0;
  for (let round = 0; round < rounds; round++) {
    without.push(await run());
    const child = fork(join(import.meta.dirname, "sse-readers.ts"), [url, String(readers)]);
    await once(child, "message");
    beside.push(await run());
    child.send("bytes");
    const [answer] = (await once(child, "message")) as [{ bytes: number }];
    bytes += answer.bytes;
    child.disconnect();
    await once(child, "exit");
  }
  const shown = (rates: readonly number[]) =>
    `${Math.round(median(rates))} (${Math.round(Math.min(...rates))} to ${Math.round(Math.max(...rates))})`;
  console.log(
    `${name}, 16 clients beside ${readers} readers: ${shown(beside)} round trips/s, without them ${shown(without)}; ` +
      `the readers got ${Math.round(bytes / rounds / seconds / 1_000)} kB/s`,
  );
}

function report(name: StoreName, clients: number, ours: Rates, bares: Rates): void {
  const [rate, floor] = [median(ours.trips), median(bares.trips)];
  const spread = `${Math.round(Math.min(...ours.trips))} to ${Math.round(Math.max(...ours.trips))}`;
  console.log(
    `${name}, ${clients} client${clients === 1 ? "" : "s"}: median ${Math.round(rate)} round trips/s (${spread}), ` +
      `${median(ours.costs).toFixed(0)} µs of the server's CPU each; a bare Node server ${Math.round(floor)}/s, ` +
      `${median(bares.costs).toFixed(0)} µs; ${(rate / floor).toFixed(2)} of it, ${(rate / REFERENCE[name]).toFixed(2)} of the reference`,
  );
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
