import { STATE_CODES } from "../sql/row-codec.ts";
import { CLAIMED_FAIR, type Statement, setClaimed } from "./statements.ts";

const AVAILABLE = STATE_CODES.available;
const ACTIVE = STATE_CODES.active;

/** `rank >> 45` is the priority in a rank (`RANK_SPAN`). */
const ofPriority = (rank: string) =>
  `queue = $1::text and state = ${AVAILABLE} and fair_key is not null and (rank >> 45) = (${rank} >> 45)`;

/**
 * One key, written as a range: equal columns count for nothing in an order, and then the index of all ready jobs would
 * give it too. The planner takes that one while it has no statistics, and walks over the jobs of all other keys.
 */
const ofKey = (key: string) => `fair_key >= ${key} and fair_key <= ${key}`;

const firstKey = (rank: string, condition: string) => `
  select fair_key from curfew.jobs where ${ofPriority(rank)} and ${condition}
   order by queue, (rank >> 45), fair_key limit 1`;

const RANK = "(select rank from head)";

/** Keys in order. Each condition is one range of the index: a walk must not read over the jobs of a key. */
const keysIn = (name: string, first: string, more = "true") => `
${name}(key) as (
  select (${firstKey(RANK, first)}) as key
  union all
  select (${firstKey(RANK, `fair_key > w.key and ${more}`)}) from ${name} w where w.key is not null)`;

/** The key itself, if it has jobs. */
const itself = (condition: string) => `
    (select fair_key as key from curfew.jobs
      where ${condition} and ${ofPriority(RANK)} and ${ofKey("$3::text")}
      order by queue, (rank >> 45), fair_key limit 1)`;

/**
 * The fair keys with available jobs in the best priority of a queue. $1 queue, $2 lowest rank, $3 the key they come
 * after, $4 whether that key itself comes first and not last, $5 limit. Then the keys from the first one on, up to $3.
 * Returns the best rank, whether its job has no fair key, and a key; one row with a null key if no job has one. A paused
 * queue gives no row.
 */
export const FAIR_KEYS: Statement = {
  name: "fair_keys",
  text: `
with recursive head as materialized (
  select rank, fair_key is null as is_keyless from curfew.jobs
   where queue = $1::text and state = ${AVAILABLE} and rank >= $2::bigint
     and not exists (select 1 from curfew.records where kind = 'pause' and key = $1::text)
   order by queue, rank, id limit 1),
${keysIn("later", "fair_key > $3::text")},
${keysIn("earlier", "fair_key >= '' and fair_key < $3::text", "fair_key < $3::text")}
select h.rank, h.is_keyless::int, k.key
  from head h left join lateral (
    select key from (${itself("$4::boolean")}
      union all select key from later where key is not null
      union all select key from earlier where key is not null
      union all ${itself("not $4::boolean")}) walks limit $5::int) k on true`,
};

/** How many of the best jobs of a queue to read for each job without a key that is wanted. */
const READ_FOR_KEYLESS = 4;

const taken = (shortest: number) => `
update curfew.jobs j
   set ${setClaimed(shortest)}`;

const TAKEN_IDS = `
 where j.id = any(array(
         select p.id from unnest($9::text[], $10::int[]) as k(key, count)
          cross join lateral (
                select id from curfew.jobs where ${ofPriority("$5::bigint")} and ${ofKey("k.key")}
                 order by queue, (rank >> 45), fair_key, rank, id limit k.count for update skip locked) p)
       || array(
         select id from (
           select id, fair_key from curfew.jobs
            where queue = $1::text and state = ${AVAILABLE} and rank >= $5::bigint and rank < $11::bigint
            order by queue, rank, id limit ${READ_FOR_KEYLESS} * $3::int for update skip locked) b
          where b.fair_key is null limit $3::int))
returning ${CLAIMED_FAIR}`;

/**
 * Claims jobs of fair keys in one priority. $1 queue, $2 now, $3 how many jobs without a key, $4 salt, $5 lowest rank,
 * $6 worker, $7 lease, $8 shortest, $9 keys, $10 how many of each, $11 the rank at which the next priority begins.
 * Returns CLAIMED_FAIR of the rows, unordered.
 */
export const TAKE_FAIR: Statement = { name: "take_fair", text: `${taken(8)}${TAKEN_IDS}` };

/** TAKE_FAIR that marks jobs without a limit key. $12 the mark. Run it only under the advisory lock of the queue. */
export const TAKE_FAIR_MARKED: Statement = {
  name: "take_fair_marked",
  text: `${taken(8)}, limit_key = coalesce(j.limit_key, $12::text)${TAKEN_IDS}`,
};

/** The jobs of each key are numbered, because a key gives no more than its part. Those that are not taken are locked while the statement runs. */
const inOrder = (also: string) => `
with best as materialized (
  select ctid as place, coalesce(fair_key, '') as key, rank, id from curfew.jobs
   where queue = $1::text and state = ${AVAILABLE} and (rank, id) > ($5::bigint, $12::uuid) and rank < $11::bigint
     and not exists (select 1 from curfew.records where kind = 'pause' and key = $1::text)
     and not exists (
       select 1 from curfew.jobs where queue = $1::text and state = ${AVAILABLE} and rank < $13::bigint)
   order by queue, rank, id limit $14::int for update skip locked)
${taken(8)}${also}
 where j.ctid = any(array(
         select n.place
           from (select place, key, rank, id, row_number() over (partition by key order by rank, id) as nth from best) n
           join unnest($9::text[], $10::int[]) as k(key, count) on k.key = n.key and n.nth <= k.count
          order by n.rank, n.id limit $3::int))
returning ${CLAIMED_FAIR}, (select count(*)::int from best)`;

/**
 * Claims the best jobs of one priority after a position, of keys that may give some. $1 to $10 as TAKE_FAIR, but $3 how many in all, and $5 the rank
 * of the position; $11 the rank at which the next priority begins, $12 the id of the position, $13 the lowest rank, $14 how many to read. Returns
 * CLAIMED_FAIR of the rows, unordered, and how many were read. Jobs of a better priority, or a pause, leave no row.
 */
export const TAKE_IN_ORDER: Statement = { name: "take_in_order", text: inOrder("") };

/** TAKE_IN_ORDER that marks jobs without a limit key. $15 the mark. Run it only under the advisory lock of the queue. */
export const TAKE_IN_ORDER_MARKED: Statement = {
  name: "take_in_order_marked",
  text: inOrder(", limit_key = coalesce(j.limit_key, $15::text)"),
};

/** Counts active jobs of a queue that have a limit key. $1 queue. */
export const ACTIVE_IN: Statement = {
  name: "active_in",
  text: `
select count(*)::int from curfew.jobs where queue = $1::text and limit_key is not null and state = ${ACTIVE}`,
};

/**
 * Counts the available jobs of a fair key before a position, in its priority. $1 queue, $2 rank, $3 id, $4 the most to
 * count, $5 key.
 */
export const AHEAD_IN_KEY: Statement = {
  text: `
select count(*)::int from (
  select 1 from curfew.jobs
   where ${ofPriority("$2::bigint")} and ${ofKey("$5::text")} and (rank, id) < ($2::bigint, $3::uuid)
   order by queue, (rank >> 45), fair_key, rank, id limit $4::bigint) a`,
};

/**
 * What waits of each fair key. $1 queue, $2 the most keys, $3 the most jobs to count of each. Each step jumps to the next
 * key, or to the first key of the next priority. Returns key, best rank and count.
 */
export const SHARES: Statement = {
  text: `
with recursive keys as (
  (select (rank >> 45) as level, fair_key, 1 as n from curfew.jobs
    where queue = $1::text and state = ${AVAILABLE} and fair_key is not null
    order by queue, (rank >> 45), fair_key limit 1)
  union all
  select next.level, next.fair_key, keys.n + 1
    from keys, lateral (
         select (rank >> 45) as level, fair_key from curfew.jobs
          where queue = $1::text and state = ${AVAILABLE} and fair_key is not null
            and ((rank >> 45), fair_key) > (keys.level, keys.fair_key)
          order by queue, (rank >> 45), fair_key limit 1) next
   where keys.n < $2::bigint)
select k.fair_key, c.rank, c.waiting::int
  from keys k, lateral (
       select min(rank) as rank, count(*) as waiting from (
         select rank from curfew.jobs
          where queue = $1::text and state = ${AVAILABLE} and fair_key is not null
            and (rank >> 45) = k.level and ${ofKey("k.fair_key")}
          order by queue, (rank >> 45), fair_key, rank, id limit $3::bigint) j) c
 where c.waiting > 0
 order by k.level, k.fair_key`,
};
