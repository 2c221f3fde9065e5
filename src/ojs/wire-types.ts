import type { Json } from "../core/schema.ts";

/**
 * The bodies that our own client sends. The server's schemas are checked against these types in test/types/wire.test-d.ts,
 * so a name cannot differ between the two ends.
 */

/** A limit in milliseconds, or the word that switches it off. */
type Limit = number | "none";

export type WireTimeouts = {
  readonly timeout_ms?: Limit;
  readonly total_timeout_ms?: Limit;
  readonly enqueue_ttl_ms?: Limit;
  readonly grace_period_ms?: number | "unbounded";
  readonly heartbeat_timeout_ms?: Limit;
  readonly timeout_mode?: "fail" | "discard";
  /** With it `timeout_ms` is its ceiling, for servers that do not know it. */
  readonly timeout_adaptive?: WireAdaptive;
  readonly retry_fit?: "full" | "any";
};

export type WireAdaptive = {
  readonly from?: "p50" | "p90" | "p95" | "p99" | "max";
  readonly times?: number;
  readonly floor_ms: number;
  readonly ceiling_ms: number;
  readonly samples?: number;
  readonly step?: number;
  readonly every_ms?: number;
  readonly window_ms?: number;
};

export type WireRetry = {
  readonly max_attempts?: number;
  readonly backoff_strategy?: "constant" | "linear" | "exponential" | "polynomial" | "delays";
  readonly initial_interval_ms?: number;
  readonly max_interval_ms?: number;
  readonly backoff_coefficient?: number;
  readonly delays_ms?: number[];
  readonly jitter?: boolean;
  readonly non_retryable_errors?: string[];
  readonly on_exhaustion?: "discard" | "dead_letter";
  readonly on_stall?: "retry" | "discard";
};

export type WireRetention = {
  readonly completed?: number;
  readonly discarded?: number;
  readonly cancelled?: number;
  readonly dead_letter?: number | "until_removed";
};

/** What one source says about a job: an enqueue call, or a worker's definition. */
export type WireSettings = WireTimeouts & {
  readonly retry?: WireRetry;
  readonly retention_ms?: WireRetention;
};

/** An enqueue without its id and arguments, which are added as text. */
export type WireEnqueue = WireSettings & {
  readonly type: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly scheduled_at?: string;
  readonly expires_at?: string;
  readonly meta?: { readonly [key: string]: Json };
  readonly fair_key?: string;
  readonly parent_id?: string;
  /** Options in the words of the engine: `limit`, `unique` and others that Open Job Spec cannot say in full. */
  readonly curfew?: { readonly [option: string]: Json } | undefined;
};

export type WireFetch = {
  readonly queues: string[];
  readonly count: number;
  readonly worker_id: string;
  readonly soft_timeout: boolean;
  readonly wait_ms: number;
  readonly fetch_id: string;
  readonly definitions: { readonly [type: string]: WireSettings };
  readonly versions?: { readonly [type: string]: string[] };
};

/** A job that a beat names, under the fence of its attempt. */
export type WireHeldJob = { readonly id: string; readonly fence: number };

export type WireBeat = {
  readonly worker_id: string;
  readonly active_jobs: WireHeldJob[];
  readonly watched_jobs: WireHeldJob[];
};

/** Which attempt a report is about. */
export type WireAttempt = { readonly job_id: string; readonly fence: number };

export type WireAck = WireAttempt & { readonly signalled?: boolean };

export type WireFailure = {
  readonly type: string;
  readonly code: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: {
    readonly type: string;
    readonly code?: string;
    readonly message: string;
    readonly stack?: string;
  };
  readonly details?: Json;
};

export type WireNack = WireAttempt & {
  readonly error?: WireFailure | null;
  readonly signalled?: boolean;
  readonly requeue?: boolean;
  readonly delay_ms?: number;
  readonly snooze_until?: string;
  readonly forced?: boolean;
  readonly stalled?: boolean;
  readonly discard?: boolean;
};
