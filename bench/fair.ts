/**
 * `npm run bench:fair`: what a fair queue does and costs, in memory, on SQLite, PostgreSQL and Redis.
 *
 * 1. The drain of a hot queue, plain and fair, in turns: CPU for each job, of this process and of the server. Customers
 *    enqueue mixed, one job after the other, in no order, or in blocks, each all of its jobs at once.
 * 2. Ten jobs of one customer beside 1,000,000 of another, against the same ten alone with half of the slots.
 *
 * `--only drains` or `--only waits` measures one of the two, `--stores sqlite,15` on these (`15` and `18` are versions of
 * PostgreSQL), `--keys 1,1000` with these numbers of keys, `--jobs 20000` in a drain, `--rounds 5`, `--slots 100`, `--beside 100000`.
 */

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createDatabase } from "../test/postgres.ts";
import { drains, kindsOf } from "./fair-drains.ts";
import { waitsBeside } from "./fair-waits.ts";
import { startServers } from "./servers.ts";

const { values } = parseArgs({
  options: {
    only: { type: "string", default: "drains,waits" },
    stores: { type: "string", default: "memory,sqlite,15,18,redis" },
    keys: { type: "string", default: "1,10,1000,100000" },
    jobs: { type: "string", default: "20000" },
    rounds: { type: "string", default: "5" },
    slots: { type: "string", default: "100" },
    beside: { type: "string", default: "1000000" },
  },
});
const wanted = values.stores.split(",");
const numbers = (text: string) => text.split(",").map(Number);

async function empty(url: string): Promise<string> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end("FLUSHALL\r\nQUIT\r\n");
  await once(socket.resume(), "close");
  return url;
}

async function measure(name: string, open: () => Promise<string>): Promise<void> {
  const kinds = kindsOf(numbers(values.keys), Number(values.jobs));
  if (values.only.includes("drains"))
    await drains(name, open, { kinds, rounds: Number(values.rounds), slots: Number(values.slots) });
  if (values.only.includes("waits")) await waitsBeside(name, open, Number(values.beside));
}

const folder = mkdtempSync(join(tmpdir(), "curfew-fair-"));
let opened = 0;
try {
  if (wanted.includes("memory")) await measure("memory", async () => "memory:");
  if (wanted.includes("sqlite"))
    await measure("SQLite", async () => `sqlite:${join(folder, `${opened++}.db`)}`);
  const versions = wanted.filter((store) => /^\d+$/.test(store));
  for (const server of await startServers(versions, undefined, wanted.includes("redis"))) {
    const { database, title, url } = server;
    const open = async () => (database === "redis" ? empty(url) : (await createDatabase(url)).url);
    await measure(title, open).finally(() => server.close());
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
