import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chown, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import {
  type Account,
  findPrograms,
  freePort,
  guard,
  installedBinaries,
  type Programs,
  unprivileged,
} from "../postgres.ts";

const run = promisify(execFile);

interface Machine {
  readonly programs: Programs;
  readonly account: Account | undefined;
  readonly password: string;
}

/** One PostgreSQL server of a cluster, in its own folder. */
class PgServer {
  readonly #machine: Machine;
  readonly #folder: string;
  readonly #stop: () => Promise<void>;
  readonly port: number;

  private constructor(machine: Machine, folder: string, port: number) {
    this.#machine = machine;
    this.#folder = folder;
    this.#stop = guard(folder);
    this.port = port;
  }

  static async prepare(machine: Machine): Promise<PgServer> {
    const folder = await mkdtemp(join(tmpdir(), "curfew-failover-"));
    if (machine.account) await chown(folder, machine.account.uid, machine.account.gid);
    return new PgServer(machine, folder, await freePort());
  }

  get url(): string {
    return `postgres://postgres:${this.#machine.password}@127.0.0.1:${this.port}/postgres`;
  }

  get data(): string {
    return join(this.#folder, "data");
  }

  get #options() {
    return { cwd: this.#folder, env: { ...process.env, LC_ALL: "C" }, ...this.#machine.account };
  }

  async initialise(): Promise<void> {
    const { programs, account, password } = this.#machine;
    const passwordFile = join(this.#folder, "password");
    await writeFile(passwordFile, password, { mode: 0o600 });
    if (account) await chown(passwordFile, account.uid, account.gid);
    const auth = ["--username=postgres", "--auth=password", `--pwfile=${passwordFile}`];
    const form = ["--encoding=UTF8", "--locale=C"];
    await run(programs.initdb, [`--pgdata=${this.data}`, ...form, ...auth], this.#options);
  }

  async start(): Promise<void> {
    const settings = [
      `port=${this.port}`,
      "listen_addresses=127.0.0.1",
      "unix_socket_directories=",
      "max_connections=200",
      // A standby that was stopped for a moment finds the log that it needs.
      "wal_keep_size=2GB",
      "wal_receiver_status_interval=1s",
    ];
    const flags = settings.map((setting) => `-c ${setting}`).join(" ");
    const log = join(this.#folder, "log");
    const arguments_ = ["start", "--wait", "-D", this.data, "-l", log, "-o", flags];
    const starter = spawn(this.#machine.programs.pg_ctl, arguments_, { ...this.#options, stdio: "ignore" });
    const [code] = await once(starter, "exit");
    if (code !== 0) throw new Error(`PostgreSQL did not start:\n${await readFile(log, "utf8")}`);
  }

  /** Makes this server a standby of another one that runs, from a copy of its files. */
  async copyFrom(primary: PgServer): Promise<void> {
    const client = new pg.Client({ connectionString: primary.url });
    await client.connect();
    try {
      await client.query("select pg_backup_start('copy', true)");
      await rm(this.data, { recursive: true, force: true });
      await copyFiles(primary.data, this.data, this.#options);
      const { rows } = await client.query("select labelfile from pg_backup_stop(false)");
      await this.#write("backup_label", rows[0].labelfile);
    } finally {
      await client.end();
    }
    const from = `host=127.0.0.1 port=${primary.port} user=postgres password=${this.#machine.password} application_name=standby`;
    await this.#write("postgresql.auto.conf", `primary_conninfo = '${from}'\n`);
    await this.#write("standby.signal", "");
  }

  async #write(name: string, text: string): Promise<void> {
    const path = join(this.data, name);
    await writeFile(path, text, { mode: 0o600 });
    const { account } = this.#machine;
    if (account) await chown(path, account.uid, account.gid);
  }

  /** Runs one statement as the superuser. */
  async query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url });
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** Ends recovery: this server takes writes when it resolves. */
  async promote(): Promise<void> {
    await this.query("select pg_promote(true, 60)");
  }

  /** Kills it as a crash of the machine would. */
  async kill(): Promise<void> {
    const pid = await this.#pid();
    process.kill(pid, "SIGKILL");
    const ended = `while pgrep -P ${pid} > /dev/null || kill -0 ${pid} 2> /dev/null; do sleep 0.02; done`;
    await run("sh", ["-c", ended]);
  }

  /** Stops it cleanly, as a switchover does: a standby that is attached has everything then. */
  async shutDown(): Promise<void> {
    await run(
      this.#machine.programs.pg_ctl,
      ["stop", "--wait", "-m", "fast", "-D", this.data],
      this.#options,
    );
  }

  /** Stops all its processes where they are. Connections stay open and get no answer. */
  async freeze(): Promise<void> {
    await this.#signal("STOP");
  }

  async thaw(): Promise<void> {
    await this.#signal("CONT");
  }

  async #signal(name: "STOP" | "CONT"): Promise<void> {
    const pid = await this.#pid();
    await run("sh", ["-c", `kill -${name} ${pid} $(pgrep -P ${pid})`]);
  }

  async #pid(): Promise<number> {
    return Number((await readFile(join(this.data, "postmaster.pid"), "utf8")).split("\n")[0]);
  }

  async dispose(): Promise<void> {
    await this.#stop();
  }
}

/** Copies a data folder without its write-ahead log, which the standby streams, and without what names the server. */
async function copyFiles(from: string, to: string, options: object): Promise<void> {
  await mkdir(to, { mode: 0o700 });
  const { uid, gid } = options as Partial<Account>;
  if (uid !== undefined && gid !== undefined) await chown(to, uid, gid);
  const skip = ["./postmaster.pid", "./postmaster.opts", "./pg_wal/*", "./standby.signal"];
  const excludes = skip.map((name) => `--exclude='${name}'`).join(" ");
  // Files may change or go while they are read; what the copy misses is in the log.
  const script = `tar -C '${from}' ${excludes} --warning=no-file-changed --warning=no-file-removed -cf - . | tar -C '${to}' -xf -`;
  await run("sh", ["-c", script], options);
}

/** A primary with a standby that follows it. */
export interface Cluster extends AsyncDisposable {
  readonly primary: PgServer;
  readonly standby: PgServer;
  /** Commits wait for the standby from now on, until the next promotion. */
  waitForStandby(): Promise<void>;
  /**
   * The standby becomes the primary. Call `rebuild` to get a standby again: the old primary's files are replaced by a
   * copy.
   */
  promote(): Promise<void>;
  /** Replaces the old primary, which must be down, by a standby of the new one. */
  rebuild(): Promise<void>;
}

interface ClusterOptions {
  readonly synchronous?: boolean;
  /** The folder with `initdb` and `pg_ctl`; by default that of the package in `node_modules`. */
  readonly programs?: string;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), "curfew-failover-programs-"));
  const account = await unprivileged();
  if (account) await chown(folder, account.uid, account.gid);
  const programs: Programs =
    options.programs === undefined
      ? await findPrograms(installedBinaries(), folder, account)
      : { initdb: join(options.programs, "initdb"), pg_ctl: join(options.programs, "pg_ctl") };
  const machine = { programs, account, password: randomBytes(12).toString("hex") };
  const primary = await PgServer.prepare(machine);
  const standby = await PgServer.prepare(machine);
  const cluster = new Pair(primary, standby, folder);
  try {
    await primary.initialise();
    await primary.start();
    await cluster.attach();
    if (options.synchronous) await cluster.waitForStandby();
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
  return cluster;
}

class Pair implements Cluster {
  readonly #folder: string;
  primary: PgServer;
  standby: PgServer;

  constructor(primary: PgServer, standby: PgServer, folder: string) {
    this.primary = primary;
    this.standby = standby;
    this.#folder = folder;
  }

  async attach(): Promise<void> {
    await this.standby.copyFrom(this.primary);
    await this.standby.start();
    await this.#until("state = 'streaming'");
  }

  async waitForStandby(): Promise<void> {
    await this.primary.query("alter system set synchronous_standby_names = 'standby'");
    await this.primary.query("select pg_reload_conf()");
    await this.#until("sync_state = 'sync'");
  }

  async promote(): Promise<void> {
    const { primary, standby } = this;
    await standby.promote();
    this.primary = standby;
    this.standby = primary;
  }

  async rebuild(): Promise<void> {
    await this.attach();
  }

  async #until(condition: string): Promise<void> {
    for (let tries = 0; tries < 600; tries++) {
      const rows = await this.primary.query(`select 1 from pg_stat_replication where ${condition}`);
      if (rows.length > 0) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the standby did not come to ${condition}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.primary.dispose(), this.standby.dispose()]);
    await rm(this.#folder, { recursive: true, force: true });
  }
}
