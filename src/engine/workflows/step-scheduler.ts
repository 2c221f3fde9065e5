import { decide } from "../../core/job/decide.ts";
import { isStepReady } from "../../core/job/decision.ts";
import type { JobId, JobRow, JsonText } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { type Ends, handedOn, isCompleted } from "../../core/workflow/outcome.ts";
import { finalsOf, type Plan, type PlanPosition, positionOf } from "../../core/workflow/plan.ts";
import type { Unit } from "../../ports/store.ts";
import { type Decided, outsidersUnit, withEvents } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { runLimited } from "../runtime/run-limited.ts";
import { halt, haltingDecision } from "./cancel-steps.ts";
import { closeWorkflow } from "./close-workflow.ts";
import { loadPlan, loadWorkflow, rowsOf, type StoredWorkflow } from "./workflow-records.ts";

/** Workflows from so many steps on are halted and closed beside the sweep, which has deadlines to keep. */
const BIG = 500;
const AT_ONCE = 8;

type NextPlace = Extract<PlanPosition, { before: unknown }>;

interface Ready {
  readonly row: JobRow;
  readonly decision: Decided;
  readonly unit: Unit;
  /** Whether somebody else may have been woken by it. */
  readonly wakes: boolean;
}

/**
 * Judges the jobs of workflows that were woken because all they wait for has ended. A step whose predecessors succeeded
 * gets their results and becomes available; otherwise its chain is halted. Everything is read from the jobs themselves
 * and written under their revisions, so any engine may do it, twice or after a crash.
 */
export class StepScheduler {
  readonly #parts: EngineContext;
  readonly #onReady: (queue: string) => void;
  readonly #underWay = new Map<JobId, Promise<void>>();

  constructor(parts: EngineContext, onReady: (queue: string) => void) {
    this.#parts = parts;
    this.#onReady = onReady;
  }

  /** Answers when the first of them wants to be looked at again. */
  async decide(rows: readonly JobRow[]): Promise<Instant | null> {
    const woken = rows.filter((row) => isStepReady(row) && !this.#underWay.has(row.id));
    const { ready, slow } = await this.#sort(woken);
    const wakeAt = await this.#commit(ready);
    const decided = await runLimited(slow, AT_ONCE, (row) => this.#decideSlow(row));
    return decided.reduce(earlier, wakeAt);
  }

  /** Resolves when nothing is judged beside the sweep any more. */
  async flushed(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  /** Steps that say themselves whom they come after need no plan, as long as all goes well. */
  async #sort(rows: readonly JobRow[]): Promise<{ ready: Ready[]; slow: JobRow[] }> {
    const ends = await this.#ends(rows.flatMap((row) => row.options?.step?.waitsFor?.after ?? []));
    const ready: Ready[] = [];
    const slow: JobRow[] = [];
    for (const row of rows) {
      const after = row.options?.step?.waitsFor?.after;
      const isGood = after?.every((id) => ends.get(id)?.state === "completed") ?? false;
      const reached =
        after && isGood && !this.#isOver(row) ? this.#reach(row, resultsOf(after, ends)) : undefined;
      if (reached) ready.push(reached);
      else slow.push(row);
    }
    return { ready, slow };
  }

  #isOver(row: JobRow): boolean {
    const endsAt = row.options?.step?.waitsFor?.endsAt;
    return endsAt !== undefined && this.#parts.clock.now() >= endsAt;
  }

  #reach(row: JobRow, results: JsonText): Ready {
    const { clock, random, documentLimit } = this.#parts;
    const decision = decide(row, { type: "unblock", results, limit: documentLimit }, clock.now(), random);
    return this.#unit(row, decision as Decided);
  }

  #unit(row: JobRow, decision: Decided): Ready {
    const { role } = row.options?.step?.waitsFor ?? {};
    // The batch of a callback is over once its callback is on its way: what comes of it changes nothing.
    const isReleased = role === "callback" && decision.image.finishedAt === null;
    const woken = isReleased ? (row.options?.step?.wakes ?? []) : [];
    const effects = woken.map((countdown) => ({ countdown }));
    // From now on its limit may let it through.
    if (row.limitKey !== null && decision.image.finishedAt === null) effects.push({ countdown: row.id });
    const unit = outsidersUnit(row, decision, { effects });
    const told = this.#parts.recorder.recorded(row, decision, this.#parts.clock.now());
    return { row, decision, wakes: unit.effects !== undefined, unit: withEvents(unit, told) };
  }

  async #commit(ready: readonly Ready[]): Promise<Instant | null> {
    if (ready.length === 0) return null;
    const { store, clock, counters, bus, waiters } = this.#parts;
    const now = clock.now();
    const outcomes = await store.commit(
      ready.map(({ unit }) => unit),
      { now },
    );
    let wakeAt: Instant | null = null;
    for (const [index, { row, decision, wakes }] of ready.entries()) {
      if (!outcomes[index]?.ok) continue;
      const { image, events } = decision;
      if (image.finishedAt === null) counters.enqueued(row.type, row.queue);
      counters.record(row, events, now);
      bus.announce(row, events, now);
      waiters.hint(row.id);
      if (image.state === "available") this.#onReady(row.queue);
      wakeAt = earlier(wakeAt, wakes ? now : image.wakeAt);
    }
    return wakeAt;
  }

  async #decideSlow(row: JobRow): Promise<Instant | null> {
    const found = row.workflow === null ? null : await loadWorkflow(this.#parts.store, row.workflow);
    const work = this.#decide(row, found).catch((error) => this.#parts.storeFailed(error, "workflow"));
    if ((found?.record.total ?? 0) < BIG) {
      await work;
      return this.#parts.clock.now();
    }
    this.#underWay.set(
      row.id,
      work.finally(() => {
        this.#underWay.delete(row.id);
        this.#parts.wakeSweepAt(this.#parts.clock.now());
      }),
    );
    return null;
  }

  async #decide(row: JobRow, stored: StoredWorkflow | null): Promise<void> {
    const plan = row.workflow === null ? null : await loadPlan(this.#parts.store, row.workflow);
    // A workflow that was cancelled, or never came to be, lets nobody run.
    if (!plan || stored?.record.state !== "running") return this.#end(row);
    if (plan.end === row.id) return closeWorkflow(this.#parts, row, plan);
    if (plan.start === row.id) return this.#end(row);
    const place = positionOf(plan.root, row.id);
    if (!place) return this.#decideFirst(row, plan);
    if ("callback" in place) {
      const ends = await this.#ends(finalsOf(place.batch));
      const isCalled =
        place.callback === "onComplete" ||
        isCompleted(place.batch, ends) === (place.callback === "onSuccess");
      if (!isCalled) return this.#end(row);
      await this.#commit([this.#reach(row, JSON.stringify(handedOn(place.batch, ends)))]);
      return;
    }
    await this.#decideNext(row, stored, place);
  }

  /** A first step of a workflow that was stored in pieces. */
  async #decideFirst(row: JobRow, plan: Plan): Promise<void> {
    if (this.#isOver(row)) return this.#end(row);
    if (plan.start !== undefined) await this.#commit([this.#reach(row, "[]")]);
  }

  async #decideNext(row: JobRow, stored: StoredWorkflow, { before, rest }: NextPlace): Promise<void> {
    const ends = await this.#ends(finalsOf(before));
    if (!isCompleted(before, ends)) return halt(this.#parts, stored, rest);
    // One whose time is over ends as the row that was looked at, which another judge may have let run in time; what
    // comes after it is woken by that, and halted.
    if (row.options?.step?.waitsFor?.role === "barrier" || this.#isOver(row)) return this.#end(row);
    await this.#commit([this.#reach(row, JSON.stringify(handedOn(before, ends)))]);
  }

  /** A turnstile that ends lets in whoever waits behind it; a step or callback is cancelled. */
  async #end(row: JobRow): Promise<void> {
    const decision = haltingDecision(this.#parts, row, this.#parts.clock.now());
    const isTold = decision.drop === undefined;
    await this.#commit([this.#unit(row, isTold ? decision : { ...decision, events: [] })]);
  }

  async #ends(ids: readonly JobId[]): Promise<Ends> {
    const ends = new Map<JobId, Pick<JobRow, "state" | "result">>();
    for await (const { id, state, result } of rowsOf(this.#parts.store, [...new Set(ids)]))
      ends.set(id, { state, result });
    return ends;
  }
}

/** Results are JSON texts already, and so is a list of them. */
function resultsOf(after: readonly JobId[], ends: Ends): JsonText {
  return `[${after.map((id) => ends.get(id)?.result ?? "null").join(",")}]`;
}
