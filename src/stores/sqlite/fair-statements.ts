import { STATE_CODES } from "../sql/row-codec.ts";
import { CLAIMED_FAIR } from "./statements.ts";

const AVAILABLE = STATE_CODES.available;
/** `rank >> 45` is the priority in a rank (`RANK_SPAN`). */
const OF_PRIORITY = `indexed by curfew_jobs_fair
 where queue = ? and rank >> 45 = ? >> 45 and state = ${AVAILABLE} and fair_key is not null`;

/** The best available job of a queue. Takes queue and lowest rank. Returns its rank, and whether it has no fair key. */
export const HEAD = `
select rank, fair_key is null from curfew_jobs indexed by curfew_jobs_ready
 where queue = ? and state = ${AVAILABLE} and rank >= ? order by rank, id limit 1`;

const keys = (first: ">" | ">=") => `
with recursive keys(key) as (
  select (select fair_key from curfew_jobs ${OF_PRIORITY} and fair_key ${first} ? order by fair_key limit 1)
  union all
  select (select fair_key from curfew_jobs ${OF_PRIORITY} and fair_key > k.key order by fair_key limit 1)
    from keys k where k.key is not null)
select key from keys where key is not null limit ?`;

/**
 * The fair keys with available jobs of a priority, in order. Takes queue, a rank of the priority, the key they come after,
 * queue and rank again, and limit.
 */
export const KEYS_AFTER = keys(">");
/** KEYS_AFTER that begin with the key itself. */
export const KEYS_FROM = keys(">=");

/** KEYS_FROM with the number of the row of each key's first job. */
export const KEYS_WITH_ROWS = `
with recursive keys(key, number) as (
  select j.fair_key, j.rowid from curfew_jobs j
   where j.rowid = (
         select rowid from curfew_jobs ${OF_PRIORITY} and fair_key >= ? order by fair_key, rank, id limit 1)
  union all
  select j.fair_key, j.rowid from keys k cross join curfew_jobs j
   where j.rowid = (
         select rowid from curfew_jobs ${OF_PRIORITY} and fair_key > k.key order by fair_key, rank, id limit 1))
select key, number from keys limit ?`;

/**
 * CLAIMABLE for fair keys of one priority, as many of each. Takes salt, a JSON array of keys, queue, a rank of the
 * priority, and how many of each.
 */
export const CLAIMABLE_OF_KEYS = `
select ${CLAIMED_FAIR}, j.rowid
  from (select value as wanted from json_each(?)) k cross join curfew_jobs j
    on j.rowid in (select rowid from curfew_jobs ${OF_PRIORITY} and fair_key = k.wanted order by rank, id limit ?)
 order by j.rank, j.id`;

/** CLAIMABLE after a position. Takes salt, queue, its rank and id, the rank at which the next priority begins, limit. */
export const CLAIMABLE_AFTER = `
select ${CLAIMED_FAIR}, rowid from curfew_jobs indexed by curfew_jobs_ready
 where queue = ? and state = ${AVAILABLE} and (rank, id) > (?, ?) and rank < ? order by rank, id limit ?`;

/**
 * CLAIMABLE among the best jobs of a queue, for those that have no fair key. Takes salt, queue, lowest rank, the rank at
 * which the next priority begins, how many jobs to read, limit.
 */
export const CLAIMABLE_KEYLESS = `
select ${CLAIMED_FAIR}, rowid from (
  select *, rowid from curfew_jobs indexed by curfew_jobs_ready
   where queue = ? and state = ${AVAILABLE} and rank >= ? and rank < ? order by rank, id limit ?)
 where fair_key is null limit ?`;

/**
 * Fair keys of a queue with available jobs, in all priorities. Takes queue, and the priority and key to continue after. Returns priority (as
 * 100 less it) and key.
 */
export const NEXT_SHARE = `
select rank >> 45, fair_key from curfew_jobs indexed by curfew_jobs_fair
 where queue = ? and state = ${AVAILABLE} and fair_key is not null and (rank >> 45, fair_key) > (?, ?)
 order by rank >> 45, fair_key limit 1`;

/** Counts the available jobs of a fair key in one priority. Takes queue, 100 less the priority, key and the most to count. Returns the count and the lowest rank. */
export const SHARE_USE = `
select count(*), min(rank) from (
  select rank from curfew_jobs indexed by curfew_jobs_fair
   where queue = ? and rank >> 45 = ? and state = ${AVAILABLE} and fair_key is not null and fair_key = ?
   order by rank, id limit ?)`;

/** Counts the available jobs of a fair key before a position, in its priority. Takes queue, rank, key, rank, id and the most to count. */
export const AHEAD_IN_KEY = `
select count(*) from (select 1 from curfew_jobs ${OF_PRIORITY} and fair_key = ? and (rank, id) < (?, ?) limit ?)`;
