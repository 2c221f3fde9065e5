import { execFile } from "node:child_process";
import { once } from "node:events";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { DURABLE, type Program, type RedisNode, startNode } from "./redis.ts";

const run = promisify(execFile);

/** A cluster on this machine. Disposing it stops all nodes. */
export interface TestCluster extends AsyncDisposable {
  /** An address that names all nodes. */
  readonly url: string;
  readonly nodes: readonly RedisNode[];
  /** Runs the command line of the server against one node. */
  cli(node: RedisNode, ...args: string[]): Promise<string>;
  /** The nodes that are masters now. */
  masters(): Promise<RedisNode[]>;
  /** A node that answers. */
  alive(): Promise<RedisNode>;
  /** Starts one more node, which belongs to no cluster yet. */
  addNode(): Promise<RedisNode>;
  /** Stops a node that has left the cluster. */
  removeNode(node: RedisNode): Promise<void>;
  /** Resolves when all nodes agree on who has which slot. */
  agreed(): Promise<void>;
  /** Resolves when all slots are served and every master has its replicas in sync. */
  whole(): Promise<void>;
}

const MASTERS = 3;

/** What a failover within 3 s needs; with the default delay, replicas are not in sync for 5 s. */
const CLUSTER = [
  ...["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"],
  ...["--repl-diskless-sync-delay", "0", "--cluster-allow-replica-migration", "no"],
  ...DURABLE,
];

/** Starts three masters with this many replicas each, and waits until all replicas are in sync. */
export async function startCluster(program: Program, replicas: number): Promise<TestCluster> {
  const nodes = await Promise.all(
    Array.from({ length: MASTERS * (1 + replicas) }, () => startNode(program, CLUSTER)),
  );
  const tool = program.path.replace(/-server$/, "-cli");
  const env = { ...process.env, ...program.env };
  const cli = async (node: RedisNode, ...args: string[]) => {
    const { stdout } = await run(tool, ["-p", String(node.port), ...args], { env, timeout: 60_000 });
    return stdout.trim();
  };
  const cluster: TestCluster = {
    url: `redis://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    nodes,
    cli,
    async masters() {
      const roles = await Promise.all(nodes.map((node) => cli(node, "role").catch(() => "")));
      return nodes.filter((_, index) => roles[index]?.startsWith("master"));
    },
    async alive() {
      for (const node of nodes) if (await answers(cli, node)) return node;
      throw new Error("no node of the cluster answers");
    },
    async removeNode(node) {
      nodes.splice(nodes.indexOf(node), 1);
      await node[Symbol.asyncDispose]();
    },
    async agreed() {
      const views = async () => {
        const all = await Promise.all(nodes.map((node) => cli(node, "cluster", "nodes")));
        return new Set(all.map(slotsOf)).size;
      };
      while ((await views()) > 1) await sleep(50);
    },
    whole: () => inSync(nodes, replicas),
    async addNode() {
      const node = await startNode(program, CLUSTER);
      nodes.push(node);
      return node;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    },
  };
  try {
    const hosts = nodes.map(({ port }) => `127.0.0.1:${port}`);
    const create = ["--cluster", "create", ...hosts, "--cluster-replicas", String(replicas), "--cluster-yes"];
    await cli(nodes[0] as RedisNode, ...create);
    await inSync(nodes, replicas);
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

async function answers(cli: TestCluster["cli"], node: RedisNode): Promise<boolean> {
  const asked = cli(node, "ping").then(
    (answer) => answer === "PONG",
    () => false,
  );
  return Promise.race([asked, sleep(500, false)]);
}

/** Who has which slots, as one node says it. */
function slotsOf(nodes: string): string {
  const lines = nodes.split("\n").map((line) => line.split(" "));
  return lines
    .map(([id, , , , , , , , ...ranges]) => [id, ...ranges].join(" "))
    .sort()
    .join("\n");
}

const TRIES = 600;

/** Asks all nodes until each knows all slots, and each master with slots has its replicas. */
async function inSync(nodes: readonly RedisNode[], replicas: number): Promise<void> {
  for (const { port } of nodes) {
    for (let tries = 0; ; tries++) {
      const text = await ask(port).catch(() => "");
      const online = text.match(/state=online/g)?.length ?? 0;
      const isReplica = /role:slave/.test(text) && /master_link_status:up/.test(text);
      if (/cluster_state:ok/.test(text) && (isReplica || online >= replicas)) break;
      if (tries === TRIES) throw new Error(`the cluster is not whole: ${text}`);
      await sleep(50);
    }
  }
}

async function ask(port: number): Promise<string> {
  const socket = createConnection(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    socket.setTimeout(1_000, () => socket.destroy());
    let text = "";
    socket.write("CLUSTER INFO\r\nINFO replication\r\nQUIT\r\n");
    for await (const data of socket) text += data;
    return text;
  } finally {
    socket.destroy();
  }
}
