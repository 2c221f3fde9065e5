import { expect, it } from "vitest";
import { EVENT_GROUPS, EVENT_NAMES } from "../src/dashboard/pages/events/event-names.ts";
import { RECORDED } from "../src/engine/events/recording-rules.ts";
import { QUEUE_EVENTS } from "../src/engine/queues/queues.ts";

it("the dashboard knows exactly the event names that an engine records", () => {
  const recorded = Object.entries(RECORDED).flatMap(([name, how]) => (typeof how === "object" ? [] : [name]));
  const expected = new Set([...recorded, ...Object.values(QUEUE_EVENTS)]);
  expect([...EVENT_NAMES].sort()).toEqual([...expected].sort());
});

it("each group of the dashboard's event filter has an event", () => {
  const prefixes = EVENT_GROUPS.map((group) => group.slice(0, -1));
  expect(prefixes.filter((prefix) => !EVENT_NAMES.some((name) => name.startsWith(prefix)))).toEqual([]);
});
