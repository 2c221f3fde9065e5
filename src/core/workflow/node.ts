import { refuse, refuseUnknownKeys } from "../errors.ts";
import { ENQUEUE_KEYS, type EnqueueOptions } from "../job/enqueue/envelope.ts";
import type { JobOptions } from "../job/job.ts";
import { assertDefinition, type JobDefinition, type PayloadArgs } from "../job/job-definition.ts";
import { linkSteps } from "./links.ts";

/** Options of a step, in addition to its definition. Its delay and its limits count from when it becomes ready. */
export type StepOptions = Omit<EnqueueOptions, (typeof NOT_OF_STEPS)[number]>;

/** What only a job that somebody enqueues by itself can say. */
const NOT_OF_STEPS = ["id", "unique", "detach", "limit", "tx"] as const;
const STEP_KEYS = ENQUEUE_KEYS.filter((key) => !NOT_OF_STEPS.some((other) => other === key));

/** Only in the types: the result of a completed node, and the results that it wants from the nodes before it. */
declare const RESULT: unique symbol;
declare const PARENTS: unique symbol;

export type WorkflowKind = "step" | "chain" | "group" | "batch" | "graph";

/** A workflow, or a part of one, as plain data. */
export interface WorkflowNode<Result = unknown, Parents = unknown> {
  readonly kind: WorkflowKind;
  readonly [RESULT]?: Result;
  readonly [PARENTS]?: Parents;
}

/** Fields of a step that only the wire protocol has. */
export interface WireFields {
  readonly wire?: JobOptions["wire"];
  readonly visibility?: number;
}

export interface StepNode<Result = unknown, Parents = unknown> extends WorkflowNode<Result, Parents> {
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

export interface GraphNode<Result = unknown> extends WorkflowNode<Result> {
  readonly kind: "graph";
  readonly nodes: readonly AnyNode[];
  /** The name of each node. */
  readonly names: readonly string[];
  /** For each node, the positions of the nodes that it waits for. */
  readonly after: readonly (readonly number[])[];
}

export type AnyNode = StepNode | ChainNode | GroupNode | BatchNode | GraphNode;

/** A step of a graph: a node that waits for nothing, or a node and the names of the steps that it waits for. */
export type GraphStep<Names extends string = string> =
  | WorkflowNode
  | { readonly after: readonly Names[]; readonly run: WorkflowNode };

/** Refuses unknown names, and a step whose definition names other parents than `after` does. */
export type GraphSteps<Steps> = {
  readonly [Name in keyof Steps]: Steps[Name] extends {
    readonly after: infer After extends readonly unknown[];
    readonly run: infer Run;
  }
    ? {
        readonly after: readonly OtherNames<Steps, Name>[];
        readonly run: ParentsOf<Run> extends infer Wanted
          ? unknown extends Wanted
            ? WorkflowNode
            : ResultsAfter<Steps, After> extends Wanted
              ? WorkflowNode
              : { readonly "its definition wants other parents": Wanted }
          : never;
      }
    : WorkflowNode;
};

/** A graph that is made by a program has any names: these are checked when it runs. */
type OtherNames<Steps, Name> = string extends keyof Steps ? string : Exclude<keyof Steps & string, Name>;
type ParentsOf<Node> = Node extends WorkflowNode<unknown, infer Parents> ? Parents : never;
type ResultsAfter<Steps, After extends readonly unknown[]> = {
  readonly [Index in keyof After]: After[Index] extends keyof Steps
    ? ResultOfStep<Steps[After[Index]]>
    : never;
};
type ResultOfStep<Step> = ResultOfNode<Step extends { readonly run: infer Run } ? Run : Step>;
type AfterOf<Step> = Step extends { readonly after: readonly (infer Name)[] } ? Name : never;

/** The results of the steps that no other step waits for, by name. */
export type GraphResult<Steps> = {
  -readonly [Name in Exclude<keyof Steps, AfterOf<Steps[keyof Steps]>>]: ResultOfStep<Steps[Name]>;
};

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

export function step<Input, Result, Parents = unknown>(
  definition: JobDefinition<Input, unknown, Result, Parents>,
  ...[payload, options = {}]: PayloadArgs<Input, StepOptions>
): StepNode<Result, Parents> {
  assertDefinition(definition, "step");
  return wireStep(definition, payload, options, {}) as StepNode<Result, Parents>;
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

/** The most steps that wait for steps, counted once where several wait for the same ones. */
const MOST_LINKS = 20_000;
const NAME_LIMIT = 255;

/**
 * Runs each step when all steps that it waits for have succeeded. A step that ends without success cancels those that
 * wait for it, and no others. Its result is that of the steps that no other waits for, by name.
 */
export function graph<const Steps extends { readonly [name: string]: GraphStep }>(
  steps: Steps & GraphSteps<Steps>,
): GraphNode<GraphResult<Steps>> {
  if (typeof steps !== "object" || steps === null || Array.isArray(steps))
    throw refuse("invalid_workflow", "graph", steps, "pass an object of steps by name");
  const names = Object.keys(steps);
  const entries = Object.values<unknown>(steps).map((said, index) =>
    graphStep(said, `graph.${names[index]}`),
  );
  for (const name of names)
    if (name === "" || name.length > NAME_LIMIT)
      throw refuse("invalid_workflow", "graph", name, `use names of 1 to ${NAME_LIMIT} characters`);
  const nodes = checkNodes(
    entries.map(({ run }) => run),
    "graph",
    (index) => `graph.${names[index]}`,
  );
  const links = linkSteps(
    names,
    entries.map(({ after }) => after),
  );
  if ("after" in links) return graphNode(names, nodes, links.after) as GraphNode<GraphResult<Steps>>;
  const { step, at, value, fix } = links.problem;
  throw refuse("invalid_workflow", `graph.${names[step]}.after[${at}]`, value, fix);
}

/** A graph whose links are checked. */
export function graphNode(
  names: readonly string[],
  nodes: readonly AnyNode[],
  after: GraphNode["after"],
): GraphNode {
  const links = linkCount(nodes, after);
  if (links > MOST_LINKS) {
    const fix = `use at most ${MOST_LINKS}: let steps wait for the same steps, or for one step in between`;
    throw refuse("invalid_workflow", "graph", `${links} links`, fix);
  }
  return made({ kind: "graph", nodes, names, after });
}

function graphStep(said: unknown, field: string): { after: readonly string[]; run: unknown } {
  if (isNode(said) || typeof said !== "object" || said === null) return { after: [], run: said };
  refuseUnknownKeys(said, field, ["after", "run"]);
  const { after = [], run } = said as { readonly after?: unknown; readonly run?: unknown };
  if (!Array.isArray(after) || !after.every((name) => typeof name === "string"))
    throw refuse("invalid_workflow", `${field}.after`, after, "write a list of names of steps");
  if (!isNode(run))
    throw refuse("invalid_workflow", `${field}.run`, run, "make it with step, chain, group, batch or graph");
  return { after, run };
}

/** How many countdowns the links of a graph cost. Steps that wait for the same steps share a barrier job. */
function linkCount(nodes: readonly AnyNode[], after: GraphNode["after"]): number {
  const counted = new Set<string>();
  let count = 0;
  for (const list of after) {
    count += 1;
    const key = linkKey(list);
    if (counted.has(key)) continue;
    counted.add(key);
    for (const place of list) count += endCount(nodes[place] as AnyNode);
  }
  return count;
}

/** Equal for steps that wait for the same steps. */
export function linkKey(list: readonly number[]): string {
  return list.toSorted((a, b) => a - b).join(" ");
}

/** How many steps a node ends with. */
function endCount(node: AnyNode): number {
  if (node.kind === "step") return 1;
  if (node.kind === "chain") return endCount(node.nodes.at(-1) as AnyNode);
  return node.nodes.reduce((sum, inner) => sum + endCount(inner), 0);
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

function checkNodes(
  nodes: readonly unknown[],
  field: string,
  fieldOf: (index: number) => string = (index) => `${field}[${index}]`,
): readonly AnyNode[] {
  if (!Array.isArray(nodes)) throw refuse("invalid_workflow", field, nodes, "pass a list of nodes");
  if (nodes.length === 0) throw refuse("invalid_workflow", field, nodes, "put at least one step into it");
  for (const [index, node] of nodes.entries()) assertNode(node, fieldOf(index));
  const depth = nodes.reduce((deepest, node) => Math.max(deepest, depthOf(node)), 0);
  if (depth >= MOST_DEPTH)
    throw refuse("invalid_workflow", field, `${depth + 1} levels`, `nest at most ${MOST_DEPTH} levels`);
  return Object.freeze([...nodes]) as readonly AnyNode[];
}

/** Refuses what step, chain, group, batch and graph did not make. */
export function assertNode(node: unknown, field: string): asserts node is AnyNode {
  if (!isNode(node))
    throw refuse("invalid_workflow", field, node, "make it with step, chain, group, batch or graph");
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
