import type { CronBody } from "../../../src/core/cron/cron.ts";
import { Instants, type Schedule } from "../../../src/core/cron/expression.ts";
import type { NewJob } from "../../../src/core/job/enqueue/envelope.ts";
import type { JobId, JobRow } from "../../../src/core/job/job.ts";
import { isTerminal } from "../../../src/core/job/lifecycle.ts";
import type { Effect, Store, Unit } from "../../../src/ports/store.ts";
import type { Trace } from "../trace.ts";
import { WorldChecker } from "../world-checker.ts";

/** A cron as the world planned it, and what was seen of it. */
export interface CronLedger {
  readonly name: string;
  readonly schedule: Schedule;
  readonly overlap: "allow" | "skip" | "cancel-previous";
  /** Every instant is run, even if all processes were away: nobody pauses or changes it. */
  readonly isComplete: boolean;
  /** When its first put was confirmed, at the latest. */
  knownAt: number | undefined;
  readonly fired: Map<number, JobId>;
  last: JobId | undefined;
}

/** A rule about unique jobs that the world enqueues under; `period` is null where a job blocks while it lives. */
export interface UniqueLedger {
  readonly type: string;
  readonly period: number | null;
  /** A finished job keeps nobody from replacing it. */
  readonly isReplaced: boolean;
  readonly jobs: { readonly id: JobId; readonly createdAt: number }[];
}

/** Watches the store from outside, and knows what must never happen. It goes by true time. */
export class CronChecker extends WorldChecker {
  readonly crons = new Map<string, CronLedger>();
  readonly uniques = new Map<string, UniqueLedger>();
  readonly #memory: Store;
  readonly #manual = new Set<JobId>();
  fired = 0;
  unique = 0;

  constructor(memory: Store, now: () => number, trace: Trace) {
    super(now, trace);
    this.#memory = memory;
  }

  /** The memory store does a call in one go, so what is loaded right before and after it is what it saw and made. */
  watch(store: Store): Store {
    return {
      ...store,
      commit: async (units, options) => {
        const outcomes = await store.commit(units, options);
        for (const [index, unit] of units.entries()) if (outcomes[index]?.ok) await this.#committed(unit);
        return outcomes;
      },
      jobs: {
        ...store.jobs,
        enqueue: async (jobs, options) => {
          const answers = await store.jobs.enqueue(jobs, options);
          for (const [index, job] of jobs.entries()) if (answers[index] === "created") await this.#added(job);
          return answers;
        },
      },
    };
  }

  async #committed({ effects = [] }: Unit): Promise<void> {
    for (const effect of effects) this.#put(effect);
    for (const effect of effects) if ("enqueue" in effect) await this.#added(effect.enqueue);
  }

  #put(effect: Effect): void {
    if (!("put" in effect) || effect.put[0] !== "cron") return;
    for (const { job, manual } of (effect.body as unknown as CronBody).runs)
      if (job !== undefined && manual) this.#manual.add(job);
    const ledger = this.crons.get(effect.put[1]);
    if (ledger) ledger.knownAt ??= Math.floor(this.now());
  }

  async #added(job: NewJob): Promise<void> {
    const [row] = await this.#memory.jobs.load([job.id]);
    if (!row) return;
    const name = job.options?.meta?.cron;
    const cron = typeof name === "string" ? this.crons.get(name) : undefined;
    if (cron) await this.#firedBy(cron, job);
    const unique = this.uniques.get(job.type);
    if (unique) await this.#addedUnder(unique, job);
  }

  async #firedBy(cron: CronLedger, job: NewJob): Promise<void> {
    const instant = Date.parse(String(job.options?.meta?.scheduledFor));
    this.trace.add("store", `${cron.name} adds ${job.id} for ${instant}`);
    const before = cron.last === undefined ? null : await this.#load(cron.last);
    cron.last = job.id;
    if (this.#manual.has(job.id)) return;
    this.fired += 1;
    if (instant > this.now())
      this.report("no cron fires early", `${cron.name} fired ${instant - this.now()} ms before its instant`);
    const twice = cron.fired.get(instant);
    if (twice !== undefined)
      this.report("one firing per instant", `${cron.name} fired twice for ${instant}: ${twice}, ${job.id}`);
    cron.fired.set(instant, job.id);
    if (cron.overlap !== "allow" && before && !isTerminal(before.state))
      this.report("runs do not overlap", `${cron.name} fired while ${before.id} is ${before.state}`);
  }

  async #addedUnder({ period, isReplaced, jobs, type }: UniqueLedger, job: NewJob): Promise<void> {
    this.unique += 1;
    for (const { id, createdAt } of jobs) {
      const row = await this.#load(id);
      const blocks =
        period === null || isReplaced
          ? !isTerminal(row.state)
          : row.state !== "cancelled" && row.state !== "discarded";
      if (blocks && (period === null || createdAt + period > this.now()))
        this.report("one job per unique key", `${type}: ${job.id} was added while ${id} is ${row.state}`);
    }
    jobs.push({ id: job.id, createdAt: job.createdAt });
  }

  async #load(id: JobId): Promise<JobRow> {
    const [row] = await this.#memory.jobs.load([id]);
    return row as JobRow;
  }

  /** What a producer was answered must be there. */
  async acknowledged(id: JobId): Promise<void> {
    const [row] = await this.#memory.jobs.load([id]);
    if (!row) this.report("no job is lost", `${id} was acknowledged`);
  }

  /** What must hold when all is calm. */
  checkEnd(until: number): void {
    for (const cron of this.crons.values()) {
      if (!cron.isComplete || cron.knownAt === undefined) continue;
      const instants = new Instants(cron.schedule);
      // A put counts from the engine's idea of now, which may lie a little before it is committed.
      for (let at = instants.after(cron.knownAt + 1_000); at !== null && at < until; at = instants.after(at))
        if (!cron.fired.has(at)) this.report("no instant is lost", `${cron.name} never fired for ${at}`);
    }
  }
}
