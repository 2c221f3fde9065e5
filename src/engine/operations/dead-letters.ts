import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError } from "../../core/errors.ts";
import { openedRow } from "../../core/job/documents/sealed.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { type Job, jobView } from "../../core/job/job-view.ts";
import type { EngineContext } from "../context.ts";
import {
  countJobs,
  findJobs,
  type JobPage,
  type PageOptions,
  pageView,
  parsePage,
} from "../find/find-jobs.ts";
import { type JobQuery, parseQuery } from "../find/job-query.ts";
import type { Bulk, BulkOptions, BulkResult } from "./bulk.ts";
import { JobRows } from "./job-rows.ts";
import { removeJob } from "./operate-job.ts";
import type { RetryByHandOptions } from "./retry-by-hand.ts";

/** A query for dead letters. `finishedFrom` and `finishedBefore` are cheap: they have an index. */
export type DeadLetterQuery = Omit<JobQuery, "state" | "deadLetter" | "isLive">;

const DEAD = { deadLetter: true } as const;

/** Jobs that failed for good and are kept for an operator (SEMANTICS 4.5). */
export class DeadLetters {
  readonly #context: EngineContext;
  readonly #bulk: Bulk;

  constructor(context: EngineContext, bulk: Bulk) {
    this.#context = context;
    this.#bulk = bulk;
  }

  /** A page of dead letters, by when they ended: oldest first, or newest first. */
  async list(query: DeadLetterQuery = {}, page: PageOptions = {}): Promise<JobPage> {
    const parsed = parseQuery({ ...query, ...DEAD }, "query");
    return pageView(
      await findJobs(this.#context.store, parsed, parsePage(page, "page")),
      this.#context.sealing,
    );
  }

  /** One dead letter with its errors; null if the job is no dead letter. */
  async get(id: JobId): Promise<Job | null> {
    const row = await this.#load(id);
    return row && jobView(openedRow(this.#context.sealing, row));
  }

  async count(query: DeadLetterQuery = {}, options: { readonly signal?: AbortSignal } = {}): Promise<number> {
    return countJobs(this.#context.store, parseQuery({ ...query, ...DEAD }, "query"), options.signal);
  }

  /** Runs a dead letter again: its attempts, `wait` and `total` start anew (SEMANTICS 4.6). */
  async retry(id: JobId, options: RetryByHandOptions = {}, by?: By): Promise<Job> {
    await this.#expect(id, "retry");
    const row = await new JobRows(this.#context).retry(id, options, by);
    return jobView(openedRow(this.#context.sealing, row));
  }

  /** Runs all dead letters again that match the query. */
  async retryAll(
    query: DeadLetterQuery,
    options: BulkOptions & RetryByHandOptions = {},
  ): Promise<BulkResult> {
    return this.#bulk.retry(this.#deadLetters(query, options), options);
  }

  /** Deletes one dead letter. */
  async delete(id: JobId, by?: By): Promise<void> {
    const row = await this.#expect(id, "delete");
    if (!(await removeJob(this.#context, row, by)))
      throw new CurfewError("invalid_state", `delete: dead letter ${id} changed during this call; try again`);
  }

  /** Deletes all dead letters that match the query. */
  async deleteAll(query: DeadLetterQuery, options: BulkOptions = {}): Promise<BulkResult> {
    return this.#bulk.delete(this.#deadLetters(query, options), options);
  }

  /** Refuses an empty query: with the dead-letter filter it would no longer count as empty. */
  #deadLetters(query: DeadLetterQuery, { dryRun }: BulkOptions): JobQuery {
    return parseQuery(query, "query").isEmpty && !dryRun ? {} : { ...query, ...DEAD };
  }

  async #load(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#context.store.jobs.load([id]);
    return row?.deadLetter ? row : null;
  }

  async #expect(id: JobId, action: string): Promise<JobRow> {
    const row = await this.#load(id);
    if (!row)
      throw new CurfewError(
        "not_found",
        `${action}: there is no dead letter ${id}; it was retried or deleted, or the id is wrong`,
      );
    return row;
  }
}
