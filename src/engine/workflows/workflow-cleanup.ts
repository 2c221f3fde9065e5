import { letGo } from "../../core/job/decision.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { jobsOf, type Plan, stepsOf } from "../../core/workflow/plan.ts";
import { forgetAt, type WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import type { RecordRow, Unit } from "../../ports/store.ts";
import { outsidersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { runLimited } from "../runtime/run-limited.ts";
import { halt } from "./cancel-steps.ts";
import { countSteps } from "./close-workflow.ts";
import {
  guardOf,
  loadPlan,
  loadWorkflow,
  pagesOf,
  planKey,
  putOf,
  resultKey,
  type StoredWorkflow,
  storedWorkflow,
  workflowKey,
} from "./workflow-records.ts";

/** How long storing a large workflow may take before what there is of it is taken away. */
export const STARTS_WITHIN = 600_000;
const BIG = 500;
const AT_ONCE = 8;
const TRIES = 20;

/**
 * Looks after the records of workflows: lets go of the jobs of those that have ended, finishes a cancellation that was
 * interrupted, takes away what an interrupted start has left, and forgets what need not be kept.
 */
export class WorkflowCleanup {
  readonly #parts: EngineContext;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  /** Answers when the first of them wants to be looked at again. */
  async clean(records: readonly RecordRow[]): Promise<Instant | null> {
    const due = records.map(storedWorkflow).filter(({ id }) => !this.#underWay.has(id));
    const wakes = await runLimited(due, AT_ONCE, (stored) => this.#look(stored));
    return wakes.reduce(earlier, null);
  }

  async flushed(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  async #look(stored: StoredWorkflow): Promise<Instant | null> {
    const { storeFailed } = this.#parts;
    const work = this.#keep(stored).catch((error) => storeFailed(error, "workflow"));
    if (stored.record.total < BIG) await work;
    else {
      const done = work.finally(() => this.#underWay.delete(stored.id));
      this.#underWay.set(stored.id, done);
    }
    return null;
  }

  async #keep(stored: StoredWorkflow): Promise<void> {
    const { phase } = stored.record;
    if (phase === "ending") await this.finish(stored);
    else if (phase === "kept") await this.#forget(stored);
    else if (phase === "starting" || phase === "abandoned") await this.#abandon(stored);
  }

  /** Brings a workflow whose state stands to its rest: nothing of it is live, counted on or held any more. */
  async finish(stored: StoredWorkflow): Promise<void> {
    const plan = await loadPlan(this.#parts.store, stored.id);
    if (!plan) return this.#forget(stored);
    const counted = stored.record.counts === null ? await this.#haltAll(stored, plan) : stored;
    if (!counted) return;
    await this.#letGo(plan);
    const record: WorkflowRecord = { ...counted.record, phase: "kept" };
    await this.#put(counted, record, forgetAt(record));
  }

  /** The rest of a cancelled workflow. How its steps ended is written down before any of them may go. */
  async #haltAll(stored: StoredWorkflow, plan: Plan): Promise<StoredWorkflow | null> {
    const { store } = this.#parts;
    await halt(this.#parts, stored, [plan.end]);
    await halt(this.#parts, stored, allOf(plan));
    const counted = { ...stored.record, counts: await countSteps(store, stepsOf(plan.root)) };
    if (!(await this.#put(stored, counted, this.#parts.clock.now()))) return null;
    return loadWorkflow(store, stored.id);
  }

  async #put(stored: StoredWorkflow, record: WorkflowRecord, wakeAt: Instant): Promise<boolean> {
    const { store, clock } = this.#parts;
    const unit: Unit = { when: [guardOf(stored)], effects: [putOf(stored.id, record, wakeAt)] };
    const [outcome] = await store.commit([unit], { now: clock.now() });
    if (outcome?.ok) this.#parts.wakeSweepAt(wakeAt);
    return outcome?.ok ?? false;
  }

  async #letGo({ root }: Plan): Promise<void> {
    const { store, clock } = this.#parts;
    for (const page of pagesOf(jobsOf(root))) {
      let isDone = false;
      for (let tries = 0; !isDone && tries < TRIES; tries++) {
        const now = clock.now();
        const rows = (await store.jobs.load(page)).filter((row) => row !== null);
        const units = rows.flatMap((row) => {
          const decision = letGo(row, now);
          return decision ? [outsidersUnit(row, decision)] : [];
        });
        const outcomes = units.length === 0 ? [] : await store.commit(units, { now });
        isDone = outcomes.every(({ ok }) => ok);
      }
    }
  }

  async #forget(stored: StoredWorkflow): Promise<void> {
    const { store, clock } = this.#parts;
    const keys = [workflowKey(stored.id), planKey(stored.id), resultKey(stored.id)];
    const unit: Unit = { when: [guardOf(stored)], effects: keys.map((key) => ({ delete: key })) };
    await store.commit([unit], { now: clock.now() });
  }

  /** Nobody has seen it yet. It is taken away twice: whoever was storing it may have been slower than all patience. */
  async #abandon(stored: StoredWorkflow): Promise<void> {
    const { store, clock } = this.#parts;
    const isFirst = stored.record.phase === "starting";
    const record: WorkflowRecord = { ...stored.record, phase: "abandoned" };
    if (isFirst && !(await this.#put(stored, record, clock.now() + STARTS_WITHIN))) return;
    const plan = await loadPlan(store, stored.id);
    if (plan)
      for (const page of pagesOf(allOf(plan))) {
        const rows = (await store.jobs.load(page)).filter((row) => row !== null);
        const units = rows.map(({ id, fence, rev }): Unit => ({ job: { id, fence, rev, drop: true } }));
        if (units.length > 0) await store.commit(units, { now: clock.now() });
      }
    if (!isFirst) await this.#forget(stored);
  }
}

function allOf({ root, start, end }: Plan): string[] {
  return [...(start === undefined ? [] : [start]), ...jobsOf(root), end];
}
