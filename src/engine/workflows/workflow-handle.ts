import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { JobRow } from "../../core/job/job.ts";
import { type Duration, formatDuration, type Instant, parseDuration } from "../../core/time.ts";
import { stepsOf } from "../../core/workflow/plan.ts";
import type { WorkflowFailure, WorkflowRecord, WorkflowState } from "../../core/workflow/workflow-record.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import { changeRecord, type RecordChange } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { tellWorkflow, workflowEvents } from "./announce-workflow.ts";
import { countSteps } from "./close-workflow.ts";
import type { WorkflowCleanup } from "./workflow-cleanup.ts";
import { loadPlan, RESULTS, WORKFLOWS } from "./workflow-records.ts";
import { summaryOf, type WorkflowSummary, type WorkflowView } from "./workflow-view.ts";

const POLL = 1_000;

/** The workflow ended without success; `failure` says why. */
export class WorkflowFailedError extends CurfewError {
  override readonly name = "WorkflowFailedError";
  readonly state: WorkflowState;
  readonly failure: WorkflowFailure | null;

  constructor(id: string, { state, failure }: Pick<WorkflowRecord, "state" | "failure">) {
    const step = failure?.type === undefined ? "" : `: step ${failure.type} (job ${failure.job})`;
    const why = failure?.message === undefined ? "" : `: ${failure.message}`;
    const late = failure?.reason === "timeout" ? " at its timeout" : "";
    super(
      "workflow_failed",
      `workflow ${id} ${state === "cancelled" ? "was" : "has"} ${state}${late}${step}${why}`,
    );
    this.state = state;
    this.failure = failure;
  }
}

/** A workflow that was started, or found by its id. */
export class WorkflowHandle<Result = unknown> {
  readonly id: string;
  /** The id was known already: this is the old workflow, and nothing was added. */
  readonly duplicate: boolean;
  readonly #parts: EngineContext;
  readonly #cleanup: WorkflowCleanup;

  constructor(parts: EngineContext, keeper: WorkflowCleanup, id: string, duplicate: boolean) {
    this.#parts = parts;
    this.#cleanup = keeper;
    this.id = id;
    this.duplicate = duplicate;
  }

  /** The workflow as it stands, with how many of its steps have ended and how; null if there is none. */
  async view(): Promise<WorkflowView | null> {
    const stored = await WORKFLOWS.load(this.#parts.store, this.id);
    const summary = stored && summaryOf(stored);
    if (!stored || !summary) return null;
    const counts = stored.body.counts ?? (await this.#count());
    return { ...summary, progress: { total: summary.total, ...counts } };
  }

  async #count() {
    const { store } = this.#parts;
    const plan = await loadPlan(store, this.id);
    return countSteps(store, plan ? stepsOf(plan.root) : []);
  }

  /** The jobs of its steps in the order in which they were written; null for one that was not kept. */
  async steps(page: { readonly from?: number; readonly limit?: number } = {}): Promise<(JobRow | null)[]> {
    refuseUnknownKeys(page, "page", ["from", "limit"]);
    const { from = 0, limit = 100 } = page;
    if (!Number.isInteger(from) || from < 0)
      throw refuse("invalid_limit", "page.from", from, "use a whole number from 0 on");
    if (!Number.isInteger(limit) || limit < 1 || limit > BATCH_LIMIT)
      throw refuse("invalid_limit", "page.limit", limit, `use a whole number from 1 to ${BATCH_LIMIT}`);
    const plan = await loadPlan(this.#parts.store, this.id);
    const ids = plan ? stepsOf(plan.root).slice(from, from + limit) : [];
    return ids.length === 0 ? [] : this.#parts.store.jobs.load(ids);
  }

  /** Ends what is left of it: what runs is cancelled, and what waits never starts. Refused once it has ended. */
  async cancel(by?: By): Promise<WorkflowSummary> {
    const { store, bus, waiters, wakeSweepAt } = this.#parts;
    const changed = await changeRecord(this.#parts, "cancel", WORKFLOWS, this.id, (before, now) =>
      this.#cancelled(before, now, by),
    );
    const record = changed?.body as WorkflowRecord;
    const endedAt = record.endedAt as Instant;
    tellWorkflow(bus, this.id, record, endedAt);
    waiters.hint(record.end);
    const marked = await WORKFLOWS.load(store, this.id);
    if (marked?.body.phase === "ending") await this.#cleanup.finish(marked);
    wakeSweepAt(endedAt);
    return summaryOf({ name: this.id, body: record }) as WorkflowSummary;
  }

  #cancelled(before: WorkflowRecord | null, now: Instant, by: By | undefined): RecordChange<WorkflowRecord> {
    const running = this.#there("cancel", before);
    if (running.state !== "running")
      throw new CurfewError(
        "invalid_state",
        `cancel: workflow ${this.id} is ${running.state}; only running workflows can be cancelled`,
      );
    const body: WorkflowRecord = { ...running, state: "cancelled", phase: "ending", endedAt: now };
    const about = { details: { workflow: this.id } };
    const effects = [
      ...workflowEvents(this.#parts.recorder, this.id, body, now),
      ...auditEffects(this.#parts, by && parseBy(by), "workflow.cancel", about, now),
    ];
    // Due at once: if this process dies now, another one goes on with it.
    return { body, wakeAt: now, effects };
  }

  async #load(doing: string): Promise<WorkflowRecord> {
    const stored = await WORKFLOWS.load(this.#parts.store, this.id);
    return this.#there(doing, stored?.body ?? null);
  }

  #there(doing: string, body: WorkflowRecord | null): WorkflowRecord {
    if (body && summaryOf({ name: this.id, body })) return body;
    throw new CurfewError("not_found", `${doing}: there is no workflow ${this.id}`);
  }

  /**
   * What the workflow gives: the result of a step, of the last node of a chain, or a list for a group or batch. It
   * rejects with a WorkflowFailedError if the workflow ended without success, with `result_gone` if nothing was kept of
   * it, and with `result_timeout` when `within` is over; the workflow itself goes on.
   */
  async result(options: { readonly within?: Duration; readonly signal?: AbortSignal } = {}): Promise<Result> {
    refuseUnknownKeys(options, "result", ["within", "signal"]);
    const within = options.within === undefined ? undefined : parseDuration(options.within, "result.within");
    const { system } = this.#parts;
    const startedAt = system.monotonic();
    for (;;) {
      options.signal?.throwIfAborted();
      const record = await this.#load("result");
      if (record.state !== "running") return this.#resultOf(record);
      if (this.#parts.waiters.isClosed)
        throw new CurfewError("closed", `the engine was closed before workflow ${this.id} ended; it goes on`);
      const left = within === undefined ? POLL : within - (system.monotonic() - startedAt);
      if (left <= 0)
        throw new CurfewError(
          "result_timeout",
          `workflow ${this.id} did not end within ${formatDuration(within as number)}; it goes on`,
        );
      await this.#nap(record.end, Math.min(left, POLL), options.signal);
    }
  }

  /** Until somebody says that the workflow may have ended, and not longer than this. */
  #nap(end: string, delay: number, signal: AbortSignal | undefined): Promise<void> {
    const { system, waiters } = this.#parts;
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

  async #resultOf(record: WorkflowRecord): Promise<Result> {
    if (record.state !== "completed") throw new WorkflowFailedError(this.id, record);
    const result = record.isResultKept ? await RESULTS.load(this.#parts.store, this.id) : null;
    if (result) return result.body as Result;
    throw new CurfewError(
      "result_gone",
      `workflow ${this.id} is completed, and its result was too large to be kept: look at its steps()`,
    );
  }
}
