import { type AuditAbout, type By, parseBy } from "../../core/audit/audit-entry.ts";
import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { decide } from "../../core/job/decide.ts";
import { type JobRow, type JobState, noJobs } from "../../core/job/job.ts";
import { checkQueue } from "../../core/job/job-definition.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { BOOKKEEPING_QUEUE } from "../../core/job/step-rules.ts";
import {
  parseQueue,
  type QueueDepth,
  type QueueOptions,
  type StoredQueue,
} from "../../core/limit/queue-settings.ts";
import type { Instant } from "../../core/time.ts";
import { type Effect, pauseKey, type Store } from "../../ports/store.ts";
import { commitJobs, commitUnits } from "../commit/commit.ts";
import { recordKind, type StoredRecord } from "../commit/records.ts";
import type { Decided, DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { type UnattendedQueue, unattendedQueues } from "../operations/unattended.ts";
import { QUEUES } from "./queue-settings-cache.ts";

/** Pauses of queues; the store reads them when it claims. */
export const PAUSES = recordKind<{ readonly at: Instant }>(pauseKey("")[0]);

/** A queue as it stands. */
export interface QueueView {
  readonly name: string;
  /** Since when nothing is claimed from it; null while it is not paused. */
  readonly pausedAt: Instant | null;
  /** Its settings, parsed: durations in milliseconds. */
  readonly settings: StoredQueue;
  /** How many jobs it has in each state. */
  readonly depth: Readonly<Record<JobState, number>>;
}

type WaitingState = "available" | "pending" | "scheduled" | "retryable";

export interface PurgeOptions {
  /** Which jobs to remove; all that wait are the default. Running ones are never touched. */
  readonly states?: readonly WaitingState[];
  /** Called after each batch with how many have been removed so far. */
  readonly onProgress?: (removed: number) => void;
  /** Stops between two batches. */
  readonly signal?: AbortSignal;
}

const WAITING: readonly WaitingState[] = ["available", "pending", "scheduled", "retryable"];
const PAGE = 200;
const QUEUE_EVENTS = {
  pause: "queue.paused",
  resume: "queue.resumed",
  configure: "queue.configured",
  reset: "queue.reset",
} as const;

/** What operators do with queues. All of it holds for all processes that share the store. */
export class Queues {
  readonly #parts: EngineContext;
  readonly #assertOpen: () => void;

  constructor(parts: EngineContext, assertOpen: () => void) {
    this.#parts = parts;
    this.#assertOpen = assertOpen;
  }

  /**
   * Writes the settings of a queue, in place of those it had. This process goes by them at once, others within five
   * seconds.
   */
  async configure(queue: string, options: QueueOptions, by?: By): Promise<void> {
    const effect = QUEUES.put(checkQueue(queue, "queue"), parseQueue(options, "queue"), null);
    await this.#write(queue, "configure", [effect], by, effect.body as AuditAbout["details"]);
    await this.#parts.queues.refresh();
    this.#parts.ready(queue);
  }

  /** Forgets the settings of a queue; its jobs stay. */
  async reset(queue: string, by?: By): Promise<void> {
    await this.#write(queue, "reset", [QUEUES.remove(checkQueue(queue, "queue"))], by);
    await this.#parts.queues.refresh();
    this.#parts.ready(queue);
  }

  /** Stops claims from a queue, in all processes, from the moment this resolves. */
  async pause(queue: string, by?: By): Promise<void> {
    const at = this.#parts.clock.now();
    await this.#write(queue, "pause", [PAUSES.put(checkQueue(queue, "queue"), { at }, null)], by);
    this.#parts.bus.emit({ name: "queue.paused", at, queue });
  }

  async resume(queue: string, by?: By): Promise<void> {
    const effects: Effect[] = [PAUSES.remove(checkQueue(queue, "queue")), { ready: queue }];
    await this.#write(queue, "resume", effects, by);
    this.#parts.bus.emit({ name: "queue.resumed", at: this.#parts.clock.now(), queue });
    this.#parts.ready(queue);
  }

  /** Every queue that has a job, settings or a pause, in the order of their names. It counts all jobs, so it is not for a loop. */
  async list(): Promise<QueueView[]> {
    const { store } = this.#parts;
    const [depths, settings, pauses] = await Promise.all([
      store.inspect.depths(),
      QUEUES.all(store),
      PAUSES.all(store),
    ]);
    const names = new Set([...depths.keys(), ...settings.keys(), ...pauses.keys()]);
    names.delete(BOOKKEEPING_QUEUE);
    return [...names]
      .sort((a, b) => (a < b ? -1 : 1))
      .map((name) => viewOf(name, depths.get(name), settings.get(name), pauses.get(name)));
  }

  /** Queues with available jobs that no live worker takes, at most 100. Its cost does not follow the number of jobs. */
  unattended(): Promise<UnattendedQueue[]> {
    const { store, clock } = this.#parts;
    return unattendedQueues(store, clock.now());
  }

  /** One queue, whether it has anything or not. */
  async describe(queue: string): Promise<QueueView> {
    const { store } = this.#parts;
    const name = checkQueue(queue, "queue");
    const [depth, settings, pause] = await Promise.all([
      store.inspect.depth(name),
      QUEUES.load(store, name),
      PAUSES.load(store, name),
    ]);
    return viewOf(name, depth, settings, pause);
  }

  /** How many jobs may wait in a queue, as this process knows it; undefined where it is not bounded. */
  boundOf(queue: string): QueueDepth | undefined {
    return this.#parts.queues.depthOf(queue);
  }

  /** A queue that had reached its warning when this process last enqueued into it; null for every other. */
  pressureOf(queue: string): { readonly waiting: number; readonly most: number } | null {
    const { queues } = this.#parts;
    const waiting = queues.waitingIn(queue);
    const depth = waiting === undefined ? undefined : queues.depthOf(queue);
    if (waiting === undefined || depth?.warnAt === undefined || waiting < depth.warnAt) return null;
    return { waiting, most: depth.most };
  }

  /** Somebody who must not fill a queue in part was refused: that is told as if the store had refused it. */
  announceFull(queue: string, waiting: number, most: number): void {
    const { bus, clock } = this.#parts;
    bus.emit({ name: "queue.full", at: clock.now(), queue, waiting, most });
  }

  /**
   * Removes the waiting jobs of a queue, for good and a batch at a time; answers how many. Jobs that come in meanwhile
   * may be removed as well. Pause the queue before, or workers go on taking jobs.
   */
  async purge(queue: string, options: PurgeOptions = {}, by?: By): Promise<number> {
    const name = checkQueue(queue, "queue");
    const states = checkPurge(options);
    let removed = 0;
    for (const state of states) {
      let after: string | null = null;
      for (;;) {
        if (options.signal?.aborted) return removed;
        this.#assertOpen();
        const page: JobRow[] = await this.#parts.store.inspect.jobs({ queue: name, state }, after, PAGE);
        if (page.length === 0) break;
        removed += await this.#remove(page, by);
        after = (page[page.length - 1] as JobRow).id;
        options.onProgress?.(removed);
      }
    }
    return removed;
  }

  /** A job that was claimed or changed meanwhile stays. */
  async #remove(rows: readonly JobRow[], by: By | undefined): Promise<number> {
    const { clock, random } = this.#parts;
    const at = clock.now();
    const decided = rows.flatMap((row): DecidedJob[] => {
      const decision = isTerminal(row.state) ? undefined : decide(row, { type: "cancel" }, at, random);
      return decision?.ok ? [{ row, decision: removal(row, decision), at, by: "outsider" }] : [];
    });
    if (decided.length === 0) return 0;
    const about = { queue: rows[0]?.queue as string, details: { tried: decided.length } };
    const entry = auditEffects(this.#parts, by && parseBy(by), "queue.purge", about, at);
    const outcomes = await commitJobs(
      this.#parts,
      entry.length > 0 ? [...decided, { effects: entry }] : decided,
    );
    return decided.filter((_, index) => outcomes[index]?.ok).length;
  }

  /** What is done to a queue, in one commit with its event and its entry in the audit. */
  async #write(
    queue: string,
    action: keyof typeof QUEUE_EVENTS,
    effects: readonly Effect[],
    by: By | undefined,
    details?: AuditAbout["details"],
  ): Promise<void> {
    this.#assertOpen();
    const { clock, recorder } = this.#parts;
    const now = clock.now();
    const about = { queue, ...(details && { details }) };
    const all = [
      ...effects,
      ...recorder.effects(QUEUE_EVENTS[action], { at: now, subject: queue, queue }),
      ...auditEffects(this.#parts, by && parseBy(by), `queue.${action}`, about, now),
    ];
    await commitUnits(this.#parts, [{ effects: all }]);
  }
}

/** Counts jobs by state, without the bookkeeping jobs of workflows. */
export async function depthOfAll({ inspect }: Pick<Store, "inspect">): Promise<Record<JobState, number>> {
  const total = noJobs();
  for (const [queue, depth] of await inspect.depths()) {
    if (queue === BOOKKEEPING_QUEUE) continue;
    for (const state of Object.keys(total) as JobState[]) total[state] += depth[state];
  }
  return total;
}

/** A step stays, cancelled: its workflow looks at how it ended. */
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
  pause: StoredRecord<{ readonly at: Instant }> | null | undefined,
): QueueView {
  return { name, pausedAt: pause?.body.at ?? null, settings: settings?.body ?? {}, depth };
}
