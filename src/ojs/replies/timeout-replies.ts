/** What the lists of fired timeouts and near misses say. Names are those of the wire. */
import type { Job, Scanned, TimeoutKind } from "./wire-replies.ts";

/** A timeout that fired, as it was recorded. */
export interface FiredTimeout {
  readonly id: string;
  readonly at: string;
  readonly event: string;
  readonly kind: TimeoutKind | "visibility" | null;
  readonly mode: "fail" | "discard" | null;
  readonly job_id: string;
  readonly type: string | null;
  readonly queue: string | null;
  readonly attempt: number | null;
  readonly limit_ms: number | null;
  readonly elapsed_ms: number | null;
  readonly forced: boolean;
}

export interface FiredTimeouts extends Scanned<FiredTimeout> {
  readonly is_recording: boolean;
  /** How far back was searched, and where to go on. */
  readonly searched_from?: string | null;
  readonly before?: string | null;
}

/** A job that completed, and how much of a limit it used. */
export interface NearMiss {
  readonly kind: "execution" | "total";
  readonly used: number;
  readonly limit_ms: number;
  readonly late: boolean;
  readonly job: Job;
}
