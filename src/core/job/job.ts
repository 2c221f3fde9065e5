import type { JobLimit } from "../limit/limit.ts";
import type { Json } from "../schema.ts";
import type { AdaptiveRule, LearnedLimit } from "../stats/adaptive-limit.ts";
import type { Instant } from "../time.ts";

export const JOB_STATES = [
  "scheduled",
  "available",
  "pending",
  "active",
  "retryable",
  "completed",
  "cancelled",
  "discarded",
] as const;

export type JobState = (typeof JOB_STATES)[number];

/** A zero count for each state. */
export function noJobs(): Record<JobState, number> {
  return {
    scheduled: 0,
    available: 0,
    pending: 0,
    active: 0,
    retryable: 0,
    completed: 0,
    cancelled: 0,
    discarded: 0,
  };
}

/** The jobs of many queues together, by state. */
export function sumDepths(depths: Iterable<Readonly<Record<JobState, number>>>): Record<JobState, number> {
  const total = noJobs();
  for (const depth of depths) for (const state of JOB_STATES) total[state] += depth[state];
  return total;
}

export type Terminal = "completed" | "cancelled" | "discarded";
export type JobId = string;

/**
 * A growing number that each write of an attempt must match: a counter times 2^21 plus 21 random bits. The random
 * bits prevent a reuse when a failover undoes a claim that its worker already knows.
 */
export type Fence = number;

/**
 * `(100 - priority) * 2^45 + dueAt`: exact in a double, a bigint and a sorted set. The promised order is (rank, id).
 */
export type Rank = number;

/** Which timeout ended something: the `kind` of an error (SEMANTICS 3.9). `TimeoutSettings` has the names of the settings. */
export type TimeoutKind = "execution" | "total" | "enqueue_ttl" | "stalled";

export type TimeoutMode = "fail" | "discard";

/** The error on a job (SEMANTICS 3.9). */
export interface ErrorRecord {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly attempt: number;
  readonly at: Instant;
  readonly kind?: TimeoutKind;
  readonly limit?: number;
  readonly elapsed?: number;
  readonly cause?: ErrorCause;
  readonly stack?: string;
  /** The job was ended before the deadline, because no retry could fit (SEMANTICS 4.2). */
  readonly predicted?: true;
  /** The attempt did not end by itself: it was killed or fenced off at its hard deadline. */
  readonly forced?: true;
  readonly details?: Json;
}

export interface ErrorCause {
  readonly type: string;
  readonly code?: string;
  readonly message: string;
  readonly stack?: string;
}

/** A backoff as data. It is stored with the job, so a retry is decided without the user's code. */
export type Backoff =
  | { readonly kind: "constant"; readonly first: number; readonly max: number; readonly jitter: boolean }
  | { readonly kind: "linear"; readonly first: number; readonly max: number; readonly jitter: boolean }
  | {
      readonly kind: "exponential";
      readonly first: number;
      readonly factor: number;
      readonly max: number;
      readonly jitter: boolean;
    }
  | {
      readonly kind: "polynomial";
      readonly first: number;
      readonly power: number;
      readonly max: number;
      readonly jitter: boolean;
    }
  | {
      readonly kind: "delays";
      readonly delays: readonly number[];
      readonly max: number;
      readonly jitter: boolean;
    };

export interface RetryPolicy {
  readonly attempts: number;
  readonly backoff: Backoff;
  readonly except: readonly string[];
  readonly retryFit: "full" | "any";
  readonly onStall: "retry" | "discard";
  readonly onExhausted: "discard" | "dead-letter";
}

/** How long a finished job is kept, by its terminal state. 0 deletes it in the settle itself. */
export interface Retention extends Readonly<Record<Terminal, number>> {
  /** For dead letters. Left out or null: they are kept until an operator removes them. */
  readonly deadLetter?: number | null;
}

/** Which source of SEMANTICS 2 decided a field. */
export type SettingSource = "enqueue" | "definition" | "queue" | "engine" | "built-in";

/** What the first start resolves for all attempts (SEMANTICS 2). Durations in milliseconds, null for none. */
export interface Policy {
  readonly attempt: number | null;
  /** Where `attempt` comes from, if its source is adaptive. Without `learned` it is the ceiling. */
  readonly adaptive?: { readonly rule: AdaptiveRule; readonly learned: LearnedLimit | null };
  /** null is unbounded: the signal fires, and no hard deadline follows. */
  readonly grace: number | null;
  readonly heartbeat: number | null;
  readonly mode: TimeoutMode;
  readonly retry: RetryPolicy;
  readonly retention: Retention;
  /** Whose beats count (SEMANTICS 3.6): the worker's, or only the handler's if a source names `heartbeat`. */
  readonly beats: "worker" | "handler";
  /**
   * Whether the worker hears the soft signal (SEMANTICS 1.4). A foreign worker does not, so the sweep does not wait
   * for it.
   */
  readonly hears: boolean;
  /** A visibility timeout named over HTTP (SEMANTICS 4.3). */
  readonly visibility?: number;
  /**
   * The remote worker that holds the attempt. A server claims for many workers in one call, so the claim cannot name
   * it.
   */
  readonly worker?: string;
  /** The name of the key that fetched the job, if the server has keys: reports without a fence must come from it. */
  readonly caller?: string;
  readonly sources: Readonly<Record<PolicyField, SettingSource>>;
}

/** Stores write the source of each field in this order: add at the end, never change. */
export const POLICY_FIELDS = [
  "attempt",
  "grace",
  "heartbeat",
  "mode",
  "attempts",
  "backoff",
  "except",
  "retryFit",
  "onStall",
  "onExhausted",
  "retention",
] as const;
export type PolicyField = (typeof POLICY_FIELDS)[number];

/**
 * The parsed timeouts of one source; null is "none" (for grace: "unbounded"), undefined leaves it to the next source.
 */
export interface TimeoutSettings {
  readonly wait?: number | null;
  readonly attempt?: number | null;
  /** `attempt` is adaptive. It has the ceiling, for code and processes that know no adaptive limits. */
  readonly adaptive?: AdaptiveRule;
  readonly total?: number | null;
  readonly grace?: number | null;
  readonly heartbeat?: number | null;
  readonly mode?: TimeoutMode;
}

/** All settings of one source. */
export interface PolicySettings {
  readonly timeouts?: TimeoutSettings;
  readonly retry?: Partial<RetryPolicy>;
  readonly retention?: Partial<Retention>;
}

/** When the jobs of a unique key are due. All in milliseconds. */
export type Pace =
  | { readonly kind: "debounce"; readonly quiet: number; readonly most: number | null }
  | { readonly kind: "throttle"; readonly period: number };

/** What the enqueue wrote: its settings, and what a manual retry or a decision without the definition needs. */
export interface JobOptions {
  readonly settings?: PolicySettings;
  /** The resolved `wait` and `total`, so that a manual retry can apply them again. */
  readonly wait?: number;
  readonly total?: number;
  /** The sources of `wait` and `total`, for `explain()`. */
  readonly waitFrom?: SettingSource;
  readonly totalFrom?: SettingSource;
  /** From when `total` counts after a manual retry, or if the time at creation was uncertain. Otherwise from creation. */
  readonly anchoredAt?: Instant;
  /** An instant that the user named (`expires_at`), in contrast to a `wait` that counts from creation. */
  readonly expiresAt?: Instant;
  /** The job whose remaining `total` shortened this one's (SEMANTICS 4.7). */
  readonly inheritedFrom?: JobId;
  /** Applies if the job ends before its first start, when no policy is resolved yet. */
  readonly onExhausted?: RetryPolicy["onExhausted"];
  readonly retention?: Retention;
  /** The visibility timeout that the enqueue named (SEMANTICS 4.3). */
  readonly visibility?: number;
  /** The limit of the job. Its key is `limitKey` of the row. */
  readonly limit?: JobLimit;
  /** The job that took its unique key, and for which it was cancelled. */
  readonly replacedBy?: JobId;
  /** Why it starts later: it is debounced or throttled. */
  readonly pace?: Pace;
  /** A caller waits for the result, so it is kept for a minute even if retention is 0. */
  readonly awaited?: true;
  readonly meta?: { readonly [key: string]: Json };
  /** What people must not see of its documents; workers get all of it. */
  readonly redact?: readonly (readonly string[])[];
  /** Fields of a wire protocol that the core does not know and must return unchanged. */
  readonly wire?: { readonly [key: string]: Json };
  /** Its position in its workflow, while the workflow needs it. */
  readonly step?: StepPosition;
  /** The list of the results of the steps before it, as of when this step became ready. */
  readonly parentResults?: JsonText;
  /** An import has stored the job but not its documents. The import completes it, or the next one of the same job. */
  readonly importing?: true;
}

/** The position of a job in its workflow. */
export interface StepPosition {
  /** The jobs that count down when this one has ended. */
  readonly wakes: readonly JobId[];
  /** Left out once the step is ready. */
  readonly waitsFor?: StepDependencies;
}

/** What a step needs until it is ready. */
export interface StepDependencies {
  readonly role: "step" | "callback" | "barrier" | "end";
  /** The steps whose results it gets, in order. If left out, the plan of the workflow says it. */
  readonly after?: readonly JobId[];
  /** How long after it becomes ready it starts, in milliseconds. */
  readonly delay?: number;
  /** When the workflow's time is over. */
  readonly endsAt?: Instant;
}

/**
 * What the sweep does at `wakeAt`: `ready` promotes the job to available in one set, `decide` needs a decision on the
 * row.
 */
export type Wake = "decide" | "ready";

/** A full image of the small mutable columns, so that every store writes them with one static statement. */
export interface JobImage {
  readonly state: JobState;
  readonly wake: Wake;
  readonly wakeAt: Instant | null;
  readonly rank: Rank;
  readonly attempt: number;
  readonly returns: number;
  readonly expiredClaims: number;
  readonly waitAt: Instant | null;
  readonly totalAt: Instant | null;
  /** Set from the entry of the handler until the attempt ends. Stays on a job that ended from active. */
  readonly startedAt: Instant | null;
  readonly softAt: Instant | null;
  readonly hardAt: Instant | null;
  /**
   * Before the start, the end of the claim's lease. After it, the end of the handler's allowed silence; null while
   * the worker beats for it.
   */
  readonly stallAt: Instant | null;
  readonly heartbeat: number | null;
  readonly finishedAt: Instant | null;
  /**
   * When prune may delete a finished job. Null on a live job, and on a dead letter that is kept until it is removed.
   */
  readonly pruneAt: Instant | null;
  readonly deadLetter: boolean;
}

/** A user's document as JSON text. It is passed through unchanged, so no store can alias, reorder or parse it twice. */
export type JsonText = string;

/** Documents of a job. A write names only those it changes; null clears one. */
export interface JobDocuments {
  readonly options?: JobOptions | null;
  readonly policy?: Policy | null;
  readonly errors?: readonly ErrorRecord[] | null;
  readonly progress?: JsonText | null;
  readonly checkpoint?: JsonText | null;
  readonly result?: JsonText | null;
}

export interface JobRow extends JobImage {
  readonly id: JobId;
  readonly queue: string;
  readonly type: string;
  readonly priority: number;
  readonly fence: Fence;
  /**
   * Grows with each image. Everybody except the holder names it in a write, so that no decision is based on an older
   * row.
   */
  readonly rev: number;
  readonly createdAt: Instant;
  readonly claimedAt: Instant | null;
  readonly worker: string | null;
  readonly needs: number;
  readonly workflow: string | null;
  /** The key of its limit. For a job without one, the mark of a claim under the limit of its queue (`queueMark`). */
  readonly limitKey: string | null;
  /** Its key in a fair queue. Empty: it has none, and shares a turn with others like it. Null: its queue was not fair. */
  readonly fairKey: string | null;
  readonly payload: JsonText;
  readonly options: JobOptions | null;
  readonly policy: Policy | null;
  readonly errors: readonly ErrorRecord[] | null;
  readonly progress: JsonText | null;
  readonly checkpoint: JsonText | null;
  readonly result: JsonText | null;
}

export const HIGHEST_PRIORITY = 100;
export const RANK_SPAN = 2 ** 45;
const FENCE_SPAN = 2 ** 21;

export function rankOf(priority: number, dueAt: Instant): Rank {
  return (HIGHEST_PRIORITY - priority) * RANK_SPAN + dueAt;
}

/** The priority in a rank. An operator may change it, and only the rank is written. */
export function priorityOf(rank: Rank): number {
  return HIGHEST_PRIORITY - Math.floor(rank / RANK_SPAN);
}

/** From when a waiting job may start. Only its rank contains this, so no second column can disagree. */
export function dueAtOf(rank: Rank): Instant {
  return rank % RANK_SPAN;
}

/** The lowest rank of the same priority. */
export function priorityRank(rank: Rank): Rank {
  return Math.floor(rank / RANK_SPAN) * RANK_SPAN;
}

/** The lowest rank of the next lower priority. */
export function nextPriorityRank(rank: Rank): Rank {
  return (Math.floor(rank / RANK_SPAN) + 1) * RANK_SPAN;
}

/** The next fence of a job, for a claim and for a decision that voids the running attempt. */
export function nextFence(fence: Fence, salt: number): Fence {
  return (Math.floor(fence / FENCE_SPAN) + 1) * FENCE_SPAN + salt;
}

/** 21 random bits for a fence. */
export function fenceSalt(random: () => number): number {
  return Math.floor(random() * FENCE_SPAN);
}
