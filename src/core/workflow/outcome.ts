import type { JobId, JobRow } from "../job/job.ts";
import type { Json } from "../schema.ts";
import { childrenOf, type PlanNode } from "./plan.ts";

/** What is known of the jobs of a workflow; one that is gone was not completed as far as anybody can tell. */
export type Ends = ReadonlyMap<JobId, Pick<JobRow, "state" | "result">>;

/** Whether all of a node ended with success. Of a chain the last one tells: it runs only if all before it succeeded. */
export function isCompleted(node: PlanNode, ends: Ends): boolean {
  if ("step" in node) return ends.get(node.step)?.state === "completed";
  if ("chain" in node) return isCompleted(node.chain[node.chain.length - 1] as PlanNode, ends);
  return childrenOf(node).every((inner) => isCompleted(inner, ends));
}

/** What a node gives: a step its result, a chain that of its last node, a group or batch a list; null without success. */
export function resultOf(node: PlanNode, ends: Ends): Json {
  if ("step" in node) {
    const end = ends.get(node.step);
    return end?.state === "completed" && end.result !== null ? (JSON.parse(end.result) as Json) : null;
  }
  if ("chain" in node) return resultOf(node.chain[node.chain.length - 1] as PlanNode, ends);
  return childrenOf(node).map((inner) => resultOf(inner, ends));
}

/** What whoever comes after a node is given: always a list, of one where the node is one step. */
export function handedOn(node: PlanNode, ends: Ends): Json {
  return isWide(node) ? resultOf(node, ends) : [resultOf(node, ends)];
}

function isWide(node: PlanNode): boolean {
  if ("chain" in node) return isWide(node.chain[node.chain.length - 1] as PlanNode);
  return !("step" in node);
}
