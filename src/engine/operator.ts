import type { By } from "../core/audit/audit-entry.ts";
import type { JobId } from "../core/job/job.ts";
import type { Job } from "../core/job/job-view.ts";
import type { Crons } from "./crons/crons.ts";
import type { ExtendOptions } from "./operations/operate-job.ts";
import type { RetryByHandOptions } from "./operations/retry-by-hand.ts";
import type { Queues } from "./queues/queues.ts";
import type { Schemas } from "./schemas/schemas.ts";
import type { Webhooks } from "./webhooks/webhooks.ts";
import type { WorkflowSummary } from "./workflows/workflow-view.ts";

/** The commands of an engine that take the name of the operator. */
interface Commands {
  cancel(id: JobId, by: By): Promise<Job>;
  extend(id: JobId, options: ExtendOptions, by: By): Promise<Job>;
  retry(id: JobId, options: RetryByHandOptions, by: By): Promise<Job>;
  activate(id: JobId, by: By): Promise<Job>;
  job(id: JobId): { runNow(by: By): Promise<Job<unknown>> };
  readonly crons: Crons;
  readonly queues: Queues;
  readonly schemas: Schemas;
  readonly webhooks: Webhooks;
  readonly workflows: { cancel(id: string, by: By): Promise<WorkflowSummary> };
}

/** The commands of an engine under an operator's name: each adds an entry to `engine.audit` in the same commit. */
export class Operator {
  readonly by: By;
  readonly #engine: Commands;

  constructor(engine: Commands, by: By) {
    this.#engine = engine;
    this.by = by;
  }

  /** Crons; each change is audited. */
  get crons(): Crons {
    return this.#engine.crons.as(this.by);
  }

  /** Queues; each change is audited. */
  get queues(): Queues {
    return this.#engine.queues.as(this.by);
  }

  /** Schemas of jobs; each change is audited. */
  get schemas(): Schemas {
    return this.#engine.schemas.as(this.by);
  }

  /** Webhooks; each change is audited. */
  get webhooks(): Webhooks {
    return this.#engine.webhooks.as(this.by);
  }

  /** Workflows: `cancel` ends the steps that are left. */
  get workflows(): { cancel(id: string): Promise<WorkflowSummary> } {
    return { cancel: (id) => this.#engine.workflows.cancel(id, this.by) };
  }

  /** Ends a waiting or running job at once (SEMANTICS 5.1). */
  cancel(id: JobId): Promise<Job> {
    return this.#engine.cancel(id, this.by);
  }

  /** Changes the limits of a waiting or running job (SEMANTICS 5.3). */
  extend(id: JobId, options: ExtendOptions): Promise<Job> {
    return this.#engine.extend(id, options, this.by);
  }

  /** Runs a discarded job again (SEMANTICS 4.6). */
  retry(id: JobId, options: RetryByHandOptions = {}): Promise<Job> {
    return this.#engine.retry(id, options, this.by);
  }

  /** Runs a scheduled or retryable job as if it were due now. */
  runNow(id: JobId): Promise<Job<unknown>> {
    return this.#engine.job(id).runNow(this.by);
  }

  /** Makes a pending job available. */
  activate(id: JobId): Promise<Job> {
    return this.#engine.activate(id, this.by);
  }
}
