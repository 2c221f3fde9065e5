import { deadlineBehind } from "../../core/job/deadlines.ts";
import { decide } from "../../core/job/decide.ts";
import { waitsForLimit } from "../../core/job/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import { jittered } from "../../core/pace.ts";
import { tenantOf } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Effect, RecordRow } from "../../ports/store.ts";
import { commitJobs, commitUnits } from "../commit/commit.ts";
import { admission, type DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { type Loop, storeLoop } from "../runtime/loop.ts";
import { WORKERS } from "../worker/worker-record.ts";
import type { RecordHandlers } from "./due-records.ts";

const LIMIT = 200;
/** How long a sweep may take to decide before another sweep gets the same row. */
const HOLD = 2_000;
/** The lookout finds what others made due. This is a net below it. */
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
  /** Wake-ups that `wakeAt` got during a round. The store's answer may be older than they are. */
  #meanwhile: { wakeAt: Instant | null } | undefined;

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
    if (this.#meanwhile) {
      this.#meanwhile.wakeAt = earlier(this.#meanwhile.wakeAt, at);
      return;
    }
    if (this.#nextWakeAt !== null && at >= this.#nextWakeAt) return;
    this.#nextWakeAt = at;
    this.loop.wake();
  }

  /** Returns how many milliseconds to rest. */
  async round(): Promise<number> {
    const meanwhile = { wakeAt: null };
    this.#meanwhile = meanwhile;
    try {
      return await this.#sweep(meanwhile);
    } finally {
      if (this.#meanwhile === meanwhile) this.#meanwhile = undefined;
    }
  }

  async #sweep(meanwhile: { readonly wakeAt: Instant | null }): Promise<number> {
    const { clock, store, random, idlePollFactor } = this.#context;
    const now = clock.now();
    const swept = await store.jobs.sweep({ now, limit: LIMIT, holdUntil: now + HOLD });
    for (const [queue, count] of swept.ready)
      if (count > 0) (tenantOf(queue) === undefined ? this.#context : this.#tenants).ready(queue);
    if (swept.jobs.length + swept.records.length > 0)
      await this.act(await this.#tenants.handOut(swept, now), now);
    this.#nextWakeAt = earlier(swept.nextWakeAt, meanwhile.wakeAt);
    if (swept.jobs.length + swept.records.length >= LIMIT) return 0;
    const rest = this.#nextWakeAt === null ? Number.POSITIVE_INFINITY : this.#nextWakeAt - clock.now();
    if (rest <= 0) return 0;
    return Math.min(Math.max(rest, SHORTEST), jittered(POLL * idlePollFactor, random));
  }

  /** Acts on due rows within the scope of this engine. */
  async act({ jobs, records }: DueRows, now: Instant): Promise<void> {
    if (jobs.length > 0) await this.#decide(jobs);
    if (records.length > 0) await this.#handleRecords(records, now);
  }

  async #decide(due: readonly JobRow[]): Promise<void> {
    const steps = due.filter(isReadyStep);
    if (steps.length > 0) await this.#decideSteps(steps);
    const rows = steps.length === 0 ? due : due.filter((row) => !isReadyStep(row));
    if (rows.length > 0) await this.#decideJobs(rows);
  }

  async #decideJobs(rows: readonly JobRow[]): Promise<void> {
    const { clock, random, wakeSweepAt } = this.#context;
    const seen = await this.#workersSeen(rows);
    await this.#admit(rows);
    const now = clock.now();
    const decided: DecidedJob[] = [];
    for (const row of rows) {
      const seenAt = row.worker === null ? null : (seen.get(row.worker) ?? null);
      const decision = decide(row, { type: "wake", seenAt }, now, random);
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
