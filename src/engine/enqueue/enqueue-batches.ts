import { CurfewError } from "../../core/errors.ts";
import { waitingWake } from "../../core/job/deadlines.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import { fenceSalt, type JobId } from "../../core/job/job.ts";
import type { Random } from "../../core/random.ts";
import { BATCH_LIMIT, type Effect, type EnqueueCallOptions, type Enqueued } from "../../ports/store.ts";
import { announceEnqueued } from "../commit/announce.ts";
import { commitUnits } from "../commit/commit.ts";
import { admission } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { Backpressure } from "./backpressure.ts";
import { QueueFullError } from "./queue-full-error.ts";

interface Entry {
  readonly jobs: readonly NewJob[];
  readonly resolve: (answers: Enqueued[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The store did not confirm an enqueue, so the jobs may be there or not. Enqueueing them again under these ids is
 * safe: whatever is there already is found as a duplicate.
 */
export class EnqueueFailedError extends CurfewError {
  override readonly name = "EnqueueFailedError";
  readonly ids: readonly JobId[];

  constructor(jobs: readonly NewJob[], cause: unknown) {
    const ids = jobs.map(({ id }) => id);
    const which = ids.length === 1 ? `job ${ids[0]}` : `${ids.length} jobs from ${ids[0]} on`;
    super("store_failed", `enqueue: the store did not confirm ${which}; enqueue again with the same id`, {
      cause,
    });
    this.ids = ids;
  }
}

/** Batches from here on travel alone: they are worth a statement of their own. */
const BULK = 100;
const BULK_LANES = 2;
/** So many turns of the microtask queue a caller needs from its answer to its next job. */
const REJOIN = 20;
const TRIES = 4;
const FIRST_BACKOFF = 25;

/** A job whose id may be known already: it is found, or begins with a fence that no earlier one has had. */
export function foundOr(job: NewJob, random: Random): NewJob {
  return { ...job, hasNewId: false, fence: fenceSalt(random) };
}

/**
 * Enqueues made while a store call is under way share the next one and its commit; each caller's promise resolves
 * only when its own job is durable.
 */
export class Intake {
  readonly #parts: EngineContext;
  #singles: Entry[] = [];
  #bulk: Entry[] = [];
  #isBusy = false;
  #bulkBusy = 0;
  #settling = 0;
  #onIdle: (() => void)[] = [];
  readonly #backpressure: Backpressure;

  constructor(parts: EngineContext) {
    this.#parts = parts;
    this.#backpressure = new Backpressure(parts);
  }

  async enqueue(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    if (jobs.length <= BATCH_LIMIT) return this.#submit(jobs);
    const answers: Promise<Enqueued[]>[] = [];
    for (let from = 0; from < jobs.length; from += BATCH_LIMIT)
      answers.push(this.#submit(jobs.slice(from, from + BATCH_LIMIT)));
    return (await Promise.all(answers)).flat();
  }

  #submit(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    return new Promise((resolve, reject) => {
      const entry = { jobs, resolve, reject };
      if (jobs.length >= BULK) {
        this.#bulk.push(entry);
        if (this.#bulkBusy < BULK_LANES) void this.#drainBulk();
      } else {
        this.#singles.push(entry);
        if (!this.#isBusy) void this.#drainSingles();
      }
    });
  }

  async #drainBulk(): Promise<void> {
    this.#bulkBusy += 1;
    for (let entry = this.#bulk.shift(); entry; entry = this.#bulk.shift())
      await this.#send([entry], entry.jobs);
    this.#bulkBusy -= 1;
    this.#tellIdle();
  }

  async #drainSingles(): Promise<void> {
    this.#isBusy = true;
    // One microtask, so that calls made in the same turn share even the first statement.
    await undefined;
    while (this.#singles.length > 0) {
      // Taken off in one piece: shifting them one by one is quadratic in the size of a burst.
      let size = 0;
      let count = 0;
      for (const { jobs } of this.#singles) {
        size += jobs.length;
        if (size > BATCH_LIMIT) break;
        count += 1;
      }
      const entries = this.#singles.splice(0, count);
      await this.#send(
        entries,
        entries.flatMap((entry) => entry.jobs),
      );
      // Whoever was just answered may enqueue again at once, and should travel with those who wait: otherwise producers
      // split into two halves that take turns, each with a commit of its own.
      for (let turn = 0; turn < REJOIN && this.#singles.length > 0; turn++) await undefined;
    }
    this.#isBusy = false;
    this.#tellIdle();
  }

  /** Resolves when every enqueue that was taken in has its answer. */
  flushed(): Promise<void> {
    return this.#isIdle ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  get #isIdle(): boolean {
    return !this.#isBusy && this.#bulkBusy === 0 && this.#settling === 0;
  }

  #tellIdle(): void {
    if (this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  async #send(entries: readonly Entry[], jobs: readonly NewJob[]): Promise<void> {
    let answers: Enqueued[];
    try {
      answers = await this.#tryStore(wokenOnce(jobs));
    } catch (error) {
      for (const entry of entries) entry.reject(new EnqueueFailedError(entry.jobs, error));
      return;
    }
    this.notice(jobs, answers);
    const passing = this.#letThrough(jobs, answers);
    if (passing) await passing;
    const isBounded = this.#parts.queues.bounds !== undefined;
    let from = 0;
    for (const entry of entries) {
      const own = answers.slice(from, from + entry.jobs.length);
      if (isBounded && own.includes("full")) void this.#settleFull(entry, own);
      else entry.resolve(own);
      from += entry.jobs.length;
    }
  }

  /** Beside the others, who do not wait until there is room. */
  async #settleFull({ jobs, resolve, reject }: Entry, answers: readonly Enqueued[]): Promise<void> {
    this.#settling += 1;
    const store = async (again: readonly NewJob[]) => {
      const given = await this.#tryStore(again);
      this.notice(again, given);
      await this.#letThrough(again, given);
      return given;
    };
    await this.#backpressure
      .settle(jobs, answers, store)
      .then(resolve, (error: unknown) =>
        reject(error instanceof QueueFullError ? error : new EnqueueFailedError(jobs, error)),
      );
    this.#settling -= 1;
    this.#tellIdle();
  }

  /** New jobs with a limit wait for its limit. If this fails, the sweep lets them through: they are due at once. */
  #letThrough(jobs: readonly NewJob[], answers: readonly Enqueued[]): Promise<unknown> | undefined {
    let limits: Map<string, Effect> | undefined;
    for (let index = 0; index < jobs.length; index++) {
      const { limitKey, options, image } = jobs[index] as NewJob;
      if (limitKey === undefined || image.state !== "pending" || answers[index] !== "created") continue;
      limits ??= new Map();
      limits.set(limitKey, admission({ limitKey, options }));
    }
    if (!limits) return undefined;
    return commitUnits(this.#parts, [{ effects: [...limits.values()] }]).catch((error: unknown) =>
      this.#parts.storeFailed(error, "admit"),
    );
  }

  /** A lost reply is asked for again under the same ids, so a retry can find the job but never double it. */
  async #tryStore(jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const { store, clock, system, random } = this.#parts;
    for (let tries = 1; ; tries++) {
      try {
        const attempt = tries === 1 ? jobs : jobs.map((job) => foundOr(job, random));
        const answers = await store.jobs.enqueue(attempt, { now: clock.now(), ...this.bounded(jobs) });
        if (tries === 1) return answers;
        return answers.map((answer, index) =>
          answer === "exists" && (jobs[index] as NewJob).hasNewId ? "created" : answer,
        );
      } catch (error) {
        this.#parts.storeFailed(error, "enqueue");
        if (tries === TRIES) throw error;
        await new Promise<void>((resolve) =>
          system.after(FIRST_BACKOFF * 4 ** (tries - 1), resolve, { keepAlive: true }),
        );
      }
    }
  }

  /** What the store has to know about queues that are bounded; nothing, where none of them is. */
  bounded(jobs: readonly NewJob[]): Pick<EnqueueCallOptions, "bounds" | "onDepth"> | undefined {
    const bounds = this.#backpressure.boundsOf(jobs);
    return bounds && { bounds, onDepth: (queue, waiting) => this.#backpressure.tally(queue, waiting) };
  }

  /** Announces jobs that are durable now. Without answers, the commit created all of them. */
  notice(jobs: readonly NewJob[], answers?: readonly Enqueued[]): void {
    announceEnqueued(this.#parts, jobs, answers);
  }
}

/**
 * Of the jobs that come to one limit together, the sweep need look at one: with it, it lets the others through. Were it to
 * look at each, a flood of them would keep deadlines waiting.
 */
function wokenOnce(jobs: readonly NewJob[]): readonly NewJob[] {
  if (jobs.every(({ limitKey }) => limitKey === undefined)) return jobs;
  const woken = new Set<string>();
  return jobs.map((job) => {
    const { limitKey, image, options } = job;
    if (limitKey === undefined || image.state !== "pending" || options?.limit?.onLimit) return job;
    if (!woken.has(limitKey)) {
      woken.add(limitKey);
      return job;
    }
    return { ...job, image: { ...image, ...waitingWake(image, options?.limit) } };
  });
}
