import type { AnyDefinition } from "../../core/job/definition.ts";
import { isEndless, limitHoldWarning, queueHoldWarning } from "../../core/job/endless.ts";
import { resolveBudgets, resolvePolicy } from "../../core/job/policy.ts";
import type { Parts } from "../context.ts";

/** Warns of a definition whose job would hold a slot of its limit or of its queue for ever if its process died. */
export function warnOfHolds(
  { logger, queues, rung }: Pick<Parts, "logger" | "queues" | "rung">,
  { type, queue, rung: said, limit }: AnyDefinition,
): void {
  const rungs = { definition: said, queue: queues.rungOf(queue), engine: rung };
  if (!isEndless(resolvePolicy(rungs), resolveBudgets(rungs).total.value)) return;
  const gate = typeof limit?.key === "string" ? limit.key : null;
  const holds = [
    limit && limitHoldWarning({ gate, options: { limit: limit.limit } }),
    queueHoldWarning(queue, queues.concurrencyOf(queue)),
  ];
  for (const hold of holds)
    if (hold !== undefined)
      logger.warn({ type }, `nothing ends a job of this type whose process dies: ${hold}`);
}
