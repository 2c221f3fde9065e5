import type { NewEvent } from "../../core/event/new-event.ts";
import type { LifecycleEvent } from "../../core/job/decide/decision.ts";
import { WEBHOOK_QUEUE } from "../../core/job/internal-queue.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";

/** The events of deliveries, by those of their jobs. No webhook gets them. */
const NAMES: { readonly [name: string]: string | undefined } = {
  "job.completed": "webhook.delivered",
  "job.retrying": "webhook.failed",
  "job.discarded": "webhook.dead",
};

/** What is recorded of a decision on one of the engine's own jobs: of deliveries their outcome, of others nothing. */
export function deliveryEvents(
  row: JobRow,
  events: readonly LifecycleEvent[],
  at: Instant,
): readonly NewEvent[] | undefined {
  if (row.queue !== WEBHOOK_QUEUE) return undefined;
  const recorded: NewEvent[] = [];
  for (const { name, error, dueAt } of events) {
    const own = NAMES[name];
    if (own === undefined) continue;
    const subscription = row.options?.meta?.subscription ?? null;
    const data: { readonly [key: string]: Json } = {
      subscription,
      delivery: `del_${row.id}`,
      attempt: row.attempt,
      ...(error && { error: error.message }),
      ...(dueAt !== undefined && { dueAt }),
    };
    recorded.push({ event: { name: own, at, subject: String(subscription), data } });
  }
  return recorded.length === 0 ? undefined : recorded;
}
