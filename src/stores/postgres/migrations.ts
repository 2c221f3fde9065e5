// tidy: table
import type { Migration } from "../sql/migrator.ts";

/**
 * The schema, step by step. Texts name the schema `curfew`; the store puts in the one it was opened with. A step
 * that was released is never edited: the checksums of databases that ran it would no longer match.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "jobs, finished jobs, records, events and logs",
    sql: `
-- Live jobs. Wide columns come first, so that no padding lies between them. Documents are text, because jsonb costs
-- more, refuses \\u0000 and gives keys back in another order than they came in. Autovacuum counts rows and not shares:
-- a table that is filled and emptied all day would otherwise be cleaned too rarely just when it is large.
create table curfew.jobs (
  id uuid primary key,
  rank bigint not null,
  fence bigint not null default 0,
  created_at bigint not null,
  wake_at bigint,
  wait_at bigint,
  total_at bigint,
  claimed_at bigint,
  started_at bigint,
  soft_at bigint,
  hard_at bigint,
  stall_at bigint,
  rev int not null default 0,
  heartbeat bigint,
  needs int not null default 0,
  attempt int not null default 0,
  returns int not null default 0,
  strikes int not null default 0,
  state smallint not null,
  wake smallint not null,
  priority smallint not null,
  queue text collate "C" not null,
  type text collate "C" not null,
  worker text collate "C",
  gate text collate "C",
  workflow text collate "C",
  unique_key text collate "C",
  payload text not null,
  options text,
  policy text,
  errors text,
  progress text,
  checkpoint text,
  result text
) with (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000
);
-- Only what can be claimed now: delayed and gated jobs, however many, are not in it. State 1 is available.
create index jobs_ready on curfew.jobs (queue, rank, id) where state = 1;
-- What the sweep walks, apart for what it promotes (wake 1) and what it hands to a judge (wake 0).
create index jobs_wake on curfew.jobs (wake, wake_at) where wake_at is not null;
-- State 0 is pending.
create index jobs_gate on curfew.jobs (gate, rank, id) where state = 0 and gate is not null;
create index jobs_workflow on curfew.jobs (workflow) where workflow is not null;
create unique index jobs_unique on curfew.jobs (unique_key) where unique_key is not null;

-- Finished jobs, moved here by their settle, so that the live table stays small for claims and for vacuum.
create table curfew.done (
  id uuid primary key,
  rank bigint not null,
  fence bigint not null,
  created_at bigint not null,
  finished_at bigint not null,
  prune_at bigint,
  wake_at bigint,
  wait_at bigint,
  total_at bigint,
  claimed_at bigint,
  started_at bigint,
  soft_at bigint,
  hard_at bigint,
  stall_at bigint,
  rev int not null,
  heartbeat bigint,
  needs int not null,
  attempt int not null,
  returns int not null,
  strikes int not null,
  state smallint not null,
  wake smallint not null,
  priority smallint not null,
  dead_letter smallint not null,
  queue text collate "C" not null,
  type text collate "C" not null,
  worker text collate "C",
  gate text collate "C",
  workflow text collate "C",
  unique_key text collate "C",
  payload text not null,
  options text,
  policy text,
  errors text,
  progress text,
  checkpoint text,
  result text
);
create index done_prune on curfew.done (prune_at) where prune_at is not null;

-- Versioned documents with a time to look at them again.
create table curfew.records (
  kind text collate "C" not null,
  key text collate "C" not null,
  version int not null,
  wake_at bigint,
  body text not null,
  primary key (kind, key)
);
create index records_wake on curfew.records (wake_at) where wake_at is not null;

-- The order of commits cannot be had from a sequence alone: readers go by (xid, seq) and stop below the oldest
-- transaction that still runs.
create table curfew.events (
  xid xid8 not null default pg_current_xact_id(),
  seq bigint generated always as identity,
  at bigint not null,
  body text not null,
  primary key (xid, seq)
);

create table curfew.logs (
  job uuid not null,
  seq bigint generated always as identity,
  body text not null,
  primary key (job, seq)
);
`,
  },
  {
    version: 2,
    name: "timeouts",
    sql: `
-- Timeouts that nobody has handled yet. A key is unique within its scope, which is written only beside a key.
create table curfew.timeouts (
  id text collate "C" primary key,
  due_at bigint not null,
  lease_until bigint,
  dead_at bigint,
  generation bigint,
  tries int not null default 0,
  owner text collate "C",
  destination text collate "C" not null,
  key text collate "C",
  scope text collate "C",
  saga text collate "C",
  payload text,
  headers text,
  wall_clock text,
  error text
) with (
  fillfactor = 90,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 20000
);
-- Only what can be claimed: leased and dead rows, however many, are not in it.
create index timeouts_due on curfew.timeouts (due_at, id) where owner is null and dead_at is null;
create index timeouts_destination on curfew.timeouts (destination, due_at, id) where owner is null and dead_at is null;
create index timeouts_lease on curfew.timeouts (lease_until) where owner is not null;
create unique index timeouts_key on curfew.timeouts (scope, key) where key is not null;
create index timeouts_saga on curfew.timeouts (saga) where saga is not null;
create index timeouts_dead on curfew.timeouts (id) where dead_at is not null;
create index timeouts_wall_clock on curfew.timeouts (id) where wall_clock is not null;
`,
  },
];
