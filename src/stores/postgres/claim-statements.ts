import { STATE_CODES } from "../sql/row-codec.ts";
import { CLAIMED, IS_AVAILABLE, type Statement } from "./statements.ts";

const ACTIVE = STATE_CODES.active;

/** When a claim ends. $2 now, $7 lease; `shortest` is another parameter. */
function claimEnd(heartbeat: string, shortest: number): string {
  return `$2::bigint + least(greatest(coalesce(${heartbeat}, $7::bigint), $${shortest}::bigint), $7::bigint)`;
}

/** What every claim sets. $2 now, $4 salt, $6 worker, $7 lease. */
function setHolder(shortest: number): string {
  return `
       rev = j.rev + 1, fence = (((j.fence >> 21) + 1) << 21) | $4::bigint,
       claimed_at = $2::bigint, worker = $6::text, stall_at = ${claimEnd("j.heartbeat", shortest)}`;
}

/** `claimedRow`, core/job/store-formulas.ts. $2 now, $4 salt, $6 worker, $7 lease; `shortest` is the last parameter. */
export function setClaimed(shortest: number): string {
  return `${setHolder(shortest)},
       state = ${ACTIVE}, wake = 0, wake_at = least(${claimEnd("j.heartbeat", shortest)}, j.wait_at, j.total_at)`;
}

/**
 * Whether a claim may be light: nothing counts the job by an index of active jobs, and the sweep finds the ends of `wait`
 * and `total` by the `wake_at` of the available job.
 */
const IS_PLAIN =
  "j.limit_key is null and j.wake = 0 and j.wake_at is not distinct from least(j.wait_at, j.total_at)";

/**
 * Claims the best available jobs of a queue. $1 queue, $2 now, $3 limit, $4 salt, $5 lowest rank, $6 worker, $7
 * lease, $8 shortest. Returns CLAIMED of the rows, unordered. No two claims get the same job. A paused queue gives none. The fence
 * counter grows by one, and the salt becomes its low 21 bits.
 */
export const CLAIM: Statement = {
  name: "claim",
  text: `
with picked as materialized (
  select id, heartbeat from curfew.jobs
   where queue = $1::text and ${IS_AVAILABLE} and rank >= $5::bigint
     and not exists (select 1 from curfew.records where kind = 'pause' and key = $1::text)
   order by queue, rank, id limit $3::int for update skip locked),
noted as (
  insert into curfew.claims (wake_at, jobs)
  select ${claimEnd("min(heartbeat)", 8)}, array_agg(id) from picked having count(*) > 0)
update curfew.jobs j
   set ${setHolder(8)},
       state = case when ${IS_PLAIN} then j.state else ${ACTIVE} end,
       wake = case when ${IS_PLAIN} then j.wake else 0 end,
       wake_at = case when ${IS_PLAIN} then j.wake_at else least(${claimEnd("j.heartbeat", 8)}, j.wait_at, j.total_at) end,
       claim_wake_at = case when ${IS_PLAIN} then least(${claimEnd("j.heartbeat", 8)}, j.wait_at, j.total_at) end
 where j.id = any(array(select id from picked))
returning ${CLAIMED}`,
};

/** CLAIM for the queues of tenants, whose active jobs are counted by an index. */
export const CLAIM_COUNTED: Statement = {
  name: "claim_counted",
  text: `
update curfew.jobs j
   set ${setClaimed(8)}
 where j.id = any(array(
         select id from curfew.jobs
          where queue = $1::text and ${IS_AVAILABLE} and rank >= $5::bigint
            and not exists (select 1 from curfew.records where kind = 'pause' and key = $1::text)
          order by queue, rank, id limit $3::int for update skip locked))
returning ${CLAIMED}`,
};

/**
 * Writes light claims that are due into the indexes, so that the sweep finds what is left of them. $1 now, $2 the most
 * claims. Returns a row for each claim that it looked at, settled or not. It waits for nobody: a transaction of a caller
 * may have locked a job for as long as it likes, and may roll back. The claim of such a job stays for the next sweep.
 */
export const FILE_CLAIMS: Statement = {
  name: "file_claims",
  text: `
with due as materialized (
  select ctid as at, jobs from curfew.claims where wake_at <= $1::bigint
   order by wake_at limit $2::int for update skip locked),
free as materialized (
  select id from curfew.jobs
   where id = any(array(select unnest(jobs) from due)) and claim_wake_at is not null for update skip locked),
filed as (
  update curfew.jobs j set state = ${ACTIVE}, wake = 0, wake_at = j.claim_wake_at, claim_wake_at = null
   where j.id = any(array(select id from free)) and j.claim_wake_at is not null),
locked as materialized (
  select id from curfew.jobs
   where id = any(array(select unnest(jobs) from due)) and claim_wake_at is not null and id not in (select id from free)),
gone as (
  delete from curfew.claims
   where ctid = any(array(select at from due where not (jobs && array(select id from locked)))))
select cardinality(jobs) from due`,
};

/**
 * Brings the first claims up to date: deletes those of which no light claim is left, and moves those of which the first
 * one left ends later. $1 the most claims. Returns how many of them it changed. Settles do not look for their claims, which
 * would cost every job something.
 */
export const TIDY_CLAIMS: Statement = {
  name: "tidy_claims",
  text: `
with first as materialized (
  select ctid as at, wake_at, jobs from curfew.claims order by wake_at limit $1::int for update skip locked),
checked as materialized (
  select f.at, f.wake_at,
         (select min(j.claim_wake_at) from curfew.jobs j where j.id = any(f.jobs) and j.claim_wake_at is not null) as due_at
    from first f),
gone as (
  delete from curfew.claims where ctid = any(array(select at from checked where due_at is null))),
later as (
  update curfew.claims c set wake_at = (select k.due_at from checked k where k.at = c.ctid)
   where c.ctid = any(array(select at from checked where due_at is not null and due_at <> wake_at)))
select count(*)::int from checked where due_at is distinct from wake_at`,
};
