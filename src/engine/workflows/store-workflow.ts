import { CurfewError } from "../../core/errors.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { backoff } from "../../core/pace.ts";
import type { Plan } from "../../core/workflow/plan.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import { BATCH_LIMIT, type Effect, type Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import { commitUnits, STORE_TRIES } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { foundOr } from "../enqueue/enqueue-batches.ts";
import { workflowEvents } from "./announce-workflow.ts";
import { STARTS_WITHIN } from "./workflow-cleanup.ts";
import { PLANS, pagesOf, type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";
import { summaryOf } from "./workflow-view.ts";

const BACKOFF = { first: 25, factor: 4, most: 400 };

export interface NewWorkflow {
  readonly id: string;
  readonly record: WorkflowRecord;
  readonly plan: Plan;
  readonly jobs: readonly NewJob[];
}

/**
 * Stores workflows, each with all its jobs or not at all. No changeRecord: a workflow may be created in the caller's
 * `tx`, and after a lost reply it must recognise its own record.
 */
export class WorkflowIntake {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** False if a workflow with this id exists. */
  async store(workflow: NewWorkflow, tx: unknown): Promise<boolean> {
    await this.#context.admit?.(workflow.jobs);
    return workflow.plan.start === undefined
      ? this.#storeAtOnce(workflow, tx)
      : this.#storeInPieces(workflow);
  }

  #storeAtOnce({ id, record, plan, jobs }: NewWorkflow, tx: unknown): Promise<boolean> {
    const effects = jobs.map((job): Effect => ({ enqueue: job }));
    const events = workflowEvents(this.#context.recorder, id, record, record.startedAt);
    return this.#create(
      id,
      plan,
      [...events, WORKFLOWS.put(id, record, null), PLANS.put(id, plan, null), ...effects],
      tx,
    );
  }

  /**
   * Stores a workflow that needs several commits. Its record is in phase "starting", and all its jobs wait. The last
   * commit makes it valid and unblocks the first steps. The cleanup deletes what an interrupted start left.
   */
  async #storeInPieces({ id, record, plan, jobs }: NewWorkflow): Promise<boolean> {
    const { clock } = this.#context;
    const wakeAt = clock.now() + STARTS_WITHIN;
    const starting = WORKFLOWS.put(id, { ...record, phase: "starting" }, wakeAt);
    if (!(await this.#create(id, plan, [starting, PLANS.put(id, plan, null)], undefined))) return false;
    for (const page of pagesOf(jobs, BATCH_LIMIT)) {
      if (clock.now() >= wakeAt - STARTS_WITHIN / 2) throw notStored(id);
      await this.#enqueue(id, page);
    }
    const stored = await this.#repeat(id, () => WORKFLOWS.load(this.#context.store, id));
    if (stored?.body.phase !== "starting") throw notStored(id);
    await this.#validate(stored, record, plan);
    return true;
  }

  async #enqueue(id: string, page: readonly NewJob[]): Promise<void> {
    const { store, clock, random } = this.#context;
    let jobs = page;
    await this.#repeat(id, () => {
      const answers = store.jobs.enqueue(jobs, { now: clock.now() });
      // A repeated enqueue may find its own jobs.
      jobs = page.map((job) => foundOr(job, random));
      return answers;
    });
  }

  async #validate(stored: StoredWorkflow, record: WorkflowRecord, plan: Plan): Promise<void> {
    const { name: id, version } = stored;
    const events = workflowEvents(this.#context.recorder, id, record, record.startedAt);
    const effects: Effect[] = [
      ...events,
      WORKFLOWS.put(id, record, null),
      { countdown: plan.start as string },
    ];
    const unit: Unit = { when: [WORKFLOWS.guard(id, version)], effects };
    const isValid = await this.#repeat(id, async () => {
      const [outcome] = await commitUnits(this.#context, [unit]);
      if (outcome?.ok) return true;
      // After a lost reply, the repeated commit conflicts with the first one.
      const now = await WORKFLOWS.load(this.#context.store, id);
      return now !== null && summaryOf(now) !== null;
    });
    if (!isValid) throw notStored(id);
  }

  #create(id: string, plan: Plan, effects: readonly Effect[], tx: unknown): Promise<boolean> {
    const unit: Unit = { when: [WORKFLOWS.guard(id, 0)], effects };
    const commit = async () => {
      const [outcome] = await commitUnits(this.#context, [unit], tx === undefined ? {} : { tx });
      if (outcome?.ok) return true;
      const existing = tx === undefined ? await WORKFLOWS.load(this.#context.store, id) : null;
      if (existing?.body.end === plan.end) return true;
      if (existing && !summaryOf(existing)) throw stillStarting(id);
      return false;
    };
    return tx === undefined ? this.#repeat(id, commit) : commit();
  }

  async #repeat<Answer>(id: string, call: () => Promise<Answer>): Promise<Answer> {
    const { system, storeFailed } = this.#context;
    for (let tries = 1; ; tries++) {
      try {
        return await call();
      } catch (error) {
        if (error instanceof CurfewError && error.code !== "store_failed") throw error;
        storeFailed(error, "workflow");
        if (tries === STORE_TRIES) throw notStored(id, error);
        await rest(system, backoff(tries, BACKOFF));
      }
    }
  }
}

/** The workflow with this id is being stored, or its start was interrupted. The cleanup deletes it later. */
function stillStarting(id: string): CurfewError {
  return new CurfewError(
    "invalid_state",
    `start: workflow ${id} is being stored, or its start was interrupted and it will never run; use another id`,
  );
}

function notStored(id: string, cause?: unknown): CurfewError {
  return new CurfewError(
    "store_failed",
    `start: the store did not confirm workflow ${id}; load it, and start it again if it is not there`,
    cause === undefined ? {} : { cause },
  );
}
