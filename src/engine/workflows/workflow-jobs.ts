import { refuse } from "../../core/errors.ts";
import { BOOKKEEPING_QUEUE } from "../../core/job/decide/step-rules.ts";
import {
  type EnqueueContext,
  type JobTemplate,
  type NewJob,
  prepareJob,
  preparePayload,
  stamp,
} from "../../core/job/enqueue/envelope.ts";
import {
  dueAtOf,
  type JobImage,
  type JobOptions,
  rankOf,
  type StepDependencies,
} from "../../core/job/job.ts";
import { formatDuration, type Instant, parseDuration } from "../../core/time.ts";
import type { AnyNode, StepNode } from "../../core/workflow/node.ts";
import type { PlannedJob } from "../../core/workflow/plan.ts";

const BOOKKEEPING = { queue: BOOKKEEPING_QUEUE, type: "curfew.workflow" } as const;

/** What all jobs of one workflow share. */
export interface WorkflowContext {
  readonly id: string;
  readonly endsAt: Instant | null;
  readonly enqueue: EnqueueContext;
}

/** The steps of a workflow and the callbacks of its batches. */
export function leavesOf(node: AnyNode): StepNode[] {
  if (node.kind === "step") return [node];
  const members = node.nodes.flatMap(leavesOf);
  if (node.kind !== "batch") return members;
  const { onSuccess, onFailure, onComplete } = node.callbacks;
  return [...members, ...[onSuccess, onFailure, onComplete].filter((callback) => callback !== undefined)];
}

/** Checks the payloads of all steps and returns their texts. A step object that is used twice is checked once. */
export async function preparePayloads(
  leaves: readonly StepNode[],
  limit: number,
): Promise<ReadonlyMap<StepNode, string>> {
  const texts = new Map<StepNode, string>();
  for (const leaf of leaves)
    if (!texts.has(leaf)) texts.set(leaf, await preparePayload(leaf.definition, leaf.payload, limit));
  return texts;
}

export function workflowJob(
  planned: PlannedJob,
  context: WorkflowContext,
  texts: ReadonlyMap<StepNode, string>,
): NewJob {
  const { id, node, needs } = planned;
  if (!node) return bookkeepingJob(planned, context);
  const isStarter = needs === 0;
  const { wire, visibility } = node.extra;
  const template = prepareJob(node.definition, node.options, {
    ...context.enqueue,
    wire,
    visibility,
    isStep: true,
    ...(isStarter && { parent: { id: context.id, totalAt: context.endsAt } }),
  });
  refuseTooLate(template, context);
  // Steps are never unique: a step that is dropped as a duplicate would never end.
  const { uniqueKey: _uniqueKey, ...job } = stamp(
    template,
    texts.get(node) as string,
    () => id,
    node.payload,
  );
  if (isStarter)
    return { ...job, workflow: context.id, options: { ...job.options, step: { wakes: planned.wakes } } };
  const options: JobOptions = {
    ...job.options,
    step: { wakes: planned.wakes, waitsFor: dependenciesOf(planned, node, context) },
  };
  // Its enqueue is recorded when the step becomes ready.
  const { records: _records, ...waiting } = job;
  return {
    ...waiting,
    workflow: context.id,
    // One more than its dependencies: its limit must not admit it before the step scheduler counts down the last one.
    needs: job.limitKey === undefined ? needs : needs + 1,
    image: pendingImage(job.image),
    options,
  };
}

/** Refuses a first step that would start after the workflow's deadline. */
function refuseTooLate({ image, createdAt }: JobTemplate, { endsAt }: WorkflowContext): void {
  const dueAt = dueAtOf(image.rank);
  if (endsAt === null || dueAt < endsAt) return;
  const fix = `a step starts ${formatDuration(dueAt - createdAt)} from now: use a longer timeout, or start the step earlier`;
  throw refuse("never_runs", "options.timeout", formatDuration(endsAt - createdAt), fix);
}

function dependenciesOf(
  { role, after }: PlannedJob,
  { options }: StepNode,
  { endsAt }: WorkflowContext,
): StepDependencies {
  return {
    role,
    ...(after && { after }),
    ...(options.delay !== undefined && {
      delay: parseDuration(options.delay, "options.delay", { zero: true }),
    }),
    // Callbacks run at the end, so the deadline does not apply to them.
    ...(endsAt !== null && role === "step" && { endsAt }),
  };
}

/** A step that is not ready has no deadlines: they count from when it is ready. */
function pendingImage(image: JobImage): JobImage {
  return { ...image, state: "pending", wake: "decide", wakeAt: null, waitAt: null, totalAt: null };
}

function bookkeepingJob(planned: PlannedJob, { id: workflow, enqueue }: WorkflowContext): NewJob {
  const { id, role, needs, wakes } = planned;
  return {
    id,
    hasNewId: true,
    ...BOOKKEEPING,
    priority: 0,
    createdAt: enqueue.now,
    image: {
      state: "pending",
      wake: "decide",
      wakeAt: null,
      rank: rankOf(0, enqueue.now),
      attempt: 0,
      returns: 0,
      expiredClaims: 0,
      waitAt: null,
      totalAt: null,
      startedAt: null,
      softAt: null,
      hardAt: null,
      stallAt: null,
      heartbeat: null,
      finishedAt: null,
      pruneAt: null,
      deadLetter: false,
    },
    payload: "null",
    options: { step: { wakes, waitsFor: { role } } },
    needs,
    workflow,
  };
}
