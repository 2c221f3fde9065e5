import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "./postgres.ts";

const run = promisify(execFile);

/** A Redis server for tests. Disposing it stops the server and removes its folder. */
export interface TestRedis extends AsyncDisposable {
  readonly url: string;
}

/** A server that this process started. */
export interface RedisNode extends TestRedis {
  readonly port: number;
  /** Sends the server a signal, such as SIGKILL or SIGSTOP. */
  signal(name: NodeJS.Signals): void;
  /** What the server has written to its log. */
  log(): Promise<string>;
  /** Starts a server that was killed again, on its port and with its files. */
  restart(): Promise<void>;
}

export type RedisFlavour = "redis" | "valkey";

export interface RedisOptions {
  /** Redis 7.0 or Valkey 8 by name. Default: what is on PATH, else Redis. */
  readonly flavour?: RedisFlavour;
  /** Further flags of the server. */
  readonly flags?: readonly string[];
}

/** Debian's packages with the libraries that a plain machine lacks. Valkey is in its backports. */
const LIBRARIES = ["libjemalloc2", "liblzf1", "liblua5.1-0", "lua-bitop", "lua-cjson", "libhiredis0.14"];
const PACKAGES: Readonly<Record<RedisFlavour, readonly string[]>> = {
  redis: ["redis-server", "redis-tools", ...LIBRARIES],
  valkey: ["valkey-server", "valkey-tools", ...LIBRARIES],
};
const CACHE = join(import.meta.dirname, "..", ".cache");

export interface Program {
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

/** What a store needs under the durability "local". */
export const DURABLE = ["--appendonly", "yes", "--appendfsync", "everysec"];

/**
 * Gives the server named by `CURFEW_REDIS_URL`, or starts one: a `redis-server` or `valkey-server` on PATH, or Debian's
 * package, unpacked into `.cache` and not installed. Null if there is none; the caller must say what it skips.
 */
export async function startRedis(options: RedisOptions = {}): Promise<TestRedis | null> {
  const given = process.env.CURFEW_REDIS_URL;
  if (given) return { url: given, async [Symbol.asyncDispose]() {} };
  const program = await findRedis(options.flavour);
  return program && startNode(program, options.flags);
}

/** The program of a flavour, or of any; null and a loud line if it cannot be had. */
export async function findRedis(flavour?: RedisFlavour): Promise<Program | null> {
  const flavours: RedisFlavour[] = flavour ? [flavour] : ["redis", "valkey"];
  for (const each of flavours) {
    const program = await onPath(each);
    if (program) return program;
  }
  for (const each of flavours) {
    const program = await unpacked(each);
    if (program) return program;
  }
  const fix =
    "put redis-server on PATH, set CURFEW_REDIS_URL (one node, no failover), or run on Debian with apt-get";
  console.error(`SKIPPED: no ${flavour ?? "Redis or Valkey"} server could be found or unpacked; ${fix}`);
  return null;
}

/** Starts one server on a free port, with flags and lines of a configuration file. */
export async function startNode(
  { path, env }: Program,
  flags: readonly string[] = [],
  configuration = "",
): Promise<RedisNode> {
  const folder = await mkdtemp(join(tmpdir(), "curfew-redis-"));
  const file = join(folder, "server.conf");
  await writeFile(file, configuration);
  const port = await freePort();
  // Each line starts the server again when it has ended. The end of the input ends it: so it ends with this process.
  const script = `start() { "$@" >> "$0/log" 2>&1 & pid=$!; echo $pid; }
start "$@"; while read -r line; do wait $pid; start "$@"; done; kill -KILL $pid; wait $pid; rm -rf "$0"`;
  const all = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", ...flags];
  const shell = spawn("sh", ["-c", script, folder, path, file, ...all, "--dir", folder], {
    env: { ...process.env, ...env },
    detached: true,
    stdio: ["pipe", "pipe", "ignore"],
  });
  const ended = once(shell, "exit");
  const started = async () => Number((await once(shell.stdout, "data")).toString());
  let pid = await started();
  shell.unref();
  (shell.stdout as unknown as { unref(): void }).unref();
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
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    signal: (name) => void process.kill(pid, name),
    log: () => readFile(join(folder, "log"), "utf8"),
    async restart() {
      shell.stdin.write("again\n");
      pid = await started();
      await accepts(port);
    },
    [Symbol.asyncDispose]: stop,
  };
}

/** Asks the shell to connect until the server listens. */
async function accepts(port: number): Promise<void> {
  const script = `for i in $(seq 200); do (exec 3<>/dev/tcp/127.0.0.1/${port}) 2> /dev/null && exit 0; sleep 0.05; done; exit 1`;
  await run("bash", ["-c", script]);
}

async function onPath(flavour: RedisFlavour): Promise<Program | null> {
  const found = await run("sh", ["-c", `command -v ${flavour}-server`]).catch(() => null);
  return found && { path: found.stdout.trim(), env: {} };
}

/** Downloads and unpacks Debian's packages once. */
async function unpacked(flavour: RedisFlavour): Promise<Program | null> {
  const cache = join(CACHE, flavour);
  const path = join(cache, "usr", "bin", `${flavour}-server`);
  if (!existsSync(path)) {
    const made = await fetchPackages(flavour, cache).catch((error: Error) => {
      console.error(`Debian's ${flavour} could not be unpacked: ${error.message.split("\n")[0]}`);
      return false;
    });
    if (!made || !existsSync(path)) return null;
  }
  return { path, env: { LD_LIBRARY_PATH: join(cache, "usr", "lib", `${machine()}-linux-gnu`) } };
}

const machine = () => (process.arch === "arm64" ? "aarch64" : "x86_64");

async function fetchPackages(flavour: RedisFlavour, cache: string): Promise<boolean> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, `${flavour}-`));
  try {
    const sources = flavour === "valkey" ? await backports(folder) : [];
    const download = () =>
      run("apt-get", [...sources, "download", ...PACKAGES[flavour]], { cwd: folder, timeout: 60_000 });
    const update = () => run("apt-get", [...sources, "update"], { timeout: 120_000 });
    if (sources.length > 0) await update();
    await download().catch(async () => {
      await update();
      await download();
    });
    const files = (await readdir(folder)).filter((name) => name.endsWith(".deb"));
    for (const file of files) await run("dpkg-deb", ["-x", join(folder, file), join(folder, "root")]);
    // Two test files may do this at the same time: the first one wins.
    await rename(join(folder, "root"), cache).catch(() => {});
    return true;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Options of apt that read the backports from the machine's own mirror, and change nothing of the machine. */
async function backports(folder: string): Promise<string[]> {
  const { stdout } = await run("apt-get", ["indextargets", "--format", "$(REPO_URI) $(CODENAME)"]);
  const line = stdout.split("\n").find((text) => /^\S+ [a-z]+$/.test(text));
  const [mirror, codename] = line?.split(" ") ?? [];
  if (!mirror || !codename) throw new Error("apt names no mirror");
  const lists = join(folder, "lists");
  await mkdir(join(lists, "partial"), { recursive: true });
  const list = join(folder, "backports.list");
  await writeFile(
    list,
    [codename, `${codename}-backports`].map((suite) => `deb ${mirror} ${suite} main\n`).join(""),
  );
  return [
    ...["-o", `Dir::Etc::SourceList=${list}`],
    ...["-o", "Dir::Etc::SourceParts=/dev/null"],
    ...["-o", `Dir::State::Lists=${lists}`],
    ...["-o", "APT::Sandbox::User=root"],
  ];
}
