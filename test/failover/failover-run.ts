import pg from "pg";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { processor } from "../../src/engine/attempt/processor.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { Worker } from "../../src/engine/worker/worker.ts";
import { openEngine, openPostgresStore } from "../../src/open.ts";
import { silentLogger } from "../../src/ports/log.ts";
import { STATE_CODES } from "../../src/stores/sql/row-codec.ts";
import { type Cluster, startCluster } from "./cluster.ts";
import { TcpProxy } from "./proxy.ts";

/** How the primary is lost: its processes die, it is stopped in order, or its machine no longer answers. */
const LOSSES = ["crash", "switchover", "vanish"] as const;
export type Loss = (typeof LOSSES)[number];

export interface LaneOptions {
  readonly promotions: number;
  /** How many jobs are acknowledged in the end. */
  readonly jobs: number;
  /** Whether commits wait for the standby. Without that, a promotion may lose what was acknowledged. */
  readonly synchronous: boolean;
  /** The folder with `initdb` and `pg_ctl`; by default that of the package in `node_modules`. */
  readonly programs?: string;
  readonly onLine?: (line: string) => void;
}

/** One promotion. Outages are milliseconds from the moment at which the address led to the new primary. */
export interface Promotion {
  readonly loss: Loss;
  /** From the loss to the new primary. This is the cluster's time and not the store's. */
  readonly promoted: number;
  readonly acknowledged: number;
  readonly ran: number;
}

export interface LaneReport {
  /** As in 18.4. */
  readonly serverVersion: string;
  readonly promotions: readonly Promotion[];
  readonly acknowledged: number;
  /** Acknowledged jobs that are not in the store any more. */
  readonly lost: number;
  /** Acknowledged jobs that are there and did not complete. */
  readonly unfinished: number;
  /** Jobs whose handler ran more than once, which is allowed. */
  readonly repeated: number;
  /** Jobs that were reported as completed more than once, which is not. */
  readonly doubleVerdicts: number;
  /** Recorded completions of acknowledged jobs that a follower did not get. */
  readonly missedEvents: number;
}

const definition = defineJob({ type: "failover.lane" });
const PRODUCERS = 8;
const CONCURRENCY = 20;

/** What was acknowledged, and what ran: kept in this process, so no failover can take it back. */
class Ledger {
  readonly acknowledged = new Set<string>();
  readonly runs = new Map<string, number>();
  readonly verdicts = new Map<string, number>();
  readonly followed = new Set<string>();
  #onAcknowledged: (() => void)[] = [];
  #onRun = new Map<string, () => void>();

  acknowledge(id: string): void {
    this.acknowledged.add(id);
    for (const listener of this.#onAcknowledged.splice(0)) listener();
  }

  ran(id: string): void {
    this.runs.set(id, (this.runs.get(id) ?? 0) + 1);
    this.#onRun.get(id)?.();
  }

  nextAcknowledged(): Promise<void> {
    return new Promise((resolve) => this.#onAcknowledged.push(resolve));
  }

  runOf(id: string): Promise<void> {
    if (this.runs.has(id)) return Promise.resolve();
    return new Promise((resolve) => this.#onRun.set(id, resolve));
  }
}

/** Runs jobs through promotions, and compares a ledger with what the last primary has. */
export async function runFailover(options: LaneOptions): Promise<LaneReport> {
  const { promotions: count, jobs, synchronous, programs, onLine = () => {} } = options;
  await using cluster = await startCluster({ synchronous, ...(programs !== undefined && { programs }) });
  await using proxy = await TcpProxy.start(cluster.primary.port);
  const ledger = new Ledger();
  const stage = await open(proxy.through(cluster.primary.url), ledger);
  const promotions: Promotion[] = [];
  try {
    for (let at = 0; at < count; at++) {
      // As many jobs before each promotion, and the rest after the last one.
      const target = Math.floor((jobs * (at + 1)) / (count + 1));
      const producing = produce(stage.producer, ledger, target, () => promotions.length > at);
      await reached(ledger, target);
      const promotion = await promote(cluster, proxy, LOSSES[at % LOSSES.length] as Loss, stage, ledger);
      promotions.push(promotion);
      await producing;
      await cluster.rebuild();
      if (synchronous) await cluster.waitForStandby();
      onLine(lineOf(at + 1, promotion, ledger));
    }
    await produce(stage.producer, ledger, jobs, () => true);
    return await reportOf(cluster, stage, ledger, promotions);
  } finally {
    await stage.close();
  }
}

function lineOf(number: number, { loss, promoted, acknowledged, ran }: Promotion, ledger: Ledger): string {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  return `promotion ${number} (${loss}, ${seconds(promoted)}): acknowledged again after ${seconds(acknowledged)}, ran after ${seconds(ran)}; ${ledger.acknowledged.size} jobs acknowledged`;
}

interface Stage {
  readonly producer: Engine;
  readonly worker: Worker;
  close(): Promise<void>;
}

/** A producer by the address, and a worker on a pool of its own that sets no limits. */
async function open(url: string, ledger: Ledger): Promise<Stage> {
  const producer = await openEngine({ store: url, logger: silentLogger, events: "durable" });
  const pool = new pg.Pool({ connectionString: url, max: 20 });
  pool.on("error", () => {});
  const consumer = await openEngine({
    store: await openPostgresStore({ connection: pool }),
    logger: silentLogger,
  });
  consumer.on("job.completed", ({ id }) => {
    ledger.verdicts.set(id, (ledger.verdicts.get(id) ?? 0) + 1);
  });
  const worker = consumer.work({
    processors: [processor(definition, ({ id }) => ledger.ran(id))],
    queues: { default: { concurrency: CONCURRENCY } },
  });
  const stop = new AbortController();
  const following = follow(producer, ledger, stop.signal);
  return {
    producer,
    worker,
    async close() {
      stop.abort();
      await following;
      await Promise.all([producer.close({ drain: "5s" }), consumer.close({ drain: "5s" })]);
      await pool.end();
    },
  };
}

async function follow(engine: Engine, ledger: Ledger, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of engine.journal.follow({ types: ["job.completed"], signal })) {
      if (event.job !== undefined) ledger.followed.add(event.job);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
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

async function reached(ledger: Ledger, target: number): Promise<void> {
  while (ledger.acknowledged.size < target) await ledger.nextAcknowledged();
}

async function promote(
  cluster: Cluster,
  proxy: TcpProxy,
  loss: Loss,
  { producer }: Stage,
  ledger: Ledger,
): Promise<Promotion> {
  const lostAt = performance.now();
  const old = cluster.primary;
  if (loss === "vanish") proxy.vanish();
  else {
    // The server ends first: what it still acknowledges on its way down reaches the producers.
    await (loss === "crash" ? old.kill() : old.shutDown());
    proxy.cut();
  }
  await cluster.promote();
  proxy.moveTo(cluster.primary.port);
  const promotedAt = performance.now();
  // The producers go on as well. This one is new, so that its run cannot be from before.
  const probe = async () => {
    for (;;) {
      const handle = await producer.enqueue(definition, undefined).catch(() => undefined);
      if (handle) return handle.id;
    }
  };
  const id = await probe();
  const acknowledgedAt = performance.now();
  ledger.acknowledge(id);
  await ledger.runOf(id);
  const ranAt = performance.now();
  if (loss === "vanish") await old.kill();
  return {
    loss,
    promoted: promotedAt - lostAt,
    acknowledged: acknowledgedAt - promotedAt,
    ran: ranAt - promotedAt,
  };
}

const PATIENCE = 120_000;

async function reportOf(
  cluster: Cluster,
  stage: Stage,
  ledger: Ledger,
  promotions: readonly Promotion[],
): Promise<LaneReport> {
  const waitsUntil = performance.now() + PATIENCE;
  const count = "select count(*)::int as left from curfew.jobs";
  while (performance.now() < waitsUntil) {
    const [row] = await cluster.primary.query<{ left: number }>(count);
    const isFollowed = [...ledger.acknowledged].every((id) => ledger.followed.has(id));
    if (row?.left === 0 && isFollowed) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const live = await cluster.primary.query<{ id: string }>("select id from curfew.jobs");
  const done = await cluster.primary.query<{ id: string }>(
    `select id from curfew.done where state = ${STATE_CODES.completed}`,
  );
  const [waiting, completed] = [new Set(live.map(({ id }) => id)), new Set(done.map(({ id }) => id))];
  const acknowledged = [...ledger.acknowledged];
  const isCompleted = (id: string) => completed.has(id);
  const lost = acknowledged.filter((id) => !isCompleted(id) && !waiting.has(id));
  if (!stage.worker.status().ready) throw new Error(`the worker is unready: ${stage.worker.status().reason}`);
  const [server] = await cluster.primary.query<{ server_version: string }>("show server_version");
  return {
    serverVersion: server?.server_version.split(" ")[0] ?? "unknown",
    promotions,
    acknowledged: acknowledged.length,
    lost: lost.length,
    unfinished: acknowledged.filter((id) => waiting.has(id)).length,
    repeated: [...ledger.runs.values()].filter((runs) => runs > 1).length,
    doubleVerdicts: [...ledger.verdicts.values()].filter((verdicts) => verdicts > 1).length,
    missedEvents: acknowledged.filter((id) => isCompleted(id) && !ledger.followed.has(id)).length,
  };
}
