import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { RecordKey } from "../../src/ports/store.ts";
import { findRedis, type RedisFlavour, type RedisNode } from "../redis.ts";
import { startCluster, type TestCluster } from "../redis-cluster.ts";
import { begin, type Fault, ownerOf } from "./faults.ts";
import { Ledger } from "./ledger.ts";

export interface ClusterRunOptions {
  readonly flavour: RedisFlavour;
  readonly faults: readonly Fault[];
  /** How many jobs are acknowledged in the end. */
  readonly jobs: number;
  readonly durability: "local" | "replicated";
  readonly onLine?: (line: string) => void;
}

export interface FaultResult {
  readonly fault: Fault;
  /** Milliseconds until writes were acknowledged again. */
  readonly back: number;
  /** After a kill: until another node had the slots of the dead one. The rest of `back` is the client's. */
  readonly elected: number | null;
}

export interface ClusterReport {
  readonly server: string;
  readonly faults: readonly FaultResult[];
  readonly acknowledged: number;
  /** Acknowledged jobs that are not in the store any more. */
  readonly lost: number;
  /** Acknowledged jobs that are there and did not complete. */
  readonly unfinished: number;
  /** Jobs whose handler ran more than once, which is allowed. */
  readonly repeated: number;
  /** Jobs that completed again after a failover had taken back their first verdict. */
  readonly takenBack: number;
  /** Jobs that were reported as completed more than once without that, which is not allowed. */
  readonly doubleVerdicts: number;
}

/** A job whose verdict a failover took back, while its worker lives, runs on until its hard deadline (SEMANTICS 17.7). */
const definition = defineJob({ type: "cluster.lane", timeouts: { attempt: "15s", grace: "1s" } });
const PRODUCERS = 8;
const CONCURRENCY = 20;
const REPLICAS = 2;
const PATIENCE = 60_000;
const ELECTED_EVERY = 50;

/** Runs jobs on a cluster while things happen to it, and compares a ledger with what it has in the end. */
export async function runCluster(options: ClusterRunOptions): Promise<ClusterReport> {
  const { flavour, faults, jobs, durability, onLine = () => {} } = options;
  const program = await findRedis(flavour);
  if (!program) throw new Error(`there is no ${flavour} server`);
  await using cluster = await startCluster(program, REPLICAS);
  const ledger = new Ledger();
  const url = `${cluster.url}?durability=${durability}`;
  const producer = await openEngine({ store: url, logger: silentLogger });
  const consumer = await openEngine({ store: url, logger: silentLogger });
  consumer.on("job.completed", ({ id }) => ledger.ended(id));
  consumer.work({
    processors: [processor(definition, ({ id }) => ledger.ran(id))],
    queues: { default: { concurrency: CONCURRENCY } },
  });
  const results: FaultResult[] = [];
  try {
    for (const [at, fault] of faults.entries()) {
      const target = Math.floor((jobs * (at + 1)) / (faults.length + 1));
      const producing = produce(producer, ledger, target, () => results.length > at);
      await ledger.reached(target);
      results.push(await suffer(cluster, producer, fault, ledger));
      await producing;
      onLine(lineOf(at + 1, results[at] as FaultResult, ledger));
    }
    await produce(producer, ledger, jobs, () => true);
    return { server: await versionOf(cluster), faults: results, ...(await compare(producer, ledger)) };
  } finally {
    await Promise.all([producer.close({ drain: "5s" }), consumer.close({ drain: "5s" })]);
  }
}

function lineOf(number: number, result: FaultResult, { acknowledged, runs }: Ledger): string {
  const { fault, back, elected } = result;
  const seconds = (time: number) => `${(time / 1_000).toFixed(2)} s`;
  // Slots that move and memory that is full are faults that last: their time is within this.
  const over = `over, and a write acknowledged, after ${seconds(back)}`;
  const when = elected === null ? over : `${over} (a new master after ${seconds(elected)})`;
  return `fault ${number} (${fault}): ${when}; ${acknowledged.size} acknowledged, ${runs.size} ran`;
}

/** Each fault hits the master that has the jobs now. */
async function suffer(
  cluster: TestCluster,
  engine: Engine,
  fault: Fault,
  { deaths }: Ledger,
): Promise<FaultResult> {
  const slot = Number(await cluster.cli(await cluster.alive(), "cluster", "keyslot", "{curfew.0}"));
  const startedAt = performance.now();
  const { victim, heal } = await begin(cluster, fault, slot);
  // A master whose links are cut lives until then, and writes are acknowledged or not.
  const begunAt = fault === "cut" ? performance.now() : startedAt;
  const isDead = fault === "kill" || fault === "cut";
  if (isDead || fault === "stop") deaths.push(begunAt);
  const electing = isDead ? elected(cluster, victim, slot) : null;
  await probe(engine);
  const back = performance.now() - begunAt;
  const electedAt = await electing;
  await heal();
  return { fault, back, elected: electedAt && electedAt - begunAt };
}

/** When another node has the slot, as a node that lives sees it. */
async function elected(cluster: TestCluster, dead: RedisNode, slot: number): Promise<number> {
  for (;;) {
    const owner = await ownerOf(cluster, slot).catch(() => dead);
    if (owner !== dead) return performance.now();
    await sleep(ELECTED_EVERY);
  }
}

/** Writes a record and deletes it, until both succeed. */
async function probe({ store }: Engine): Promise<void> {
  const key: RecordKey = ["probe", randomUUID()];
  const now = await until(() => store.clock());
  await until(() => store.commit([{ effects: [{ put: key, body: null, wakeAt: null }] }], { now }));
  await until(() => store.commit([{ effects: [{ delete: key }] }], { now }));
}

/** Calls until it succeeds. A call that fails at once must not occupy the thread. */
async function until<Value>(call: () => Promise<Value>): Promise<Value> {
  for (;;) {
    try {
      return await call();
    } catch {
      await sleep(20);
    }
  }
}

/** Producers that go on until the ledger has `target` jobs and `isOver` says so. A failed call is made again. */
async function produce(engine: Engine, ledger: Ledger, target: number, isOver: () => boolean): Promise<void> {
  const one = async () => {
    while (ledger.acknowledged.size < target || !isOver()) {
      const handle = await engine.enqueue(definition, undefined).catch(() => undefined);
      if (handle) ledger.acknowledge(handle.id);
    }
  };
  await Promise.all(Array.from({ length: PRODUCERS }, one));
}

const BATCH = 1_000;

async function compare(engine: Engine, ledger: Ledger): Promise<Omit<ClusterReport, "server" | "faults">> {
  const ids = [...ledger.acknowledged];
  const waitsUntil = performance.now() + PATIENCE;
  let open = ids;
  let lost = 0;
  while (open.length > 0 && performance.now() < waitsUntil) {
    const left: string[] = [];
    for (let at = 0; at < open.length; at += BATCH) {
      const batch = open.slice(at, at + BATCH);
      const rows = await engine.store.jobs.load(batch);
      for (const [index, row] of rows.entries()) {
        if (row === null) lost += 1;
        else if (row.state !== "completed") left.push(batch[index] as string);
      }
    }
    open = left;
    if (open.length > 0) await sleep(200);
  }
  const { takenBack, doubled } = ledger.repeatedVerdicts();
  return {
    acknowledged: ids.length,
    lost,
    unfinished: open.length,
    repeated: [...ledger.runs.values()].filter((runs) => runs > 1).length,
    takenBack,
    doubleVerdicts: doubled,
  };
}

async function versionOf(cluster: TestCluster): Promise<string> {
  const info = await cluster.cli(await cluster.alive(), "info", "server");
  const [, valkey] = /valkey_version:([\d.]+)/.exec(info) ?? [];
  const [, redis] = /redis_version:([\d.]+)/.exec(info) ?? [];
  return valkey ? `Valkey ${valkey}` : `Redis ${redis}`;
}
