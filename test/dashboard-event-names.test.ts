import { expect, it } from "vitest";
import { RECORDED } from "../src/engine/events/recording-rules.ts";
import { QUEUE_EVENTS } from "../src/engine/queues/queues.ts";
import { EVENT_GROUPS, EVENT_NAMES } from "../src/ojs/event-names.ts";

it("the dashboard knows exactly the event names that an engine records", () => {
  const recorded = Object.entries(RECORDED).flatMap(([name, how]) => (typeof how === "object" ? [] : [name]));
  const expected = new Set([...recorded, ...Object.values(QUEUE_EVENTS)]);
  expect([...EVENT_NAMES].sort()).toEqual([...expected].sort());
});

it("each event is in a group of the dashboard's event filter, and no group is empty", () => {
  const groups = new Set(EVENT_NAMES.map((name) => `${name.slice(0, name.indexOf("."))}.*`));
  expect([...EVENT_GROUPS].sort()).toEqual([...groups].sort());
});
