import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { decide } from "../../core/job/decide.ts";
import type { JobRow } from "../../core/job/job.ts";
import { checkPriority } from "../../core/job/job-definition.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { Unit } from "../../ports/store.ts";
import { announce } from "../commit/announce.ts";
import { commitJobs } from "../commit/commit.ts";
import { type Decided, type DecidedJob, removalOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { countJobs, countSome, type JobCount, type JobPage, loadNamed } from "./find-jobs.ts";
import { isMeant, type JobQuery, type ParsedQuery, parseQuery } from "./job-query.ts";
import type { RetryByHandOptions } from "./operate-job.ts";

export interface BulkOptions {
  /** Looks and counts, and changes nothing. */
  readonly dryRun?: boolean;
  /** Stops after this many jobs were changed. */
  readonly limit?: number;
  /** Called after each batch. */
  readonly onProgress?: (progress: BulkProgress) => void;
  /** Stops before the next batch; what was done by then stays done, and the answer says how far it came. */
  readonly signal?: AbortSignal;
  /** Goes on where an earlier call with the same query ended. */
  readonly after?: string | null;
  /** Who does it: each batch leaves an entry in the audit, in its own commit. */
  readonly by?: By;
}

export interface BulkProgress {
  /** Jobs that the query meant. */
  readonly matched: number;
  readonly done: number;
  /** Jobs whose state does not allow it, or that had moved on when it was their turn. */
  readonly skipped: number;
  /** Jobs that the store did not take. */
  readonly failed: number;
}

export interface BulkResult extends BulkProgress {
  /** False if it was stopped: by its signal, its limit, the close of its engine, or a store that failed again and again. */
  readonly isComplete: boolean;
  /** Where to go on; null if there is nothing left. */
  readonly cursor: string | null;
  /** The first errors of the store. */
  readonly errors: readonly unknown[];
}

/** Small enough that no store is held for long, large enough to share the cost of a commit. */
const BATCH = 200;
/** A job that changes this often while it is decided is skipped: the caller can run the action again. */
const LOOKS = 3;
const MOST_FAILURES = 3;
const MOST_ERRORS = 10;
const OPTION_KEYS = ["dryRun", "limit", "onProgress", "signal", "after", "by"] as const;

/** What becomes of one job: a decision, its deletion, or nothing. */
type Decide = (row: JobRow, now: Instant) => Decided | "delete" | null;

/** What was decided for one job, on the row as it was read; null deletes it. */
interface BulkDecision {
  readonly row: JobRow;
  readonly job: DecidedJob | null;
}

const FAILED = Symbol("the store failed");
const REST = 200;

/**
 * Actions on many jobs. Each job is decided by itself on the row as it was read and written under that row's fence and
 * revision, in batches that never hold a store for long; who works meanwhile loses nothing.
 */
export class Bulk {
  readonly #parts: EngineContext;
  readonly #underWay = new Set<BulkRun>();
  #isClosed = false;

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  /** Stops what is under way after the call to the store that it waits for; each answers how far it came. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#underWay].map((run) => run.stop()));
  }

  /** How many jobs a query means. It walks over them without loading them, unless it asks for errors. */
  async count(query: JobQuery, options: { readonly signal?: AbortSignal } = {}): Promise<number> {
    return countJobs(this.#parts.store, parseQuery(query, "query"), options.signal);
  }

  /** How many jobs a query means, as far as a bounded look comes; what lies in documents or in lists of ids is not asked. */
  async countSome(query: Omit<JobQuery, "errorType" | "errorCode" | "ids"> = {}): Promise<JobCount> {
    return countSome(this.#parts.store, parseQuery(query, "query"));
  }

  /** Ends jobs that wait or run (SEMANTICS 5.1). */
  async cancel(query: JobQuery, options: BulkOptions = {}): Promise<BulkResult> {
    const decided = this.#byEvent({ type: "cancel" });
    return this.#act("cancel", query, { isLive: true }, options, OPTION_KEYS, decided);
  }

  /** Runs discarded jobs again, dead letters or not (SEMANTICS 4.6). */
  async retry(query: JobQuery, options: BulkOptions & RetryByHandOptions = {}): Promise<BulkResult> {
    const { keepDeadline = false } = options;
    if (typeof keepDeadline !== "boolean")
      throw refuse("invalid_option", "options.keepDeadline", keepDeadline, "use true or false");
    const decided = this.#byEvent({ type: "retry", keepDeadline });
    const keys = [...OPTION_KEYS, "keepDeadline"];
    return this.#act("retry", query, { state: "discarded" }, options, keys, decided);
  }

  /** Deletes jobs that have ended, with their logs; a live one is skipped, cancel it first. */
  async delete(query: JobQuery, options: BulkOptions = {}): Promise<BulkResult> {
    const decided: Decide = (row) => (isTerminal(row.state) ? "delete" : null);
    return this.#act("delete", query, { isLive: false }, options, OPTION_KEYS, decided);
  }

  /** Gives jobs that wait another priority. */
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
      const decision = decide(row, event, now, this.#parts.random);
      return decision.ok ? decision : null;
    };
  }

  async #act(
    action: string,
    query: JobQuery,
    meant: JobQuery,
    options: BulkOptions,
    keys: readonly string[],
    decided: Decide,
  ): Promise<BulkResult> {
    checkOptions(options, keys);
    if (options.by) parseBy(options.by, "options.by");
    const asked = parseQuery(query, "query");
    if (asked.isEmpty && !options.dryRun)
      throw refuse(
        "invalid_option",
        "query",
        query,
        "say which jobs, or { all: true } if you mean every one",
      );
    // What the action cannot touch is not looked at; what comes after it began is not its business.
    const now = this.#parts.clock.now() + 1;
    const { createdBefore = now, finishedBefore = now, deadLetter } = asked.filter;
    const filter = {
      ...meant,
      ...asked.filter,
      createdBefore: Math.min(createdBefore, now),
      ...(deadLetter && { finishedBefore: Math.min(finishedBefore, now) }),
    } as ParsedQuery["filter"];
    if (this.#isClosed)
      throw new CurfewError("closed", `bulk.${action}: the engine is closed; open another one`);
    const run = new BulkRun(this.#parts, action, { ...asked, filter }, options, decided);
    this.#underWay.add(run);
    return run.run().finally(() => this.#underWay.delete(run));
  }
}

function checkOptions(options: BulkOptions, keys: readonly string[]): void {
  refuseUnknownKeys(options, "options", keys);
  const { limit, onProgress, dryRun } = options;
  if (limit !== undefined && (!Number.isInteger(limit) || limit < 1))
    throw refuse("invalid_limit", "options.limit", limit, "use a whole number from 1, or leave it out");
  if (onProgress !== undefined && typeof onProgress !== "function")
    throw refuse("invalid_option", "options.onProgress", onProgress, "pass a function");
  if (dryRun !== undefined && typeof dryRun !== "boolean")
    throw refuse("invalid_option", "options.dryRun", dryRun, "use true or false");
}

/**
 * Whether what was decided has happened, after a commit whose reply was lost. A job that was retried may have run and
 * ended again since: nothing but a retry takes an ended job to another fence.
 */
function isDone({ row: before, job }: BulkDecision, row: JobRow | null): boolean {
  if (job === null) return row === null;
  const { fence } = job.decision;
  if (row === null || fence === undefined) return false;
  return row.fence === fence || (isTerminal(before.state) && row.fence !== before.fence);
}

/** One bulk action under way. */
class BulkRun {
  readonly #parts: EngineContext;
  readonly #action: string;
  readonly #query: ParsedQuery;
  readonly #options: BulkOptions;
  readonly #decide: Decide;
  readonly #errors: unknown[] = [];
  #matched = 0;
  #done = 0;
  #skipped = 0;
  #failed = 0;
  #failuresInARow = 0;
  #isClosed = false;
  /** Ends the rest after a failure of the store. */
  #wake: (() => void) | undefined;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(
    parts: EngineContext,
    action: string,
    query: ParsedQuery,
    options: BulkOptions,
    decided: Decide,
  ) {
    this.#parts = parts;
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

  /** Resolves when it has stopped. */
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
      const rows = page.jobs.filter((row) => isMeant(row, this.#query));
      this.#matched += rows.length;
      if (rows.length > 0 && !this.#options.dryRun) await this.#batch(rows);
      cursor = page.cursor;
      if (page.jobs.length > 0) this.#tell();
      if (cursor === null) return this.#result(null, true);
    }
  }

  /** A store that fails is given a moment; what a caller did wrong is thrown at once. */
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
      const timer = this.#parts.system.after(REST, resolve, { keepAlive: true });
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

  /** The next batch of jobs: of those that were named, or of a walk. */
  #nextPage(cursor: string | null): Promise<JobPage> {
    const { store } = this.#parts;
    const left = this.#options.limit === undefined ? BATCH : this.#options.limit - this.#done;
    const count = Math.min(BATCH, left);
    const { ids, filter } = this.#query;
    if (ids) return loadNamed(store, ids, cursor, count);
    return store.inspect.page({ filter, after: cursor }, count);
  }

  async #batch(rows: readonly JobRow[]): Promise<void> {
    let decided = this.#decided(rows);
    let isFailing = false;
    // From the first failed commit to the end: it may take effect later than the next look at the jobs.
    let isUncertain = false;
    for (let look = 0; decided.length > 0 && look < LOOKS; look++) {
      if (look > 0) {
        const again = await this.#tried(() => this.#lookAgain(decided, isUncertain));
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
    const at = this.#parts.clock.now();
    const decisions = rows.flatMap((row): BulkDecision[] => {
      const decision = this.#decide(row, at);
      if (decision === null) return [];
      return [{ row, job: decision === "delete" ? null : { row, decision, at, by: "outsider" } }];
    });
    this.#skipped += rows.length - decisions.length;
    return decisions;
  }

  /**
   * What is to be done with the rows as they are now; those that are no longer meant are left alone. After a commit that
   * failed, its own work is recognised: by the fence that it drew, by a job that is gone as it should be, or by an ended
   * job that has run again.
   */
  async #lookAgain(before: readonly BulkDecision[], isUncertain: boolean): Promise<readonly BulkDecision[]> {
    const found = await this.#parts.store.jobs.load(before.map(({ row }) => row.id));
    const left: JobRow[] = [];
    for (const [index, decision] of before.entries()) {
      const row = found[index] ?? null;
      if (isUncertain && isDone(decision, row)) {
        this.#done += 1;
        if (decision.job) announce(this.#parts, decision.job);
      } else if (row !== null && isMeant(row, this.#query)) left.push(row);
      else this.#skipped += 1;
    }
    return this.#decided(left);
  }

  /** Returns the decisions whose rows had changed. */
  async #commit(decisions: readonly BulkDecision[]): Promise<readonly BulkDecision[]> {
    if (decisions.length === 0) return [];
    const jobs = decisions.map(({ row, job }) => job ?? removalOf(row));
    const outcomes = await commitJobs(this.#parts, [...jobs, ...this.#entry(decisions.length)]);
    const refused = decisions.filter((_, index) => !outcomes[index]?.ok);
    this.#done += decisions.length - refused.length;
    return refused;
  }

  /** The audit entry of a batch: the query, and how many jobs it was tried on. */
  #entry(tried: number): Unit[] {
    const now = this.#parts.clock.now();
    const details = { tried, filter: this.#query.filter as unknown as Json };
    const effects = auditEffects(this.#parts, this.#options.by, `bulk.${this.#action}`, { details }, now);
    return effects.length > 0 ? [{ effects }] : [];
  }

  #progress(): BulkProgress {
    return { matched: this.#matched, done: this.#done, skipped: this.#skipped, failed: this.#failed };
  }

  #tell(): void {
    try {
      this.#options.onProgress?.(this.#progress());
    } catch (error) {
      this.#parts.logger.error({ error }, "onProgress of a bulk action threw");
    }
  }

  #result(cursor: string | null, isComplete: boolean): BulkResult {
    return { ...this.#progress(), isComplete, cursor, errors: this.#errors };
  }
}
