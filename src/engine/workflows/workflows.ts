import type { By } from "../../core/audit/audit-entry.ts";
import { CurfewError, checkCount, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { cellOfId } from "../../core/home/cell.ts";
import { startOf } from "../../core/job/enqueue/budgets.ts";
import type { EnqueueContext, NewJob } from "../../core/job/enqueue/envelope.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { type AnyNode, assertNode, type StepNode, type WorkflowNode } from "../../core/workflow/node.ts";
import { checkParents } from "../../core/workflow/parents.ts";
import { layOut } from "../../core/workflow/plan.ts";
import type { WorkflowRecord } from "../../core/workflow/workflow-record.ts";
import { BATCH_LIMIT, type ListOrder } from "../../ports/store.ts";
import { checkOrder } from "../commit/check-order.ts";
import { checkTx } from "../commit/check-tx.ts";
import type { EngineContext } from "../context.ts";
import { announceWorkflow } from "./announce-workflow.ts";
import { type ParsedOptions, parseOptions, type WorkflowOptions } from "./start-options.ts";
import { type NewWorkflow, WorkflowIntake } from "./store-workflow.ts";
import type { WorkflowCleanup } from "./workflow-cleanup.ts";
import { WorkflowHandle } from "./workflow-handle.ts";
import { leavesOf, preparePayloads, workflowJob } from "./workflow-jobs.ts";
import { type StoredWorkflow, WORKFLOWS } from "./workflow-records.ts";
import { summaryOf, type WorkflowSummary } from "./workflow-view.ts";

/** The most steps and callbacks of one workflow. */
const MOST_STEPS = 10_000;
/** At most this many jobs, barrier jobs included, and characters of payloads in one commit. */
const AT_ONCE = { jobs: BATCH_LIMIT, text: 4_000_000 } as const;

export interface WorkflowsDeps {
  context(): EnqueueContext;
  notice(jobs: readonly NewJob[]): void;
  readonly cleanup: WorkflowCleanup;
}

export interface WorkflowPage {
  readonly after?: string;
  /** From 1 to 1,000; default 100. */
  readonly limit?: number;
  /** Default `asc`. */
  readonly order?: ListOrder;
}

/** Workflows: jobs in chains, groups, batches and graphs that are watched and cancelled as one. */
export class Workflows {
  readonly #context: EngineContext;
  readonly #host: WorkflowsDeps;
  readonly #intake: WorkflowIntake;

  constructor(context: EngineContext, host: WorkflowsDeps) {
    this.#context = context;
    this.#host = host;
    this.#intake = new WorkflowIntake(context);
  }

  /**
   * Stores all jobs of a workflow or none; resolves once they are durable. A known id returns the existing workflow.
   */
  async start<Result>(
    node: WorkflowNode<Result>,
    options: WorkflowOptions = {},
  ): Promise<WorkflowHandle<Result>> {
    this.#context.assertOpen();
    assertNode(node, "workflow");
    const parsed = parseOptions(options);
    checkTx(this.#context.store, parsed.tx);
    const leaves = leavesOf(node);
    if (leaves.length > MOST_STEPS)
      throw refuse("invalid_workflow", "workflow", `${leaves.length} steps`, `use at most ${MOST_STEPS}`);
    checkParents(node);
    const texts = await preparePayloads(leaves, this.#context.documentLimit);
    const workflow = this.#prepare(node, parsed, leaves, texts);
    await this.#context.schemas.check(workflow.jobs);
    const isNew = await this.#intake.store(workflow, parsed.tx);
    if (isNew && parsed.tx === undefined) this.#announce(workflow);
    return new WorkflowHandle(this.#context, this.#host.cleanup, workflow.id, !isNew);
  }

  #prepare(
    node: AnyNode,
    parsed: ParsedOptions,
    leaves: readonly StepNode[],
    texts: ReadonlyMap<StepNode, string>,
  ): NewWorkflow {
    const { nextId } = this.#context;
    const id = parsed.id ?? nextId();
    const text = leaves.reduce((sum, leaf) => sum + (texts.get(leaf)?.length ?? 0), 0);
    // At most one barrier job per step.
    const isLarge = 2 * leaves.length + 1 > AT_ONCE.jobs || text > AT_ONCE.text;
    if (isLarge && parsed.tx !== undefined) {
      const fix = `with tx it must fit into one commit: at most ${AT_ONCE.jobs / 2 - 1} steps and ${AT_ONCE.text} characters of payloads`;
      throw refuse("invalid_workflow", "workflow", `${leaves.length} steps`, fix);
    }
    const { plan, jobs } = layOut(node, this.#stepIds(id), isLarge);
    const enqueue = this.#host.context();
    const { now, anchor = now } = enqueue;
    const ownEnd = parsed.timeout === null ? null : anchor + parsed.timeout;
    const endsAt = earlier(ownEnd, inheritedEnd(parsed.inheritedAt, leaves, now));
    const context = { id, endsAt, enqueue };
    const total = jobs.filter(({ role }) => role === "step").length;
    return {
      id,
      record: recordOf(node, parsed, { endsAt, total, end: plan.end, startedAt: now }),
      plan,
      jobs: jobs.map((job) => workflowJob(job, context, texts)),
    };
  }

  /** Steps are in the home of their workflow. */
  #stepIds(workflow: string): () => string {
    const { nextId } = this.#context;
    if (nextId.namePrefix === undefined) return nextId;
    const cell = cellOfId(workflow);
    return () => nextId(cell);
  }

  #announce({ id, record, plan, jobs }: NewWorkflow): void {
    this.#host.notice(jobs.filter(({ needs = 0 }) => needs === 0));
    announceWorkflow(this.#context.bus, id, record, record.startedAt);
    if (plan.start !== undefined) this.#context.wakeSweepAt(this.#context.clock.now());
  }

  /** A handle on a workflow by its id. */
  get<Result = unknown>(id: string): WorkflowHandle<Result> {
    return new WorkflowHandle(this.#context, this.#host.cleanup, id, false);
  }

  /**
   * Workflows in the order of their ids, which is the order of their start unless callers gave other ids. `desc` begins
   * with the newest. `after` is the last id of the page before.
   */
  async list(page: WorkflowPage = {}): Promise<WorkflowSummary[]> {
    refuseUnknownKeys(page, "page", ["after", "limit", "order"]);
    const { after = null, limit = 100, order = "asc" } = page;
    checkCount(limit, "page.limit", BATCH_LIMIT);
    checkOrder(order, "page.order");
    const summaries: WorkflowSummary[] = [];
    for (let from = after; summaries.length < limit; ) {
      const page: StoredWorkflow[] = await WORKFLOWS.list(
        this.#context.store,
        from,
        limit - summaries.length,
        order,
      );
      if (page.length === 0) break;
      from = page.at(-1)?.name ?? null;
      for (const stored of page) {
        const summary = summaryOf(stored);
        if (summary) summaries.push(summary);
      }
    }
    return summaries;
  }

  /** Cancels the running and the waiting steps of a workflow. */
  async cancel(id: string, by?: By): Promise<WorkflowSummary> {
    if (typeof id !== "string")
      throw new CurfewError("not_found", `cancel: there is no workflow ${id}; use the id of a workflow`);
    return this.get(id).cancel(by);
  }
}

/**
 * The inherited deadline, or null if a step would start after it: an inherited deadline cuts time and never refuses a
 * workflow (SEMANTICS 4.7).
 */
function inheritedEnd(
  inheritedAt: Instant | null,
  leaves: readonly StepNode[],
  now: Instant,
): Instant | null {
  if (inheritedAt === null) return null;
  const isLater = leaves.some(({ options }) => startOf(options, now) >= inheritedAt);
  return isLater ? null : inheritedAt;
}

function recordOf(
  node: AnyNode,
  { name, meta, retention }: ParsedOptions,
  more: { endsAt: Instant | null; total: number; end: string; startedAt: Instant },
): WorkflowRecord {
  return {
    state: "running",
    phase: "running",
    kind: node.kind,
    name,
    meta,
    endedAt: null,
    counts: null,
    failure: null,
    isResultKept: false,
    retention,
    ...more,
  };
}
