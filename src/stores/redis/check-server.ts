import { CurfewError } from "../../core/errors.ts";
import { closeClient, type RedisLike } from "./redis-package.ts";

export type Durability = "local" | "replicated";

const OLDEST = 7;
/** With one, there is nobody to wait for after a failover. */
const LEAST_REPLICAS = 2;

export type ServerFacts = ReadonlyMap<string, string>;

/** What a node says about itself. */
export async function readFacts(node: RedisLike): Promise<ServerFacts> {
  const text = (await node.call("info")) as string;
  const facts = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    if (colon > 0 && !line.startsWith("#")) facts.set(line.slice(0, colon), line.slice(colon + 1));
  }
  return facts;
}

/** Connects to one server, which may not answer. */
export type Visit = (host: string, port: number) => Promise<RedisLike>;

/**
 * Refuses a server that is too old, and settings under which acknowledged work is lost. A replica becomes the master some
 * day, with its own settings, so those that answer are checked, too.
 */
export async function checkServer(master: RedisLike, durability: Durability, visit: Visit): Promise<void> {
  const facts = await readFacts(master);
  await checkSettings(master, facts, durability, "");
  const replicas = Number(facts.get("connected_slaves") ?? 0);
  if (durability === "replicated" && facts.get("role") === "master" && replicas < LEAST_REPLICAS)
    throw refused(
      `durability "replicated" needs ${LEAST_REPLICAS} replicas of every master, and one has ${replicas}; add replicas, or use durability "local"`,
    );
  await Promise.all(replicasOf(facts).map(([host, port]) => checkReplica(host, port, durability, visit)));
}

/** Where the replicas of a master are, as it says it. */
function replicasOf(facts: ServerFacts): (readonly [host: string, port: number])[] {
  return [...facts].flatMap(([name, value]) => {
    const [, host, port] = /^ip=([^,]+),port=(\d+)/.exec(value) ?? [];
    return /^slave\d+$/.test(name) && host && port ? [[host, Number(port)] as const] : [];
  });
}

async function checkReplica(host: string, port: number, durability: Durability, visit: Visit): Promise<void> {
  const replica = await visit(host, port).catch(() => undefined);
  if (!replica) return;
  try {
    const facts = await readFacts(replica).catch(() => undefined);
    if (facts) await checkSettings(replica, facts, durability, `a replica, ${host}:${port}: `);
  } finally {
    closeClient(replica);
  }
}

async function checkSettings(
  node: RedisLike,
  facts: ServerFacts,
  durability: Durability,
  where: string,
): Promise<void> {
  const version = facts.get("redis_version") ?? "0";
  if (Number.parseInt(version, 10) < OLDEST)
    throw refused(`${where}the server is version ${version}; use Redis 7.0 or newer, or any Valkey`);
  const policy = facts.get("maxmemory_policy") ?? "noeviction";
  if (policy !== "noeviction")
    throw refused(
      `${where}maxmemory-policy is ${policy}, so a full server would delete jobs; run CONFIG SET maxmemory-policy noeviction, and write it into its configuration`,
    );
  if (durability === "local") await checkFile(node, facts, where);
}

async function checkFile(node: RedisLike, facts: ServerFacts, where: string): Promise<void> {
  if (facts.get("aof_enabled") !== "1")
    throw refused(
      `${where}durability "local" needs the append-only file, and it is off; run CONFIG SET appendonly yes, and write it into the configuration`,
    );
  // A managed server may forbid the question.
  const answer = (await node.call("config", "get", "appendfsync").catch(() => null)) as string[] | null;
  if (answer?.[1] === "no")
    throw refused(
      `${where}appendfsync is no, so a crash loses up to 30 s; run CONFIG SET appendfsync everysec`,
    );
}

function refused(problem: string): CurfewError {
  return new CurfewError("invalid_option", `Redis store: ${problem}`, { field: "store" });
}
