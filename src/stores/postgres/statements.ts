import { claimedValues, fairValues } from "../sql/claimed-row.ts";
import { END_COLUMNS, JOB_COLUMNS, STATE_CODES } from "../sql/row-codec.ts";

/**
 * All statements of the store. Texts name the schema `curfew`; the store replaces it.
 *
 * The forms are chosen so that a plan made on an empty table is still right when the table has millions of rows. `id
 * = any(array(select … limit n for update skip locked))` and the seemingly redundant `id = any($1)` next to a join
 * leave the planner only the primary key. Only CLOCK reads the server's clock. Elsewhere time is passed in.
 */
export interface Statement {
  /** The name under which a session prepares it once. A statement without one is planned each time. */
  readonly name?: string;
  readonly text: string;
}

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const SCHEDULED = STATE_CODES.scheduled;
const ACTIVE = STATE_CODES.active;

export const JOB = JOB_COLUMNS.join(", ");
export const DONE = [...JOB_COLUMNS, ...END_COLUMNS].join(", ");
/** A live job with the columns of a finished one. */
export const LIVE = `${JOB}, null::bigint, null::bigint, 0::smallint`;

const VALUES = { fence: "fence", rev: "rev", array: "json_build_array" };
export const CLAIMED = claimedValues(VALUES);
export const CLAIMED_FAIR = fairValues(VALUES);

/** A parameter made by `jsonTexts`, as an array. No JSON text is empty or contains one of the two characters. */
export function texts(parameter: number): string {
  return `string_to_array($${parameter}::text, chr(31), chr(30))`;
}

/**
 * Adds one row with the events of the jobs that `written` returns, and none if it returns none of them. The ids are
 * parameter `ids`. The four parameters from `parameter` on are: at, the JSON text of the shared objects, the items of
 * each id (null for none), and the position of each id in the call.
 */
export function recordEvents(parameter: number, ids = 1): string {
  const [at, shared, items, positions] = [parameter, parameter + 1, parameter + 2, parameter + 3];
  return `
insert into curfew.events (at, body)
select $${at}::bigint, '{"heads":' || $${shared}::text || ',"items":[' || string_agg(t.items, ',' order by t.nth) || ']}'
  from unnest($${ids}::uuid[], ${texts(items)}, $${positions}::int[]) as t(id, items, nth)
 where t.items is not null and t.id in (select id from written)
having count(*) > 0`;
}

/** `claimedRow`, core/job/decide/store-formulas.ts. $2 now, $4 salt, $6 worker, $7 lease; `shortest` is the last parameter. */
export function setClaimed(shortest: number): string {
  const endsAt = `$2::bigint + least(greatest(coalesce(j.heartbeat, $7::bigint), $${shortest}::bigint), $7::bigint)`;
  return `
       state = ${ACTIVE}, wake = 0, rev = j.rev + 1, fence = (((j.fence >> 21) + 1) << 21) | $4::bigint,
       claimed_at = $2::bigint, worker = $6::text,
       stall_at = ${endsAt}, wake_at = least(${endsAt}, j.wait_at, j.total_at)`;
}

/** `availableRow`, core/job/decide/store-formulas.ts. */
const SET_AVAILABLE = `state = ${AVAILABLE}, wake = 0, wake_at = least(wait_at, total_at), rev = rev + 1`;

/**
 * The rows that a claim takes, locked: the best of queue $1 with a rank from one of the starts $5 up to its end. They lie in an
 * index by rank, and are found by their place in the table. A row that moves in between is left for the next claim.
 */
export function claimable(ends: number, limit: string): string {
  return `array(
         select best.place from unnest($5::bigint[], $${ends}::bigint[]) as ranks(low, high), lateral (
           select ctid as place from curfew.jobs
            where queue = $1::text and state = ${AVAILABLE} and rank >= ranks.low and rank < ranks.high
              and not exists (select 1 from curfew.records where kind = 'pause' and key = $1::text)
            order by queue, rank, id limit $3::int for update skip locked) best
          limit ${limit})`;
}

/**
 * Claims the best available jobs of a queue. $1 queue, $2 now, $3 limit, $4 salt, $5 starts of ranks, $6 worker, $7
 * lease, $8 shortest, $9 ends of ranks. Returns CLAIMED of the rows, unordered. No two claims get the same job. A paused queue
 * gives none. The fence counter grows by one, and the salt becomes its low 21 bits.
 */
export const CLAIM: Statement = {
  name: "claim",
  text: `
update curfew.jobs j
   set ${setClaimed(8)}
 where j.ctid = any(${claimable(9, "$3::int")})
returning ${CLAIMED}`,
};

/**
 * The positions of jobs. $1 ids. Returns id, state, fence, rev, and 1 for a finished job; nothing for an unknown id.
 */
export const LOCATE: Statement = {
  name: "locate",
  text: `
select id, state, fence, rev, 0::smallint from curfew.jobs where id = any($1::uuid[])
union all
select id, state, fence, rev, 1::smallint from curfew.done where id = any($1::uuid[])`,
};

/** How often a countdown wakes a job: at zero, and at one if it has a limit key. */
const WAKES =
  "((j.needs <= s.by)::int + (j.limit_key is not null and j.needs > 1 and j.needs - s.by <= 1)::int)";

/**
 * Decrements `needs` of waiting jobs (`countedDownRow`, core/job/decide/store-formulas.ts). At zero, and with a limit key at one, a job is woken for a decision. $1 ids, $2
 * by how much, $3 now. Waking increases the revision. Otherwise a writer that read the row before would write an
 * older wake_at over it.
 */
export const COUNT_DOWN: Statement = {
  name: "count_down",
  text: `
update curfew.jobs j
   set needs = greatest(j.needs - s.by, 0),
       rev = j.rev + ${WAKES},
       wake = case when ${WAKES} > 0 then 0 else j.wake end,
       wake_at = case when ${WAKES} > 0 then $3::bigint else j.wake_at end
  from unnest($1::uuid[], $2::int[]) as s(id, by)
 where j.id = any($1::uuid[]) and j.id = s.id and j.state in (${PENDING}, ${SCHEDULED}) and j.needs > 0`,
};

/** Makes the best jobs that wait for a limit available. $1 limit key, $2 how many. Returns their queues and ranks. */
export const ADMIT: Statement = {
  name: "admit",
  text: `
update curfew.jobs set ${SET_AVAILABLE}
 where id = any(array(
         select id from curfew.jobs where limit_key = $1::text and state = ${PENDING} and needs = 0
          order by limit_key, rank, id limit $2::int for update skip locked))
returning queue, rank`,
};

/**
 * Adds jobs that differ only in id and payload, with generated ids. $1 ids, $2 payloads, then once for all: $3 rank,
 * $4 queue, $5 type, $6 state, $7 priority, $8 created_at, $9 wake, $10 wake_at, $11 wait_at, $12 total_at, $13
 * heartbeat, $14 options, $15 fair_key. It has no conflict clause, which would cost a fifth of the throughput.
 */
export const INSERT_ALIKE: Statement = {
  name: "insert_alike",
  text: `
insert into curfew.jobs (id, rank, queue, type, state, priority, created_at, wake, wake_at, wait_at, total_at, heartbeat,
                         payload, options, fair_key)
select s.id, $3::bigint, $4::text, $5::text, $6::smallint, $7::smallint, $8::bigint, $9::smallint, $10::bigint,
       $11::bigint, $12::bigint, $13::bigint, s.payload, $14::text, $15::text
  from unnest($1::uuid[], ${texts(2)}) as s(id, payload)`,
};

/** INSERT_ALIKE that also sends a hint with its commit: the same parameters, then $16 channel, $17 payload. */
export const INSERT_ALIKE_HINTED: Statement = {
  name: "insert_alike_hinted",
  text: `
with added as (${INSERT_ALIKE.text})
select pg_notify($16::text, $17::text)::text`,
};

/** INSERT_ALIKE that also records events: the same parameters, then $16 at, $17 events from `eventRow`. */
export const INSERT_ALIKE_RECORDED: Statement = {
  name: "insert_alike_recorded",
  text: `
with added as (${INSERT_ALIKE.text})
insert into curfew.events (at, body) values ($16::bigint, $17::text)`,
};

/**
 * Adds any jobs. $1 to $27 the columns; $28 the ids that may be known. Returns the ids that are new. A known id, live
 * or finished, and a unique key that a live job holds insert nothing.
 */
export const INSERT: Statement = {
  name: "insert",
  text: `
insert into curfew.jobs (id, queue, type, priority, created_at, needs, workflow, limit_key, unique_key, payload, options,
                         state, wake, wake_at, rank, attempt, returns, expired_claims, wait_at, total_at,
                         started_at, soft_at, hard_at, stall_at, heartbeat, fence, fair_key)
select s.*
  from unnest($1::uuid[], $2::text[], $3::text[], $4::smallint[], $5::bigint[], $6::int[], $7::text[], $8::text[],
              $9::text[], ${texts(10)}, ${texts(11)}, $12::smallint[], $13::smallint[], $14::bigint[], $15::bigint[],
              $16::int[], $17::int[], $18::int[], $19::bigint[], $20::bigint[],
              $21::bigint[], $22::bigint[], $23::bigint[], $24::bigint[], $25::bigint[], $26::bigint[],
              $27::text[]) as s(id)
 where not s.id = any(array(select d.id from curfew.done d where d.id = any($28::uuid[])))
on conflict do nothing
returning id`,
};

/** INSERT that also records the events of the new jobs: the same parameters, then those of `recordEvents`. */
export const INSERT_RECORDED: Statement = {
  name: "insert_recorded",
  text: `with written as (${INSERT.text}), recorded as (${recordEvents(29)}) select id from written`,
};

/**
 * Deletes new jobs whose ids belong to finished jobs. An insert that waited for the settle of the same id sees the
 * finished job only in the next statement. $1 ids that were just inserted. Returns the deleted ids.
 */
export const TAKE_BACK: Statement = {
  name: "take_back",
  text: `
delete from curfew.jobs j
 where j.id = any(array(select d.id from curfew.done d where d.id = any($1::uuid[]))) returning j.id`,
};

/** The live jobs that hold unique keys. $1 keys. Returns key and id. */
export const HOLDERS: Statement = {
  name: "holders",
  text: "select unique_key, id from curfew.jobs where unique_key = any($1::text[])",
};

/**
 * A worker's beat and what became of its jobs, in one round trip. $1 worker, $2 body, $3 wake_at, $4 ids, $5 fences,
 * $6 new stall_at or null. Returns what LOCATE does. It moves only `stall_at` of jobs whose fence holds, so it
 * touches no index.
 */
export const BEAT: Statement = { name: "beat", text: beatText("") };

/** BEAT that also records the events of the moved jobs: the same parameters, then those of `recordEvents`. */
export const BEAT_RECORDED: Statement = {
  name: "beat_recorded",
  text: beatText(` returning j.id), recorded as (${recordEvents(7, 4)}`),
};

function beatText(recorded: string): string {
  return `
with seen as (
  insert into curfew.records (kind, key, wake_at, body) values ('worker', $1::text, $3::bigint, $2::text)
  on conflict (kind, key) do update set version = default, wake_at = excluded.wake_at, body = excluded.body),
written as (
  update curfew.jobs j set stall_at = s.stall_at
    from unnest($4::uuid[], $5::bigint[], $6::bigint[]) as s(id, fence, stall_at)
   where j.id = any($4::uuid[]) and j.id = s.id and j.fence = s.fence and j.state = ${ACTIVE} and s.stall_at is not null${recorded})
select id, state, fence, rev, 0::smallint from curfew.jobs where id = any($4::uuid[])
union all
select id, state, fence, rev, 1::smallint from curfew.done where id = any($4::uuid[])`;
}

/**
 * The next instants at which a job needs a decision, a job becomes available, and a record is due; null if there is
 * none. $1 from when on jobs may be due. Ordered and limited instead of min(): on an empty table, PostgreSQL 15 plans a min() as a scan of all rows
 * and keeps that plan.
 */
export const NEXT_WAKE: Statement = { name: "next_wake", text: nextWake(1) };

/** `from` is the parameter with the instant from which on jobs may be due. */
export function nextWake(from: number): string {
  const first = (wake: number) => `
  select wake_at from curfew.jobs where wake = ${wake} and wake_at >= $${from}::bigint order by wake, wake_at limit 1`;
  return `
select (${first(0)}), (${first(1)}),
       (select wake_at from curfew.records where wake_at is not null order by wake_at limit 1)`;
}

/**
 * Makes due jobs available. $1 now, $2 limit, $3 from when on jobs may be due. For each queue and priority returns queue, count,
 * when the first of them needs a decision, and the lowest rank.
 */
export const PROMOTE: Statement = {
  name: "promote",
  text: `
with promoted as (
  update curfew.jobs set ${SET_AVAILABLE}
   where id = any(array(
           select id from curfew.jobs where wake = 1 and wake_at <= $1::bigint and wake_at >= $3::bigint
            order by wake, wake_at limit $2::int for update skip locked))
  returning queue, wake_at, rank)
select queue, count(*), min(wake_at), min(rank) from promoted group by queue, rank >> 45`,
};

/**
 * Returns jobs that need a decision and holds them until $3. $1 now, $2 limit, $3 end of the hold, $4 from when on jobs may
 * be due. Returns whole rows.
 */
export const HOLD_DUE_JOBS: Statement = {
  name: "hold_due_jobs",
  text: `
update curfew.jobs set wake_at = $3::bigint
 where id = any(array(
         select id from curfew.jobs where wake = 0 and wake_at <= $1::bigint and wake_at >= $4::bigint
          order by wake, wake_at limit $2::int for update skip locked))
returning ${LIVE}`,
};

const RECORD = "kind, key, version, wake_at, body";

/**
 * HOLD_DUE_JOBS for records. Found by ctid, because comparing a two-column key with a list would not use its index. A
 * row that moves in between is left for the next sweep.
 */
export const HOLD_DUE_RECORDS: Statement = {
  name: "hold_due_records",
  text: `
update curfew.records set wake_at = $3::bigint
 where ctid = any(array(
         select ctid from curfew.records where wake_at <= $1::bigint
          order by wake_at limit $2::int for update skip locked))
returning ${RECORD}`,
};

/** Records of one kind. $1 kind, $2 keys. */
export const LOAD_RECORDS: Statement = {
  name: "load_records",
  text: `select ${RECORD} from curfew.records where kind = $1::text and key = any($2::text[])`,
};

/** A page of records of one kind. $1 kind, $2 after this key or null, $3 limit. */
export const LIST_RECORDS: Statement = {
  name: "list_records",
  text: `
select ${RECORD} from curfew.records where kind = $1::text and key >= coalesce($2::text, '') and key is distinct from $2::text
 order by kind, key limit $3::bigint`,
};

/** $1 kind, $2 the key to begin before, $3 the key to end after, $4 limit. */
export const LIST_RECORDS_BACK: Statement = {
  name: "list_records_back",
  text: `
select ${RECORD} from curfew.records where kind = $1::text and key < $2::text and key > $3::text
 order by kind desc, key desc limit $4::bigint`,
};

/** The version of a record, which is locked until the transaction ends. $1 kind, $2 key. */
export const HOLD_RECORD: Statement = {
  name: "hold_record",
  text: "select version from curfew.records where kind = $1::text and key = $2::text for update",
};

/**
 * Writes a record, new or existing. $1 kind, $2 key, $3 wake_at, $4 body. Its version is the next of a sequence,
 * drawn while the row is locked, so it only grows and is never reused.
 */
export const PUT_RECORD: Statement = {
  name: "put_record",
  text: `
insert into curfew.records (kind, key, wake_at, body) values ($1::text, $2::text, $3::bigint, $4::text)
on conflict (kind, key) do update set version = default, wake_at = excluded.wake_at, body = excluded.body`,
};

/** Writes a record that must not exist. Takes what PUT_RECORD does. Returns one row, or none if the record exists. */
export const CREATE_RECORD: Statement = {
  name: "create_record",
  text: `
insert into curfew.records (kind, key, wake_at, body) values ($1::text, $2::text, $3::bigint, $4::text)
on conflict do nothing returning version`,
};

/** $1 kind, $2 key. */
export const DELETE_RECORD: Statement = {
  name: "delete_record",
  text: "delete from curfew.records where kind = $1::text and key = $2::text",
};

/** $1 at, $2 events from `eventRow`. */
export const ADD_EVENTS: Statement = {
  name: "add_events",
  text: "insert into curfew.events (at, body) values ($1::bigint, $2::text)",
};

/**
 * Adds lines to the logs of jobs, in order. Lines of unknown jobs are dropped. $1 jobs, $2 lines, $3 how many are
 * kept. Older lines are deleted when new ones come, so a handler that logs in a loop does not fill the disk. The
 * lines of this statement do not count yet.
 */
export const ADD_LOGS: Statement = {
  name: "add_logs",
  text: `
with added as (
  insert into curfew.logs (job, body)
  select s.job, s.body from unnest($1::uuid[], ${texts(2)}) as s(job, body)
   where s.job = any(array(select id from curfew.jobs where id = any($1::uuid[])
                           union all select id from curfew.done where id = any($1::uuid[])))),
old as materialized (
  select j.job, (select o.seq from curfew.logs o where o.job = j.job
                  order by o.seq desc offset $3::bigint limit 1) as seq
    from (select distinct job from unnest($1::uuid[]) as u(job)) j)
delete from curfew.logs l using old
 where l.job = old.job and l.seq <= old.seq`,
};

/** Deletes finished jobs whose retention is over. $1 now, $2 limit. Returns their ids. */
export const PRUNE: Statement = {
  name: "prune",
  text: `
delete from curfew.done
 where id = any(array(
         select id from curfew.done where prune_at <= $1::bigint
          order by prune_at limit $2::bigint for update skip locked))
returning id`,
};

/** Deletes the logs of deleted jobs. $1 ids. */
export const FORGET_LOGS: Statement = {
  name: "forget_logs",
  text: "delete from curfew.logs where job = any($1::uuid[])",
};

/**
 * Deletes events older than an instant. $1 instant, $2 limit. Returns one row each. It reads only the oldest rows:
 * they are nearly in the order of time, so `at` needs no index. Events never change, so their ctid is stable.
 */
export const PRUNE_EVENTS: Statement = {
  name: "prune_events",
  text: `
delete from curfew.events
 where ctid = any(array(
         select o.ctid from (select ctid, at from curfew.events order by epoch, xid, seq limit $2::bigint) o
          where o.at < $1::bigint))
returning seq`,
};

/** The server's clock in whole milliseconds, rounded down. */
export const CLOCK: Statement = {
  name: "clock",
  text: "select floor(extract(epoch from clock_timestamp()) * 1000)::bigint",
};

/** The server's process of a session, when it started, and whether the session takes no writes: "on" or "off". */
export const IDENTIFY: Statement = {
  text: `
select pg_backend_pid(), (select backend_start::text from pg_stat_get_activity(pg_backend_pid())),
       current_setting('transaction_read_only')`,
};

/** Begins a new epoch if the tables are in another cluster, or on another timeline, than before. */
export const ENTER_CLUSTER: Statement = { text: "select curfew.enter_cluster()" };

/** Ends a process of the server. $1 pid, $2 when it started, so that no other process is ended in its place. */
export const END_BACKEND: Statement = {
  text: `
select pg_terminate_backend(pid) from pg_stat_activity
 where pid = $1::int and backend_start = $2::text::timestamptz`,
};

/** Sends payloads to all listeners. $1 channel, $2 payloads. */
export const NOTIFY: Statement = {
  name: "notify",
  text: "select pg_notify($1::text, payload)::text from unnest($2::text[]) as s(payload)",
};

/**
 * Does nothing in a transaction, and fails outside of one. It takes the lock that writes of jobs take anyway. The server
 * has no function that tells: the instants of a statement and of its transaction differ also outside of one.
 */
export const PROVE_TRANSACTION: Statement = { text: "lock table curfew.jobs in row exclusive mode" };

/** $1 version, $2 name, $3 checksum, $4 when. */
export const ADD_MIGRATION: Statement = {
  text: `
insert into curfew.migrations (version, name, checksum, applied_at)
values ($1::int, $2::text, $3::text, to_timestamp($4::bigint / 1000.0))`,
};

/** Settings that decide whether an acknowledged write can be lost. Returns name and value. */
export const DURABILITY: Statement = {
  text: "select name, setting from pg_settings where name in ('fsync', 'synchronous_commit')",
};

/** Settings, connections and size, for people who look for a problem. */
export const SERVER_FACTS: Statement = {
  text: `
    select current_setting('server_version'), current_setting('fsync'), current_setting('full_page_writes'),
      current_setting('synchronous_commit'), current_setting('autovacuum'), current_setting('max_connections'),
      (select count(*) from pg_stat_activity where backend_type = 'client backend'), pg_database_size(current_database())`,
};

/** Takes the schema. Gives the tables with their live and dead rows, as the server estimates them. */
export const TABLE_FACTS: Statement = {
  text: "select relname, n_live_tup, n_dead_tup from pg_stat_user_tables where schemaname = $1 order by relname",
};

/** Takes the schema. Gives what may keep this role from writing, and a table that it may not write. */
export const WRITE_FACTS: Statement = {
  text: `
    select pg_is_in_recovery()::text, current_setting('transaction_read_only'), current_user,
      (select min(tablename) from pg_tables where schemaname = $1 and tablename <> 'migrations' and not (
        has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'insert')
        and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'update')
        and has_table_privilege(quote_ident(schemaname) || '.' || quote_ident(tablename), 'delete')))`,
};
