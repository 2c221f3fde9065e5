import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { inspect } from "node:util";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import type { JobRow } from "../../src/core/job/job.ts";
import { defineJob, defineSaga, openEngine, processor, type Store, silentLogger } from "../../src/index.ts";
import type { RecordKey } from "../../src/ports/store.ts";
import { openRedisStore, type RedisStoreOptions } from "../../src/stores/redis/open-redis.ts";
import { openBed } from "../../src/testing/conformance/test-bed.ts";
import { DURABLE, findRedis, type RedisNode, startNode } from "../redis.ts";
import { startCluster, type TestCluster } from "../redis-cluster.ts";
import { productionSystem } from "../support/system.ts";

const program = await findRedis("valkey");
const stores: Store[] = [];
let opened = 0;

async function open(url: string, options: Partial<RedisStoreOptions> = {}): Promise<Store> {
  opened += 1;
  const prefix = `store${opened}`;
  const store = await openRedisStore({ connection: url, prefix, system: productionSystem, ...options });
  stores.push(store);
  return store;
}

afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

describe.skipIf(!program)("a store on one node", () => {
  let node: RedisNode;
  let client: Redis;

  beforeAll(async () => {
    if (program) node = await startNode(program, DURABLE);
    client = new Redis(node.url);
  });
  afterAll(async () => {
    client?.disconnect();
    await node?.[Symbol.asyncDispose]();
  });

  it("runs an engine: jobs are enqueued, run and found", async () => {
    const double = defineJob({ type: "double" });
    const engine = await openEngine({ store: `${node.url}?prefix=engine`, logger: silentLogger });
    try {
      engine.work({ processors: [processor(double, ({ payload }) => 2 * Number(payload))] });
      const handles = await engine.enqueueMany(double, [1, 2, 3]);
      expect(await Promise.all(handles.map((handle) => handle.result({ within: "1m" })))).toEqual([2, 4, 6]);
      expect(engine.store.capabilities).toMatchObject({ name: "redis", durable: "interval", tx: false });
    } finally {
      await engine.close();
    }
  });

  it("runs a delayed job at its time in another engine, by wake-ups and hints alone", async () => {
    const later = defineJob({ type: "later" });
    const [producer, consumer] = await Promise.all(
      [1, 2].map(async () =>
        openEngine({ store: blind(await open(node.url, { prefix: "blind" })), logger: silentLogger }),
      ),
    );
    if (!producer || !consumer) return;
    try {
      consumer.work({ processors: [processor(later, () => {})] });
      const handle = await producer.enqueue(later, {}, { delay: "300ms" });
      await handle.result({ within: "1m" });
    } finally {
      await producer.close();
      await consumer.close();
    }
  });

  it("stores enqueues that arrive together with two calls at once", async () => {
    const single = defineJob({ type: "single" });
    const engine = await openEngine({ store: await open(node.url), logger: silentLogger });
    try {
      const enqueue = vi.spyOn(engine.store.jobs, "enqueue");
      await Promise.all(Array.from({ length: 50 }, () => engine.enqueue(single, {})));
      expect(enqueue).toHaveBeenCalledTimes(2);
    } finally {
      await engine.close();
    }
  });

  it.each([
    [
      "maxmemory-policy",
      "allkeys-lru",
      "noeviction",
      /maxmemory-policy is allkeys-lru.*CONFIG SET maxmemory-policy noeviction/,
    ],
    ["appendonly", "no", "yes", /needs the append-only file.*CONFIG SET appendonly yes/],
    ["appendfsync", "no", "everysec", /appendfsync is no.*CONFIG SET appendfsync everysec/],
  ])("refuses a server whose %s is %s", async (name, wrong, right, message) => {
    await client.config("SET", name, wrong);
    try {
      await expect(open(node.url)).rejects.toThrow(message);
    } finally {
      await client.config("SET", name, right);
    }
    await open(node.url);
  });

  it("reads none of the jobs that wait for a limit to say which ones hold its slots", async () => {
    const store = await open(node.url);
    const bed = await openBed({ store });
    const job = () => bed.job({ limitKey: "key", payload: "x".repeat(1_000) });
    await bed.addMany(Array.from({ length: 200 }, job));
    await bed.addMany(Array.from({ length: 200 }, job));
    await bed.effect({ admit: "key", count: 2, limit: { concurrency: 2 } });
    const running = (await bed.claim({ limit: 2 })).map(({ id }) => id);
    expect(running).toHaveLength(2);
    const read = async () =>
      Number(/cmdstat_hgetall:calls=(\d+)/.exec(await client.info("commandstats"))?.[1]);
    const before = await read();
    const held = await store.inspect.limitJobs("key", "active", 10);
    const slots = await store.inspect.slots({ limitKey: "key" }, 10);
    expect((await read()) - before).toBe(4);
    expect([held, slots.jobs].map((jobs) => jobs.map(({ id }) => id))).toEqual([running, running]);
  });

  it("reads none of the other timeouts to find the first one of a saga", async () => {
    const store = await open(node.url);
    const now = await store.clock();
    const timeout = (nth: number) => ({
      id: `timeout-${1_000 + nth}`,
      destination: "sagas",
      dueAt: now + 60_000,
      saga: ["order", nth < 500 ? "other" : "mine"] as const,
    });
    const all = Array.from({ length: 502 }, (_, nth) => timeout(nth));
    for (const from of [0, 250, 500]) await store.timeouts.insert(all.slice(from, from + 250), { now });
    const read = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await client.info("commandstats"))?.[1]);
    const before = await read();
    const [first] = await store.timeouts.list({ saga: ["order", "mine"], isDead: false }, null, 1);
    expect(first?.id).toBe("timeout-1500");
    expect((await read()) - before).toBe(1);
    expect(await store.timeouts.list({ saga: ["order", "mine"] }, null, 10)).toHaveLength(2);
  });

  it("leaves large documents in the server when brief rows are read", async () => {
    const store = await open(node.url);
    const bed = await openBed({ store });
    const payload = "x".repeat(100_000);
    const ids: string[] = [];
    for (let job = 0; job < 20; job++) ids.push((await bed.add({ payload })).id);
    const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await client.info("stats"))?.[1]);
    const cost = async (read: () => Promise<unknown>) => {
      const before = await sent();
      await read();
      return (await sent()) - before;
    };
    const filter = { filter: {}, after: null };
    expect(await cost(() => store.jobs.load(ids))).toBeGreaterThan(2_000_000);
    expect(await cost(() => store.jobs.load(ids, { isBrief: true }))).toBeLessThan(50_000);
    expect(await cost(() => store.inspect.page({ ...filter, isBrief: true }, 20))).toBeLessThan(50_000);
    // A load of a size reads one row more than fits, not all that one call may read.
    expect(await cost(() => store.jobs.load(ids, { size: 250_000 }))).toBeLessThan(500_000);
    // A text is looked for in the payload, and the rows are brief.
    const found = await store.inspect.page({ ...filter, filter: { text: "xxx" }, isBrief: true }, 20);
    expect(found.jobs.map(({ payload: shown }) => shown)).toEqual(ids.map(() => "null"));
  });

  it("refuses replicated durability without replicas, and bad addresses", async () => {
    await expect(open(node.url, { durability: "replicated" })).rejects.toThrow(/needs 2 replicas.*one has 0/);
    await expect(open("redis://h:99999")).rejects.toThrow(/port from 1 to 65535/);
    await expect(open("redis://h?durable=1")).rejects.toThrow(/"durable" is not known; use durability/);
    await expect(open(node.url, { prefix: "a{b" })).rejects.toThrow(/prefix/);
    await expect(open(`${node.url}?durability=always`)).rejects.toThrow(/write "local" or "replicated"/);
    await expect(open("redis://user:secret@127.0.0.1:1")).rejects.toThrow(/^(?!.*secret).*127\.0\.0\.1:1/);
  });

  it("shows no password in its errors, however they are printed", async () => {
    await client.config("SET", "requirepass", "right");
    try {
      const failure = await open(`redis://:wrong-secret@127.0.0.1:${node.port}`).catch((error) => error);
      expect(failure).toBeInstanceOf(Error);
      expect(failure.message).toMatch(/cannot connect to Redis at 127\.0\.0\.1/);
      expect(inspect(failure, { depth: 10, showHidden: true })).not.toContain("wrong-secret");
    } finally {
      await client.config("SET", "requirepass", "");
    }
  });

  it("loads its functions again when the server lost them", async () => {
    const store = await open(node.url);
    await client.call("function", "flush");
    expect(await store.clock()).toBeGreaterThan(0);
  });

  it("takes no new job when the server is full, and still claims, settles and prunes", async () => {
    const store = await open(node.url);
    const bed = await openBed({ store });
    await bed.add();
    await client.config("SET", "maxmemory", "1");
    try {
      const full = await bed.add({ payload: "a secret" }).catch((error) => error);
      expect(full.message).toMatch(/OOM.*maxmemory: raise it/s);
      expect(inspect(full, { depth: 10 })).not.toMatch(/secret|fcall/);
      const running = await bed.start(await bed.claimOne());
      const ended = await bed.write(running, { type: "succeed", signalled: false });
      expect(ended.state).toBe("completed");
      const pruned = await store.jobs.prune({ now: ended.pruneAt ?? 0, eventsBefore: 0, limit: 10 });
      expect(pruned).toBe(1);
    } finally {
      await client.config("SET", "maxmemory", "0");
    }
  });

  it("fails the calls of a connection that breaks, and works over the next one", async () => {
    const store = await open(node.url);
    await store.clock();
    await client.call("client", "kill", "type", "normal", "skipme", "yes");
    await expect.poll(() => store.clock().catch(() => 0)).toBeGreaterThan(0);
  });

  it("tells listeners that hints were missed when the connection of hints breaks", async () => {
    const store = await open(node.url);
    const missed = Promise.withResolvers<void>();
    const listening = await store.listen((hint) => {
      if ("missed" in hint) missed.resolve();
    });
    await client.call("client", "kill", "type", "pubsub");
    await missed.promise;
    await listening[Symbol.asyncDispose]();
  });

  it("hears every hint that comes after it was told that some were missed", async () => {
    const store = await open(node.url);
    const bed = await openBed({ store });
    const heard = Promise.withResolvers<void>();
    await using _ = await store.listen((hint) => {
      if ("missed" in hint) bed.add().catch(heard.reject);
      if ("ready" in hint) heard.resolve();
    });
    await client.call("client", "kill", "type", "pubsub");
    await heard.promise;
  });

  it("is closed in silence while its connection of hints comes back", async () => {
    const unhandled = vi.fn();
    process.on("unhandledRejection", unhandled);
    try {
      for (let nth = 0; nth < 20; nth++) {
        const store = await open(node.url);
        await store.listen(() => {});
        await client.call("client", "kill", "type", "pubsub");
        // It comes back after 50 ms. The close falls into each part of that.
        await wait(48 + nth / 2);
        await store.close();
      }
    } finally {
      process.off("unhandledRejection", unhandled);
    }
    expect(unhandled).not.toHaveBeenCalled();
  });
});

describe.skipIf(!program)("a store on a cluster", () => {
  let cluster: TestCluster;

  beforeAll(async () => {
    if (program) cluster = await startCluster(program, 2);
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  it("waits for a replica before it acknowledges", async () => {
    const store = await open(cluster.url, { durability: "replicated" });
    expect(store.capabilities.durable).toBe("ack");
    const bed = await openBed({ store });
    const { id } = await bed.add();
    expect((await bed.load(id))?.id).toBe(id);
  });

  it.each([
    [
      "maxmemory-policy",
      "allkeys-lru",
      "noeviction",
      /a replica, 127\.0\.0\.1:\d+: maxmemory-policy is allkeys-lru/,
    ],
    ["appendonly", "no", "yes", /a replica, 127\.0\.0\.1:\d+: durability "local" needs the append-only file/],
  ])("refuses a cluster with a replica whose %s is %s", async (name, wrong, right, message) => {
    const masters = await cluster.masters();
    const replica = cluster.nodes.find((node) => !masters.includes(node)) as RedisNode;
    await cluster.cli(replica, "config", "set", name, wrong);
    try {
      await expect(open(cluster.url)).rejects.toThrow(message);
    } finally {
      await cluster.cli(replica, "config", "set", name, right);
      await cluster.whole();
    }
    await open(cluster.url);
  });

  it("opens while a replica does not answer", async () => {
    const masters = await cluster.masters();
    const replica = cluster.nodes.find((node) => !masters.includes(node)) as RedisNode;
    replica.signal("SIGSTOP");
    try {
      await open(cluster.url);
    } finally {
      replica.signal("SIGCONT");
      await cluster.whole();
    }
  });

  it("spreads its homes over the masters, and carries what crosses them", async () => {
    const prefix = "homed";
    const store = await open(cluster.url, { homes: 6, prefix });
    expect(store.capabilities).toMatchObject({ homes: 6, atomic: "home", order: "home", unique: "home" });
    await expect(open(cluster.url, { homes: 4, prefix })).rejects.toThrow(/created with 6/);
    const engine = await openEngine({ store: await open(cluster.url, { prefix }), logger: silentLogger });
    try {
      expect(engine.store.capabilities.homes).toBe(6);
      const ran: number[] = [];
      const spread = defineJob({ type: "spread" });
      const limited = defineJob({ type: "limited", limit: { key: (n) => `key ${n}`, concurrency: 1 } });
      const giver = defineSaga({
        type: "giver",
        state: z.object({}),
        messages: { give: z.object({ id: z.string() }) },
        correlate: { give: ({ id }) => id },
        startedBy: "give",
        start: (_message, saga) => {
          for (let n = 100; n < 110; n++) saga.enqueue(limited, n);
          return {};
        },
        on: { give: (state) => state },
      });
      engine.host([giver]);
      engine.work({
        processors: [spread, limited].map((job) =>
          processor(job, ({ payload }) => void ran.push(Number(payload))),
        ),
      });
      await engine.enqueueMany(
        spread,
        Array.from({ length: 100 }, (_, n) => n),
      );
      await engine.send(giver, "give", { id: "one" });
      await expect.poll(() => ran.length).toBe(110);
      expect([...ran].sort((a, b) => a - b)).toEqual(Array.from({ length: 110 }, (_, n) => n));
      const masters = await cluster.masters();
      const keys = await Promise.all(masters.map((node) => cluster.cli(node, "keys", `{${prefix}.*}:j:*`)));
      expect(keys.every((text) => text.length > 0)).toBe(true);
    } finally {
      await engine.close();
    }
  });

  it("leaves no connection open when it cannot be opened", async () => {
    const masters = await cluster.masters();
    const onAll = (...args: string[]) => Promise.all(masters.map((node) => cluster.cli(node, ...args)));
    await onAll("acl", "setuser", "default", "-function");
    try {
      await expect(open(cluster.url, { durability: "replicated" })).rejects.toThrow(/NOPERM/);
      await expect.poll(async () => (await onAll("client", "list")).join()).not.toContain("name=curfew");
    } finally {
      await onAll("acl", "setuser", "default", "+function");
    }
  });

  it("lets a process end that closes it during a refresh of the slots", async () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, "redis-close-child.ts"), cluster.url]);
    // Without the mend it goes on for ever.
    const limit = setTimeout(() => child.kill("SIGKILL"), 240_000);
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
    });
    const [code] = await once(child, "close");
    clearTimeout(limit);
    expect([code, text.trim()]).toEqual([0, "closed"]);
  });

  it("writes nothing while half of its keys are on another node, and goes on when its slot has moved", async () => {
    const store = await open(cluster.url);
    const bed = await openBed({ store });
    await bed.addMany(Array.from({ length: 50 }, () => bed.job()));
    const moving = await beginMove(cluster, `store${opened}`);
    const claimed = bed.claim({ limit: 10 });
    let isOver = false;
    void claimed.then(() => {
      isOver = true;
    });
    // Longer than the client itself follows redirections: the call has to go on asking.
    await expect.poll(() => moving.refusals()).toBeGreaterThan(20);
    expect(isOver).toBe(false);
    await moving.end();
    expect((await claimed).length).toBe(10);
    expect((await bed.claim({ limit: 100 })).length).toBe(40);
  });
});

describe.skipIf(!program)("a replica that takes over without the last writes", () => {
  it("gives no revision of a job and no version of a record a second time", async () => {
    if (!program) return;
    await using master = await startNode(program, DURABLE);
    const replicaOf = ["--replicaof", "127.0.0.1", String(master.port), "--repl-diskless-sync-delay", "0"];
    await using replica = await startNode(program, [...DURABLE, ...replicaOf]);
    const [first, second] = [new Redis(master.url), new Redis(replica.url)];
    try {
      await expect.poll(() => first.info("replication")).toMatch(/state=online/);
      const record: RecordKey = ["probe", "one"];
      const put = { put: record, body: 1, wakeAt: null };
      const store = await open(master.url, { prefix: "taken" });
      const bed = await openBed({ store });
      const { id } = await bed.add({ dueAt: bed.now + 1_000 });
      await bed.effect(put);
      // WAIT counts the writes of its own connection, so this one writes after the store.
      await first.set("after", "the job");
      expect(await first.wait(1, 5_000)).toBe(1);
      await second.replicaof("NO", "ONE");
      // The old master goes on, and nobody but it has what it writes now.
      await bed.sweep(bed.now + 1_000);
      await bed.effect(put);
      const lost = (await bed.load(id)) as JobRow;
      const [lostRecord] = await store.records.load([record]);
      expect(lost).toMatchObject({ state: "available", rev: 1 });

      const next = await open(replica.url, { prefix: "taken" });
      const after = await openBed({ store: next });
      expect(await after.load(id)).toMatchObject({ state: "scheduled", rev: 0 });
      await after.sweep(bed.now + 1_000);
      await after.effect(put);
      const again = (await after.load(id)) as JobRow;
      expect(again.state).toBe("available");
      expect(again.rev).toBeGreaterThan(lost.rev);
      expect((await next.records.load([record]))[0]?.version).not.toBe(lostRecord?.version);
      // What was decided on the lost image is refused, and what is decided on this one is not.
      expect(await after.commit(after.unit(lost, { type: "cancel" }, { outsider: true }))).toMatchObject([
        { ok: false, because: "stale" },
      ]);
      expect((await after.write(again, { type: "cancel" }, { outsider: true })).rev).toBe(again.rev + 1);
    } finally {
      first.disconnect();
      second.disconnect();
    }
  });
});

/** A store whose looks find nothing, so that a wake-up or a hint that is missed is not made good for five minutes. */
function blind(store: Store): Store {
  const look: Store["look"] = async ({ records }) => ({
    nextWakeAt: null,
    ready: [],
    nextDueAt: null,
    versions: records.map(() => 0),
  });
  return { ...store, look };
}

/** Moves some keys of a store's slot to another master. `end` moves the rest. */
async function beginMove(cluster: TestCluster, prefix: string) {
  const [first] = cluster.nodes as [RedisNode];
  const masters = await cluster.masters();
  const slot = await cluster.cli(first, "cluster", "keyslot", `{${prefix}.0}`);
  const keysOn = async (node: RedisNode) =>
    (await cluster.cli(node, "cluster", "getkeysinslot", slot, "1000")).split("\n").filter(Boolean);
  const counts = await Promise.all(masters.map(async (node) => (await keysOn(node)).length));
  const from = masters[counts.findIndex((count) => count > 0)] as RedisNode;
  const to = masters.find((node) => node !== from) as RedisNode;
  const [source, target] = [
    await cluster.cli(from, "cluster", "myid"),
    await cluster.cli(to, "cluster", "myid"),
  ];
  await cluster.cli(to, "cluster", "setslot", slot, "importing", source);
  await cluster.cli(from, "cluster", "setslot", slot, "migrating", target);
  const migrate = async (keys: string[]) => {
    if (keys.length > 0)
      await cluster.cli(from, "migrate", "127.0.0.1", String(to.port), "", "0", "5000", "keys", ...keys);
  };
  const all = await keysOn(from);
  await migrate(all.slice(0, all.length >> 1));
  return {
    /** How many calls were answered with TRYAGAIN. */
    async refusals() {
      const stats = await Promise.all([from, to].map((node) => cluster.cli(node, "info", "errorstats")));
      const counts = stats.map((text) => Number(/errorstat_TRYAGAIN:count=(\d+)/.exec(text)?.[1] ?? 0));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async end() {
      await migrate(await keysOn(from));
      for (const node of [to, from]) await cluster.cli(node, "cluster", "setslot", slot, "node", target);
    },
  };
}
