import {
  type PortableDefinition,
  portableDefinition,
  portableOptions,
} from "../core/job/transfer/portable.ts";
import {
  type AnyNode,
  assertNode,
  type GraphNode,
  type StepNode,
  type StepOptions,
} from "../core/workflow/node.ts";
import { checkParents } from "../core/workflow/parents.ts";

/** A step as it is sent: the index of its definition, its payload and its options. */
export interface PortableStep {
  readonly kind: "step";
  readonly job: number;
  readonly payload: unknown;
  readonly options?: StepOptions;
}

export type PortableNode =
  | PortableStep
  | { readonly kind: "chain" | "group"; readonly nodes: readonly PortableNode[] }
  | {
      readonly kind: "batch";
      readonly nodes: readonly PortableNode[];
      readonly callbacks?: Readonly<Record<string, PortableStep>>;
    }
  | { readonly kind: "graph"; readonly steps: Readonly<Record<string, PortableGraphStep>> };

interface PortableGraphStep {
  readonly after: readonly string[];
  readonly run: PortableNode;
}

/** A workflow as JSON. Steps with the same definition share one entry of the list. */
export interface PortableWorkflow {
  readonly node: PortableNode;
  readonly definitions: readonly PortableDefinition[];
}

/** `payloadOf` gives the checked payload of a step as a JSON value. */
export async function portableWorkflow(
  node: unknown,
  payloadOf: (step: StepNode) => Promise<unknown>,
): Promise<PortableWorkflow> {
  assertNode(node, "workflow");
  const definitions = new Map<string, number>();
  const stepOf = async (step: StepNode): Promise<PortableStep> => {
    const payload = await payloadOf(step);
    const text = JSON.stringify(portableDefinition(step.definition, step.payload));
    const job = definitions.get(text) ?? definitions.size;
    definitions.set(text, job);
    return { kind: "step", job, payload, options: portableOptions(step.options) };
  };
  const walk = async (inner: AnyNode): Promise<PortableNode> => {
    if (inner.kind === "step") return stepOf(inner);
    const nodes: PortableNode[] = [];
    for (const one of inner.nodes) nodes.push(await walk(one));
    if (inner.kind === "chain" || inner.kind === "group") return { kind: inner.kind, nodes };
    if (inner.kind === "graph") return { kind: "graph", steps: graphSteps(inner, nodes) };
    const callbacks: Record<string, PortableStep> = {};
    for (const [name, step] of Object.entries(inner.callbacks))
      if (step) callbacks[name] = await stepOf(step as StepNode);
    return { kind: "batch", nodes, callbacks };
  };
  // The server gets no names of parents, so they are checked here.
  checkParents(node);
  const root = await walk(node);
  return { node: root, definitions: [...definitions.keys()].map((text) => JSON.parse(text)) };
}

function graphSteps(
  { names, after }: GraphNode,
  nodes: readonly PortableNode[],
): Readonly<Record<string, PortableGraphStep>> {
  const steps = names.map((name, index) => {
    const before = (after[index] ?? []).map((position) => names[position] as string);
    return [name, { after: before, run: nodes[index] as PortableNode }] as const;
  });
  return Object.fromEntries(steps);
}
