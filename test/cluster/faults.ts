import { setTimeout as sleep } from "node:timers/promises";
import type { RedisNode } from "../redis.ts";
import type { TestCluster } from "../redis-cluster.ts";

/** What happens to a cluster. Each fault ends with a cluster that is whole again, after `heal`. */
export const FAULTS = ["kill", "cut", "stop", "slow", "reshard", "grow", "full"] as const;
export type Fault = (typeof FAULTS)[number];

export interface Begun {
  /** The node that is hurt. */
  readonly victim: RedisNode;
  /** When it was killed, if it was. */
  readonly diedAt: number;
  heal(): Promise<void>;
}

/** How long a node stands still: longer than the node timeout, so that it is replaced meanwhile. */
const STOPPED = 4_000;
const SLOTS_MOVED = 200;

/** For how long a master has no links to its replicas. It asks them for a password that they do not have. */
const CUT = 500;
const PASSWORD = "cut";

/** Begins a fault at the node that has a slot now. */
export async function begin(cluster: TestCluster, fault: Fault, slot: number): Promise<Begun> {
  const victim = await ownerOf(cluster, slot);
  const { heal, diedAt = Number.NaN } = await hurt(cluster, fault, victim, slot);
  return { victim, diedAt, heal };
}

async function hurt(
  cluster: TestCluster,
  fault: Fault,
  victim: RedisNode,
  slot: number,
): Promise<Pick<Begun, "heal"> & { readonly diedAt?: number }> {
  switch (fault) {
    case "kill":
      victim.signal("SIGKILL");
      return { diedAt: Date.now(), heal: async () => restart(cluster, victim) };
    case "cut":
      await cluster.cli(victim, "config", "set", "requirepass", PASSWORD);
      await cluster.cli(victim, "-a", PASSWORD, "--no-auth-warning", "client", "kill", "type", "replica");
      await sleep(CUT);
      victim.signal("SIGKILL");
      return { diedAt: Date.now(), heal: async () => restart(cluster, victim) };
    case "stop":
      victim.signal("SIGSTOP");
      return {
        async heal() {
          await sleep(STOPPED);
          victim.signal("SIGCONT");
          await cluster.whole();
        },
      };
    case "slow": {
      const replica = await replicaOf(cluster, victim);
      replica.signal("SIGSTOP");
      return {
        async heal() {
          await sleep(STOPPED);
          replica.signal("SIGCONT");
          await cluster.whole();
        },
      };
    }
    case "reshard":
      await moveSlots(cluster, victim, slot);
      return { heal: () => cluster.whole() };
    case "grow":
      await addAndRemove(cluster);
      return { heal: () => cluster.whole() };
    case "full":
      await cluster.cli(victim, "config", "set", "maxmemory", "1");
      await sleep(1_000);
      await cluster.cli(victim, "config", "set", "maxmemory", "0");
      return { heal: () => cluster.whole() };
  }
}

async function restart(cluster: TestCluster, node: RedisNode): Promise<void> {
  await node.restart();
  await cluster.whole();
}

/** The node that has a slot now. */
async function ownerOf(cluster: TestCluster, slot: number): Promise<RedisNode> {
  const lines = (await cluster.cli(await cluster.alive(), "cluster", "nodes")).split("\n");
  for (const line of lines) {
    const [, address = "", flags = "", , , , , , ...ranges] = line.split(" ");
    if (!flags.includes("master") || flags.includes("fail")) continue;
    const isOwner = ranges.some((range) => {
      const [from, to = from] = range.split("-").map(Number) as [number, number?];
      return slot >= from && slot <= (to as number);
    });
    if (isOwner) return nodeAt(cluster, address);
  }
  throw new Error(`no master has slot ${slot}`);
}

function nodeAt({ nodes }: TestCluster, address: string): RedisNode {
  const port = Number(/:(\d+)@/.exec(address)?.[1]);
  const node = nodes.find((each) => each.port === port);
  if (!node) throw new Error(`no node at ${address}`);
  return node;
}

async function idOf(cluster: TestCluster, node: RedisNode): Promise<string> {
  return cluster.cli(node, "cluster", "myid");
}

async function replicaOf(cluster: TestCluster, master: RedisNode): Promise<RedisNode> {
  const id = await idOf(cluster, master);
  const line = (await cluster.cli(master, "cluster", "nodes"))
    .split("\n")
    .find((text) => text.includes(`slave ${id}`) && !text.includes("fail"));
  if (!line) throw new Error("the master has no replica");
  return nodeAt(cluster, line.split(" ")[1] as string);
}

/** Moves the slot, and some around it, to another master, key by key, as resharding does. */
async function moveSlots(cluster: TestCluster, from: RedisNode, slot: number): Promise<void> {
  const to = (await cluster.masters()).find((node) => node !== from) as RedisNode;
  await moveSlot(cluster, from, to, slot);
  const [source, target] = [await idOf(cluster, from), await idOf(cluster, to)];
  const how = ["--cluster-from", source, "--cluster-to", target, "--cluster-slots", String(SLOTS_MOVED)];
  await cluster.cli(from, "--cluster", "reshard", `127.0.0.1:${from.port}`, ...how, "--cluster-yes");
}

async function moveSlot(cluster: TestCluster, from: RedisNode, to: RedisNode, slot: number): Promise<void> {
  const [source, target] = [await idOf(cluster, from), await idOf(cluster, to)];
  const text = String(slot);
  await cluster.cli(to, "cluster", "setslot", text, "importing", source);
  await cluster.cli(from, "cluster", "setslot", text, "migrating", target);
  for (;;) {
    const keys = (await cluster.cli(from, "cluster", "getkeysinslot", text, "200"))
      .split("\n")
      .filter(Boolean);
    if (keys.length === 0) break;
    await cluster.cli(from, "migrate", "127.0.0.1", String(to.port), "", "0", "10000", "keys", ...keys);
  }
  for (const node of [to, from]) await cluster.cli(node, "cluster", "setslot", text, "node", target);
}

/** A fourth master takes some slots, gives them back and leaves. */
async function addAndRemove(cluster: TestCluster): Promise<void> {
  const [first] = (await cluster.masters()) as [RedisNode];
  const at = `127.0.0.1:${first.port}`;
  const added = await cluster.addNode();
  await cluster.cli(first, "--cluster", "add-node", `127.0.0.1:${added.port}`, at);
  await cluster.agreed();
  const [home, guest] = [await idOf(cluster, first), await idOf(cluster, added)];
  const move = async (from: string, to: string) => {
    const how = ["--cluster-from", from, "--cluster-to", to, "--cluster-slots", String(SLOTS_MOVED)];
    await cluster.cli(first, "--cluster", "reshard", at, ...how, "--cluster-yes");
    await cluster.agreed();
  };
  await move(home, guest);
  await move(guest, home);
  await cluster.cli(first, "--cluster", "del-node", at, guest);
  await cluster.removeNode(added);
}
