import { letGo } from "../../core/job/decision.ts";
import type { Instant } from "../../core/time.ts";
import { jobsOf, type Plan, stepsOf } from "../../core/workflow/plan.ts";
import { forgetAt, type WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import type { RecordRow } from "../../ports/store.ts";
import { commitJobs, commitUnits, STALE_TRIES } from "../commit/commit.ts";
import { type DecidedJob, removalOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { runLimited } from "../runtime/run-limited.ts";
import { halt } from "./cancel-steps.ts";
import { countSteps } from "./close-workflow.ts";
import { loadPlan, PLANS, pagesOf, RESULTS, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";

/** How long storing a large workflow may take before its jobs are deleted. */
export const STARTS_WITHIN = 600_000;
const BIG = 500;
const AT_ONCE = 8;

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

  async clean(records: readonly RecordRow[]): Promise<void> {
    const due = records.map(WORKFLOWS.read).filter(({ name }) => !this.#underWay.has(name));
    await runLimited(due, AT_ONCE, (stored) => this.#look(stored));
  }

  async flushed(): Promise<void> {
    await Promise.all(this.#underWay.values());
  }

  async #look(stored: StoredWorkflow): Promise<void> {
    const { storeFailed } = this.#parts;
    const work = this.#keep(stored)
      .catch((error) => storeFailed(error, "workflow"))
      .finally(() => this.#underWay.delete(stored.name));
    if (stored.body.total < BIG) await work;
    else this.#underWay.set(stored.name, work);
  }

  async #keep(stored: StoredWorkflow): Promise<void> {
    const { phase } = stored.body;
    if (phase === "ending") await this.finish(stored);
    else if (phase === "kept") await this.#forget(stored);
    else if (phase === "starting" || phase === "abandoned") await this.#abandon(stored);
  }

  /** Brings a workflow whose state stands to its rest: nothing of it is live, counted on or held any more. */
  async finish(stored: StoredWorkflow): Promise<void> {
    const plan = await loadPlan(this.#parts.store, stored.name);
    if (!plan) return this.#forget(stored);
    const counted = stored.body.counts === null ? await this.#haltAll(stored, plan) : stored;
    if (!counted) return;
    await this.#letGo(plan);
    const record: WorkflowRecord = { ...counted.body, phase: "kept" };
    await this.#put(counted, record, forgetAt(record));
  }

  /** The rest of a cancelled workflow. How its steps ended is written down before any of them may go. */
  async #haltAll(stored: StoredWorkflow, plan: Plan): Promise<StoredWorkflow | null> {
    const { store } = this.#parts;
    await halt(this.#parts, stored, [plan.end]);
    await halt(this.#parts, stored, allOf(plan));
    const counted = { ...stored.body, counts: await countSteps(store, stepsOf(plan.root)) };
    if (!(await this.#put(stored, counted, this.#parts.clock.now()))) return null;
    return WORKFLOWS.load(store, stored.name);
  }

  /** No changeRecord: if the workflow changed since it was read, another process went on from there. */
  async #put({ name, version }: StoredWorkflow, record: WorkflowRecord, wakeAt: Instant): Promise<boolean> {
    const unit = { when: [WORKFLOWS.guard(name, version)], effects: [WORKFLOWS.put(name, record, wakeAt)] };
    const [outcome] = await commitUnits(this.#parts, [unit]);
    if (outcome?.ok) this.#parts.wakeSweepAt(wakeAt);
    return outcome?.ok ?? false;
  }

  async #letGo({ root }: Plan): Promise<void> {
    const { store, clock } = this.#parts;
    for (const page of pagesOf(jobsOf(root))) {
      let isDone = false;
      for (let tries = 0; !isDone && tries < STALE_TRIES; tries++) {
        const at = clock.now();
        const rows = await store.jobs.load(page);
        const jobs = rows.flatMap((row): DecidedJob[] => {
          const decision = row && letGo(row, at);
          return decision ? [{ row, decision, at, by: "outsider" }] : [];
        });
        isDone = (await commitJobs(this.#parts, jobs)).every(({ ok }) => ok);
      }
    }
  }

  async #forget({ name, version }: StoredWorkflow): Promise<void> {
    const effects = [WORKFLOWS, PLANS, RESULTS].map((kind) => kind.remove(name));
    await commitUnits(this.#parts, [{ when: [WORKFLOWS.guard(name, version)], effects }]);
  }

  /**
   * Deletes what an interrupted start left. Runs twice, ten minutes apart: a slow process may store more jobs after the
   * first run.
   */
  async #abandon(stored: StoredWorkflow): Promise<void> {
    const { store, clock } = this.#parts;
    const isFirst = stored.body.phase === "starting";
    const record: WorkflowRecord = { ...stored.body, phase: "abandoned" };
    if (isFirst && !(await this.#put(stored, record, clock.now() + STARTS_WITHIN))) return;
    const plan = await loadPlan(store, stored.name);
    if (plan)
      for (const page of pagesOf(allOf(plan))) {
        const rows = (await store.jobs.load(page)).filter((row) => row !== null);
        await commitUnits(
          this.#parts,
          rows.map((row) => removalOf(row)),
        );
      }
    if (!isFirst) await this.#forget(stored);
  }
}

function allOf({ root, start, end }: Plan): string[] {
  return [...(start === undefined ? [] : [start]), ...jobsOf(root), end];
}
