import { refuse, refuseUnknownKeys } from "../errors.ts";
import { ENQUEUE_KEYS, type EnqueueOptions } from "../job/envelope.ts";
import type { JobOptions } from "../job/job.ts";
import { assertDefinition, type JobDefinition } from "../job/job-definition.ts";

/** Options of a step, in addition to its definition. Its delay and its limits count from when it becomes ready. */
export type StepOptions = Omit<EnqueueOptions, (typeof NOT_OF_STEPS)[number]>;

/** What only a job that somebody enqueues by itself can say. */
const NOT_OF_STEPS = ["id", "unique", "detach", "limit", "tx"] as const;
const STEP_KEYS = ENQUEUE_KEYS.filter((key) => !NOT_OF_STEPS.some((other) => other === key));

/** Only in the types: the result of a completed node. */
declare const RESULT: unique symbol;

/** A workflow, or a part of one, as plain data. */
export interface WorkflowNode<Result = unknown> {
  readonly kind: "step" | "chain" | "group" | "batch";
  readonly [RESULT]?: Result;
}

/** Fields of a step that only the wire protocol has. */
export interface WireFields {
  readonly wire?: JobOptions["wire"];
  readonly visibility?: number;
}

export interface StepNode<Result = unknown> extends WorkflowNode<Result> {
  readonly kind: "step";
  readonly definition: JobDefinition<unknown, unknown, unknown>;
  readonly payload: unknown;
  readonly options: StepOptions;
  readonly extra: WireFields;
}

export interface ChainNode<Result = unknown> extends WorkflowNode<Result> {
  readonly kind: "chain";
  readonly nodes: readonly AnyNode[];
}

export interface GroupNode<Result = unknown> extends WorkflowNode<Result> {
  readonly kind: "group";
  readonly nodes: readonly AnyNode[];
}

/** Jobs that are enqueued once all members of a batch have ended. */
export interface BatchCallbacks {
  /** If all have succeeded. */
  readonly onSuccess?: StepNode;
  /** If at least one has not. */
  readonly onFailure?: StepNode;
  /** In either case. */
  readonly onComplete?: StepNode;
}

export interface BatchNode<Result = unknown> extends WorkflowNode<Result> {
  readonly kind: "batch";
  readonly nodes: readonly AnyNode[];
  readonly callbacks: BatchCallbacks;
}

export type AnyNode = StepNode | ChainNode | GroupNode | BatchNode;

/** The result of a completed node. */
export type ResultOfNode<Node> = Node extends WorkflowNode<infer Result> ? Result : never;

type Nodes = readonly [WorkflowNode, ...WorkflowNode[]];
type LastResult<List extends Nodes> = List extends readonly [...unknown[], infer Last]
  ? ResultOfNode<Last>
  : ResultOfNode<List[number]>;
type AllResults<List extends Nodes> = { -readonly [Index in keyof List]: ResultOfNode<List[Index]> };

/** The most levels of nesting. */
const MOST_DEPTH = 20;
const MADE = new WeakSet<object>();

export function step<Input, Result>(
  definition: JobDefinition<Input, unknown, Result>,
  ...[payload, options = {}]: undefined extends Input
    ? [payload?: NoInfer<Input>, options?: StepOptions]
    : [payload: NoInfer<Input>, options?: StepOptions]
): StepNode<Result> {
  assertDefinition(definition, "step");
  return wireStep(definition, payload, options, {}) as StepNode<Result>;
}

/** A step from the wire protocol, with its extra fields. */
export function wireStep(
  definition: StepNode["definition"],
  payload: unknown,
  options: StepOptions,
  extra: WireFields,
): StepNode {
  refuseUnknownKeys(options, "step.options", STEP_KEYS);
  return made({ kind: "step", definition, payload, options, extra });
}

/**
 * Runs nodes one after the other. Each gets the results of the one before it. One that ends without success cancels
 * the rest.
 */
export function chain<const List extends Nodes>(nodes: List): ChainNode<LastResult<List>> {
  return made({ kind: "chain", nodes: checkNodes(nodes, "chain") });
}

/** Runs nodes at once. If one ends without success, that is recorded and the others continue. */
export function group<const List extends Nodes>(nodes: List): GroupNode<AllResults<List>> {
  return made({ kind: "group", nodes: checkNodes(nodes, "group") });
}

/** A group that enqueues further jobs when all of it has ended. The batch itself has ended by then. */
export function batch<const List extends Nodes>(
  nodes: List,
  callbacks: BatchCallbacks = {},
): BatchNode<AllResults<List>> {
  refuseUnknownKeys(callbacks, "batch", ["onSuccess", "onFailure", "onComplete"]);
  for (const [name, node] of Object.entries(callbacks))
    if (node !== undefined && !isKind(node, "step"))
      throw refuse("invalid_workflow", `batch.${name}`, node, "make it with step()");
  return made({ kind: "batch", nodes: checkNodes(nodes, "batch"), callbacks });
}

function made<Node extends object>(node: Node): Node {
  MADE.add(node);
  return Object.freeze(node);
}

function isKind(node: unknown, kind: AnyNode["kind"]): boolean {
  return isNode(node) && node.kind === kind;
}

function isNode(node: unknown): node is AnyNode {
  return typeof node === "object" && node !== null && MADE.has(node);
}

function checkNodes(nodes: readonly unknown[], field: string): readonly AnyNode[] {
  if (!Array.isArray(nodes)) throw refuse("invalid_workflow", field, nodes, "pass a list of nodes");
  if (nodes.length === 0) throw refuse("invalid_workflow", field, nodes, "put at least one step into it");
  for (const [index, node] of nodes.entries()) assertNode(node, `${field}[${index}]`);
  const depth = nodes.reduce((deepest, node) => Math.max(deepest, depthOf(node)), 0);
  if (depth >= MOST_DEPTH)
    throw refuse("invalid_workflow", field, `${depth + 1} levels`, `nest at most ${MOST_DEPTH} levels`);
  return Object.freeze([...nodes]) as readonly AnyNode[];
}

/** Refuses what step, chain, group and batch did not make. */
export function assertNode(node: unknown, field: string): asserts node is AnyNode {
  if (!isNode(node))
    throw refuse("invalid_workflow", field, node, "make it with step, chain, group or batch");
}

const depths = new WeakMap<AnyNode, number>();

function depthOf(node: AnyNode): number {
  if (node.kind === "step") return 0;
  const known = depths.get(node);
  if (known !== undefined) return known;
  const depth = 1 + node.nodes.reduce((deepest, inner) => Math.max(deepest, depthOf(inner)), 0);
  depths.set(node, depth);
  return depth;
}
