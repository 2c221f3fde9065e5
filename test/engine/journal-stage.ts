import { expect } from "vitest";
import { LIFECYCLE_EVENTS } from "../../src/core/job/lifecycle-events.ts";
import type { JournalEvent } from "../../src/index.ts";
import type { Stage } from "./stage.ts";

const LIFECYCLE = new Set<string>(LIFECYCLE_EVENTS);

export async function readAll({ engine }: Stage): Promise<readonly JournalEvent[]> {
  return (await engine.journal.read({ limit: 1_000 })).events;
}

/** What a listener hears of a job's life and what is recorded of it must be the same, in the same order. */
export async function expectTheSame(stage: Stage): Promise<void> {
  const heard = stage.events.flatMap((event) =>
    "id" in event && LIFECYCLE.has(event.name) ? [[event.id, event.name, event.attempt, event.at]] : [],
  );
  const recorded = (await readAll(stage))
    .filter(({ name }) => LIFECYCLE.has(name))
    .map(({ job, name, attempt, at }) => [job, name, attempt, at]);
  const ofJob = (list: typeof recorded) => Map.groupBy(list, ([job]) => job);
  expect(ofJob(recorded)).toEqual(ofJob(heard as typeof recorded));
}
