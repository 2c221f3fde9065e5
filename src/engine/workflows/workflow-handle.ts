import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { isStepReady } from "../../core/job/decide/decision.ts";
import { openedDeep, openedRow } from "../../core/job/documents/sealed.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { type Job, jobView } from "../../core/job/job-view.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, formatDuration, type Instant, parseDuration } from "../../core/time.ts";
import { stepsOf } from "../../core/workflow/plan.ts";
import type { StepCounts, WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import { BATCH_LIMIT, type Store } from "../../ports/store.ts";
import { changeRecord, type RecordChange } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { announceWorkflow, workflowEvents } from "./announce-workflow.ts";
import { countsOf } from "./close-workflow.ts";
import { StepScheduler } from "./step-scheduler.ts";
import type { WorkflowCleanup } from "./workflow-cleanup.ts";
import { WorkflowFailedError } from "./workflow-failed-error.ts";
import { briefRowsOf, loadPlan, RESULTS, WORKFLOWS, type WorkflowResult } from "./workflow-records.ts";
import { summaryOf, type WorkflowSummary, type WorkflowView } from "./workflow-view.ts";

const POLL = 1_000;
/** A reader decides on the steps of workflows up to this size, and on as many that follow each other. */
const MOST_DECIDED = 100;
const MOST_ROUNDS = 4;

/** A workflow that was started, or named by its id. */
export class WorkflowHandle<Result = unknown> {
  readonly id: string;
  /** A workflow with this id existed: this handle names it, and nothing was added. */
  readonly duplicate: boolean;
  readonly #context: EngineContext;
  readonly #cleanup: WorkflowCleanup;

  constructor(context: EngineContext, cleanup: WorkflowCleanup, id: string, duplicate: boolean) {
    this.#context = context;
    this.#cleanup = cleanup;
    this.id = id;
    this.duplicate = duplicate;
  }

  /**
   * The workflow with the counts of its ended steps; null if it is not in the store. Steps that became ready wait for the
   * sweep. This call decides on them, so that its answer has what follows from the steps that have ended.
   */
  async view(): Promise<WorkflowView | null> {
    for (let round = 0; ; round++) {
      const stored = await WORKFLOWS.load(this.#context.store, this.id);
      const summary = stored && summaryOf(stored);
      if (!stored || !summary) return null;
      const { counts, ready } = stored.body.counts
        ? { counts: stored.body.counts, ready: [] }
        : await this.#look(stored.body.end);
      const isSettled = ready.length === 0 || round >= MOST_ROUNDS || summary.total > MOST_DECIDED;
      if (isSettled || !(await this.#decide(ready)))
        return { ...summary, progress: { total: summary.total, ...counts } };
    }
  }

  /** The ended steps by state, and the steps that wait for a decision; `end` is the job that ends the workflow. */
  async #look(end: JobId): Promise<{ counts: StepCounts; ready: readonly JobId[] }> {
    const { store } = this.#context;
    const plan = await loadPlan(store, this.id);
    const steps = plan ? stepsOf(plan.root) : [];
    const ready: JobId[] = [];
    const rows: Pick<JobRow, "state">[] = [];
    for await (const { id, state, needs, limitKey } of briefRowsOf(store, [...steps, end])) {
      if (state === "pending" && needs === (limitKey === null ? 0 : 1)) ready.push(id);
      if (id !== end) rows.push({ state });
    }
    return { counts: countsOf(rows), ready };
  }

  /** False if nothing was decided: these jobs wait for something else, or the store failed. */
  async #decide(ids: readonly JobId[]): Promise<boolean> {
    const rows = await this.#context.store.jobs.load(ids);
    const ready = rows.filter((row): row is JobRow => row !== null && isStepReady(row));
    if (ready.length === 0) return false;
    return new StepScheduler(this.#context).decide(ready).then(
      () => true,
      () => false,
    );
  }

  /** The jobs of its steps in the order in which they were written; null for a job that is not in the store. */
  async steps(page: StepsPage = {}): Promise<(Job | null)[]> {
    return (await stepRows(this.#context.store, this.id, page)).map(
      (row) => row && jobView(openedRow(this.#context.sealing, row)),
    );
  }

  /** Cancels its running steps and its waiting ones. Refused if it has ended. */
  async cancel(by?: By): Promise<WorkflowSummary> {
    const { store, bus, waiters, wakeSweepAt } = this.#context;
    const changed = await changeRecord(this.#context, "cancel", WORKFLOWS, this.id, (before, now) =>
      this.#cancelled(before, now, by),
    );
    const record = changed?.body as WorkflowRecord;
    const endedAt = record.endedAt as Instant;
    announceWorkflow(bus, this.id, record, endedAt);
    waiters.hint(record.end);
    const stored = await WORKFLOWS.load(store, this.id);
    if (stored?.body.phase === "ending") await this.#cleanup.finish(stored);
    wakeSweepAt(endedAt);
    return summaryOf({ name: this.id, body: record }) as WorkflowSummary;
  }

  #cancelled(before: WorkflowRecord | null, now: Instant, by: By | undefined): RecordChange<WorkflowRecord> {
    const running = this.#assertFound("cancel", before);
    if (running.state !== "running")
      throw new CurfewError(
        "invalid_state",
        `cancel: workflow ${this.id} is ${running.state}; only running workflows can be cancelled`,
      );
    const body: WorkflowRecord = { ...running, state: "cancelled", phase: "ending", endedAt: now };
    const about = { details: { workflow: this.id } };
    const effects = [
      ...workflowEvents(this.#context.recorder, this.id, body, now),
      ...auditEffects(this.#context, by && parseBy(by), "workflow.cancel", about, now),
    ];
    // Due at once: if this process dies, another one finishes it.
    return { body, wakeAt: now, effects };
  }

  async #load(call: string): Promise<WorkflowRecord> {
    const stored = await WORKFLOWS.load(this.#context.store, this.id);
    return this.#assertFound(call, stored?.body ?? null);
  }

  #assertFound(call: string, body: WorkflowRecord | null): WorkflowRecord {
    if (body && summaryOf({ name: this.id, body })) return body;
    throw new CurfewError(
      "not_found",
      `${call}: there is no workflow ${this.id}; the id is wrong, or its retention is over`,
    );
  }

  /**
   * The result of the workflow: of its step, of the last node of its chain, or a list for a group or batch. Rejects
   * with a WorkflowFailedError if it ended without success, with `result_gone` if the result is not stored, and with
   * `result_timeout` after `within`; the workflow itself goes on.
   */
  async result(options: WaitOptions = {}): Promise<Result> {
    const { value } = await this.#stored(options);
    return openedDeep(this.#context.sealing, value) as Result;
  }

  /** The result as people may see it: servers send this one. What is encrypted stays so. */
  async visibleResult(options: WaitOptions = {}): Promise<Json> {
    const { value, visible } = await this.#stored(options);
    return visible === undefined ? value : visible;
  }

  async #stored(options: WaitOptions): Promise<WorkflowResult> {
    refuseUnknownKeys(options, "result", ["within", "signal"]);
    const within = options.within === undefined ? undefined : parseDuration(options.within, "result.within");
    const { system } = this.#context;
    const startedAt = system.monotonic();
    for (;;) {
      options.signal?.throwIfAborted();
      const record = await this.#load("result");
      if (record.state !== "running") return this.#resultOf(record);
      if (this.#context.waiters.isClosed)
        throw new CurfewError(
          "closed",
          `result: the engine was closed before workflow ${this.id} ended; the workflow goes on`,
        );
      const left = within === undefined ? POLL : within - (system.monotonic() - startedAt);
      if (left <= 0)
        throw new CurfewError(
          "result_timeout",
          `result: workflow ${this.id} did not end within ${formatDuration(within as number)}; it goes on: ask again, or allow more time`,
        );
      await this.#waitForHint(record.end, Math.min(left, POLL), options.signal);
    }
  }

  /** Waits for a hint that the workflow may have ended, at most for `delay`. */
  #waitForHint(end: string, delay: number, signal: AbortSignal | undefined): Promise<void> {
    const { system, waiters } = this.#context;
    return new Promise((resolve) => {
      const wake = () => {
        timer.cancel();
        off();
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      const timer = system.after(delay, wake, { keepAlive: true });
      const off = waiters.add(end, wake);
      signal?.addEventListener("abort", wake, { once: true });
    });
  }

  async #resultOf(record: WorkflowRecord): Promise<WorkflowResult> {
    if (record.state !== "completed") throw new WorkflowFailedError(this.id, record);
    const result = record.isResultKept ? await RESULTS.load(this.#context.store, this.id) : null;
    if (result) return result.body;
    throw new CurfewError(
      "result_gone",
      `result: the result of workflow ${this.id} was too large to store; read the results of its steps()`,
    );
  }
}

interface WaitOptions {
  readonly within?: Duration;
  readonly signal?: AbortSignal;
}

/** `limit` steps, 100 by default, from index `from` on. */
interface StepsPage {
  readonly from?: number;
  readonly limit?: number;
}

/** The rows of a workflow's steps, in the order in which they were written. */
export async function stepRows(store: Store, id: string, page: StepsPage): Promise<(JobRow | null)[]> {
  refuseUnknownKeys(page, "page", ["from", "limit"]);
  const { from = 0, limit = 100 } = page;
  if (!Number.isInteger(from) || from < 0)
    throw refuse("invalid_limit", "page.from", from, "use a whole number of at least 0");
  checkCount(limit, "page.limit", BATCH_LIMIT);
  const plan = await loadPlan(store, id);
  const ids = plan ? stepsOf(plan.root).slice(from, from + limit) : [];
  return ids.length === 0 ? [] : store.jobs.load(ids);
}
