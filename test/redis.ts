import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./postgres.ts";

const run = promisify(execFile);

/** A Redis server for tests. Disposing it stops the server and removes its folder. */
export interface TestRedis extends AsyncDisposable {
  readonly url: string;
}

/** Debian's packages of Redis 7.0 with the libraries that a plain machine lacks. */
const PACKAGES = [
  "redis-server",
  "redis-tools",
  "libjemalloc2",
  "liblzf1",
  "liblua5.1-0",
  "lua-bitop",
  "lua-cjson",
  "libhiredis0.14",
];
const CACHE = join(import.meta.dirname, "..", ".cache", "redis");
const PROGRAMS = ["redis-server", "valkey-server"];

interface Program {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

/**
 * Gives the server named by `CURFEW_REDIS_URL`, or starts one: a `redis-server` or `valkey-server` on PATH, or Debian's
 * package, unpacked into `.cache/redis` and not installed. Null if there is none; the caller must say what it skips.
 */
export async function startRedis(): Promise<TestRedis | null> {
  const given = process.env.CURFEW_REDIS_URL;
  if (given) return { url: given, async [Symbol.asyncDispose]() {} };
  const program = (await onPath()) ?? (await unpacked());
  if (program === null) {
    const fix = "put redis-server on PATH, set CURFEW_REDIS_URL, or run on Debian with apt-get";
    console.error(`SKIPPED: no Redis or Valkey server could be found or unpacked; ${fix}`);
    return null;
  }
  return startProgram(program);
}

async function startProgram({ path, env }: Program): Promise<TestRedis> {
  const folder = await mkdtemp(join(tmpdir(), "curfew-redis-"));
  const port = await freePort();
  // The shell ends the server when this process ends, even by SIGKILL: its input closes then.
  const script = `"$@" > "$0/log" 2>&1 & pid=$!; cat > /dev/null; kill -KILL $pid; wait $pid; rm -rf "$0"`;
  const flags = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const shell = spawn("sh", ["-c", script, folder, path, ...flags, "--dir", folder], {
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = once(shell, "exit");
  shell.unref();
  const stop = async () => {
    shell.ref();
    shell.stdin.end();
    await ended;
  };
  try {
    await accepts(port);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: `redis://127.0.0.1:${port}`, [Symbol.asyncDispose]: stop };
}

/** Asks the shell to connect until the server listens. */
async function accepts(port: number): Promise<void> {
  const script = `for i in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/${port}) 2> /dev/null && exit 0; sleep 0.05; done; exit 1`;
  await run("bash", ["-c", script]);
}

async function onPath(): Promise<Program | null> {
  for (const name of PROGRAMS) {
    const found = await run("sh", ["-c", `command -v ${name}`]).catch(() => null);
    if (found) return { path: found.stdout.trim(), env: {} };
  }
  return null;
}

/** Downloads and unpacks Debian's packages once. */
async function unpacked(): Promise<Program | null> {
  const path = join(CACHE, "usr", "bin", "redis-server");
  if (!existsSync(path)) {
    const made = await fetchPackages().catch((error: Error) => {
      console.error(`Debian's Redis could not be unpacked: ${error.message.split("\n")[0]}`);
      return false;
    });
    if (!made || !existsSync(path)) return null;
  }
  return { path, env: { LD_LIBRARY_PATH: join(CACHE, "usr", "lib", `${machine()}-linux-gnu`) } };
}

const machine = () => (process.arch === "arm64" ? "aarch64" : "x86_64");

async function fetchPackages(): Promise<boolean> {
  await mkdir(join(CACHE, ".."), { recursive: true });
  const folder = await mkdtemp(join(CACHE, "..", "redis-"));
  try {
    const download = () => run("apt-get", ["download", ...PACKAGES], { cwd: folder, timeout: 60_000 });
    await download().catch(async () => {
      await run("apt-get", ["update"], { timeout: 120_000 });
      await download();
    });
    const files = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
    for (const file of files) await run("dpkg-deb", ["-x", join(folder, file), join(folder, "root")]);
    // Two test files may do this at the same time: the first one wins.
    await rename(join(folder, "root"), CACHE).catch(() => {});
    return true;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
