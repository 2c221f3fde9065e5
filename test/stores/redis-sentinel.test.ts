import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openEngine, type Store, silentLogger } from "../../src/index.ts";
import { parseAddress } from "../../src/stores/redis/address.ts";
import { sentinelOptions } from "../../src/stores/redis/dial.ts";
import { openRedisStore } from "../../src/stores/redis/open-redis.ts";
import { openBed } from "../../src/testing/conformance/test-bed.ts";
import { DURABLE, findRedis, type Program, type RedisNode, startNode } from "../redis.ts";
import { productionSystem } from "../support/system.ts";

const program = await findRedis("valkey");
const stores: Store[] = [];

async function open(url: string): Promise<Store> {
  const store = await openRedisStore({ connection: url, system: productionSystem });
  stores.push(store);
  return store;
}

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

/** A master with one replica, and Sentinels that agree by two votes, or by one if there is only one. */
async function startGroup(server: Program, sentinels: number) {
  const stack = new AsyncDisposableStack();
  const start = async (...args: Parameters<typeof startNode>) => stack.use(await startNode(...args));
  const master = await start(server, DURABLE);
  const replicaOf = ["--replicaof", "127.0.0.1", String(master.port), "--repl-diskless-sync-delay", "0"];
  await start(server, [...DURABLE, ...replicaOf]);
  // A Sentinel asks the master for its replicas at once, and then every 10 s: they have to be there by then.
  const asked = new Redis(master.url);
  await expect.poll(() => asked.info("replication")).toMatch(/state=online/);
  asked.disconnect();
  const watch = [
    `sentinel monitor main 127.0.0.1 ${master.port} ${Math.min(2, sentinels)}`,
    "sentinel down-after-milliseconds main 300",
    "sentinel failover-timeout main 2000",
    "",
  ].join("\n");
  const watching: RedisNode[] = [];
  for (let nth = 0; nth < sentinels; nth++) watching.push(await start(server, ["--sentinel"], watch));
  for (const { url } of watching) {
    const client = new Redis(url);
    await expect.poll(() => client.call("sentinel", "replicas", "main")).toHaveLength(1);
    await expect.poll(() => client.call("sentinel", "sentinels", "main")).toHaveLength(sentinels - 1);
    client.disconnect();
  }
  const hosts = watching.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return { master, watching, hosts, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** With local durability a job may be lost with its master. What was written before this has reached the replica. */
async function replicated(master: RedisNode): Promise<void> {
  const writer = new Redis(master.url);
  await writer.set("after", "the job");
  expect(await writer.wait(1, 5_000)).toBe(1);
  writer.disconnect();
}

describe.skipIf(!program)("a store behind Sentinels", () => {
  it("goes on with the new master when the old one dies", async () => {
    await using group = await startGroup(program as Program, 1);
    await expect(open(`redis://${group.hosts}`)).rejects.toThrow(/add \?sentinel=/);
    const store = await open(`redis://${group.hosts}?sentinel=main`);
    const before = await openBed({ store });
    const { id } = await before.add();
    await replicated(group.master);
    group.master.signal("SIGKILL");
    const found = async () => (await store.jobs.load([id]).catch(() => []))[0]?.id;
    await expect.poll(found).toBe(id);
    expect((await before.claim()).length).toBe(1);
  });

  it("goes on with the new master when the old one and a Sentinel stand still, in its database", async () => {
    await using group = await startGroup(program as Program, 3);
    const store = await open(`redis://${group.hosts}/3?sentinel=main`);
    const missed = Promise.withResolvers<void>();
    await store.listen((hint) => {
      if ("missed" in hint) missed.resolve();
    });
    const before = await openBed({ store });
    const { id } = await before.add();
    const master = new Redis(group.master.url);
    expect(await master.info("keyspace")).toMatch(/db3:/);
    expect(await master.info("keyspace")).not.toMatch(/db0:/);
    master.disconnect();
    await replicated(group.master);
    // Both keep their connections: nothing but their silence says it.
    group.watching[0]?.signal("SIGSTOP");
    group.master.signal("SIGSTOP");
    const found = async () => (await store.jobs.load([id]).catch(() => []))[0]?.id;
    await expect.poll(found).toBe(id);
    expect((await before.claim()).length).toBe(1);
    // Hints came from the old master, too.
    await missed.promise;
  });

  it("is refused at once if no Sentinel answers, or none knows the master", async () => {
    await expect(open("redis://127.0.0.1:1,127.0.0.1:2?sentinel=main")).rejects.toThrow(
      /cannot connect to Redis at 127\.0\.0\.1:1, 127\.0\.0\.1:2/,
    );
    await using sentinel = await startNode(program as Program, ["--sentinel"]);
    await expect(open(`redis://127.0.0.1:${sentinel.port}?sentinel=main`)).rejects.toThrow(
      /none of the Sentinels 127\.0\.0\.1:\d+ knows a master "main"/,
    );
    const warn = vi.fn();
    const store = `redis://127.0.0.1:${sentinel.port}?sentinel=main`;
    await expect(openEngine({ store, logger: { ...silentLogger, warn } })).rejects.toThrow(/knows a master/);
    expect(warn).not.toHaveBeenCalled();
  });
});

describe.skipIf(!program)("a store that cannot be opened", () => {
  it("is waited for by an engine: Sentinels that are away, and a replica that may become the master", async () => {
    await using master = await startNode(program as Program, DURABLE);
    await using replica = await startNode(program as Program, [
      ...DURABLE,
      ...["--replicaof", "127.0.0.1", String(master.port)],
    ]);
    await expect(open(replica.url)).rejects.toMatchObject({
      code: "store_failed",
      message: expect.stringMatching(/READONLY.*this is a replica: name its master/),
    });
    for (const store of ["redis://127.0.0.1:1?sentinel=main", replica.url]) {
      const warn = vi.fn();
      const opening = openEngine({ store, openWithin: "300ms", logger: { ...silentLogger, warn } });
      await expect(opening).rejects.toMatchObject({ code: "store_failed" });
      expect(warn).toHaveBeenCalledWith(expect.anything(), "cannot reach the store yet; trying again");
    }
  });

  it.each(["info", "function"])(
    "says that its user may not call %s, and leaves no connection",
    async (command) => {
      await using node = await startNode(program as Program, DURABLE);
      const client = new Redis(node.url);
      await client.call("acl", "setuser", "some", "on", ">secret", "~*", "&*", "+@all", `-${command}`);
      const failure = await open(`redis://some:secret@127.0.0.1:${node.port}`).catch((error) => error);
      expect(failure).toMatchObject({
        code: "store_failed",
        message: expect.stringMatching(/NOPERM.*allow the user INFO, FUNCTION/),
      });
      expect(inspect(failure, { depth: 10 })).not.toMatch(/secret|lua/);
      await expect.poll(() => client.call("client", "list")).not.toContain("user=some");
      client.disconnect();
    },
  );
});

describe("an address with TLS that names Sentinels", () => {
  it("talks to the Sentinels and to the master in TLS alone", async () => {
    const heard: Buffer[] = [];
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (data) => {
        heard.push(data);
        socket.destroy();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = `rediss://:secret@127.0.0.1:${(server.address() as AddressInfo).port}?sentinel=main`;
    try {
      await expect(open(address)).rejects.toThrow(/cannot connect/);
    } finally {
      server.close();
    }
    // A record of a TLS handshake.
    expect(heard.map((data) => data[0])).toEqual([0x16]);
    expect(Buffer.concat(heard).includes("secret")).toBe(false);
    expect(sentinelOptions(parseAddress(address, ""), "main")).toMatchObject({
      enableTLSForSentinelMode: true,
    });
  });
});

describe.skipIf(!program)("an address that cannot mean what it says", () => {
  it("is refused: hosts that are no cluster, a database that is not there, a lone percent sign", async () => {
    await using node = await startNode(program as Program, DURABLE);
    await using other = await startNode(program as Program, DURABLE);
    await using member = await startNode(program as Program, [...DURABLE, "--cluster-enabled", "yes"]);
    await expect(open(`${node.url},127.0.0.1:${other.port}`)).rejects.toThrow(/name one host/);
    await expect(open(`redis://127.0.0.1:1,127.0.0.1:${other.port}`)).rejects.toThrow(/name one host/);
    await expect(open(`${node.url}/16`)).rejects.toThrow(/"\/16".*no such database/);
    await expect(open(`${member.url}/1`)).rejects.toThrow(/"\/1".*no such database/);
    await expect(open(`redis://user:100%@127.0.0.1:${node.port}`)).rejects.toThrow(/^(?!.*100%).*write %25/);
    await open(`${node.url}/15`);
  });
});
