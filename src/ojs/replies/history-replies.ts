export interface HistoryPoint {
  readonly timestamp: string;
  readonly span_ms: number;
  readonly processed: number;
  readonly completed: number;
  readonly failed: number;
  readonly enqueued: number;
  readonly discarded: number;
  readonly cancelled: number;
  readonly late: number;
  readonly near_misses: number;
  /** Firings by kind, as the server names them. */
  readonly timeouts: Readonly<Record<string, number>>;
  readonly latency_p50_ms?: number;
  readonly latency_p95_ms?: number;
  readonly latency_p99_ms?: number;
  readonly wait_p50_ms?: number;
  readonly wait_p99_ms?: number;
  /** The most jobs that waited at once, and the longest that one had; left out where nobody looked. */
  readonly waiting?: number;
  readonly oldest_wait_ms?: number;
}

export interface History {
  readonly period: string;
  readonly since: string;
  readonly until: string;
  /** Of the jobs that completed or were ended by a timeout, the share that completed in time; null if none did. */
  readonly attainment: number | null;
  readonly data: readonly HistoryPoint[];
}
