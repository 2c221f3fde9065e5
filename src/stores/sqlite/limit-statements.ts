import { START_KIND } from "../../ports/store.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import { LIVE } from "./statements.ts";

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const ACTIVE = STATE_CODES.active;
/** Scheduled and retryable jobs. No state code of a live job is higher. */
const LATER = Math.min(STATE_CODES.scheduled, STATE_CODES.retryable);

/** What uses a limit. Takes the limit key. Returns state, count, and how many of them have not started. */
export const LIMIT_USE = `
select state, count(*), sum(started_at is null) from curfew_jobs indexed by curfew_jobs_limited
 where limit_key = ? and limit_key is not null and state > 0 group by state`;

/** Counts jobs that wait only for a limit. Takes the limit key. */
export const LIMIT_WAITING = `
select count(*) from curfew_jobs indexed by curfew_jobs_limit
 where limit_key = ? and limit_key is not null and state = ${PENDING} and needs = 0`;

/** The starts that a rate still counts. Takes the range of their keys. Returns how many, and when the first is due. */
export const LIMIT_STARTS = `
select count(*), min(wake_at) from curfew_records where kind = '${START_KIND}' and key >= ? and key < ?`;

/** The next limit key with live jobs. Takes the key it comes after, twice. */
export const NEXT_LIMIT_KEY = `
select min(limit_key) from (
  select min(limit_key) as limit_key from curfew_jobs indexed by curfew_jobs_limit
   where limit_key > ? and limit_key is not null and state = ${PENDING}
  union all
  select min(limit_key) from curfew_jobs indexed by curfew_jobs_limited where limit_key > ? and limit_key is not null and state > 0)`;

/** Counts active jobs of a queue that have a limit key. Takes the queue. */
export const ACTIVE_IN = `
select count(*) from curfew_jobs indexed by curfew_jobs_limited_active
 where queue = ? and limit_key is not null and state = ${ACTIVE}`;

/** Sets the limit key of rows that have none. Takes the limit key and rows. */
export const MARK =
  "update curfew_jobs set limit_key = ? where limit_key is null and rowid in (select value from json_each(?))";

/** Counts the waiting jobs of a queue. Takes the queue and the most to count, for each of three kinds. */
export const WAITING_IN = `
select (select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_ready
                               where queue = ? and state = ${AVAILABLE} limit ?))
     + (select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_pending
                               where queue = ? and state = ${PENDING} limit ?))
     + (select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_later
                               where queue = ? and state >= ${LATER} limit ?))`;

/**
 * Counts live jobs of a range by queue and state. Takes the id after which the range starts, its last id, and a queue or
 * null for all.
 */
export const COUNT_QUEUES = `
select queue, state, count(*) from curfew_jobs
 where id > ? and id <= ? and queue = coalesce(?, queue) and queue >= char(2) group by queue, state`;
/** COUNT_QUEUES for finished jobs. */
export const COUNT_QUEUES_DONE = `
select queue, state, count(*) from curfew_done
 where id > ? and id <= ? and queue = coalesce(?, queue) and queue >= char(2) group by queue, state`;

/** Live jobs of a limit by id. Takes the limit, twice, and how many. Jobs that wait for it and all others are in two indexes. */
export const LIMIT_JOBS = `
select ${LIVE} from (
  select * from curfew_jobs indexed by curfew_jobs_limit where limit_key = ? and limit_key is not null and state = ${PENDING}
  union all
  select * from curfew_jobs indexed by curfew_jobs_limited where limit_key = ? and limit_key is not null and state > 0)
 order by id limit ?`;
/** LIMIT_JOBS that do not wait for the limit. Takes the limit, a state and how many. Jobs that wait may be a million. */
export const ADMITTED_JOBS = `
select ${LIVE} from curfew_jobs indexed by curfew_jobs_limited
 where limit_key = ? and limit_key is not null and state > 0 and state = ? order by id limit ?`;
/** LIMIT_JOBS that wait for the limit. Takes the limit and how many. */
export const WAITING_JOBS = `
select ${LIVE} from curfew_jobs indexed by curfew_jobs_limit
 where limit_key = ? and limit_key is not null and state = ${PENDING} order by id limit ?`;

/** Counts available jobs of a queue before a position. Takes queue, rank, id and the most to count. */
export const AHEAD_IN_QUEUE = `
select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_ready
                       where queue = ? and state = ${AVAILABLE} and (rank, id) < (?, ?) limit ?)`;

/** Counts jobs that wait for a limit before a position. Takes limit, rank, id and the most to count. */
export const AHEAD_AT_LIMIT = `
select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_limit
                       where limit_key = ? and limit_key is not null and state = ${PENDING} and needs = 0
                         and (rank, id) < (?, ?) limit ?)`;

/** Counts jobs of a limit in one state, up to a bound. Takes limit, state and bound. Returns how many, and how many have not started. */
export const USE_UP_TO = `
select count(*), coalesce(sum(started_at is null), 0)
  from (select started_at from curfew_jobs indexed by curfew_jobs_limited
         where limit_key = ? and limit_key is not null and state > 0 and state = ? limit ?)`;

/** LIMIT_STARTS up to a bound, which comes last. Keys grow with the ids of jobs: the oldest jobs come first. */
export const STARTS_UP_TO = `
select count(*), min(wake_at)
  from (select wake_at from curfew_records where kind = '${START_KIND}' and key >= ? and key < ? order by key limit ?)`;

/** Active jobs of a limit. Takes the limit and a limit. */
export const HOLDERS_OF_LIMIT = `
select ${LIVE} from curfew_jobs indexed by curfew_jobs_limited
 where limit_key = ? and limit_key is not null and state > 0 and state = ${ACTIVE} limit ?`;

/** Counts active jobs of a queue that have a limit, up to a bound. Takes queue and bound. Also returns how many have not started. */
export const ACTIVE_UP_TO = `
select count(*), coalesce(sum(started_at is null), 0)
  from (select started_at from curfew_jobs indexed by curfew_jobs_limited_active
         where queue = ? and limit_key is not null and state = ${ACTIVE} limit ?)`;

/** Active jobs of a queue that have a limit. Takes the queue and a limit. */
export const HOLDERS_OF_QUEUE = `
select ${LIVE} from curfew_jobs indexed by curfew_jobs_limited_active
 where queue = ? and limit_key is not null and state = ${ACTIVE} limit ?`;

/** The next available job at or after a position. Takes a queue and a rank. Returns queue, id, rank and created_at. */
export const NEXT_READY = `
select queue, id, rank, created_at from curfew_jobs indexed by curfew_jobs_ready
 where state = ${AVAILABLE} and (queue, rank) >= (?, ?) order by queue, rank, id limit 1`;

/** The next queue with an available job. Takes the name it comes after. */
export const NEXT_READY_QUEUE = `
select min(queue) from curfew_jobs indexed by curfew_jobs_ready where queue > ? and state = ${AVAILABLE}`;
