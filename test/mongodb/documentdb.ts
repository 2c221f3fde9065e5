import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { appendFile, chown, mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../postgres.ts";

const run = promisify(execFile);
const CACHE = join(import.meta.dirname, "..", "..", ".cache", "documentdb");
const ROOT = join(CACHE, "root");
const PROGRAMS = "/usr/lib/postgresql/18/bin";
const NOBODY = 65_534;
const SETTINGS = `
shared_preload_libraries = 'pg_cron,pg_documentdb_core,pg_documentdb'
listen_addresses = '127.0.0.1'
unix_socket_directories = '/tmp'
documentdb.enableCompositeIndexPlanner = on
documentdb.enableOrderByIndexTerm = on
`;

/** A PostgreSQL with DocumentDB from Debian forky. */
export interface DocumentDb extends AsyncDisposable {
  readonly connectionString: string;
}

/**
 * Builds a folder with Debian forky and `postgresql-18-documentdb` once, in about two minutes, and starts the server in it. Needs root,
 * apt-get and Debian's archive. Null, with the reason, if it cannot be built: the suite changes every day.
 */
export async function startDocumentDb(): Promise<DocumentDb | string> {
  try {
    if (process.getuid?.() !== 0) return "building the folder needs root";
    if (!existsSync(join(ROOT, PROGRAMS, "initdb"))) await build();
    return await start();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function build(): Promise<void> {
  await rm(CACHE, { recursive: true, force: true });
  await mkdir(CACHE, { recursive: true });
  await run("apt-get", ["update", "-qq"]).catch(() => {});
  await run("apt-get", ["download", "debootstrap"], { cwd: CACHE });
  const [file] = (await readdir(CACHE)).filter((name) => name.endsWith(".deb"));
  await run("dpkg-deb", ["-x", file as string, "deb"], { cwd: CACHE });
  const scripts = join(CACHE, "deb/usr/share/debootstrap");
  // Bookworm's debootstrap has no script for forky. That of sid fits.
  await run("cp", [join(scripts, "scripts/sid"), join(scripts, "scripts/forky")]).catch(() => {});
  const env = { ...process.env, DEBOOTSTRAP_DIR: scripts, DEBIAN_FRONTEND: "noninteractive" };
  const program = join(CACHE, "deb/usr/sbin/debootstrap");
  await run(program, ["--variant=minbase", "forky", ROOT, await mirror()], { env, maxBuffer: 1e8 });
  const install = "apt-get update -qq; apt-get install -y --no-install-recommends postgresql-18-documentdb";
  // A script of postgresql-common may fail in such a folder. The programs are there all the same.
  await run("chroot", [ROOT, "sh", "-c", install], { env, maxBuffer: 1e8 }).catch(() => {});
  if (!existsSync(join(ROOT, PROGRAMS, "initdb")))
    throw new Error("postgresql-18-documentdb was not installed");
}

/** Debian's archive as this machine names it. */
async function mirror(): Promise<string> {
  const files = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"];
  const texts = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const found = /^(?:URIs:|deb(?: \[[^\]]*\])?)\s+(\S+)/m.exec(texts.join("\n"))?.[1];
  if (found === undefined) throw new Error("no archive is named in /etc/apt");
  return found;
}

function inside(program: string, options: readonly string[]) {
  return run("chroot", [`--userspec=${NOBODY}:${NOBODY}`, ROOT, join(PROGRAMS, program), ...options]);
}

async function start(): Promise<DocumentDb> {
  const folder = `/data-${process.pid}`;
  const outside = join(ROOT, folder);
  await mkdir(outside, { recursive: true });
  await chown(outside, NOBODY, NOBODY);
  const port = await freePort();
  await inside("initdb", ["-D", folder, "-U", "postgres", "--auth=trust"]);
  await appendFile(join(outside, "postgresql.conf"), `${SETTINGS}port = ${port}\n`);
  const flags = [`--userspec=${NOBODY}:${NOBODY}`, ROOT, join(PROGRAMS, "postgres"), "-D", folder];
  const server = spawn("chroot", flags, { stdio: "ignore" });
  const stop = async () => {
    const ended = new Promise((resolve) => server.once("exit", resolve));
    server.kill("SIGINT");
    await ended;
    await rm(outside, { recursive: true, force: true });
  };
  const ask = ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres", "-c"];
  for (let tries = 0; ; tries++) {
    try {
      await inside("psql", [...ask, "CREATE EXTENSION IF NOT EXISTS documentdb CASCADE"]);
      break;
    } catch (error) {
      if (tries === 40) {
        await stop();
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
  return { connectionString: `postgres://postgres@127.0.0.1:${port}/postgres`, [Symbol.asyncDispose]: stop };
}
