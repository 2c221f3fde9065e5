import type { NewEvent } from "../core/event/new-event.ts";
import type { NewJob } from "../core/job/envelope.ts";
import type { HeldSlots } from "../core/job/held-slots.ts";
import type { Fence, JobDocuments, JobId, JobImage, JobRow, JobState, Rank } from "../core/job/job.ts";
import type { JobFilter, ScanFilter } from "../core/job/job-filter.ts";
import type { KeyLimit, KeyUse } from "../core/limit/limit.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { NewTimeout, Owner, TimeoutId } from "../core/timeout/timeout.ts";
import type { Revoked, TimeoutStore, Which } from "./timeouts.ts";

export type { HeldSlots, JobFilter, ScanFilter };

/**
 * What storage must offer. Stores claim, commit and list; they contain no rule about jobs beyond comparing fences,
 * revisions and versions. Time is always passed in. Calls that take a list answer per item, in order; nothing
 * expected (a lost fence, a known id) throws.
 */
export interface Store {
  readonly capabilities: Capabilities;
  readonly jobs: JobStore;
  readonly records: RecordStore;
  readonly timeouts: TimeoutStore;
  readonly inspect: Inspector;
  /**
   * The store's own time, which is everybody's, in whole milliseconds rounded down: see SEMANTICS 3.10. Nothing else in
   * a store reads a clock.
   */
  clock(): Promise<Instant>;
  /**
   * Writes guarded units, in their order. Each is all or nothing, whatever becomes of the others, and sees what those
   * before it in the call have written; what other calls write may come in between. All of them are durable when it
   * answers. A call that throws may have written some units and not others: whoever repeats it learns which by the
   * guards.
   */
  commit(units: readonly Unit[], options: CommitOptions): Promise<Outcome[]>;
  /**
   * Calls back with hints, which may be lost or doubled; whoever listens polls as well. A hint comes after the commit
   * that it tells of. A listener that is given twice is called twice.
   */
  listen(onHint: (hint: Hint) => void): Promise<AsyncDisposable>;
  /** From then on every call is refused with the code `closed`, a second close excepted. */
  close(): Promise<void>;
}

export interface CommitOptions {
  readonly now: Instant;
  /**
   * The caller's own transaction, where the store has such a thing. A call that fails in it leaves nothing of itself
   * behind, and the caller's own work stays. What it wrote is told when the caller commits.
   */
  readonly tx?: unknown;
  /**
   * It need not have reached the disk when it is answered: everybody sees it at once, and a crash of the machine may
   * take it back together with the claim it belongs to. For starts of attempts, never for verdicts.
   */
  readonly relaxed?: boolean;
}

/** What a store can do, as data: the conformance kit prints what it skips, the engine refuses what cannot work. */
export interface Capabilities {
  readonly name: string;
  /** Units are atomic across the whole store, or within one slot of a cluster. */
  readonly atomic: "store" | "slot";
  /** An acknowledged write survives a crash of the store (`ack`), may lose the last moment (`interval`), or is gone with the process. */
  readonly durable: "ack" | "interval" | "none";
  /** Whether `tx` is understood. */
  readonly tx: boolean;
  /** Whether `listen` reaches other processes, or only polling does. */
  readonly hints: "push" | "poll";
}

/**
 * The most items one call may bring or ask for; a caller with more splits them, so that no call holds a store for long.
 * How many bytes they make is the store's to bound: it splits what is too much for one statement or transaction.
 */
export const BATCH_LIMIT = 1_000;

/** The most characters of what is looked up by equality: unique keys, limits, workflows, kinds and keys of records. */
export const NAME_LIMIT = 512;

export interface JobStore {
  /**
   * Adds jobs, each by itself and in their order: a call that throws may have added some of them. All that were created
   * are durable when it answers.
   */
  enqueue(jobs: readonly NewJob[], options: EnqueueCallOptions): Promise<Enqueued[]>;
  /**
   * Takes the best available jobs of a queue exclusively, in the order (rank, id), and writes of each what `decide`
   * makes of a claim; a paused queue gives none. It gives fewer than `limit` only if there are no more that others do not
   * hold at this moment.
   */
  claim(request: ClaimRequest): Promise<JobRow[]>;
  /**
   * Renews the worker's record, moves `stallAt` of jobs that name one and still hold, and tells what became of each job.
   * A beat is no revision. A job that is named twice has no promised answer.
   */
  beat(request: BeatRequest): Promise<BeatAnswer[]>;
  /**
   * Promotes what is due and ready in one set, and hands out what must be judged; nobody else gets it until `holdUntil`.
   * A hold is neither a revision nor a version: a verdict is committed under those that were handed out.
   */
  sweep(request: SweepRequest): Promise<Swept>;
  /** Live and finished jobs by id, null for those that are unknown. */
  load(ids: readonly JobId[]): Promise<(JobRow | null)[]>;
  /** Deletes finished jobs whose `pruneAt` has come, and events from before `eventsBefore`; at most `limit` of each. */
  prune(request: {
    readonly now: Instant;
    readonly eventsBefore: Instant;
    readonly limit: number;
  }): Promise<number>;
}

export interface EnqueueCallOptions extends CommitOptions {
  /**
   * How many jobs may wait in these queues, whatever for: available, pending, scheduled and retryable ones together. A job
   * for which there is no room is answered `full`; the count holds over all processes. Queues that are not named are not
   * counted.
   */
  readonly bounds?: ReadonlyMap<string, number>;
  /** Is told how many jobs wait in each bounded queue once these are stored; in a bounded queue only up to its bound. */
  readonly onDepth?: (queue: string, waiting: number) => void;
}

/**
 * `exists`: the id is known, of a live job or a finished one, and nothing was changed. `duplicate`: a live job holds the
 * unique key. `full`: its queue is bounded and holds as many waiting jobs as it may. A job gives its unique key up when it ends, and takes it back when it is revived and nobody else has it.
 */
export type Enqueued = "created" | "exists" | "full" | { readonly duplicate: JobId };

export interface ClaimRequest {
  readonly queue: string;
  readonly limit: number;
  readonly now: Instant;
  /** How long the claim holds before the handler must have been entered. */
  readonly lease: number;
  /** 21 random bits for the fences of this claim. */
  readonly salt: number;
  readonly worker: string;
  /** Jobs of a lower rank are passed over: a hint that saves a store from walking its own dead entries. 0 for all. */
  readonly from: Rank;
  /**
   * How many jobs of the queue may be active, over all processes: it gives only as many as that leaves room for. What is
   * claimed so, and has no limit, is marked with `queueMark` as its limit, and only limited jobs are counted: a job that was
   * claimed before the queue had a limit is not. Left out: no limit.
   */
  readonly most?: number;
}

export interface BeatRequest {
  readonly now: Instant;
  /** Written as the record `["worker", id]`. */
  readonly worker: { readonly id: string; readonly body: Json; readonly wakeAt: Instant };
  readonly jobs: readonly {
    readonly id: JobId;
    readonly fence: Fence;
    readonly rev: number;
    readonly stallAt?: Instant;
    /** What is told of it, in the same write, if its `stallAt` is moved. */
    readonly records?: NewEvent;
  }[];
}

/**
 * `changed`: the fence still holds, but somebody wrote the row (an extension): load it again. `lost`: another fence
 * holds, or the job is no longer active.
 */
export type BeatAnswer = "ok" | "changed" | { readonly lost: JobState | "gone" };

export interface SweepRequest {
  readonly now: Instant;
  /** For each of the three kinds: jobs to promote, jobs to judge, records. A flood of one does not starve the others. */
  readonly limit: number;
  readonly holdUntil: Instant;
}

export interface Swept {
  /** How many jobs became available, by queue. */
  readonly ready: ReadonlyMap<string, number>;
  readonly jobs: JobRow[];
  readonly records: RecordRow[];
  /** When something will be due next, after this sweep; not later than `now` if it left something. Null: never. */
  readonly nextWakeAt: Instant | null;
}

export type RecordKey = readonly [kind: string, key: string];

/** Versioned documents with a time to look at them again: workers, pauses, queues, sagas, cron, limits. */
export interface RecordRow {
  readonly key: RecordKey;
  /**
   * Grows with each `put`; by how much is the store's own business. It never comes back, not even when the record is
   * deleted and put again: so the version at which a record was created tells it from all others of the same key.
   */
  readonly version: number;
  readonly wakeAt: Instant | null;
  readonly body: Json;
}

export interface RecordStore {
  load(keys: readonly RecordKey[]): Promise<(RecordRow | null)[]>;
  /** Records of a kind in the order of their keys. */
  list(kind: string, after: string | null, limit: number): Promise<RecordRow[]>;
}

/** The record whose existence pauses a queue: a claim looks at it, so a pause holds from the moment it is committed. */
export function pauseKey(queue: string): RecordKey {
  return ["pause", queue];
}

/** The record that overrules what the jobs of a limit say (a `LimitOverride`): `admit` and `spend` look at it. */
export function limitRecordKey(limitKey: string): RecordKey {
  return ["limit", limitKey];
}

/** The kind of the records that remember starts behind limits; each is due when its start no longer counts. */
export const START_KIND = "start";

/** The record of one start behind a limit. */
export function startKey(limitKey: string, by: string): RecordKey {
  return [START_KIND, `${startsOf(limitKey).from}${by}`];
}

/** Where the keys of a limit's starts lie: its length goes first, so that no name of a limit is the beginning of another. */
export function startsOf(limitKey: string): { readonly from: string; readonly to: string } {
  const name = `${limitKey.length} ${limitKey}`;
  return { from: `${name} `, to: `${name}!` };
}

/** The limit of a job that has none of its own, once it was claimed under the limit of its whole queue. */
export function queueMark(queue: string): string {
  return `queue ${queue}`;
}

export interface Unit {
  /** The job this unit writes: the fence is the guard, and so is `rev` where it is named. */
  readonly job?: JobWrite;
  readonly when?: readonly Guard[];
  readonly effects?: readonly Effect[];
}

/**
 * Without an image only documents are written, and the revision stays; with neither, the guard alone is looked at. A
 * write without `rev` is an attempt's, which has nothing to say about a job that has ended: it is answered `lost`, also
 * under the fence that the job ended with. A write that names the revision may change a finished job, or revive it.
 */
export interface JobWrite {
  readonly id: JobId;
  readonly fence: Fence;
  /** Named by outsiders, and by verdicts that an outsider's change would spoil. */
  readonly rev?: number;
  /** The whole new image. Writing it is a revision more. */
  readonly image?: JobImage;
  /** Those that are named are written, null clears one, and the others stay. */
  readonly documents?: JobDocuments;
  /** The fence from now on: an outsider's verdict voids the one that an attempt holds. */
  readonly nextFence?: Fence;
  /** Its holder shall hear at once that somebody wrote the row, although its fence still holds. */
  readonly notifyHolder?: true;
  /** Delete the job instead of keeping it, and its log with it. */
  readonly drop?: true;
}

/**
 * `version` 0 means that the record must not exist. A timeout must be held by its owner, under a lease that still runs.
 * An idle timeout must have no owner, be due at this instant, and be dead or not as named: operators change it so.
 */
export type Guard =
  | { readonly record: RecordKey; readonly version: number }
  | { readonly timeout: TimeoutId; readonly owner: Owner }
  | IdleGuard;

export interface IdleGuard {
  readonly idle: TimeoutId;
  readonly dueAt: Instant;
  readonly isDead: boolean;
}

/** What a unit does beside its job. None of it fails: what cannot be done is left out. Records are written in the order given. */
export type Effect =
  /** Adds a job; one whose id or unique key is taken is left out. */
  | { readonly enqueue: NewJob }
  /**
   * Counts down what a pending or scheduled job still needs; at zero the job is woken to be judged, and that is a
   * revision. One with a limit is woken at one as well: then it needs only the word that its limit may let it through.
   */
  | { readonly countdown: JobId }
  /** Writes another job's image if it is still live, whatever its fence; its attempt, if any, is voided. */
  | { readonly stop: JobId; readonly image: JobImage; readonly nextFence: Fence }
  | { readonly put: RecordKey; readonly body: Json; readonly wakeAt: Instant | null }
  | { readonly delete: RecordKey }
  /**
   * Moves the best `count` jobs that wait behind a limit to available; under a limit, no more than it has room for.
   * Whoever asks at the same time waits, so that no limit is ever exceeded. Within one call a store may put it off until
   * it has written the jobs of the units behind it.
   */
  | { readonly admit: string; readonly count: number; readonly limit?: KeyLimit }
  /**
   * Remembers that a job behind the limit started, until the rate of its limit no longer counts it; under the same `by` it
   * is remembered once. Without a rate, and when that time is over already, it does nothing.
   */
  | { readonly spend: string; readonly by: string; readonly at: Instant; readonly limit: KeyLimit }
  /** Tells those who listen that a queue may have something to claim. */
  | { readonly ready: string }
  /** Inserts a timeout; a known id does nothing, a known key replaces what has it. */
  | { readonly request: NewTimeout }
  /** Removes timeouts, held or not; the outcome says how many. */
  | { readonly revoke: Which }
  /** Removes the one timeout, whoever holds it: its guard says who that must be. */
  | { readonly remove: TimeoutId }
  | NewEvent
  /** A line of a job's log, which goes when the job does; of a log the last 1,000 lines are kept. */
  | { readonly log: Json; readonly job: JobId };

/**
 * `lost`: another fence holds, or the job has ended and no revision was named. `stale`: the fence holds but the revision
 * has moved on. `conflict`: a record guard failed. `lapsed`: a timeout is no longer held, or no longer idle. `gone`: there is no such job.
 * `at` says where the job stands, so that a writer whose reply was lost can recognise its own success; after a
 * `conflict` or a `lapsed` it may be null.
 */
export type Outcome = Done | Refused;

interface Done {
  readonly ok: true;
  /** What each `revoke` of the unit removed, in their order; left out where there is none. */
  readonly revoked?: readonly Revoked[];
}

export interface Refused {
  readonly ok: false;
  readonly because: "lost" | "stale" | "conflict" | "lapsed" | "gone";
  readonly at: { readonly state: JobState; readonly fence: Fence; readonly rev: number } | null;
}

/** `lost`: the fence of a claimed job was voided, or its row changed under it; whoever holds it asks what is left. */
export type Hint =
  | { readonly ready: string }
  | { readonly settled: JobId }
  | { readonly lost: JobId }
  /** Timeouts were added of which the first is due then. */
  | { readonly timeouts: Instant };

/** What is behind a limit and in use of it. */
export interface LimitRow extends KeyUse {
  readonly key: string;
  /** Jobs that wait for the limit and for nothing else. */
  readonly waiting: number;
  /** When the first remembered start no longer counts. */
  readonly nextAt: Instant | null;
}

/** Where a waiting job stands: among the available jobs of a queue, or among those that wait for a limit. */
export type Line = { readonly queue: string } | { readonly limitKey: string };

/** The most jobs that `slots` names as holders. */
export const HOLDERS_SHOWN = 5;

/**
 * A way through the jobs that match, in bounded steps: each looks at no more than so many rows, whether they match or
 * not. Dead letters come in the order in which they ended, for which there is an index; all others in that of their ids.
 */
export interface Scan {
  readonly filter: ScanFilter;
  /** The cursor that the step before answered with; null begins. */
  readonly after: string | null;
  readonly newestFirst?: boolean;
}

/** `cursor` goes on; null: that was all. A step may find nothing and still not be the last. */
export interface ScannedJobs {
  readonly jobs: JobRow[];
  readonly cursor: string | null;
}

export interface ScannedCount {
  readonly count: number;
  readonly cursor: string | null;
}

export interface LiveCount {
  readonly queue: string;
  readonly type: string;
  readonly state: JobState;
  readonly count: number;
}

/** A unique key and the live job that holds it. */
export interface KeyHolder {
  readonly key: string;
  readonly job: JobId;
}

/** The most rows that one step of a walk looks at. */
export const SCAN_STEP = 2_000;
/** The most counts that `live` answers with. */
export const LIVE_LIMIT = 5_000;
/** The most lines that are kept of a job's log. */
export const LOG_LIMIT = 1_000;

/** A line of a log and its number: numbers grow, and a job never has one twice. */
export interface NumberedLine {
  readonly seq: number;
  readonly line: Json;
}

export interface EventPage {
  readonly events: readonly Json[];
  /**
   * For each event the cursor that continues after it: the same whenever it is read. It is made of digits, with at most
   * one dot and after it one dash, such as `12`, `7.12` or `7.12-3`; `0` stands for the beginning.
   */
  readonly cursors: readonly string[];
  /** Continues where this page ended. */
  readonly cursor: string | null;
  /**
   * Set if committed events follow that have no final position yet, because a transaction that began before theirs still
   * runs. They can be read from `cursor` on as soon as it ends.
   */
  readonly isIncomplete?: true;
}

/** For people and tools: not every answer is the state of one moment, and none is for deciding anything by it. */
export interface Inspector {
  /** Jobs in the order of their ids, after a cursor. */
  jobs(filter: JobFilter, after: JobId | null, limit: number): Promise<JobRow[]>;
  /** One step of a walk, with at most `limit` jobs. */
  page(scan: Scan, limit: number): Promise<ScannedJobs>;
  /** One step of the same walk that only counts. */
  count(scan: Scan): Promise<ScannedCount>;
  /** Counts all jobs, finished ones included: its cost follows all that is kept. */
  depth(queue?: string): Promise<Record<JobState, number>>;
  /** The depth of every queue that has a job, finished ones included, in the order of their names. */
  depths(): Promise<ReadonlyMap<string, Readonly<Record<JobState, number>>>>;
  /** Unique keys that live jobs hold, in their order, after a cursor; jobs without one cost nothing here. */
  holders(after: string | null, limit: number): Promise<KeyHolder[]>;
  /** Limits with live jobs, in the order of their names, after a cursor. */
  limitKeys(after: string | null, limit: number): Promise<LimitRow[]>;
  /** One limit, whether anything is behind it or not. */
  limitKey(limitKey: string): Promise<LimitRow>;
  /** Jobs that have not ended, by queue, type and state, none with a count of 0; history costs nothing here. */
  live(): Promise<LiveCount[]>;
  /** Counts the jobs of a line that come before a place in it, up to `most`: its cost follows `most` alone. */
  ahead(line: Line, before: { readonly rank: Rank; readonly id: JobId }, most: number): Promise<number>;
  /**
   * What is in use of a limit, or of a queue whose active jobs are counted. Each count stops at `most`. Of a queue only
   * `active`, `unstarted` and `jobs` are filled.
   */
  slots(line: Line, most: number): Promise<HeldSlots>;
  /** Names of queues with available jobs, in their order, after a name; the cost follows `limit` alone. */
  readyQueues(after: string | null, limit: number): Promise<string[]>;
  /**
   * Events in the order of their commits, and those of one call in the order of its units; none that is committed later
   * has its place before one that was read. Fewer than `limit` only at the end, or if the page is incomplete.
   */
  events(after: string | null, limit: number): Promise<EventPage>;
  /** The newest events, in the same order. */
  latestEvents(limit: number): Promise<EventPage>;
  logs(id: JobId): Promise<Json[]>;
  /** Lines of a log after the one with this number (0 for the first that is kept), oldest first. */
  logLines(id: JobId, after: number, limit: number): Promise<NumberedLine[]>;
}
