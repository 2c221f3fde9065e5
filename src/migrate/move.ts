import type { By } from "../core/audit/audit-entry.ts";
import { CurfewError } from "../core/errors.ts";
import { defineJob } from "../core/job/job-definition.ts";
import type { JobLine } from "../core/job/transfer/job-line.ts";
import type { Engine } from "../engine/engine.ts";
import { CHANGES, type Change, type Note, REFUSALS, type Refusal, Tallies, type Tally } from "./report.ts";
import type { CronSpec, Source, SourceBatch, SourceCounts, SourceCron, SourceJob } from "./source.ts";

/** What a move needs of an engine. */
export type MoveTarget = Pick<Engine, "importJobs" | "crons">;

export interface MoveOptions {
  /** Reads and checks everything, and changes neither side. */
  readonly isDry: boolean;
  readonly by?: By;
  /** Stops after the current batch. */
  readonly signal: AbortSignal;
  readonly onProgress: (done: number, total: number) => void;
}

export interface MoveReport {
  /** Jobs that were added to curfew; in a dry run, those that would be. */
  readonly moved: number;
  /** Jobs that an earlier run had added and not yet removed from the old system. */
  readonly known: number;
  readonly crons: number;
  /** Jobs that workers of the old system hold. */
  readonly active: number;
  readonly isAtomic: boolean;
  readonly refused: readonly Tally[];
  readonly changed: readonly Tally[];
  readonly notes: readonly string[];
  readonly isComplete: boolean;
}

/**
 * Producers may add jobs behind the position of a pass. Passes are repeated until one moves nothing, at most this
 * often: a producer that never stops must not keep the command running.
 */
const MOST_PASSES = 20;

/** Moves the crons and the jobs of an old system. Each batch is complete on its own, so a move can be repeated. */
export async function move(source: Source, target: MoveTarget, options: MoveOptions): Promise<MoveReport> {
  return new Move(source, target, options).run();
}

class Move {
  readonly #source: Source;
  readonly #target: MoveTarget;
  readonly #options: MoveOptions;
  readonly #refused = new Tallies<Refusal>(REFUSALS);
  readonly #changed = new Tallies<Change>(CHANGES);
  /** Refused crons are not read again in each pass. */
  readonly #refusedCrons = new Tallies<Refusal>(REFUSALS);
  #moved = 0;
  #known = 0;
  #crons = 0;

  constructor(source: Source, target: MoveTarget, options: MoveOptions) {
    this.#source = source;
    this.#target = target;
    this.#options = options;
  }

  async run(): Promise<MoveReport> {
    const { isDry, signal } = this.#options;
    const counts = await this.#source.counts();
    for (const cron of await this.#source.crons()) {
      if (signal.aborted) break;
      await this.#moveCron(cron);
    }
    for (let pass = 1; pass <= MOST_PASSES && !signal.aborted; pass++) {
      this.#refused.clear();
      const before = this.#moved + this.#known;
      await this.#pass(counts);
      if (isDry || this.#moved + this.#known === before) break;
    }
    const { active } = isDry ? counts : await this.#source.counts();
    return {
      moved: this.#moved,
      known: this.#known,
      crons: this.#crons,
      active,
      isAtomic: this.#source.isAtomic,
      refused: [...this.#refusedCrons.list(), ...this.#refused.list()],
      changed: this.#changed.list(),
      notes: this.#source.notes(),
      isComplete: !signal.aborted && active === 0 && this.#refused.total + this.#refusedCrons.total === 0,
    };
  }

  async #pass({ jobs }: SourceCounts): Promise<void> {
    const { isDry, signal, onProgress } = this.#options;
    for await (const batch of this.#source.pass({ isDry })) {
      try {
        await this.#moveBatch(batch);
      } catch (error) {
        // If the connection is gone, so is the lock, and the first error says more.
        await batch.release().catch(() => {});
        throw error;
      }
      const done = this.#moved + this.#known + this.#refused.total;
      onProgress(done, Math.max(jobs, done));
      if (signal.aborted) return;
    }
  }

  async #moveBatch(batch: SourceBatch): Promise<void> {
    const { isDry, by } = this.#options;
    const { tx } = batch;
    const good: { job: SourceJob; line: JobLine; changes: readonly Note<Change>[] }[] = [];
    for (const job of batch.jobs) {
      const { ruled } = job;
      if ("refused" in ruled) this.#refused.add(job.name, ruled.refused);
      else good.push({ job, line: ruled.value, changes: ruled.changes });
    }
    const results = await this.#target.importJobs(
      good.map(({ line }) => line),
      { dryRun: isDry, ...(tx === undefined ? { remember: this.#source.name } : { tx }), ...(by && { by }) },
    );
    const stored: ((typeof good)[number] & { isNew: boolean })[] = [];
    for (const [index, one] of good.entries()) {
      const { status, message = "" } = results[index] ?? { status: "invalid" };
      if (status === "invalid" || status === "duplicate")
        this.#refused.add(one.job.name, { reason: refusalOf(status, message), detail: message });
      else stored.push({ ...one, isNew: status === "created" });
    }
    const left = new Set(isDry ? [] : await batch.remove(stored.map(({ job }) => job)));
    if (isDry) await batch.release();
    const gone = stored.filter(({ job }) => !left.has(job));
    for (const { name } of left) this.#refused.add(name, { reason: "taken", detail: name });
    this.#count(stored.filter(({ isNew }) => isNew).length, gone.filter(({ isNew }) => !isNew).length);
    for (const { job, changes } of gone) for (const change of changes) this.#changed.add(job.name, change);
    if (tx === undefined && !isDry && gone.length > 0)
      await this.#target.importJobs([], {
        remember: this.#source.name,
        forget: gone.map(({ line }) => line.id),
      });
  }

  /** A known job counts when it is removed from the old system: one that stays is known in every pass. */
  #count(moved: number, known: number): void {
    this.#moved += moved;
    this.#known += known;
  }

  async #moveCron(cron: SourceCron): Promise<void> {
    const { ruled } = cron;
    if ("refused" in ruled) return this.#refusedCrons.add(cron.name, ruled.refused);
    const spec = ruled.value;
    try {
      const known = await this.#target.crons.get(spec.name);
      const isSame = known?.cron === spec.cron && known.zone === spec.zone && known.type === spec.type;
      if (known && !isSame)
        return this.#refusedCrons.add(cron.name, { reason: "cron_known", detail: spec.name });
      await this.#putCron(spec);
    } catch (error) {
      if (!(error instanceof CurfewError)) throw error;
      return this.#refusedCrons.add(cron.name, { reason: "cron_invalid", detail: error.message });
    }
    this.#crons += 1;
    for (const change of ruled.changes) this.#changed.add(cron.name, change);
    if (!this.#options.isDry) await cron.remove();
  }

  async #putCron({ name, type, queue, payload, priority, timeouts, retry, ...schedule }: CronSpec) {
    const { crons } = this.#target;
    const definition = defineJob({ type, queue });
    if (this.#options.isDry) {
      await crons.preview({ cron: schedule.cron, zone: schedule.zone }, { count: 1 });
      return;
    }
    const { by } = this.#options;
    const options = { priority, ...(timeouts && { timeouts }), ...(retry && { retry }) };
    await (by ? crons.as(by) : crons).putRemote(name, schedule, { definition, payload, options }, "keep");
  }
}

function refusalOf(status: "invalid" | "duplicate", message: string): Refusal {
  if (status === "duplicate") return "duplicate";
  if (/keep it under/.test(message)) return "too_large";
  return /use JSON as a text/.test(message) ? "not_json" : "invalid";
}
