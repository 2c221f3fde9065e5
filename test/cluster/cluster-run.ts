import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { StoredEvent } from "../../src/core/event/stored-event.ts";
import type { JobRow } from "../../src/core/job/job.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { openEngine } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { EventPage, RecordKey, Store } from "../../src/ports/store.ts";
import { openRedisStore } from "../../src/stores/redis/open-redis.ts";
import { findRedis, type RedisFlavour } from "../redis.ts";
import { startCluster, type TestCluster } from "../redis-cluster.ts";
import { productionSystem } from "../support/system.ts";
import { readElection } from "./election.ts";
import { begin, type Fault } from "./faults.ts";
import { type Judged, Ledger } from "./ledger.ts";

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
  /** What of it was whose, after a master died. */
  readonly failover: Failover | null;
}

/** Milliseconds since the death of a master, by the logs of the servers. */
export interface Failover {
  /** The others agree that it is dead. */
  readonly failed: number;
  /** A replica is the new master. */
  readonly elected: number;
  /** What is acknowledged can be acknowledged: at the election, with `replicated` when the new master has a replica. */
  readonly ready: number;
  /** The time from then to the first acknowledged write: the client's. */
  readonly own: number;
  /** The time from then to the first verdict that was accepted: workers repeat theirs with pauses. */
  readonly verdict: number;
}

export interface ClusterReport extends Judged {
  readonly server: string;
  readonly faults: readonly FaultResult[];
  readonly acknowledged: number;
  /** Jobs whose handler ran more than once, which is allowed. */
  readonly repeated: number;
}

/** A job whose verdict a failover took back, while its worker lives, runs on until its hard deadline (SEMANTICS 17.7). */
const definition = defineJob({ type: "cluster.lane", timeouts: { attempt: "15s", grace: "1s" } });
const PRODUCERS = 8;
const CONCURRENCY = 20;
const REPLICAS = 2;
const PATIENCE = 60_000;
/** How many jobs are added at full pace during a fault, and the pause between two that a producer adds then. */
const FULL_PACE = 1_000;
const SLOW_PACE = 50;
const LOGGED_WITHIN = 5_000;
const LOG_EVERY = 50;
/** Answers of a dead master arrive for this long. */
const LAST_ANSWERS = 200;

/** Runs jobs on a cluster while things happen to it, and compares a ledger with what it has in the end. */
export async function runCluster(options: ClusterRunOptions): Promise<ClusterReport> {
  const { flavour, faults, jobs, durability, onLine = () => {} } = options;
  const program = await findRedis(flavour);
  if (!program) throw new Error(`there is no ${flavour} server`);
  await using cluster = await startCluster(program, REPLICAS);
  const ledger = new Ledger();
  const url = `${cluster.url}?durability=${durability}`;
  // The journal is the history that survives: each verdict is one write with its event.
  const recorded = { logger: silentLogger, events: "durable" } as const;
  const producer = await openEngine({ store: url, ...recorded });
  const store = await openRedisStore({ connection: url, system: productionSystem });
  const consumer = await openEngine({ store: watched(store, ledger), ...recorded });
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
      results.push(await suffer(cluster, producer, fault, { ledger, durability }));
      await producing;
      onLine(lineOf(at + 1, results[at] as FaultResult, ledger));
    }
    await produce(producer, ledger, jobs, () => true);
    return { server: await versionOf(cluster), faults: results, ...(await compare(producer, ledger)) };
  } finally {
    await Promise.all([producer.close({ drain: "5s" }), consumer.close({ drain: "5s" })]);
  }
}

/** Notes each verdict that the store accepts. */
function watched(store: Store, ledger: Ledger): Store {
  return {
    ...store,
    async commit(units, options) {
      const outcomes = await store.commit(units, options);
      for (const [index, { job }] of units.entries())
        if (job?.image?.state === "completed" && outcomes[index]?.ok) ledger.accepted(job.id, job.fence);
      return outcomes;
    },
  };
}

function lineOf(number: number, result: FaultResult, { acknowledged, runs }: Ledger): string {
  const { fault, back, failover } = result;
  const seconds = (time: number) => `${(time / 1_000).toFixed(2)} s`;
  // Slots that move and memory that is full are faults that last: their time is within this.
  const over = `over, and a write acknowledged, after ${seconds(back)}`;
  const parts = failover && [
    `noticed by the servers after ${seconds(failover.failed)}`,
    `elected after ${seconds(failover.elected)}`,
    `ready after ${seconds(failover.ready)}`,
    `the client's part ${seconds(failover.own)}`,
    `the first verdict ${seconds(failover.verdict)} later`,
  ];
  return `fault ${number} (${fault}): ${over}${parts ? ` (${parts.join(", ")})` : ""}; ${acknowledged.size} acknowledged, ${runs.size} ran`;
}

/** Each fault hits the master that has the jobs now. */
async function suffer(
  cluster: TestCluster,
  engine: Engine,
  fault: Fault,
  { ledger, durability }: { readonly ledger: Ledger; readonly durability: ClusterRunOptions["durability"] },
): Promise<FaultResult> {
  const slot = Number(await cluster.cli(await cluster.alive(), "cluster", "keyslot", "{curfew.0}"));
  const startedAt = Date.now();
  const { heal, diedAt } = await begin(cluster, fault, slot);
  const verdict = ledger.verdictFrom(performance.now() + LAST_ANSWERS);
  const backAt = await probe(engine);
  const isDead = fault === "kill" || fault === "cut";
  const times = async () => ({ diedAt, backAt, verdictAt: performance.timeOrigin + (await verdict) });
  const failover = isDead ? await failoverOf(cluster, await times(), durability) : null;
  // A master that stands still is replaced, too.
  if (isDead || fault === "stop") ledger.promotions.push(performance.now());
  await heal();
  return { fault, back: backAt - (isDead ? diedAt : startedAt), failover };
}

/** Whose the time was until a write was acknowledged. Waits until the servers have written it down. */
async function failoverOf(
  { nodes }: TestCluster,
  {
    diedAt,
    backAt,
    verdictAt,
  }: { readonly diedAt: number; readonly backAt: number; readonly verdictAt: number },
  durability: ClusterRunOptions["durability"],
): Promise<Failover> {
  for (let waited = 0; ; waited += LOG_EVERY) {
    const { failedAt, wonAt, syncedAt } = await readElection(nodes, diedAt);
    const readyAt = durability === "replicated" ? syncedAt : wonAt;
    if (wonAt !== null && readyAt !== null) {
      const since = (at: number) => at - diedAt;
      const then = (at: number) => Math.round(Math.max(0, at - readyAt));
      const servers = { failed: since(failedAt ?? wonAt), elected: since(wonAt), ready: since(readyAt) };
      return { ...servers, own: then(backAt), verdict: then(verdictAt) };
    }
    if (waited > LOGGED_WITHIN) throw new Error("no server has written that it became the master");
    await sleep(LOG_EVERY);
  }
}

/** Writes a record until that succeeds, and returns when it did. */
async function probe({ store }: Engine): Promise<number> {
  const key: RecordKey = ["probe", randomUUID()];
  const now = Date.now();
  await until(() => store.commit([{ effects: [{ put: key, body: null, wakeAt: null }] }], { now }));
  const writtenAt = Date.now();
  await until(() => store.commit([{ effects: [{ delete: key }] }], { now }));
  return writtenAt;
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

/**
 * Producers that go on until the ledger has `target` jobs and `isOver` says so. A failed call is made again. They slow down when a
 * fault lasts: a home that grows without bound is copied whole to its replicas, and that would be measured.
 */
async function produce(engine: Engine, ledger: Ledger, target: number, isOver: () => boolean): Promise<void> {
  const one = async () => {
    while (ledger.acknowledged.size < target || !isOver()) {
      if (ledger.acknowledged.size > target + FULL_PACE) await sleep(SLOW_PACE);
      const handle = await engine.enqueue(definition, undefined).catch(() => undefined);
      if (handle) ledger.acknowledge(handle.id);
    }
  };
  await Promise.all(Array.from({ length: PRODUCERS }, one));
}

const BATCH = 1_000;

type Compared = Omit<ClusterReport, "server" | "faults">;

async function compare({ store }: Engine, ledger: Ledger): Promise<Compared> {
  const rows = await endedRows(store, [...ledger.acknowledged]);
  const completed = await countCompleted(store);
  return {
    acknowledged: ledger.acknowledged.size,
    repeated: [...ledger.runs.values()].filter((runs) => runs > 1).length,
    ...ledger.judge((id) => ({ row: rows.get(id) ?? null, completed: completed.get(id) ?? 0 })),
  };
}

/** The rows of jobs that are there, when all have completed or nothing more is waited for. */
async function endedRows(store: Store, ids: readonly string[]): Promise<ReadonlyMap<string, JobRow>> {
  const waitsUntil = performance.now() + PATIENCE;
  const rows = new Map<string, JobRow>();
  for (let open = ids; open.length > 0; ) {
    for (let at = 0; at < open.length; at += BATCH)
      for (const row of await store.jobs.load(open.slice(at, at + BATCH), { isBrief: true }))
        if (row) rows.set(row.id, row);
    open = open.filter((id) => rows.has(id) && rows.get(id)?.state !== "completed");
    if (performance.now() > waitsUntil) break;
    if (open.length > 0) await sleep(200);
  }
  return rows;
}

/** How often the journal says of each job that it completed. */
async function countCompleted({ inspect }: Store): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (let after: string | null = null; ; ) {
    const page: EventPage = await inspect.events(after, BATCH);
    for (const { name, job } of page.events as unknown as StoredEvent[])
      if (name === "job.completed" && job !== undefined) counts.set(job, (counts.get(job) ?? 0) + 1);
    if (page.events.length === 0) return counts;
    after = page.cursor;
  }
}

async function versionOf(cluster: TestCluster): Promise<string> {
  const info = await cluster.cli(await cluster.alive(), "info", "server");
  const [, valkey] = /valkey_version:([\d.]+)/.exec(info) ?? [];
  const [, redis] = /redis_version:([\d.]+)/.exec(info) ?? [];
  return valkey ? `Valkey ${valkey}` : `Redis ${redis}`;
}
