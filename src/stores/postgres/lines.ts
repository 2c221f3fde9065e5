import { UUID } from "../../core/ids.ts";
import { type JobId, RANK_SPAN, type Rank } from "../../core/job/job.ts";
import { namesOf } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import {
  type FairLine,
  type HeldSlots,
  HOLDERS_SHOWN,
  type Inspector,
  type Line,
  type ReadyJob,
  START_KIND,
  startsOf,
} from "../../ports/store.ts";
import { checkLimit } from "../check-batch.ts";
import { decodeJob, STATE_CODES } from "../sql/row-codec.ts";
import { AHEAD_IN_KEY, SHARES } from "./fair-statements.ts";
import type { Runner } from "./session.ts";
import { LIVE, type Statement } from "./statements.ts";

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const ACTIVE = STATE_CODES.active;
const RETRYABLE = STATE_CODES.retryable;

/** Counts available jobs of a queue before a position. $1 queue, $2 rank, $3 id, $4 the most to count. */
const AHEAD_IN_QUEUE: Statement = {
  text: `
select count(*)::int from (
  select 1 from curfew.jobs where queue = $1::text and state = ${AVAILABLE} and (rank, id) < ($2::bigint, $3::uuid)
   order by queue, rank, id limit $4::bigint) a`,
};

/** Counts jobs that wait for a limit before a position. $1 limit key, $2 rank, $3 id, $4 the most to count. */
const AHEAD_AT_LIMIT: Statement = {
  text: `
select count(*)::int from (
  select 1 from curfew.jobs
   where limit_key = $1::text and limit_key is not null and state = ${PENDING} and needs = 0
     and (rank, id) < ($2::bigint, $3::uuid)
   order by limit_key, rank, id limit $4::bigint) a`,
};

const usedIn = (state: number) => `
  select started_at from curfew.jobs
   where limit_key = $1::text and limit_key is not null and state > 0 and state = ${state} limit $4::bigint`;

/**
 * What uses a limit, each count up to a bound. $1 limit key, $2 and $3 the range of the keys of its starts, $4 the
 * bound. Returns available, active, unstarted, retryable, starts, and when the first start is due. Keys of starts
 * grow with the ids of jobs, so the first ones belong to the oldest jobs.
 */
const SLOTS_OF_LIMIT: Statement = {
  text: `
select (select count(*) from (${usedIn(AVAILABLE)}) u)::int,
       a.active::int, a.unstarted::int,
       (select count(*) from (${usedIn(RETRYABLE)}) u)::int,
       s.starts::int, s.next_at
  from (select count(*) as active, count(*) filter (where started_at is null) as unstarted
          from (${usedIn(ACTIVE)}) u) a,
       (select count(*) as starts, min(wake_at) as next_at
          from (select wake_at from curfew.records
                 where kind = '${START_KIND}' and key >= $2::text and key < $3::text
                 order by kind, key limit $4::bigint) r) s`,
};

/** Active jobs of a limit. $1 limit key, $2 limit. */
const HOLDERS_OF_LIMIT: Statement = {
  text: `
select ${LIVE} from curfew.jobs
 where limit_key = $1::text and limit_key is not null and state > 0 and state = ${ACTIVE} limit $2::bigint`,
};

/**
 * Counts active jobs of a queue that have a limit key. $1 queue, $2 the most to count. Also returns how many have not
 * started.
 */
const SLOTS_OF_QUEUE: Statement = {
  text: `
select count(*)::int, (count(*) filter (where started_at is null))::int
  from (select started_at from curfew.jobs
         where queue = $1::text and limit_key is not null and state = ${ACTIVE} limit $2::bigint) a`,
};

/** Active jobs of a queue that have a limit key. $1 queue, $2 limit. */
const HOLDERS_OF_QUEUE: Statement = {
  text: `
select ${LIVE} from curfew.jobs
 where queue = $1::text and limit_key is not null and state = ${ACTIVE} limit $2::bigint`,
};

/** Names of queues with available jobs. Each step reads the index once. $1 after this name, $2 limit. */
const READY_QUEUES: Statement = {
  text: `
with recursive names as (
  (select queue, 1 as n from curfew.jobs where state = ${AVAILABLE} and queue > $1::text
    order by queue, rank, id limit 1)
  union all
  select next.queue, names.n + 1
    from names, lateral (select queue from curfew.jobs where state = ${AVAILABLE} and queue > names.queue
                          order by queue, rank, id limit 1) next
   where names.n < $2::bigint)
select queue from names order by queue`,
};

/**
 * The available job of each queue that became due first. The index has the first one of each priority in front: each
 * step jumps to the next priority of the queue, or to the next queue. $1 the most queues, $2 and $3 the range of their
 * names. Returns queue, id, rank and created_at.
 */
const OLDEST_READY: Statement = {
  text: `
with recursive firsts as (
  (select queue, rank, id, created_at, 1 as queues from curfew.jobs
    where state = ${AVAILABLE} and queue >= $2::text and queue < $3::text
    order by queue, rank, id limit 1)
  union all
  select next.queue, next.rank, next.id, next.created_at, firsts.queues + (next.queue <> firsts.queue)::int
    from firsts, lateral (select queue, rank, id, created_at from curfew.jobs
                           where state = ${AVAILABLE} and queue < $3::text
                             and (queue, rank) >= (firsts.queue, (firsts.rank / ${RANK_SPAN} + 1) * ${RANK_SPAN})
                           order by queue, rank, id limit 1) next
   where firsts.queues + (next.queue <> firsts.queue)::int <= $1::bigint)
select distinct on (queue) queue, id, rank, created_at from firsts order by queue, rank % ${RANK_SPAN}, id`,
};

/** Queries about waiting jobs. */
export function createLines(
  runner: Runner,
): Pick<Inspector, "ahead" | "shares" | "slots" | "readyQueues" | "oldestReady"> {
  return {
    async ahead(line, before, most) {
      checkLimit(most);
      return ahead(runner, line, before, most);
    },
    async shares(queue, limit, most) {
      checkLimit(limit);
      checkLimit(most);
      return (await runner.run(SHARES, [queue, limit, most])).map(([key, rank, waiting]) => ({
        key: key as string,
        rank: rank as Rank,
        waiting: waiting as number,
      }));
    },
    async slots(line, most) {
      checkLimit(most);
      return heldSlots(runner, line, most);
    },
    async readyQueues(after, limit) {
      checkLimit(limit);
      return readyQueues(runner, after, limit);
    },
    async oldestReady(limit, tenant) {
      checkLimit(limit);
      return oldestReady(runner, limit, namesOf(tenant));
    },
  };
}

async function ahead(
  runner: Runner,
  line: Line | FairLine,
  { rank, id }: { readonly rank: Rank; readonly id: JobId },
  most: number,
): Promise<number> {
  if (!UUID.test(id)) return 0;
  if ("fairKey" in line)
    return (await runner.run(AHEAD_IN_KEY, [line.queue, rank, id, most, line.fairKey]))[0]?.[0] as number;
  const [statement, name] =
    "limitKey" in line ? [AHEAD_AT_LIMIT, line.limitKey] : [AHEAD_IN_QUEUE, line.queue];
  return (await runner.run(statement, [name, rank, id, most]))[0]?.[0] as number;
}

async function heldSlots(runner: Runner, line: Line, most: number): Promise<HeldSlots> {
  if ("queue" in line) {
    const [counted] = await runner.run(SLOTS_OF_QUEUE, [line.queue, most]);
    const [active, unstarted] = counted as [number, number];
    const jobs = await runner.run(HOLDERS_OF_QUEUE, [line.queue, HOLDERS_SHOWN]);
    const use = { available: 0, active, unstarted, retryable: 0, starts: 0 };
    return { ...use, nextAt: null, jobs: jobs.map(decodeJob) };
  }
  const { from, to } = startsOf(line.limitKey);
  const [counted] = await runner.run(SLOTS_OF_LIMIT, [line.limitKey, from, to, most]);
  const jobs = await runner.run(HOLDERS_OF_LIMIT, [line.limitKey, HOLDERS_SHOWN]);
  const [available, active, unstarted, retryable, starts, nextAt] = counted as [
    number,
    number,
    number,
    number,
    number,
    Instant | null,
  ];
  return { available, active, unstarted, retryable, starts, nextAt, jobs: jobs.map(decodeJob) };
}

async function readyQueues(runner: Runner, after: string | null, limit: number): Promise<string[]> {
  return (await runner.run(READY_QUEUES, [after ?? namesOf(undefined).from, limit])).map(
    ([queue]) => queue as string,
  );
}

async function oldestReady(
  runner: Runner,
  limit: number,
  { from, to }: ReturnType<typeof namesOf>,
): Promise<ReadyJob[]> {
  return (await runner.run(OLDEST_READY, [limit, from, to])).map(([queue, id, rank, createdAt]) => ({
    queue: queue as string,
    id: id as JobId,
    rank: rank as Rank,
    createdAt: createdAt as Instant,
  }));
}
