import type { AnyDefinition } from "../core/job/definition.ts";
import { holdWarning, isEndless } from "../core/job/endless.ts";
import { resolveBudgets, resolvePolicy } from "../core/job/policy.ts";
import type { Parts } from "./parts.ts";

/** Says of a definition with a limit that one of its jobs would hold it for ever if its process died. */
export function warnOfHolds(
  { logger, queues, rung }: Pick<Parts, "logger" | "queues" | "rung">,
  { type, queue, rung: said, limit }: AnyDefinition,
): void {
  if (!limit) return;
  const rungs = { definition: said, queue: queues.rungOf(queue), engine: rung };
  if (!isEndless(resolvePolicy(rungs), resolveBudgets(rungs).total.value)) return;
  const gate = typeof limit.key === "string" ? limit.key : null;
  const holds = holdWarning({ gate, options: { limit: limit.limit } });
  if (holds !== undefined)
    logger.warn({ type }, `nothing ends a job of this type whose process dies: ${holds}`);
}
