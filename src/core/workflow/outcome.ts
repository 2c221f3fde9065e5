import type { JobId, JobRow } from "../job/job.ts";
import type { Json } from "../schema.ts";
import { childrenOf, lastMembersOf, type PlanNode } from "./plan.ts";

/** The known ends of the jobs of a workflow. A deleted job does not count as completed. */
export type Ends = ReadonlyMap<JobId, Pick<JobRow, "state" | "result"> & { readonly hidesResult?: boolean }>;

/**
 * Whether all of a node ended with success. For a chain its last node decides, and for a graph the nodes that no other
 * waits for: these run only if all before them succeeded.
 */
export function isCompleted(node: PlanNode, ends: Ends): boolean {
  if ("step" in node) return ends.get(node.step)?.state === "completed";
  if ("chain" in node) return isCompleted(node.chain[node.chain.length - 1] as PlanNode, ends);
  if ("graph" in node) return lastMembersOf(node.graph).every(({ node: inner }) => isCompleted(inner, ends));
  return childrenOf(node).every((inner) => isCompleted(inner, ends));
}

/**
 * The result of a node: a step's result, that of a chain's last node, a list for a group or batch, or an object for a
 * graph. Null without success.
 */
export function resultOf(node: PlanNode, ends: Ends): Json {
  if ("step" in node) {
    const end = ends.get(node.step);
    return end?.state === "completed" && end.result !== null ? (JSON.parse(end.result) as Json) : null;
  }
  if ("chain" in node) return resultOf(node.chain[node.chain.length - 1] as PlanNode, ends);
  if ("graph" in node)
    return Object.fromEntries(
      lastMembersOf(node.graph).map(({ name, node: inner }) => [name, resultOf(inner, ends)]),
    );
  return childrenOf(node).map((inner) => resultOf(inner, ends));
}

/** The results that the node after this one gets: always a list, with one item if the node is one step or a graph. */
export function handedOn(node: PlanNode, ends: Ends): Json {
  return isWide(node) ? resultOf(node, ends) : [resultOf(node, ends)];
}

function isWide(node: PlanNode): boolean {
  if ("chain" in node) return isWide(node.chain[node.chain.length - 1] as PlanNode);
  return !("step" in node || "graph" in node);
}
