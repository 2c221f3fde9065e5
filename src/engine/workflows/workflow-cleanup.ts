import { letGo } from "../../core/job/decide/decision.ts";
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
import { AT_ONCE, WorkflowRuns } from "./workflow-runs.ts";

/** How long storing a large workflow may take before its jobs are deleted. */
export const STARTS_WITHIN = 600_000;

/**
 * Cleans up after workflows: releases the jobs of ended ones, finishes interrupted cancellations, and deletes
 * interrupted starts and workflows whose retention is over.
 */
export class WorkflowCleanup {
  readonly #context: EngineContext;
  readonly #runs: WorkflowRuns;

  constructor(context: EngineContext) {
    this.#context = context;
    this.#runs = new WorkflowRuns(context);
  }

  async clean(records: readonly RecordRow[]): Promise<void> {
    const due = records.map(WORKFLOWS.read).filter(({ name }) => !this.#runs.has(name));
    await runLimited(due, AT_ONCE, (stored) =>
      this.#runs.run(stored.name, stored.body.total, () => this.#clean(stored)),
    );
  }

  flushed(): Promise<void> {
    return this.#runs.flushed();
  }

  async #clean(stored: StoredWorkflow): Promise<void> {
    const { phase } = stored.body;
    if (phase === "ending") await this.finish(stored);
    else if (phase === "kept") await this.#forget(stored);
    else if (phase === "starting" || phase === "abandoned") await this.#abandon(stored);
  }

  /** Finishes a workflow whose state is final: ends its live jobs, counts its steps and releases its jobs. */
  async finish(stored: StoredWorkflow): Promise<void> {
    const plan = await loadPlan(this.#context.store, stored.name);
    if (!plan) return this.#forget(stored);
    const counted = stored.body.counts === null ? await this.#haltAll(stored, plan) : stored;
    if (!counted) return;
    await this.#letGo(plan);
    const record: WorkflowRecord = { ...counted.body, phase: "kept" };
    await this.#put(counted, record, forgetAt(record));
  }

  /** Cancels the rest of a workflow. The counts of its steps are stored before any step may be deleted. */
  async #haltAll(stored: StoredWorkflow, plan: Plan): Promise<StoredWorkflow | null> {
    const { store } = this.#context;
    await halt(this.#context, stored, [plan.end]);
    await halt(this.#context, stored, allOf(plan));
    const counted = { ...stored.body, counts: await countSteps(store, stepsOf(plan.root)) };
    if (!(await this.#put(stored, counted, this.#context.clock.now()))) return null;
    return WORKFLOWS.load(store, stored.name);
  }

  /** No changeRecord: if the workflow changed since it was read, another process has taken over. */
  async #put({ name, version }: StoredWorkflow, record: WorkflowRecord, wakeAt: Instant): Promise<boolean> {
    const unit = { when: [WORKFLOWS.guard(name, version)], effects: [WORKFLOWS.put(name, record, wakeAt)] };
    const [outcome] = await commitUnits(this.#context, [unit]);
    if (outcome?.ok) this.#context.wakeSweepAt(wakeAt);
    return outcome?.ok ?? false;
  }

  async #letGo({ root }: Plan): Promise<void> {
    const { store, clock } = this.#context;
    for (const page of pagesOf(jobsOf(root))) {
      let isDone = false;
      for (let tries = 0; !isDone && tries < STALE_TRIES; tries++) {
        const at = clock.now();
        const rows = await store.jobs.load(page, { isBrief: true });
        const jobs = rows.flatMap((row): DecidedJob[] => {
          const decision = row && letGo(row, at);
          return decision ? [{ row, decision, at, by: "outsider" }] : [];
        });
        isDone = (await commitJobs(this.#context, jobs)).every(({ ok }) => ok);
      }
    }
  }

  async #forget({ name, version }: StoredWorkflow): Promise<void> {
    const effects = [WORKFLOWS, PLANS, RESULTS].map((kind) => kind.remove(name));
    await commitUnits(this.#context, [{ when: [WORKFLOWS.guard(name, version)], effects }]);
  }

  /** Deletes an interrupted start. Runs twice, ten minutes apart: a slow process may store jobs after the first run. */
  async #abandon(stored: StoredWorkflow): Promise<void> {
    const { store, clock } = this.#context;
    const isFirst = stored.body.phase === "starting";
    const record: WorkflowRecord = { ...stored.body, phase: "abandoned" };
    if (isFirst && !(await this.#put(stored, record, clock.now() + STARTS_WITHIN))) return;
    const plan = await loadPlan(store, stored.name);
    if (plan)
      for (const page of pagesOf(allOf(plan))) {
        const rows = (await store.jobs.load(page, { isBrief: true })).filter((row) => row !== null);
        await commitUnits(
          this.#context,
          rows.map((row) => removalOf(row)),
        );
      }
    if (!isFirst) await this.#forget(stored);
  }
}

function allOf({ root, start, end }: Plan): string[] {
  return [...(start === undefined ? [] : [start]), ...jobsOf(root), end];
}
