import { deadlineBehind } from "../../core/job/deadlines.ts";
import { decide } from "../../core/job/decide.ts";
import { waitsForLimit } from "../../core/job/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import { jittered } from "../../core/pace.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { Effect, RecordRow, Unit } from "../../ports/store.ts";
import { admission, wakesOthers } from "../commit/decision-effects.ts";
import { type Decided, outsidersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { Loop } from "../runtime/loop.ts";
import type { RecordHandlers } from "./due-records.ts";

const LIMIT = 200;
/** How long a judge may take before another sweep gets the same row. */
const HOLD = 2_000;
const POLL = 1_000;
/** Deadlines a moment apart share a sweep: the moment is far below what a deadline may be late. */
const SHORTEST = 2;

/** Acts on jobs of workflows whose turn has come; answers when the first of them wants to be looked at again. */
type StepHandler = (rows: readonly JobRow[]) => Promise<Instant | null>;

function isReadyStep(row: JobRow): boolean {
  return row.options !== null && row.options.step?.waitsFor !== undefined;
}

interface SweptJob {
  readonly row: JobRow;
  readonly decision: Decided;
  readonly deadline: Instant | null;
}

/**
 * Acts on what is due: promotes scheduled jobs and ended backoffs, ends what waited or ran too long, and takes jobs
 * back from workers that have gone silent. Any engine may do it; the fence and revision of each row decide who wins.
 */
export class SweepLoop {
  readonly loop: Loop;
  readonly #parts: EngineContext;
  readonly #onReady: (queue: string) => void;
  readonly #recordHandlers: RecordHandlers;
  readonly #decideSteps: StepHandler;
  #nextWakeAt: Instant | null = null;
  /** What came up while a round was under way, whose answer from the store may know nothing of it. */
  #meanwhile: { wakeAt: Instant | null } | undefined;

  constructor(
    parts: EngineContext,
    onReady: (queue: string) => void,
    judges: RecordHandlers,
    judgeTurns: StepHandler,
  ) {
    this.#parts = parts;
    this.#recordHandlers = judges;
    this.#decideSteps = judgeTurns;
    this.#onReady = onReady;
    const { system, logger, storeFailed } = parts;
    this.loop = new Loop({
      name: "sweep",
      system,
      logger,
      round: () => this.round(),
      onError: (error) => storeFailed(error, "sweep"),
    });
  }

  /** Something may be due at this instant; a sweep that sleeps longer is woken for it. */
  wakeAt(at: Instant): void {
    if (this.#meanwhile) {
      this.#meanwhile.wakeAt = earlier(this.#meanwhile.wakeAt, at);
      return;
    }
    if (this.#nextWakeAt !== null && at >= this.#nextWakeAt) return;
    this.#nextWakeAt = at;
    this.loop.wake();
  }

  /** One round; it answers how long to rest. */
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
    const { clock, store, random, idlePollFactor: patience } = this.#parts;
    const now = clock.now();
    const swept = await store.jobs.sweep({ now, limit: LIMIT, holdUntil: now + HOLD });
    for (const [queue, count] of swept.ready) if (count > 0) this.#onReady(queue);
    const judgedWakeAt = swept.jobs.length > 0 ? await this.#decide(swept.jobs) : null;
    const recordsWakeAt = swept.records.length > 0 ? await this.#handleRecords(swept.records, now) : null;
    const foundWakeAt = earlier(judgedWakeAt, recordsWakeAt);
    this.#nextWakeAt = earlier(earlier(swept.nextWakeAt, foundWakeAt), meanwhile.wakeAt);
    if (swept.jobs.length + swept.records.length >= LIMIT) return 0;
    const rest = this.#nextWakeAt === null ? Number.POSITIVE_INFINITY : this.#nextWakeAt - clock.now();
    if (rest <= 0) return 0;
    return Math.min(Math.max(rest, SHORTEST), jittered(POLL * patience, random));
  }

  /** Answers when the first of the judged rows wants to be looked at again. */
  async #decide(due: readonly JobRow[]): Promise<Instant | null> {
    const turns = due.filter(isReadyStep);
    if (turns.length === 0) return this.#decideJobs(due);
    const wakeAt = await this.#decideSteps(turns);
    const rows = due.filter((row) => !isReadyStep(row));
    return rows.length === 0 ? wakeAt : earlier(wakeAt, await this.#decideJobs(rows));
  }

  async #decideJobs(rows: readonly JobRow[]): Promise<Instant | null> {
    const { clock, store, random, recorder } = this.#parts;
    const seen = await this.#workersSeen(rows);
    const now = clock.now();
    await this.#letThrough(rows, now);
    const decided: SweptJob[] = [];
    const units: Unit[] = [];
    for (const row of rows) {
      const seenAt = row.worker === null ? null : (seen.get(row.worker) ?? null);
      const decision = decide(row, { type: "wake", seenAt }, now, random);
      if (!decision.ok) continue;
      decided.push({ row, decision, deadline: deadlineBehind(decision.events[0]?.name, row, seenAt) });
      units.push(outsidersUnit(row, decision, undefined, recorder.recorded(row, decision, now)));
    }
    if (units.length === 0) return null;
    const outcomes = await store.commit(units, { now });
    let wakeAt: Instant | null = null;
    for (const [index, outcome] of outcomes.entries()) {
      // Whoever was faster has decided on a newer row, which may be due as well: a limit lets through what was judged here.
      if (!outcome.ok && outcome.because === "stale") wakeAt = earlier(wakeAt, now);
      if (!outcome.ok) continue;
      const one = decided[index] as SweptJob;
      this.#announce(one, now);
      wakeAt = earlier(wakeAt, one.decision.image.wakeAt);
      if (wakesOthers(one.row, one.decision)) wakeAt = earlier(wakeAt, now);
    }
    return wakeAt;
  }

  #announce({ row, decision, deadline }: SweptJob, now: Instant): void {
    const { counters, bus, waiters, tracing } = this.#parts;
    const { image, events } = decision;
    if (tracing && events.length > 0)
      tracing.ended(row, { state: image.state, events, at: now, committedAt: now });
    // The row's own wakeAt says nothing here: while a row is judged, it is when the next sweep may have it.
    if (deadline !== null) counters.fired(Math.max(0, now - deadline));
    counters.record(row, decision.events, now);
    bus.announce(row, decision.events, now);
    waiters.hint(row.id);
    if (decision.image.state === "available") this.#onReady(row.queue);
  }

  async #workersSeen(rows: readonly JobRow[]): Promise<ReadonlyMap<string, Instant>> {
    const ids = new Set<string>();
    for (const row of rows) if (row.worker !== null && row.startedAt !== null) ids.add(row.worker);
    if (ids.size === 0) return new Map();
    const records = await this.#parts.store.records.load([...ids].map((id) => ["worker", id] as const));
    return new Map(
      records
        .filter((record) => record !== null)
        .map((record) => [record.key[1], (record.body as { seenAt: number }).seenAt]),
    );
  }

  /** Each kind by its own judge; answers when the first of the records wants to be looked at again. */
  async #handleRecords(records: readonly RecordRow[], now: Instant): Promise<Instant | null> {
    let wakeAt: Instant | null = null;
    for (const [kind, ofKind] of Map.groupBy(records, ({ key }) => key[0])) {
      const judge = this.#recordHandlers[kind];
      if (judge) wakeAt = earlier(wakeAt, await judge(ofKind, now));
    }
    return wakeAt;
  }

  /** Whoever is turned away by a limit was first let through if there was room. */
  async #letThrough(rows: readonly JobRow[], now: Instant): Promise<void> {
    const limits = new Map<string, Effect>();
    for (const row of rows)
      if (waitsForLimit(row) && row.options?.limit?.onLimit)
        limits.set(row.limitKey as string, admission(row));
    if (limits.size > 0) await this.#parts.store.commit([{ effects: [...limits.values()] }], { now });
  }
}
