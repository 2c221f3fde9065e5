import { SCAN_STEP } from "../../ports/store.ts";
import { briefColumns, JOB_COLUMNS } from "../sql/row-codec.ts";
import { DONE, JOB, type Statement } from "./statements.ts";

/** Names of no tenant. */
const NO_TENANT = "queue >= E'\\x02'";
/** Rows of one tenant, by an index that has the rows of tenants alone. */
const ofTenant = (parameter: number) =>
  `split_part(queue, E'\\x01', 2) = $${parameter}::text and queue < E'\\x02'`;

const countLive = (which: string): Statement => ({
  text: `
select queue, type, state, count(*) from curfew.jobs where ${which} group by queue, type, state
 order by queue, type, state limit $1::bigint`,
});

/** Counts live jobs of no tenant by queue, type and state. $1 the most groups. */
export const COUNT_LIVE = countLive(NO_TENANT);
/** COUNT_LIVE of a tenant, $2. */
export const COUNT_LIVE_OF = countLive(ofTenant(2));

/** Counts active and waiting jobs of a tenant, $1, up to $2 each. */
export const TENANT_USE: Statement = {
  text: `
select (select count(*) from (select 1 from curfew.jobs where state = 2 and ${ofTenant(1)} limit $2::bigint) a)::int,
       (select count(*) from (select 1 from curfew.jobs where state <> 2 and ${ofTenant(1)} limit $2::bigint) w)::int`,
};

const depths = (which: string): Statement => ({
  text: `
select queue, state, count(*) from curfew.jobs where ($1::text is null or queue = $1::text) and ${which} group by queue, state
union all
select queue, state, count(*) from curfew.done where ($1::text is null or queue = $1::text) and ${which} group by queue, state`,
});

/** Counts jobs of no tenant by queue and state. $1 the queue, or null for all. */
export const DEPTHS = depths(NO_TENANT);
/** DEPTHS of a tenant, $2. */
export const DEPTHS_OF = depths(ofTenant(2));

/** Unique keys and the live jobs that hold them. $1 after this key or null, $2 limit. */
export const HOLDERS: Statement = {
  text: `
select unique_key, id from curfew.jobs
 where unique_key is not null and ($1::text is null or unique_key > $1::text)
 order by unique_key limit $2::bigint`,
};

/** The unique keys of live and finished jobs. $1 ids. Returns id and key. */
export const UNIQUE_KEYS: Statement = {
  text: `
select id, unique_key from curfew.jobs where id = any($1::uuid[]) and unique_key is not null
union all
select id, unique_key from curfew.done where id = any($1::uuid[]) and unique_key is not null`,
};

/** Which tables a step reads: live jobs, finished ones, both merged by id, or dead letters in the order of their ends. */
export type ScanSource = "live" | "finished" | "both" | "dead";

/**
 * The statements of one step of a scan, for one source and direction. Each is one round trip and reads at most
 * `SCAN_STEP` rows, because the filter is applied to a subquery that has this limit. Unnamed, so that each step is
 * planned for its filter.
 *
 * $1 and $2 the position after which the step starts: an instant, for dead letters alone, and an id. $3 queue, $4 type,
 * $5 state, $6 and $7 the bounds of created_at, $8 a text of the payload, $9 dead letter, $10 and $11 the bounds of
 * finished_at. Each may be null.
 */
interface ScanStatements {
  /** $12 limit. Returns the jobs. If there are fewer, also the last position of the step: a row without a queue. */
  readonly list: Statement;
  /** The same with brief rows. */
  readonly listBrief: Statement;
  /** Returns the count, and the instant and id of the last position, null if nothing follows. */
  readonly count: Statement;
}

const CONDITIONS: readonly (readonly [type: string, holds: (parameter: string) => string])[] = [
  ["text", (value) => `queue = ${value}`],
  ["text", (value) => `type = ${value}`],
  ["smallint", (value) => `state = ${value}`],
  ["bigint", (value) => `created_at >= ${value}`],
  ["bigint", (value) => `created_at < ${value}`],
  ["text", (value) => `(position(${value} in payload) > 0 or position('"redact":' in options) > 0)`],
  ["smallint", (value) => `dead_letter = ${value}`],
  ["bigint", (value) => `finished_at >= ${value}`],
  ["bigint", (value) => `finished_at < ${value}`],
];

const MATCHING = CONDITIONS.map(([type, holds], index) => {
  const parameter = `$${index + 3}::${type}`;
  return `(${parameter} is null or ${holds(parameter)})`;
}).join(" and ");

/** The columns that MATCHING reads. */
const MATCHED = "id, queue, type, state, created_at, payload, options";
const COUNTED = {
  live: `${MATCHED}, null::bigint as finished_at, 0::smallint as dead_letter`,
  done: `${MATCHED}, finished_at, dead_letter`,
};
const LISTED = {
  live: `${JOB}, null::bigint as finished_at, null::bigint as prune_at, 0::smallint as dead_letter`,
  done: DONE,
};
/** Only dead letters are read in the order of their ends. An id alone comes from the index. */
const ID = "id, null::bigint as finished_at";
const END = "id, finished_at";
/** A row that is only a position: its id is first, `finished_at` third from the end, and all else is null. */
const END_ROW = ["id", ...JOB_COLUMNS.slice(1).map(() => "null"), "finished_at", "null", "null"].join(", ");

interface Columns {
  readonly live: string;
  readonly done: string;
}

/** The rows of a step in order, of a tenant if `ours` says which. Each table is read by index, no further than the step goes. */
function stepOf(source: ScanSource, columns: Columns, after: ">" | "<", ours: string): string {
  const order = after === ">" ? "asc" : "desc";
  if (source === "dead")
    return `select ${columns.done} from curfew.done
 where ${ours} and dead_letter = 1 and ($1::bigint is null or (finished_at, id) ${after} ($1::bigint, $2::uuid))
   and ($10::bigint is null or finished_at >= $10::bigint) and ($11::bigint is null or finished_at < $11::bigint)
 order by finished_at ${order}, id ${order} limit ${SCAN_STEP}`;
  // $1 is null here. Each parameter must be named, so that the server knows its type.
  const of = (table: string, shown: string) =>
    `select ${shown} from curfew.${table} where ${ours} and $1::bigint is null and ($2::uuid is null or id ${after} $2::uuid)
 order by id ${order} limit ${SCAN_STEP}`;
  if (source === "live") return of("jobs", columns.live);
  if (source === "finished") return of("done", columns.done);
  return `(${of("jobs", columns.live)}) union all (${of("done", columns.done)})
 order by id ${order} limit ${SCAN_STEP}`;
}

function scanStatements(source: ScanSource, after: ">" | "<", isTenants: boolean): ScanStatements {
  const order = after === ">" ? "asc" : "desc";
  const ours = (parameter: number) => (isTenants ? ofTenant(parameter) : "true");
  // A step reads rows of tenants too, and leaves them out: it must not read more rows to find others.
  const wanted = isTenants ? MATCHING : `${MATCHING} and ${NO_TENANT}`;
  const by = source === "dead" ? `finished_at ${order}, id ${order}` : `id ${order}`;
  const positions = source === "dead" ? { live: END, done: END } : { live: ID, done: ID };
  const last = (which: string) =>
    `select id, finished_at from (${stepOf(source, positions, after, which)}) s order by ${by}
 offset ${SCAN_STEP - 1} limit 1`;
  const list = (columns: string): Statement => ({
    text: `
with found as materialized (
  select * from (${stepOf(source, LISTED, after, ours(13))}) s where ${wanted} order by ${by} limit $12::bigint)
select ${columns} from found
union all
select ${END_ROW} from (${last(ours(13))}) l where (select count(*) from found) < $12::bigint`,
  });
  return {
    list: list(DONE),
    listBrief: list(briefColumns(DONE)),
    count: {
      text: `
select (select count(*) from (${stepOf(source, COUNTED, after, ours(12))}) s where ${wanted}), l.finished_at, l.id
  from (select 1) one left join (${last(ours(12))}) l on true`,
    },
  };
}

const bySource = (after: ">" | "<", isTenants: boolean): Readonly<Record<ScanSource, ScanStatements>> => ({
  live: scanStatements("live", after, isTenants),
  finished: scanStatements("finished", after, isTenants),
  both: scanStatements("both", after, isTenants),
  dead: scanStatements("dead", after, isTenants),
});

export const FORWARDS = bySource(">", false);
export const BACKWARDS = bySource("<", false);
/** For jobs of a tenant. It is the last parameter: $13 of a list, $12 of a count. */
export const TENANT_FORWARDS = bySource(">", true);
export const TENANT_BACKWARDS = bySource("<", true);

/**
 * The oldest transaction that can still commit an event. No event of an older one can appear. A snapshot lists
 * running transactions of the whole server. Those of other databases cannot write here and are skipped. One whose
 * database is unknown counts. Returns one row with one xid.
 */
export const EVENT_HORIZON: Statement = {
  text: `
select coalesce(
         (select x from pg_snapshot_xip(s) x
           where not exists (
                   select from pg_locks l join pg_stat_activity a on a.pid = l.pid
                    where l.locktype = 'transactionid' and l.granted and l.mode = 'ExclusiveLock'
                      and l.transactionid = x::xid and a.datname <> current_database())
           order by x limit 1),
         pg_snapshot_xmax(s))::text
  from pg_current_snapshot() s`,
};

/**
 * Events in the order (epoch, xid, seq), after $1, $2 and $3, at most $4. $5 a horizon that was read earlier, or 0.
 * Returns epoch, xid, seq, body, 1 if no event can still be committed before this one, and the xid that no earlier
 * commit has reached. An older epoch has no running transactions.
 */
export const READ_EVENTS: Statement = {
  text: `
select e.epoch, e.xid::text, e.seq::text, e.body,
       (e.epoch < c.epoch or e.xid < greatest(pg_snapshot_xmin(s), $5::xid8))::int, pg_snapshot_xmax(s)::text
  from curfew.events e, curfew.cluster c, pg_current_snapshot() s
 where (e.epoch, e.xid, e.seq) > ($1::bigint, $2::xid8, $3::bigint)
 order by e.epoch, e.xid, e.seq limit $4::bigint`,
};

/**
 * The newest events before $1, $2 and $3, or of all if they are null, newest first. $4 limit, $5 a horizon that was
 * read earlier, or 0. Returns epoch, xid, seq, body, and 1 if no event can still be committed before this one.
 */
export const LATEST_EVENTS: Statement = {
  text: `
select e.epoch, e.xid::text, e.seq::text, e.body,
       (e.epoch < c.epoch or e.xid < greatest(pg_snapshot_xmin(s), $5::xid8))::int
  from curfew.events e, curfew.cluster c, pg_current_snapshot() s
 where $1::bigint is null or (e.epoch, e.xid, e.seq) < ($1::bigint, $2::xid8, $3::bigint)
 order by e.epoch desc, e.xid desc, e.seq desc limit $4::bigint`,
};

/**
 * A page of the kept lines of a job's log. $1 job, $2 the number they come after, $3 limit, $4 how many lines are
 * kept.
 */
export const READ_LINES: Statement = {
  text: `
select seq, body from curfew.logs
 where job = $1::uuid and seq > $2::bigint
   and seq > coalesce((select seq from curfew.logs where job = $1::uuid order by seq desc offset $4::bigint limit 1), 0)
 order by seq limit $3::bigint`,
};
