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
 * The leased timeout store (SEMANTICS 6): what is due is claimed under a lease, sent, and removed by whoever holds it.
 * A store of one's own may serve this port alone. Time is always passed in; calls that take a list answer per item, in
 * order, at most `BATCH_LIMIT` of them; nothing expected throws.
 */
export interface TimeoutStore {
  /** Whether a claim keeps others off. A store without leases hands out what is due to everybody who asks. */
  readonly leases: boolean;
  /** What is stored is a copy. A known id changes nothing and answers `exists`; a known key replaces what has it. */
  insert(timeouts: readonly NewTimeout[], options: TimeoutWriteOptions): Promise<("created" | "exists")[]>;
  /**
   * Leases what is due (`dueAt <= now`) and free (never leased, or `leaseUntil <= now`), in the order (dueAt, id).
   * Rows that others hold neither block nor count.
   */
  claimDue(request: DueRequest): Promise<TimeoutRow[]>;
  /** With an owner, only what it holds at `now`; without one, whatever is there. */
  remove(held: readonly LeasedTimeout[], options: { readonly now: Instant }): Promise<LeaseAnswer[]>;
  /** Frees a lease, as `remove` does its row; the timeout is due as before, unless a new instant is named. */
  release(released: readonly ReleasedTimeout[], options: { readonly now: Instant }): Promise<LeaseAnswer[]>;
  extend(extended: readonly ExtendedLease[], options: { readonly now: Instant }): Promise<LeaseAnswer[]>;
  /** Frees every lease that has run out, and gives how many. */
  reap(request: { readonly now: Instant }): Promise<number>;
  /** Removes timeouts, held or not: what is cancelled is never handled. */
  cancel(which: Which, options: TimeoutWriteOptions): Promise<Revoked>;
  /** Tries dead ones again, at once and with all their tries. Gives how many of them were dead. */
  requeue(ids: readonly TimeoutId[], options: { readonly now: Instant }): Promise<number>;
  /** Moves what is still due at the instant named and held by nobody: others have their say first. Gives how many moved. */
  reschedule(moves: readonly Move[], options: { readonly now: Instant }): Promise<number>;
  /** Timeouts by id, null for those that are not stored. */
  load(ids: readonly TimeoutId[]): Promise<(TimeoutRow | null)[]>;
  /** Timeouts that are not dead, leased ones included, in the order (dueAt, id). Its cost follows `limit` and the leases. */
  calendar(request: CalendarRequest): Promise<TimeoutRow[]>;
  /** Timeouts in the order of their ids, after a cursor. */
  list(filter: TimeoutFilter, after: TimeoutId | null, limit: number): Promise<TimeoutRow[]>;
  /**
   * When there will be something to claim, for these destinations or for all: the earliest due instant or end of a
   * lease; null when nothing is pending.
   */
  nextDueAt(destinations?: readonly string[]): Promise<Instant | null>;
  count(request: { readonly now: Instant }): Promise<TimeoutCounts>;
}

export interface TimeoutWriteOptions {
  readonly now: Instant;
  /** The caller's own transaction, where the store has such a thing. */
  readonly tx?: unknown;
}

/** What a claim takes where its caller names no limit. */
export const CLAIM_BATCH = 100;

export interface DueRequest {
  readonly now: Instant;
  readonly leaseUntil: Instant;
  /** A token that no other claim has. */
  readonly owner: Owner;
  readonly limit?: number;
  /** Only for these, and at most so many for each; left out, for all. */
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
  /** Why it could not be sent; it counts as a try. */
  readonly error?: string;
  /** It is not tried again until somebody requeues it. */
  readonly isDead?: true;
}

export interface ExtendedLease {
  readonly id: TimeoutId;
  readonly owner: Owner;
  readonly leaseUntil: Instant;
}

export type LeaseAnswer = "ok" | LeaseLoss;

/** One by its id, all of a saga, or the one that has a key within a saga or a destination. */
export type Which =
  | { readonly id: TimeoutId }
  | { readonly saga: SagaKey; readonly key?: string }
  | { readonly destination: string; readonly key: string };

/** How many were removed: those that nobody held, and those that somebody had claimed and will now find gone. */
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
  readonly destination?: string;
  readonly from: Instant;
  readonly before: Instant;
  readonly after: { readonly dueAt: Instant; readonly id: TimeoutId } | null;
  readonly limit: number;
}

export interface TimeoutFilter {
  readonly destination?: string;
  readonly saga?: SagaKey;
  readonly isDead?: boolean;
  /** Only those that were requested as a wall-clock time. */
  readonly hasWallClock?: true;
}

export interface TimeoutCounts {
  /** All that are neither dead nor leased, due or not. */
  readonly pending: number;
  /** Those of them that are due. */
  readonly due: number;
  readonly leased: number;
  readonly dead: number;
}

/** Who listens polls as well, so nobody is told of what is due later than this. */
export const HINTED_WITHIN = 60_000;
