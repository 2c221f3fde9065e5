import {
  type AuditAbout,
  type By,
  type ChangedBy,
  changedBy,
  parseBy,
} from "../../core/audit/audit-entry.ts";
import type { UnattendedQueue } from "../../core/doctor/doctor-facts.ts";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { decide } from "../../core/job/decide/decide.ts";
import { isInternalQueue } from "../../core/job/internal-queue.ts";
import { type JobRow, type JobState, noJobs, sumDepths } from "../../core/job/job.ts";
import { checkQueue } from "../../core/job/job-definition.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { queueLimitKey, type RateOptions } from "../../core/limit/limit.ts";
import {
  parseQueue,
  type QueueDepth,
  type QueueOptions,
  type StoredQueue,
} from "../../core/limit/queue-settings.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, pauseKey, type ScannedJobs } from "../../ports/store.ts";
import { commitJobs, commitUnits } from "../commit/commit.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";
import type { Decided, DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { unattendedQueues } from "../operations/unattended.ts";
import { type QueueShares, sharesOf } from "./fair-shares.ts";
import { Limits } from "./key-limits.ts";
import { type OldestWaits, oldestWaits } from "./oldest-waits.ts";
import { QUEUES, QUEUES_REVISED } from "./queue-settings-cache.ts";

interface Pause {
  readonly at: Instant;
  /** Missing in a record of an older curfew. */
  readonly by?: ChangedBy;
}

/** Pauses of queues; the store reads them when it claims. */
export const PAUSES = recordKind<Pause>(pauseKey("")[0]);

export interface QueueView {
  readonly name: string;
  /** Since when no job is claimed from it; null while it is not paused. */
  readonly pausedAt: Instant | null;
  /** Its settings, parsed: durations in milliseconds. */
  readonly settings: StoredQueue;
  /** The number of jobs by state. */
  readonly depth: Readonly<Record<JobState, number>>;
}

type WaitingState = "available" | "pending" | "scheduled" | "retryable";

export interface PurgeOptions {
  /** Which jobs to remove. Default: all waiting ones. Running jobs are never removed. */
  readonly states?: readonly WaitingState[];
  /** Called after each batch with the total so far. */
  readonly onProgress?: (removed: number) => void;
  /** Stops between two batches. */
  readonly signal?: AbortSignal;
}

const WAITING: readonly WaitingState[] = ["available", "pending", "scheduled", "retryable"];
const PAGE = 200;
/** The recorded event of each change of a queue. */
export const QUEUE_EVENTS = {
  pause: "queue.paused",
  resume: "queue.resumed",
  configure: "queue.configured",
  reset: "queue.reset",
} as const;

/** Operates queues, for all processes that share the store. */
export class Queues {
  readonly #context: EngineContext;
  readonly #by: By | undefined;

  constructor(context: EngineContext, by?: By) {
    this.#context = context;
    this.#by = by;
  }

  /** The same queues; each change writes an audit entry for this operator. */
  as(by: By): Queues {
    return new Queues(this.#context, parseBy(by));
  }

  /** Replaces the settings of a queue. They hold at once in this process, and within five seconds in others. */
  async configure(queue: string, options: QueueOptions, by = this.#by): Promise<void> {
    const effect = QUEUES.put(checkQueue(queue, "queue"), parseQueue(options, "queue"), null);
    await this.#changeRate(queue, options.rate, by);
    await this.#write(queue, "configure", [effect, QUEUES_REVISED], by, effect.body as AuditAbout["details"]);
    await this.#context.queues.refresh();
    this.#context.ready(queue);
  }

  /** Deletes the settings of a queue; its jobs stay. */
  async reset(queue: string, by = this.#by): Promise<void> {
    await this.#changeRate(queue, undefined, by);
    await this.#write(queue, "reset", [QUEUES.remove(checkQueue(queue, "queue")), QUEUES_REVISED], by);
    await this.#context.queues.refresh();
    this.#context.ready(queue);
  }

  /** Jobs that wait keep the rate of their enqueue. While the queue has a rate, an override gives them that one. */
  async #changeRate(queue: string, rate: RateOptions | undefined, by: By | undefined): Promise<void> {
    const before = await QUEUES.load(this.#context.store, queue);
    if (rate === undefined && before?.body.rate === undefined) return;
    const limits = new Limits(this.#context);
    if (rate === undefined) await limits.delete(queueLimitKey(queue), by);
    else await limits.put(queueLimitKey(queue), { rate }, by);
  }

  /** Stops claims from a queue, in all processes, from the moment this resolves. */
  async pause(queue: string, by = this.#by): Promise<void> {
    const { clock, host } = this.#context;
    const at = clock.now();
    const body = { at, by: changedBy(by && parseBy(by), host) };
    await this.#write(queue, "pause", [PAUSES.put(checkQueue(queue, "queue"), body, null)], by);
    this.#context.bus.emit({ name: "queue.paused", at, queue });
  }

  async resume(queue: string, by = this.#by): Promise<void> {
    const effects: Effect[] = [PAUSES.remove(checkQueue(queue, "queue")), { ready: queue }];
    await this.#write(queue, "resume", effects, by);
    this.#context.bus.emit({ name: "queue.resumed", at: this.#context.clock.now(), queue });
    this.#context.ready(queue);
  }

  /** Every queue with a job, settings or a pause, by name. It counts all jobs: do not call it in a loop. */
  async list(): Promise<QueueView[]> {
    const { store } = this.#context;
    const [depths, settings, pauses] = await Promise.all([
      store.inspect.depths(),
      QUEUES.all(store),
      PAUSES.all(store),
    ]);
    const names = new Set([...depths.keys(), ...settings.keys(), ...pauses.keys()]);
    return [...names]
      .filter((name) => !isInternalQueue(name))
      .sort((a, b) => (a < b ? -1 : 1))
      .map((name) => viewOf(name, depths.get(name), settings.get(name), pauses.get(name)));
  }

  /** Queues with available jobs that no live worker takes, at most 100. The number of jobs does not matter. */
  unattended(): Promise<UnattendedQueue[]> {
    const { store, clock } = this.#context;
    return unattendedQueues(store, clock.now());
  }

  /** The oldest available job of each queue. Reads at most 50 queues and 10,000 live jobs. */
  oldestWaits(): Promise<OldestWaits> {
    return oldestWaits(this.#context.store);
  }

  /**
   * What waits of each fair key of a queue, the keys with the most jobs first. Reads at most 1,000 keys, and counts up
   * to 10,000 jobs of each.
   */
  async shares(queue: string): Promise<QueueShares> {
    const { store } = this.#context;
    const name = checkQueue(queue, "queue");
    return sharesOf(store, name, (await QUEUES.load(store, name))?.body.fair);
  }

  /** One queue; it may be empty. */
  async describe(queue: string): Promise<QueueView> {
    const { store } = this.#context;
    const name = checkQueue(queue, "queue");
    const [depths, settings, pause] = await Promise.all([
      store.inspect.depths(name),
      QUEUES.load(store, name),
      PAUSES.load(store, name),
    ]);
    return viewOf(name, depths.get(name), settings, pause);
  }

  /**
   * Counts jobs by state, in one queue or in all, ended ones included. The cost grows with all stored jobs;
   * `engine.stats` costs less. The total leaves out the engine's own jobs.
   */
  async depth(queue?: string): Promise<Record<JobState, number>> {
    const { inspect } = this.#context.store;
    if (queue !== undefined) return sumDepths((await inspect.depths(checkQueue(queue, "queue"))).values());
    const depths = [...(await inspect.depths())].filter(([name]) => !isInternalQueue(name));
    return sumDepths(depths.map(([, depth]) => depth));
  }

  /** How many jobs may wait in a queue, by this process's cache; undefined if it is not bounded. */
  boundOf(queue: string): QueueDepth | undefined {
    return this.#context.queues.depthOf(queue);
  }

  /** The depth of a queue that was above its warning when this process last enqueued into it; else null. */
  pressureOf(queue: string): { readonly waiting: number; readonly most: number } | null {
    const { queues } = this.#context;
    const waiting = queues.waitingIn(queue);
    const depth = waiting === undefined ? undefined : queues.depthOf(queue);
    if (waiting === undefined || depth?.warnAt === undefined || waiting < depth.warnAt) return null;
    return { waiting, most: depth.most };
  }

  /** Announces that a caller which stores all of its jobs or none was refused. */
  announceFull(queue: string, waiting: number, most: number): void {
    const { bus, clock } = this.#context;
    bus.emit({ name: "queue.full", at: clock.now(), queue, waiting, most });
  }

  /**
   * Deletes the waiting jobs of a queue in batches and returns their number. Jobs that arrive during the call may be
   * deleted too. Pause the queue first, or workers keep claiming jobs.
   */
  async purge(queue: string, options: PurgeOptions = {}, by = this.#by): Promise<number> {
    const name = checkQueue(queue, "queue");
    const states = checkPurge(options);
    let removed = 0;
    for (const state of states) {
      let after: string | null = null;
      for (;;) {
        if (options.signal?.aborted) return removed;
        this.#context.assertOpen();
        const scan = { filter: { queue: name, state }, after };
        const page: ScannedJobs = await this.#context.store.inspect.page(scan, PAGE);
        if (page.jobs.length > 0) {
          removed += await this.#remove(page.jobs, by);
          options.onProgress?.(removed);
        }
        after = page.cursor;
        if (after === null) break;
      }
    }
    return removed;
  }

  /** Keeps jobs that were claimed or changed since they were read. */
  async #remove(rows: readonly JobRow[], by: By | undefined): Promise<number> {
    const { clock, random } = this.#context;
    const at = clock.now();
    const decided = rows.flatMap((row): DecidedJob[] => {
      const decision = isTerminal(row.state) ? undefined : decide(row, { type: "cancel" }, at, random);
      return decision?.ok ? [{ row, decision: removal(row, decision), at, by: "outsider" }] : [];
    });
    if (decided.length === 0) return 0;
    const about = { queue: rows[0]?.queue as string, details: { tried: decided.length } };
    const entry = auditEffects(this.#context, by && parseBy(by), "queue.purge", about, at);
    const outcomes = await commitJobs(
      this.#context,
      entry.length > 0 ? [...decided, { effects: entry }] : decided,
    );
    return decided.filter((_, index) => outcomes[index]?.ok).length;
  }

  /** Writes a change of a queue in one commit with its event and its audit entry. */
  async #write(
    queue: string,
    action: keyof typeof QUEUE_EVENTS,
    effects: readonly Effect[],
    by: By | undefined,
    details?: AuditAbout["details"],
  ): Promise<void> {
    this.#context.assertOpen();
    const { clock, recorder } = this.#context;
    const now = clock.now();
    const about = { queue, ...(details && { details }) };
    const all = [
      ...effects,
      ...recorder.effects(QUEUE_EVENTS[action], { at: now, subject: queue, queue }),
      ...auditEffects(this.#context, by && parseBy(by), `queue.${action}`, about, now),
    ];
    await commitUnits(this.#context, [{ effects: all }]);
  }
}

/** A step is cancelled and kept: its workflow reads how it ended. */
function removal(row: JobRow, decision: Decided): Decided {
  return row.options?.step ? decision : { ...decision, drop: true };
}

function checkPurge(options: PurgeOptions): readonly WaitingState[] {
  refuseUnknownKeys(options, "purge", ["states", "onProgress", "signal"]);
  const { states = WAITING } = options;
  for (const state of Array.isArray(states) ? states : [states]) {
    if (!WAITING.includes(state as WaitingState))
      throw refuse("invalid_option", "purge.states", state, `use some of ${WAITING.join(", ")}`);
  }
  return states;
}

function viewOf(
  name: string,
  depth: QueueView["depth"] = noJobs(),
  settings: StoredRecord<StoredQueue> | null | undefined,
  pause: StoredRecord<Pause> | null | undefined,
): QueueView {
  return { name, pausedAt: pause?.body.at ?? null, settings: settings?.body ?? {}, depth };
}
