import type { JobId, JobRow } from "../../src/core/job/job.ts";
import type { Machine } from "./machine.ts";
import type { Times } from "./network.ts";
import type { Expected } from "./oracle.ts";
import type { SimPayload } from "./plan.ts";

/** One exclusive claim of a job by one process, from the claim to its verdict. */
export interface Claim {
  readonly fence: number;
  readonly by: Machine;
  readonly row: JobRow;
  readonly claimedAt: number;
  /** When the store last said that the claim holds, counting only answers that reached the holder. */
  confirmedAt: number;
  /** When the holder last asked whether the claim holds, and when it heard that it does; with homes, from all of them. */
  confirmation: Pick<Times, "sentAt" | "heardAt"> | undefined;
  /** With homes: when the job's own home last answered a beat, which the holder hears if no other home fails. */
  answeredAt: number | undefined;
  /** The holder was told that the claim is lost. */
  isLostHeard: boolean;
  /** The holder knows of the claim: a reply that was lost leaves one that nobody can give back. */
  isHeard: boolean;
  /** The start that was committed under this claim. */
  startedAt: number | null;
  /** The end of the allowed silence, as the holder last wrote it. */
  ownStallAt: number | null;
  /** When the claim got its verdict, from whomever. */
  settledAt: number | undefined;
  run: Run | undefined;
}

/** One run of a handler, as the handler itself saw it. */
export interface Run {
  readonly job: JobLedger;
  readonly claim: Claim;
  readonly attempt: number;
  readonly enteredAt: number;
  /** How long the last reading of the store's clock before the entry had taken: the limits may be late by as much. */
  readonly clockDoubt: number;
  /** The soft deadline as the context told it at entry. */
  readonly deadline: number | null;
  /** Whether the handler looks at its signal at all: only then can it be late. */
  readonly isListening: boolean;
  /** When the handler gave signs of life, its entry included. */
  readonly beats: number[];
  signalledAt: number | undefined;
  signalKind: string | undefined;
  cleanups: number;
  endedAt: number | undefined;
  hasReturned: boolean;
}

/** What the checker knows about one job. Lives are counted: a manual retry begins a new one. */
export interface JobLedger {
  readonly id: JobId;
  readonly payload: SimPayload;
  readonly expected: Expected;
  row: JobRow;
  isGone: boolean;
  isAcknowledged: boolean;
  /** Its home forgot what had happened to it, so that its past says nothing about what may happen. */
  isForgotten: boolean;
  /** An extension was asked for, so that limits are no longer the ones it was enqueued with. */
  isExtended: boolean;
  highestFence: number;
  readonly claims: Map<number, Claim>;
  lives: number;
  retriesAsked: number;
  returns: number;
  /** Attempts of this life that have got their verdict. */
  readonly judged: Set<number>;
  /** How often each attempt of this life was entered. */
  readonly entries: Map<number, number>;
  cancelledAt: number | undefined;
  /** Every revision that one of its images had, also those that its home forgot. */
  readonly revisions: Set<number>;
  /** `stallAt` as a sweep last read it: beats are no revisions, so a verdict on what it read stands. */
  sweptStallAt: number | null;
}

const TERMINAL: ReadonlySet<string> = new Set(["completed", "cancelled", "discarded"]);

export function hasEnded(state: string): boolean {
  return TERMINAL.has(state);
}

export function newJobLedger(row: JobRow, expected: Expected, revisions = new Set<number>()): JobLedger {
  return {
    id: row.id,
    payload: JSON.parse(row.payload) as SimPayload,
    expected,
    row,
    isGone: false,
    isAcknowledged: false,
    isForgotten: false,
    isExtended: false,
    highestFence: row.fence,
    claims: new Map(),
    lives: 1,
    retriesAsked: 0,
    returns: 0,
    judged: new Set(),
    entries: new Map(),
    cancelledAt: undefined,
    revisions,
    sweptStallAt: null,
  };
}

/** The built-in attempt limit ends a job of a dead process after half an hour. No world waits for that. */
const LONGEST_WAIT = 20 * 60_000;

/**
 * A running job without a near hard deadline and without a heartbeat, whose process died: its definition said that
 * nothing should end it soon, and so nothing does. And one whose verdict its home forgot: its worker lives and does not know of it
 * any more, so only its hard deadline ends it (SEMANTICS 17.7).
 */
export function isOrphan({ row, claims, isForgotten }: JobLedger): boolean {
  if (isForgotten && row.state === "active" && row.startedAt !== null) return true;
  if (row.state !== "active" || row.startedAt === null) return false;
  const hasNoEnd = row.hardAt === null || row.hardAt - row.startedAt > LONGEST_WAIT;
  return hasNoEnd && row.heartbeat === null && claims.get(row.fence)?.by.isDead === true;
}

/** The instant from which a waiting job may start, read out of its rank. */
export function dueAt(row: JobRow): number {
  return row.rank % 2 ** 45;
}
