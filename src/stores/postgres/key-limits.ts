import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { effectiveLimit, type KeyUse, type LimitOverride, roomOf } from "../../core/limit/limit.ts";
import type { Instant } from "../../core/time.ts";
import {
  type ClaimRequest,
  type Effect,
  type EnqueueCallOptions,
  type Enqueued,
  type LimitRow,
  limitRecordKey,
  queueMark,
  startKey,
  startsOf,
} from "../../ports/store.ts";
import { boundedQueues } from "../admissions.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import { jsonTexts, numberArray, textArray } from "./array-literal.ts";
import type { RankRanges } from "./claim-floors.ts";
import type { ConnectionGroup } from "./connection.ts";
import type { HintBatch } from "./hints.ts";
import {
  AWAIT_WAITING,
  CLAIM_LIMITED,
  LIMIT_USE,
  LIMIT_WAITING,
  PUT_STARTS,
  TAKE_ADVISORY_LOCK,
  WAITING_IN,
} from "./limit-statements.ts";
import type { Runner } from "./session.ts";
import { ADMIT, LOAD_RECORDS } from "./statements.ts";

/**
 * Admits at most `count` waiting jobs, and at most as many as the limit has room for. Other admits of the same key
 * wait until this transaction ends, so the counts stay correct.
 */
export async function admit(
  session: Runner,
  { admit: limitKey, count, limit }: Extract<Effect, { admit: string }>,
  hints: HintBatch,
): Promise<void> {
  let most = count;
  if (limit) {
    await session.run(TAKE_ADVISORY_LOCK, [`limit ${limitKey}`]);
    const [row] = await session.run(LIMIT_USE, [limitKey, startsOf(limitKey).from, startsOf(limitKey).to]);
    const { use, override, isAwaited } = useOf(row as SqlRow);
    if (!isAwaited) return;
    most = Math.min(count, roomOf(effectiveLimit(limit, override), use));
  }
  if (most <= 0) return;
  // The order of a strict limit is kept: ADMIT would pass over the best job while another transaction looks at it.
  if (limit?.strict) await session.run(AWAIT_WAITING, [limitKey, most]);
  const admitted = await session.run(ADMIT, [limitKey, most]);
  for (const [queue, rank] of admitted) hints.ready(queue as string, rank as number);
  if (limit && admitted.length < most) await admitAwaited(session, limitKey, most - admitted.length, hints);
}

/**
 * ADMIT skips jobs that another transaction writes, and no later event may admit them. So wait for them and try
 * again.
 */
async function admitAwaited(
  session: Runner,
  limitKey: string,
  most: number,
  hints: HintBatch,
): Promise<void> {
  if ((await session.run(AWAIT_WAITING, [limitKey, most])).length === 0) return;
  for (const [queue, rank] of await session.run(ADMIT, [limitKey, most]))
    hints.ready(queue as string, rank as number);
}

/** Remembers starts: one statement reads the overrides, and one writes all starts. */
export async function spend(
  session: Runner,
  effects: readonly Extract<Effect, { spend: string }>[],
  now: Instant,
): Promise<void> {
  if (effects.length === 0) return;
  const [kind] = limitRecordKey("");
  const limits = [...new Set(effects.map((effect) => effect.spend))];
  const records = await session.run(LOAD_RECORDS, [kind, textArray(limits, (limitKey) => limitKey)]);
  const overrides = new Map(
    records.map((record) => [record[1] as string, JSON.parse(record[4] as string) as LimitOverride]),
  );
  // The last start of a key counts, as if they were written one after the other.
  const starts = new Map<string, { readonly until: Instant; readonly body: string }>();
  for (const { spend: limitKey, by, at, limit } of effects) {
    const { rate } = effectiveLimit(limit, overrides.get(limitKey));
    if (rate === undefined || at + rate.per <= now) continue;
    starts.set(startKey(limitKey, by)[1], {
      until: at + rate.per,
      body: JSON.stringify({ limitKey, limit }),
    });
  }
  if (starts.size === 0) return;
  const sorted = [...starts].sort(([a], [b]) => (a < b ? -1 : 1));
  await session.run(PUT_STARTS, [
    textArray(sorted, ([key]) => key),
    numberArray(sorted, ([, { until }]) => until),
    jsonTexts(sorted, ([, { body }]) => body),
  ]);
}

interface Counted {
  readonly use: KeyUse;
  readonly override: LimitOverride | null;
  readonly nextAt: Instant | null;
  /** Whether any job waits for the limit. */
  readonly isAwaited: boolean;
}

function useOf(row: SqlRow): Counted {
  const [body, available, active, unstarted, retryable, starts, nextAt, isAwaited] = row as [
    string | null,
    ...number[],
  ];
  return {
    use: {
      available: available as number,
      active: active as number,
      unstarted: unstarted as number,
      retryable: retryable as number,
      starts: starts as number,
    },
    override: body === null ? null : (JSON.parse(body) as LimitOverride),
    nextAt: (nextAt ?? null) as Instant | null,
    isAwaited: isAwaited === 1,
  };
}

export async function limitRow(runner: Runner, limitKey: string): Promise<LimitRow> {
  const [row] = await runner.run(LIMIT_USE, [limitKey, startsOf(limitKey).from, startsOf(limitKey).to]);
  const [waiting] = await runner.run(LIMIT_WAITING, [limitKey]);
  const { use, nextAt } = useOf(row as SqlRow);
  return { key: limitKey, waiting: waiting?.[0] as number, ...use, nextAt };
}

/** Claims from a queue with a concurrency limit. Such claims run one after the other. */
export function claimLimited(
  connections: ConnectionGroup,
  request: ClaimRequest,
  most: number,
  { starts, ends }: RankRanges,
): Promise<SqlRow[]> {
  const { queue, now, limit, salt, worker, lease, shortest = 0 } = request;
  return connections.transaction(async (session) => {
    await session.run(TAKE_ADVISORY_LOCK, [`claim ${queue}`]);
    const [from, to] = [starts, ends].map((ranks) => numberArray(ranks, (rank) => rank));
    const values = [queue, now, limit, salt, from, worker, lease, most, queueMark(queue), shortest, to];
    return session.run(CLAIM_LIMITED, values);
  });
}

export type Bounded = Pick<EnqueueCallOptions, "now" | "onDepth"> & {
  readonly bounds: ReadonlyMap<string, number>;
};

/**
 * Enqueues jobs in order, some of them into bounded queues. A job for which there is no room is answered `full`.
 * `insert` stores jobs. `known` returns the jobs that would not be stored anyway.
 */
export async function enqueueBounded(
  session: Runner,
  jobs: readonly NewJob[],
  { bounds, onDepth }: Bounded,
  insert: (jobs: readonly NewJob[]) => Promise<Enqueued[]>,
  known: (jobs: readonly NewJob[]) => Promise<ReadonlyMap<string, Enqueued>>,
): Promise<Enqueued[]> {
  const rooms = await roomsIn(session, jobs, bounds);
  const answers = new Map<NewJob, Enqueued>();
  for (let left = jobs; left.length > 0; ) {
    // Known jobs take no room, so jobs after them may fit.
    const room = new Map(rooms);
    const fitting = left.filter((job) => takesRoom(job, room));
    const tried = fitting.length > 0 ? await insert(fitting) : [];
    for (const [index, job] of fitting.entries()) {
      answers.set(job, tried[index] as Enqueued);
      if (tried[index] === "created") takesRoom(job, rooms);
    }
    left = left.filter((job) => !answers.has(job));
    if (left.every((job) => rooms.get(job.queue) === 0)) {
      const taken = await known(left);
      for (const job of left) answers.set(job, taken.get(job.id) ?? "full");
      break;
    }
  }
  for (const [queue, room] of rooms) onDepth?.(queue, (bounds.get(queue) as number) - room);
  return jobs.map((job) => answers.get(job) as Enqueued);
}

/** Takes room for a job. Returns whether there was any. */
function takesRoom(job: NewJob, rooms: Map<string, number>): boolean {
  const room = rooms.get(job.queue);
  if (room === undefined) return true;
  if (room <= 0) return false;
  rooms.set(job.queue, room - 1);
  return true;
}

/** In the order of queue names, so that two transactions do not deadlock. */
async function roomsIn(
  session: Runner,
  jobs: readonly NewJob[],
  bounds: ReadonlyMap<string, number>,
): Promise<Map<string, number>> {
  const rooms = new Map<string, number>();
  for (const queue of boundedQueues(jobs, bounds)) {
    const bound = bounds.get(queue) as number;
    await session.run(TAKE_ADVISORY_LOCK, [`queue ${queue}`]);
    const [row] = await session.run(WAITING_IN, [queue, bound]);
    rooms.set(queue, Math.max(0, bound - (row?.[0] as number)));
  }
  return rooms;
}
