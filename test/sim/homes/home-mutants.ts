import type { Unit } from "../../../src/ports/store.ts";
import type { HomeStore } from "../../../src/stores/homes/home-store.ts";
import type { HomeMutation } from "./sim-homes.ts";

/** A defect of homes that the simulator must see, and a part of the name of the rule that should see it. */
export interface HomeMutant {
  readonly name: string;
  readonly caughtBy: RegExp;
  readonly mutation: HomeMutation;
}

function withUnits(store: HomeStore, change: (unit: Unit) => Unit): HomeStore {
  return {
    ...store,
    get inspect() {
      return store.inspect;
    },
    commit: (units, options) => store.commit(units.map(change), options),
  };
}

/** Applies a message although it was applied before. */
function ignoringMarks(store: HomeStore): HomeStore {
  return withUnits(store, (unit) => {
    const when = unit.when?.filter((guard) => !("record" in guard) || guard.record[0] !== "delivered");
    return when ? { ...unit, when } : unit;
  });
}

/** Commits a unit without the messages that go with it. */
function forgettingMessages(store: HomeStore): HomeStore {
  return withUnits(store, (unit) => {
    const effects = unit.effects?.filter((effect) => !("put" in effect) || effect.put[0] !== "outbox");
    return effects ? { ...unit, effects } : unit;
  });
}

/** Defects that the world of jobs sees. */
export const JOB_MUTANTS: readonly HomeMutant[] = [
  {
    name: "a router that sends rows to other homes",
    caughtBy: /spans homes/,
    mutation: { route: ([first, ...rest]) => [...rest, first as HomeStore] },
  },
  {
    name: "an engine that spreads the jobs of a limit",
    caughtBy: /limits are kept/,
    mutation: {
      routed: (store) => ({ ...store, capabilities: { ...store.capabilities, homes: 1 } }),
    },
  },
  {
    name: "a home that gives revisions again after it forgot them",
    caughtBy: /used again/,
    mutation: { repeatsRevisions: true },
  },
];

/** Defects that the world of the outbox sees. */
export const OUTBOX_MUTANTS: readonly HomeMutant[] = [
  {
    name: "a home that applies a message twice",
    caughtBy: /applied once|comes once/,
    mutation: { home: ignoringMarks },
  },
  {
    name: "a home that forgets messages",
    caughtBy: /applied once|settles/,
    mutation: { home: forgettingMessages },
  },
  {
    name: "an engine that spreads the jobs of a limit or a unique key",
    caughtBy: /limits and unique keys hold|spans homes/,
    mutation: {
      routed: (store) => ({ ...store, capabilities: { ...store.capabilities, homes: 1 } }),
    },
  },
];
