import { z } from "zod";
import { show } from "../../core/errors.ts";
import type { Instant } from "../../core/time.ts";
import {
  type AnyNode,
  batch,
  chain,
  graphNode,
  group,
  type StepNode,
  type StepOptions,
  type WorkflowNode,
  wireStep,
} from "../../core/workflow/node.ts";
import type { Schemas } from "../../engine/schemas/schemas.ts";
import type { WorkflowSummary, WorkflowView } from "../../engine/workflows/workflow-view.ts";
import { readIsoDuration } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import type { BodyWarning } from "../http/body-warnings.ts";
import { refusedField } from "../http/http-error.ts";
import { adminPageQuery } from "./admin-schemas.ts";
import { readJob } from "./enqueue.ts";
import { type EnqueueBody, enqueueSchema, metaObject, type OptionsBody, optionsSchema } from "./schemas.ts";
import { versionWarnings } from "./unknown-version.ts";
import { plainStep, readGraph } from "./workflow-graph.ts";

const MOST_SECONDS = 315_360_000;
/** Storing more steps would block the event loop for more than 50 ms. */
const MOST_STEPS = 5_000;
const KINDS = ["chain", "group", "batch"] as const;
const ROOT_KINDS = [...KINDS, "graph"] as const;

interface WorkflowFields {
  readonly type: (typeof ROOT_KINDS)[number];
  readonly steps?: readonly (EnqueueBody | WorkflowFields)[] | null | undefined;
  readonly jobs?: readonly (EnqueueBody | WorkflowFields)[] | null | undefined;
  readonly callbacks?: CallbackFields | null | undefined;
  readonly options?: OptionsBody | null | undefined;
}

interface CallbackFields {
  readonly on_success?: EnqueueBody | null | undefined;
  readonly on_failure?: EnqueueBody | null | undefined;
  readonly on_complete?: EnqueueBody | null | undefined;
}

const stepSchema = enqueueSchema
  .extend({
    id: z.string().max(255).nullish().meta({
      description: "In a graph: a name of your choice. Other steps get their ids from the workflow.",
    }),
    depends_on: z.array(z.string().max(255)).max(10_000).nullish().meta({
      description: "In a graph: the ids of the steps that it waits for.",
    }),
  })
  .meta({ id: "WorkflowStep", description: "A job of a workflow." });

const NO_NODES = { error: "name the steps of a chain, or the jobs of a group or batch", path: ["steps"] };

/** A job has `args`; a workflow has `steps` or `jobs`. Most nodes are jobs, so these are tried first. */
const node: z.ZodType<EnqueueBody | WorkflowFields> = z
  .lazy(() =>
    z.union([stepSchema, z.looseObject({ ...nodeFields, type: z.enum(KINDS) }).refine(hasNodes, NO_NODES)]),
  )
  .meta({ id: "WorkflowNode", description: "A job, or a chain, group or batch." }) as never;
/** The same for `steps` and `jobs`: a schema that contains itself gets an odd name in OpenAPI where it has none. */
const nodes = z.array(node).min(1).max(10_000).nullish().meta({ id: "WorkflowNodes" });
const callback = enqueueSchema.nullish();

const nodeFields = {
  steps: nodes,
  jobs: nodes,
  callbacks: z
    .looseObject({ on_success: callback, on_failure: callback, on_complete: callback })
    .nullish()
    .meta({ description: "Of a batch: jobs that are enqueued once all of its jobs have ended." }),
  options: optionsSchema
    .nullish()
    .meta({ description: "Defaults for all of its jobs: queue, priority, timeouts and so on." }),
};

function hasNodes({ steps, jobs }: { readonly steps?: unknown; readonly jobs?: unknown }): boolean {
  return steps != null || jobs != null;
}

const arrangedSchema = z
  .looseObject({
    type: z.enum(ROOT_KINDS).meta({
      description: "One after the other, all at once, or (graph) each after the steps in its depends_on.",
    }),
    ...nodeFields,
    id: z.string().max(64).nullish(),
    name: z.string().min(1).max(255).nullish(),
    meta: metaObject.nullish(),
    workflow_timeout: z.int().min(1).max(MOST_SECONDS).nullish().meta({
      description: "Seconds for the whole workflow: no step gets more time than is left of it.",
    }),
    workflow_timeout_ms: z
      .int()
      .min(1)
      .max(MOST_SECONDS * 1_000)
      .nullish(),
    retention: z
      .string()
      .refine((text) => readIsoDuration(text) !== undefined, { error: 'use a duration such as "P7D"' })
      .nullish(),
  })
  .refine(hasNodes, NO_NODES)
  .meta({
    id: "WorkflowRequest",
    description:
      "Jobs as one thing. A step may itself be a chain, group or batch. Without a type it is a graph: steps with an id and depends_on.",
  });

/** Steps with `depends_on` are a graph; the binding gives it no type. */
export const workflowSchema = z.preprocess((said, context) => {
  if (stepCount(said) > MOST_STEPS) {
    const message = `use at most ${MOST_STEPS} steps in one request; openEngine takes 10,000`;
    context.addIssue({ code: "custom", path: ["steps"], message });
    return z.NEVER;
  }
  const body = said as { readonly type?: unknown; readonly steps?: unknown } | null;
  if (typeof body !== "object" || body === null) return said;
  if (body.type !== undefined && body.type !== "graph") return said;
  if (!Array.isArray(body.steps) || !body.steps.every(isNamedStep)) return said;
  const read = readGraph(body.steps);
  if ("after" in read) return { ...body, type: "graph", steps: body.steps.map(plainStep) };
  context.addIssue({ code: "custom", path: [...read.path], message: read.message });
  return z.NEVER;
}, arrangedSchema);

/** The jobs of a workflow, counted before its schema looks at each of them. */
function stepCount(node: unknown): number {
  if (typeof node !== "object" || node === null) return 1;
  const { steps, jobs } = node as { readonly steps?: unknown; readonly jobs?: unknown };
  const inner = [steps, jobs].flatMap((list) => (Array.isArray(list) ? list : []));
  return inner.reduce((sum: number, each) => sum + stepCount(each), inner.length === 0 ? 1 : 0);
}

function isNamedStep(step: unknown): step is { readonly [field: string]: unknown } {
  return typeof step === "object" && step !== null && !Array.isArray(step);
}

export const workflowsQuery = adminPageQuery.extend({
  state: z.enum(["running", "active", "completed", "failed", "cancelled"]).optional(),
  order: z.enum(["asc", "desc"]).optional().meta({
    description: "By the time of their start. Default desc: the newest first. A cursor belongs to its order.",
  }),
});

type WorkflowBody = z.output<typeof workflowSchema>;

/** The workflow as the engine's tree. */
export function readWorkflow(
  body: WorkflowBody,
  reading: Pick<Reading, "now" | "documentLimit" | "warn" | "schemas">,
): WorkflowNode {
  return readNodes(body as WorkflowFields, { ...reading, defaults: {} }, "");
}

interface Reading {
  readonly now: Instant;
  readonly documentLimit: number;
  /** Called for each field that is taken and has no effect. */
  readonly warn: (warning: BodyWarning) => void;
  readonly schemas: Schemas;
  /** Options of the workflows around a step. */
  readonly defaults: OptionsBody;
}

/** Several fields say one thing, so naming one of them replaces the defaults of all. */
const SAME: readonly (readonly string[])[] = [
  ["timeout", "timeout_ms"],
  ["total_timeout", "total_timeout_ms"],
  ["enqueue_ttl", "enqueue_ttl_ms"],
  ["grace_period", "grace_period_ms"],
  ["heartbeat_timeout", "heartbeat_timeout_ms"],
  ["visibility_timeout", "visibility_timeout_ms"],
  ["scheduled_at", "delay_until"],
];

/** Options with defaults for what is not said, neither in the options nor at the top level. */
function withDefaults(defaults: OptionsBody, said: object, options: OptionsBody): OptionsBody {
  const names = new Set([...namesOf(said), ...namesOf(options)]);
  for (const same of SAME) if (same.some((name) => names.has(name))) for (const name of same) names.add(name);
  const rest = Object.entries(defaults).filter(([name]) => !names.has(name));
  return { ...Object.fromEntries(rest), ...options };
}

function namesOf(fields: object): string[] {
  return Object.entries(fields).flatMap(([name, value]) => (value == null ? [] : [name]));
}

function readNodes(body: WorkflowFields, around: Reading, at: string): AnyNode {
  const reading = { ...around, defaults: withDefaults(around.defaults, {}, body.options ?? {}) };
  if (body.steps && body.jobs)
    throw refusedField(`${at}jobs`, "it contradicts steps: send one of them, with all of its jobs");
  const name = body.steps ? "steps" : "jobs";
  const said = body.steps ?? body.jobs ?? [];
  if (at !== "") refuseUnread(body, reading.warn, at);
  const nodes = said.map((inner, index) => {
    const place = `${at}${name}.${index}`;
    if (body.type !== "graph") refuseLinks(inner, place);
    return "args" in inner
      ? readStep(body.type === "graph" ? withoutLinks(inner) : (inner as EnqueueBody), reading, place)
      : readNodes(inner as WorkflowFields, reading, `${place}.`);
  }) as [AnyNode, ...AnyNode[]];
  if (body.callbacks && body.type !== "batch")
    throw refusedField(
      `${at}callbacks`,
      "only a batch has callbacks: give it the type batch, or leave them out",
    );
  if (body.type === "chain") return chain(nodes) as AnyNode;
  if (body.type === "group") return group(nodes) as AnyNode;
  if (body.type === "graph") return readLinks(said, nodes);
  return batch(nodes, readCallbacks(body.callbacks, reading, at)) as AnyNode;
}

/** Fields of the whole workflow, and of jobs. An inner workflow has neither: its jobs would run without them. */
const OF_THE_WHOLE = ["workflow_timeout", "workflow_timeout_ms", "retention"];
const OF_JOBS = [
  ...Object.keys(optionsSchema.shape).filter((name) => name !== "meta"),
  ...["curfew", "parent_id"],
];
/** Names and notes of an inner workflow. Nothing depends on them. */
const NOT_KEPT = ["id", "name", "meta"];

function refuseUnread(body: WorkflowFields, warn: Reading["warn"], at: string): void {
  const fields = new Map<string, unknown>(Object.entries(body));
  const said = new Set(namesOf(body));
  const shown = (name: string) => show(fields.get(name));
  for (const name of OF_THE_WHOLE)
    if (said.has(name))
      throw refusedField(
        `${at}${name}`,
        `${shown(name)} stands in an inner ${body.type}; only the whole workflow has it: write it beside the outermost type`,
      );
  for (const name of OF_JOBS)
    if (said.has(name))
      throw refusedField(
        `${at}${name}`,
        `${shown(name)} stands beside the jobs of an inner ${body.type}, where nothing reads it; write ${at}options.${name} for all of its jobs`,
      );
  for (const name of NOT_KEPT)
    if (said.has(name)) {
      const message = `${at}${name}: an inner ${body.type} keeps none; write it at the whole workflow, or at its jobs`;
      warn({ code: "no_effect", field: `${at}${name}`, message });
    }
}

/** Only a graph has links. Elsewhere a step would run without what it says that it waits for. */
function refuseLinks(step: object, place: string): void {
  const { depends_on: links } = step as { readonly depends_on?: unknown };
  if (links != null && !(Array.isArray(links) && links.length === 0))
    throw refusedField(
      `${place}.depends_on`,
      "only a graph has it: leave the type of the workflow out, or the field",
    );
}

/** What a step waits for is in the plan of its workflow; its job does not repeat it. */
function withoutLinks(step: object): EnqueueBody {
  const { depends_on: _links, ...job } = step as EnqueueBody & { readonly depends_on?: unknown };
  return job;
}

function readLinks(said: readonly object[], nodes: readonly AnyNode[]): AnyNode {
  const named = said.map((each) => {
    const { step_id: id, depends_on } = each as { readonly step_id?: unknown; readonly depends_on?: unknown };
    return { id, depends_on };
  });
  const read = readGraph(named);
  if (!("after" in read)) throw refusedField(read.path.join("."), read.message);
  return graphNode(read.names, nodes, read.after);
}

function readCallbacks(said: CallbackFields | null | undefined, reading: Reading, at: string) {
  const read = (name: keyof CallbackFields) => {
    const job = said?.[name];
    return job ? readStep(job, reading, `${at}callbacks.${name}`) : undefined;
  };
  const [onSuccess, onFailure, onComplete] = [read("on_success"), read("on_failure"), read("on_complete")];
  return {
    ...(onSuccess && { onSuccess }),
    ...(onFailure && { onFailure }),
    ...(onComplete && { onComplete }),
  };
}

function readStep(said: EnqueueBody, reading: Reading, place: string): StepNode {
  const { now, documentLimit, defaults } = reading;
  const body = { ...said, options: withDefaults(defaults, said, said.options ?? {}) };
  const { definition, payload, options, isPending, visibility, wire } = readJob(body, now, documentLimit);
  if (isPending) throw refusedField(`${place}.pending`, "the workflow says when it runs: leave it out");
  if (options.id) throw refusedField(`${place}.id`, "steps get their ids from the workflow: leave it out");
  if (options.unique)
    throw refusedField(`${place}.unique`, "a step that is left out would never end: leave it out");
  if (wire) versionWarnings(reading.schemas, { definition, wire }, `${place}.`).forEach(reading.warn);
  return wireStep(definition, JSON.parse(payload), options as StepOptions, {
    ...(visibility !== undefined && { visibility }),
    ...(wire && { wire }),
  });
}

/** A workflow. Its steps are counted under both names, `steps` and `jobs`. */
export function workflowFields(view: WorkflowSummary & Partial<WorkflowView>) {
  const { id, kind, name, state, total, startedAt, endedAt, deadline, failure, meta } = view;
  const { completed, discarded, cancelled } = view.progress ?? { completed: 0, discarded: 0, cancelled: 0 };
  return {
    id,
    type: kind,
    name,
    state,
    step_count: total,
    steps_total: total,
    steps_completed: completed,
    jobs_total: total,
    jobs_completed: completed,
    jobs_failed: discarded,
    jobs_cancelled: cancelled,
    created_at: instantText(startedAt),
    completed_at: endedAt === null ? null : instantText(endedAt),
    deadline: deadline === null ? null : instantText(deadline),
    failure: failure && {
      reason: failure.reason,
      job_id: failure.job ?? null,
      job_type: failure.type ?? null,
      message: failure.message ?? null,
    },
    meta,
  };
}

const workflow = z
  .looseObject({
    id: z.string(),
    type: z.enum(["step", ...ROOT_KINDS]),
    name: z.string().nullable(),
    state: z.enum(["running", "completed", "failed", "cancelled"]),
    steps_total: z.int(),
    steps_completed: z.int(),
    jobs_total: z.int(),
    jobs_completed: z.int(),
  })
  .meta({ id: "Workflow" });

export const workflowReplySchema = z.looseObject({ workflow });
export const workflowsReplySchema = z.looseObject({ workflows: z.array(workflow) });

export const workflowProgressReply = z
  .looseObject({
    workflow_id: z.string(),
    state: z.string(),
    total: z.int(),
    progress: z.number().min(0).max(1),
    steps: z.array(z.looseObject({ id: z.string(), state: z.string(), progress: z.number().nullable() })),
  })
  .meta({ id: "WorkflowProgress" });
