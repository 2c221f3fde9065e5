import { START_KIND } from "../../ports/store.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import { CLAIMED, claimable, LIVE, type Statement, setClaimed, texts } from "./statements.ts";

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const ACTIVE = STATE_CODES.active;
/** Scheduled and retryable jobs. No state code of a live job is higher. */
const LATER = Math.min(STATE_CODES.scheduled, STATE_CODES.retryable);

/**
 * Makes other transactions that lock the same name wait until this one ends. The next statement then sees what they
 * have committed. $1 name. The first number separates these locks from those of other programs.
 */
export const TAKE_ADVISORY_LOCK: Statement = {
  name: "take_advisory_lock",
  text: "select pg_advisory_xact_lock(1668641382, hashtext($1::text))::text",
};

/**
 * What uses a limit. $1 limit key, $2 and $3 the range of the keys of its starts. Returns the body of an override or
 * null; the numbers of available, active, unstarted active and retryable jobs; the number of starts that count; when
 * the first of them is due; and 1 if any job waits.
 */
export const LIMIT_USE: Statement = {
  name: "limit_use",
  text: `
select (select body from curfew.records where kind = 'limit' and key = $1::text) as body,
       coalesce(sum(u.n) filter (where u.state = ${AVAILABLE}), 0)::int as available,
       coalesce(sum(u.n) filter (where u.state = ${ACTIVE}), 0)::int as active,
       coalesce(sum(u.unstarted) filter (where u.state = ${ACTIVE}), 0)::int as unstarted,
       coalesce(sum(u.n) filter (where u.state = ${STATE_CODES.retryable}), 0)::int as retryable,
       (select count(*) from curfew.records
         where kind = '${START_KIND}' and key >= $2::text and key < $3::text)::int as starts,
       (select min(wake_at) from curfew.records
         where kind = '${START_KIND}' and key >= $2::text and key < $3::text) as wake_at,
       (select count(*) from (select 1 from curfew.jobs
                               where limit_key = $1::text and limit_key is not null and state = ${PENDING} and needs = 0
                               order by limit_key, rank, id limit 1) w)::int as awaited
  from (select state, count(*) as n, count(*) filter (where started_at is null) as unstarted
          from curfew.jobs where limit_key = $1::text and limit_key is not null and state > 0 group by state) u`,
};

/** Remembers starts. $1 keys, $2 when they no longer count, $3 bodies. */
export const PUT_STARTS: Statement = {
  name: "put_starts",
  text: `
insert into curfew.records (kind, key, wake_at, body)
select '${START_KIND}', s.key, s.wake_at, s.body
  from unnest($1::text[], $2::bigint[], ${texts(3)}) as s(key, wake_at, body)
on conflict (kind, key) do update set version = default, wake_at = excluded.wake_at, body = excluded.body`,
};

/** Counts jobs that wait only for a limit. $1 limit key. */
export const LIMIT_WAITING: Statement = {
  name: "limit_waiting",
  text: `
select count(*)::int from curfew.jobs
 where limit_key = $1::text and limit_key is not null and state = ${PENDING} and needs = 0`,
};

/** The first limit key after another one. Jobs that wait for a limit and all others are in two indexes. */
const nextLimitKey = (after: string) => `
  select limit_key from (
    (select limit_key from curfew.jobs where limit_key is not null and state = ${PENDING} and limit_key > ${after}
      order by limit_key, rank, id limit 1)
    union all
    (select limit_key from curfew.jobs where limit_key is not null and state > 0 and limit_key > ${after}
      order by limit_key, state limit 1)) k order by limit_key limit 1`;

/** Limit keys with live jobs. Each step reads both indexes once. $1 after this key or null, $2 limit. */
export const LIMIT_KEYS: Statement = {
  text: `
with recursive keys as (
  (select limit_key, 1 as n from (${nextLimitKey("coalesce($1::text, '')")}) first)
  union all
  select next.limit_key, keys.n + 1 from keys, lateral (${nextLimitKey("keys.limit_key")}) next where keys.n < $2::bigint)
select limit_key from keys order by limit_key`,
};

/** Waits for transactions that write the best waiting jobs, which ADMIT skips. $1 limit key, $2 how many. */
export const AWAIT_WAITING: Statement = {
  name: "await_waiting",
  text: `
select id from curfew.jobs where limit_key = $1::text and limit_key is not null and state = ${PENDING} and needs = 0
 order by limit_key, rank, id limit $2::int for update`,
};

/** How many jobs a queue with at most $8 active ones has room for. */
const ROOM = `greatest(0, least($3::bigint, $8::bigint - (
            select count(*) from curfew.jobs where queue = $1::text and limit_key is not null and state = ${ACTIVE})))`;

/**
 * CLAIM for a queue with at most $8 active jobs. $9 is the limit key for jobs that have none, $10 shortest, $11 ends of ranks. Run
 * it only under the advisory lock of the queue, or the count is wrong.
 */
export const CLAIM_LIMITED: Statement = {
  name: "claim_limited",
  text: `
update curfew.jobs j
   set ${setClaimed(10)}, limit_key = coalesce(j.limit_key, $9::text)
 where j.ctid = any(${claimable(11, ROOM)})
returning ${CLAIMED}`,
};

/** Counts the waiting jobs of a queue. $1 queue, $2 the most to count of each kind. */
export const WAITING_IN: Statement = {
  name: "waiting_in",
  text: `
select (select count(*) from (select 1 from curfew.jobs where queue = $1::text and state = ${AVAILABLE}
                               order by queue, rank, id limit $2::int) a)::int
     + (select count(*) from (select 1 from curfew.jobs where queue = $1::text and state = ${PENDING} limit $2::int) p)::int
     + (select count(*) from (select 1 from curfew.jobs where queue = $1::text and state >= ${LATER} limit $2::int) l)::int`,
};

const jobsOfLimit = (which: string) => `
  select * from curfew.jobs where limit_key = $1::text and limit_key is not null and state ${which}
     and ($2::smallint is null or state = $2::smallint)`;

/**
 * Live jobs of a limit by id. $1 the limit, $2 state or null, $3 how many. Sorted apart, because the planner would otherwise
 * walk all jobs by id until it meets enough of the limit.
 */
export const LIMIT_JOBS: Statement = {
  text: `
with found as materialized (${jobsOfLimit(`= ${PENDING}`)} union all ${jobsOfLimit("> 0")})
select ${LIVE} from found order by id limit $3::bigint`,
};
