import {
  type CommitOptions,
  type Effect,
  type JobStore,
  type Outcome,
  queueMark,
  type RecordKey,
  type Store,
  type Unit,
} from "../../src/ports/store.ts";
import type { TimeoutStore } from "../../src/ports/timeouts.ts";
import { jobsOf } from "../../src/testing/read-store.ts";

type Changes = Partial<Omit<Store, "jobs" | "timeouts">> & {
  jobs?: Partial<JobStore>;
  timeouts?: Partial<TimeoutStore>;
};

export interface Broken {
  /** What is different about it. */
  readonly change: (store: Store) => Changes;
  /** Cases that must fail, as section and words of the name. */
  readonly foundBy: readonly (readonly [section: string, words: string])[];
}

/** Commits, and what was refused for these reasons once more, under the fence and revision that the job has now. */
async function insist(
  store: Store,
  units: readonly Unit[],
  options: CommitOptions,
  reasons: readonly string[],
): Promise<Outcome[]> {
  const outcomes = await store.commit(units, options);
  return Promise.all(
    outcomes.map(async (outcome, index) => {
      const unit = units[index];
      if (outcome.ok || !outcome.at || !unit?.job || !reasons.includes(outcome.because)) return outcome;
      const { fence, rev } = outcome.at;
      const [again] = await store.commit([{ ...unit, job: { ...unit.job, fence, rev } }], options);
      return again as Outcome;
    }),
  );
}

/** A claim as the store should do it, and something done with its answer. */
function claimThen(
  store: Store,
  after: (rows: Awaited<ReturnType<JobStore["claim"]>>) => Awaited<ReturnType<JobStore["claim"]>>,
): Changes {
  return { jobs: { claim: async (request) => after(await store.jobs.claim(request)) } };
}

function effectsOf(unit: Unit): readonly Effect[] {
  return unit.effects ?? [];
}

/** Shows versions less what they were when their record began, and takes them so in guards. */
function countFromOne(store: Store): Changes {
  const began = new Map<string, number>();
  const name = (key: RecordKey) => JSON.stringify(key);
  const load = async (keys: readonly RecordKey[]) =>
    (await store.records.load(keys)).map(
      (row) => row && { ...row, version: row.version - (began.get(name(row.key)) ?? 0) },
    );
  return {
    records: { ...store.records, load },
    async commit(units, options) {
      const outcomes: Outcome[] = [];
      for (const unit of units) {
        const keys = effectsOf(unit).flatMap((effect) => ("put" in effect ? [effect.put] : []));
        const before = await store.records.load(keys);
        const when = (unit.when ?? []).map((guard) =>
          !("record" in guard) || guard.version === 0
            ? guard
            : { record: guard.record, version: guard.version + (began.get(name(guard.record)) ?? 0) },
        );
        outcomes.push(...(await store.commit([{ ...unit, when }], options)));
        for (const [index, row] of (await store.records.load(keys)).entries())
          if (row && !before[index]) began.set(name(row.key), row.version - 1);
      }
      return outcomes;
    },
  };
}

/** Commits units with other effects in the place of some, or without them. */
function withEffects(store: Store, change: (effect: Effect) => readonly Effect[]): Changes {
  return {
    commit: (units, options) =>
      store.commit(
        units.map((unit) => ({ ...unit, effects: effectsOf(unit).flatMap(change) })),
        options,
      ),
  };
}

export const BROKEN_STORES = {
  "admits without looking at the limit": {
    change: (store) =>
      withEffects(store, (effect) =>
        "admit" in effect ? [{ admit: effect.admit, count: effect.count }] : [effect],
      ),
    foundBy: [
      ["limits", "as many as it has room for"],
      ["limits", "in the unit that frees it"],
      ["limits", "200 jobs of one key"],
      ["limits", "strict limit only"],
      ["limits", "an override goes before"],
      ["limits", "4 handles run 600 jobs"],
    ],
  },
  "admits nobody under a limit": {
    change: (store) => withEffects(store, (effect) => ("admit" in effect && effect.limit ? [] : [effect])),
    foundBy: [["limits", "not skipped for good"]],
  },
  "forgets starts": {
    change: (store) => withEffects(store, (effect) => ("spend" in effect ? [] : [effect])),
    foundBy: [
      ["limits", "starts count from the admission"],
      ["limits", "a start is remembered once"],
      ["limits", "can be inspected"],
    ],
  },
  "claims beyond the limit of a queue": {
    change: (store) => ({ jobs: { claim: ({ most: _most, ...request }) => store.jobs.claim(request) } }),
    foundBy: [
      ["limits", "a claim under the limit of a queue"],
      ["limits", "8 handles claim"],
      ["limits", "jobs that keep the slots of a queue"],
    ],
  },
  "lists no jobs by the mark of a queue": {
    change: (store) => ({
      inspect: {
        ...store.inspect,
        limitKeys: async (after, limit) =>
          (await store.inspect.limitKeys(after, limit)).filter(({ key }) => !key.startsWith(queueMark(""))),
      },
    }),
    foundBy: [["limits", "jobs that keep the slots of a queue"]],
  },
  "lists records upwards in any order": {
    change: (store) => ({
      records: { ...store.records, list: (kind, after, limit) => store.records.list(kind, after, limit) },
    }),
    foundBy: [["records and guards", "a kind is listed from its last key down"]],
  },
  "knows no bounds": {
    change: (store) => ({
      jobs: { enqueue: (jobs, { bounds: _bounds, ...options }) => store.jobs.enqueue(jobs, options) },
    }),
    foundBy: [
      ["limits", "a bounded queue takes in"],
      ["limits", "8 producers"],
    ],
  },
  "ignores fences": {
    change: (store) => ({
      commit: (units, options) => insist(store, units, options, ["lost", "stale"]),
    }),
    foundBy: [
      ["fencing", "is lost and changes nothing"],
      ["fencing", "rolled back"],
      ["fencing", "recognise its own success"],
      ["fencing", "voids the attempt"],
      ["concurrency", "cancel races"],
      ["concurrency", "counts once"],
    ],
  },
  "rounds fractions of a millisecond": {
    change: (store) => ({
      jobs: {
        enqueue: (jobs, options) =>
          store.jobs.enqueue(
            jobs.map((job) => ({ ...job, createdAt: Math.floor(job.createdAt) })),
            options,
          ),
        claim: (request) => store.jobs.claim({ ...request, now: Math.floor(request.now) }),
      },
      commit: (units, options) => store.commit(units, { ...options, now: Math.floor(options.now) }),
      timeouts: {
        claimDue: (request) => store.timeouts.claimDue({ ...request, now: Math.floor(request.now) }),
      },
    }),
    foundBy: [
      ["instants", "an enqueue refuses"],
      ["instants", "a commit refuses"],
      ["instants", "a claim, a beat"],
      ["instants", "timeouts refuse"],
    ],
  },
  "ignores revisions": {
    change: (store) => ({
      commit: (units, options) => insist(store, units, options, ["stale"]),
    }),
    foundBy: [
      ["fencing", "stale"],
      ["countdowns and limits", "stale"],
    ],
  },
  "counts down although the settle is refused": {
    change: (store) => ({
      async commit(units, options) {
        const outcomes = await store.commit(units, options);
        const missed = units.flatMap((unit, index) => (outcomes[index]?.ok ? [] : (unit.effects ?? [])));
        const effects = missed.filter((effect) => "countdown" in effect);
        if (effects.length > 0) await store.commit([{ effects }], options);
        return outcomes;
      },
    }),
    foundBy: [["countdowns and limits", "refused counts nothing"]],
  },
  "counts down before it adds": {
    change: (store) => ({
      commit: (units, options) =>
        store.commit(
          units.map((unit) => ({
            ...unit,
            ...(unit.effects && {
              effects: unit.effects.toSorted((a, b) => Number("countdown" in b) - Number("countdown" in a)),
            }),
          })),
          options,
        ),
    }),
    foundBy: [["countdowns and limits", "in their order"]],
  },
  "adds jobs although a record forbids it": {
    change: (store) => ({
      async commit(units, options) {
        const outcomes = await store.commit(units, options);
        const missed = units.flatMap((unit, index) => (outcomes[index]?.ok ? [] : (unit.effects ?? [])));
        const effects = missed.filter((effect) => "enqueue" in effect);
        if (effects.length > 0) await store.commit([{ effects }], options);
        return outcomes;
      },
    }),
    foundBy: [["countdowns and limits", "all of them, or none"]],
  },
  "ignores the fence of a beat": {
    change: (store) => ({
      jobs: {
        async beat(request) {
          const rows = await store.jobs.load(request.jobs.map(({ id }) => id));
          const jobs = request.jobs.map((job, index) => ({ ...job, fence: rows[index]?.fence ?? job.fence }));
          return store.jobs.beat({ ...request, jobs });
        },
      },
    }),
    foundBy: [
      ["fencing", "a beat of a holder"],
      ["expired claims, leases and beats", "wrong fence"],
    ],
  },
  "ignores the size of a load": {
    change: (store) => ({
      jobs: { load: (ids, options) => store.jobs.load(ids, { isBrief: options?.isBrief ?? false }) },
    }),
    foundBy: [["contract and order", "a load of a size ends early"]],
  },
  "leaves unknown ids out of a load of a size": {
    change: (store) => ({
      jobs: {
        async load(ids, options) {
          const rows = await store.jobs.load(ids, options);
          return options?.size === undefined ? rows : rows.filter((row) => row !== null);
        },
      },
    }),
    foundBy: [["contract and order", "a load of a size ends early"]],
  },
  "claims without order": {
    change: (store) => claimThen(store, (rows) => rows.toReversed()),
    foundBy: [
      ["contract and order", "the best first"],
      ["contract and order", "in the order of their ids"],
    ],
  },
  "forgets the salt": {
    change: (store) => ({
      jobs: { claim: (request) => store.jobs.claim({ ...request, salt: 0 }) },
    }),
    foundBy: [
      ["fencing", "carries its salt"],
      ["contract and order", "what decide would"],
    ],
  },
  "gives a job to two claimers": {
    change(store) {
      let claims = 0;
      let given: Awaited<ReturnType<JobStore["claim"]>> = [];
      return claimThen(store, (rows) => {
        claims += 1;
        if (claims % 5 === 0) return [...rows, ...given.slice(0, 1)];
        if (rows.length > 0) given = rows;
        return rows;
      });
    },
    foundBy: [
      ["concurrency", "8 claimers"],
      ["concurrency", "are all found"],
    ],
  },
  "ignores a pause": {
    change: (store) => ({
      commit: (units, options) =>
        store.commit(
          units.map((unit) => ({ ...unit, effects: effectsOf(unit).filter((effect) => !("put" in effect)) })),
          options,
        ),
    }),
    foundBy: [["contract and order", "paused"]],
  },
  "does not hold what it swept": {
    change: (store) => ({
      jobs: { sweep: (request) => store.jobs.sweep({ ...request, holdUntil: request.now }) },
    }),
    foundBy: [
      ["sweeping", "after the hold"],
      ["concurrency", "hand out each job once"],
      ["crash points", "after the hold"],
    ],
  },
  "finds nothing when it looks": {
    change: (store) => ({
      look: async (request) => ({ ...(await store.look({ ...request, queues: [] })), nextDueAt: null }),
    }),
    foundBy: [
      ["looking", "an available job"],
      ["looking", "first timeout"],
      ["looking", "1,000 queues"],
    ],
  },
  "looks at old versions and wake-ups": {
    change: (store) => ({
      look: async (request) => ({ ...(await store.look(request)), nextWakeAt: null, versions: [] }),
    }),
    foundBy: [
      ["looking", "when a sweep is due"],
      ["looking", "versions of records"],
    ],
  },
  "goes by its own clock": {
    change: (store) => ({
      jobs: {
        claim: async (request) => store.jobs.claim({ ...request, now: await store.clock() }),
        sweep: async (request) => store.jobs.sweep({ ...request, now: await store.clock() }),
      },
    }),
    foundBy: [
      ["clock", "10 minutes off"],
      ["sweeping", "at their instant"],
    ],
  },
  "fires early": {
    change: (store) => ({
      jobs: { sweep: (request) => store.jobs.sweep({ ...request, now: request.now + 1 }) },
    }),
    foundBy: [
      ["sweeping", "not before"],
      ["expired claims, leases and beats", "runs out before its start"],
    ],
  },
  "writes the effects of a refused unit": {
    change: (store) => ({
      async commit(units, options) {
        const outcomes = await store.commit(units, options);
        const refused = units.filter((_, index) => !outcomes[index]?.ok);
        await store.commit(
          refused.map((unit) => ({ effects: effectsOf(unit) })),
          options,
        );
        return outcomes;
      },
    }),
    foundBy: [
      ["records and guards", "all or nothing"],
      ["fencing", "an effect of a holder"],
      ["fencing", "a log line"],
      ["crash points", "does nothing twice"],
    ],
  },
  "counts the versions of a new record from 1 again": {
    change: countFromOne,
    foundBy: [["records and guards", "never reused"]],
  },
  "refuses all units with one": {
    change: (store) => ({
      async commit(units, options) {
        for (const unit of units) {
          const [row] = unit.job ? await store.jobs.load([unit.job.id]) : [];
          if (unit.job && row?.fence !== unit.job.fence)
            return units.map(() => ({ ok: false, because: "lost", at: null }) as const);
        }
        return store.commit(units, options);
      },
    }),
    foundBy: [["records and guards", "does not stop the others"]],
  },
  "keeps documents with their keys sorted": {
    change: (store) => ({
      records: {
        ...store.records,
        load: async (keys) =>
          (await store.records.load(keys)).map((row) => row && { ...row, body: sortKeys(row.body) }),
      },
    }),
    foundBy: [["odd data", "in their own order"]],
  },
  "walks over all jobs to claim some": {
    change: (store) => ({
      jobs: {
        async claim(request) {
          // As a planner does that flips to walking the table once it is large.
          const all = await jobsOf(store);
          const walks = all.length > 10_000 ? 5 : 0;
          for (let walk = 0; walk < walks; walk++) {
            all
              .sort((a, b) => b.rank - a.rank || (a.id < b.id ? -1 : 1))
              .filter(({ id }) => id.includes("x"));
          }
          return store.jobs.claim(request);
        },
      },
    }),
    foundBy: [["growth", "stay fast"]],
  },
} satisfies Record<string, Broken>;

export function breakStore(store: Store, { change }: Broken): Store {
  const { jobs, timeouts, ...changes }: Changes = change(store);
  return {
    ...store,
    ...changes,
    jobs: { ...store.jobs, ...jobs },
    timeouts: { ...store.timeouts, ...timeouts },
  };
}

function sortKeys(value: unknown): never {
  return JSON.parse(
    JSON.stringify(value, (_key, each) =>
      each && typeof each === "object" && !Array.isArray(each)
        ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
        : each,
    ),
  ) as never;
}
