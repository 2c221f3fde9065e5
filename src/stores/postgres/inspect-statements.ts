import { DONE, LIVE, type Statement } from "./statements.ts";

/** Counts live jobs by queue, type and state. $1 the most groups. */
export const COUNT_LIVE: Statement = {
  text: `
select queue, type, state, count(*) from curfew.jobs group by queue, type, state
 order by queue, type, state limit $1::bigint`,
};

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

/** The statements of scans for one direction. Unnamed, so that each step is planned for its filter. */
interface ScanStatements {
  /** $1 the id after which a range starts or null, $2 its length less one. Returns its last id, if it is that long. */
  readonly endOfJobs: Statement;
  readonly endOfDone: Statement;
  /**
   * $1 and $2 the ids between which a range lies, $3 queue, $4 type, $5 state, $6 and $7 the bounds of created_at.
   * For finished jobs also $8 dead letter, $9 and $10 the bounds of finished_at. Each may be null. The last parameter
   * is a limit.
   */
  readonly listJobs: Statement;
  readonly countJobs: Statement;
  readonly listDone: Statement;
  readonly countDone: Statement;
  /** $1 and $2 the position after which a range starts, $3 and $4 the bounds of finished_at, $5 its length less one. */
  readonly endOfDead: Statement;
  /** As for finished jobs, but each id is preceded by its instant. */
  readonly listDead: Statement;
  readonly countDead: Statement;
}

/** The conditions of a filter. Their parameters start after `before`. */
function matching(before: number, isDone: boolean): string {
  const of = (index: number, type: string, holds: (parameter: string) => string) => {
    const parameter = `$${before + index}::${type}`;
    return `(${parameter} is null or ${holds(parameter)})`;
  };
  const conditions = [
    of(1, "text", (value) => `queue = ${value}`),
    of(2, "text", (value) => `type = ${value}`),
    of(3, "smallint", (value) => `state = ${value}`),
    of(4, "bigint", (value) => `created_at >= ${value}`),
    of(5, "bigint", (value) => `created_at < ${value}`),
    of(6, "text", (value) => `position(${value} in payload) > 0`),
  ];
  if (isDone) {
    conditions.push(
      of(7, "smallint", (value) => `dead_letter = ${value}`),
      of(8, "bigint", (value) => `finished_at >= ${value}`),
      of(9, "bigint", (value) => `finished_at < ${value}`),
    );
  }
  return conditions.join(" and ");
}

function scanStatements(after: ">" | "<", until: "<=" | ">=", order: "asc" | "desc"): ScanStatements {
  const end = (table: string) => ({
    text: `
select id from curfew.${table} where ($1::uuid is null or id ${after} $1::uuid)
 order by id ${order} offset $2::bigint limit 1`,
  });
  // A range has few rows, so they are read by id and filtered then: the offset keeps the planner from an index of the
  // filter, which may match a million rows that it would have to sort.
  const range = (table: string, isDone: boolean) => `from (select * from curfew.${table}
         where ($1::uuid is null or id ${after} $1::uuid) and ($2::uuid is null or id ${until} $2::uuid)
         order by id ${order} offset 0) ${table}
 where ${matching(2, isDone)}`;
  const dead = `from curfew.done where dead_letter = 1`;
  const position = (at: number, compare: string) =>
    `($${at}::bigint is null or (finished_at, id) ${compare} ($${at}::bigint, $${at + 1}::uuid))`;
  const deadRange = `${dead} and ${position(1, after)} and ${position(3, until)} and ${matching(4, true)}`;
  const byEnd = `order by finished_at ${order}, id ${order}`;
  return {
    endOfJobs: end("jobs"),
    endOfDone: end("done"),
    listJobs: { text: `select ${LIVE} ${range("jobs", false)} order by id ${order} limit $9::bigint` },
    countJobs: { text: `select count(*) ${range("jobs", false)}` },
    listDone: { text: `select ${DONE} ${range("done", true)} order by id ${order} limit $12::bigint` },
    countDone: { text: `select count(*) ${range("done", true)}` },
    endOfDead: {
      text: `
select finished_at, id ${dead} and ${position(1, after)} and ($3::bigint is null or finished_at >= $3::bigint)
   and ($4::bigint is null or finished_at < $4::bigint) ${byEnd} offset $5::bigint limit 1`,
    },
    listDead: { text: `select ${DONE} ${deadRange} ${byEnd} limit $14::bigint` },
    countDead: { text: `select count(*) ${deadRange}` },
  };
}

export const FORWARDS = scanStatements(">", "<=", "asc");
export const BACKWARDS = scanStatements("<", ">=", "desc");

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
