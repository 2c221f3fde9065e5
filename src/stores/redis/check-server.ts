import { CurfewError } from "../../core/errors.ts";
import type { RedisLike } from "./redis-package.ts";

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

/** Refuses a server that is too old, and settings under which acknowledged work is lost. */
export async function checkServer(node: RedisLike, durability: Durability): Promise<void> {
  const facts = await readFacts(node);
  const version = facts.get("redis_version") ?? "0";
  if (Number.parseInt(version, 10) < OLDEST)
    throw refused(`the server is version ${version}; use Redis 7.0 or newer, or any Valkey`);
  const policy = facts.get("maxmemory_policy") ?? "noeviction";
  if (policy !== "noeviction")
    throw refused(
      `maxmemory-policy is ${policy}, so a full server would delete jobs; run CONFIG SET maxmemory-policy noeviction, and write it into its configuration`,
    );
  if (durability === "local") return checkFile(node, facts);
  const replicas = Number(facts.get("connected_slaves") ?? 0);
  if (facts.get("role") === "master" && replicas < LEAST_REPLICAS)
    throw refused(
      `durability "replicated" needs ${LEAST_REPLICAS} replicas of every master, and one has ${replicas}; add replicas, or use durability "local"`,
    );
}

async function checkFile(node: RedisLike, facts: ServerFacts): Promise<void> {
  if (facts.get("aof_enabled") !== "1")
    throw refused(
      'durability "local" needs the append-only file, and it is off; run CONFIG SET appendonly yes, and write it into the configuration',
    );
  // A managed server may forbid the question.
  const answer = (await node.call("config", "get", "appendfsync").catch(() => null)) as string[] | null;
  if (answer?.[1] === "no")
    throw refused("appendfsync is no, so a crash loses up to 30 s; run CONFIG SET appendfsync everysec");
}

function refused(problem: string): CurfewError {
  return new CurfewError("invalid_option", `Redis store: ${problem}`, { field: "store" });
}
