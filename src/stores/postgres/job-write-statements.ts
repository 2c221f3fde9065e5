import { DONE, JOB, recordEvents, type Statement, texts } from "./statements.ts";

/** A statement that writes jobs, and a version of it that also records the events of the jobs that matched. */
export interface JobStatement extends Statement {
  /** Takes the parameters of the statement and then those of `recordEvents`. Returns what the statement does. */
  readonly recorded: Statement;
}

/** `parameter` is the first one that the statement does not use. `before` has the CTEs that `main` builds on. */
function jobWrite(
  name: string,
  parameter: number,
  { before, main }: { readonly before?: string; readonly main: string },
): JobStatement {
  const lead = before === undefined ? "" : `${before},`;
  return {
    name,
    text: before === undefined ? main : `with ${before}\n${main}`,
    recorded: {
      name: `${name}_recorded`,
      text: `with ${lead} written as (${main}), recorded as (${recordEvents(parameter)}) select * from written`,
    },
  };
}

/** The values of a set of job writes, one array each. An array is null if no write of the set has a value. */
const ARRAYS = `unnest(
  $1::uuid[], $2::bigint[], $3::int[], $4::bigint[], $5::smallint[], $6::smallint[], $7::bigint[], $8::bigint[],
  $9::int[], $10::int[], $11::int[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
  $17::bigint[], $18::bigint[], $19::bigint[], $20::bigint[], $21::smallint[],
  ${[22, 23, 24, 25, 26, 27].map(texts).join(", ")}
) as a(id, fence, rev, next_fence, state, wake, wake_at, rank, attempt, returns, expired_claims, wait_at, total_at,
  started_at, soft_at, hard_at, stall_at, heartbeat, finished_at, prune_at, dead_letter,
  options, policy, errors, progress, checkpoint, result)`;

/**
 * A set of job writes. A value on which most sets agree is passed once instead of in an array, which is cheaper on
 * both sides. This matters most for the policy, the longest part of a settle.
 */
const WRITES = `(
  select a.id, a.fence, a.rev, a.next_fence, coalesce(a.state, $28::smallint) as state,
         coalesce(a.wake, $29::smallint) as wake, a.wake_at, a.rank, coalesce(a.attempt, $30::int) as attempt,
         coalesce(a.returns, $31::int) as returns, coalesce(a.expired_claims, $32::int) as expired_claims, a.wait_at, a.total_at,
         a.started_at, a.soft_at, a.hard_at, a.stall_at, coalesce(a.heartbeat, $33::bigint) as heartbeat,
         a.finished_at, a.prune_at, coalesce(a.dead_letter, $34::smallint) as dead_letter, a.options,
         coalesce(a.policy, $35::text) as policy, a.errors, a.progress, a.checkpoint, a.result
    from ${ARRAYS}) as s`;

/** The guard of a job write: its fence, and its revision if it names one. */
const MATCH =
  "j.id = any($1::uuid[]) and j.id = s.id and j.fence = s.fence and (s.rev is null or j.rev = s.rev)";

/** A row after a write, in the order of JOB. A null document stays; the empty text clears it. */
const WRITTEN = `
  j.id, j.queue, j.type, j.priority, coalesce(s.next_fence, j.fence), j.rev + 1, j.created_at, j.claimed_at, j.worker,
  j.needs, j.workflow, j.limit_key, j.payload,
  nullif(coalesce(s.options, j.options), ''), nullif(coalesce(s.policy, j.policy), ''),
  nullif(coalesce(s.errors, j.errors), ''), nullif(coalesce(s.progress, j.progress), ''),
  nullif(coalesce(s.checkpoint, j.checkpoint), ''), nullif(coalesce(s.result, j.result), ''),
  s.state, s.wake, s.wake_at, s.rank, s.attempt, s.returns, s.expired_claims, s.wait_at, s.total_at, s.started_at,
  s.soft_at, s.hard_at, s.stall_at, s.heartbeat, j.fair_key`;

const SET_DOCUMENTS = `
  fence = coalesce(s.next_fence, j.fence),
  options = nullif(coalesce(s.options, j.options), ''), policy = nullif(coalesce(s.policy, j.policy), ''),
  errors = nullif(coalesce(s.errors, j.errors), ''), progress = nullif(coalesce(s.progress, j.progress), ''),
  checkpoint = nullif(coalesce(s.checkpoint, j.checkpoint), ''),
  result = nullif(coalesce(s.result, j.result), '')`;

const SET_IMAGE = `
  rev = j.rev + 1, state = s.state, wake = s.wake, wake_at = s.wake_at, rank = s.rank, attempt = s.attempt,
  returns = s.returns, expired_claims = s.expired_claims, wait_at = s.wait_at, total_at = s.total_at, started_at = s.started_at,
  soft_at = s.soft_at, hard_at = s.hard_at, stall_at = s.stall_at, heartbeat = s.heartbeat, ${SET_DOCUMENTS}`;

/**
 * Ends live jobs and keeps them: each row moves to `done`, where its unique key blocks no other job. Takes WRITES.
 * Returns the ids that matched.
 */
export const FINISH = jobWrite("finish", 36, {
  before: `
moved (${DONE}, unique_key) as (
  delete from curfew.jobs j using ${WRITES} where ${MATCH}
  returning ${WRITTEN}, s.finished_at, s.prune_at, s.dead_letter, j.unique_key)`,
  main: `insert into curfew.done (${DONE}, unique_key) select * from moved returning id`,
});

/** Writes live images. Takes WRITES. Returns id and queue of what matched. */
export const WRITE = jobWrite("write", 36, {
  main: `update curfew.jobs j set ${SET_IMAGE} from ${WRITES} where ${MATCH} returning j.id, j.queue`,
});

/**
 * Makes finished jobs live again. Each takes its unique key back unless another job holds it. Takes WRITES. Returns
 * id and queue. If it races with an enqueue of the same key, it fails as a whole and can be repeated.
 */
export const REVIVE = jobWrite("revive", 36, {
  before: `
moved (${JOB}, unique_key) as (
  delete from curfew.done j using ${WRITES} where ${MATCH} returning ${WRITTEN}, j.unique_key)`,
  main: `
insert into curfew.jobs (${JOB}, unique_key)
select ${JOB}, case when not exists (select 1 from curfew.jobs o where o.unique_key = m.unique_key) then m.unique_key end
  from moved m
returning id, queue`,
});

/** Writes new final images over finished jobs. Takes WRITES. Returns the ids that matched. */
export const WRITE_DONE = jobWrite("write_done", 36, {
  main: `
update curfew.done j set ${SET_IMAGE}, finished_at = s.finished_at, prune_at = s.prune_at, dead_letter = s.dead_letter
  from ${WRITES} where ${MATCH} returning j.id`,
});

/** The values of a set of writes without an image. */
const NOTES = `unnest($1::uuid[], $2::bigint[], $3::int[], $4::bigint[],
  ${[5, 6, 7, 8, 9, 10].map(texts).join(", ")}
) as s(id, fence, rev, next_fence, options, policy, errors, progress, checkpoint, result)`;

/** Writes only documents; the revision stays. Takes NOTES. Returns the ids that matched. */
export const NOTE = jobWrite("note", 11, {
  main: `update curfew.jobs j set ${SET_DOCUMENTS} from ${NOTES} where ${MATCH} returning j.id`,
});

/** NOTE for finished jobs. */
export const NOTE_DONE = jobWrite("note_done", 11, {
  main: `update curfew.done j set ${SET_DOCUMENTS} from ${NOTES} where ${MATCH} returning j.id`,
});

const GUARDS = "unnest($1::uuid[], $2::bigint[], $3::int[]) as s(id, fence, rev)";

/** Deletes live jobs and their logs. $1 ids, $2 fences, $3 revisions or null. Returns the ids that matched. */
export const DROP = jobWrite("drop", 4, {
  before: `
dropped as (delete from curfew.jobs j using ${GUARDS} where ${MATCH} returning j.id),
forgotten as (delete from curfew.logs where job = any($1::uuid[]) and job in (select id from dropped))`,
  main: "select id from dropped",
});

/** DROP for finished jobs. */
export const DROP_DONE = jobWrite("drop_done", 4, {
  before: `
dropped as (delete from curfew.done j using ${GUARDS} where ${MATCH} returning j.id),
forgotten as (delete from curfew.logs where job = any($1::uuid[]) and job in (select id from dropped))`,
  main: "select id from dropped",
});

/** Locks live jobs until the transaction ends. Takes and returns what DROP does. */
export const CONFIRM = jobWrite("confirm", 4, {
  main: `select j.id from curfew.jobs j, ${GUARDS} where ${MATCH} for share of j`,
});

/** CONFIRM for finished jobs. */
export const CONFIRM_DONE = jobWrite("confirm_done", 4, {
  main: `select j.id from curfew.done j, ${GUARDS} where ${MATCH} for share of j`,
});
