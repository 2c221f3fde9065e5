/**
 * `npm run test:peers`: packs curfew and installs it with the lowest version of every peer that package.json allows. The
 * README's first program must run on each driver, a client must get a result through a server, and the modules for NestJS
 * and for tracing must load. `npm run test:peers -- --newest` takes the newest versions within the ranges.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDatabase, startPostgres } from "../test/postgres.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const isNewest = process.argv.includes("--newest");

interface Manifest {
  readonly peerDependencies: Readonly<Record<string, string>>;
}

/** `^8.16.0` allows 8.16.0 and later, so 8.16.0 is its lower end. */
function wanted(): string[] {
  const text = readFileSync(join(root, "package.json"), "utf8");
  const { peerDependencies } = JSON.parse(text) as Manifest;
  return Object.entries(peerDependencies).map(([name, range]) => {
    if (!/^\^\d+\.\d+\.\d+$/.test(range))
      throw new Error(`the range ${range} of ${name} has no plain lower end`);
    return `${name}@${isNewest ? range : range.slice(1)}`;
  });
}

/** A round trip on a store. */
const STORE = `
import { defineJob, openEngine, processor } from "curfew";
import { z } from "zod";
const charge = defineJob({ type: "card.charge", payload: z.object({ cents: z.int() }), result: z.string() });
const engine = await openEngine({ store: process.env.STORE });
engine.work({ processors: [processor(charge, ({ payload }) => \`paid \${payload.cents}\`)] });
const job = await engine.enqueue(charge, { cents: 4200 }, { unique: { key: "a" } });
console.log(await job.result({ within: "20s" }));
await engine.close();
`;

/** A database of the user's own, which curfew shares. */
const SQLITE = STORE.replace("store: process.env.STORE", "store").replace(
  "const engine",
  `const database = new (await import("better-sqlite3")).default("a.db");
const store = await (await import("curfew")).openSqliteStore({ database });
const engine`,
);

/** A worker and a producer behind a server. */
const SERVER = `
import { defineJob, openEngine, processor } from "curfew";
import { openClient } from "curfew/client";
import { createServer, listen } from "curfew/server";
const engine = await openEngine({ store: "memory:" });
const listening = await listen(createServer(engine), { port: 0 });
const client = openClient({ url: listening.url });
const charge = defineJob({ type: "card.charge" });
client.work({ processors: [processor(charge, () => "paid 4200")] });
const job = await client.enqueue(charge, null);
const result = await job.result({ within: "20s" });
await client.queues.pause("default");
const reply = await fetch(new URL("/openapi.json", listening.url));
if (!reply.ok) throw new Error("no OpenAPI document");
await client.close();
await listening.close();
await engine.close();
console.log(result);
`;

const NEST = `
import "reflect-metadata";
import { Test } from "@nestjs/testing";
import { CurfewModule } from "curfew/nestjs";
const made = await Test.createTestingModule({ imports: [CurfewModule.forRoot({ store: "memory:" })] }).compile();
await made.init();
await made.close();
console.log("paid 4200");
`;

const TRACING = `
import { trace } from "@opentelemetry/api";
import * as tracing from "curfew/tracing";
if (Object.keys(tracing).length === 0 || !trace.getTracer("x")) throw new Error("no tracing");
console.log("paid 4200");
`;

async function pack(): Promise<{ readonly folder: string; readonly archive: string }> {
  await run("npm", ["run", "build"], { cwd: root });
  const folder = mkdtempSync(join(tmpdir(), "curfew-packed-"));
  const options = ["--json", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run("npm", ["pack", ...options], { cwd: root });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  return { folder, archive: join(folder, filename) };
}

async function attempt(folder: string, name: string, code: string, store = "memory:"): Promise<boolean> {
  writeFileSync(join(folder, "main.mjs"), code);
  try {
    const env = { ...process.env, STORE: store };
    const { stdout } = await run(process.execPath, ["main.mjs"], { cwd: folder, env, timeout: 60_000 });
    const ok = stdout.trim().endsWith("paid 4200");
    console.log(`${ok ? "✓" : "✗"} ${name}${ok ? "" : `: ${stdout.slice(0, 300)}`}`);
    return ok;
  } catch (error) {
    const { stderr = String(error) } = error as { readonly stderr?: string };
    console.log(`✗ ${name}: ${stderr.slice(0, 600)}`);
    return false;
  }
}

async function main(): Promise<void> {
  const peers = wanted();
  console.log(peers.join(" "));
  const packed = await pack();
  const folder = mkdtempSync(join(tmpdir(), "curfew-peers-"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
  const more = ["reflect-metadata", "rxjs"];
  await run("npm", ["install", "--ignore-scripts", "--no-audit", packed.archive, ...peers, ...more], {
    cwd: folder,
  });
  await using server = await startPostgres();
  await using database = await createDatabase(server.url);
  const results = [
    await attempt(folder, "pg", STORE, database.url),
    await attempt(folder, "better-sqlite3", SQLITE),
    await attempt(folder, "hono, @hono/node-server, zod", SERVER),
    await attempt(folder, "@nestjs/common, @nestjs/core, @nestjs/testing", NEST),
    await attempt(folder, "@opentelemetry/api", TRACING),
  ];
  rmSync(folder, { recursive: true });
  rmSync(packed.folder, { recursive: true });
  if (results.includes(false)) process.exitCode = 1;
}

await main();
