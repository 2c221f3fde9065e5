// tidy: table
import type { Migration } from "../sql/migrator.ts";

/**
 * The schema as a list of migrations. All names begin with `curfew_`, because a program may keep its own tables in the
 * same file. Never edit a released migration, not even its comments: its checksum would no longer match in files that
 * ran it.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "jobs, finished jobs, records, events, logs and hints",
    sql: `
-- Live jobs. A table with rowids: writes find a row by its id once and by its number from then on, and large payloads
-- do not sit in the nodes of the tree. Strict, so that a value of the wrong kind fails here and not where it is read.
create table curfew_jobs (
  id text not null primary key,
  rank integer not null,
  fence integer not null default 0,
  created_at integer not null,
  wake_at integer,
  wait_at integer,
  total_at integer,
  claimed_at integer,
  started_at integer,
  soft_at integer,
  hard_at integer,
  stall_at integer,
  rev integer not null default 0,
  heartbeat integer,
  needs integer not null default 0,
  attempt integer not null default 0,
  returns integer not null default 0,
  strikes integer not null default 0,
  state integer not null,
  wake integer not null,
  priority integer not null,
  queue text not null,
  type text not null,
  worker text,
  gate text,
  workflow text,
  unique_key text,
  payload text not null,
  options text,
  policy text,
  errors text,
  progress text,
  checkpoint text,
  result text
) strict;
-- Only what can be claimed now: delayed and gated jobs, however many, are not in it. State 1 is available.
create index curfew_jobs_ready on curfew_jobs (queue, rank, id) where state = 1;
-- What the sweep walks, apart for what it promotes (wake 1) and what it hands to a judge (wake 0).
create index curfew_jobs_wake on curfew_jobs (wake, wake_at) where wake_at is not null;
-- State 0 is pending.
create index curfew_jobs_gate on curfew_jobs (gate, rank, id) where state = 0 and gate is not null;
create index curfew_jobs_workflow on curfew_jobs (workflow) where workflow is not null;
create unique index curfew_jobs_unique on curfew_jobs (unique_key) where unique_key is not null;

-- Finished jobs, moved here by their settle, so that claims and sweeps never walk over them.
create table curfew_done (
  id text not null primary key,
  rank integer not null,
  fence integer not null,
  created_at integer not null,
  finished_at integer,
  prune_at integer,
  wake_at integer,
  wait_at integer,
  total_at integer,
  claimed_at integer,
  started_at integer,
  soft_at integer,
  hard_at integer,
  stall_at integer,
  rev integer not null,
  heartbeat integer,
  needs integer not null,
  attempt integer not null,
  returns integer not null,
  strikes integer not null,
  state integer not null,
  wake integer not null,
  priority integer not null,
  dead_letter integer not null,
  queue text not null,
  type text not null,
  worker text,
  gate text,
  workflow text,
  unique_key text,
  payload text not null,
  options text,
  policy text,
  errors text,
  progress text,
  checkpoint text,
  result text
) strict;
create index curfew_done_prune on curfew_done (prune_at) where prune_at is not null;

-- Versioned documents with a time to look at them again.
create table curfew_records (
  kind text not null,
  key text not null,
  version integer not null,
  wake_at integer,
  body text not null,
  primary key (kind, key)
) strict, without rowid;
create index curfew_records_wake on curfew_records (wake_at) where wake_at is not null;

-- Numbers are never used twice, not even after the last event was pruned: readers hold them as cursors.
create table curfew_events (
  seq integer primary key autoincrement,
  at integer not null,
  body text not null
) strict;

create table curfew_logs (
  job text not null,
  seq integer not null,
  body text not null,
  primary key (job, seq)
) strict, without rowid;

-- What commits have to tell other processes, which see that the file changed but not what. Only the last ones are
-- kept; the newest is never deleted, so the numbers only grow.
create table curfew_hints (
  seq integer primary key,
  origin integer not null,
  body text not null
) strict;
`,
  },
  {
    version: 2,
    name: "a clock that nobody can set, and versions that never come back",
    sql: `
-- At most one row: a moment as the clocks of the machine showed it, and the time of the file at that moment.
create table curfew_clock (
  id integer primary key check (id = 1),
  boot text not null,
  monotonic real not null,
  slept real not null,
  wall real not null,
  time real not null
) strict;

-- One row: no deleted record had a higher version than this.
create table curfew_record_floor (id integer primary key check (id = 1), version integer not null) strict;
insert into curfew_record_floor select 1, coalesce(max(version), 0) from curfew_records;
`,
  },
  {
    version: 3,
    name: "timeouts",
    sql: `
-- Timeouts that nobody has handled yet. A key is unique within its scope, which is written only beside a key.
create table curfew_timeouts (
  id text not null primary key,
  destination text not null,
  due_at integer not null,
  payload text,
  headers text,
  key text,
  scope text,
  saga text,
  generation integer,
  wall_clock text,
  owner text,
  lease_until integer,
  tries integer not null default 0,
  dead_at integer,
  error text
) strict;
-- Only what can be claimed: leased and dead rows, however many, are not in it.
create index curfew_timeouts_due on curfew_timeouts (due_at, id) where owner is null and dead_at is null;
create index curfew_timeouts_destination on curfew_timeouts (destination, due_at, id)
 where owner is null and dead_at is null;
create index curfew_timeouts_lease on curfew_timeouts (lease_until) where owner is not null;
create unique index curfew_timeouts_key on curfew_timeouts (scope, key) where key is not null;
create index curfew_timeouts_saga on curfew_timeouts (saga, id) where saga is not null;
create index curfew_timeouts_dead on curfew_timeouts (id) where dead_at is not null;
create index curfew_timeouts_wall_clock on curfew_timeouts (id) where wall_clock is not null;
`,
  },
  {
    version: 4,
    name: "dead letters in the order in which they ended",
    sql: `
-- Only dead letters are in it, so it costs no other job anything.
create index curfew_done_dead on curfew_done (finished_at, id) where dead_letter = 1;
`,
  },
  {
    version: 5,
    name: "limits",
    sql: `
-- What is in use of a gate, of a queue with a limit of its own, and what waits in a bounded queue. A job without a gate
-- that is claimed from an unbounded queue is in none of them.
create index curfew_jobs_gated on curfew_jobs (gate, state) where gate is not null and state > 0;
create index curfew_jobs_gated_active on curfew_jobs (queue) where gate is not null and state = 2;
create index curfew_jobs_pending on curfew_jobs (queue) where state = 0;
`,
  },
  {
    version: 6,
    name: "delayed and retried jobs of a bounded queue",
    sql: `
-- Only scheduled and retryable jobs are in it: one that runs at once and succeeds never is.
create index curfew_jobs_later on curfew_jobs (queue) where state >= 3;
`,
  },
  {
    version: 7,
    name: "names of the glossary",
    sql: `
alter table curfew_jobs rename column gate to limit_key;
alter table curfew_jobs rename column strikes to expired_claims;
alter table curfew_done rename column gate to limit_key;
alter table curfew_done rename column strikes to expired_claims;
drop index curfew_jobs_gate;
create index curfew_jobs_limit on curfew_jobs (limit_key, rank, id) where state = 0 and limit_key is not null;
drop index curfew_jobs_gated;
create index curfew_jobs_limited on curfew_jobs (limit_key, state) where limit_key is not null and state > 0;
drop index curfew_jobs_gated_active;
create index curfew_jobs_limited_active on curfew_jobs (queue) where limit_key is not null and state = 2;
-- Jobs keep what their enqueue said, and what their workflow needs of them, under the new names. As text: a document may
-- hold what no JSON type of a database takes, and keeps the order of its keys.
update curfew_jobs set options = '{"settings":' || substr(options, 9) where options like '{"rung":%';
update curfew_done set options = '{"settings":' || substr(options, 9) where options like '{"rung":%';
update curfew_jobs set options = replace(options, ',"turn":{"role":', ',"waitsFor":{"role":') where workflow is not null;
update curfew_records set body = replace(body, '"gate":', '"limitKey":') where kind = 'start';
update curfew_records set kind = 'maintenance' where kind = 'recess';
`,
  },
  {
    version: 8,
    name: "barrier jobs and holders of unique keys",
    sql: `
update curfew_jobs set options = replace(options, '"role":"turnstile"', '"role":"barrier"')
 where queue = 'curfew.workflows' and options like '%turnstile%';
update curfew_records set body = replace(body, '"keepers":', '"holders":') where kind = 'unique';
-- Nothing reads it: a completed saga takes its timeouts with it.
alter table curfew_timeouts drop column generation;
`,
  },
  {
    version: 9,
    name: "tenants",
    sql: `
-- Names of tenants begin with U+0001, the tenant and U+0001 again. Only their rows are in these indexes.
create index curfew_jobs_tenant on curfew_jobs (substr(queue, 1, instr(substr(queue, 2), char(1)) + 1), id)
  where queue < char(2);
create index curfew_jobs_tenant_active on curfew_jobs (substr(queue, 1, instr(substr(queue, 2), char(1)) + 1))
  where state = 2 and queue < char(2);
create index curfew_done_tenant on curfew_done (substr(queue, 1, instr(substr(queue, 2), char(1)) + 1), id)
  where queue < char(2);
create index curfew_done_tenant_dead
  on curfew_done (substr(queue, 1, instr(substr(queue, 2), char(1)) + 1), finished_at, id)
  where dead_letter = 1 and queue < char(2);
create index curfew_timeouts_tenant
  on curfew_timeouts (substr(id, 1, instr(substr(id, 2), char(1)) + 1), due_at, id)
  where owner is null and dead_at is null and id < char(2);
`,
  },
  {
    version: 10,
    name: "fair keys",
    sql: `
alter table curfew_jobs add column fair_key text;
alter table curfew_done add column fair_key text;
-- Only jobs with a fair key are in it. A claim finds the next key of the best priority, and the best jobs of a key,
-- whatever the number of jobs.
create index curfew_jobs_fair on curfew_jobs (queue, rank >> 45, fair_key, rank, id)
 where state = 1 and fair_key is not null;
`,
  },
];
