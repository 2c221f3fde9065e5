import { decide } from "../../core/job/decide/decide.ts";
import { waitsForLimit } from "../../core/job/decide/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import { deadlineBehind } from "../../core/job/policy/deadlines.ts";
import { jittered } from "../../core/pace.ts";
import { tenantOf } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { type Effect, type RecordRow, START_KIND, type Swept } from "../../ports/store.ts";
import { commitJobs, commitUnits } from "../commit/commit.ts";
import { admission, type DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";
import { WORKERS } from "../worker/worker-record.ts";
import type { RecordHandlers } from "./due-records.ts";

const LIMIT = 200;
/** How long a sweep may take to decide before another sweep gets the same row. */
const HOLD = 2_000;
/** The lookout finds what others made due. This poll is for the case that the lookout fails. */
const POLL = 300_000;
/** The shortest rest. Deadlines within it share a sweep; it is far below the lateness that is allowed. */
const SHORTEST = 2;

/** Acts on what is due of a tenant, within its scope. */
export interface DueTenants {
  ready(queue: string): void;
  /** Hands out due rows of tenants. Returns those of none. */
  handOut(due: DueRows, now: Instant): Promise<DueRows>;
}

export interface DueRows {
  readonly jobs: readonly JobRow[];
  readonly records: readonly RecordRow[];
}

/** Decides on ready steps of workflows. */
type StepHandler = (rows: readonly JobRow[]) => Promise<void>;

function isReadyStep(row: JobRow): boolean {
  return row.options !== null && row.options.step?.waitsFor !== undefined;
}

/** Whether a decision on this row may make it available: a step, or a job that comes to its limit. */
function mayOpen(row: JobRow): boolean {
  return isReadyStep(row) || (row.state !== "active" && row.options?.limit !== undefined);
}

/** A start that a rate no longer counts: its key may have room. */
function isStart({ key: [kind] }: RecordRow): boolean {
  return kind === START_KIND;
}

/**
 * Acts on due rows: promotes scheduled jobs and ended backoffs, ends jobs that waited or ran too long, and takes jobs from
 * silent workers. Every engine sweeps; the fence and revision of each row decide which one wins.
 */
export class SweepLoop {
  readonly loop: Loop;
  readonly #context: EngineContext;
  readonly #recordHandlers: RecordHandlers;
  readonly #decideSteps: StepHandler;
  readonly #tenants: DueTenants;
  #nextWakeAt: Instant | null = null;
  /** A sweep of the store under way, and the wake-ups since it began: its answer may be older than they are. */
  #asking: { readonly answer: Promise<unknown>; wakeAt: Instant | null } | undefined;
  #rounds = 0;
  /** What `promoteDue` got besides promoted jobs. */
  readonly #acting = new Set<Promise<void>>();
  /** Decisions under way that may make jobs available. */
  readonly #opening = new Set<Promise<void>>();

  constructor(
    context: EngineContext,
    recordHandlers: RecordHandlers,
    decideSteps: StepHandler,
    tenants: DueTenants,
  ) {
    this.#context = context;
    this.#tenants = tenants;
    this.#recordHandlers = recordHandlers;
    this.#decideSteps = decideSteps;
    this.loop = storeLoop(context, "sweep", () => this.round());
  }

  /** A row may be due at this instant. Wakes the loop if it would rest for longer. */
  wakeAt(at: Instant): void {
    if (this.#asking) {
      this.#asking.wakeAt = earlier(this.#asking.wakeAt, at);
      return;
    }
    // The loop rests until `#nextWakeAt`. If that has passed, the process stood still while the timer was set.
    if (this.#nextWakeAt !== null && at >= this.#nextWakeAt && !this.#isDue) return;
    this.#nextWakeAt = earlier(this.#nextWakeAt, at);
    // A round that acts on rows rests until then by itself.
    if (this.#rounds === 0) this.loop.wake();
  }

  /** Returns how many milliseconds to rest. */
  async round(): Promise<number> {
    this.#rounds += 1;
    try {
      const { swept, now } = await this.#ask();
      await this.#handOut(swept, now);
      return this.#rest(swept);
    } finally {
      this.#rounds -= 1;
    }
  }

  /**
   * Promotes what is due by now for a fetch that found nothing. It waits for decisions that may make jobs available, and not
   * for the loop, whose round may be busy with other due rows. Returns whether there may be jobs since the fetch looked.
   */
  async promoteDue(): Promise<boolean> {
    const underWay = this.#asking?.answer;
    await underWay;
    if (!this.#isDue) return (await this.#opened()) || underWay !== undefined;
    const failed = (error: unknown) => this.#context.storeFailed(error, "sweep");
    try {
      const { swept, now } = await this.#ask();
      const acting: Promise<void> = this.#handOut(swept, now)
        .catch(failed)
        .finally(() => this.#acting.delete(acting));
      this.#acting.add(acting);
    } catch (error) {
      failed(error);
      return false;
    }
    // Its timer may be set to a later instant than this answer named.
    if (this.#rounds === 0) this.loop.wake();
    await this.#opened();
    return true;
  }

  /** Returns whether there was anything to wait for. */
  async #opened(): Promise<boolean> {
    const opening = [...this.#opening];
    await Promise.all(opening);
    return opening.length > 0;
  }

  /** Resolves when nothing is acted on any more. */
  async stop(): Promise<void> {
    await this.loop.stop();
    await Promise.all(this.#acting);
  }

  get #isDue(): boolean {
    return this.#nextWakeAt !== null && this.#nextWakeAt <= this.#context.clock.now();
  }

  #rest({ jobs, records }: Swept): number {
    const { clock, random, idlePollFactor } = this.#context;
    if (jobs.length + records.length >= LIMIT) return 0;
    const rest = this.#nextWakeAt === null ? Number.POSITIVE_INFINITY : this.#nextWakeAt - clock.now();
    if (rest <= 0) return 0;
    return Math.min(Math.max(rest, SHORTEST), jittered(POLL * idlePollFactor, random));
  }

  /** One sweep of the store at a time, so the last answer is the newest. */
  async #ask(): Promise<{ readonly swept: Swept; readonly now: Instant }> {
    while (this.#asking) await this.#asking.answer;
    const { clock, store } = this.#context;
    const now = clock.now();
    const answer = store.jobs.sweep({ now, limit: LIMIT, holdUntil: now + HOLD });
    const asking = { answer: answer.catch(() => {}), wakeAt: null };
    this.#asking = asking;
    let nextWakeAt = this.#nextWakeAt;
    try {
      const swept = await answer;
      nextWakeAt = swept.nextWakeAt;
      for (const [queue, count] of swept.ready)
        if (count > 0) (tenantOf(queue) === undefined ? this.#context : this.#tenants).ready(queue);
      return { swept, now };
    } finally {
      this.#nextWakeAt = earlier(nextWakeAt, asking.wakeAt);
      this.#asking = undefined;
    }
  }

  /** Decisions that may make jobs available come first, because fetches wait for them. */
  async #handOut({ jobs, records }: Swept, now: Instant): Promise<void> {
    const first = this.#actOn({ jobs: jobs.filter(mayOpen), records: records.filter(isStart) }, now);
    const opening: Promise<void> = first.catch(() => {}).finally(() => this.#opening.delete(opening));
    this.#opening.add(opening);
    await first;
    const others = {
      jobs: jobs.filter((row) => !mayOpen(row)),
      records: records.filter((row) => !isStart(row)),
    };
    await this.#actOn(others, now);
  }

  async #actOn(due: DueRows, now: Instant): Promise<void> {
    if (due.jobs.length + due.records.length > 0) await this.act(await this.#tenants.handOut(due, now), now);
  }

  /** Acts on due rows within the scope of this engine. */
  async act({ jobs, records }: DueRows, now: Instant): Promise<void> {
    if (jobs.length > 0) await this.#decide(jobs, now);
    if (records.length > 0) await this.#handleRecords(records, now);
  }

  async #decide(due: readonly JobRow[], readAt: Instant): Promise<void> {
    const steps = due.filter(isReadyStep);
    if (steps.length > 0) await this.#decideSteps(steps);
    const rows = steps.length === 0 ? due : due.filter((row) => !isReadyStep(row));
    if (rows.length > 0) await this.#decideJobs(rows, readAt);
  }

  async #decideJobs(rows: readonly JobRow[], readAt: Instant): Promise<void> {
    const { clock, random, wakeSweepAt } = this.#context;
    const seen = await this.#workersSeen(rows);
    await this.#admit(rows);
    const now = clock.now();
    const decided: DecidedJob[] = [];
    for (const row of rows) {
      const seenAt = row.worker === null ? null : (seen.get(row.worker) ?? null);
      const decision = decide(row, { type: "wake", seenAt, readAt }, now, random);
      if (!decision.ok) continue;
      // Do not use `wakeAt` as the deadline: during a sweep it is the `holdUntil` of that sweep.
      const deadline = deadlineBehind(decision.events[0]?.name, row, seenAt);
      decided.push({ row, decision, at: now, by: "outsider", deadline });
    }
    const outcomes = await commitJobs(this.#context, decided);
    // The row changed after it was read, for example because its limit admitted it. The new row may be due too.
    if (outcomes.some((outcome) => !outcome.ok && outcome.because === "stale")) wakeSweepAt(now);
  }

  async #workersSeen(rows: readonly JobRow[]): Promise<ReadonlyMap<string, Instant>> {
    const ids = new Set<string>();
    for (const row of rows) if (row.worker !== null && row.startedAt !== null) ids.add(row.worker);
    if (ids.size === 0) return new Map();
    const records = await this.#context.store.records.load([...ids].map(WORKERS.key));
    return new Map(
      records.flatMap((record) => (record ? [[record.key[1], WORKERS.read(record).body.seenAt]] : [])),
    );
  }

  async #handleRecords(records: readonly RecordRow[], now: Instant): Promise<void> {
    for (const [kind, ofKind] of Map.groupBy(records, ({ key }) => key[0]))
      await this.#recordHandlers[kind]?.(ofKind, now);
  }

  /** Admits jobs first where the limit has room, so that `onLimit` drops or reschedules only jobs that do not fit. */
  async #admit(rows: readonly JobRow[]): Promise<void> {
    const limits = new Map<string, Effect>();
    for (const row of rows)
      if (waitsForLimit(row) && row.options?.limit?.onLimit)
        limits.set(row.limitKey as string, admission(row));
    if (limits.size > 0) await commitUnits(this.#context, [{ effects: [...limits.values()] }]);
  }
}
