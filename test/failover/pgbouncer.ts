import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort, unprivileged } from "../postgres.ts";

const run = promisify(execFile);

/** A pooler in front of one database. */
export interface PgBouncer extends AsyncDisposable {
  readonly url: string;
}

/** What pgbouncer needs beside the C library, by the names of Debian 12. */
const PACKAGES = ["pgbouncer", "libevent-2.1-7", "libc-ares2"];

const INSTALLED = "/usr/sbin/pgbouncer";

/**
 * A folder for pgbouncer, which is fetched from Debian unless it is installed. Undefined where Debian cannot be reached: the caller then says
 * which tests did not run.
 */
export async function fetchPgBouncer(): Promise<string | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "curfew-pgbouncer-"));
  try {
    await chmod(folder, 0o755);
    if (existsSync(INSTALLED)) return folder;
    await run("apt-get", ["download", ...PACKAGES], { cwd: folder, timeout: 60_000 });
    for (const name of await readdir(folder))
      if (name.endsWith(".deb")) await run("dpkg-deb", ["-x", name, "root"], { cwd: folder });
    return folder;
  } catch {
    await rm(folder, { recursive: true, force: true });
    return undefined;
  }
}

/** Starts a pooler from a fetched folder. */
export async function startPgBouncer(
  folder: string,
  database: string,
  mode: "transaction" | "session",
): Promise<PgBouncer> {
  const account = await unprivileged();
  const { username, password, hostname, port, pathname } = new URL(database);
  const own = await freePort();
  const config = join(folder, `${mode}-${own}.ini`);
  const users = join(folder, `${mode}-${own}.txt`);
  await writeFile(users, `"${username}" "${password}"\n`);
  await writeFile(
    config,
    `[databases]
${pathname.slice(1)} = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = ${mode}
default_pool_size = 20
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
`,
  );
  for (const path of [config, users]) if (account) await chown(path, account.uid, account.gid);
  const libraries = join(folder, "root", "usr", "lib", "x86_64-linux-gnu");
  const log = `${config}.log`;
  await writeFile(log, "");
  if (account) await chown(log, account.uid, account.gid);
  const program = existsSync(INSTALLED) ? INSTALLED : join(folder, "root", "usr", "sbin", "pgbouncer");
  const server = spawn(program, ["-q", config], {
    env: { ...process.env, LD_LIBRARY_PATH: libraries },
    stdio: ["ignore", "ignore", "pipe"],
    ...account,
  });
  let errors = "";
  server.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const ended = once(server, "exit");
  await Promise.race([
    listening(own),
    ended.then(async () => {
      throw new Error(`pgbouncer did not start: ${errors}${await readFile(log, "utf8")}`);
    }),
  ]);
  const url = new URL(database);
  url.port = String(own);
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      server.kill("SIGKILL");
      await ended;
    },
  };
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const socket = connect(port, "127.0.0.1");
    const isUp = await Promise.race([
      once(socket, "connect").then(() => true),
      once(socket, "error").then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing listens on port ${port}`);
}
