import type { JobLimit } from "../limit/limit.ts";
import type { Json } from "../schema.ts";
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

/** Nothing in any state, to count on from. */
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
 * The growing number each write of an attempt must match: a counter times 2^21 plus 21 random bits. The random bits
 * keep a number from being used twice when a failover takes back a claim that its worker already believes in.
 */
export type Fence = number;

/** `(100 - priority) * 2^45 + dueAt`: exact in a double, a bigint and a sorted set; the promised order is (rank, id). */
export type Rank = number;

/** Which timeout ended something: the `kind` of SEMANTICS 3.9. */
export type TimeoutKind = "execution" | "total" | "enqueue_ttl" | "stalled";

export type TimeoutMode = "fail" | "discard";

/** The error kept on a job (SEMANTICS 3.9). */
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
  /** The job was ended before the instant, because no retry could fit (SEMANTICS 4.2). */
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

/** A backoff as data, so that it is stored with the job and judged without the code that made it. */
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

/** How long a finished job is kept, by its terminal state; 0 deletes it in the settle itself. */
export interface Retention extends Readonly<Record<Terminal, number>> {
  /** For discarded jobs that are dead letters; left out or null, they are kept until somebody removes them. */
  readonly deadLetter?: number | null;
}

/** The source of SEMANTICS 2 that decided a field. */
export type SettingSource = "enqueue" | "definition" | "queue" | "engine" | "built-in";

/** What the first start resolved and later attempts keep (SEMANTICS 2). Durations in milliseconds, null for none. */
export interface Policy {
  readonly attempt: number | null;
  /** null is unbounded: the signal is given and nothing follows. */
  readonly grace: number | null;
  readonly heartbeat: number | null;
  readonly mode: TimeoutMode;
  readonly retry: RetryPolicy;
  readonly retention: Retention;
  /** Whose beats count (SEMANTICS 3.6): the worker's own, or only the handler's where a source names `heartbeat`. */
  readonly beats: "worker" | "handler";
  /** Whether the worker hears the soft signal (SEMANTICS 1.4): a foreign worker does not, so the sweep does not wait for it. */
  readonly hears: boolean;
  /** A visibility timeout named over HTTP (SEMANTICS 4.3). */
  readonly visibility?: number;
  /** The remote worker that holds the attempt: a server claims for many of them in one call, so the claim cannot say. */
  readonly worker?: string;
  readonly sources: Readonly<Record<PolicyField, SettingSource>>;
}

export type PolicyField =
  | "attempt"
  | "grace"
  | "heartbeat"
  | "mode"
  | "attempts"
  | "backoff"
  | "except"
  | "retryFit"
  | "onStall"
  | "onExhausted"
  | "retention";

/** What a source may say about timeouts, parsed; null is "none" (for grace: "unbounded"), undefined falls through. */
export interface TimeoutSettings {
  readonly wait?: number | null;
  readonly attempt?: number | null;
  readonly total?: number | null;
  readonly grace?: number | null;
  readonly heartbeat?: number | null;
  readonly mode?: TimeoutMode;
}

/** Everything one source may say. */
export interface PolicySettings {
  readonly timeouts?: TimeoutSettings;
  readonly retry?: Partial<RetryPolicy>;
  readonly retention?: Partial<Retention>;
}

/** What the enqueuer wrote: the enqueue source, and what a manual retry or a judge without the definition needs. */
export interface JobOptions {
  readonly settings?: PolicySettings;
  /** The resolved `wait` and `total`, kept so that a manual retry can anchor them anew. */
  readonly wait?: number;
  readonly total?: number;
  /** The sources that gave `wait` and `total`, for `explain()`. */
  readonly waitFrom?: SettingSource;
  readonly totalFrom?: SettingSource;
  /** From when `total` counts after a manual retry; creation otherwise. */
  readonly anchoredAt?: Instant;
  /** An instant named by the user (`expires_at`), as opposed to a `wait` counted from creation. */
  readonly expiresAt?: Instant;
  /** The job whose remaining `total` cut this one's (SEMANTICS 4.7). */
  readonly inheritedFrom?: JobId;
  /** Decides for a job that ends before its first start, where no policy was resolved yet. */
  readonly onExhausted?: RetryPolicy["onExhausted"];
  readonly retention?: Retention;
  /** The visibility timeout that the enqueuer named (SEMANTICS 4.3). */
  readonly visibility?: number;
  /** The limit under which the job runs; its key is the limit of the row. */
  readonly limit?: JobLimit;
  /** Somebody waits for the result, so it is kept for a minute even where retention is 0. */
  readonly awaited?: true;
  readonly meta?: { readonly [key: string]: Json };
  /** Fields of a wire protocol that the core does not know and must give back as they came. */
  readonly wire?: { readonly [key: string]: Json };
  /** What it is to its workflow, for as long as that needs it. */
  readonly step?: StepPosition;
  /** A list with the results of the steps before it, as it was when its turn came. */
  readonly parentResults?: JsonText;
}

/** The place of a job in its workflow. */
export interface StepPosition {
  /** The jobs that count down when this one has ended. */
  readonly wakes: readonly JobId[];
  /** Left out once its turn has come. */
  readonly waitsFor?: StepDependencies;
}

/** What a job of a workflow waits with until its turn comes. */
export interface StepDependencies {
  readonly role: "step" | "callback" | "turnstile" | "end";
  /** The steps whose results it gets, in their order; the plan of the workflow says where this does not. */
  readonly after?: readonly JobId[];
  /** How long after its turn it starts, in milliseconds. */
  readonly delay?: number;
  /** When the workflow's own time is over. */
  readonly endsAt?: Instant;
}

/** What `wakeAt` means to the sweep: promote to available in one set, or hand the row to a judge. */
export type Wake = "judge" | "ready";

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
  /** Set from the entry of the handler until the attempt is over; kept on a job that ended from active. */
  readonly startedAt: Instant | null;
  readonly softAt: Instant | null;
  readonly hardAt: Instant | null;
  /** The end of a claim's lease, and after the start of the handler's own beats; null while the worker beats for it. */
  readonly stallAt: Instant | null;
  readonly heartbeat: number | null;
  readonly finishedAt: Instant | null;
  /** When prune may delete a finished job; null on a live job and on a dead letter that is kept until it is removed. */
  readonly pruneAt: Instant | null;
  readonly deadLetter: boolean;
}

/** A user's document as JSON text: it is handed through as it came, so no store can alias it, reorder it or parse it twice. */
export type JsonText = string;

/** Documents of a job; a write names only those it changes, and null clears one. */
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
  /** Grows with each image that is written; an outsider's write names it, so that it never judges an older row. */
  readonly rev: number;
  readonly createdAt: Instant;
  readonly claimedAt: Instant | null;
  readonly worker: string | null;
  readonly needs: number;
  readonly workflow: string | null;
  /** The key of its limit; of a job without one, the mark that a claim under the limit of a whole queue left. */
  readonly limitKey: string | null;
  readonly payload: JsonText;
  readonly options: JobOptions | null;
  readonly policy: Policy | null;
  readonly errors: readonly ErrorRecord[] | null;
  readonly progress: JsonText | null;
  readonly checkpoint: JsonText | null;
  readonly result: JsonText | null;
}

export const HIGHEST_PRIORITY = 100;
const RANK_SPAN = 2 ** 45;
const FENCE_SPAN = 2 ** 21;

export function rankOf(priority: number, dueAt: Instant): Rank {
  return (HIGHEST_PRIORITY - priority) * RANK_SPAN + dueAt;
}

/** The priority that a rank was made of: an operator may change it, and the rank is what is written. */
export function priorityOf(rank: Rank): number {
  return HIGHEST_PRIORITY - Math.floor(rank / RANK_SPAN);
}

/** The instant from which a waiting job may start: its rank holds it, so no second column can disagree with it. */
export function dueAtOf(rank: Rank): Instant {
  return rank % RANK_SPAN;
}

/** The next fence of a job: used by a claim, and by an outsider whose verdict voids the running attempt. */
export function nextFence(fence: Fence, salt: number): Fence {
  return (Math.floor(fence / FENCE_SPAN) + 1) * FENCE_SPAN + salt;
}

/** 21 random bits for a fence. */
export function fenceSalt(random: () => number): number {
  return Math.floor(random() * FENCE_SPAN);
}
