import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { refuseUnknownKeys } from "../../core/errors.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { assertDefinition, checkPriority, type JobDefinition } from "../../core/job/job-definition.ts";
import { type Explanation, explainJob } from "../../core/job/policy/explain.ts";
import { adaptiveRule } from "../../core/job/policy/policy.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { findJobs, type PageOptions, parsePage, type RowPage } from "../find/find-jobs.ts";
import { type JobQuery, parseQuery } from "../find/job-query.ts";
import { type ExtendOptions, operate, parseExtension, unknownJob } from "./operate-job.ts";
import { parseReschedule, type RescheduleOptions } from "./reschedule-options.ts";
import { parseRetryByHand, RETRY_BY_HAND_KEYS, type RetryByHandOptions } from "./retry-by-hand.ts";
import { workerWarningsOf } from "./worker-list.ts";

/** Reads and operates jobs by id and returns rows: for the server, and for handles, which turn them into views. */
export class JobRows {
  readonly #context: EngineContext;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async load(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#context.store.jobs.load([id]);
    return row ?? null;
  }

  /** One page of the jobs that match a query. */
  async find(query: JobQuery = {}, page: PageOptions = {}): Promise<RowPage> {
    return findJobs(this.#context.store, parseQuery(query, "query"), parsePage(page, "page"));
  }

  /** The same page with brief rows where the store does all of the filter: for callers that need no document. */
  async findBrief(query: JobQuery = {}, page: PageOptions = {}): Promise<RowPage> {
    return findJobs(this.#context.store, parseQuery(query, "query"), parsePage(page, "page"), true);
  }

  /** The whole row, for a person who may see what is redacted. The audit records it before it is returned. */
  async reveal(id: JobId, by: By): Promise<JobRow> {
    const row = await this.load(id);
    if (!row) throw unknownJob("reveal", id);
    const effects = auditEffects(
      this.#context,
      parseBy(by),
      "job.reveal",
      { job: id },
      this.#context.clock.now(),
    );
    await commitUnits(this.#context, [{ effects }]);
    return row;
  }

  cancel(id: JobId, by?: By): Promise<JobRow> {
    return operate(this.#context, id, { type: "cancel" }, by);
  }

  async extend(id: JobId, options: ExtendOptions, by?: By): Promise<JobRow> {
    return operate(this.#context, id, { type: "extend", ...parseExtension(options) }, by);
  }

  async retry(id: JobId, options: RetryByHandOptions = {}, by?: By): Promise<JobRow> {
    refuseUnknownKeys(options, "retry", RETRY_BY_HAND_KEYS);
    return operate(this.#context, id, parseRetryByHand(options, this.#context.tenant, "retry"), by);
  }

  activate(id: JobId, by?: By): Promise<JobRow> {
    return operate(this.#context, id, { type: "activate" }, by);
  }

  runNow(id: JobId, by?: By): Promise<JobRow> {
    return operate(this.#context, id, { type: "run" }, by);
  }

  async reschedule(id: JobId, when: RescheduleOptions, by?: By): Promise<JobRow> {
    const dueAt = parseReschedule(when, this.#context.clock.anchor());
    return operate(this.#context, id, { type: "reschedule", dueAt }, by);
  }

  async prioritise(id: JobId, priority: number, by?: By): Promise<JobRow> {
    const checked = checkPriority(priority, "priority");
    return operate(this.#context, id, { type: "prioritise", priority: checked }, by);
  }

  async explain(id: JobId, definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation> {
    const row = await this.load(id);
    if (!row) throw unknownJob("explain", id);
    if (definition) assertDefinition(definition, "definition");
    const { queues, settings, clock, store } = this.#context;
    const now = clock.now();
    const layers = { definition: definition?.settings, queue: queues.policyOf(row.queue), engine: settings };
    const rule = adaptiveRule({ ...layers, enqueue: row.options?.settings });
    const learned =
      rule && row.policy === null ? await this.#context.learned.read(row.type, rule) : undefined;
    return explainJob(row, layers, now, {
      learned,
      queueConcurrency: queues.concurrencyOf(row.queue),
      warnings: await workerWarningsOf(store, row, definition, now),
    });
  }
}
