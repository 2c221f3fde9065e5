import type { By } from "../core/audit/audit-entry.ts";
import type { JobId, JobRow } from "../core/job/job.ts";
import type { QueueOptions } from "../core/limit/queue-settings.ts";
import type { Crons } from "./crons/crons.ts";
import type { ExtendOptions, RetryByHandOptions } from "./operations/operate-job.ts";
import type { WorkflowSummary } from "./workflows/workflow-view.ts";

/** The commands of an engine that take the name of whoever gives them. */
interface Commands {
  cancel(id: JobId, by: By): Promise<JobRow>;
  extend(id: JobId, options: ExtendOptions, by: By): Promise<JobRow>;
  retry(id: JobId, options: RetryByHandOptions, by: By): Promise<JobRow>;
  activate(id: JobId, by: By): Promise<JobRow>;
  configureQueue(queue: string, options: QueueOptions, by: By): Promise<void>;
  pause(queue: string, by: By): Promise<void>;
  resume(queue: string, by: By): Promise<void>;
  job(id: JobId): { runNow(by: By): Promise<JobRow> };
  readonly crons: Crons;
  readonly workflows: { cancel(id: string, by: By): Promise<WorkflowSummary> };
}

/** What an operator does, with their name on it: each action leaves an entry in `engine.audit`, in the same commit. */
export class Operator {
  readonly by: By;
  readonly #engine: Commands;

  constructor(engine: Commands, by: By) {
    this.#engine = engine;
    this.by = by;
  }

  /** Crons, with the same name on each change. */
  get crons(): Crons {
    return this.#engine.crons.as(this.by);
  }

  /** Ends a waiting or running job at once (SEMANTICS 5.1). */
  cancel(id: JobId): Promise<JobRow> {
    return this.#engine.cancel(id, this.by);
  }

  /** Changes the limits of a waiting or running job (SEMANTICS 5.3). */
  extend(id: JobId, options: ExtendOptions): Promise<JobRow> {
    return this.#engine.extend(id, options, this.by);
  }

  /** Runs a discarded job again (SEMANTICS 4.6). */
  retry(id: JobId, options: RetryByHandOptions = {}): Promise<JobRow> {
    return this.#engine.retry(id, options, this.by);
  }

  /** Runs a scheduled or retryable job as if it were due now. */
  runNow(id: JobId): Promise<JobRow> {
    return this.#engine.job(id).runNow(this.by);
  }

  /** Makes a pending job available. */
  activate(id: JobId): Promise<JobRow> {
    return this.#engine.activate(id, this.by);
  }

  /** Changes the settings of a queue. */
  configureQueue(queue: string, options: QueueOptions): Promise<void> {
    return this.#engine.configureQueue(queue, options, this.by);
  }

  /** Stops claims from a queue. */
  pause(queue: string): Promise<void> {
    return this.#engine.pause(queue, this.by);
  }

  resume(queue: string): Promise<void> {
    return this.#engine.resume(queue, this.by);
  }

  /** Ends what is left of a workflow. */
  cancelWorkflow(id: string): Promise<WorkflowSummary> {
    return this.#engine.workflows.cancel(id, this.by);
  }
}
