import { expect, it } from "vitest";
import type { StoredEvent } from "../src/core/event/stored-event.ts";
import { WEBHOOK_QUEUE } from "../src/core/job/internal-queue.ts";
import type { JobRow } from "../src/core/job/job.ts";
import { LIFECYCLE_EVENTS } from "../src/core/job/lifecycle-events.ts";
import { RECORDED } from "../src/engine/events/recording-rules.ts";
import { deliveryEvents } from "../src/engine/events/webhook-events.ts";
import { QUEUE_EVENTS } from "../src/engine/queues/queues.ts";
import { EVENT_GROUPS, EVENT_NAMES } from "../src/ojs/event-names.ts";

it("the dashboard knows exactly the event names that an engine records", () => {
  const recorded = Object.entries(RECORDED).flatMap(([name, how]) => (typeof how === "object" ? [] : [name]));
  // Deliveries of webhooks are jobs; what happens to them is recorded under names of their own.
  const delivery = { id: "1", queue: WEBHOOK_QUEUE, attempt: 1 } as JobRow;
  const events = LIFECYCLE_EVENTS.map((name) => ({ name }));
  const deliveries = (deliveryEvents(delivery, events, 0) ?? []).map(
    ({ event }) => (event as unknown as StoredEvent).name,
  );
  const subscriptions = ["webhook.subscription.created", "webhook.subscription.deleted"];
  const queues = Object.values(QUEUE_EVENTS);
  const expected = new Set([...recorded, ...queues, ...subscriptions, ...deliveries]);
  expect([...EVENT_NAMES].sort()).toEqual([...expected].sort());
});

it("each event is in a group of the dashboard's event filter, and no group is empty", () => {
  const groups = new Set(EVENT_NAMES.map((name) => `${name.slice(0, name.indexOf("."))}.*`));
  expect([...EVENT_GROUPS].sort()).toEqual([...groups].sort());
});
