import type { NewJob } from "../core/job/envelope.ts";
import type { Fence, JobDocuments, JobId, JobImage, JobRow, JobState, Rank } from "../core/job/job.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { NewTimeout, Owner, TimeoutId } from "../core/timeout/timeout.ts";
import type { Revoked, TimeoutStore, Which } from "./timeouts.ts";

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
  /** The store's own time, which is everybody's: see SEMANTICS 3.10. */
  clock(): Promise<Instant>;
  /** Writes guarded units: each is all or nothing, and the units of one call are independent of each other. */
  commit(units: readonly Unit[], options: CommitOptions): Promise<Outcome[]>;
  /** Calls back with hints, which may be lost or doubled; whoever listens polls as well. */
  listen(onHint: (hint: Hint) => void): Promise<AsyncDisposable>;
  close(): Promise<void>;
}

export interface CommitOptions {
  readonly now: Instant;
  /** The caller's own transaction, where the store has such a thing. */
  readonly tx?: unknown;
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

/** The most items one call may bring; a caller with more splits them, so that no call holds a store for long. */
export const BATCH_LIMIT = 1_000;

export interface JobStore {
  enqueue(jobs: readonly NewJob[], options: CommitOptions): Promise<Enqueued[]>;
  /** Takes the best available jobs of a queue exclusively, in the order (rank, id); a paused queue gives none. */
  claim(request: ClaimRequest): Promise<JobRow[]>;
  /** Renews the worker's record, moves `stallAt` of jobs that name one, and tells what became of each job. */
  beat(request: BeatRequest): Promise<BeatAnswer[]>;
  /** Promotes what is due and ready in one set, and hands out what must be judged; nobody else gets it until `holdUntil`. */
  sweep(request: SweepRequest): Promise<Swept>;
  /** Live and finished jobs by id. */
  load(ids: readonly JobId[]): Promise<(JobRow | null)[]>;
  /** Deletes finished jobs whose `pruneAt` has come, and events from before `eventsBefore`; at most `limit` of each. */
  prune(request: {
    readonly now: Instant;
    readonly eventsBefore: Instant;
    readonly limit: number;
  }): Promise<number>;
}

export type Enqueued = "created" | "exists" | { readonly duplicate: JobId };

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
  }[];
}

/** `changed`: the fence still holds, but somebody wrote the row (an extension): load it again. */
export type BeatAnswer = "ok" | "changed" | { readonly lost: JobState | "gone" };

export interface SweepRequest {
  readonly now: Instant;
  readonly limit: number;
  readonly holdUntil: Instant;
}

export interface Swept {
  /** How many jobs became available, by queue. */
  readonly ready: ReadonlyMap<string, number>;
  readonly jobs: JobRow[];
  readonly records: RecordRow[];
  /** The next instant at which something will be due; null when nothing is pending. */
  readonly nextWakeAt: Instant | null;
}

export type RecordKey = readonly [kind: string, key: string];

/** Versioned documents with a time to look at them again: workers, pauses, queues, sagas, cron, limits. */
export interface RecordRow {
  readonly key: RecordKey;
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

export interface Unit {
  /** The job this unit writes: the fence is the guard, and so is `rev` where it is named. */
  readonly job?: JobWrite;
  readonly when?: readonly Guard[];
  readonly effects?: readonly Effect[];
}

export interface JobWrite {
  readonly id: JobId;
  readonly fence: Fence;
  /** Named by outsiders, and by verdicts that an outsider's change would spoil. */
  readonly rev?: number;
  readonly image?: JobImage;
  readonly documents?: JobDocuments;
  /** The fence from now on: an outsider's verdict voids the one that an attempt holds. */
  readonly nextFence?: Fence;
  /** Delete the job instead of keeping it. */
  readonly drop?: true;
}

/** `version` 0 means that the record must not exist. A timeout must be held by its owner, under a lease that still runs. */
export type Guard =
  | { readonly record: RecordKey; readonly version: number }
  | { readonly timeout: TimeoutId; readonly owner: Owner };

export type Effect =
  | { readonly enqueue: NewJob }
  /** Counts down what a pending job still needs; at zero the job is woken to be judged. */
  | { readonly countdown: JobId }
  /** Writes another job's image if it is still live, whatever its fence; its attempt, if any, is voided. */
  | { readonly stop: JobId; readonly image: JobImage; readonly nextFence: Fence }
  | { readonly put: RecordKey; readonly body: Json; readonly wakeAt: Instant | null }
  | { readonly delete: RecordKey }
  /** Moves the best `count` jobs that wait behind a gate to available. */
  | { readonly admit: string; readonly count: number }
  /** Inserts a timeout; a known id does nothing, a known key replaces what has it. */
  | { readonly request: NewTimeout }
  /** Removes timeouts, held or not; the outcome says how many. */
  | { readonly revoke: Which }
  /** Removes the one timeout, whoever holds it: its guard says who that must be. */
  | { readonly remove: TimeoutId }
  | { readonly event: Json }
  | { readonly log: Json; readonly job: JobId };

/**
 * `lost`: another fence holds. `stale`: the fence holds but the revision has moved on. `conflict`: a record guard
 * failed. `lapsed`: a timeout is no longer held. `gone`: there is no such job. `at` says where the job stands, so that a writer whose reply was lost can
 * recognise its own success.
 */
export type Outcome =
  | {
      readonly ok: true;
      /** What each `revoke` of the unit removed, in their order; left out where there is none. */
      readonly revoked?: readonly Revoked[];
    }
  | {
      readonly ok: false;
      readonly because: "lost" | "stale" | "conflict" | "lapsed" | "gone";
      readonly at: { readonly state: JobState; readonly fence: Fence; readonly rev: number } | null;
    };

export type Hint =
  | { readonly ready: string }
  | { readonly settled: JobId }
  | { readonly lost: JobId }
  /** Timeouts were added of which the first is due then. */
  | { readonly timeouts: Instant };

export interface JobFilter {
  readonly queue?: string;
  readonly type?: string;
  readonly state?: JobState;
  readonly deadLetter?: boolean;
}

export interface Inspector {
  /** Jobs in the order of their ids, after a cursor. */
  jobs(filter: JobFilter, after: JobId | null, limit: number): Promise<JobRow[]>;
  depth(queue?: string): Promise<Record<JobState, number>>;
  /** Events in the order of their commits; `cursor` continues where this page ended. */
  events(
    after: string | null,
    limit: number,
  ): Promise<{ readonly events: Json[]; readonly cursor: string | null }>;
  logs(id: JobId): Promise<Json[]>;
}
