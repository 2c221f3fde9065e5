import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError } from "../../core/errors.ts";
import {
  inOrder,
  inQueueTurns,
  type Pool,
  type PoolOptions,
  type PoolTurn,
  parsePool,
  type QueuePlan,
  withLeastShare,
} from "../../core/fair/worker-pool.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { checkQueue } from "../../core/job/job-definition.ts";
import type { Json } from "../../core/schema.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import type { SchedulingDetail } from "../events/event-bus.ts";
import { loadBrief } from "../find/bounded-reader.ts";
import { POOLS, QUEUES_REVISED } from "../queues/queue-settings-cache.ts";
import type { RemoteFetch } from "./remote-fetch.ts";

export interface PoolView extends Pool {
  readonly name: string;
  /** Workers that fetched for the pool from this server within a minute. */
  readonly workers: number;
  /** Jobs that this server handed out to them and that still run. */
  readonly active: number;
}

const MOST_POOLS = 200;
/** A worker that did not fetch for this long is no longer counted. */
const SEEN_WITHIN = 60_000;
const MOST_WORKERS = 10_000;
/** How old the numbers of waiting jobs may be, for `"least-loaded"`. Counting reads all jobs. */
const COUNTED_FOR = 5_000;

/** What one server knows of a pool. */
interface PoolUse {
  readonly turn: PoolTurn;
  /** The jobs that it handed out, with their fences. */
  readonly active: Map<JobId, number>;
  readonly workers: Map<string, number>;
  /** When each queue last gave a job, or was found to have none. Monotonic. */
  readonly gaveAt: Map<string, number>;
  /** Whether it was full when it was last asked. */
  isFull: boolean;
}

/** A queue with available jobs that gave none for this long is starved. */
const STARVED_AFTER = 30_000;

/** Pools of remote workers. Their settings are records; turns and running jobs are counted by each server. */
export class Pools {
  readonly #context: EngineContext;
  readonly #uses = new Map<string, PoolUse>();
  #waiting: { readonly counts: ReadonlyMap<string, number>; readonly until: number } | undefined;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** All pools in the order of their names; there are at most 200. */
  async list(): Promise<PoolView[]> {
    const pools = await POOLS.all(this.#context.store, MOST_POOLS);
    return Promise.all([...pools].map(([name, { body }]) => this.#view(name, body)));
  }

  async get(name: string): Promise<PoolView | null> {
    const pool = await POOLS.load(this.#context.store, checkQueue(name, "pool"));
    return pool && this.#view(name, pool.body);
  }

  /** Stores a pool. It holds at once on this server, and within 1.4 s on others. Returns whether it is new. */
  async put(name: string, options: PoolOptions, by?: By): Promise<boolean> {
    const pool = parsePool(options, "pool");
    const known = await POOLS.all(this.#context.store);
    const isNew = !known.has(checkQueue(name, "pool"));
    if (isNew && known.size >= MOST_POOLS)
      throw new CurfewError("invalid_limit", `pool: there are ${MOST_POOLS} pools; delete one first`);
    await this.#write(POOLS.put(name, pool, null), "pool.put", { pool: name, ...pool } as never, by);
    const before = known.get(name)?.body;
    if (before && !sharesAlike(before, pool))
      this.#tell("scheduling.rebalanced", name, {
        previousStrategy: before.strategy,
        newStrategy: pool.strategy,
      });
    return isNew;
  }

  /** Deletes a pool. Its queues stay, and its workers fetch in the order of their queues. */
  async delete(name: string, by?: By): Promise<boolean> {
    if (!(await POOLS.load(this.#context.store, checkQueue(name, "pool")))) return false;
    await this.#write(POOLS.remove(name), "pool.delete", { pool: name }, by);
    this.#uses.delete(name);
    return true;
  }

  async #write(
    effect: ReturnType<typeof POOLS.remove>,
    action: string,
    details: { readonly [key: string]: Json },
    by: By | undefined,
  ): Promise<void> {
    const { clock, queues } = this.#context;
    const audit = auditEffects(this.#context, by && parseBy(by), action, { details }, clock.now());
    await commitUnits(this.#context, [{ effects: [effect, QUEUES_REVISED, ...audit] }]);
    await queues.refresh();
  }

  async #view(name: string, pool: Pool): Promise<PoolView> {
    const use = this.#uses.get(name);
    if (use) await this.#forgetEnded(use);
    const since = this.#context.system.monotonic() - SEEN_WITHIN;
    const workers = [...(use?.workers.values() ?? [])].filter((at) => at >= since).length;
    return { ...pool, name, workers, active: use?.active.size ?? 0 };
  }

  /** Whether there is a pool of this name. */
  has(name: string): boolean {
    return this.#context.queues.pools.has(name);
  }

  /** Which queues a fetch takes from, and in which order. Null: the pool is full. */
  async plan(request: RemoteFetch, room: number): Promise<QueuePlan | null> {
    const { pool: name, strategy, weights = {} } = request;
    const queues = this.#openTo(name, request.queues);
    const pool = name === undefined ? undefined : this.#context.queues.pools.get(name);
    if (!pool || name === undefined) {
      if (strategy === undefined || strategy === "strict") return inOrder(queues, room);
      return this.#planBy({ strategy, weights }, queues, newTurn(), room);
    }
    const use = this.#use(name);
    this.#sawWorker(use, request.worker);
    const most = Math.min(room, await this.#room(pool, use));
    await this.#lookForStarved(name, pool, use);
    if (most <= 0) {
      await this.#tellFull(name, pool, use);
      return null;
    }
    use.isFull = false;
    const { leastShare } = pool;
    const rest = await this.#planner(pool, queues, use.turn);
    return leastShare === undefined ? rest(most) : withLeastShare(queues, leastShare, use.turn, most, rest);
  }

  #tell(name: SchedulingDetail["name"], pool: string, data: SchedulingDetail["data"], queue?: string): void {
    const { bus, clock } = this.#context;
    bus.emit({ name, at: clock.now(), pool, data, ...(queue !== undefined && { queue }) });
  }

  async #tellFull(name: string, pool: Pool, use: PoolUse): Promise<void> {
    if (use.isFull) return;
    use.isFull = true;
    const counts = await this.#waitingJobs();
    const waitingJobs = pool.queues.reduce((sum, queue) => sum + (counts.get(queue) ?? 0), 0);
    if (waitingJobs > 0)
      this.#tell("scheduling.pool_overloaded", name, { activeJobs: use.active.size, waitingJobs });
  }

  /** Counts waiting jobs only if a queue gave none for long, and then once in that time. */
  async #lookForStarved(name: string, { queues }: Pool, { gaveAt }: PoolUse): Promise<void> {
    const now = this.#context.system.monotonic();
    for (const queue of queues) {
      const since = gaveAt.get(queue) ?? now;
      if (now - since < STARVED_AFTER) {
        if (since === now) gaveAt.set(queue, now);
        continue;
      }
      gaveAt.set(queue, now);
      const availableCount = (await this.#waitingJobs()).get(queue) ?? 0;
      const duration = Math.round(now - since);
      if (availableCount > 0)
        this.#tell("scheduling.queue_starved", name, { duration, availableCount }, queue);
    }
  }

  async #planBy(
    pool: Pick<Pool, "strategy" | "weights">,
    queues: readonly string[],
    turn: PoolTurn,
    room: number,
  ): Promise<QueuePlan> {
    return (await this.#planner(pool, queues, turn))(room);
  }

  async #planner(
    { strategy, weights = {} }: Pick<Pool, "strategy" | "weights">,
    queues: readonly string[],
    turn: PoolTurn,
  ): Promise<(room: number) => QueuePlan> {
    if (strategy === "strict") return (room) => inOrder(queues, room);
    if (strategy !== "least-loaded") return (room) => inQueueTurns(queues, weights, turn, room);
    const counts = await this.#waitingJobs();
    const deepest = [...queues].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0));
    return (room) => inOrder(deepest, room);
  }

  /** The queues that a worker of this pool may take from. */
  #openTo(name: string | undefined, asked: readonly string[]): readonly string[] {
    const { pools } = this.#context.queues;
    if (pools.size === 0) return asked;
    const own = name === undefined ? undefined : pools.get(name);
    const mine = own ? own.queues.filter((queue) => asked.includes(queue)) : asked;
    const others = [...pools].filter(([other, { isolated }]) => isolated && other !== name);
    return mine.filter((queue) => !others.some(([, { queues }]) => queues.includes(queue)));
  }

  async #waitingJobs(): Promise<ReadonlyMap<string, number>> {
    const { store, system } = this.#context;
    const now = system.monotonic();
    if (!this.#waiting || this.#waiting.until < now) {
      const depths = await store.inspect.depths();
      const counts = new Map([...depths].map(([queue, states]) => [queue, states.available ?? 0]));
      this.#waiting = { counts, until: now + COUNTED_FOR };
    }
    return this.#waiting.counts;
  }

  #use(name: string): PoolUse {
    const known = this.#uses.get(name);
    if (known) return known;
    const use: PoolUse = {
      turn: newTurn(),
      active: new Map(),
      workers: new Map(),
      gaveAt: new Map(),
      isFull: false,
    };
    this.#uses.set(name, use);
    return use;
  }

  #sawWorker({ workers }: PoolUse, worker: string | undefined): void {
    if (worker === undefined) return;
    if (workers.size >= MOST_WORKERS) workers.clear();
    workers.set(worker, this.#context.system.monotonic());
  }

  async #room({ concurrency }: Pool, use: PoolUse): Promise<number> {
    if (concurrency === undefined) return Number.POSITIVE_INFINITY;
    if (use.active.size >= concurrency) await this.#forgetEnded(use);
    return concurrency - use.active.size;
  }

  /** Jobs that the sweep or another server ended are only known by their rows. */
  async #forgetEnded({ active }: PoolUse): Promise<void> {
    const ids = [...active.keys()];
    const rows = await loadBrief(this.#context.store, ids);
    for (const [index, id] of ids.entries()) {
      const row = rows[index];
      if (row?.state !== "active" || row.fence !== active.get(id)) active.delete(id);
    }
  }

  handedOut(name: string | undefined, rows: readonly JobRow[]): void {
    const use = name === undefined ? undefined : this.#uses.get(name);
    const concurrency = name === undefined ? undefined : this.#context.queues.pools.get(name)?.concurrency;
    for (const { queue } of rows) use?.gaveAt.set(queue, this.#context.system.monotonic());
    if (use && concurrency !== undefined) for (const { id, fence } of rows) use.active.set(id, fence);
  }

  ended(id: JobId): void {
    for (const { active } of this.#uses.values()) active.delete(id);
  }
}

/** Whether two settings of a pool take from its queues in the same way. */
function sharesAlike(a: Pool, b: Pool): boolean {
  const ways = ({ strategy, weights, leastShare }: Pool) =>
    JSON.stringify([strategy, Object.entries(weights ?? {}).sort(), leastShare ?? null]);
  return ways(a) === ways(b);
}

const newTurn = (): PoolTurn => ({ queue: null, taken: 0, started: 0 });
