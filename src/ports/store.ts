import type { StoreDiagnosis } from "../core/doctor/doctor-facts.ts";
import type { NewEvent } from "../core/event/new-event.ts";
import type { Turns } from "../core/fair/turns.ts";
import type { Home } from "../core/home/cell.ts";
import type { NewJob } from "../core/job/enqueue/envelope.ts";
import type { Fence, JobDocuments, JobId, JobImage, JobRow, JobState, Rank } from "../core/job/job.ts";
import type { ScanFilter } from "../core/job/job-filter.ts";
import type { HeldSlots } from "../core/job/why/held-slots.ts";
import type { KeyLimit, KeyUse } from "../core/limit/limit.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { NewTimeout, Owner, TimeoutId } from "../core/timeout/timeout.ts";
import type { Capabilities } from "./capabilities.ts";
import type { FairLine, Line, ShareRow } from "./lines.ts";
import type { LoadOptions } from "./load-options.ts";
import type { Looked, LookRequest } from "./look.ts";
import type { RecordRow, RecordStore } from "./records.ts";
import type { SearchIndex } from "./search.ts";
import type { RecordKey } from "./stored-names.ts";
import type { Revoked, TimeoutStore, Which } from "./timeouts.ts";

export type { ListOrder } from "./records.ts";
export { limitRecordKey, pauseKey, queueMark, START_KIND, startKey, startsOf } from "./stored-names.ts";
export type {
  Capabilities,
  FairLine,
  HeldSlots,
  Line,
  LoadOptions,
  RecordRow,
  RecordStore,
  ScanFilter,
  ShareRow,
};

/**
 * The storage that an engine needs. A store claims, commits and lists. It contains no rule about jobs: it only
 * compares fences, revisions and versions. Time is always passed in. Calls that take a list answer per item, in
 * order. Expected results (a lost fence, a known id) are returned, never thrown.
 */
export interface Store {
  readonly capabilities: Capabilities;
  readonly jobs: JobStore;
  readonly records: RecordStore;
  readonly timeouts: TimeoutStore;
  readonly inspect: Inspector;
  /**
   * The store's time, which all processes share, in whole milliseconds rounded down (SEMANTICS 3.10). Only this call
   * reads a clock.
   */
  clock(): Promise<Instant>;
  /** What a process at rest wants to know, in one call. */
  look(request: LookRequest): Promise<Looked>;
  /**
   * Applies guarded units in order. Each unit is all or nothing and sees what the units before it wrote. A refused
   * unit does not stop the others. Writes of other calls may come in between. When the call resolves, all units are
   * durable. A call that throws may have written some of the units: repeat it, and the guards show which.
   */
  commit(units: readonly Unit[], options: CommitOptions): Promise<Outcome[]>;
  /**
   * Calls back with hints. A hint may be lost or repeated, so a listener must poll as well. A hint comes after the
   * commit that caused it. A listener that is registered twice is called twice.
   */
  listen(onHint: (hint: Hint) => void): Promise<AsyncDisposable>;
  /** Says how the store is set up, for people who look for a problem. It writes no row, and may be left out. */
  diagnose?(): Promise<StoreDiagnosis>;
  /** A store without one leaves it out: a search then reads the newest jobs. */
  readonly search?: SearchIndex;
  /** After this, every call except `close` is refused with the code `closed`. */
  close(): Promise<void>;
}

export interface CommitOptions {
  readonly now: Instant;
  /**
   * The caller's transaction, if the store supports one. A failed call undoes its own writes and keeps the caller's.
   * Hints are sent when the caller commits.
   */
  readonly tx?: unknown;
  /**
   * The write need not be on disk when the call resolves. All processes see it at once, but a crash of the machine
   * may undo it together with the claim that it belongs to. For starts of attempts, never for verdicts.
   */
  readonly relaxed?: boolean;
}

/**
 * The most items that one call may carry or ask for. A caller with more splits them, so that no call occupies a store
 * for long. The store itself bounds the bytes: it splits what is too large for one statement or transaction.
 */
export const BATCH_LIMIT = 1_000;

/**
 * The most characters of names that are looked up by equality: unique keys, limit keys, fair keys, workflows, kinds and keys of
 * records.
 */
export const NAME_LIMIT = 512;

export interface JobStore {
  /**
   * Adds jobs one by one, in order. When the call resolves, all created jobs are durable. A call that throws may have
   * added some of them.
   */
  enqueue(jobs: readonly NewJob[], options: EnqueueCallOptions): Promise<Enqueued[]>;
  /**
   * Claims the best available jobs of a queue exclusively, in the order (rank, id) or in turns. Writes what `decide` makes of a
   * claim for each. A paused queue gives none. Returns fewer than `limit` only if every other available job is being
   * claimed by another call at this moment.
   */
  claim(request: ClaimRequest): Promise<JobRow[]>;
  /**
   * Renews the worker's record. Moves the `stallAt` of each job that names one and whose fence still holds. Answers
   * what became of each job. A beat does not change the revision. The answer for a job that is named twice is
   * undefined.
   */
  beat(request: BeatRequest): Promise<BeatAnswer[]>;
  /**
   * Promotes jobs that are due and ready in one set. Returns jobs and records that need a decision, and holds them
   * until `holdUntil`, so that no other sweep gets them. A hold changes neither revision nor version: the decision is
   * committed under those that were returned.
   */
  sweep(request: SweepRequest): Promise<Swept>;
  /** Live and finished jobs by id; null for an unknown id. With `size` the answer may be shorter than the list. */
  load(ids: readonly JobId[], options?: LoadOptions): Promise<(JobRow | null)[]>;
  /** Deletes finished jobs whose `pruneAt` has come, and events older than `eventsBefore`: at most `limit` of each. */
  prune(request: {
    readonly now: Instant;
    readonly eventsBefore: Instant;
    readonly limit: number;
  }): Promise<number>;
}

export interface EnqueueCallOptions extends CommitOptions {
  /**
   * The most waiting jobs of these queues: available, pending, scheduled and retryable ones together, over all
   * processes. A job that does not fit is answered `full`. Queues that are not named are not counted.
   */
  readonly bounds?: ReadonlyMap<string, number>;
  /** Called with the number of waiting jobs in each bounded queue after the call. The count stops at the bound. */
  readonly onDepth?: (queue: string, waiting: number) => void;
}

/**
 * `exists`: a live or finished job has this id, and nothing was changed. `duplicate`: a live job holds the unique
 * key. `full`: the queue has reached its bound. A job releases its unique key when it ends. It takes the key back
 * when it is revived, if the key is free.
 */
export type Enqueued = "created" | "exists" | "full" | { readonly duplicate: JobId };

export interface ClaimRequest {
  readonly queue: string;
  readonly limit: number;
  readonly now: Instant;
  /** How long the claim is valid, in milliseconds. The handler must start within it. */
  readonly lease: number;
  /** A short heartbeat of a job cuts its claim, but not below this. A worker far from the store needs it. */
  readonly shortest?: number;
  /** 21 random bits for the fences of this claim. */
  readonly salt: number;
  readonly worker: string;
  /** Skips jobs of a lower rank. It saves the store from reading dead entries of its index. 0 skips none. */
  readonly from: Rank;
  /**
   * The most active jobs of the queue, over all processes: the claim gives only as many jobs as there is room for. A
   * job without a limit key gets `queueMark` as its limit key. Only jobs with a limit key count, so a job that was
   * claimed before the queue had a limit does not. Left out: no limit.
   */
  readonly most?: number;
  /**
   * The queue is fair: the claim takes the jobs of the best priority first, and within it from each fair key in turn.
   * It returns them in the order of their turns; in rounds, those of one key in the order (rank, id). `from` is ignored. Left out: in the order (rank, id).
   */
  readonly turns?: Turns;
  /** Claims only from these homes. Left out: from all. */
  readonly homes?: readonly Home[];
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
    /** The event to record in the same write, if `stallAt` is moved. */
    readonly records?: NewEvent;
  }[];
}

/**
 * `changed`: the fence still holds, but another writer changed the row, for example by an extension; load it again.
 * `lost`: another fence holds, or the job is no longer active.
 */
export type BeatAnswer = "ok" | "changed" | { readonly lost: JobState | "gone" };

export interface SweepRequest {
  readonly now: Instant;
  /**
   * For each of the three kinds: jobs to promote, jobs to decide on, and records. Many of one kind do not delay the
   * others.
   */
  readonly limit: number;
  readonly holdUntil: Instant;
  /** Sweeps only these homes. Left out: all. */
  readonly homes?: readonly Home[];
}

export interface Swept {
  /** How many jobs became available, by queue. */
  readonly ready: ReadonlyMap<string, number>;
  readonly jobs: JobRow[];
  readonly records: RecordRow[];
  /** When something is due next after this sweep. At or before `now` if the sweep left something. Null: never. */
  readonly nextWakeAt: Instant | null;
}

export type { RecordKey } from "./stored-names.ts";

export interface Unit {
  /** The job that this unit writes. Its fence is a guard, and so is `rev` if it is named. */
  readonly job?: JobWrite;
  readonly when?: readonly Guard[];
  readonly effects?: readonly Effect[];
}

/**
 * Without an image, only documents are written and the revision stays. With neither, only the guard is checked. A
 * write without `rev` belongs to an attempt: on a job that has ended it is answered `lost`, even under the fence that
 * the job ended with. A write that names the revision may change or revive a finished job.
 */
export interface JobWrite {
  readonly id: JobId;
  readonly fence: Fence;
  /** Outsiders always name it. The holder names it too, if another writer's change would make its verdict wrong. */
  readonly rev?: number;
  /** The whole new image. It increases the revision by one, or by more after a failover that may have lost writes. */
  readonly image?: JobImage;
  /**
   * By how much the image increases the revision in a store that can lose acknowledged writes; left out: 1. Outsiders name
   * it. If a failover loses the write of one, the write of another does not get the same revision.
   */
  readonly step?: number;
  /** Writes the documents that are named; null clears one. The others stay. */
  readonly documents?: JobDocuments;
  /** The new fence. An outsider's decision sets it to void the fence of the holder. */
  readonly nextFence?: Fence;
  /** Sends the holder a hint that its row changed, although its fence still holds. */
  readonly notifyHolder?: true;
  /** Deletes the job and its log instead of writing it. */
  readonly drop?: true;
}

/**
 * `version` 0 means that the record must not exist. A timeout must be leased by `owner`, and the lease must not have
 * expired.
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

/**
 * What a unit does besides writing its job. An effect never fails: what cannot be done is skipped. Records are
 * written in the order given.
 */
export type Effect =
  /** Adds a job. It is skipped if its id or unique key is taken. */
  | { readonly enqueue: NewJob }
  /**
   * Decrements `needs` of a pending or scheduled job. At zero the sweep is woken to decide on the job, which
   * increases its revision. A job with a limit key is also woken at one: then only its limit still has to admit it.
   */
  | { readonly countdown: JobId }
  | { readonly put: RecordKey; readonly body: Json; readonly wakeAt: Instant | null }
  | { readonly delete: RecordKey }
  /**
   * Makes the best `count` jobs that wait for this limit available; with `limit`, at most as many as it has room for.
   * Concurrent admits of a key run one after the other, so a limit is never exceeded. Within a call, a store may
   * apply it after the job writes of later units.
   */
  | { readonly admit: string; readonly count: number; readonly limit?: KeyLimit }
  /**
   * Remembers that a job of this limit key started, until the rate no longer counts it. The same `by` is remembered
   * once. Does nothing without a rate, or if the start no longer counts.
   */
  | { readonly spend: string; readonly by: string; readonly at: Instant; readonly limit: KeyLimit }
  /** Sends a hint that a queue may have something to claim. */
  | { readonly ready: string }
  /** Inserts a timeout. A known id does nothing. A known key replaces the timeout that has it. */
  | { readonly request: NewTimeout }
  /** Removes timeouts, leased or not. The outcome says how many. */
  | { readonly revoke: Which }
  /** Removes one timeout under any lease. A guard of the unit names the owner that must hold it. */
  | { readonly remove: TimeoutId }
  | NewEvent
  /** Appends a line to a job's log, which is deleted with the job. The last `LOG_LIMIT` lines are kept. */
  | { readonly log: Json; readonly job: JobId };

/**
 * `lost`: another fence holds, or the job has ended and the write named no revision. `stale`: the fence holds, but
 * the revision is newer. `conflict`: a record guard failed. `lapsed`: a timeout is no longer leased by its owner, or no longer idle.
 * `gone`: there is no such job. `at` is the job's current position, so that a writer whose reply was lost can
 * recognise its own success. It may be null after `conflict` and `lapsed`.
 */
export type Outcome = Done | Refused;

interface Done {
  readonly ok: true;
  /** What each `revoke` of the unit removed, in order. Left out if there is none. */
  readonly revoked?: readonly Revoked[];
}

export interface Refused {
  readonly ok: false;
  readonly because: "lost" | "stale" | "conflict" | "lapsed" | "gone";
  readonly at: { readonly state: JobState; readonly fence: Fence; readonly rev: number } | null;
}

/**
 * `lost`: the fence of a claimed job was voided, or its row changed. Its holder beats to learn which. `timeouts`: the
 * due time of the first timeout that was added. `missed`: hints were lost, or the store answers again after it did not;
 * look at everything.
 */
export type Hint =
  | { readonly ready: string }
  | { readonly settled: JobId }
  | { readonly lost: JobId }
  | { readonly timeouts: Instant }
  | { readonly missed: true };

/** A limit key and what uses it. */
export interface LimitRow extends KeyUse {
  readonly key: string;
  /** Jobs that wait only for the limit. */
  readonly waiting: number;
  /** When the oldest remembered start no longer counts. */
  readonly nextAt: Instant | null;
}

/** The most jobs that `slots` names as holders. */
export const HOLDERS_SHOWN = 5;

/**
 * A query in bounded steps. Each step reads at most `SCAN_STEP` rows, matching or not. Dead letters come in the order
 * in which they ended, for which there is an index. Other jobs come in the order of their ids.
 */
export interface Scan {
  readonly filter: ScanFilter;
  /** The cursor that the previous step returned. Null: start. */
  readonly after: string | null;
  readonly newestFirst?: boolean;
  /** `page` returns brief rows, as `load` does. The filter is applied to whole rows. */
  readonly isBrief?: boolean;
}

/** `cursor` continues the scan. Null: the scan is complete. A step may find nothing and still return a cursor. */
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

/** Available. Its rank says when it became due. */
export type ReadyJob = Pick<JobRow, "queue" | "id" | "rank" | "createdAt">;

export interface TenantUse {
  readonly active: number;
  /** Available, pending, scheduled and retryable jobs. */
  readonly waiting: number;
}

export interface KeyHolder {
  readonly key: string;
  readonly job: JobId;
}

/** The most rows that one step of a scan reads, and the most counts that `live` returns. */
export const SCAN_STEP = 2_000;
export const LIVE_LIMIT = 5_000;
/** The most lines that the store keeps of a job's log. */
export const LOG_LIMIT = 1_000;

/** A line of a log and its number. Numbers grow, and a job never has one twice. */
export interface NumberedLine {
  readonly seq: number;
  readonly line: Json;
}

export interface EventPage {
  readonly events: readonly Json[];
  /**
   * For each event, the cursor that continues after it. It is the same on every read. It consists of digits, with at
   * most one dot and one dash after the dot, such as `12`, `7.12` or `7.12-3`. `0` stands for the beginning.
   */
  readonly cursors: readonly string[];
  /** Continues after this page. */
  readonly cursor: string | null;
  /**
   * Set if committed events follow that have no final position yet, because a transaction that began before theirs
   * still runs. They can be read from `cursor` on when it ends.
   */
  readonly isIncomplete?: true;
}

/** Queries for people and tools. Answers may mix several moments. Never base a write on one. */
export interface Inspector {
  /** One step of a scan, with at most `limit` jobs. */
  page(scan: Scan, limit: number): Promise<ScannedJobs>;
  /** One step of a scan that only counts. */
  count(scan: Scan): Promise<ScannedCount>;
  /**
   * Counts the jobs of every queue by state, finished ones included, in the order of the queue names; of one queue alone
   * if it is named. A queue without a job is left out. It reads every row that is kept of the tenant, or of no tenant.
   */
  depths(queue?: string, tenant?: string): Promise<ReadonlyMap<string, Readonly<Record<JobState, number>>>>;
  /**
   * Unique keys that live jobs hold, in order, after a cursor. Jobs without a key cost nothing. Here and below, the
   * cursor null stands after all names of tenants.
   */
  holders(after: string | null, limit: number): Promise<KeyHolder[]>;
  /**
   * The unique key of each job, live or finished, in the order of the ids; null for a job without one and for an
   * unknown id. A finished job holds its key no longer, but takes it back when it is revived.
   */
  uniqueKeys(ids: readonly JobId[]): Promise<(string | null)[]>;
  /** Limits that have live jobs, in the order of their keys, after a cursor. */
  limitKeys(after: string | null, limit: number): Promise<LimitRow[]>;
  /** One limit, used or not. */
  limitKey(limitKey: string): Promise<LimitRow>;
  /** The first live jobs of a limit in the order of their ids, in one state or in any. Other jobs cost nothing. */
  limitJobs(limitKey: string, state: JobState | null, limit: number): Promise<JobRow[]>;
  /** Counts live jobs of a tenant, or of none, by queue, type and state, without zeros. Finished jobs cost nothing. */
  live(tenant?: string): Promise<LiveCount[]>;
  /** Counts the active and the waiting jobs of a tenant. Each count stops at `most`, on which the cost depends. */
  used(tenant: string, most: number): Promise<TenantUse>;
  /**
   * Counts the jobs of a line before a position, up to `most`. The cost depends on `most` alone. In the line of a fair key
   * only jobs of the same priority count.
   */
  ahead(
    line: Line | FairLine,
    before: { readonly rank: Rank; readonly id: JobId },
    most: number,
  ): Promise<number>;
  /**
   * What uses a limit, or a queue whose active jobs are counted. Each count stops at `most`. Of a queue only
   * `active`, `unstarted` and `jobs` are filled.
   */
  slots(line: Line, most: number): Promise<HeldSlots>;
  /**
   * The first `limit` fair keys of a queue with available jobs, the best priority first and then by key. Each counts up to
   * `most` jobs. The cost depends on `limit` and `most` alone.
   */
  shares(queue: string, limit: number, most: number): Promise<ShareRow[]>;
  /** Names of queues with available jobs, in order, after a name. The cost depends on `limit` alone. */
  readyQueues(after: string | null, limit: number): Promise<string[]>;
  /**
   * The available job that became due first, for each of the first `limit` queues in the order of their names. The cost
   * depends on the number of these queues and of their priorities. Of a tenant, or of none.
   */
  oldestReady(limit: number, tenant?: string): Promise<ReadyJob[]>;
  /**
   * Events in the order of their commits. Those of one call are in the order of its units. An event that is committed
   * later never precedes one that was read. Returns fewer than `limit` only at the end, or if the page is incomplete.
   */
  events(after: string | null, limit: number): Promise<EventPage>;
  /** The newest events in the same order; with `before`, the newest of those before the event that has this cursor. */
  latestEvents(limit: number, before?: string): Promise<EventPage>;
  /** Lines of a log after the given number, oldest first. 0 starts at the first line that is kept. */
  logLines(id: JobId, after: number, limit: number): Promise<NumberedLine[]>;
}
