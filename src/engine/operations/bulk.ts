import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { decide } from "../../core/job/decide/decide.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { checkPriority } from "../../core/job/job-definition.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { keysOf } from "../../core/option-keys.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import { callSafely } from "../../core/user-values.ts";
import type { Unit } from "../../ports/store.ts";
import { announce } from "../commit/announce.ts";
import { commitJobs } from "../commit/commit.ts";
import { type Decided, type DecidedJob, removalOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { BoundedReader } from "../find/bounded-reader.ts";
import { countJobs, countSome, type JobCount, loadNamed, ownJobs, type RowPage } from "../find/find-jobs.ts";
import { type JobQuery, matches, type ParsedQuery, parseQuery } from "../find/job-query.ts";
import { parseRetryByHand, RETRY_BY_HAND_KEYS, type RetryByHandOptions } from "./retry-by-hand.ts";

export interface BulkOptions {
  /** Counts the jobs and changes nothing. */
  readonly dryRun?: boolean;
  /** Stops after it changed this many jobs. */
  readonly limit?: number;
  /** Called after each batch. */
  readonly onProgress?: (progress: BulkProgress) => void;
  /** Stops before the next batch. Finished batches stay; the result says how far it came. */
  readonly signal?: AbortSignal;
  /** The cursor of an earlier call with the same query: continues from there. */
  readonly after?: string | null;
  /** The operator: each batch writes an audit entry in its commit. */
  readonly by?: By;
}

export interface BulkProgress {
  /** Jobs that match the query. */
  readonly matched: number;
  readonly done: number;
  /** Jobs whose state does not allow the action, and jobs that changed during it. */
  readonly skipped: number;
  /** Jobs that the store failed to write. */
  readonly failed: number;
}

export interface BulkResult extends BulkProgress {
  /** False if the signal, the limit, the close of the engine or repeated store failures stopped it. */
  readonly isComplete: boolean;
  /** Pass it as `after` to continue; null at the end. */
  readonly cursor: string | null;
  /** The first 10 errors of the store. */
  readonly errors: readonly unknown[];
}

/** Small, so that no commit blocks the store for long; large enough to share the cost of a commit. */
const BATCH = 200;
/** Characters of rows in one batch. */
const BATCH_SIZE = 16_000_000;
/** A job that changes during this many tries is skipped: the caller can run the action again. */
const TRIES = 3;
const MOST_FAILURES = 3;
const MOST_ERRORS = 10;
const OPTION_KEYS = keysOf<BulkOptions>({
  dryRun: true,
  limit: true,
  onProgress: true,
  signal: true,
  after: true,
  by: true,
});

/** Returns the decision on one job, `delete`, or null to leave it alone. */
type Decide = (row: JobRow, now: Instant) => Decided | "delete" | null;

/** The decision on one row as it was read; a null `job` deletes it. */
interface BulkDecision {
  readonly row: JobRow;
  readonly job: DecidedJob | null;
}

const FAILED = Symbol("the store failed");
const REST = 200;

/**
 * Actions on many jobs. Each job is decided on the row as it was read, and written under that row's fence and revision.
 * Batches are small, so other work goes on.
 */
export class Bulk {
  readonly #context: EngineContext;
  readonly #runs = new Set<BulkRun>();
  #isClosed = false;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** Stops all runs after their current store call. Each returns how far it came. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#runs].map((run) => run.stop()));
  }

  /** Counts the jobs that match a query. It loads rows only for ids, errors and near misses. */
  async count(query: JobQuery, options: { readonly signal?: AbortSignal } = {}): Promise<number> {
    return countJobs(this.#context.store, parseQuery(query, "query"), options.signal);
  }

  /** Counts the jobs that match a query, in a bounded number of store steps. It cannot filter by documents or ids. */
  async countSome(
    query: Omit<JobQuery, "errorType" | "errorCode" | "ids" | "nearMiss" | "idPrefix"> = {},
  ): Promise<JobCount> {
    return countSome(this.#context.store, parseQuery(query, "query"));
  }

  /** Cancels jobs that wait or run (SEMANTICS 5.1). */
  async cancel(query: JobQuery, options: BulkOptions = {}): Promise<BulkResult> {
    const decided = this.#byEvent({ type: "cancel" });
    return this.#act("cancel", query, { isLive: true }, options, OPTION_KEYS, decided);
  }

  /** Runs discarded jobs again, including those that are not dead letters (SEMANTICS 4.6). */
  async retry(query: JobQuery, options: BulkOptions & RetryByHandOptions = {}): Promise<BulkResult> {
    const decided = this.#byEvent(parseRetryByHand(options, this.#context.tenant, "options"));
    const keys = [...OPTION_KEYS, ...RETRY_BY_HAND_KEYS];
    return this.#act("retry", query, { state: "discarded" }, options, keys, decided);
  }

  /** Deletes ended jobs with their logs. Live jobs are counted as skipped: cancel them first. */
  async delete(query: JobQuery, options: BulkOptions = {}): Promise<BulkResult> {
    const decided: Decide = (row) => (isTerminal(row.state) ? "delete" : null);
    const result = await this.#act("delete", query, { isLive: false }, options, OPTION_KEYS, decided);
    const live = await this.#countLive(query, options.signal);
    return { ...result, matched: result.matched + live, skipped: result.skipped + live };
  }

  /** The jobs of a query that wait or run. Counted, not read: there may be millions. */
  async #countLive(query: JobQuery, signal: AbortSignal | undefined): Promise<number> {
    const parsed = parseQuery(query, "query");
    const { isLive, deadLetter } = parsed.filter;
    if (signal?.aborted || isLive !== undefined || deadLetter) return 0;
    const filter = { ...parsed.filter, isLive: true } as ParsedQuery["filter"];
    return countJobs(this.#context.store, { ...parsed, filter }, signal);
  }

  /** Changes the priority of waiting jobs. */
  async prioritise(
    query: JobQuery,
    options: BulkOptions & { readonly priority: number },
  ): Promise<BulkResult> {
    const priority = checkPriority(options.priority, "options.priority");
    const decided = this.#byEvent({ type: "prioritise", priority });
    const keys = [...OPTION_KEYS, "priority"];
    return this.#act("prioritise", query, { isLive: true }, options, keys, decided);
  }

  #byEvent(event: JobEvent): Decide {
    return (row, now) => {
      const decision = decide(row, event, now, this.#context.random);
      return decision.ok ? decision : null;
    };
  }

  async #act(
    action: string,
    query: JobQuery,
    base: JobQuery,
    options: BulkOptions,
    keys: readonly string[],
    decided: Decide,
  ): Promise<BulkResult> {
    checkOptions(options, keys);
    if (options.by) parseBy(options.by, "options.by");
    const parsed = parseQuery(query, "query");
    if (parsed.isEmpty && !options.dryRun)
      throw refuse("invalid_option", "query", query, "name the jobs, or pass { all: true } for every job");
    // Read only jobs that the action can change and that existed when it began.
    const now = this.#context.clock.now() + 1;
    const { createdBefore = now, finishedBefore = now, deadLetter } = parsed.filter;
    const filter = {
      ...base,
      ...parsed.filter,
      createdBefore: Math.min(createdBefore, now),
      ...(deadLetter && { finishedBefore: Math.min(finishedBefore, now) }),
    } as ParsedQuery["filter"];
    if (this.#isClosed)
      throw new CurfewError("closed", `bulk.${action}: the engine is closed; open another one`);
    const run = new BulkRun(this.#context, action, { ...parsed, filter }, options, decided);
    this.#runs.add(run);
    return run.run().finally(() => this.#runs.delete(run));
  }
}

function checkOptions(options: BulkOptions, keys: readonly string[]): void {
  refuseUnknownKeys(options, "options", keys);
  const { limit, onProgress, dryRun } = options;
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1))
    throw refuse(
      "invalid_limit",
      "options.limit",
      limit,
      "use a whole number of at least 1, or leave it out",
    );
  if (onProgress !== undefined && typeof onProgress !== "function")
    throw refuse("invalid_option", "options.onProgress", onProgress, "pass a function");
  if (dryRun !== undefined && typeof dryRun !== "boolean")
    throw refuse("invalid_option", "options.dryRun", dryRun, "use true or false");
}

/**
 * Whether this decision is in the store, after a commit whose reply was lost. Only a retry gives an ended job another
 * fence, so another fence proves the retry even if the job has run since.
 */
function isDone({ row: before, job }: BulkDecision, row: JobRow | null): boolean {
  if (job === null) return row === null;
  const { fence } = job.decision;
  if (row === null || fence === undefined) return false;
  return row.fence === fence || (isTerminal(before.state) && row.fence !== before.fence);
}

/** One bulk action. */
class BulkRun {
  readonly #context: EngineContext;
  readonly #action: string;
  readonly #query: ParsedQuery;
  readonly #options: BulkOptions;
  readonly #decide: Decide;
  readonly #errors: unknown[] = [];
  #matched = 0;
  #done = 0;
  #skipped = 0;
  #failed = 0;
  readonly #reader = new BoundedReader(BATCH_SIZE);
  #failuresInARow = 0;
  #isClosed = false;
  /** Ends the pause after a store failure. */
  #wake: (() => void) | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(
    context: EngineContext,
    action: string,
    query: ParsedQuery,
    options: BulkOptions,
    decided: Decide,
  ) {
    this.#context = context;
    this.#action = action;
    this.#query = query;
    this.#options = options;
    this.#decide = decided;
  }

  run(): Promise<BulkResult> {
    const result = this.#run();
    this.#ended = result.catch(() => {});
    return result;
  }

  async stop(): Promise<void> {
    this.#isClosed = true;
    this.#wake?.();
    await this.#ended;
  }

  async #run(): Promise<BulkResult> {
    let cursor = this.#options.after ?? null;
    for (;;) {
      if (this.#isStopped()) return this.#result(cursor, false);
      const page = await this.#tried(() => this.#nextPage(cursor));
      if (page === FAILED) continue;
      const rows = page.jobs.filter((row) => matches(row, this.#query));
      this.#matched += rows.length;
      if (rows.length > 0 && !this.#options.dryRun) await this.#batch(rows);
      cursor = page.cursor;
      if (page.jobs.length > 0) this.#reportProgress();
      if (cursor === null) return this.#result(null, true);
    }
  }

  /** Pauses after a store failure and returns FAILED. Errors of the caller are thrown at once. */
  async #tried<Answer>(call: () => Promise<Answer>): Promise<Answer | typeof FAILED> {
    try {
      const answer = await call();
      this.#failuresInARow = 0;
      return answer;
    } catch (error) {
      if (error instanceof CurfewError && error.code !== "store_failed") throw error;
      if (this.#errors.length < MOST_ERRORS) this.#errors.push(error);
      this.#failuresInARow += 1;
      await this.#rest();
      return FAILED;
    }
  }

  #rest(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#context.system.after(REST, resolve, { keepAlive: true });
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #isStopped(): boolean {
    const { limit, signal } = this.#options;
    const isEnough = limit !== undefined && this.#done >= limit;
    return isEnough || this.#isClosed || signal?.aborted === true || this.#failuresInARow >= MOST_FAILURES;
  }

  /** Loads the next batch: by id if the query names ids, else by a scan. */
  #nextPage(cursor: string | null): Promise<Omit<RowPage, "scanned">> {
    const { store } = this.#context;
    const left = this.#options.limit === undefined ? BATCH : this.#options.limit - this.#done;
    const { ids, filter } = this.#query;
    const step = async (after: string | null, count: number): Promise<Omit<RowPage, "scanned">> => {
      const page = await (ids
        ? loadNamed(store, ids, after, count)
        : store.inspect.page({ filter, after }, count));
      return { ...page, jobs: ownJobs(filter, page.jobs) };
    };
    return this.#reader.read(step, cursor, Math.min(BATCH, left));
  }

  async #batch(rows: readonly JobRow[]): Promise<void> {
    let decided = this.#decided(rows);
    let isFailing = false;
    // Stays true after the first failed commit: that commit may take effect after the next read.
    let isUncertain = false;
    for (let tries = 0; decided.length > 0 && tries < TRIES; tries++) {
      if (tries > 0) {
        const again = await this.#tried(() => this.#decideAgain(decided, isUncertain));
        if (again === FAILED) continue;
        decided = again;
      }
      const left = await this.#tried(() => this.#commit(decided));
      isFailing = left === FAILED;
      isUncertain ||= isFailing;
      if (left !== FAILED) decided = left;
    }
    if (isFailing) this.#failed += decided.length;
    else this.#skipped += decided.length;
  }

  #decided(rows: readonly JobRow[]): readonly BulkDecision[] {
    const at = this.#context.clock.now();
    const decisions = rows.flatMap((row): BulkDecision[] => {
      const decision = this.#decide(row, at);
      if (decision === null) return [];
      return [{ row, job: decision === "delete" ? null : { row, decision, at, by: "outsider" } }];
    });
    this.#skipped += rows.length - decisions.length;
    return decisions;
  }

  /**
   * Decides again on the rows as they are now, without those that no longer match. After a failed commit, first
   * recognises what it wrote (see `isDone`).
   */
  async #decideAgain(
    before: readonly BulkDecision[],
    isUncertain: boolean,
  ): Promise<readonly BulkDecision[]> {
    const found = await this.#context.store.jobs.load(before.map(({ row }) => row.id));
    const left: JobRow[] = [];
    for (const [index, decision] of before.entries()) {
      const row = found[index] ?? null;
      if (isUncertain && isDone(decision, row)) {
        this.#done += 1;
        if (decision.job) announce(this.#context, decision.job);
      } else if (row !== null && matches(row, this.#query)) left.push(row);
      else this.#skipped += 1;
    }
    return this.#decided(left);
  }

  /** Returns the decisions whose rows had changed. */
  async #commit(decisions: readonly BulkDecision[]): Promise<readonly BulkDecision[]> {
    if (decisions.length === 0) return [];
    const jobs = decisions.map(({ row, job }) => job ?? removalOf(row));
    const ids = decisions.map(({ row }) => row.id);
    const outcomes = await commitJobs(this.#context, [...jobs, ...this.#entry(ids)]);
    const refused = decisions.filter((_, index) => !outcomes[index]?.ok);
    this.#done += decisions.length - refused.length;
    return refused;
  }

  /** The audit entry of a batch: the query, and which jobs it found. Of a deleted job nothing else is left. */
  #entry(ids: readonly JobId[]): Unit[] {
    const now = this.#context.clock.now();
    const details = { tried: ids.length, filter: this.#query.filter as unknown as Json };
    const [job] = ids;
    const about = job && ids.length === 1 ? { job, details } : { details: { ...details, jobs: ids } };
    const effects = auditEffects(this.#context, this.#options.by, `bulk.${this.#action}`, about, now);
    return effects.length > 0 ? [{ effects }] : [];
  }

  #progress(): BulkProgress {
    return { matched: this.#matched, done: this.#done, skipped: this.#skipped, failed: this.#failed };
  }

  #reportProgress(): void {
    callSafely(
      () => this.#options.onProgress?.(this.#progress()),
      (error) => this.#context.logger.error({ error }, "onProgress of a bulk action threw"),
    );
  }

  #result(cursor: string | null, isComplete: boolean): BulkResult {
    return { ...this.#progress(), isComplete, cursor, errors: this.#errors };
  }
}
