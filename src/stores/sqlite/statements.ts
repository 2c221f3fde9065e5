import { claimedValues, fairValues } from "../sql/claimed-row.ts";
import {
  briefColumns,
  DOCUMENT_COLUMNS,
  END_COLUMNS,
  IMAGE_COLUMNS,
  JOB_COLUMNS,
  STATE_CODES,
} from "../sql/row-codec.ts";

/*
 * All statements of the store. Parameters are positional, in the order that the headers name. `indexed by` fixes the
 * plan: a claim must not scan the table after the owner of the file runs ANALYZE. No statement reads a clock: time is
 * passed in.
 *
 * Running a statement costs about as much as writing a row, so rows with equal changes share one statement, which
 * takes the rows last, as a JSON array. Values that differ per row are bound and never put into the array: reading
 * one from it costs three times as much as binding it.
 */

const PENDING = STATE_CODES.pending;
const AVAILABLE = STATE_CODES.available;
const SCHEDULED = STATE_CODES.scheduled;
const ACTIVE = STATE_CODES.active;

const JOB = JOB_COLUMNS.join(", ");
export const DONE = [...JOB_COLUMNS, ...END_COLUMNS].join(", ");
/** A live job with the columns of a finished one. */
export const LIVE = `${JOB}, null, null, 0`;

/** A null document stays; the empty text clears it. */
const WRITTEN_DOCUMENTS = DOCUMENT_COLUMNS.map((name) => `nullif(coalesce(?, ${name}), '')`);
/** A null rank stays: jobs that differ only in it can be written together. */
const imageValue = (name: string) => (name === "rank" ? "coalesce(?, rank)" : "?");
const SET_IMAGE = IMAGE_COLUMNS.map((name) => `${name} = ${imageValue(name)}`).join(", ");
const SET_DOCUMENTS = DOCUMENT_COLUMNS.map((name, index) => `${name} = ${WRITTEN_DOCUMENTS[index]}`).join(
  ", ",
);
const SET_FENCE = "fence = coalesce(?, fence)";

/** The rows of a statement: a JSON array of rowids. */
const ROWS = "rowid in (select value from json_each(?))";
const ROW_RANGE = "rowid between ? and ?";

const ranged = new Map<string, string>();

/**
 * A statement that takes rows last, for rows without a gap: it takes the first and the last of them, which is
 * cheaper.
 */
export function byRange(text: string): string {
  let found = ranged.get(text);
  if (found === undefined) {
    found = text.replace(ROWS, ROW_RANGE);
    ranged.set(text, found);
  }
  return found;
}

/** The columns of a job that no write changes. */
const UNCHANGED =
  "id, queue, type, priority, created_at, claimed_at, worker, needs, workflow, limit_key, fair_key, payload";
const MOVED_INTO = `${UNCHANGED}, rev, fence, ${IMAGE_COLUMNS.join(", ")}, ${DOCUMENT_COLUMNS.join(", ")}`;
const MOVED = `${UNCHANGED}, rev + 1, coalesce(?, fence), ${IMAGE_COLUMNS.map(imageValue).join(", ")}, ${WRITTEN_DOCUMENTS.join(", ")}`;

/** The earlier of two instants; each may be null. */
const NEXT_LIMIT = "min(coalesce(wait_at, total_at), coalesce(total_at, wait_at))";
/** `availableRow`, core/job/decide/store-formulas.ts. */
const MADE_AVAILABLE = `state = ${AVAILABLE}, wake = 0, wake_at = ${NEXT_LIMIT}, rev = rev + 1`;

/** Takes the write lock at once: a transaction that began by reading could not be repeated after it is refused. */
export const BEGIN = "begin immediate";
export const COMMIT = "commit";
export const ROLLBACK = "rollback";

/** They return the mode that the file has then. */
export const JOURNAL_WAL = "pragma journal_mode = wal";
export const JOURNAL_DELETE = "pragma journal_mode = delete";
/** Reads something, because a transaction sees the file as it is at its first read. */
export const SNAPSHOT = "select count(*) from sqlite_schema";
/** Returns "ok", or what is damaged. */
export const QUICK_CHECK = "pragma quick_check(1)";

/** In a caller's transaction, a failed call is rolled back to its savepoint, and the caller's work stays. */
export const BEGIN_PART = "savepoint curfew";
export const KEEP_PART = "release curfew";
export const UNDO_PART = "rollback to curfew";

/** The file of a handle; empty for a database in memory. */
export const DATABASE_FILE = "select file from pragma_database_list where name = 'main'";

/** How durable a handle's commits are: 0 is off. */
export const SYNCHRONOUS = "select synchronous from pragma_synchronous";

/** How the file is written, and how much of it is used. */
export const PRAGMAS = `
  select page_size, page_count, freelist_count, journal_mode, sqlite_version()
  from pragma_page_size, pragma_page_count, pragma_freelist_count, pragma_journal_mode`;

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

/** One row if the file has a clock. */
export const HAS_CLOCK = "select 1 from sqlite_schema where type = 'table' and name = 'curfew_clock'";

/** The moment from which all processes count, if there is one. Returns boot, monotonic, slept, wall, time. */
export const READ_ANCHOR = "select boot, monotonic, slept, wall, time from curfew_clock";

/** Takes what READ_ANCHOR returns. */
export const PUT_ANCHOR = `
insert into curfew_clock (id, boot, monotonic, slept, wall, time) values (1, ?, ?, ?, ?, ?)
on conflict (id) do update set boot = excluded.boot, monotonic = excluded.monotonic, slept = excluded.slept,
                               wall = excluded.wall, time = excluded.time`;

/** One available job of a queue, if there is any. Takes queue and lowest rank. */
export const PEEK = `
select 1 from curfew_jobs indexed by curfew_jobs_ready where queue = ? and state = ${AVAILABLE} and rank >= ? limit 1`;

/** One row if a queue is paused. Takes the queue. */
export const PAUSED = "select 1 from curfew_records where kind = 'pause' and key = ?";

/** A job after its claim (`claimedRow`, core/job/decide/store-formulas.ts). The fence counter grows by one, and the salt becomes its low 21 bits. */
const VALUES = { fence: "(((fence >> 21) + 1) << 21) | ?", rev: "rev + 1", array: "json_array" };
const CLAIMED = claimedValues(VALUES);
export const CLAIMED_FAIR = fairValues(VALUES);

/**
 * A queue's best available jobs, best first, as they are after their claim. Takes salt, queue, lowest rank, limit.
 * Returns CLAIMED and the rowid.
 */
export const CLAIMABLE = `
select ${CLAIMED}, rowid from curfew_jobs indexed by curfew_jobs_ready
 where queue = ? and state = ${AVAILABLE} and rank >= ? order by rank, id limit ?`;

/**
 * Claims rows of CLAIMABLE in the same transaction. Takes fence, claimed_at, worker, stall_at, wake_at, rows. A
 * failure rolls back the transaction, so `or fail` saves SQLite from preparing to roll back the statement alone.
 */
export const CLAIM = `
update or fail curfew_jobs
   set state = ${ACTIVE}, wake = 0, rev = rev + 1, fence = ?, claimed_at = ?, worker = ?, stall_at = ?, wake_at = ?
 where ${ROWS}`;

/**
 * Adds jobs that differ only in id and payload and have generated ids. Takes once for all: rank, queue, type, state,
 * priority, created_at, wake, wake_at, wait_at, total_at, heartbeat, options, fair_key; then a JSON object of payloads by id,
 * from which SQLite reads both without parsing again. Fails as a whole if an id is known.
 */
export const INSERT_ALIKE = `
insert into curfew_jobs (rank, queue, type, state, priority, created_at, wake, wake_at, wait_at, total_at, heartbeat,
                         options, fair_key, id, payload)
select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, key, value from json_each(?)`;

/**
 * INSERT_ALIKE for jobs of several fair keys. Takes the same without fair_key; then the length of an id, the same and one more, and the JSON
 * object, whose names are an id and the fair key after it.
 */
export const INSERT_KEYED = `
insert into curfew_jobs (rank, queue, type, state, priority, created_at, wake, wake_at, wait_at, total_at, heartbeat,
                         options, id, fair_key, payload)
select ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, substr(key, 1, ?), substr(key, ?), value from json_each(?)`;

/** Adds a job. Takes the columns in the order below. Inserts nothing if a live job has its id or its unique key. */
export const INSERT = `
insert into curfew_jobs (id, fence, queue, type, priority, created_at, needs, workflow, limit_key, fair_key, unique_key, payload,
                         options, ${IMAGE_COLUMNS.join(", ")})
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${IMAGE_COLUMNS.map(() => "?").join(", ")})
on conflict do nothing`;

/** One row if a finished job has this id. */
export const IS_DONE = "select 1 from curfew_done where id = ?";

/** The live job that holds a unique key. Returns its id. */
export const HOLDER = "select id from curfew_jobs where unique_key = ?";

/**
 * Unique keys and the live jobs that hold them, in the order of the keys. Takes the key to continue after, and a
 * limit.
 */
export const HOLDERS = `
select unique_key, id from curfew_jobs where unique_key is not null and unique_key > ? order by unique_key limit ?`;

/** The unique keys of live and finished jobs. Takes a JSON array of ids, twice. Returns id and key. */
export const UNIQUE_KEYS = `
select j.id, j.unique_key from json_each(?) s cross join curfew_jobs j on j.id = s.value where j.unique_key is not null
union all
select j.id, j.unique_key from json_each(?) s cross join curfew_done j on j.id = s.value where j.unique_key is not null`;

const LOCATION = "j.id, j.rowid, j.state, j.fence, j.rev, j.queue, octet_length(j.payload), j.rank";

/** The positions of live jobs. Takes a JSON array of ids. Returns LOCATION; nothing for other ids. */
export const LOCATE = `select ${LOCATION} from json_each(?) s cross join curfew_jobs j on j.id = s.value`;
/** LOCATE by numbers. Takes rows. */
export const LOCATE_ROWS = `select ${LOCATION} from curfew_jobs j where ${ROWS}`;
/** LOCATE for finished jobs. */
export const LOCATE_DONE = `select ${LOCATION} from json_each(?) s cross join curfew_done j on j.id = s.value`;

/** Writes a live image. Takes next fence or null, the image, the documents, rows. */
export const WRITE = `
update curfew_jobs set rev = rev + 1, ${SET_FENCE}, ${SET_IMAGE}, ${SET_DOCUMENTS} where ${ROWS}`;

/** Writes a new final image over finished jobs. Takes what FINISH does. */
export const WRITE_DONE = `
update curfew_done
   set rev = rev + 1, ${SET_FENCE}, ${SET_IMAGE}, ${SET_DOCUMENTS}, finished_at = ?, prune_at = ?, dead_letter = ?
 where ${ROWS}`;

/**
 * Copies live jobs to the finished ones, where their unique keys block no other job. Takes next fence or null, the
 * image, the documents, finished_at, prune_at, dead_letter, rows.
 */
export const FINISH = `
insert into curfew_done (${MOVED_INTO}, finished_at, prune_at, dead_letter, unique_key)
select ${MOVED}, ?, ?, ?, unique_key from curfew_jobs where ${ROWS}`;

/**
 * Copies a finished job back to the live ones. It takes its unique key back unless another job holds it, so two jobs
 * with the same key must not be in one call. Takes what WRITE does.
 */
export const REVIVE = `
insert into curfew_jobs (${MOVED_INTO}, unique_key)
select ${MOVED}, iif(exists (select 1 from curfew_jobs j where j.unique_key = d.unique_key), null, unique_key)
  from curfew_done d where ${ROWS}`;

/** Writes only documents; the revision stays. Takes next fence or null, the documents, rows. */
export const NOTE = `update curfew_jobs set ${SET_FENCE}, ${SET_DOCUMENTS} where ${ROWS}`;
/** NOTE for finished jobs. */
export const NOTE_DONE = `update curfew_done set ${SET_FENCE}, ${SET_DOCUMENTS} where ${ROWS}`;

/** Takes rows. */
export const DELETE = `delete from curfew_jobs where ${ROWS}`;
/** DELETE for finished jobs. */
export const DELETE_DONE = `delete from curfew_done where ${ROWS}`;

/**
 * A whole job, live or finished. Takes the id twice. One statement, so that a job that moves between the tables is
 * found.
 */
export const LOAD = `
select ${LIVE} from curfew_jobs where id = ? union all select ${DONE} from curfew_done where id = ?`;

/** The same without large documents. */
export const LOAD_BRIEF = `
select ${briefColumns(LIVE)} from curfew_jobs where id = ? union all select ${briefColumns(DONE)} from curfew_done where id = ?`;

/** Moves `stall_at`, which is in no index. Takes stall_at and rows. */
export const BEAT = `update curfew_jobs set stall_at = ? where ${ROWS}`;

/** Whether the next countdown reaches zero, or reaches one for a job with a limit key. */
const IS_WOKEN = "(needs = 1 or (needs = 2 and limit_key is not null))";

/**
 * Decrements `needs` of a waiting job (`countedDownRow`, core/job/decide/store-formulas.ts). At zero, and with a limit key at one, the job is woken for a decision. Takes
 * now and the id. Waking increases the revision. Otherwise a writer that read the row before would write an older
 * wake_at over it.
 */
export const COUNT_DOWN = `
update curfew_jobs
   set needs = needs - 1, rev = iif(${IS_WOKEN}, rev + 1, rev), wake = iif(${IS_WOKEN}, 0, wake),
       wake_at = iif(${IS_WOKEN}, ?, wake_at)
 where id = ? and state in (${PENDING}, ${SCHEDULED}) and needs > 0`;

/** Makes the best jobs that wait for a limit available. Takes limit key and how many. Returns their queues. */
export const ADMIT = `
update curfew_jobs set ${MADE_AVAILABLE}
 where rowid in (
         select rowid from curfew_jobs indexed by curfew_jobs_limit
          where limit_key = ? and state = ${PENDING} and needs = 0 order by rank, id limit ?)
returning queue`;

/** The next instant at which a job or record is due; null if there is none. */
export const NEXT_WAKE = `
select min(next_at) from (
  select min(wake_at) as next_at from curfew_jobs indexed by curfew_jobs_wake where wake = 0 and wake_at is not null
  union all
  select min(wake_at) from curfew_jobs indexed by curfew_jobs_wake where wake = 1 and wake_at is not null
  union all
  select min(wake_at) from curfew_records indexed by curfew_records_wake where wake_at is not null)`;

/** Rows that are due to be promoted. Takes now and limit. Returns rowid and size. */
export const PROMOTABLE = `
select rowid, octet_length(payload) from curfew_jobs indexed by curfew_jobs_wake
 where wake = 1 and wake_at <= ? order by wake_at limit ?`;

/** Makes rows of PROMOTABLE available, in the same transaction. Takes rows. Returns their queues. */
export const PROMOTE = `update curfew_jobs set ${MADE_AVAILABLE} where ${ROWS} returning queue`;

/** Rows that need a decision. Takes and returns what PROMOTABLE does. */
export const UNDECIDED = `
select rowid, octet_length(payload) from curfew_jobs indexed by curfew_jobs_wake
 where wake = 0 and wake_at <= ? order by wake_at limit ?`;

/** Holds rows of UNDECIDED for this caller. Takes the end of the hold and rows. Returns jobs. */
export const HOLD_DUE_JOBS = `update curfew_jobs set wake_at = ? where ${ROWS} returning ${LIVE}`;

const RECORD = "kind, key, version, wake_at, body";

/** Holds due records for this caller. Takes the end of the hold, now, limit. Returns RECORD. */
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

/** Takes kind, the key to begin before, the key to end after, limit. */
export const LIST_RECORDS_BACK = `
select ${RECORD} from curfew_records where kind = ? and key < ? and key > ? order by key desc limit ?`;

/** Writes a record, new or existing. Takes kind, key, wake_at, body. */
export const PUT_RECORD = `
insert into curfew_records (kind, key, version, wake_at, body)
values (?, ?, (select version + 1 from curfew_record_floor), ?, ?)
on conflict (kind, key) do update set version = version + 1, wake_at = excluded.wake_at, body = excluded.body`;

/** Run before DELETE_RECORD, so that no version of the record is reused. Takes kind and key. */
export const RAISE_FLOOR = `
update curfew_record_floor as f set version = r.version
  from curfew_records r where r.kind = ? and r.key = ? and r.version > f.version`;

/** Takes kind and key. */
export const DELETE_RECORD = "delete from curfew_records where kind = ? and key = ?";

/** Takes at and body. */
export const ADD_EVENT = "insert into curfew_events (at, body) values (?, ?)";

/** Adds a line to a job's log. Takes job, job, body. Returns its number. */
export const ADD_LOG = `
insert into curfew_logs (job, seq, body)
values (?, (select coalesce(max(seq), 0) + 1 from curfew_logs where job = ?), ?)
returning seq`;

/** Deletes a job's oldest lines. Takes job and the last number to delete. */
export const TRIM_LOG = "delete from curfew_logs where job = ? and seq <= ?";

/** One row if any job has a log. */
export const ANY_LOG = "select 1 from curfew_logs limit 1";

/** Deletes the logs of jobs. Takes a JSON array of their ids. */
export const FORGET_LOGS = "delete from curfew_logs where job in (select value from json_each(?))";

/** Finished jobs whose retention is over. Takes now and limit. Returns rowid and size. */
export const PRUNABLE = `
select rowid, octet_length(payload) from curfew_done indexed by curfew_done_prune
 where prune_at <= ? order by prune_at limit ?`;

/** Deletes rows of PRUNABLE, in the same transaction. Takes rows. Returns their ids. */
export const PRUNE = `delete from curfew_done where ${ROWS} returning id`;

/**
 * Deletes events older than an instant. Takes how many to read, and the instant. It reads only the oldest rows: they
 * are nearly in the order of time, so `at` needs no index.
 */
export const PRUNE_EVENTS = `
delete from curfew_events
 where seq in (select seq from (select seq, at from curfew_events order by seq limit ?) where at < ?)`;

/** The newest events before a number, newest first. Takes the number and limit. Returns seq and body. */
export const LATEST_EVENTS = "select seq, body from curfew_events where seq < ? order by seq desc limit ?";

/** Events in the order of their commits. Takes the number they come after, and limit. Returns seq and body. */
export const READ_EVENTS = "select seq, body from curfew_events where seq > ? order by seq limit ?";

/** A page of lines of a job's log. Takes the job, the number they come after, and limit. Returns seq and body. */
export const READ_LINES = "select seq, body from curfew_logs where job = ? and seq > ? order by seq limit ?";

/** Takes origin and body. */
export const ADD_HINTS = "insert into curfew_hints (origin, body) values (?, ?)";

/** Takes the last number to delete. */
export const TRIM_HINTS = "delete from curfew_hints where seq <= ?";

/** Hints of other origins. Takes the number they come after, and the own origin. Returns seq and body. */
export const READ_HINTS = "select seq, body from curfew_hints where seq > ? and origin <> ? order by seq";

export const LAST_HINT = "select coalesce(max(seq), 0) from curfew_hints";

/** A number that changes when another connection commits, in this process or another. */
export const DATA_VERSION = "pragma data_version";

/** Returns 1 if `LOG_SIZE` can be asked. SQLite before 3.51 would run a checkpoint instead. */
export const TELLS_LOG_SIZE = `
  select cast(substr(version, 3, instr(substr(version, 3), '.') - 1) as integer) >= 51
    from (select sqlite_version() as version)`;

/** The length of the log, and how much of it is in the file, in pages. Returns 0, all, done. */
export const LOG_SIZE = "pragma wal_checkpoint(noop)";

/**
 * Takes the id after which a range starts, and its length less one. Returns the last id of the range, if it is that
 * long.
 */
export const RANGE_END = "select id from curfew_jobs where id > ? order by id limit 1 offset ?";
/** RANGE_END for finished jobs. */
export const RANGE_END_DONE = "select id from curfew_done where id > ? order by id limit 1 offset ?";

/** Counts live jobs of a range by queue, type and state. Takes the id after which the range starts, and its last id. */
export const COUNT_LIVE = `
select queue, type, state, count(*) from curfew_jobs
 where id > ? and id <= ? and queue >= char(2) group by queue, type, state`;
