import { CurfewError } from "../../core/errors.ts";
import type { JobId } from "../../core/job/job.ts";
import { backoff } from "../../core/pace.ts";
import type { CommitOptions, JobWrite, Outcome, Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";
import { announce } from "./announce.ts";
import { commitUnits } from "./commit.ts";
import { type DecidedJob, unitOf } from "./unit.ts";

/** One write to one job. The queue asks for the unit when it builds the batch, so late additions are part of it. */
export interface Write {
  readonly id: JobId;
  /** Null withdraws the write. */
  unit(): Unit | null;
  done(outcome: Outcome): void;
}

interface Batch {
  readonly writes: readonly Write[];
  readonly units: readonly Unit[];
}

const BATCH = 512;
/** Commits that may be under way at the same time in a store that is not in this process. */
const COMMITS = 2;
/** A second commit is sent only for this many writes. Fewer wait for the next one, because each commit has its price. */
const WORTH_A_SECOND = 100;
const BACKOFF = { first: 50, factor: 2, most: 2_000 };
/** After this many refusals by a store that answers, split the batch: one bad unit must not block the others. */
const HALVED_AFTER = 3;
/** Tries of a write that the store refused alone: about half a minute. STORE_TRIES is for calls with a waiting caller. */
const TRIED_ALONE = 20;
/** How long `commit` waits for the outcome. The queue itself tries for longer. */
const ANSWER_WITHIN = 10_000;

export interface CommitQueueOptions {
  /** The store may answer before the write is on the disk: see the store port. */
  readonly relaxed?: boolean;
  /** Called after each batch, when the backlog has room again. */
  readonly onCommitted?: () => void;
}

/**
 * Commits the writes of workers and their reports. A write is committed at once while the queue is idle. Writes that
 * arrive during a commit form the next batch, so under load jobs share the cost of a commit. If many arrive, the next
 * commit is sent before the store has answered the first. The writes of one job stay in order: a write waits while
 * a commit with another write of its job is under way, a batch has at most one write per job, and a write that is repeated
 * alone parks those behind it.
 */
export class CommitQueue {
  readonly #context: EngineContext;
  readonly #options: Omit<CommitOptions, "now"> | undefined;
  readonly #onCommitted: (() => void) | undefined;
  readonly #mostCommits: number;
  readonly #secondFrom: number;
  #queue: Write[] = [];
  /** Later writes of jobs whose first write is repeated alone. They wait for it, or they would overtake it. */
  readonly #parked = new Map<JobId, Write[]>();
  /** How many commits are under way. */
  #commits = 0;
  /** The jobs of their writes, and of the batch that is being taken. Another write of such a job waits. */
  readonly #sent = new Set<JobId>();
  #idle: (() => void)[] = [];
  #isClosed = false;
  #expected = 0;

  constructor(context: EngineContext, { relaxed, onCommitted }: CommitQueueOptions = {}) {
    this.#context = context;
    this.#options = relaxed ? { relaxed } : undefined;
    this.#onCommitted = onCommitted;
    this.#mostCommits = context.store.capabilities.inProcess ? 1 : COMMITS;
    this.#secondFrom = context.secondCommitFrom ?? WORTH_A_SECOND;
  }

  /** Writes that are not committed yet. A worker claims less while there are many. */
  get backlog(): number {
    return this.#queue.length;
  }

  push(write: Write): void {
    this.#queue.push(write);
    this.#wake();
  }

  #wake(): void {
    if (this.#commits >= this.#mostCommits || !this.#isWorthOne(this.#commits)) return;
    this.#commits += 1;
    this.#context.system.soon(() => void this.#drain());
  }

  /** Commits a decision and announces it. Costs a promise per job, so attempts of this process use `push`. */
  async commit(job: DecidedJob): Promise<Outcome> {
    const outcome = await this.commitUnit(unitOf(this.#context, job) as Unit & { job: JobWrite });
    if (outcome.ok) announce(this.#context, job);
    return outcome;
  }

  /** Resolves with the outcome. Rejects after 10 s; the queue still tries then, so the write may count later. */
  commitUnit(unit: Unit & { readonly job: JobWrite }): Promise<Outcome> {
    const { id } = unit.job;
    return new Promise((resolve, reject) => {
      const timer = this.#context.system.after(ANSWER_WITHIN, () => reject(noAnswer(id)), {
        keepAlive: true,
      });
      const done = (outcome: Outcome) => {
        timer.cancel();
        resolve(outcome);
      };
      this.push({ id, unit: () => unit, done });
    });
  }

  /** Makes `flushed` wait for work that may push another write. */
  expect(work: Promise<void>): void {
    this.#expected += 1;
    void work.finally(() => {
      this.#expected -= 1;
      this.#resolveFlushed();
    });
  }

  /** Resolves when everything pushed so far is committed, or the queue is abandoned. */
  flushed(): Promise<void> {
    if (this.#commits === 0 && this.#expected === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #resolveFlushed(): void {
    if (this.#commits === 0 && this.#expected === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  get isAbandoned(): boolean {
    return this.#isClosed;
  }

  /** Stops trying: the sweep decides on the jobs whose writes are not committed by now. */
  abandon(): void {
    this.#isClosed = true;
  }

  #isWorthOne(others: number): boolean {
    return this.#queue.length >= (others === 0 ? 1 : this.#secondFrom);
  }

  async #drain(): Promise<void> {
    while (this.#isWorthOne(this.#commits - 1)) {
      const { writes, units } = this.#takeBatch();
      // All that is left waits for the other commit, which takes it when it is done.
      if (units.length === 0) break;
      await this.#commit({ writes, units });
      this.#answered(writes);
      if (this.#isClosed) break;
    }
    this.#commits -= 1;
    this.#resolveFlushed();
  }

  #answered(writes: readonly Write[]): void {
    for (let index = 0; index < writes.length; index++) this.#sent.delete((writes[index] as Write).id);
  }

  #takeBatch(): Batch {
    const writes: Write[] = [];
    const units: Unit[] = [];
    const later: Write[] = [];
    let index = 0;
    for (; index < this.#queue.length && writes.length < BATCH; index++) {
      const write = this.#queue[index] as Write;
      const parked = this.#parked.get(write.id);
      if (parked) {
        parked.push(write);
        continue;
      }
      if (this.#sent.has(write.id)) {
        later.push(write);
        continue;
      }
      const unit = this.#unitOf(write);
      if (unit === null) continue;
      this.#sent.add(write.id);
      writes.push(write);
      units.push(unit);
    }
    this.#queue =
      later.length === 0 && index >= this.#queue.length ? [] : later.concat(this.#queue.slice(index));
    return { writes, units };
  }

  /** Null if the write is withdrawn or cannot be built. It must not stop the writes of other jobs. */
  #unitOf(write: Write): Unit | null {
    try {
      return write.unit();
    } catch (error) {
      this.#context.logger.error(
        { job: write.id, error },
        "a write could not be built; the sweep will end the job",
      );
      this.#done(write, { ok: false, because: "gone", at: null });
      return null;
    }
  }

  #done(write: Write, outcome: Outcome): void {
    try {
      write.done(outcome);
    } catch (error) {
      this.#context.logger.error({ job: write.id, error }, "a write was committed but not announced");
    }
  }

  /**
   * Tries again while the store fails. Every unit is fenced, so it is safe to repeat a commit whose reply was lost. If the
   * store answers but refuses this batch, splits the batch until the refused unit is alone.
   */
  async #commit(batch: Batch, isRepeated = false): Promise<void> {
    let isFirst = !isRepeated;
    for (let failures = 0, refusals = 0; !this.#isClosed; isFirst = false) {
      if (await this.#tryCommit(batch, isFirst)) return;
      refusals = (await this.#isStoreWell()) ? refusals + 1 : 0;
      if (refusals >= HALVED_AFTER) {
        if (batch.units.length > 1) return this.#commitHalves(batch);
        this.expect(this.#insist(batch, (batch.writes[0] as Write).id));
        return;
      }
      failures = await this.#context.pauses.rest(failures + 1, BACKOFF);
    }
  }

  /**
   * Repeats a write that the store refused alone, while the writes of other jobs go on. Gives up in the end. Only then
   * do later writes of its job follow.
   */
  async #insist(batch: Batch, id: JobId): Promise<void> {
    this.#parked.set(id, []);
    await this.#repeatAlone(batch);
    const parked = this.#parked.get(id) ?? [];
    this.#parked.delete(id);
    if (parked.length === 0) return;
    this.#queue = [...parked, ...this.#queue];
    this.#wake();
  }

  async #repeatAlone(batch: Batch): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      await rest(this.#context.system, backoff(tries + 1, BACKOFF));
      if (await this.#tryCommit(batch, false)) return;
      if (tries >= TRIED_ALONE) return this.#giveUp(batch);
    }
  }

  #isStoreWell(): Promise<boolean> {
    return this.#context.clock.sample().then(
      () => true,
      () => false,
    );
  }

  async #tryCommit({ writes, units }: Batch, isFirst: boolean): Promise<boolean> {
    let outcomes: Outcome[];
    try {
      outcomes = await commitUnits(this.#context, units, this.#options);
    } catch (error) {
      this.#context.storeFailed(error, "commit");
      return false;
    }
    for (let index = 0; index < writes.length; index++) {
      const outcome = outcomes[index] as Outcome;
      const seen = isFirst ? outcome : recognised(outcome, units[index] as Unit);
      this.#done(writes[index] as Write, seen);
    }
    this.#onCommitted?.();
    return true;
  }

  async #commitHalves({ writes, units }: Batch): Promise<void> {
    const middle = units.length >> 1;
    const first = { writes: writes.slice(0, middle), units: units.slice(0, middle) };
    const second = { writes: writes.slice(middle), units: units.slice(middle) };
    await this.#commit(first, true);
    await this.#commit(second, true);
  }

  #giveUp({ writes }: Batch): void {
    for (const write of writes) {
      this.#context.logger.error(
        { job: write.id },
        "giving up on this write: the store accepts all others; the sweep will end the job at its deadline",
      );
      this.#done(write, { ok: false, because: "gone", at: null });
    }
  }
}

function noAnswer(id: JobId): CurfewError {
  return new CurfewError(
    "store_failed",
    `report on job ${id}: no answer from the store within ${ANSWER_WITHIN / 1_000} s, so it may or may not be saved; send it again with the same fence`,
  );
}

/**
 * Turns a refusal into the success that it is, if our own commit succeeded before and its reply was lost. Only the holder
 * can move a job out of `active` without a new fence. So if the job left `active` under our fence, this write did it.
 */
function recognised(outcome: Outcome, unit: Unit): Outcome {
  if (outcome.ok || outcome.at === null || !unit.job) return outcome;
  const { fence, image } = unit.job;
  const isOurs = outcome.at.fence === (unit.job.nextFence ?? fence) && image?.state === outcome.at.state;
  return isOurs && outcome.at.state !== "active" ? { ok: true } : outcome;
}
