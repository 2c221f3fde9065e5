import type { Instant } from "../core/time.ts";
import type {
  LeaseLoss,
  NewTimeout,
  Owner,
  SagaKey,
  TimeoutId,
  TimeoutRow,
} from "../core/timeout/timeout.ts";

/**
 * The leased timeout store (SEMANTICS 6). A dispatcher claims due timeouts under a lease, sends them and removes
 * them. A custom store may implement this port alone. Time is always passed in. Calls that take a list take at most
 * `BATCH_LIMIT` items and answer per item, in order. Expected results are returned, never thrown.
 */
export interface TimeoutStore {
  /** Whether a claim excludes others. A store without leases gives what is due to every caller. */
  readonly leases: boolean;
  /** Stores copies. A known id changes nothing and answers `exists`. A known key replaces the timeout that has it. */
  insert(timeouts: readonly NewTimeout[], options: TimeoutWriteOptions): Promise<("created" | "exists")[]>;
  /**
   * Leases what is due (`dueAt <= now`) and free (never leased, or `leaseUntil <= now`), in the order (dueAt, id).
   * Rows under the lease of another owner neither block the claim nor count against its limit.
   */
  claimDue(request: DueRequest): Promise<TimeoutRow[]>;
  /** With an owner, removes only what that owner holds at `now`. Without one, removes whatever is there. */
  remove(leased: readonly LeasedTimeout[], options: { readonly now: Instant }): Promise<LeaseAnswer[]>;
  /** Frees a lease under the same condition as `remove`. The timeout keeps its due time unless a new one is named. */
  release(released: readonly ReleasedTimeout[], options: { readonly now: Instant }): Promise<LeaseAnswer[]>;
  extend(extended: readonly ExtendedLease[], options: { readonly now: Instant }): Promise<LeaseAnswer[]>;
  /** Frees every expired lease. Returns how many. */
  reap(request: { readonly now: Instant }): Promise<number>;
  /** Removes timeouts, leased or not. A cancelled timeout is never handled. */
  cancel(which: Which, options: TimeoutWriteOptions): Promise<Revoked>;
  /** Makes dead timeouts due at once, with all their tries. Returns how many of them were dead. */
  requeue(ids: readonly TimeoutId[], options: { readonly now: Instant }): Promise<number>;
  /**
   * Moves timeouts that are still due at `from` and not leased: a lease or another change takes precedence. Returns
   * how many moved.
   */
  reschedule(moves: readonly Move[], options: { readonly now: Instant }): Promise<number>;
  /** Timeouts by id, null for those that are not stored. */
  load(ids: readonly TimeoutId[]): Promise<(TimeoutRow | null)[]>;
  /** Timeouts that are not dead, leased ones included, in the order (dueAt, id). Its cost follows `limit` and the leases. */
  calendar(request: CalendarRequest): Promise<TimeoutRow[]>;
  /** Lists timeouts in the order of their ids, after a cursor. */
  list(filter: TimeoutFilter, after: TimeoutId | null, limit: number): Promise<TimeoutRow[]>;
  /**
   * When a claim will next find something, for these destinations or for all: the earliest due time or end of a
   * lease. Null if nothing is pending.
   */
  nextDueAt(destinations?: readonly string[]): Promise<Instant | null>;
  /** Of a tenant, or of none. */
  count(request: { readonly now: Instant; readonly tenant?: string }): Promise<TimeoutCounts>;
}

export interface TimeoutWriteOptions {
  readonly now: Instant;
  /** The caller's transaction, if the store supports one. */
  readonly tx?: unknown;
}

/** The limit of a claim whose caller names none. */
export const CLAIM_BATCH = 100;

export interface DueRequest {
  readonly now: Instant;
  readonly leaseUntil: Instant;
  /** A token that is unique to this claim. */
  readonly owner: Owner;
  readonly limit?: number;
  /** Claims only for these destinations, and at most `limit` for each. Left out: for all. */
  readonly destinations?: readonly DestinationLimit[];
}

export interface DestinationLimit {
  readonly name: string;
  readonly limit: number;
}

export interface LeasedTimeout {
  readonly id: TimeoutId;
  readonly owner?: Owner;
}

export interface ReleasedTimeout extends LeasedTimeout {
  readonly dueAt?: Instant;
  /** Why it could not be sent. It counts as a try. */
  readonly error?: string;
  /** Not tried again until an operator requeues it. */
  readonly isDead?: true;
}

export interface ExtendedLease {
  readonly id: TimeoutId;
  readonly owner: Owner;
  readonly leaseUntil: Instant;
}

export type LeaseAnswer = "ok" | LeaseLoss;

/** One timeout by its id, all of a saga, or the one with a key within a saga or a destination. */
export type Which =
  | { readonly id: TimeoutId }
  | { readonly saga: SagaKey; readonly key?: string }
  | { readonly destination: string; readonly key: string };

/** How many were removed. `leased` counts those that an owner had claimed and now finds gone. */
export interface Revoked {
  readonly pending: number;
  readonly leased: number;
}

export interface Move {
  readonly id: TimeoutId;
  readonly from: Instant;
  readonly to: Instant;
}

/** From one instant on and before another; `after` is the last timeout of the page before. */
export interface CalendarRequest {
  /** Timeouts whose ids are names of this tenant (`namesOf`). Left out: of none. */
  readonly tenant?: string;
  readonly destination?: string;
  readonly from: Instant;
  readonly before: Instant;
  readonly after: { readonly dueAt: Instant; readonly id: TimeoutId } | null;
  readonly limit: number;
}

export interface TimeoutFilter {
  /** Timeouts whose ids are names of this tenant. Left out: of none, after all names of tenants. */
  readonly tenant?: string;
  readonly destination?: string;
  readonly saga?: SagaKey;
  readonly isDead?: boolean;
  /** Only timeouts that were requested as a wall-clock time. */
  readonly hasWallClock?: true;
}

export interface TimeoutCounts {
  /** Neither dead nor leased, due or not. */
  readonly pending: number;
  /** The pending ones that are due. */
  readonly due: number;
  readonly leased: number;
  readonly dead: number;
}

/**
 * A hint is sent only for timeouts that are due within this many milliseconds. Listeners poll as well, so later ones
 * need none.
 */
export const HINTED_WITHIN = 60_000;
