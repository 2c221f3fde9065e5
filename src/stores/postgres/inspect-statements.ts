import { DONE, LIVE, type Statement } from "./statements.ts";

/**
 * A page of jobs by id. $1 queue, $2 type, $3 state, $4 dead letter, $5 after this id (each may be null), $6 limit,
 * $7 the gate of live jobs or null.
 * Unnamed, so that each page is planned for the filter it has.
 */
export const LIST_JOBS: Statement = {
  text: `
(select ${LIVE} from curfew.jobs
  where ($1::text is null or queue = $1::text) and ($2::text is null or type = $2::text)
    and ($3::smallint is null or state = $3::smallint) and coalesce($4::smallint, 0) = 0
    and ($5::uuid is null or id > $5::uuid) and ($7::text is null or gate = $7::text)
  order by id limit $6::bigint)
union all
(select ${DONE} from curfew.done
  where ($1::text is null or queue = $1::text) and ($2::text is null or type = $2::text)
    and ($3::smallint is null or state = $3::smallint) and ($4::smallint is null or dead_letter = $4::smallint)
    and ($5::uuid is null or id > $5::uuid) and $7::text is null
  order by id limit $6::bigint)
order by 1 limit $6::bigint`,
};

/** How many jobs are in each state. $1 queue or null. Gives state and count. */
export const DEPTH: Statement = {
  text: `
select state, count(*) from curfew.jobs where $1::text is null or queue = $1::text group by state
union all
select state, count(*) from curfew.done where $1::text is null or queue = $1::text group by state`,
};

/**
 * Events in the order of (xid, seq), after $1 and $2, at most $3. Gives xid, seq, body, and 1 if the place is final: a
 * transaction that is older than the event and still runs may yet commit an event that comes before it.
 */
export const READ_EVENTS: Statement = {
  text: `
select e.xid::text, e.seq::text, e.body, (e.xid < pg_snapshot_xmin(pg_current_snapshot()))::int from curfew.events e
 where (e.xid, e.seq) > ($1::xid8, $2::bigint)
 order by e.xid, e.seq limit $3::bigint`,
};

/** The last lines of a job's log, oldest first. $1 job, $2 how many. */
export const READ_LOGS: Statement = {
  text: `
select body from (select seq, body from curfew.logs where job = $1::uuid order by seq desc limit $2::bigint) l
 order by seq`,
};
