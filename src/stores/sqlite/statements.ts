import { CLAIMED_COLUMNS, END_COLUMNS, JOB_COLUMNS, STATE_CODES } from "../sql/row-codec.ts";

/*
 * Every statement the store runs. Parameters are positional, in the order their headers name them. `indexed by` fixes
 * the plan: a file whose owner runs ANALYZE must not make a claim walk the table. No statement reads a clock: time is
 * passed in.
 *
 * Running a statement costs about as much as writing a row, so what is done to many rows alike is done in one: such
 * statements take the rows last, as a JSON array. Values that differ from row to row are bound, never put into the
 * array: taking one out again costs three times as much as binding it.
 */

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const SCHEDULED = STATE_CODES.scheduled;
const ACTIVE = STATE_CODES.active;

const JOB = JOB_COLUMNS.join(", ");
export const DONE = [...JOB_COLUMNS, ...END_COLUMNS].join(", ");
/** A live job in the shape of a finished one. */
export const LIVE = `${JOB}, null, null, 0`;

/** What an image writes, in the order in which `imageValues` gives it. */
const IMAGE_COLUMNS = [
  "state",
  "wake",
  "wake_at",
  "rank",
  "attempt",
  "returns",
  "expired_claims",
  "wait_at",
  "total_at",
  "started_at",
  "soft_at",
  "hard_at",
  "stall_at",
  "heartbeat",
];

/** In the order in which `documentValues` gives them. A document that says nothing stays; the empty text clears it. */
const DOCUMENT_COLUMNS = ["options", "policy", "errors", "progress", "checkpoint", "result"];

const WRITTEN_DOCUMENTS = DOCUMENT_COLUMNS.map((name) => `nullif(coalesce(?, ${name}), '')`);
const SET_IMAGE = IMAGE_COLUMNS.map((name) => `${name} = ?`).join(", ");
const SET_DOCUMENTS = DOCUMENT_COLUMNS.map((name, index) => `${name} = ${WRITTEN_DOCUMENTS[index]}`).join(
  ", ",
);
const SET_FENCE = "fence = coalesce(?, fence)";

/** The rows a statement is about: a JSON array of rowids. */
const ROWS = "rowid in (select value from json_each(?))";
const ROW_RANGE = "rowid between ? and ?";

const ranged = new Map<string, string>();

/** A statement that takes rows last, for rows without a gap: it takes the first and the last of them, which costs less. */
export function byRange(text: string): string {
  let found = ranged.get(text);
  if (found === undefined) {
    found = text.replace(ROWS, ROW_RANGE);
    ranged.set(text, found);
  }
  return found;
}

/** The columns of a job that no write touches. */
const KEPT = "id, queue, type, priority, created_at, claimed_at, worker, needs, workflow, limit_key, payload";
const MOVED_INTO = `${KEPT}, rev, fence, ${IMAGE_COLUMNS.join(", ")}, ${DOCUMENT_COLUMNS.join(", ")}`;
const MOVED = `${KEPT}, rev + 1, coalesce(?, fence), ${IMAGE_COLUMNS.map(() => "?").join(", ")}, ${WRITTEN_DOCUMENTS.join(", ")}`;

/** The earlier of two instants of which each may be missing. */
const NEXT_LIMIT = "min(coalesce(wait_at, total_at), coalesce(total_at, wait_at))";
const MADE_AVAILABLE = `state = ${AVAILABLE}, wake = 0, wake_at = ${NEXT_LIMIT}, rev = rev + 1`;

/** Asks for the right to write at once: a transaction that began by reading could not be repeated when it is refused. */
export const BEGIN = "begin immediate";
export const COMMIT = "commit";
export const ROLLBACK = "rollback";

/** Within a caller's transaction a call that fails goes back to its own beginning, and the caller's work stays. */
export const BEGIN_PART = "savepoint curfew";
export const KEEP_PART = "release curfew";
export const UNDO_PART = "rollback to curfew";

/** The file of a handle; empty for a database in memory. */
export const DATABASE_FILE = "select file from pragma_database_list where name = 'main'";

/** How far a handle's commits go: 0 is off. */
export const SYNCHRONOUS = "select synchronous from pragma_synchronous";

/** One row if the file has been migrated at least once. */
export const HAS_MIGRATIONS =
  "select 1 from sqlite_schema where type = 'table' and name = 'curfew_migrations'";

export const CREATE_MIGRATIONS = `
create table if not exists curfew_migrations (
  version integer primary key, name text not null, checksum text not null, applied_at integer not null) strict`;

/** Gives version and checksum. */
export const APPLIED_MIGRATIONS = "select version, checksum from curfew_migrations order by version";

/** Takes version, name, checksum, applied_at. */
export const ADD_MIGRATION =
  "insert into curfew_migrations (version, name, checksum, applied_at) values (?, ?, ?, ?)";

/** One row if the file has a clock of its own. */
export const HAS_CLOCK = "select 1 from sqlite_schema where type = 'table' and name = 'curfew_clock'";

/** The moment from which all count, if there was one. Gives boot, monotonic, slept, wall, time. */
export const READ_ANCHOR = "select boot, monotonic, slept, wall, time from curfew_clock";

/** Takes what READ_ANCHOR gives. */
export const PUT_ANCHOR = `
insert into curfew_clock (id, boot, monotonic, slept, wall, time) values (1, ?, ?, ?, ?, ?)
on conflict (id) do update set boot = excluded.boot, monotonic = excluded.monotonic, slept = excluded.slept,
                               wall = excluded.wall, time = excluded.time`;

/** One of a queue's best jobs, if there is any. Takes queue and lowest rank. */
export const PEEK = `
select 1 from curfew_jobs indexed by curfew_jobs_ready where queue = ? and state = ${AVAILABLE} and rank >= ? limit 1`;

/** One row if a queue is paused. Takes the queue. */
export const PAUSED = "select 1 from curfew_records where kind = 'pause' and key = ?";

/** A job as its claim leaves it: the fence grows by one step of its counter and takes the salt as its low 21 bits. */
const CLAIMED = CLAIMED_COLUMNS.map((name) => {
  if (name === "fence") return "(((fence >> 21) + 1) << 21) | ?";
  return name === "rev" ? "rev + 1" : name;
}).join(", ");

/**
 * A queue's best available jobs, best first, as their claim leaves them. Takes salt, queue, lowest rank, limit. Gives
 * CLAIMED_COLUMNS and the rowid.
 */
export const CLAIMABLE = `
select ${CLAIMED}, rowid from curfew_jobs indexed by curfew_jobs_ready
 where queue = ? and state = ${AVAILABLE} and rank >= ? order by rank, id limit ?`;

/**
 * Claims rows of CLAIMABLE in the same transaction. Takes fence, claimed_at, worker, stall_at, wake_at, rows. Who fails here
 * takes the transaction back: `or fail` spares SQLite from preparing to take back the statement alone.
 */
export const CLAIM = `
update or fail curfew_jobs
   set state = ${ACTIVE}, wake = 0, rev = rev + 1, fence = ?, claimed_at = ?, worker = ?, stall_at = ?, wake_at = ?
 where ${ROWS}`;

/**
 * Adds jobs that differ only in id and payload and have ids nobody can know. Takes once for all: rank, queue, type,
 * state, priority, created_at, wake, wake_at, wait_at, total_at, heartbeat, options; then a JSON object of payloads by
 * id, of which both come out of the JSON without being parsed a second time. Fails as a whole if an id is known after all.
 */
export const INSERT_ALIKE = `
insert into curfew_jobs (rank, queue, type, state, priority, created_at, wake, wake_at, wait_at, total_at, heartbeat,
                         options, id, payload)
select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, key, value from json_each(?)`;

/** Adds a job. Takes the columns as they are named. Inserts nothing if a live job has its id or its unique key. */
export const INSERT = `
insert into curfew_jobs (id, fence, queue, type, priority, created_at, needs, workflow, limit_key, unique_key, payload, options,
                         ${IMAGE_COLUMNS.join(", ")})
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${IMAGE_COLUMNS.map(() => "?").join(", ")})
on conflict do nothing`;

/** One row if a finished job has this id. */
export const IS_DONE = "select 1 from curfew_done where id = ?";

/** The live job that holds a unique key. Gives its id. */
export const HOLDER = "select id from curfew_jobs where unique_key = ?";

/** Unique keys and the live jobs that hold them, in the order of the keys. Takes the key to go on after, and a limit. */
export const HOLDERS = `
select unique_key, id from curfew_jobs where unique_key is not null and unique_key > ? order by unique_key limit ?`;

const PLACE = "j.id, j.rowid, j.state, j.fence, j.rev, j.queue, octet_length(j.payload)";

/** Where live jobs stand. Takes a JSON array of ids. Gives PLACE; nothing for others. */
export const LOCATE = `select ${PLACE} from json_each(?) s cross join curfew_jobs j on j.id = s.value`;
/** LOCATE for finished jobs. */
export const LOCATE_DONE = `select ${PLACE} from json_each(?) s cross join curfew_done j on j.id = s.value`;

/** Writes a live image. Takes next fence or null, the image, the documents, rows. */
export const WRITE = `
update curfew_jobs set rev = rev + 1, ${SET_FENCE}, ${SET_IMAGE}, ${SET_DOCUMENTS} where ${ROWS}`;

/** Writes a new final image over finished jobs. Takes what FINISH does. */
export const WRITE_DONE = `
update curfew_done
   set rev = rev + 1, ${SET_FENCE}, ${SET_IMAGE}, ${SET_DOCUMENTS}, finished_at = ?, prune_at = ?, dead_letter = ?
 where ${ROWS}`;

/**
 * Copies live jobs to the finished ones, where their unique keys hold nobody off. Takes next fence or null, the image,
 * the documents, finished_at, prune_at, dead_letter, rows.
 */
export const FINISH = `
insert into curfew_done (${MOVED_INTO}, finished_at, prune_at, dead_letter, unique_key)
select ${MOVED}, ?, ?, ?, unique_key from curfew_jobs where ${ROWS}`;

/**
 * Copies a finished job back to the live ones. It takes its unique key back unless another job has it by now; two that
 * share a key must therefore not come in one call. Takes what WRITE does.
 */
export const REVIVE = `
insert into curfew_jobs (${MOVED_INTO}, unique_key)
select ${MOVED}, iif(exists (select 1 from curfew_jobs j where j.unique_key = d.unique_key), null, unique_key)
  from curfew_done d where ${ROWS}`;

/** Writes documents only; the revision stays. Takes next fence or null, the documents, rows. */
export const NOTE = `update curfew_jobs set ${SET_FENCE}, ${SET_DOCUMENTS} where ${ROWS}`;
/** NOTE for finished jobs. */
export const NOTE_DONE = `update curfew_done set ${SET_FENCE}, ${SET_DOCUMENTS} where ${ROWS}`;

/** Takes rows. */
export const DELETE = `delete from curfew_jobs where ${ROWS}`;
/** DELETE for finished jobs. */
export const DELETE_DONE = `delete from curfew_done where ${ROWS}`;

/** A whole job, live or finished. Takes the id twice. One statement, so that a job on its way between the two is seen. */
export const LOAD = `
select ${LIVE} from curfew_jobs where id = ? union all select ${DONE} from curfew_done where id = ?`;

/** Moves the end of leases, which no index holds. Takes stall_at and rows. */
export const BEAT = `update curfew_jobs set stall_at = ? where ${ROWS}`;

/** Whether the next need is the last one, or the last but one of a job with a limit. */
const IS_WOKEN = "(needs = 1 or (needs = 2 and limit_key is not null))";

/**
 * Counts down what a waiting job still needs; at zero, and with a limit at one, it is due to be judged. Takes now and the
 * id. Being woken is a revision, or an outsider who read the row before would write an older wake_at over it.
 */
export const COUNT_DOWN = `
update curfew_jobs
   set needs = needs - 1, rev = iif(${IS_WOKEN}, rev + 1, rev), wake = iif(${IS_WOKEN}, 0, wake),
       wake_at = iif(${IS_WOKEN}, ?, wake_at)
 where id = ? and state in (${PENDING}, ${SCHEDULED}) and needs > 0`;

/** Moves the best jobs behind a limit to available. Takes limit and how many. Gives their queues. */
export const ADMIT = `
update curfew_jobs set ${MADE_AVAILABLE}
 where rowid in (
         select rowid from curfew_jobs indexed by curfew_jobs_limit
          where limit_key = ? and state = ${PENDING} and needs = 0 order by rank, id limit ?)
returning queue`;

/** The next instant at which a job or record is due; null when nothing is pending. */
export const NEXT_WAKE = `
select min(next_at) from (
  select min(wake_at) as next_at from curfew_jobs indexed by curfew_jobs_wake where wake = 0 and wake_at is not null
  union all
  select min(wake_at) from curfew_jobs indexed by curfew_jobs_wake where wake = 1 and wake_at is not null
  union all
  select min(wake_at) from curfew_records indexed by curfew_records_wake where wake_at is not null)`;

/** Rows that are due to be promoted. Takes now and limit. Gives rowid and size. */
export const PROMOTABLE = `
select rowid, octet_length(payload) from curfew_jobs indexed by curfew_jobs_wake
 where wake = 1 and wake_at <= ? order by wake_at limit ?`;

/** Makes rows of PROMOTABLE available, in the same transaction. Takes rows. Gives their queues. */
export const PROMOTE = `update curfew_jobs set ${MADE_AVAILABLE} where ${ROWS} returning queue`;

/** Rows that are due to be judged. Takes and gives what PROMOTABLE does. */
export const JUDGEABLE = `
select rowid, octet_length(payload) from curfew_jobs indexed by curfew_jobs_wake
 where wake = 0 and wake_at <= ? order by wake_at limit ?`;

/** Hands out rows of JUDGEABLE; nobody else gets them before the hold is over. Takes hold and rows. Gives jobs. */
export const HOLD_DUE_JOBS = `update curfew_jobs set wake_at = ? where ${ROWS} returning ${LIVE}`;

const RECORD = "kind, key, version, wake_at, body";

/** Hands out due records; nobody else gets them before the hold is over. Takes hold, now, limit. Gives RECORD. */
export const HOLD_DUE_RECORDS = `
update curfew_records set wake_at = ?
 where (kind, key) in (
         select kind, key from curfew_records indexed by curfew_records_wake
          where wake_at <= ? order by wake_at limit ?)
returning ${RECORD}`;

/** Takes kind and key. */
export const LOAD_RECORD = `select ${RECORD} from curfew_records where kind = ? and key = ?`;

/** A page of records of one kind. Takes kind, the key it comes after (null for the first page, twice), limit. */
export const LIST_RECORDS = `
select ${RECORD} from curfew_records where kind = ? and key >= coalesce(?, '') and key is not ? order by key limit ?`;

/** Writes a record, whatever is there. Takes kind, key, wake_at, body. */
export const PUT_RECORD = `
insert into curfew_records (kind, key, version, wake_at, body)
values (?, ?, (select version + 1 from curfew_record_floor), ?, ?)
on conflict (kind, key) do update set version = version + 1, wake_at = excluded.wake_at, body = excluded.body`;

/** Goes before a DELETE_RECORD, so that no version of the record comes back. Takes kind and key. */
export const RAISE_FLOOR = `
update curfew_record_floor as f set version = r.version
  from curfew_records r where r.kind = ? and r.key = ? and r.version > f.version`;

/** Takes kind and key. */
export const DELETE_RECORD = "delete from curfew_records where kind = ? and key = ?";

/** Takes at and body. */
export const ADD_EVENT = "insert into curfew_events (at, body) values (?, ?)";

/** A line of a job's log. Takes job, job, body. Gives its number. */
export const ADD_LOG = `
insert into curfew_logs (job, seq, body)
values (?, (select coalesce(max(seq), 0) + 1 from curfew_logs where job = ?), ?)
returning seq`;

/** Forgets a job's oldest lines. Takes job and the last number to forget. */
export const TRIM_LOG = "delete from curfew_logs where job = ? and seq <= ?";

/** One row if any job has a log. */
export const ANY_LOG = "select 1 from curfew_logs limit 1";

/** Forgets the lines of jobs. Takes a JSON array of their ids. */
export const FORGET_LOGS = "delete from curfew_logs where job in (select value from json_each(?))";

/** Finished jobs that need not be kept. Takes now and limit. Gives rowid and size. */
export const PRUNABLE = `
select rowid, octet_length(payload) from curfew_done indexed by curfew_done_prune
 where prune_at <= ? order by prune_at limit ?`;

/** Deletes rows of PRUNABLE, in the same transaction. Takes rows. Gives their ids. */
export const PRUNE = `delete from curfew_done where ${ROWS} returning id`;

/**
 * Deletes events from before an instant. Takes how many to look at, and the instant. It looks at the oldest rows only:
 * they lie nearly in the order of time, so no index on `at` is needed.
 */
export const PRUNE_EVENTS = `
delete from curfew_events
 where seq in (select seq from (select seq, at from curfew_events order by seq limit ?) where at < ?)`;

/** The newest events before a number, newest first. Takes the number and limit. Gives seq and body. */
export const LATEST_EVENTS = "select seq, body from curfew_events where seq < ? order by seq desc limit ?";

/** Events in the order of their commits. Takes the number they come after, and limit. Gives seq and body. */
export const READ_EVENTS = "select seq, body from curfew_events where seq > ? order by seq limit ?";

/** A page of lines of a job's log. Takes the job, the number they come after, and limit. Gives seq and body. */
export const READ_LINES = "select seq, body from curfew_logs where job = ? and seq > ? order by seq limit ?";

/** Takes origin and body. */
export const ADD_HINTS = "insert into curfew_hints (origin, body) values (?, ?)";

/** Takes the last number to forget. */
export const TRIM_HINTS = "delete from curfew_hints where seq <= ?";

/** Hints of others. Takes the number they come after, and one's own origin. Gives seq and body. */
export const READ_HINTS = "select seq, body from curfew_hints where seq > ? and origin <> ? order by seq";

export const LAST_HINT = "select coalesce(max(seq), 0) from curfew_hints";

/** A number that changes when another connection has committed, in this process or another. */
export const DATA_VERSION = "pragma data_version";

/** How long the log is and how much of it is in the file already, in pages. Gives 0, all, done. */
export const LOG_SIZE = "pragma wal_checkpoint(noop)";

/** Takes the id a stretch begins after and its length less one. Gives the last id of the stretch, if it is that long. */
export const STRETCH_END = "select id from curfew_jobs where id > ? order by id limit 1 offset ?";
/** STRETCH_END for finished jobs. */
export const STRETCH_END_DONE = "select id from curfew_done where id > ? order by id limit 1 offset ?";

/** How many live jobs of a stretch there are by queue, type and state. Takes the id it begins after and its last id. */
export const COUNT_LIVE = `
select queue, type, state, count(*) from curfew_jobs where id > ? and id <= ? group by queue, type, state`;
