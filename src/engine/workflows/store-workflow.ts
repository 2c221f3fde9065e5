import { CurfewError } from "../../core/errors.ts";
import type { NewJob } from "../../core/job/envelope.ts";
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

/** A workflow that is ready to be stored. */
export interface NewWorkflow {
  readonly id: string;
  readonly record: WorkflowRecord;
  readonly plan: Plan;
  readonly jobs: readonly NewJob[];
}

/**
 * Stores workflows, each with all its jobs or not at all. It commits units itself: a workflow is created within the
 * caller's `tx`, and after a lost reply it must recognise its own record.
 */
export class WorkflowIntake {
  readonly #parts: EngineContext;

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  /** False if there is another workflow of this id. */
  async store(workflow: NewWorkflow, tx: unknown): Promise<boolean> {
    return workflow.plan.start === undefined
      ? this.#storeAtOnce(workflow, tx)
      : this.#storeInPieces(workflow);
  }

  #storeAtOnce({ id, record, plan, jobs }: NewWorkflow, tx: unknown): Promise<boolean> {
    const effects = jobs.map((job): Effect => ({ enqueue: job }));
    const told = workflowEvents(this.#parts.recorder, id, record, record.startedAt);
    return this.#create(
      id,
      plan,
      [...told, WORKFLOWS.put(id, record, null), PLANS.put(id, plan, null), ...effects],
      tx,
    );
  }

  /**
   * More than one commit takes: the record says that it is not there yet, and its jobs wait, the first ones too. The
   * last commit makes it valid, and lets the first ones in. What is interrupted before is taken away by the keeper.
   */
  async #storeInPieces({ id, record, plan, jobs }: NewWorkflow): Promise<boolean> {
    const { clock } = this.#parts;
    const wakeAt = clock.now() + STARTS_WITHIN;
    const starting = WORKFLOWS.put(id, { ...record, phase: "starting" }, wakeAt);
    if (!(await this.#create(id, plan, [starting, PLANS.put(id, plan, null)], undefined))) return false;
    for (const page of pagesOf(jobs, BATCH_LIMIT)) {
      if (clock.now() >= wakeAt - STARTS_WITHIN / 2) throw notStored(id);
      await this.#enqueue(id, page);
    }
    const stored = await this.#repeat(id, () => WORKFLOWS.load(this.#parts.store, id));
    if (stored?.body.phase !== "starting") throw notStored(id);
    await this.#validate(stored, record, plan);
    return true;
  }

  async #enqueue(id: string, page: readonly NewJob[]): Promise<void> {
    const { store, clock, random } = this.#parts;
    let jobs = page;
    await this.#repeat(id, () => {
      const asked = store.jobs.enqueue(jobs, { now: clock.now() });
      // What is asked for again may be there already.
      jobs = page.map((job) => foundOr(job, random));
      return asked;
    });
  }

  async #validate(stored: StoredWorkflow, record: WorkflowRecord, plan: Plan): Promise<void> {
    const { name: id, version } = stored;
    const told = workflowEvents(this.#parts.recorder, id, record, record.startedAt);
    const effects: Effect[] = [...told, WORKFLOWS.put(id, record, null), { countdown: plan.start as string }];
    const unit: Unit = { when: [WORKFLOWS.guard(id, version)], effects };
    const isValid = await this.#repeat(id, async () => {
      const [outcome] = await commitUnits(this.#parts, [unit]);
      if (outcome?.ok) return true;
      // A lost reply looks like a conflict with oneself.
      const now = await WORKFLOWS.load(this.#parts.store, id);
      return now !== null && summaryOf(now) !== null;
    });
    if (!isValid) throw notStored(id);
  }

  #create(id: string, plan: Plan, effects: readonly Effect[], tx: unknown): Promise<boolean> {
    const unit: Unit = { when: [WORKFLOWS.guard(id, 0)], effects };
    const commit = async () => {
      const [outcome] = await commitUnits(this.#parts, [unit], tx === undefined ? {} : { tx });
      if (outcome?.ok) return true;
      const found = tx === undefined ? await WORKFLOWS.load(this.#parts.store, id) : null;
      if (found?.body.end === plan.end) return true;
      if (found && !summaryOf(found)) throw inPieces(id);
      return false;
    };
    return tx === undefined ? this.#repeat(id, commit) : commit();
  }

  async #repeat<Answer>(id: string, ask: () => Promise<Answer>): Promise<Answer> {
    const { system, storeFailed } = this.#parts;
    for (let tries = 1; ; tries++) {
      try {
        return await ask();
      } catch (error) {
        if (error instanceof CurfewError && error.code !== "store_failed") throw error;
        storeFailed(error, "workflow");
        if (tries === STORE_TRIES) throw notStored(id, error);
        await rest(system, backoff(tries, BACKOFF));
      }
    }
  }
}

/** Another start of the same id is under way, or was interrupted; what that has left is taken away after a while. */
function inPieces(id: string): CurfewError {
  return new CurfewError(
    "invalid_state",
    `workflow ${id} is being stored, or its start was interrupted and nothing of it will run; use another id`,
  );
}

function notStored(id: string, cause?: unknown): CurfewError {
  return new CurfewError(
    "store_failed",
    `the store did not confirm workflow ${id}; look whether it is there, and start it again if not`,
    cause === undefined ? {} : { cause },
  );
}
