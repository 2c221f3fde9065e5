import type { FairWeights } from "../../src/core/fair/fair-options.ts";
import { Rounds } from "../../src/core/fair/round.ts";
import type { RoundLimits } from "../../src/core/fair/round-limits.ts";
import type { LastTurns, Turns } from "../../src/core/fair/turns.ts";
import type { NewJob } from "../../src/core/job/enqueue/envelope.ts";
import type { JobRow, JobState } from "../../src/core/job/job.ts";
import type { Effect, Store, Unit } from "../../src/ports/store.ts";
import type { Dice } from "./dice.ts";
import type { Mutation } from "./simulate.ts";

/**
 * Defects planted on purpose. A checker that has never failed proves nothing: each of these must be caught, and by
 * the rule that is meant for it.
 */
export interface Mutant {
  readonly name: string;
  /** A part of the name of the rule that should see it. */
  readonly caughtBy: RegExp;
  readonly mutation: Mutation;
}

/** A defect of the store, for the worlds of sagas, workflows and crons. */
export interface StoreMutant extends Omit<Mutant, "mutation"> {
  readonly mutate: (store: Store, dice: Dice) => Store;
}

/** Changes every unit before it is committed. */
export function withUnits(store: Store, change: (unit: Unit) => Unit): Store {
  return { ...store, commit: (units, options) => store.commit(units.map(change), options) };
}

function withJobs(store: Store, jobs: Partial<Store["jobs"]>): Store {
  return { ...store, jobs: { ...store.jobs, ...jobs } };
}

/** Says of jobs in this state that they were completed. */
export function loadingAsCompleted(store: Store, state: JobState): Store {
  const load: Store["jobs"]["load"] = async (ids) =>
    (await store.jobs.load(ids)).map((row) => (row?.state === state ? { ...row, state: "completed" } : row));
  return withJobs(store, { load });
}

/** Brings every write up to date before it is committed, so that a zombie's verdict counts. */
function withoutFences(store: Store): Store {
  const current = async (unit: Unit): Promise<Unit> => {
    if (!unit.job) return unit;
    const [row] = await store.jobs.load([unit.job.id]);
    if (!row) return unit;
    const { rev, ...job } = unit.job;
    return { ...unit, job: { ...job, fence: row.fence, ...(rev !== undefined && { rev: row.rev }) } };
  };
  return {
    ...store,
    commit: async (units, options) => store.commit(await Promise.all(units.map(current)), options),
  };
}

/** Hands some claimed jobs to the next claimer as well. */
function claimingTwice(store: Store, dice: Dice): Store {
  const taken: JobRow[] = [];
  return withJobs(store, {
    claim: async (request) => {
      const rows = await store.jobs.claim(request);
      const again = taken
        .splice(0)
        .filter((row) => row.queue === request.queue && row.worker !== request.worker);
      taken.push(...rows.filter(() => dice.chance(0.2)));
      return [...again, ...rows];
    },
  });
}

/** Says that a job was created and forgets it. */
function losingEnqueues(store: Store, dice: Dice): Store {
  return withJobs(store, {
    enqueue: async (jobs, options) => {
      const isKept = jobs.map((job: NewJob) => !job.hasNewId || !dice.chance(0.02));
      const answers = await store.jobs.enqueue(
        jobs.filter((_, index) => isKept[index]),
        options,
      );
      return isKept.map((isStored) => (isStored ? (answers.shift() as "created") : "created"));
    },
  });
}

/** Looks into the future when it promotes and judges. */
function sweepingEarly(store: Store): Store {
  return withJobs(store, { sweep: (request) => store.jobs.sweep({ ...request, now: request.now + 500 }) });
}

/** Prunes what should still be kept. */
function pruningEarly(store: Store): Store {
  return withJobs(store, {
    prune: (request) => store.jobs.prune({ ...request, now: request.now + 40 * 86_400_000 }),
  });
}

/** Never finds anything due, so that nothing is promoted and nothing is taken back from the dead. */
function withoutSweep(store: Store): Store {
  return withJobs(store, {
    sweep: async () => ({ ready: new Map(), jobs: [], records: [], nextWakeAt: null }),
  });
}

/** Gives the same fence to every claim. */
function withOneFence(store: Store): Store {
  return withJobs(store, {
    claim: async (request) => (await store.jobs.claim(request)).map((row) => ({ ...row, fence: 2 ** 21 })),
  });
}

/** Tells every beat that all is well, so that no cancel and no lost claim is ever heard of. */
function soothingBeats(store: Store): Store {
  return withJobs(store, {
    beat: async (request) => (await store.jobs.beat(request)).map(() => "ok" as const),
  });
}

/** Commits units with other effects. */
function withEffects(store: Store, change: (effect: Effect) => Effect): Store {
  const changed = (unit: Unit): Unit =>
    unit.effects ? { ...unit, effects: unit.effects.map(change) } : unit;
  return { ...store, commit: (units, options) => store.commit(units.map(changed), options) };
}

/** Lets everybody through. */
function withoutLimits(store: Store): Store {
  return withEffects(store, (effect) =>
    "admit" in effect ? { admit: effect.admit, count: effect.count } : effect,
  );
}

/** Lets nobody through. */
function closingLimits(store: Store): Store {
  return withEffects(store, (effect) => ("admit" in effect ? { ready: "alpha" } : effect));
}

/** Lets a job that is given back unrun leave its slot, as a job without a strict limit does. */
function overtaking(store: Store): Store {
  return withUnits(store, (unit) => {
    const { job } = unit;
    const isBack = job?.image?.state === "retryable" && job.image.attempt === 0;
    return job && isBack ? { ...unit, job: { ...job, image: { ...job.image, state: "scheduled" } } } : unit;
  });
}

/** Forgets starts. */
function forgettingStarts(store: Store): Store {
  return withEffects(store, (effect) => ("spend" in effect ? { ready: "alpha" } : effect));
}

/** Claims as if no queue had a limit. */
function claimingBeyond(store: Store): Store {
  return withJobs(store, { claim: ({ most: _most, ...request }) => store.jobs.claim(request) });
}

/** Gives one slot of each queue with a concurrency to nobody. */
function losingSlots(store: Store): Store {
  return withJobs(store, {
    claim: ({ most, ...request }) =>
      store.jobs.claim(most === undefined ? request : { ...request, most: most - 1 }),
  });
}

/** Takes in whatever comes. */
function unbounded(store: Store): Store {
  return withJobs(store, {
    enqueue: (jobs, { bounds: _bounds, ...options }) => store.jobs.enqueue(jobs, options),
  });
}

/** Commits what it is given, but now and then without the events. */
function forgettingEvents(store: Store, dice: Dice): Store {
  const forgetful = ({ effects, ...unit }: Unit): Unit =>
    effects && !dice.chance(0.05)
      ? { ...unit, effects }
      : { ...unit, effects: effects?.filter((effect) => !("event" in effect)) ?? [] };
  return { ...store, commit: (units, options) => store.commit(units.map(forgetful), options) };
}

/** Records an enqueue again although the id was known. */
function tellingTwice(store: Store): Store {
  return withJobs(store, {
    enqueue: async (jobs, options) => {
      const answers = await store.jobs.enqueue(jobs, options);
      const known = jobs.filter((_, index) => answers[index] === "exists");
      const effects = known.flatMap(({ records }) => (records ? [records] : []));
      if (effects.length > 0) await store.commit([{ effects }], options);
      return answers;
    },
  });
}

/** Claims with other turns. */
function withTurns(store: Store, change: (turns: Turns) => Turns | undefined): Store {
  return withJobs(store, {
    claim: ({ turns, ...request }) => {
      const changed = turns && change(turns);
      return store.jobs.claim({ ...request, ...(changed && { turns: changed }) });
    },
  });
}

function withRounds(store: Store, change: (rounds: Rounds) => Rounds): Store {
  return withTurns(store, (turns) => (turns.rounds ? { ...turns, rounds: change(turns.rounds) } : turns));
}

function newRounds(limits: RoundLimits, most: number): Rounds {
  const rounds = new Rounds(limits);
  rounds.most = most;
  return rounds;
}

function threeTimes({ weights, defaultWeight }: Turns): FairWeights {
  return {
    weights: new Map([...weights].map(([key, weight]) => [key, 3 * weight])),
    defaultWeight: 3 * defaultWeight,
  };
}

/** Every turn was that of the key before the first one. */
function beforeAll({ last }: Turns): LastTurns {
  return new Map([...last.keys()].map((rank) => [rank, { key: "", taken: Number.MAX_SAFE_INTEGER }]));
}

/** All priorities have the turns of the one that gave last. */
function sharedByAll({ last }: Turns): LastTurns {
  const turn = [...last.values()].at(-1);
  return new Map(Array.from({ length: 201 }, (_, level) => [level * 2 ** 45, turn ?? { key: "", taken: 1 }]));
}

/** Forgets the policy of a job that is claimed again, so that each attempt resolves its own, with another limit. */
function thawingLimits(store: Store, dice: Dice): Store {
  return withUnits(store, (unit) => {
    const policy = unit.job?.documents?.policy;
    if (!unit.job || !policy?.adaptive) return unit;
    const { rule } = policy.adaptive;
    const attempt = dice.between(rule.floor, rule.ceiling);
    const learned = { limit: attempt, previous: attempt, target: attempt, quantile: 1, runs: 10, cut: 0 };
    const adaptive = { rule, learned: { ...learned, since: 0, until: 0 } };
    const documents = { ...unit.job.documents, policy: { ...policy, attempt, adaptive } };
    return { ...unit, job: { ...unit.job, documents } };
  });
}

/** Defects of fair queues, for worlds that have some. */
export const FAIR_MUTANTS: readonly Mutant[] = [
  {
    name: "a store that claims in the order of arrival",
    caughtBy: /fair keys take turns/,
    mutation: { store: (store) => withTurns(store, () => undefined) },
  },
  {
    name: "a store that begins each claim with the first key",
    caughtBy: /fair keys take turns/,
    mutation: { store: (store) => withTurns(store, (turns) => ({ ...turns, last: beforeAll(turns) })) },
  },
  {
    name: "a store that gives each key three times its weight",
    caughtBy: /fair keys take turns/,
    mutation: { store: (store) => withTurns(store, (turns) => ({ ...turns, ...threeTimes(turns) })) },
  },
  {
    name: "a store whose priorities share their turns",
    caughtBy: /fair keys take turns/,
    mutation: { store: (store) => withTurns(store, (turns) => ({ ...turns, last: sharedByAll(turns) })) },
  },
];

/** Defects of the rounds of busy fair queues. */
export const ROUND_MUTANTS: readonly Mutant[] = [
  {
    name: "a store that is first come, first served in a busy fair queue",
    caughtBy: /fair keys take turns/,
    mutation: { store: (store) => withTurns(store, (turns) => (turns.rounds ? undefined : turns)) },
  },
  {
    name: "a store that begins a new round with each claim",
    caughtBy: /fair keys take turns/,
    mutation: { store: (store) => withRounds(store, (rounds) => newRounds(rounds.limits, rounds.most)) },
  },
  {
    name: "a store whose rounds are five times too long",
    caughtBy: /fair keys take turns/,
    mutation: {
      store: (store) => {
        const long = new Map<Rounds, Rounds>();
        return withRounds(store, (rounds) => {
          const { fewestJobs, ...limits } = rounds.limits;
          const most = 5 * rounds.most;
          const changed = long.get(rounds) ?? newRounds({ ...limits, fewestJobs: 5 * fewestJobs }, most);
          long.set(rounds, changed);
          return changed;
        });
      },
    },
  },
];

export const MUTANTS: readonly Mutant[] = [
  {
    name: "a store whose adaptive limits change between attempts",
    caughtBy: /frozen/,
    mutation: { store: thawingLimits },
  },
  {
    name: "a store that ignores fences",
    caughtBy: /verdict|moves|judged|fence|attempts|result/,
    mutation: { store: withoutFences },
  },
  { name: "a store that claims twice", caughtBy: /claimed twice|claim/, mutation: { store: claimingTwice } },
  {
    name: "a store that loses acknowledged jobs",
    caughtBy: /no job is lost/,
    mutation: { store: losingEnqueues },
  },
  { name: "a store that promotes early", caughtBy: /early/, mutation: { store: sweepingEarly } },
  { name: "a store that prunes early", caughtBy: /no job is lost/, mutation: { store: pruningEarly } },
  { name: "a store whose sweep finds nothing", caughtBy: /settles/, mutation: { store: withoutSweep } },
  { name: "a store that repeats fences", caughtBy: /fence/, mutation: { store: withOneFence } },
  {
    name: "a store whose beats always answer ok",
    caughtBy: /verdict|gap|lost|cancel/,
    mutation: { store: soothingBeats },
  },
  { name: "a store whose limits know no limits", caughtBy: /limits/, mutation: { store: withoutLimits } },
  { name: "a store whose limits stay closed", caughtBy: /settles/, mutation: { store: closingLimits } },
  { name: "a store that lets strict jobs be overtaken", caughtBy: /limits/, mutation: { store: overtaking } },
  { name: "a store that forgets starts", caughtBy: /limits/, mutation: { store: forgettingStarts } },
  {
    name: "a store that claims beyond a queue's limit",
    caughtBy: /limits/,
    mutation: { store: claimingBeyond },
  },
  { name: "a store that loses a slot of a queue", caughtBy: /settles/, mutation: { store: losingSlots } },
  { name: "a store without bounds", caughtBy: /limits/, mutation: { store: unbounded } },
  {
    name: "a store that forgets events",
    caughtBy: /told once/,
    mutation: { store: forgettingEvents },
  },
  {
    name: "a store that records jobs it did not add",
    caughtBy: /told once/,
    mutation: { store: tellingTwice },
  },
  { name: "machines whose clocks run 3 % fast", caughtBy: /early|future/, mutation: { clockRate: 1.03 } },
];
