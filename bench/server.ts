/**
 * `npm run bench:server`: round trips (enqueue, fetch, ack) of one keep-alive client that waits for each reply, one that
 * pipelines, one that sends batches, and of 16 clients, in batches too; and without any sockets, inside the server's
 * process. The server is a process of its own; the clients share this one. In every round a bare Node HTTP server, which
 * parses what it gets and answers with as many bytes, is measured beside it: it is what this machine allows at most.
 * Arguments: stores to measure (memory, sqlite, postgres), `--seconds N`, `--rounds N`, `--shape NAME` for shapes that are
 * called so or begin with it, `--warm N` for the round trips of each shape before the first round (default 12,000: before, Node
 * still compiles the server, and the small bare one is compiled long since), `--out FILE` for the results, and `--readers N`, which measures 16 clients beside this many open readers of live events too. PostgreSQL is the
 * one of the tests, with fsync on. Calls of the store and microseconds of CPU hold on a busy machine, too.
 */

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";
import type { StoreCalls } from "./counted-store.ts";
import { HttpClient, type Line } from "./http-client.ts";
import { median, ServerMeter, spread } from "./measure.ts";
import { bareTrips, roundTrips, type Shape } from "./round-trips.ts";

/** What the reference servers of Open Job Spec publish, from one client on 2 cores. */
const REFERENCE = { memory: 12_093, sqlite: 4_779, postgres: 2_635 } as const;
type StoreName = keyof typeof REFERENCE;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
    readers: { type: "string", default: "0" },
    shape: { type: "string", default: "" },
    warm: { type: "string", default: "12000" },
    out: { type: "string" },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);
const readers = Number(values.readers);
const warmTrips = Number(values.warm);
/** Seconds. A slow machine begins with what it has by then. */
const WARM_WITHIN = 10;
const stores = (positionals.length > 0 ? positionals : Object.keys(REFERENCE)) as StoreName[];

/** Every shape is measured in every round; the bare server beside those whose requests it could have been sent. */
const ALL_SHAPES: readonly Shape[] = [
  { name: "1 client", clients: 1 },
  { name: "1 client, 16 requests pipelined", clients: 1, pipelined: 16 },
  { name: "1 client, batches of 100", clients: 1, batch: 100 },
  { name: "16 clients", clients: 16 },
  { name: "16 clients, batches of 100", clients: 16, batch: 100 },
];
const isCalled = ALL_SHAPES.some(({ name }) => name === values.shape);
const SHAPES = ALL_SHAPES.filter(({ name }) =>
  isCalled ? name === values.shape : name.startsWith(values.shape),
);

/** How many trips a second, of all clients together. */
async function measure(
  url: string,
  { clients, pipelined = 1 }: Shape,
  duration: number,
  trips: (line: Line, name: string, until: number) => Promise<number>,
): Promise<number> {
  const lines = await Promise.all(Array.from({ length: clients }, () => HttpClient.open(url)));
  const startedAt = performance.now();
  const until = startedAt + duration * 1_000;
  const counts = await Promise.all(
    lines.flatMap((line, nth) =>
      Array.from({ length: pipelined }, (_, lane) => trips(line, `bench-${nth}-${lane}`, until)),
    ),
  );
  const rate = (counts.reduce((sum, count) => sum + count, 0) / (performance.now() - startedAt)) * 1_000;
  for (const line of lines) line.close();
  return rate;
}

async function warmUp(run: (duration: number) => Promise<number>): Promise<void> {
  for (let [count, spent] = [0, 0]; count < warmTrips && spent < WARM_WITHIN; spent++) count += await run(1);
}

interface Rates {
  readonly trips: number[];
  /** Microseconds of the server's CPU a round trip. */
  readonly costs: number[];
  /** Microseconds of the CPU of the database's own processes a round trip. */
  readonly database: number[];
  /** Calls of the store a round trip, by name. */
  readonly calls: Map<string, number[]>;
}

const newRates = (): Rates => ({ trips: [], costs: [], database: [], calls: new Map() });

async function addRound(
  { trips, costs, database, calls }: Rates,
  server: ReturnType<typeof fork>,
  meter: ServerMeter,
  run: () => Promise<number>,
): Promise<void> {
  await ask(server);
  const before = meter.cpu();
  const rate = await run();
  const used = meter.cpu() - before;
  const answer = await ask(server);
  const count = rate * seconds;
  trips.push(rate);
  costs.push(answer.cpu / count);
  database.push(used / count);
  for (const [name, times] of Object.entries(answer.calls ?? {}))
    calls.set(name, [...(calls.get(name) ?? []), times / count]);
}

async function benchStore(name: StoreName, address: string): Promise<void> {
  const meter = await ServerMeter.of(name === "postgres" ? address : "");
  const server = fork(join(import.meta.dirname, "server-main.ts"), [address]);
  const [{ url }] = (await once(server, "message")) as [{ url: string }];
  const bare = fork(join(import.meta.dirname, "bare-server.ts"));
  const [{ url: bareUrl }] = (await once(bare, "message")) as [{ url: string }];
  const trips = (shape: Shape, duration: number) =>
    measure(url, shape, duration, (line, worker, until) => roundTrips(line, worker, until, shape.batch));
  const floor = (shape: Shape, duration: number) =>
    measure(bareUrl, shape, duration, (line, _, until) => bareTrips(line, until));
  const router = async (duration: number) => {
    server.send({ seconds: duration });
    const [{ count }] = (await once(server, "message")) as [{ count: number }];
    return count / duration;
  };
  if (values.shape === "") await router(1);
  for (const shape of SHAPES) {
    await warmUp((duration) => trips(shape, duration));
    if (!shape.batch) await warmUp((duration) => floor(shape, duration));
  }
  const rows = SHAPES.map((shape) => ({ shape, ours: newRates(), bares: newRates() }));
  const within = newRates();
  for (let round = 0; round < rounds; round++) {
    if (values.shape === "") await addRound(within, server, meter, () => router(seconds));
    for (const { shape, ours, bares } of rows) {
      await addRound(ours, server, meter, () => trips(shape, seconds));
      if (!shape.batch) await addRound(bares, bare, meter, () => floor(shape, seconds));
    }
  }
  if (values.shape === "") report(name, "1 client, without sockets", within);
  for (const { shape, ours, bares } of rows) report(name, shape.name, ours, shape.batch ? undefined : bares);
  if (readers > 0) await benchReaders(name, url, () => trips({ name: "", clients: 16 }, seconds));
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

/** What a published table needs of one store and shape. */
export interface ServerResult {
  readonly store: StoreName;
  readonly shape: string;
  readonly rate: number;
  readonly spread: number;
  /** Microseconds of CPU a round trip: of the server, and of the database's own processes. */
  readonly cpu: number;
  readonly database: number | null;
  /** Calls of the store a round trip, by name. */
  readonly calls: Readonly<Record<string, number>>;
  readonly bare: { readonly rate: number; readonly cpu: number } | null;
  /** When it was measured; older results do not say it. */
  readonly at?: string;
}

const results: ServerResult[] = [];

function note(store: StoreName, shape: string, ours: Rates, bares?: Rates): void {
  const database = median(ours.database);
  results.push({
    store,
    shape,
    rate: median(ours.trips),
    spread: spread(ours.trips),
    cpu: median(ours.costs),
    database: Number.isNaN(database) ? null : database,
    calls: Object.fromEntries([...ours.calls].map(([name, times]) => [name, median(times)])),
    bare: bares ? { rate: median(bares.trips), cpu: median(bares.costs) } : null,
    at: new Date().toISOString(),
  });
}

function report(store: StoreName, shape: string, ours: Rates, bares?: Rates): void {
  note(store, shape, ours, bares);
  const rate = median(ours.trips);
  const range = `${Math.round(Math.min(...ours.trips))} to ${Math.round(Math.max(...ours.trips))}`;
  const beside = bares
    ? `; a bare Node server ${Math.round(median(bares.trips))}/s, ${median(bares.costs).toFixed(0)} µs; ` +
      `${(rate / median(bares.trips)).toFixed(2)} of it`
    : "";
  const database = median(ours.database);
  const ofDatabase = Number.isNaN(database) ? "" : ` and ${database.toFixed(0)} of the database's`;
  const calls = [...ours.calls].filter(([, times]) => median(times) >= 0.005);
  const told = calls.map(([name, times]) => `${name} ${median(times).toFixed(2)}`).join(", ");
  console.log(
    `${store}, ${shape}: median ${Math.round(rate)} round trips/s (${range}), ` +
      `${median(ours.costs).toFixed(0)} µs of the server's CPU each${ofDatabase}; calls of the store: ${told}${beside}; ` +
      `${(rate / REFERENCE[store]).toFixed(2)} of the reference`,
  );
}

async function ask(server: ReturnType<typeof fork>): Promise<{ cpu: number; calls?: StoreCalls }> {
  server.send("usage");
  const [answer] = (await once(server, "message")) as [{ cpu: number; calls?: StoreCalls }];
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
if (values.out) await writeFile(values.out, `${JSON.stringify(results, null, 2)}\n`);
