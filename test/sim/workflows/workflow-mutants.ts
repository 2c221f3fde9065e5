import { isTerminal } from "../../../src/core/job/lifecycle.ts";
import type { Effect, JobWrite, Store } from "../../../src/ports/store.ts";
import { loadingAsCompleted, type StoreMutant, withUnits } from "../mutants.ts";

function withEffects(store: Store, change: (effect: Effect) => readonly Effect[]): Store {
  return withUnits(store, (unit) =>
    unit.effects ? { ...unit, effects: unit.effects.flatMap(change) } : unit,
  );
}

function withWrites(store: Store, change: (job: JobWrite) => JobWrite): Store {
  return withUnits(store, (unit) => (unit.job ? { ...unit, job: change(unit.job) } : unit));
}

/** Held for its workflow, as no other finished job is that is not a dead letter. */
function unheld(job: JobWrite): JobWrite {
  const { image } = job;
  if (!image || !isTerminal(image.state) || image.pruneAt !== null) return job;
  return { ...job, drop: true };
}

export const WORKFLOW_MUTANTS: readonly StoreMutant[] = [
  {
    name: "a store that forgets some countdowns",
    caughtBy: /everything settles/,
    mutate: (store, dice) =>
      withEffects(store, (effect) => ("countdown" in effect && dice.chance(0.05) ? [] : [effect])),
  },
  {
    name: "a store that counts some down twice",
    caughtBy: /order is kept|results are handed on|no step is lost|steps are counted/,
    mutate: (store, dice) =>
      withEffects(store, (effect) =>
        "countdown" in effect && dice.chance(0.1) ? [effect, effect] : [effect],
      ),
  },
  {
    name: "a store that lets go of what a workflow still needs",
    caughtBy: /results are handed on|end state is right|steps are counted|everything settles/,
    mutate: (store) => withWrites(store, unheld),
  },
  {
    name: "a store that loses some jobs of a workflow",
    caughtBy: /no step is lost|everything settles|results are handed on|steps are counted/,
    mutate: (store, dice) =>
      withEffects(store, (effect) => ("enqueue" in effect && dice.chance(0.02) ? [] : [effect])),
  },
  {
    name: "a store that does not compare the versions of workflows",
    caughtBy: /a state stands|an end is told once|a cancel holds|end state is right|steps are counted/,
    mutate: (store) => withUnits(store, ({ when: _when, ...unit }) => unit),
  },
  {
    name: "a store that forgets to admit some jobs",
    caughtBy: /everything settles/,
    mutate: (store, dice) =>
      withEffects(store, (effect) => ("admit" in effect && dice.chance(0.2) ? [] : [effect])),
  },
  {
    name: "a store that lets one more through than a limit has places",
    caughtBy: /limits are kept/,
    mutate: (store) =>
      withEffects(store, (effect) => {
        if (!("admit" in effect) || effect.limit?.concurrency === undefined) return [effect];
        const { strict: _strict, ...limit } = effect.limit;
        return [{ ...effect, limit: { ...limit, concurrency: effect.limit.concurrency + 1 } }];
      }),
  },
  {
    name: "a store that runs what comes after a failure",
    caughtBy: /a failure halts its chain|nothing runs after a failure|everything settles|end state is right/,
    mutate: (store) => loadingAsCompleted(store, "discarded"),
  },
];
