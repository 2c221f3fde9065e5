import { CurfewError } from "../../core/errors.ts";
import { applied } from "../../core/job/decide.ts";
import type { JobDocuments, JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { CommitOptions, Effect, Outcome, Store, Unit } from "../../ports/store.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import { wakesOthers } from "../commit/decision-effects.ts";
import { type Decided, holdersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";

const ANSWER_WITHIN = 10_000;

function notKnown(id: string): CurfewError {
  return new CurfewError(
    "store_failed",
    `job ${id}: the store does not answer, so it is not known whether this counted; send it again with the same fence`,
  );
}

function relaxedStore(store: Store): Store {
  return Object.create(store, {
    commit: {
      value: (units: readonly Unit[], options: CommitOptions) =>
        store.commit(units, { ...options, relaxed: true }),
    },
  }) as Store;
}

/** A start is told of the attempt that began, everything else of the one that it ended. */
function toldOf(row: JobRow, decision: Decided): JobRow {
  return decision.image.state === "active" ? applied(row, decision) : row;
}

/** What the reports of remote workers write: each waits for its own commit, and reports at the same time share one. */
export class Commits {
  readonly #parts: EngineContext;
  readonly #writer: CommitQueue;

  /** `relaxed` commits need not be on the disk when they are answered: see the store port. */
  constructor(parts: EngineContext, options: { readonly relaxed?: boolean } = {}) {
    this.#parts = parts;
    const store = options.relaxed ? relaxedStore(parts.store) : parts.store;
    this.#writer = new CommitQueue({ ...parts, store }, () => {});
  }

  /** Commits a decision under the fence it was made on; what follows from it is told only then. */
  async decision(row: JobRow, decision: Decided, at: Instant): Promise<Outcome> {
    const { recorder } = this.#parts;
    const events = recorder.isOn ? recorder.recorded(toldOf(row, decision), decision, at) : undefined;
    const outcome = await this.#commit(holdersUnit(row, decision, undefined, events));
    if (outcome.ok) this.#announce(row, decision, at);
    return outcome;
  }

  documents(row: JobRow, documents: JobDocuments, effects?: readonly Effect[]): Promise<Outcome> {
    const job = { id: row.id, fence: row.fence, documents };
    return this.#commit(effects ? { job, effects } : { job });
  }

  /** A store that does not answer is asked again for as long as it takes; whoever waits is told before that. */
  #commit(unit: Unit): Promise<Outcome> {
    const id = unit.job?.id as string;
    return new Promise((resolve, reject) => {
      const timer = this.#parts.system.after(ANSWER_WITHIN, () => reject(notKnown(id)), { keepAlive: true });
      const done = (outcome: Outcome) => {
        timer.cancel();
        resolve(outcome);
      };
      this.#writer.push({ id, unit: () => unit, done });
    });
  }

  #announce(row: JobRow, decision: Decided, at: Instant): void {
    const { clock, counters, bus, waiters, wakeSweepAt, tracing } = this.#parts;
    const { image, events } = decision;
    if (tracing && image.state !== "active")
      tracing.ended(row, { state: image.state, events, at, committedAt: clock.now() });
    const told = toldOf(row, decision);
    counters.record(told, events, at);
    bus.announce(told, events, at);
    if (image.wakeAt !== null) wakeSweepAt(image.wakeAt);
    if (wakesOthers(row, decision)) wakeSweepAt(clock.now());
    if (waiters.has(row.id) && isTerminal(image.state)) waiters.settled(applied(row, decision));
  }

  flushed(): Promise<void> {
    return this.#writer.flushed();
  }

  abandon(): void {
    this.#writer.abandon();
  }
}
