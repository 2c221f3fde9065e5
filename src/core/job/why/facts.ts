import type { ChangedBy } from "../../audit/audit-entry.ts";
import type { KeyLimit } from "../../limit/limit.ts";
import type { Instant } from "../../time.ts";
import { isSilent, type WorkerReport } from "../../worker/worker-report.ts";
import type { WorkflowRecord } from "../../workflow/workflow-record.ts";
import type { JobRow } from "../job.ts";
import type { HeldSlots } from "./held-slots.ts";

/** Jobs before this one are counted up to this number: the cost must not grow with the queue. */
export const MOST_AHEAD = 1_000;

/** A limit that a job waits for. */
export interface LimitFacts {
  /** The limit that applies: an operator's override goes before what the job says. */
  readonly limit: KeyLimit;
  readonly slots: HeldSlots;
  /** The most of each kind of slot that was counted. */
  readonly countedUpTo: number;
  /** Some of the jobs that hold a slot and wait for a worker; empty if a running one can be named. */
  readonly admitted: readonly JobRow[];
  /** Jobs that wait for the same limit before this one, up to MOST_AHEAD + 1. */
  readonly ahead: number;
}

/** The turns of a fair queue, as a waiting job sees them. */
export interface ShareFacts {
  readonly key: string;
  readonly weight: number;
  /** Fair keys with jobs that wait in its priority, its own included. Counted up to MOST_KEYS. */
  readonly keys: number;
  /** Jobs of its own key before it. */
  readonly own: number;
}

/** At most this many fair keys of a queue are read. */
export const MOST_KEYS = 100;

export interface WorkflowFacts {
  readonly id: string;
  /** Null if the record is gone. */
  readonly record: WorkflowRecord | null;
  /** Some of the steps before this one that have not ended. */
  readonly before: readonly JobRow[];
}

/** The input of `why`: one job and the rows around it, as they were read. */
export interface WhyFacts {
  readonly now: Instant;
  readonly row: JobRow;
  readonly pausedAt: Instant | null;
  /** Missing if the queue is not paused, and if an older curfew paused it. */
  readonly pausedBy?: ChangedBy | undefined;
  readonly maintenance: {
    readonly by?: ChangedBy;
    readonly reason: string | null;
    readonly startedAt: Instant;
    readonly endsAt: Instant | null;
  } | null;
  /** Workers that have a record, including silent ones. */
  readonly workers: readonly WorkerReport[];
  /** There are more workers than were read, so a worker that seems to be missing may exist. */
  readonly hasMoreWorkers: boolean;
  /** The worker that holds an active job; null if its record is gone. */
  readonly holder: WorkerReport | null;
  /** How it shares its queue with other fair keys; null if it does not wait in a fair queue. */
  readonly share?: ShareFacts | null;
  /**
   * Available jobs of the queue before this one, up to MOST_AHEAD + 1; null if it is not available. In a fair queue, the
   * most that can start before it if none arrives.
   */
  readonly ahead: number | null;
  /** Starts of its queue per millisecond over the last minutes; null if there were none or they were not read. */
  readonly pace: number | null;
  /** The concurrency of the queue and what uses it; null if it has none. */
  readonly queueSlots: { readonly concurrency: number; readonly slots: HeldSlots } | null;
  readonly limit: LimitFacts | null;
  readonly workflow: WorkflowFacts | null;
}

export function liveWorkers({ workers, now }: Pick<WhyFacts, "workers" | "now">): WorkerReport[] {
  return workers.filter((worker) => !isSilent(worker, now));
}

const MOST_NAMES = 5;

/** `payments` or `payments, mails and 3 more`. */
export function namesOf(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).map((name) => `"${name}"`);
  const left = names.length - shown.length;
  if (left > 0) return `${shown.join(", ")} and ${left} more`;
  return shown.length < 2 ? (shown[0] ?? "none") : `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
