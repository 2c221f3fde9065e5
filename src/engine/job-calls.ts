import type { By } from "../core/audit/audit-entry.ts";
import type { JobId } from "../core/job/job.ts";
import type { JobDefinition } from "../core/job/job-definition.ts";
import type { Job } from "../core/job/job-view.ts";
import type { Explanation } from "../core/job/policy/explain.ts";
import type { Why } from "../core/job/why/reason.ts";
import type { Json } from "../core/schema.ts";
import type { Store } from "../ports/store.ts";
import type { EngineContext } from "./context.ts";
import { type JobPage, type PageOptions, pageView } from "./find/find-jobs.ts";
import type { JobQuery } from "./find/job-query.ts";
import { JobHandle } from "./operations/job-handle.ts";
import { JobRows } from "./operations/job-rows.ts";
import type { ExtendOptions } from "./operations/operate-job.ts";
import type { RetryByHandOptions } from "./operations/retry-by-hand.ts";
import type { CounterSnapshot } from "./statistics/counters.ts";
import { type ExportPage, type ExportPageOptions, exportPage } from "./transfer/export-jobs.ts";

type ResultOf<Definition> = Definition extends JobDefinition<unknown, unknown, infer Result> ? Result : never;

/** The calls of an engine that need nothing but its context: they find, inspect and change stored jobs. */
export abstract class JobCalls {
  protected abstract get context(): EngineContext;

  /** A handle on a job that was enqueued elsewhere or earlier. */
  job<Definition extends JobDefinition<unknown, unknown, unknown>>(
    id: JobId,
    _definition?: Definition,
  ): JobHandle<ResultOf<Definition>> {
    return new JobHandle(this.context, id);
  }

  readonly #byId = (id: JobId): JobHandle<Json> => new JobHandle(this.context, id);

  /** The current job, or null. */
  load(id: JobId): Promise<Job | null> {
    return this.#byId(id).load();
  }

  /** A page of the jobs that match the query, by id or newest first; dead letters by the time at which they ended. */
  async find(query: JobQuery = {}, page: PageOptions = {}): Promise<JobPage> {
    return pageView(await new JobRows(this.context).find(query, page), this.context.sealing);
  }

  /**
   * One page of jobs as lines that `importJobs` takes, on any store: waiting jobs and dead letters, and with `ended` all
   * that have ended. Running jobs and jobs of workflows are counted and left out.
   */
  exportJobs(query: JobQuery = {}, page: ExportPageOptions = {}): Promise<ExportPage> {
    return exportPage(this.context, query, page);
  }

  /** Ends a waiting or running job at once. Later writes of its handler are refused (SEMANTICS 5.1). */
  cancel(id: JobId, by?: By): Promise<Job> {
    return this.#byId(id).cancel(by);
  }

  /** Changes the limits of a waiting or running job (SEMANTICS 5.3). */
  extend(id: JobId, options: ExtendOptions, by?: By): Promise<Job> {
    return this.#byId(id).extend(options, by);
  }

  /** Runs a discarded job again: attempts, `wait` and `total` start anew (SEMANTICS 4.6). */
  retry(id: JobId, options: RetryByHandOptions = {}, by?: By): Promise<Job> {
    return this.#byId(id).retry(options, by);
  }

  /** Makes a pending job available. */
  activate(id: JobId, by?: By): Promise<Job> {
    return this.#byId(id).activate(by);
  }

  /** For every limit of a job: the source that won, the sources that lost, the instants, and warnings. */
  explain(id: JobId, definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation> {
    return this.#byId(id).explain(definition);
  }

  /** Why a job does not run, does not end, or ended as it did. Act on the first reason. */
  why(id: JobId): Promise<Why> {
    return this.#byId(id).why();
  }

  /** Counts of this process since it was opened. */
  counters(): CounterSnapshot {
    return this.context.counters.snapshot();
  }

  get store(): Store {
    return this.context.store;
  }

  /** The engine's time: the store's clock, see SEMANTICS 3.10. */
  now(): number {
    return this.context.clock.now();
  }
}
