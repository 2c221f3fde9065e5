import { refuse } from "../errors.ts";

/**
 * Queues whose names begin with this belong to the engine. Its jobs there are left out of lists, counts, bulk actions
 * and recorded events.
 */
export const INTERNAL = "curfew.";

/** The queue of webhook deliveries. */
export const WEBHOOK_QUEUE = "curfew.webhooks";

/** Refuses a queue of the engine where a caller names it: a job there could pass for one of the engine's own. */
export function refuseInternalQueue(queue: string, field: string): void {
  if (!isInternalQueue(queue)) return;
  throw refuse(
    "invalid_name",
    field,
    queue,
    `names that begin with "${INTERNAL}" belong to the engine; use another`,
  );
}

export function isInternalQueue(queue: string): boolean {
  return queue.startsWith(INTERNAL);
}
