import { decide } from "../../core/job/decide.ts";
import { isStepReady } from "../../core/job/decision.ts";
import type { JobId, JobRow, JsonText } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import { type Ends, handedOn, isCompleted } from "../../core/workflow/outcome.ts";
import { finalsOf, type Plan, type PlanPosition, positionOf } from "../../core/workflow/plan.ts";
import { commitJobs } from "../commit/commit.ts";
import type { Decided, DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { runLimited } from "../runtime/run-limited.ts";
import { halt, haltingDecision } from "./cancel-steps.ts";
import { closeWorkflow } from "./close-workflow.ts";
import { loadPlan, rowsOf, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";

/** Workflows with at least this many steps are halted and closed beside the sweep, which has deadlines to keep. */
const BIG = 500;
const AT_ONCE = 8;

type NextPlace = Extract<PlanPosition, { before: unknown }>;

/**
 * Decides on steps of workflows that are ready: all steps that they depend on have ended. A step whose predecessors
 * succeeded gets their results and becomes available; otherwise its chain is halted. Everything is read from the jobs
 * themselves and written under their revisions, so any engine may do it, twice or after a crash. A step that changed
 * meanwhile is not tried again here: the sweep finds it again if it is still ready.
 */
export class StepScheduler {
  readonly #parts: EngineContext;
  readonly #underWay = new Map<JobId, Promise<void>>();

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  async decide(rows: readonly JobRow[]): Promise<void> {
    const woken = rows.filter((row) => isStepReady(row) && !this.#underWay.has(row.id));
    const { ready, slow } = await this.#sort(woken);
    await commitJobs(this.#parts, ready);
    await runLimited(slow, AT_ONCE, (row) => this.#decideSlow(row));
  }

  /** Resolves when nothing is decided beside the sweep any more. */
  async flushed(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  /** Steps that say themselves whom they come after need no plan, as long as all goes well. */
  async #sort(rows: readonly JobRow[]): Promise<{ ready: DecidedJob[]; slow: JobRow[] }> {
    const ends = await this.#ends(rows.flatMap((row) => row.options?.step?.waitsFor?.after ?? []));
    const ready: DecidedJob[] = [];
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

  #reach(row: JobRow, results: JsonText): DecidedJob {
    const { clock, random, documentLimit } = this.#parts;
    const now = clock.now();
    const decision = decide(row, { type: "unblock", results, limit: documentLimit }, now, random);
    return this.#job(row, decision as Decided, now);
  }

  #job(row: JobRow, decision: Decided, at: Instant): DecidedJob {
    const { role } = row.options?.step?.waitsFor ?? {};
    // The batch of a callback is over once its callback is on its way: what comes of it changes nothing.
    const isReleased = role === "callback" && decision.image.finishedAt === null;
    const woken = isReleased ? (row.options?.step?.wakes ?? []) : [];
    const effects = woken.map((countdown) => ({ countdown }));
    // From now on its limit may admit it.
    if (row.limitKey !== null && decision.image.finishedAt === null) effects.push({ countdown: row.id });
    return { row, decision, at, by: "outsider", effects };
  }

  async #decideSlow(row: JobRow): Promise<void> {
    const { store, clock, storeFailed, wakeSweepAt } = this.#parts;
    const found = row.workflow === null ? null : await WORKFLOWS.load(store, row.workflow);
    const work = this.#decide(row, found)
      .catch((error) => storeFailed(error, "workflow"))
      .finally(() => {
        this.#underWay.delete(row.id);
        wakeSweepAt(clock.now());
      });
    if ((found?.body.total ?? 0) < BIG) await work;
    else this.#underWay.set(row.id, work);
  }

  async #decide(row: JobRow, stored: StoredWorkflow | null): Promise<void> {
    const plan = row.workflow === null ? null : await loadPlan(this.#parts.store, row.workflow);
    // No step of a workflow that was cancelled, or never came to be, may run.
    if (!plan || stored?.body.state !== "running") return this.#end(row);
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
      await commitJobs(this.#parts, [this.#reach(row, JSON.stringify(handedOn(place.batch, ends)))]);
      return;
    }
    await this.#decideNext(row, stored, place);
  }

  /** A first step of a workflow that was stored in pieces. */
  async #decideFirst(row: JobRow, plan: Plan): Promise<void> {
    if (this.#isOver(row)) return this.#end(row);
    if (plan.start !== undefined) await commitJobs(this.#parts, [this.#reach(row, "[]")]);
  }

  async #decideNext(row: JobRow, stored: StoredWorkflow, { before, rest }: NextPlace): Promise<void> {
    const ends = await this.#ends(finalsOf(before));
    if (!isCompleted(before, ends)) return halt(this.#parts, stored, rest);
    // One whose time is over ends as the row that was looked at, which another judge may have let run in time; what
    // comes after it is woken by that, and halted.
    if (row.options?.step?.waitsFor?.role === "barrier" || this.#isOver(row)) return this.#end(row);
    await commitJobs(this.#parts, [this.#reach(row, JSON.stringify(handedOn(before, ends)))]);
  }

  /** Ends a turnstile, so that the steps behind it become ready; cancels a step or callback. */
  async #end(row: JobRow): Promise<void> {
    const now = this.#parts.clock.now();
    await commitJobs(this.#parts, [this.#job(row, haltingDecision(this.#parts, row, now), now)]);
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
