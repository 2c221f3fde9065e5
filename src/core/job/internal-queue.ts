/**
 * Queues whose names begin with this belong to the engine. Its jobs there are left out of lists, counts, bulk actions
 * and recorded events.
 */
export const INTERNAL = "curfew.";

/** The queue of webhook deliveries. */
export const WEBHOOK_QUEUE = "curfew.webhooks";

export function isInternalQueue(queue: string): boolean {
  return queue.startsWith(INTERNAL);
}
