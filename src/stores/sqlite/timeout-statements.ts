import { NEW_TIMEOUT_COLUMNS, TIMEOUT_COLUMNS } from "../sql/timeout-codec.ts";

/* The statements of the timeout store, by the rules of `statements.ts`. */

const ROW = TIMEOUT_COLUMNS.join(", ");

/** Adds a timeout. Takes NEW_TIMEOUT_COLUMNS. Inserts nothing if its id is known. */
export const INSERT_TIMEOUT = `
insert into curfew_timeouts (${NEW_TIMEOUT_COLUMNS.join(", ")})
values (${NEW_TIMEOUT_COLUMNS.map(() => "?").join(", ")})
on conflict (id) do nothing`;

/** Deletes the timeout that has a key, unless the new id is known. Takes scope, key, id. */
export const REPLACE_KEY = `
delete from curfew_timeouts
 where scope = ? and key = ? and not exists (select 1 from curfew_timeouts where id = ?)`;

/** When a claim will next find something: the first due time or end of a lease; null for never. */
export const NEXT_DUE = `
select min(next_at) from (
  select min(due_at) as next_at from curfew_timeouts indexed by curfew_timeouts_due
   where owner is null and dead_at is null
  union all
  select min(lease_until) from curfew_timeouts indexed by curfew_timeouts_lease where owner is not null)`;

/** NEXT_DUE for one destination. Takes it twice. */
export const NEXT_DUE_OF = `
select min(next_at) from (
  select min(due_at) as next_at from curfew_timeouts indexed by curfew_timeouts_destination
   where destination = ? and owner is null and dead_at is null
  union all
  select min(lease_until) from curfew_timeouts indexed by curfew_timeouts_lease
   where owner is not null and destination = ?)`;

/**
 * What is due and free, in the order of claims. Takes now, limit, now, now, limit. Returns rowid, due_at, id. Expired
 * leases are few, so they are sorted among the free rows.
 */
export const DUE = `
select * from (
  select * from (
    select rowid, due_at, id from curfew_timeouts indexed by curfew_timeouts_due
     where owner is null and dead_at is null and due_at <= ? order by due_at, id limit ?)
  union all
  select rowid, due_at, id from curfew_timeouts indexed by curfew_timeouts_lease
   where owner is not null and lease_until <= ? and due_at <= ?)
 order by due_at, id limit ?`;

/** DUE for one destination. Takes destination, now, limit, destination, now, now, limit. */
export const DUE_OF = `
select * from (
  select * from (
    select rowid, due_at, id from curfew_timeouts indexed by curfew_timeouts_destination
     where destination = ? and owner is null and dead_at is null and due_at <= ? order by due_at, id limit ?)
  union all
  select rowid, due_at, id from curfew_timeouts indexed by curfew_timeouts_lease
   where destination = ? and owner is not null and lease_until <= ? and due_at <= ?)
 order by due_at, id limit ?`;

/** Leases rows that DUE returned in the same transaction. Takes owner, lease_until, rows. Returns them unordered. */
export const CLAIM_DUE = `
update curfew_timeouts set owner = ?, lease_until = ? where rowid in (select value from json_each(?)) returning ${ROW}`;

/** Takes id, owner or null (twice), now. With an owner, only what it holds matches. */
const IS_LEASED = "id = ? and (? is null or (owner = ? and lease_until > ?))";

/** Takes what IS_LEASED does. */
export const REMOVE_TIMEOUT = `delete from curfew_timeouts where ${IS_LEASED}`;

/** Frees a lease. Takes due_at or null, tries to add, error or null, dead_at or null, and what IS_LEASED does. */
export const RELEASE_TIMEOUT = `
update curfew_timeouts
   set owner = null, lease_until = null, due_at = coalesce(?, due_at), tries = tries + ?, error = coalesce(?, error),
       dead_at = coalesce(?, dead_at)
 where ${IS_LEASED}`;

/** Takes lease_until, id, owner, now. */
export const EXTEND_LEASE = `
update curfew_timeouts set lease_until = ? where id = ? and owner = ? and lease_until > ?`;

/** The lease of a timeout. Takes id. Returns owner and lease_until. */
export const LEASE_OF = "select owner, lease_until from curfew_timeouts where id = ?";

/** Takes id, due_at and whether it is dead (0, 1). Gives a row if such a timeout has no owner. */
export const IDLE = `
select 1 from curfew_timeouts where id = ? and due_at = ? and (dead_at is not null) = ? and owner is null`;

/** Takes a JSON list of ids. Gives rows in no order. */
export const LOAD_TIMEOUTS = `select ${ROW} from curfew_timeouts where id in (select value from json_each(?))`;

/** Takes due_at and id of the row before, the instant to end before, and a limit; the same again without the limit. */
export const CALENDAR = `
select * from (
  select * from (
    select ${ROW} from curfew_timeouts indexed by curfew_timeouts_due
     where owner is null and dead_at is null and (due_at, id) > (?, ?) and due_at < ? and id >= char(2)
     order by due_at, id limit ?)
  union all
  select ${ROW} from curfew_timeouts indexed by curfew_timeouts_lease
   where owner is not null and (due_at, id) > (?, ?) and due_at < ? and id >= char(2))
 order by due_at, id limit ?`;

const OF_TENANT = "substr(id, 1, instr(substr(id, 2), char(1)) + 1) = ? and id < char(2)";

/**
 * CALENDAR of a tenant, and of a destination or of all if it is null. Takes what the ids of the tenant begin with, what
 * CALENDAR takes, and the destination, in each of the two groups.
 */
export const TENANT_CALENDAR = `
select * from (
  select * from (
    select ${ROW} from curfew_timeouts indexed by curfew_timeouts_tenant
     where ${OF_TENANT} and owner is null and dead_at is null and (due_at, id) > (?, ?) and due_at < ?
       and destination = coalesce(?, destination) order by due_at, id limit ?)
  union all
  select ${ROW} from curfew_timeouts indexed by curfew_timeouts_lease
   where ${OF_TENANT} and owner is not null and (due_at, id) > (?, ?) and due_at < ?
     and destination = coalesce(?, destination))
 order by due_at, id limit ?`;

/** CALENDAR for one destination, which comes first in each of the two groups. */
export const CALENDAR_OF = `
select * from (
  select * from (
    select ${ROW} from curfew_timeouts indexed by curfew_timeouts_destination
     where destination = ? and owner is null and dead_at is null and (due_at, id) > (?, ?) and due_at < ?
       and id >= char(2) order by due_at, id limit ?)
  union all
  select ${ROW} from curfew_timeouts indexed by curfew_timeouts_lease
   where destination = ? and owner is not null and (due_at, id) > (?, ?) and due_at < ? and id >= char(2))
 order by due_at, id limit ?`;

/** Frees expired leases. Takes now and limit. */
export const REAP = `
update curfew_timeouts set owner = null, lease_until = null
 where rowid in (
         select rowid from curfew_timeouts indexed by curfew_timeouts_lease
          where owner is not null and lease_until <= ? order by lease_until limit ?)`;

const LEASED = "coalesce(lease_until > ?, 0)";

/** Takes id and now. Returns 1 if it is leased. */
export const CANCEL_ID = `delete from curfew_timeouts where id = ? returning ${LEASED}`;
/** Takes saga and now. */
export const CANCEL_SAGA = `
delete from curfew_timeouts indexed by curfew_timeouts_saga where saga = ? returning ${LEASED}`;
/** Takes scope, key and now. */
export const CANCEL_KEY = `delete from curfew_timeouts where scope = ? and key = ? returning ${LEASED}`;

/** Takes due_at and id. */
export const REQUEUE = `
update curfew_timeouts set dead_at = null, tries = 0, due_at = ? where id = ? and dead_at is not null`;

/** Takes the new due_at, id and the old due_at. */
export const RESCHEDULE = `
update curfew_timeouts set due_at = ? where id = ? and due_at = ? and owner is null and dead_at is null`;

/**
 * Filters that are null if left out: destination, saga, whether it is dead, whether it has a wall clock; then a
 * limit.
 */
const MATCHING = `
 destination = coalesce(?, destination) and coalesce(saga, '') = coalesce(?, saga, '')
 and (dead_at is not null) = coalesce(?, dead_at is not null)
 and (wall_clock is not null) = coalesce(?, wall_clock is not null) order by id limit ?`;

/** A range of all timeouts that match. Takes the id after which it starts, its last id, and what MATCHING does. */
export const LIST_TIMEOUTS = `select ${ROW} from curfew_timeouts where id > ? and id <= ? and ${MATCHING}`;
/** Timeouts of one saga. Takes the saga, the id they come after, and what MATCHING does. */
export const LIST_OF_SAGA = `
select ${ROW} from curfew_timeouts indexed by curfew_timeouts_saga where saga = ? and id > ? and ${MATCHING}`;
/** Dead timeouts. Takes the id they come after, and what MATCHING does. */
export const LIST_DEAD = `
select ${ROW} from curfew_timeouts indexed by curfew_timeouts_dead where dead_at is not null and id > ? and ${MATCHING}`;
/** Timeouts with a wall-clock time. Takes what LIST_DEAD does. */
export const LIST_WALL_CLOCK = `
select ${ROW} from curfew_timeouts indexed by curfew_timeouts_wall_clock
 where wall_clock is not null and id > ? and ${MATCHING}`;

/**
 * Takes the id after which a range starts, and its length less one. Returns the last id of the range, if it is that
 * long.
 */
export const TIMEOUT_RANGE_END = "select id from curfew_timeouts where id > ? order by id limit 1 offset ?";

/** Takes now, the id after which a range starts, and its last id. Counts pending, due, leased and dead timeouts. */
export const COUNT_TIMEOUTS = `
select count(*) filter (where dead_at is null and owner is null),
       count(*) filter (where dead_at is null and owner is null and due_at <= ?),
       count(*) filter (where dead_at is null and owner is not null), count(*) filter (where dead_at is not null)
  from curfew_timeouts where id > ? and id <= ?`;
