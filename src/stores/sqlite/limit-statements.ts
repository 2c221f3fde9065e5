import { START_KIND } from "../../ports/store.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import { LIVE } from "./statements.ts";

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const ACTIVE = STATE_CODES.active;
/** Scheduled and retryable jobs: no state of a live job comes after theirs. */
const LATER = Math.min(STATE_CODES.scheduled, STATE_CODES.retryable);

/** What is in use of a limit. Takes the limit. Gives state, how many, and how many of them have not started. */
export const LIMIT_USE = `
select state, count(*), sum(started_at is null) from curfew_jobs indexed by curfew_jobs_limited
 where limit_key = ? and limit_key is not null and state > 0 group by state`;

/** How many jobs wait behind a limit and for nothing else. Takes the limit. */
export const LIMIT_WAITING = `
select count(*) from curfew_jobs indexed by curfew_jobs_limit
 where limit_key = ? and limit_key is not null and state = ${PENDING} and needs = 0`;

/** Starts that count behind a limit. Takes where their keys begin and end. Gives how many, and when the first is due. */
export const LIMIT_STARTS = `
select count(*), min(wake_at) from curfew_records where kind = '${START_KIND}' and key >= ? and key < ?`;

/** The next limit with live jobs. Takes the name it comes after, twice. */
export const NEXT_LIMIT_KEY = `
select min(limit_key) from (
  select min(limit_key) as limit_key from curfew_jobs indexed by curfew_jobs_limit
   where limit_key > ? and limit_key is not null and state = ${PENDING}
  union all
  select min(limit_key) from curfew_jobs indexed by curfew_jobs_limited where limit_key > ? and limit_key is not null and state > 0)`;

/** How many active jobs of a queue have a limit. Takes the queue. */
export const ACTIVE_IN = `
select count(*) from curfew_jobs indexed by curfew_jobs_limited_active
 where queue = ? and limit_key is not null and state = ${ACTIVE}`;

/** Gives a limit to rows that have none. Takes the limit and rows. */
export const MARK =
  "update curfew_jobs set limit_key = ? where limit_key is null and rowid in (select value from json_each(?))";

/** How many jobs wait in a queue, as far as one wants to know. Takes queue and how many at most, for each of three kinds. */
export const WAITING_IN = `
select (select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_ready
                               where queue = ? and state = ${AVAILABLE} limit ?))
     + (select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_pending
                               where queue = ? and state = ${PENDING} limit ?))
     + (select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_later
                               where queue = ? and state >= ${LATER} limit ?))`;

/**
 * How many live jobs of a stretch are in each queue and state. Takes the id it begins after, its last id, and a queue or
 * null for all.
 */
export const COUNT_QUEUES = `
select queue, state, count(*) from curfew_jobs
 where id > ? and id <= ? and queue = coalesce(?, queue) group by queue, state`;
/** COUNT_QUEUES for finished jobs. */
export const COUNT_QUEUES_DONE = `
select queue, state, count(*) from curfew_done
 where id > ? and id <= ? and queue = coalesce(?, queue) group by queue, state`;

/** Live jobs of a limit by id. Takes the limit, a state or null for any, and how many. */
export const LIMIT_JOBS = `
select ${LIVE} from curfew_jobs where limit_key = ? and state = coalesce(?, state) order by id limit ?`;
