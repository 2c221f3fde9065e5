import type { JobId } from "../../core/job/job.ts";
import { backoff } from "../../core/pace.ts";
import type { Outcome, Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import type { EngineContext } from "../context.ts";

/** Something to commit about one job. The unit is asked for when the batch is built, so that late additions travel with it. */
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

const BATCH = 256;
const BACKOFF = { first: 50, factor: 2, most: 2_000 };
/** A batch that a healthy store refuses so often is halved: one bad unit must not hold up the others. */
const HALVED_AFTER = 3;
/** So often a write that a healthy store refused is tried again, for about half a minute. */
const TRIED_ALONE = 20;

/**
 * Gathers writes into commits: at once when the store is idle, in one batch while a commit is under way. A lone
 * write is never delayed, and under load the cost of a commit is shared. One commit at a time keeps the writes of
 * one job in order; a batch never holds two writes of the same job.
 */
export class CommitQueue {
  readonly #parts: EngineContext;
  readonly #onCommitted: () => void;
  #queue: Write[] = [];
  #isBusy = false;
  #idle: (() => void)[] = [];
  #isClosed = false;
  #expected = 0;

  /** `onCommitted` is called after each batch: there is room again for whoever was waiting for it. */
  constructor(parts: EngineContext, onCommitted: () => void) {
    this.#parts = parts;
    this.#onCommitted = onCommitted;
  }

  /** Writes that are not committed yet: what bounds how much a worker may claim. */
  get backlog(): number {
    return this.#queue.length;
  }

  push(write: Write): void {
    this.#queue.push(write);
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#parts.system.soon(() => void this.#drain());
  }

  /** Waits for work that may end in another write: nothing is flushed before it has. */
  expect(work: Promise<void>): void {
    this.#expected += 1;
    void work.finally(() => {
      this.#expected -= 1;
      this.#tellFlushed();
    });
  }

  /** Resolves when everything pushed so far is committed, or the writer gave up. */
  flushed(): Promise<void> {
    if (!this.#isBusy && this.#expected === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #tellFlushed(): void {
    if (!this.#isBusy && this.#expected === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  get isAbandoned(): boolean {
    return this.#isClosed;
  }

  /** Stops retrying: whatever is not committed by now will be judged by the sweep. */
  abandon(): void {
    this.#isClosed = true;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const { writes, units } = this.#takeBatch();
      if (units.length > 0) await this.#commit({ writes, units });
      if (this.#isClosed) break;
    }
    this.#isBusy = false;
    this.#tellFlushed();
  }

  #takeBatch(): Batch {
    const writes: Write[] = [];
    const units: Unit[] = [];
    const ids = new Set<JobId>();
    const later: Write[] = [];
    let index = 0;
    for (; index < this.#queue.length && writes.length < BATCH; index++) {
      const write = this.#queue[index] as Write;
      if (ids.has(write.id)) {
        later.push(write);
        continue;
      }
      const unit = write.unit();
      if (unit === null) continue;
      ids.add(write.id);
      writes.push(write);
      units.push(unit);
    }
    this.#queue =
      later.length === 0 && index >= this.#queue.length ? [] : later.concat(this.#queue.slice(index));
    return { writes, units };
  }

  /**
   * A store that fails is asked again: every unit is fenced, so a commit whose reply was lost does no harm twice. If
   * it answers all but this batch, the batch is halved until what the store cannot take stands alone.
   */
  async #commit(batch: Batch, isRepeated = false): Promise<void> {
    for (let tries = 0, refusals = 0; !this.#isClosed; tries++) {
      if (await this.#tryCommit(batch, tries === 0 && !isRepeated)) return;
      refusals = (await this.#isStoreWell()) ? refusals + 1 : 0;
      if (refusals >= HALVED_AFTER) {
        if (batch.units.length > 1) return this.#commitHalves(batch);
        this.expect(this.#insist(batch));
        return;
      }
      await this.#rest(tries);
    }
  }

  /** A write that the store has refused alone is tried on beside the others, and given up in the end. */
  async #insist(batch: Batch): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      await this.#rest(tries);
      if (await this.#tryCommit(batch, false)) return;
      if (tries >= TRIED_ALONE) return this.#giveUp(batch);
    }
  }

  #isStoreWell(): Promise<boolean> {
    return this.#parts.store.clock().then(
      () => true,
      () => false,
    );
  }

  async #tryCommit({ writes, units }: Batch, isFirst: boolean): Promise<boolean> {
    const { store, clock } = this.#parts;
    let outcomes: Outcome[];
    try {
      outcomes = await store.commit(units, { now: clock.now() });
    } catch (error) {
      this.#parts.storeFailed(error, "commit");
      return false;
    }
    for (let index = 0; index < writes.length; index++) {
      const outcome = outcomes[index] as Outcome;
      (writes[index] as Write).done(isFirst ? outcome : recognised(outcome, units[index] as Unit));
    }
    this.#onCommitted();
    return true;
  }

  async #commitHalves({ writes, units }: Batch): Promise<void> {
    const middle = units.length >> 1;
    const first = { writes: writes.slice(0, middle), units: units.slice(0, middle) };
    const second = { writes: writes.slice(middle), units: units.slice(middle) };
    await this.#commit(first, true);
    await this.#commit(second, true);
  }

  /** Its job is left to its deadlines, which the sweep keeps. */
  #giveUp({ writes }: Batch): void {
    for (const write of writes) {
      this.#parts.logger.error(
        { job: write.id },
        "the store takes every write but this one; it was given up",
      );
      write.done({ ok: false, because: "gone", at: null });
    }
  }

  #rest(tries: number): Promise<void> {
    return rest(this.#parts.system, backoff(tries + 1, BACKOFF));
  }
}

/**
 * After a lost reply, our own success looks like a refusal. Only the holder of a fence can take a job out of active
 * without changing the fence, so a job that has left active under our fence was moved by this very write.
 */
function recognised(outcome: Outcome, unit: Unit): Outcome {
  if (outcome.ok || outcome.at === null || !unit.job) return outcome;
  const { fence, image } = unit.job;
  const isOurs = outcome.at.fence === (unit.job.nextFence ?? fence) && image?.state === outcome.at.state;
  return isOurs && outcome.at.state !== "active" ? { ok: true } : outcome;
}
