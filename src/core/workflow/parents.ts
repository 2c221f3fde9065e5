import { refuse } from "../errors.ts";
import type { AnyNode, StepNode } from "./node.ts";

/** The types of the jobs whose results a step gets; undefined for a result that is a list or an object itself. */
type Given = readonly (string | undefined)[];

/**
 * Refuses a workflow with a step whose definition names other `parents` than the steps before it: its handler would
 * get results of another type than it was compiled for.
 */
export function checkParents(root: AnyNode): void {
  walk(root, []);
}

function walk(node: AnyNode, given: Given): void {
  if (node.kind === "step") {
    checkStep(node, given);
    return;
  }
  if (node.kind === "graph") {
    for (const [index, inner] of node.nodes.entries()) {
      const after = node.after[index] ?? [];
      walk(inner, after.length === 0 ? given : after.map((place) => itemOf(node.nodes[place] as AnyNode)));
    }
    return;
  }
  let before = given;
  for (const inner of node.nodes) {
    walk(inner, before);
    if (node.kind === "chain") before = givenBy(inner);
  }
  if (node.kind !== "batch") return;
  const { onSuccess, onFailure, onComplete } = node.callbacks;
  if (onSuccess) checkStep(onSuccess, givenBy(node));
  // After a failure, a result may be null.
  for (const callback of [onFailure, onComplete]) if (callback) checkStep(callback, [undefined]);
}

/** What the node after this one gets; as `handedOn` does it with the results. */
function givenBy(node: AnyNode): Given {
  if (node.kind === "chain") return givenBy(node.nodes.at(-1) as AnyNode);
  return node.kind === "group" || node.kind === "batch" ? node.nodes.map(itemOf) : [itemOf(node)];
}

function itemOf(node: AnyNode): string | undefined {
  if (node.kind === "chain") return itemOf(node.nodes.at(-1) as AnyNode);
  return node.kind === "step" ? node.definition.type : undefined;
}

function checkStep({ definition: { type, parents } }: StepNode, given: Given): void {
  if (parents === undefined) return;
  const isRight =
    typeof parents === "string"
      ? given.length > 0 && given.every((each) => each === parents)
      : given.length === parents.length && given.every((each, index) => each === parents[index]);
  if (isRight) return;
  const wanted = typeof parents === "string" ? `steps of type ${parents}` : parents.join(", ");
  const found = given.length === 0 ? "nothing" : given.map((each) => each ?? "a nested result").join(", ");
  const fix = `its definition wants the results of ${wanted}, and it would get those of ${found}: change the steps before it, or \`parents\` of its definition`;
  throw refuse("invalid_workflow", "parents", type, fix);
}
