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

/** What a set of job writes says of each job beside its id, in the order of its parameters from $2 on. */
export const WRITE_COLUMNS = {
  fence: "bigint",
  rev: "int",
  step: "int",
  next_fence: "bigint",
  state: "smallint",
  wake: "smallint",
  wake_at: "bigint",
  rank: "bigint",
  attempt: "int",
  returns: "int",
  expired_claims: "int",
  wait_at: "bigint",
  total_at: "bigint",
  started_at: "bigint",
  soft_at: "bigint",
  hard_at: "bigint",
  stall_at: "bigint",
  heartbeat: "bigint",
  finished_at: "bigint",
  prune_at: "bigint",
  dead_letter: "smallint",
  options: "text",
  policy: "text",
  errors: "text",
  progress: "text",
  checkpoint: "text",
  result: "text",
} as const;

/** The first parameter after those of a set of job writes. */
const AFTER_WRITES = Object.keys(WRITE_COLUMNS).length + 2;

type WriteColumn = keyof typeof WRITE_COLUMNS;

const NAMES = Object.keys(WRITE_COLUMNS) as readonly WriteColumn[];

/** The bit of a column in a form. */
function bitOf(name: WriteColumn): number {
  return 1 << NAMES.indexOf(name);
}

/**
 * Instants that most jobs of a set have at the same distance from another one. They may be that distance, a single value. Each
 * has a bit of its own in a form, above those of the columns.
 */
export const DISTANCES: readonly {
  readonly column: WriteColumn;
  readonly from: WriteColumn;
  readonly bit: number;
}[] = (
  [
    ["soft_at", "started_at"],
    ["hard_at", "started_at"],
    ["prune_at", "finished_at"],
  ] as const
).map(([column, from], nth) => ({ column, from, bit: 1 << (NAMES.length + nth) }));

/**
 * Columns that are always arrays in a set of several jobs. They vary in most sets, each on its own: without this, a worker that
 * is busy would need ten forms, each of which the server plans on each connection.
 */
export const ALWAYS_VARIED = ["fence", "rank", "total_at", "started_at", "finished_at"]
  .map((name) => bitOf(name as WriteColumn))
  .reduce((all, bit) => all | bit, 0);

/**
 * Which columns of a set of job writes are arrays, one bit each in the order of WRITE_COLUMNS, and which are DISTANCES. All jobs
 * of the set agree on the others, which are single values: each array costs time on both sides, for every job.
 */
export type Varied = number;

/** A set of job writes: $1 ids, then WRITE_COLUMNS. */
function writesOf(varied: Varied): string {
  const [names, arrays, columns] = [["id"], ["$1::uuid[]"], ["a.id"]];
  for (const [nth, [name, type]] of Object.entries(WRITE_COLUMNS).entries()) {
    const parameter = nth + 2;
    const distance = DISTANCES.find(({ column, bit }) => column === name && (varied & bit) !== 0);
    if (distance) columns.push(`a.${distance.from} + $${parameter}::${type} as ${name}`);
    else if ((varied & (1 << nth)) === 0) columns.push(`$${parameter}::${type} as ${name}`);
    else {
      names.push(name);
      arrays.push(type === "text" ? texts(parameter) : `$${parameter}::${type}[]`);
      columns.push(`a.${name}`);
    }
  }
  return `(select ${columns.join(", ")} from unnest(${arrays.join(", ")}) as a(${names.join(", ")})) as s`;
}

/** A server keeps a plan of each form on each connection. Batches of real jobs have a few. */
const MOST_FORMS = 32;
const ALL_VARY: Varied = (1 << NAMES.length) - 1;
const forms = new Set<Varied>();

/** The form for a set of writes in which these columns vary. Others may be arrays too. */
export function formOf(varied: Varied): Varied {
  if (!forms.has(varied) && forms.size >= MOST_FORMS) return ALL_VARY;
  forms.add(varied);
  return varied;
}

/** A statement that writes images of jobs, by its form. */
export type ImageStatement = (form: Varied) => JobStatement;

function imageWrite(
  name: string,
  build: (writes: string) => { readonly before?: string; readonly main: string },
): ImageStatement {
  const known = new Map<Varied, JobStatement>();
  return (form) => {
    let statement = known.get(form);
    if (!statement) {
      statement = jobWrite(`${name}_${form.toString(36)}`, AFTER_WRITES, build(writesOf(form)));
      known.set(form, statement);
    }
    return statement;
  };
}

/** The guard of a job write: its fence, and its revision if it names one. */
const MATCH =
  "j.id = any($1::uuid[]) and j.id = s.id and j.fence = s.fence and (s.rev is null or j.rev = s.rev)";

/** A masked revision never overflows: writes that step by one have as much room above it. */
const NEXT_REV = "((j.rev::bigint + s.step) & 1073741823)::int";

/** A row after a write, in the order of JOB. A null document stays; the empty text clears it. */
const WRITTEN = `
  j.id, j.queue, j.type, j.priority, coalesce(s.next_fence, j.fence), ${NEXT_REV}, j.created_at, j.claimed_at, j.worker,
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
  rev = ${NEXT_REV}, state = s.state, wake = s.wake, wake_at = s.wake_at, rank = s.rank, attempt = s.attempt,
  returns = s.returns, expired_claims = s.expired_claims, wait_at = s.wait_at, total_at = s.total_at, started_at = s.started_at,
  soft_at = s.soft_at, hard_at = s.hard_at, stall_at = s.stall_at, heartbeat = s.heartbeat, ${SET_DOCUMENTS}`;

/**
 * Ends live jobs and keeps them: each row moves to `done`, where its unique key blocks no other job. Returns the ids
 * that matched.
 */
export const FINISH = imageWrite("finish", (writes) => ({
  before: `
moved (${DONE}, unique_key) as (
  delete from curfew.jobs j using ${writes} where ${MATCH}
  returning ${WRITTEN}, s.finished_at, s.prune_at, s.dead_letter, j.unique_key)`,
  main: `insert into curfew.done (${DONE}, unique_key) select * from moved returning id`,
}));

/** Writes live images. Returns id and queue of what matched. */
export const WRITE = imageWrite("write", (writes) => ({
  main: `update curfew.jobs j set ${SET_IMAGE} from ${writes} where ${MATCH} returning j.id, j.queue`,
}));

/**
 * Makes finished jobs live again. Each takes its unique key back unless another job holds it. Returns id and
 * queue. If it races with an enqueue of the same key, it fails as a whole and can be repeated.
 */
export const REVIVE = imageWrite("revive", (writes) => ({
  before: `
moved (${JOB}, unique_key) as (
  delete from curfew.done j using ${writes} where ${MATCH} returning ${WRITTEN}, j.unique_key)`,
  main: `
insert into curfew.jobs (${JOB}, unique_key)
select ${JOB}, case when not exists (select 1 from curfew.jobs o where o.unique_key = m.unique_key) then m.unique_key end
  from moved m
returning id, queue`,
}));

/** Writes new final images over finished jobs. Returns the ids that matched. */
export const WRITE_DONE = imageWrite("write_done", (writes) => ({
  main: `
update curfew.done j set ${SET_IMAGE}, finished_at = s.finished_at, prune_at = s.prune_at, dead_letter = s.dead_letter
  from ${writes} where ${MATCH} returning j.id`,
}));

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

/**
 * Deletes the logs of `dropped`. Looking for them would cost each job, so first the size of the table is asked: it is 0 if nobody
 * ever logged. The size counts what any transaction has written, and no row is read for it.
 */
const FORGOTTEN = `
forgotten as (
  delete from curfew.logs
   where (select pg_relation_size('curfew.logs') > 0) and job = any($1::uuid[]) and job in (select id from dropped))`;

/** Deletes live jobs and their logs. $1 ids, $2 fences, $3 revisions or null. Returns the ids that matched. */
export const DROP = jobWrite("drop", 4, {
  before: `
dropped as (delete from curfew.jobs j using ${GUARDS} where ${MATCH} returning j.id),
${FORGOTTEN}`,
  main: "select id from dropped",
});

/** DROP for finished jobs. */
export const DROP_DONE = jobWrite("drop_done", 4, {
  before: `
dropped as (delete from curfew.done j using ${GUARDS} where ${MATCH} returning j.id),
${FORGOTTEN}`,
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
