import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { fenceSalt } from "../../core/job/job.ts";
import { waitingWake } from "../../core/job/policy/deadlines.ts";
import { backoff } from "../../core/pace.ts";
import type { Random } from "../../core/random.ts";
import { BATCH_LIMIT, type Effect, type EnqueueCallOptions, type Enqueued } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import { announceEnqueued } from "../commit/announce.ts";
import { commitUnits } from "../commit/commit.ts";
import { admission } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { Batcher } from "../runtime/batcher.ts";
import { Backpressure } from "./backpressure.ts";
import { EnqueueFailedError } from "./enqueue-failed-error.ts";
import { QueueFullError } from "./queue-full-error.ts";

/** An enqueue of this many jobs or more gets its own store call. */
const BULK = 100;
const BULK_CALLS = 2;
/** Single enqueues that are worth two calls, on a store whose calls wait for no disk. */
const SPLIT_FROM = 8;
/** Microtasks that a caller needs from its answer to its next enqueue. */
const REJOIN = 20;
const TRIES = 4;
const BACKOFF = { first: 25, factor: 4, most: 400 };

/** A job whose id may exist: the store returns the existing job, or creates one with a fence never used before. */
export function foundOr(job: NewJob, random: Random): NewJob {
  return { ...job, hasNewId: false, fence: fenceSalt(random) };
}

/** Enqueues made during a store call share the next one. Each promise resolves when its own jobs are durable. */
export class Intake {
  readonly #context: EngineContext;
  readonly #singles: Batcher<readonly NewJob[], Enqueued[]>;
  readonly #bulk: Batcher<readonly NewJob[], Enqueued[]>;
  #unanswered = 0;
  #onIdle: (() => void)[] = [];
  readonly #backpressure: Backpressure;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#backpressure = new Backpressure(context);
    const call = (entries: readonly (readonly NewJob[])[]) => this.#send(entries);
    // Where each call syncs a disk, half as many jobs would share a sync.
    const split = context.store.capabilities.durable === "interval" && {
      concurrency: 2,
      splitFrom: SPLIT_FROM,
    };
    this.#singles = new Batcher({ call, count: fittingOneCall, rejoin: REJOIN, ...split });
    this.#bulk = new Batcher({ call, count: () => 1, concurrency: BULK_CALLS });
  }

  enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    return jobs.length <= BATCH_LIMIT ? this.#submit(jobs) : this.#submitInParts(jobs);
  }

  async #submitInParts(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const answers: Promise<Enqueued[]>[] = [];
    for (let from = 0; from < jobs.length; from += BATCH_LIMIT)
      answers.push(this.#submit(jobs.slice(from, from + BATCH_LIMIT)));
    return (await Promise.all(answers)).flat();
  }

  async #submit(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    this.#unanswered += 1;
    try {
      const answers = await (jobs.length >= BULK ? this.#bulk : this.#singles).add(jobs);
      return answers.includes("full") ? await this.#resolveFull(jobs, answers) : answers;
    } catch (error) {
      throw error instanceof QueueFullError ? error : new EnqueueFailedError(jobs, error);
    } finally {
      this.#unanswered -= 1;
      if (this.#unanswered === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Resolves when every enqueue has its answer. */
  flushed(): Promise<void> {
    return this.#unanswered === 0 ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  async #send(entries: readonly (readonly NewJob[])[]): Promise<Enqueued[][]> {
    const jobs = entries.length === 1 ? (entries[0] as readonly NewJob[]) : entries.flat();
    const answers = await this.#tryStore(wokenOnce(jobs));
    this.notice(jobs, answers);
    const admitting = this.#admit(jobs, answers);
    if (admitting) await admitting;
    let to = 0;
    return entries.map(({ length }) => {
      to += length;
      return answers.slice(to - length, to);
    });
  }

  /** Only the enqueue that found its queue full waits for room. */
  #resolveFull(jobs: readonly NewJob[], answers: readonly Enqueued[]): Promise<Enqueued[]> {
    return this.#backpressure.resolveFull(jobs, answers, async (again) => {
      const answered = await this.#tryStore(again);
      this.notice(again, answered);
      await this.#admit(again, answered);
      return answered;
    });
  }

  /** Lets limits admit their new jobs. If this fails, the sweep does it: the jobs are due at once. */
  #admit(jobs: readonly NewJob[], answers: readonly Enqueued[]): Promise<unknown> | undefined {
    let limits: Map<string, Effect> | undefined;
    for (let index = 0; index < jobs.length; index++) {
      const { limitKey, options, image } = jobs[index] as NewJob;
      if (limitKey === undefined || image.state !== "pending" || answers[index] !== "created") continue;
      limits ??= new Map();
      limits.set(limitKey, admission({ limitKey, options }));
    }
    if (!limits) return undefined;
    return commitUnits(this.#context, [{ effects: [...limits.values()] }]).catch((error: unknown) =>
      this.#context.storeFailed(error, "admit"),
    );
  }

  /** Retries a lost reply with the same ids, so that it finds the jobs and never stores them twice. */
  async #tryStore(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const { store, clock, system, random } = this.#context;
    for (let tries = 1; ; tries++) {
      try {
        const attempt = tries === 1 ? jobs : jobs.map((job) => foundOr(job, random));
        const answers = await store.jobs.enqueue(attempt, { now: clock.now(), ...this.bounded(jobs) });
        if (tries === 1) return answers;
        return answers.map((answer, index) =>
          answer === "exists" && (jobs[index] as NewJob).hasNewId ? "created" : answer,
        );
      } catch (error) {
        this.#context.storeFailed(error, "enqueue");
        if (tries === TRIES) throw error;
        await rest(system, backoff(tries, BACKOFF));
      }
    }
  }

  /** The bounds that the store must check; undefined if no queue is bounded. */
  bounded(jobs: readonly NewJob[]): Pick<EnqueueCallOptions, "bounds" | "onDepth"> | undefined {
    const bounds = this.#backpressure.boundsOf(jobs);
    return bounds && { bounds, onDepth: (queue, waiting) => this.#backpressure.tally(queue, waiting) };
  }

  /** Announces jobs that are durable now. Without answers, the commit created all of them. */
  notice(jobs: readonly NewJob[], answers?: readonly Enqueued[]): void {
    announceEnqueued(this.#context, jobs, answers);
  }
}

/** Returns how many enqueues fit into one store call: at least one, as an enqueue has fewer jobs than the limit. */
function fittingOneCall(waiting: readonly (readonly NewJob[])[]): number {
  let size = 0;
  let count = 0;
  for (const { length } of waiting) {
    size += length;
    if (size > BATCH_LIMIT) break;
    count += 1;
  }
  return count;
}

/**
 * Of new jobs with the same limit key the sweep must wake for only one: it admits the others with it. A wake-up for
 * each would delay deadlines. The one must be stored if any of the others is: its id is new, it has no unique key, and it
 * is the first of them in its queue, which may have a bound.
 */
export function wokenOnce(jobs: readonly NewJob[]): readonly NewJob[] {
  if (jobs.every(({ limitKey }) => limitKey === undefined)) return jobs;
  const woken = new Map<string, Set<string>>();
  return jobs.map((job) => {
    const { limitKey, queue, image, options, hasNewId, uniqueKey } = job;
    if (limitKey === undefined || image.state !== "pending" || options?.limit?.onLimit) return job;
    const queues = woken.get(limitKey) ?? new Set();
    if (queues.has(queue)) return { ...job, image: { ...image, ...waitingWake(image, options?.limit) } };
    if (hasNewId && uniqueKey === undefined) woken.set(limitKey, queues.add(queue));
    return job;
  });
}
