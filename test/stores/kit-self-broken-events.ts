import type { NewEvent } from "../../src/core/event/new-event.ts";
import type { CommitOptions, Effect, Store } from "../../src/ports/store.ts";
import type { Broken } from "./kit-self-broken.ts";

function isEvent(effect: Effect): effect is NewEvent {
  return "event" in effect;
}

/** Tells, in a commit of its own. */
async function tell(store: Store, effects: readonly NewEvent[], options: CommitOptions): Promise<void> {
  if (effects.length > 0) await store.commit([{ effects }], options);
}

/** Stores whose stream of events is wrong. */
export const BROKEN_EVENT_STORES = {
  "records events of units that it refused": {
    change: (store) => ({
      async commit(units, options) {
        const outcomes = await store.commit(units, options);
        const refused = units.filter((_, index) => !outcomes[index]?.ok);
        await tell(
          store,
          refused.flatMap(({ effects = [] }) => effects.filter(isEvent)),
          options,
        );
        return outcomes;
      },
    }),
    foundBy: [
      ["events", "only written ones record"],
      ["records and guards", "all or nothing"],
    ],
  },
  "records events of jobs that it did not add": {
    change: (store) => ({
      jobs: {
        async enqueue(jobs, options) {
          const answers = await store.jobs.enqueue(jobs, options);
          const known = jobs.filter((_, index) => answers[index] !== "created");
          await tell(
            store,
            known.flatMap(({ records }) => (records ? [records] : [])),
            options,
          );
          return answers;
        },
      },
    }),
    foundBy: [["events", "was not added records nothing"]],
  },
  "forgets what new jobs tell": {
    change: (store) => ({
      jobs: {
        enqueue: (jobs, options) =>
          store.jobs.enqueue(
            jobs.map(({ records: _, ...job }) => job),
            options,
          ),
      },
    }),
    foundBy: [["events", "in the commit that adds them"]],
  },
  "records beats that did not count": {
    change: (store) => ({
      jobs: {
        async beat(request) {
          const jobs = request.jobs.map(({ records: _, ...job }) => job);
          const answers = await store.jobs.beat({ ...request, jobs });
          await tell(
            store,
            request.jobs.flatMap(({ records }) => (records ? [records] : [])),
            request,
          );
          return answers;
        },
      },
    }),
    foundBy: [["expired claims, leases and beats", "whose stallAt it moved"]],
  },
  "records the events of the last unit first": {
    change: (store) => ({
      async commit(units, options) {
        const outcomes = await store.commit(
          units.map(({ effects, ...unit }) => ({
            ...unit,
            effects: effects?.filter((one) => !isEvent(one)) ?? [],
          })),
          options,
        );
        const passed = units.filter((_, index) => outcomes[index]?.ok).toReversed();
        await tell(
          store,
          passed.flatMap(({ effects = [] }) => effects.filter(isEvent)),
          options,
        );
        return outcomes;
      },
    }),
    foundBy: [["events", "in the order of the units"]],
  },
  "gives what events share, and not what is their own": {
    change: (store) => ({
      commit: (units, options) =>
        store.commit(
          units.map(({ effects = [], ...unit }) => ({
            ...unit,
            effects: effects.map((one) => (isEvent(one) ? { event: one.event } : one)),
          })),
          options,
        ),
    }),
    foundBy: [["events", "are read as one"]],
  },
  "has one cursor for a whole page": {
    change: (store) => ({
      inspect: {
        ...store.inspect,
        async events(after, limit) {
          const page = await store.inspect.events(after, limit);
          return { ...page, cursors: page.cursors.map(() => page.cursor as string) };
        },
      },
    }),
    foundBy: [["events", "each event's cursor continues after it"]],
  },
} satisfies Record<string, Broken>;
