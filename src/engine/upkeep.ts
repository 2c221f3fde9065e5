import type { Timer } from "../ports/system.ts";
import type { EngineContext } from "./context.ts";
import type { EngineRole } from "./engine-options.ts";
import type { EventJournal } from "./events/event-journal.ts";
import { type LookedFor, Lookout } from "./lookout.ts";
import { UnattendedCounter } from "./operations/unattended.ts";
import { Loop } from "./runtime/loop.ts";
import { SETTINGS } from "./settings-records.ts";
import { Learner } from "./statistics/learner.ts";
import type { Statistics } from "./statistics/statistics.ts";
import { PruneLoop } from "./sweep/prune-loop.ts";

/** How old the settings of queues may be in a producer, in milliseconds. */
const SETTINGS_EVERY = 5_000;
/** How often it is asked whether enqueued jobs have a worker. That is a statement only after an enqueue. */
const UNATTENDED_EVERY = 5_000;
/** Settings are read when the lookout sees that they changed, and this often in case an operator changed them in the database. */
const READ_AGAIN = 900_000;

interface UpkeepParts extends LookedFor {
  readonly journal: EventJournal;
  readonly statistics: Statistics;
}

/**
 * Looks for work and for changed settings, writes counts and prunes, in loops. An operator does not prune. In a producer settings are
 * read when it is called, so that one that nobody calls makes no statements.
 */
export class Upkeep {
  readonly #context: EngineContext;
  readonly #journal: EventJournal;
  readonly #statistics: Statistics;
  readonly #unattended: UnattendedCounter;
  readonly #learner: Learner;
  readonly #loop: Loop;
  readonly #lookout: Lookout;
  readonly #prune: PruneLoop;
  readonly role: EngineRole | undefined;
  #readAt: number;
  #reading: Promise<void> | undefined;
  /** Writes what the calls since the last write have counted. */
  #later: Timer | undefined;
  #writing: Promise<void> | undefined;

  constructor(
    context: EngineContext,
    { journal, statistics, ...lookedFor }: UpkeepParts,
    role: EngineRole | undefined,
  ) {
    this.#context = context;
    this.#journal = journal;
    this.#statistics = statistics;
    this.role = role;
    this.#prune = new PruneLoop(context);
    this.#unattended = new UnattendedCounter(context);
    this.#learner = new Learner(context, () => statistics.flush());
    this.#readAt = context.system.monotonic();
    const recordsChanged = () => this.#read();
    this.#lookout = new Lookout(context, lookedFor, { records: SETTINGS, recordsChanged });
    const { system, logger, storeFailed } = context;
    this.#loop = new Loop({
      name: "settings",
      system,
      logger,
      round: () => this.#round(),
      onError: (error) => storeFailed(error, "settings"),
    });
    context.learned.onAsked = () => this.#loop.wake();
  }

  /** Not for a producer. */
  start(): void {
    if (!this.role) this.#prune.loop.start();
    this.#loop.start();
    this.#lookout.loop.start();
    this.#statistics.loop.start();
  }

  /** One round of pruning, for tests and operators. */
  async prune(): Promise<void> {
    await this.#prune.round();
  }

  /** Resolves when a producer knows settings and a time that are new enough. Undefined if there is nothing to wait for. */
  fresh(): Promise<void> | undefined {
    if (this.role !== "producer") return undefined;
    this.#later ??= this.#context.system.after(SETTINGS_EVERY, () => {
      this.#writing = this.#write();
    });
    if (this.#context.system.monotonic() - this.#readAt < SETTINGS_EVERY) return undefined;
    this.#reading ??= Promise.all([this.#read(), this.#context.clock.sample()])
      .then(() => {})
      // The call itself says whether the store works.
      .catch((error: unknown) => this.#context.storeFailed(error, "settings"))
      .finally(() => {
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async stop(): Promise<void> {
    this.#later?.cancel();
    const loops = [this.#loop, this.#lookout.loop, this.#prune.loop].map((loop) => loop.stop());
    await Promise.all([this.#writing, ...loops, this.#statistics.stop()]);
  }

  async #write(): Promise<void> {
    try {
      await this.#statistics.flush();
      await this.#unattended.round();
    } catch (error) {
      this.#context.storeFailed(error, "statistics");
    }
    this.#later = undefined;
  }

  async #read(): Promise<void> {
    await this.#context.queues.refresh();
    await this.#context.schemas.refresh();
    await this.#context.calendars.refresh();
    await this.#context.learned.refresh();
    await this.#journal.refresh();
    this.#readAt = this.#context.system.monotonic();
  }

  async #round(): Promise<number> {
    if (this.#context.system.monotonic() - this.#readAt >= READ_AGAIN) await this.#read();
    await this.#unattended.round();
    // Both make no statement where no job has an adaptive limit.
    await this.#context.learned.refresh();
    await this.#learner.round();
    return Math.min(UNATTENDED_EVERY * this.#context.idlePollFactor, this.#learner.untilNext());
  }
}
