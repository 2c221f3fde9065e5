import { once } from "node:events";
import { existsSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { startOwnPostgres } from "../test/postgres.ts";
import { startRedis } from "../test/redis.ts";

/** A server that contenders are measured on. */
export interface BenchServer {
  readonly database: "postgres" | "redis";
  /** What tables call it: `PostgreSQL 15`. */
  readonly title: string;
  readonly url: string;
  close(): Promise<void>;
}

/**
 * As in production, on a machine with some memory. The first write to a page after a checkpoint costs a copy of the whole
 * page, so checkpoints come by the clock, and not by the amount that a benchmark writes.
 */
const SETTINGS = ["shared_buffers=1GB", "max_wal_size=8GB"];

/** Where Debian and its like keep the programs of a version. */
function systemPrograms(version: string): { initdb: string; pg_ctl: string } | undefined {
  const folder = join("/usr/lib/postgresql", version, "bin");
  return existsSync(join(folder, "initdb"))
    ? { initdb: join(folder, "initdb"), pg_ctl: join(folder, "pg_ctl") }
    : undefined;
}

/** The version that npm brings with the development dependencies. */
const FROM_NPM = "18";

/** PostgreSQL in this version: of the system if it has it, and of npm otherwise; undefined if there is neither. */
async function startVersion(version: string): Promise<BenchServer | undefined> {
  const programs = systemPrograms(version);
  if (!programs && version !== FROM_NPM) {
    console.error(`SKIPPED: PostgreSQL ${version} is not installed in /usr/lib/postgresql/${version}`);
    return undefined;
  }
  const server = await startOwnPostgres(programs, SETTINGS);
  const close = async () => await server[Symbol.asyncDispose]();
  return { database: "postgres", title: `PostgreSQL ${version}`, url: server.url, close };
}

async function startOneRedis(): Promise<BenchServer | undefined> {
  const server = await startRedis();
  if (!server) return undefined;
  const { port, hostname } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  // Its log is written every second, as the production guide of BullMQ says.
  socket.end("CONFIG SET appendonly yes\r\nQUIT\r\n");
  await once(socket.resume(), "close");
  const close = async () => await server[Symbol.asyncDispose]();
  return { database: "redis", title: "Redis", url: server.url, close };
}

/** The servers that are measured: those that are named, or else the one at the URL. */
export async function startServers(
  versions: readonly string[],
  url: string | undefined,
  wantsRedis: boolean,
): Promise<readonly BenchServer[]> {
  const given = url && ({ database: "postgres", title: "PostgreSQL", url, close: async () => {} } as const);
  const servers = given ? [given] : await Promise.all(versions.map(startVersion));
  const redis = wantsRedis ? await startOneRedis() : undefined;
  return [...servers, redis].filter((server) => server !== undefined);
}
