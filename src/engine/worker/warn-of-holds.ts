import type { AnyDefinition } from "../../core/job/job-definition.ts";
import { isEndless, limitHoldWarning, queueHoldWarning } from "../../core/job/policy/endless.ts";
import { resolveBudgets, resolvePolicy } from "../../core/job/policy/policy.ts";
import type { EngineContext } from "../context.ts";

/** Warns if a job of this definition would hold a slot of its limit or queue for ever after its process died. */
export function warnOfHolds(
  { logger, queues, settings: engine }: Pick<EngineContext, "logger" | "queues" | "settings">,
  { type, queue, settings: definition, limit }: AnyDefinition,
): void {
  const settings = { definition, queue: queues.policyOf(queue), engine };
  if (!isEndless(resolvePolicy(settings), resolveBudgets(settings).total.value)) return;
  const limitKey = typeof limit?.key === "string" ? limit.key : null;
  const holds = [
    limit && limitHoldWarning({ limitKey, options: { limit: limit.limit } }),
    queueHoldWarning(queue, queues.concurrencyOf(queue)),
  ];
  for (const hold of holds)
    if (hold !== undefined)
      logger.warn({ type }, `nothing ends a job of this type whose process dies: ${hold}`);
}
