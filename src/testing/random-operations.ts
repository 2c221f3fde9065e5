import { decide } from "../core/job/decide/decide.ts";
import type { JobEvent } from "../core/job/decide/job-events.ts";
import {
  fenceSalt,
  type JobDocuments,
  type JobId,
  type JobRow,
  type Policy,
  rankOf,
} from "../core/job/job.ts";
import { isTerminal } from "../core/job/lifecycle.ts";
import { CLAIM_LEASE } from "../core/job/policy/deadlines.ts";
import { resolvePolicy } from "../core/job/policy/policy.ts";
import type { KeyLimit } from "../core/limit/limit.ts";
import { type Random, randomInt, seededRandom } from "../core/random.ts";
import type { Instant } from "../core/time.ts";
import type { Effect, Guard, Outcome, RecordKey, RecordRow, Store, Unit } from "../ports/store.ts";
import { type Decided, decidedUnit } from "./conformance/decided-unit.ts";
import { type JobSketch, sketchJob } from "./conformance/test-bed.ts";
import {
  drawTimeoutEffect,
  drawTimeoutGuard,
  prepareSteps,
  prepareTimeouts,
  type TimeoutWorld,
} from "./random-timeouts.ts";

/** What later operations refer to. */
export interface World extends TimeoutWorld {
  readonly ids: JobId[];
  /** Earlier rows. Holders, zombies and outsiders write by them. */
  readonly remembered: JobRow[];
}

/**
 * One call with all its arguments, so that two stores can get the same one. Returns its answer in a comparable form.
 */
export type Request = (store: Store) => Promise<unknown>;

/** Kinds of operations, by how often they are drawn. */
const WEIGHTS = {
  enqueue: 4,
  claim: 4,
  decide: 12,
  note: 2,
  beat: 2,
  sweep: 4,
  effects: 4,
  guarded: 2,
  timeouts: 8,
  steps: 4,
  prune: 1,
} as const;

type Kind = keyof typeof WEIGHTS;

const KINDS = (Object.keys(WEIGHTS) as Kind[]).flatMap((kind) =>
  Array.from({ length: WEIGHTS[kind] }, () => kind),
);

/** An operation does not depend on the operations drawn before it, so a failing list can be trimmed. */
export interface Operation {
  readonly kind: Kind;
  readonly seed: number;
}

export function drawOperations(seed: number, steps: number): Operation[] {
  const random = seededRandom(seed);
  return Array.from({ length: steps }, () => ({
    kind: pick(random, KINDS),
    seed: randomInt(random, 2 ** 32),
  }));
}

export function prepare(operation: Operation, world: World): Request {
  const random = seededRandom(operation.seed);
  world.now += randomInt(random, 15) === 0 ? randomInt(random, 30_000) : randomInt(random, 50);
  return PREPARE[operation.kind](random, world);
}

function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[randomInt(random, items.length)] as Item;
}

const MONTH = 30 * 86_400_000;
const QUEUES = ["a", "b"];
const FAIR_KEYS = ["", "x", "y", "z"] as const;
const LIMIT_KEYS = ["key a", "key b"];
const LIMITS: readonly KeyLimit[] = [
  { concurrency: 1, strict: true },
  { concurrency: 2 },
  { rate: { limit: 2, per: 3_000 } },
];
const ENQUEUED = { name: "enqueued" };
const KEYS: readonly RecordKey[] = [
  ["kit", "a"],
  ["kit", "b"],
  ["pause", "b"],
  ["limit", "key b"],
];
const POLICIES = [
  resolvePolicy({}),
  resolvePolicy({ definition: { timeouts: { heartbeat: 5_000, attempt: 20_000, grace: 1_000 } } }),
  resolvePolicy({ definition: { retry: { attempts: 1, onExhausted: "dead-letter" } } }),
  resolvePolicy({ definition: { retention: { completed: 0 } } }),
];

const PREPARE: Readonly<Record<Kind, (random: Random, world: World) => Request>> = {
  enqueue: prepareEnqueue,
  claim(random, world) {
    const request = {
      queue: pick(random, QUEUES),
      limit: 1 + randomInt(random, 5),
      now: world.now,
      lease: CLAIM_LEASE,
      salt: fenceSalt(random),
      worker: `worker ${randomInt(random, 3)}`,
      from: randomInt(random, 5) === 0 ? rankOf(0, 0) : 0,
      ...(randomInt(random, 2) === 0 && {
        turns: {
          weights: new Map([["x", 2]]),
          defaultWeight: 1,
          last: new Map([[rankOf(0, 0), { key: pick(random, FAIR_KEYS), taken: 1 }]]),
        },
      }),
      ...(random() < 0.2 && { most: 1 + randomInt(random, 4) }),
    };
    return (store) => store.jobs.claim(request);
  },
  decide: prepareDecision,
  note: prepareNote,
  beat(random, world) {
    const { now } = world;
    const jobs = Array.from({ length: Math.min(3, world.remembered.length) }, () => {
      const { id, fence, rev } = pick(random, world.remembered);
      const stallAt = now + randomInt(random, 20_000);
      const records = { event: { name: "beat" }, of: { id, stallAt } };
      return { id, fence, rev, ...(random() < 0.7 && { stallAt }), ...(random() < 0.5 && { records }) };
    });
    // The answer for a job that is named twice in one beat is undefined.
    const named = [...new Map(jobs.map((job) => [job.id, job])).values()];
    const worker = { id: `worker ${randomInt(random, 3)}`, body: { now }, wakeAt: now + 60_000 };
    return (store) => store.jobs.beat({ now, worker, jobs: named });
  },
  sweep: prepareSweep,
  effects(random, world) {
    const effects = Array.from({ length: 1 + randomInt(random, 3) }, () => drawEffect(random, world));
    return (store) => commit(store, world.now, { effects });
  },
  timeouts: prepareTimeouts,
  steps: prepareSteps,
  guarded(random, world) {
    const { now } = world;
    const record = pick(random, KEYS);
    const draw = randomInt(random, 4);
    const isGuarded = random() < 0.3;
    const lease = isGuarded ? drawTimeoutGuard(random, world) : undefined;
    const isInstead = isGuarded && randomInt(random, 2) === 0;
    const effects: Effect[] = [
      { put: record, body: randomInt(random, 100), wakeAt: null },
      { event: "guarded" },
      ...(random() < 0.5 ? [drawTimeoutEffect(random, world)] : []),
    ];
    return async (store) => {
      const [row] = await store.records.load([record]);
      // No version, the current one, or one that does not exist yet.
      const version = draw === 0 ? 0 : (row?.version ?? 0) + Number(draw === 3);
      const when: Guard[] = [...(isInstead ? [] : [{ record, version }]), ...(lease ? [lease] : [])];
      return commit(store, now, { when, effects });
    };
  },
  prune(random, { now }) {
    const isMuchLater = randomInt(random, 4) === 0;
    const request = { now: isMuchLater ? now + MONTH : now, eventsBefore: 0, limit: 1_000 };
    return async (store) => {
      const jobs = await store.jobs.prune(request);
      // A store decides how many events share a row, so the number of rows is not compared.
      await store.jobs.prune({ ...request, eventsBefore: now });
      return jobs;
    };
  },
};

function byId(rows: readonly JobRow[]): JobRow[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** A store decides by how much versions grow. */
export function unversioned({ version: _, ...row }: RecordRow): Omit<RecordRow, "version"> {
  return row;
}

function drawSketch(random: Random, world: World): JobSketch {
  const later = () => world.now + 1 + randomInt(random, 60_000);
  const isDelayed = random() < 0.3;
  return {
    queue: pick(random, QUEUES),
    type: `type ${randomInt(random, 2)}`,
    priority: randomInt(random, 3) - 1,
    payload: JSON.stringify({ n: randomInt(random, 1_000) }),
    ...(isDelayed && { dueAt: later() }),
    ...(random() < 0.2 && { waitAt: later() }),
    ...(random() < 0.2 && { totalAt: later() }),
    ...(random() < 0.2 && { heartbeat: 5_000 }),
    ...(random() < 0.15 && { needs: 1 + randomInt(random, 2), workflow: "workflow" }),
    ...(random() < 0.15 && { limitKey: pick(random, LIMIT_KEYS) }),
    ...(random() < 0.3 && { fairKey: pick(random, FAIR_KEYS) }),
    ...(random() < 0.2 && { uniqueKey: `key ${randomInt(random, 3)}` }),
    ...(random() < 0.2 && { options: { total: 90_000, meta: { z: 1, a: 2 } } }),
  };
}

function prepareEnqueue(random: Random, world: World): Request {
  const { now } = world;
  const jobs = Array.from({ length: 1 + randomInt(random, 5) }, () => {
    const job = sketchJob(drawSketch(random, world), now, world.nextId);
    const recorded = random() < 0.5 ? { ...job, records: { event: ENQUEUED, of: { job: job.id } } } : job;
    const known = random() < 0.1 ? world.ids[randomInt(random, world.ids.length)] : undefined;
    return known === undefined ? recorded : { ...recorded, id: known, hasNewId: false };
  });
  for (const { id } of jobs) if (!world.ids.includes(id)) world.ids.push(id);
  const bounds = random() < 0.2 ? new Map([["a", 1 + randomInt(random, 8)]]) : undefined;
  return (store) => store.jobs.enqueue(jobs, { now, ...(bounds && { bounds }) });
}

/** A sweep, and mostly a decision on what it returns. */
function prepareSweep(random: Random, { now }: World): Request {
  const request = { now, limit: 1_000, holdUntil: now + randomInt(random, 10_000) };
  const isDecided = random() < 0.8;
  const seed = randomInt(random, 2 ** 32);
  return async (store) => {
    const { ready, records, nextWakeAt, ...swept } = await store.jobs.sweep(request);
    const jobs = byId(swept.jobs);
    const byKey = records.toSorted((a, b) => (a.key.join(" ") < b.key.join(" ") ? -1 : 1));
    const verdicts: unknown[] = [];
    for (const row of isDecided ? jobs : []) {
      verdicts.push(await decideAndCommit(store, row, { type: "wake" }, { now, seed, outsider: true }));
    }
    return { ready: [...ready].sort(), jobs, records: byKey.map(unversioned), nextWakeAt, verdicts };
  };
}

/** The events that may come next for a job in this state. */
function eventsFor(row: JobRow, now: Instant, policy: Policy): readonly JobEvent[] {
  if (isTerminal(row.state)) return [{ type: "retry" }];
  const always: JobEvent[] = [{ type: "wake" }, { type: "cancel" }, { type: "extend", total: 500_000 }];
  if (row.state !== "active") return always;
  if (row.startedAt === null) {
    const start = { type: "start", policy, upper: now } as const;
    return [...always, start, start, start, start, { type: "release" }, { type: "release", delay: 2_000 }];
  }
  const error = { type: "Error", code: "handler_error", message: "no" };
  const succeed = { type: "succeed", signalled: false, result: "[1]" } as const;
  return [
    ...always,
    succeed,
    succeed,
    succeed,
    { type: "succeed", signalled: true },
    { type: "fail", signalled: false, error },
    { type: "fail", signalled: false, error, final: true },
    { type: "snooze", dueAt: now + 5_000 },
    { type: "release", error },
    { type: "extend", heartbeat: 9_000, attempt: 60_000 },
  ];
}

const OUTSIDERS: readonly JobEvent["type"][] = ["wake", "cancel", "extend", "retry"];

/** A decision on a current row, preferably a running one, or on a remembered row. */
function prepareDecision(random: Random, world: World): Request {
  const { now, ids } = world;
  const remembered =
    random() < 0.3 ? world.remembered[randomInt(random, world.remembered.length)] : undefined;
  const candidates = Array.from({ length: Math.min(6, ids.length) }, () => pick(random, ids));
  const policy = pick(random, POLICIES);
  const [seed, draw, namesRevision] = [randomInt(random, 2 ** 32), random(), random() < 0.3];
  const effects: Effect[] = random() < 0.3 ? [drawEffect(random, world)] : [];
  return async (store) => {
    const rows = remembered
      ? [remembered]
      : (await store.jobs.load(candidates)).filter((row) => row !== null);
    const row = rows.find(({ state }) => state === "active") ?? rows[0];
    if (!row) return "nobody";
    const event = pick(() => draw, eventsFor(row, now, policy));
    const outsider = namesRevision || OUTSIDERS.includes(event.type);
    return decideAndCommit(store, row, event, { now, seed, outsider, effects });
  };
}

async function decideAndCommit(
  store: Store,
  row: JobRow,
  event: JobEvent,
  how: Decided & { readonly now: Instant; readonly seed: number },
): Promise<unknown> {
  const decision = decide(row, event, how.now, seededRandom(how.seed));
  return decision.ok ? commit(store, how.now, decidedUnit(row, decision, how)) : decision.because;
}

function prepareNote(random: Random, world: World): Request {
  const text = () => (random() < 0.3 ? null : `{"n":${randomInt(random, 9)}}`);
  const documents: JobDocuments = {
    ...(random() < 0.5 && { progress: text() }),
    ...(random() < 0.5 && { checkpoint: text() }),
    ...(random() < 0.2 && { options: null }),
  };
  const row = world.remembered[randomInt(random, world.remembered.length)];
  if (!row) return async () => "nobody";
  const { id, fence, rev } = row;
  const job = { id, fence, documents, ...(random() < 0.5 && { rev }) };
  return (store) => commit(store, world.now, { job, effects: [{ log: { id }, job: id }] });
}

function drawEffect(random: Random, world: World): Effect {
  const id = world.ids[randomInt(random, world.ids.length)] ?? world.nextId();
  const wakeAt = random() < 0.5 ? null : world.now + randomInt(random, 20_000);
  return pick<() => Effect>(random, [
    () => ({ countdown: id }),
    () => ({ admit: pick(random, LIMIT_KEYS), count: 1 + randomInt(random, 2) }),
    () => ({ admit: pick(random, LIMIT_KEYS), count: 5, limit: pick(random, LIMITS) }),
    () => ({
      spend: pick(random, LIMIT_KEYS),
      by: `${randomInt(random, 9)}`,
      at: world.now,
      limit: pick(random, LIMITS),
    }),
    () => ({ put: pick(random, KEYS), body: { n: randomInt(random, 9), concurrency: 3 }, wakeAt }),
    () => ({ delete: pick(random, KEYS) }),
    () => ({ event: { id } }),
    () => ({ event: ENQUEUED, of: { id } }),
    () => ({ log: { n: randomInt(random, 9) }, job: id }),
    () => drawTimeoutEffect(random, world),
    () => drawTimeoutEffect(random, world),
  ])();
}

/** The position of a job after another guard failed is undefined, so it is left out. */
async function commit(store: Store, now: Instant, unit: Unit): Promise<unknown> {
  const [outcome] = (await store.commit([unit], { now })) as [Outcome];
  return !outcome.ok && ["conflict", "lapsed"].includes(outcome.because) ? outcome.because : outcome;
}
