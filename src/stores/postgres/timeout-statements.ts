import { NEW_TIMEOUT_COLUMNS, TIMEOUT_COLUMNS } from "../sql/timeout-codec.ts";
import type { Statement } from "./statements.ts";

/* The statements of the timeout store, by the rules of `statements.ts`. */

const ROW = TIMEOUT_COLUMNS.map((name) => `t.${name}`).join(", ");
const NEW = NEW_TIMEOUT_COLUMNS.join(", ");

/** The values of a set of inserts, one array for each of NEW_TIMEOUT_COLUMNS. */
const NEW_ROWS = `unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[],
  $8::text[], $9::text[]) as s(${NEW})`;

/** Adds timeouts without keys. Takes NEW_ROWS. Returns the ids that are new. */
export const INSERT_TIMEOUTS: Statement = {
  name: "insert_timeouts",
  text: `
insert into curfew.timeouts (${NEW}) select s.* from ${NEW_ROWS}
on conflict (id) do nothing returning id`,
};

/**
 * Adds timeouts with keys. Takes NEW_ROWS, with distinct keys. Returns the ids that are new. It overwrites the row
 * that has the key, so that concurrent inserts of one key need no repeat: the later one stays.
 */
export const REPLACE_TIMEOUTS: Statement = {
  name: "replace_timeouts",
  text: `
insert into curfew.timeouts (${NEW})
select s.* from ${NEW_ROWS}
 where not s.id = any(array(select o.id from curfew.timeouts o where o.id = any($1::text[])))
on conflict (scope, key) where key is not null do update
   set ${NEW_TIMEOUT_COLUMNS.map((name) => `${name} = excluded.${name}`).join(", ")},
       owner = null, lease_until = null, tries = 0, dead_at = null, error = null
returning id`,
};

/**
 * Leases what is due and free. $1 now, $2 lease_until, $3 owner, $4 limit. Returns the rows, unordered. It takes free
 * rows without waiting. It also finds the first 1000 expired leases, by when they expired. They are checked again
 * when they are written, so two concurrent claims do not get the same one.
 */
export const CLAIM_DUE: Statement = {
  name: "claim_due",
  text: `
update curfew.timeouts t set owner = $3::text, lease_until = $2::bigint
 where t.id = any(array(
         select c.id from (
           select f.id, f.due_at from (
             select id, due_at from curfew.timeouts where owner is null and dead_at is null and due_at <= $1::bigint
              order by due_at, id limit $4::int for update skip locked) f
           union all
           select e.id, e.due_at from (
             select id, due_at from curfew.timeouts where owner is not null and lease_until <= $1::bigint
              order by lease_until limit 1000) e
            where e.due_at <= $1::bigint) c
          order by c.due_at, c.id limit $4::int))
   and (t.owner is null or t.lease_until <= $1::bigint)
returning ${ROW}`,
};

/**
 * CLAIM_DUE for some destinations, up to a limit for each. $1 now, $2 lease_until, $3 owner, $4 limit, $5
 * destinations, $6 limits for each.
 */
export const CLAIM_DUE_OF: Statement = {
  name: "claim_due_of",
  text: `
update curfew.timeouts t set owner = $3::text, lease_until = $2::bigint
 where t.id = any(array(
         select c.id from unnest($5::text[], $6::int[]) as d(name, most) cross join lateral (
           select u.id, u.due_at from (
             select f.id, f.due_at from (
               select id, due_at from curfew.timeouts
                where destination = d.name and owner is null and dead_at is null and due_at <= $1::bigint
                order by destination, due_at, id limit d.most for update skip locked) f
             union all
             select e.id, e.due_at from (
               select id, due_at, destination from curfew.timeouts
                where owner is not null and lease_until <= $1::bigint order by lease_until limit 1000) e
              where e.due_at <= $1::bigint and e.destination = d.name) u
            order by u.due_at, u.id limit d.most) c
          order by c.due_at, c.id limit $4::int))
   and (t.owner is null or t.lease_until <= $1::bigint)
returning ${ROW}`,
};

/** The condition of writes by owners. With an owner, only what it holds matches. */
const IS_LEASED = `t.id = any($1::text[]) and t.id = s.id
   and (s.owner is null or (t.owner = s.owner and t.lease_until > $3::bigint))`;

/** $1 ids, $2 owners or null, $3 now. Returns the ids that were removed. */
export const REMOVE_TIMEOUTS: Statement = {
  name: "remove_timeouts",
  text: `
delete from curfew.timeouts t using unnest($1::text[], $2::text[]) as s(id, owner) where ${IS_LEASED} returning t.id`,
};

/**
 * Frees leases. $1 ids, $2 owners or null, $3 now, $4 due_at or null, $5 tries to add, $6 error or null, $7 dead_at
 * or null. Returns the ids that were freed.
 */
export const RELEASE_TIMEOUTS: Statement = {
  name: "release_timeouts",
  text: `
update curfew.timeouts t
   set owner = null, lease_until = null, due_at = coalesce(s.due_at, t.due_at), tries = t.tries + s.tries,
       error = coalesce(s.error, t.error), dead_at = coalesce(s.dead_at, t.dead_at)
  from unnest($1::text[], $2::text[], $4::bigint[], $5::int[], $6::text[], $7::bigint[])
       as s(id, owner, due_at, tries, error, dead_at)
 where ${IS_LEASED} returning t.id`,
};

/** $1 ids, $2 owners, $3 now, $4 lease_until. Returns the ids that were extended. */
export const EXTEND_LEASES: Statement = {
  name: "extend_leases",
  text: `
update curfew.timeouts t set lease_until = s.lease_until
  from unnest($1::text[], $2::text[], $4::bigint[]) as s(id, owner, lease_until) where ${IS_LEASED} returning t.id`,
};

/** The leases of timeouts. $1 ids. Returns id, owner, lease_until. */
export const LEASES_OF: Statement = {
  name: "leases_of",
  text: "select id, owner, lease_until from curfew.timeouts where id = any($1::text[])",
};

/** The lease of a timeout, which is locked until the transaction ends. $1 id. */
export const HOLD_TIMEOUT: Statement = {
  name: "hold_timeout",
  text: "select owner, lease_until from curfew.timeouts where id = $1::text for update",
};

/** The leases of timeouts, which are locked in the order of ids until the transaction ends. $1 ids. */
export const HOLD_TIMEOUTS: Statement = {
  name: "hold_timeouts",
  text: `
select id, owner, lease_until from curfew.timeouts where id = any($1::text[]) order by id for update`,
};

/** An idle timeout, which is held until the transaction ends. $1 id, $2 due_at, $3 whether it is dead (0, 1). */
export const HOLD_IDLE: Statement = {
  name: "hold_idle",
  text: `
select 1::int from curfew.timeouts
 where id = $1::text and due_at = $2::bigint and (dead_at is not null)::int = $3::int and owner is null for update`,
};

/** $1 ids. Gives rows in no order. */
export const LOAD_TIMEOUTS: Statement = {
  name: "load_timeouts",
  text: `select ${ROW} from curfew.timeouts t where t.id = any($1::text[])`,
};

const IN_RANGE = "(t.due_at, t.id) > ($1::bigint, $2::text) and t.due_at < $3::bigint";
const NO_TENANT = "t.id >= E'\\x02'";
const OF_TENANT = "split_part(t.id, E'\\x01', 2) = $5::text and t.id < E'\\x02'";

/** $1 due_at and $2 id of the row before, $3 the instant to end before, $4 limit. Gives rows by due_at and id. */
export const CALENDAR: Statement = {
  text: `
select ${ROW} from (
  (select ${ROW} from curfew.timeouts t where t.owner is null and t.dead_at is null and ${IN_RANGE} and ${NO_TENANT}
    order by t.due_at, t.id limit $4::int)
  union all
  (select ${ROW} from curfew.timeouts t where t.owner is not null and ${IN_RANGE} and ${NO_TENANT})) t
 order by t.due_at, t.id limit $4::int`,
};

/** CALENDAR of a tenant, $5, and of a destination, $6, or of all if it is null. */
export const TENANT_CALENDAR: Statement = {
  text: `
select ${ROW} from (
  (select ${ROW} from curfew.timeouts t
    where ${OF_TENANT} and t.owner is null and t.dead_at is null and ${IN_RANGE}
      and ($6::text is null or t.destination = $6::text)
    order by t.due_at, t.id limit $4::int)
  union all
  (select ${ROW} from curfew.timeouts t
    where ${OF_TENANT} and t.owner is not null and ${IN_RANGE} and ($6::text is null or t.destination = $6::text))) t
 order by t.due_at, t.id limit $4::int`,
};

/** CALENDAR for one destination, $5. */
export const CALENDAR_OF: Statement = {
  text: `
select ${ROW} from (
  (select ${ROW} from curfew.timeouts t
    where t.destination = $5::text and t.owner is null and t.dead_at is null and ${IN_RANGE} and ${NO_TENANT}
    order by t.destination, t.due_at, t.id limit $4::int)
  union all
  (select ${ROW} from curfew.timeouts t where t.destination = $5::text and t.owner is not null and ${IN_RANGE}
      and ${NO_TENANT})) t
 order by t.due_at, t.id limit $4::int`,
};

/** Frees expired leases. $1 now, $2 limit. Returns one row each. */
export const REAP: Statement = {
  name: "reap",
  text: `
update curfew.timeouts set owner = null, lease_until = null
 where id = any(array(
         select id from curfew.timeouts where owner is not null and lease_until <= $1::bigint
          order by lease_until limit $2::int for update skip locked))
returning 1::int`,
};

const LEASED = "coalesce(lease_until > $1::bigint, false)::int";

/** $1 now, $2 id. Returns 1 if it is leased. */
export const CANCEL_ID: Statement = {
  name: "cancel_id",
  text: `delete from curfew.timeouts where id = $2::text returning ${LEASED}`,
};

/** $1 now, $2 ids. Returns id, and 1 if it is leased. */
export const CANCEL_IDS: Statement = {
  name: "cancel_ids",
  text: `delete from curfew.timeouts where id = any($2::text[]) returning id, ${LEASED}`,
};

/** $1 now, $2 saga. */
export const CANCEL_SAGA: Statement = {
  name: "cancel_saga",
  text: `delete from curfew.timeouts where saga = $2::text returning ${LEASED}`,
};

/** $1 now, $2 scope, $3 key. */
export const CANCEL_KEY: Statement = {
  name: "cancel_key",
  text: `delete from curfew.timeouts where scope = $2::text and key = $3::text returning ${LEASED}`,
};

/** $1 ids, $2 due_at. Returns one row for each that was dead. */
export const REQUEUE: Statement = {
  name: "requeue_timeouts",
  text: `
update curfew.timeouts set dead_at = null, tries = 0, due_at = $2::bigint
 where id = any($1::text[]) and dead_at is not null returning 1::int`,
};

/** $1 ids, $2 old due_at, $3 new due_at. Returns one row for each that moved. */
export const RESCHEDULE: Statement = {
  name: "reschedule_timeouts",
  text: `
update curfew.timeouts t set due_at = s.due_at
  from unnest($1::text[], $2::bigint[], $3::bigint[]) as s(id, was, due_at)
 where t.id = any($1::text[]) and t.id = s.id and t.due_at = s.was and t.owner is null and t.dead_at is null
returning 1::int`,
};

/** When a claim will next find something: the first due time or end of a lease; null for never. */
export const NEXT_DUE: Statement = {
  name: "next_due",
  text: `
select least((select due_at from curfew.timeouts where owner is null and dead_at is null order by due_at, id limit 1),
             (select lease_until from curfew.timeouts where owner is not null order by lease_until limit 1))`,
};

/** NEXT_DUE for some destinations. $1 destinations. */
export const NEXT_DUE_OF: Statement = {
  name: "next_due_of",
  text: `
select least((select min(f.due_at) from unnest($1::text[]) as d(name) cross join lateral (
                select due_at from curfew.timeouts where destination = d.name and owner is null and dead_at is null
                 order by destination, due_at, id limit 1) f),
             (select lease_until from curfew.timeouts where owner is not null and destination = any($1::text[])
               order by lease_until limit 1))`,
};

/**
 * A page of timeouts by id. $1 destination, $2 saga, $3 whether it is dead (0, 1), $4 whether it has a wall clock
 * (1), $5 after this id, $6 limit, $7 before this id (each may be null). Unnamed, so that each page is planned for its filter.
 */
export const LIST_TIMEOUTS: Statement = {
  text: `
select ${ROW} from curfew.timeouts t
 where ($1::text is null or t.destination = $1::text) and ($2::text is null or t.saga = $2::text)
   and ($3::int is null or (case $3::int when 1 then t.dead_at is not null else t.dead_at is null end))
   and ($4::int is null or t.wall_clock is not null) and ($5::text is null or t.id > $5::text)
   and ($7::text is null or t.id < $7::text)
 order by t.id limit $6::bigint`,
};

/** Counts pending, due, leased and dead timeouts. $1 now, $2 and $3 the range of their ids. */
export const COUNT_TIMEOUTS: Statement = {
  text: `
select count(*) filter (where dead_at is null and owner is null),
       count(*) filter (where dead_at is null and owner is null and due_at <= $1::bigint),
       count(*) filter (where dead_at is null and owner is not null), count(*) filter (where dead_at is not null)
  from curfew.timeouts where id >= $2::text and id < $3::text`,
};
