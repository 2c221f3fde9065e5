// Renamed: bundles for ES modules often declare `createRequire` themselves.
import { createRequire as requireFrom } from "node:module";
import { join } from "node:path";
import { CurfewError } from "../core/errors.ts";
import type { Instant } from "../core/time.ts";
import {
  type BullmqScheduler,
  type BullmqState,
  translateBullmqJob,
  translateBullmqScheduler,
} from "./bullmq-rules.ts";
import type { Source, SourceBatch, SourceCounts, SourceCron, SourceJob } from "./source.ts";
import { applyRules, type NameRules, refused } from "./translate.ts";

/** The part of BullMQ's public API that is used. The package is the user's own. */
interface Job {
  readonly timestamp: number;
  readonly delay?: number;
  readonly priority?: number;
  readonly attemptsMade: number;
  readonly processedOn?: number;
  readonly finishedOn?: number;
  readonly failedReason?: string;
  readonly stacktrace?: readonly string[] | null;
  readonly name: string;
  readonly data: unknown;
  readonly opts: Readonly<Record<string, unknown>>;
  readonly parentKey?: string;
  readonly repeatJobKey?: string;
  readonly deduplicationId?: string;
  getDependenciesCount(): Promise<{ readonly processed?: number; readonly unprocessed?: number }>;
}

interface Queue {
  readonly name: string;
  pause(): Promise<void>;
  isPaused(): Promise<boolean>;
  getJobCounts(...types: string[]): Promise<Record<string, number>>;
  getRanges(types: readonly string[], start: number, end: number, asc: boolean): Promise<string[]>;
  getJob(id: string): Promise<Job | undefined>;
  getJobSchedulers(start: number, end: number, asc: boolean): Promise<BullmqScheduler[]>;
  getJobSchedulersCount(): Promise<number>;
  removeJobScheduler(id: string): Promise<boolean>;
  remove(id: string, options: { readonly removeChildren: boolean }): Promise<number>;
  toKey(type: string): string;
  on(event: "error", listener: (error: Error) => void): void;
  close(): Promise<void>;
}

interface Redis {
  connect(): Promise<void>;
  scan(cursor: string, ...args: string[]): Promise<[string, string[]]>;
  zscore(key: string, member: string): Promise<string | null>;
  eval(script: string, keyCount: number, ...args: string[]): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): void;
  disconnect(): void;
}

export interface BullmqSettings {
  readonly address: string;
  readonly prefix: string;
  /** Only these queues; empty for all that have the prefix. */
  readonly only: readonly string[];
  readonly names: NameRules;
  readonly now: () => Instant;
}

interface BullmqSourceJob extends SourceJob {
  readonly id: string;
  /** It waits in the list and has no other keys than its own. */
  readonly isPlain: boolean;
}

/**
 * Removes plain jobs from the old end of the waiting list, where the import reads. BullMQ's own `remove` scans the whole
 * list for each job: with 100,000 waiting jobs that took 11 ms each, and the import of n jobs a time of n².
 */
const REMOVE_WAITING = `
  local removed = {}
  for index = 2, #ARGV do
    local id = ARGV[index]
    if redis.call("LREM", KEYS[1], -1, id) == 1 or redis.call("LREM", KEYS[2], -1, id) == 1 then
      redis.call("DEL", ARGV[1] .. id, ARGV[1] .. id .. ":logs")
      removed[#removed + 1] = id
    end
  end
  return removed`;

const STATES: readonly BullmqState[] = ["waiting", "prioritized", "delayed", "failed"];
/** BullMQ has the waiting jobs of a paused queue in a list of their own, in some versions. */
const TYPES: Readonly<Record<BullmqState, readonly string[]>> = {
  waiting: ["waiting", "paused"],
  prioritized: ["prioritized"],
  delayed: ["delayed"],
  failed: ["failed"],
};
const MOST_PER_PAGE = 200;
const FIRST_PAGE = 25;
/** A page with more characters of payloads than this is followed by a smaller one. */
const LARGE_PAGE = 4_000_000;
/** BullMQ writes the due time of a delayed job as milliseconds times 4096, plus a counter. */
const DELAY_FACTOR = 4_096;
const CONNECT_WITHIN = 10_000;

/** Opens the queues of BullMQ with the copies of `bullmq` and `ioredis` that the user's project has. */
export async function openBullmq(settings: BullmqSettings): Promise<Source> {
  const { Queue } = load<{ Queue: new (name: string, options: object) => Queue }>("bullmq");
  const loaded = load<{ default?: unknown }>("ioredis");
  const Client = (loaded.default ?? loaded) as new (address: string, options: object) => Redis;
  const redis = new Client(settings.address, {
    lazyConnect: true,
    connectTimeout: CONNECT_WITHIN,
    maxRetriesPerRequest: null,
    // A lost connection ends the import, which can be repeated.
    retryStrategy: () => null,
  });
  let lost: Error | undefined;
  redis.on("error", (error) => {
    lost = error;
  });
  try {
    await redis.connect();
    const names = settings.only.length > 0 ? settings.only : await queueNames(redis, settings.prefix);
    const queues = names.map((name) => new Queue(name, { connection: redis, prefix: settings.prefix }));
    for (const queue of queues) queue.on("error", () => {});
    return new BullmqSource(queues, redis, settings);
  } catch (error) {
    redis.disconnect();
    throw lost ?? error;
  }
}

function load<Module>(name: string): Module {
  for (const from of [join(process.cwd(), "package.json"), import.meta.url]) {
    try {
      return requireFrom(from)(name) as Module;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  const message = `import --from bullmq: the package ${name} is not installed here; run: npm install bullmq ioredis`;
  throw new CurfewError("invalid_option", message, { field: "from" });
}

const MOST_QUEUES = 10_000;

async function queueNames(redis: Redis, prefix: string): Promise<string[]> {
  const names = new Set<string>();
  const pattern = `${prefix.replace(/[\\*?[\]]/g, "\\$&")}:*:meta`;
  for (let cursor = "0"; names.size < MOST_QUEUES; ) {
    const [next, keys] = await redis.scan(cursor, "MATCH", pattern, "COUNT", "1000");
    for (const key of keys) names.add(key.slice(prefix.length + 1, -":meta".length));
    if (next === "0") break;
    cursor = next;
  }
  return [...names].sort();
}

/**
 * Jobs in Redis. A queue is paused before its jobs are read and stays paused: otherwise a worker could take a job
 * between its import and its removal. Jobs are removed after curfew has committed them.
 */
class BullmqSource implements Source {
  readonly name: string;
  readonly isAtomic = false;
  readonly #queues: readonly Queue[];
  readonly #redis: Redis;
  readonly #settings: BullmqSettings;
  readonly #paused = new Set<string>();
  /** Whether each scheduler becomes a cron. BullMQ lets nobody remove the next run of one that stays. */
  readonly #schedulers = new Map<string, boolean>();

  constructor(queues: readonly Queue[], redis: Redis, settings: BullmqSettings) {
    this.name = `bullmq ${settings.prefix}`;
    this.#queues = queues;
    this.#redis = redis;
    this.#settings = settings;
  }

  async counts(): Promise<SourceCounts> {
    let [jobs, active, crons] = [0, 0, 0];
    for (const queue of this.#queues) {
      const counts = await queue.getJobCounts(...Object.values(TYPES).flat(), "active", "waiting-children");
      for (const [type, count] of Object.entries(counts)) if (type !== "active") jobs += count;
      active += counts.active ?? 0;
      crons += await queue.getJobSchedulersCount();
    }
    return { jobs, active, crons };
  }

  async crons(): Promise<readonly SourceCron[]> {
    const { names } = this.#settings;
    const found: SourceCron[] = [];
    for (const queue of this.#queues)
      for (const scheduler of await queue.getJobSchedulers(0, 9_999, true)) {
        const ruled = translateBullmqScheduler(scheduler, queue.name, names);
        const name = `${queue.name}/${scheduler.key}`;
        this.#schedulers.set(name, "value" in ruled);
        const remove = async () => {
          await queue.removeJobScheduler(scheduler.key);
        };
        found.push({ name, ruled, remove });
      }
    return found;
  }

  notes(): readonly string[] {
    return [...this.#paused].map(
      (name) =>
        `queue ${JSON.stringify(name)} was paused in BullMQ and stays paused; queue.resume() undoes it`,
    );
  }

  async *pass({ isDry }: { readonly isDry: boolean }): AsyncGenerator<SourceBatch, void, undefined> {
    for (const queue of this.#queues) {
      if (!isDry && !(await queue.isPaused())) {
        await queue.pause();
        this.#paused.add(queue.name);
      }
      for (const state of STATES) yield* this.#jobs(queue, state, isDry);
      yield* this.#parents(queue);
    }
  }

  /** Jobs that wait for their children are only counted. */
  async *#parents(queue: Queue): AsyncGenerator<SourceBatch, void, undefined> {
    const ruled = applyRules(() => refused("flow", "waits for its children"));
    for (let offset = 0; ; offset += MOST_PER_PAGE) {
      const ids = await queue.getRanges(["waiting-children"], offset, offset + MOST_PER_PAGE - 1, true);
      if (ids.length === 0) return;
      const jobs = ids.map((id) => ({ name: `${queue.name}:${id}`, ruled }));
      yield { jobs, remove: async () => [], release: async () => {} };
    }
  }

  /** Jobs that stay count as an offset: those before it are gone. */
  async *#jobs(
    queue: Queue,
    state: BullmqState,
    isDry: boolean,
  ): AsyncGenerator<SourceBatch, void, undefined> {
    let [offset, perPage] = [0, FIRST_PAGE];
    for (;;) {
      const ids = await queue.getRanges(TYPES[state], offset, offset + perPage - 1, true);
      if (ids.length === 0) return;
      const read = await Promise.all([...new Set(ids)].map((id) => this.#read(queue, id, state)));
      const jobs = read.filter((job) => job !== null);
      let removed = 0;
      yield {
        jobs,
        remove: async (gone) => {
          const left = await this.#remove(queue, gone as readonly BullmqSourceJob[]);
          removed = gone.length - left.length;
          return left;
        },
        release: async () => {},
      };
      offset += ids.length - (isDry ? 0 : removed);
      const size = jobs.reduce(
        (sum, { ruled }) => sum + ("value" in ruled ? ruled.value.payload.length : 0),
        0,
      );
      perPage = size > LARGE_PAGE ? Math.max(1, perPage >> 2) : Math.min(MOST_PER_PAGE, perPage * 2);
    }
  }

  /** Null for the next run of a scheduler that becomes a cron. */
  async #read(queue: Queue, id: string, state: BullmqState): Promise<BullmqSourceJob | null> {
    const name = `${queue.name}:${id}`;
    const unread = { name, id, isPlain: false };
    const { prefix, names, now } = this.#settings;
    let job: Job | undefined;
    try {
      job = await queue.getJob(id);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { ...unread, ruled: applyRules(() => refused("not_json", error.message)) };
    }
    if (job === undefined) return { ...unread, ruled: applyRules(() => refused("missing", name)) };
    const { repeatJobKey = "" } = job;
    const becomesCron = this.#schedulers.get(`${queue.name}/${repeatJobKey}`);
    if (becomesCron === false)
      return { ...unread, ruled: applyRules(() => refused("scheduler", repeatJobKey)) };
    if (becomesCron && state === "delayed") return null;
    const whole = {
      id,
      state,
      name: job.name,
      data: JSON.stringify(job.data) ?? "null",
      opts: job.opts,
      attemptsMade: job.attemptsMade,
      timestamp: job.timestamp,
      priority: job.priority ?? 0,
      dueAt: state === "delayed" ? await this.#dueAt(queue, id, job) : null,
      processedOn: job.processedOn ?? null,
      finishedOn: job.finishedOn ?? null,
      failedReason: job.failedReason ?? null,
      stack: job.stacktrace?.[0] ?? null,
      deduplicationId: job.deduplicationId ?? null,
      isInFlow: job.parentKey !== undefined || (await hasChildren(job)),
    };
    const isPlain = state === "waiting" && whole.deduplicationId === null && repeatJobKey === "";
    const context = { queue: queue.name, prefix, names, now: now() };
    return { name, id, isPlain, ruled: translateBullmqJob(whole, context) };
  }

  /** The due time of a retry is only in the sorted set of delayed jobs. */
  async #dueAt(queue: Queue, id: string, { timestamp, delay = 0, attemptsMade }: Job): Promise<Instant> {
    if (attemptsMade === 0) return timestamp + delay;
    const score = Number(await this.#redis.zscore(queue.toKey("delayed"), id));
    return score > 0 ? Math.floor(score / DELAY_FACTOR) : timestamp + delay;
  }

  async #remove(queue: Queue, jobs: readonly BullmqSourceJob[]): Promise<BullmqSourceJob[]> {
    const removed = await this.#removeWaiting(queue, jobs);
    const isGone = await Promise.all(
      jobs.map(async ({ id }) => {
        if (removed.has(id)) return true;
        // BullMQ refuses to remove a job that a worker holds. If Redis is gone, the next call says so.
        const count = await queue.remove(id, { removeChildren: false }).catch(() => 0);
        return count === 1 || (await queue.getJob(id)) === undefined;
      }),
    );
    return jobs.filter((_, index) => !isGone[index]);
  }

  async #removeWaiting(queue: Queue, jobs: readonly BullmqSourceJob[]): Promise<ReadonlySet<string>> {
    const ids = jobs.filter(({ isPlain }) => isPlain).map(({ id }) => id);
    if (ids.length === 0) return new Set();
    const keys = [queue.toKey("wait"), queue.toKey("paused"), queue.toKey("")];
    return new Set((await this.#redis.eval(REMOVE_WAITING, 2, ...keys, ...ids)) as string[]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const queue of this.#queues) await queue.close();
    this.#redis.disconnect();
  }
}

async function hasChildren(job: Job): Promise<boolean> {
  const { processed = 0, unprocessed = 0 } = await job.getDependenciesCount();
  return processed + unprocessed > 0;
}
