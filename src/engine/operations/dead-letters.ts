import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuseUnknownKeys } from "../../core/errors.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { EngineContext } from "../context.ts";
import type { Bulk, BulkOptions, BulkResult } from "./bulk.ts";
import { countJobs, findJobs, type JobPage, type PageOptions, parsePage } from "./find-jobs.ts";
import { type JobQuery, parseQuery } from "./job-query.ts";
import { operate, type RetryByHandOptions, removeJob } from "./operate-job.ts";

/** Which dead letters are meant; `finishedFrom` and `finishedBefore` cost nothing, for they are kept in that order. */
export type DeadLetterQuery = Omit<JobQuery, "state" | "deadLetter" | "isLive">;

const DEAD = { deadLetter: true } as const;

/** Jobs that failed for good and were kept for somebody to look at (SEMANTICS 4.5). */
export class DeadLetters {
  readonly #parts: EngineContext;
  readonly #bulk: Bulk;

  constructor(parts: EngineContext, bulk: Bulk) {
    this.#parts = parts;
    this.#bulk = bulk;
  }

  /** A page of dead letters in the order in which they ended, or newest first. */
  async list(query: DeadLetterQuery = {}, page: PageOptions = {}): Promise<JobPage> {
    const parsed = parseQuery({ ...query, ...DEAD }, "query");
    return findJobs(this.#parts.store, parsed, parsePage(page, "page"));
  }

  /** One dead letter with its errors, or null if there is no such dead letter. */
  async get(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#parts.store.jobs.load([id]);
    return row?.deadLetter ? row : null;
  }

  async count(query: DeadLetterQuery = {}, options: { readonly signal?: AbortSignal } = {}): Promise<number> {
    return countJobs(this.#parts.store, parseQuery({ ...query, ...DEAD }, "query"), options.signal);
  }

  /** Runs one again: attempts start anew, and so do `wait` and `total` (SEMANTICS 4.6). */
  async retry(id: JobId, options: RetryByHandOptions = {}, by?: By): Promise<JobRow> {
    refuseUnknownKeys(options, "retry", ["keepDeadline"]);
    await this.#expect(id, "retry");
    return operate(this.#parts, id, { type: "retry", ...options }, by);
  }

  /** Runs all again that are meant. */
  async retryAll(
    query: DeadLetterQuery,
    options: BulkOptions & RetryByHandOptions = {},
  ): Promise<BulkResult> {
    return this.#bulk.retry(this.#meant(query, options), options);
  }

  /** Deletes one for good. */
  async delete(id: JobId, by?: By): Promise<void> {
    const row = await this.#expect(id, "delete");
    if (!(await removeJob(this.#parts, row, by)))
      throw new CurfewError("invalid_state", `delete: dead letter ${id} changed during this call; try again`);
  }

  /** Deletes all for good that are meant. */
  async deleteAll(query: DeadLetterQuery, options: BulkOptions = {}): Promise<BulkResult> {
    return this.#bulk.delete(this.#meant(query, options), options);
  }

  /** A query that says nothing is refused as if it stood alone, though it is one for dead letters. */
  #meant(query: DeadLetterQuery, { dryRun }: BulkOptions): JobQuery {
    return parseQuery(query, "query").isEmpty && !dryRun ? {} : { ...query, ...DEAD };
  }

  async #expect(id: JobId, action: string): Promise<JobRow> {
    const row = await this.get(id);
    if (!row) throw new CurfewError("not_found", `${action}: there is no dead letter ${id}`);
    return row;
  }
}
