import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import pg from "pg";

export interface Cost {
  /** Jobs per second. */
  readonly rate: number;
  /** Microseconds of CPU per job in this process. */
  readonly node: number;
  /** Microseconds of CPU per job in the server and all its processes; NaN where there is none or it does not tell. */
  readonly server: number;
}

/** Runs something that handles `count` jobs and measures it from the moment it calls `begin` until it resolves. */
export async function measure(
  count: number,
  server: Pick<ServerMeter, "cpu">,
  run: (begin: () => void) => Promise<unknown>,
): Promise<Cost> {
  let serverBefore = 0;
  let nodeBefore: NodeJS.CpuUsage | undefined;
  let from = 0;
  await run(() => {
    serverBefore = server.cpu();
    nodeBefore = process.cpuUsage();
    from = performance.now();
  });
  const seconds = (performance.now() - from) / 1_000;
  const node = process.cpuUsage(nodeBefore);
  return {
    rate: count / seconds,
    node: (node.user + node.system) / count,
    server: (server.cpu() - serverBefore) / count,
  };
}

/** For a database that works in the process of its caller. */
export const NO_SERVER = { cpu: () => Number.NaN };

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Half the distance between the smallest and the largest, as a share of the median. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / 2 / median(values);
}

/** Reads the CPU time of a server on this machine: the postmaster's own, its living children's and its dead ones'. */
export class ServerMeter {
  /** The process of the server, if it runs on this machine. */
  readonly postmaster: number | undefined;

  constructor(postmaster: number | undefined) {
    this.postmaster = postmaster;
  }

  static async of(url: string): Promise<ServerMeter> {
    if (url === "") return new ServerMeter(undefined);
    if (url.startsWith("redis")) return new ServerMeter(await redisProcess(url));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
      return new ServerMeter(readStat(rows[0]?.pid ?? 0)?.parent);
    } finally {
      await client.end();
    }
  }

  /** Microseconds so far. */
  cpu(): number {
    if (this.postmaster === undefined) return Number.NaN;
    let ticks = readStat(this.postmaster)?.ownAndReaped ?? 0;
    for (const name of readdirSync("/proc")) {
      const stat = /^\d+$/.test(name) ? readStat(Number(name)) : undefined;
      if (stat?.parent === this.postmaster) ticks += stat.own;
    }
    return ticks * 10_000;
  }
}

/** The process of a Redis server, which has no children that work for it. */
async function redisProcess(url: string): Promise<number | undefined> {
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end("INFO server\r\nQUIT\r\n");
  let text = "";
  for await (const chunk of socket) text += chunk;
  const pid = /process_id:(\d+)/.exec(text)?.[1];
  return pid === undefined ? undefined : Number(pid);
}

export function readStat(pid: number): { parent: number; own: number; ownAndReaped: number } | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  const fields = text
    .slice(text.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  const [user = 0, system = 0, reapedUser = 0, reapedSystem = 0] = fields.slice(11, 15);
  const own = user + system;
  return { parent: fields[1] ?? 0, own, ownAndReaped: own + reapedUser + reapedSystem };
}
