/** What the HTTP interface says, as far as the dashboard reads it. Names are those of the wire. */

export type Right = "read" | "enqueue" | "cancel" | "work" | "operate";

export interface Session {
  readonly name: string;
  readonly role: "producer" | "worker" | "admin" | "read-only";
  readonly rights: readonly Right[];
  /** The tenant whose things the pages show; null for what belongs to none. Left out by an older server. */
  readonly tenant?: string | null;
  /** What the viewer may choose; "*" for any. */
  readonly tenants?: readonly string[] | "*";
  readonly authentication: "key" | "session" | "host" | "nobody";
  readonly can_log_out: boolean;
  readonly ends_at: string | null;
  readonly version: string;
  readonly store: string;
  readonly server_time: string;
  readonly uptime_seconds: number;
  /** What the server says about itself; left out by an older one. */
  readonly notice?: Notice | null;
}

export interface Notice {
  readonly label: string;
  readonly text?: string;
  readonly links?: readonly { readonly text: string; readonly to: string }[];
}

export const JOB_STATES = [
  "available",
  "scheduled",
  "pending",
  "active",
  "retryable",
  "completed",
  "discarded",
  "cancelled",
] as const;
export type JobState = (typeof JOB_STATES)[number];

export type TimeoutKind = "execution" | "total" | "enqueue_ttl" | "stalled";

export interface JobError {
  readonly type: string;
  readonly code?: string;
  readonly message: string;
  readonly attempt: number;
  readonly occurred_at: string;
  readonly timeout_kind?: TimeoutKind;
  readonly limit_seconds?: number;
  readonly elapsed_seconds?: number;
  readonly forced?: boolean;
  readonly predicted?: boolean;
  readonly details?: unknown;
  readonly cause?: { readonly type: string; readonly code?: string; readonly message: string };
  readonly backtrace?: readonly string[];
}

export interface Job {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  readonly attempt: number;
  readonly max_attempts: number;
  /** Nothing that is stored with the job says `max_attempts`. */
  readonly max_attempts_assumed?: true;
  readonly created_at: string;
  readonly scheduled_at?: string;
  readonly expires_at?: string;
  readonly next_attempt_at?: string;
  readonly started_at?: string;
  readonly completed_at?: string;
  readonly cancelled_at?: string;
  readonly discarded_at?: string;
  readonly timeout_ms?: number;
  readonly total_timeout_ms?: number;
  readonly enqueue_ttl_ms?: number;
  readonly grace_period_ms?: number;
  readonly heartbeat_timeout_ms?: number;
  readonly timeout_mode?: "fail" | "discard";
  readonly error?: JobError;
  readonly errors?: readonly JobError[];
  readonly retry_delay_ms?: number;
  readonly progress?: number;
  readonly checkpoint?: { readonly state?: unknown; readonly created_at?: string; readonly attempt?: number };
  readonly dead_letter?: boolean;
  readonly workflow_id?: string;
  readonly tags?: readonly string[];
  readonly unique?: unknown;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly args: readonly unknown[];
  readonly result?: unknown;
  /** The paths that its definition hides. */
  readonly redacted?: readonly (string | readonly string[])[];
}

export interface Pagination {
  readonly total?: number;
  readonly total_is_exact?: boolean;
  readonly per_page: number;
  readonly has_more: boolean;
  readonly next_cursor: string | null;
}

export interface Page<Item> {
  readonly items: readonly Item[];
  readonly pagination: Pagination;
}

/** How far a search came that reads rows one by one. */
export interface Scanned<Item> extends Page<Item> {
  readonly scanned?: number;
  readonly is_complete?: boolean;
  /** An index found them: all jobs were searched. */
  readonly by_index?: boolean;
  readonly matched_by?: "id" | "payload";
}

export type Counts = Readonly<Record<JobState, number>>;

export interface Stats {
  readonly queues: number;
  readonly workers: number;
  readonly jobs: Counts;
  readonly throughput: { readonly processed_per_minute: number; readonly failed_per_minute: number };
  readonly uptime_seconds: number;
  /** How late deadlines fired in this process. The last count is above all bounds. */
  readonly deadline_lateness: {
    readonly bounds_ms: readonly number[];
    readonly counts: readonly number[];
    readonly total: number;
  };
  readonly oldest_waits: readonly { readonly queue: string; readonly wait_ms: number }[];
}

/** What `GET /admin/doctor` says. */
export interface Doctor {
  readonly checked_at: string;
  readonly findings: readonly {
    readonly code: string;
    readonly level: "error" | "warning" | "note";
    readonly sentence: string;
    readonly action: string;
  }[];
  readonly passed: readonly { readonly code: string; readonly text: string }[];
}

/** What the live line says every three seconds. */
export interface Pulse {
  readonly timestamp: string;
  /** How long the oldest available job of any queue has waited; null if none waits. */
  readonly oldest_wait_ms?: number | null;
  readonly queues: readonly ({ readonly queue: string } & Readonly<Record<string, number | string>>)[];
  readonly throughput: {
    readonly processed_per_second: number;
    readonly failed_per_second: number;
    readonly enqueued_per_second: number;
  };
  readonly workers: { readonly total: number; readonly active: readonly PulseWorker[] };
}

export interface PulseWorker {
  readonly id: string;
  readonly state: "running" | "quiet" | "terminate" | "stale";
  readonly activeJobs: number;
  readonly lastHeartbeatAt: string;
}

export interface Worker {
  readonly id: string;
  readonly state: "running" | "quiet" | "terminate" | "stale";
  readonly remote: boolean;
  readonly queues: readonly string[];
  readonly active_jobs: number;
  readonly last_heartbeat_at: string;
}

export interface Workers {
  readonly items: readonly Worker[];
  readonly summary: {
    readonly total: number;
    readonly running: number;
    readonly quiet: number;
    readonly stale: number;
  };
}

export interface Queue {
  readonly name: string;
  readonly paused: boolean;
  readonly paused_at?: string;
  readonly depth: number;
  readonly counts: Counts;
  readonly throughput: { readonly processed_per_minute: number; readonly failed_per_minute: number };
  readonly latency_ms?: { readonly p50: number; readonly p95: number; readonly p99: number };
  readonly configuration: Readonly<Record<string, unknown>>;
}

export interface Queues {
  readonly items: readonly Queue[];
  readonly pagination: Pagination;
}

/** Which jobs are meant: those that are named, or all that a filter fits. */
export type BulkTarget =
  | { readonly job_ids: readonly string[] }
  | { readonly filter: Readonly<Record<string, unknown>> };

export interface BulkResult {
  readonly action: string;
  readonly dry_run: boolean;
  readonly matched: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly skipped: number;
  readonly is_complete: boolean;
  readonly next_cursor: string | null;
}

/** An event in the envelope of CloudEvents. */
export interface WireEvent {
  readonly id: string;
  readonly type: string;
  readonly time: string;
  readonly subject?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Events {
  readonly events: readonly WireEvent[];
  readonly cursor: string | null;
  readonly has_more: boolean;
  /** How many events were read, back to which instant, and where older ones begin. */
  readonly scanned?: number;
  readonly searched_from?: string | null;
  readonly before?: string | null;
}

export interface LogLine {
  readonly at: string;
  readonly message: string;
  readonly attempt?: number;
  readonly level?: string;
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface Logs {
  readonly lines: readonly LogLine[];
}

export interface ExplainedField {
  readonly field: string;
  readonly value: string;
  readonly source: string;
  readonly lost: readonly { readonly source: string; readonly value: string }[];
  /** How an adaptive limit came about. */
  readonly note?: string;
}

export interface Explanation {
  readonly fields: readonly ExplainedField[];
  /** Milliseconds since 1970. */
  readonly instants: {
    readonly soft: number | null;
    readonly hard: number | null;
    readonly total: number | null;
    readonly wait: number | null;
    readonly stall: number | null;
    readonly due: number;
  };
  readonly fixed: boolean;
  readonly warnings: readonly string[];
}

export interface Progress {
  readonly progress: number | null;
  readonly message: unknown;
  readonly data: unknown;
  readonly updated_at: string | null;
}

export interface DeadLetterStats {
  readonly total: number;
  readonly total_is_exact: boolean;
  readonly sampled: number;
  readonly by_type: Readonly<Record<string, number>>;
  readonly by_error_type: Readonly<Record<string, number>>;
  readonly oldest_at: string | null;
  readonly newest_at: string | null;
}

export interface FairRules {
  readonly by?: string;
  readonly strategy: "round-robin" | "weighted";
  readonly weights?: Readonly<Record<string, number>>;
  readonly default_weight?: number;
}

export interface QueueConfiguration {
  readonly concurrency?: number;
  readonly fair?: FairRules;
  readonly backpressure?: {
    readonly max_depth: number;
    readonly strategy: "reject" | "drop_oldest";
    readonly threshold?: number;
    readonly current_depth: number;
    readonly state: "normal" | "warning" | "critical";
  };
  readonly timeouts?: Readonly<Record<string, number | string>>;
  readonly retry?: Readonly<Record<string, unknown>>;
  readonly retention?: Readonly<Record<string, string>>;
}

export interface PriorityStats {
  readonly distribution: readonly { readonly priority: number; readonly count: number }[];
  readonly is_complete: boolean;
}

export interface WorkflowStep {
  readonly id: string;
  readonly type: string;
  readonly state: JobState;
  readonly progress: number | null;
  readonly started_at?: string;
  readonly completed_at?: string;
  /** The steps that it waits for, where the server says them. */
  readonly depends_on?: readonly string[];
}

export interface Workflow {
  readonly id: string;
  readonly type: "step" | "chain" | "group" | "batch" | "graph";
  readonly name: string | null;
  readonly state: "running" | "completed" | "failed" | "cancelled";
  readonly steps_total: number;
  readonly steps_completed: number;
  readonly jobs_failed: number;
  readonly jobs_cancelled: number;
  readonly created_at: string;
  readonly completed_at: string | null;
  readonly deadline: string | null;
  readonly failure: {
    readonly reason: string;
    readonly job_id: string | null;
    readonly job_type: string | null;
    readonly message: string | null;
  } | null;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly steps?: readonly WorkflowStep[];
}

export interface Rate {
  readonly limit: number;
  readonly period: string;
}

export interface Limit {
  readonly key: string;
  readonly concurrency: number | null;
  readonly rate: Rate | null;
  readonly active: number;
  readonly waiting: number;
  readonly starts: number;
  readonly available: number | null;
  readonly next_at: string | null;
  readonly override?: { readonly concurrency?: number | "none"; readonly rate?: Rate | "none" };
}

export interface UniqueKey {
  readonly key: string;
  readonly job_id: string;
  readonly type: string | null;
  readonly queue: string | null;
  readonly state: JobState | "gone";
  readonly locked_until?: string;
}

export interface AuditEntry {
  readonly id: string;
  readonly at: string;
  readonly actor: string;
  readonly action: string;
  readonly reason: string | null;
  readonly job_id?: string;
  readonly queue?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface Advice {
  readonly type: string;
  readonly verdict: "unknown" | "keep" | "raise" | "lower" | "set";
  readonly text: string;
  readonly timeout_ms: number | null;
  readonly other_timeouts_ms: readonly (number | null)[];
  readonly suggested_timeout_ms: number | null;
  readonly near_misses: number;
  readonly timeouts: Readonly<Record<string, number>>;
  readonly run: {
    readonly count: number;
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
    readonly max: number;
  } | null;
  readonly holds: readonly { readonly key: string; readonly job: string; readonly isWorkerGone: boolean }[];
  readonly what_if?: {
    readonly timeout_ms: number;
    readonly runs: number;
    readonly would_cut: { readonly at_least: number; readonly at_most: number };
    readonly share: number;
    readonly already_cut: number;
  };
  readonly adaptive: AdaptiveRule | null;
  readonly adaptive_what_if?: AdaptiveWhatIf;
}

/** A limit that follows the runs. */
export interface AdaptiveRule {
  readonly from: string;
  readonly times: number;
  readonly floor_ms: number;
  readonly ceiling_ms: number;
  readonly samples: number;
}

export interface AdaptiveWhatIf {
  readonly rule: AdaptiveRule;
  readonly limit_ms: number;
  readonly lowest_ms: number;
  readonly highest_ms: number;
  readonly runs: number;
  readonly would_cut: { readonly at_least: number; readonly at_most: number };
  readonly share: number;
  readonly already_cut: number;
  readonly changes: readonly { readonly at: string; readonly limit_ms: number }[];
}

export interface Maintenance {
  readonly enabled: boolean;
  readonly reason: string | null;
  readonly started_at: string | null;
  readonly ends_at: string | null;
  readonly estimated_end: string | null;
}

export interface ServerConfig {
  readonly implementation: { readonly name: string; readonly version: string };
  readonly uptime_seconds: number;
  readonly backend: string;
  readonly store: Readonly<Record<string, unknown>>;
  readonly events: { readonly recorded: boolean };
  readonly limits: Readonly<Record<string, number>>;
  readonly authentication: boolean;
}

export interface Health {
  readonly status: "healthy" | "unhealthy";
  readonly version: string;
  readonly backend: { readonly type: string; readonly status: string; readonly latency_ms: number };
}

export interface SagaTimeout {
  readonly id: string;
  readonly name: string;
  readonly key: string | null;
  readonly due_at?: string;
}

/** A leased timeout. */
export interface Timeout {
  readonly id: string;
  readonly destination: string;
  readonly due_at: string;
  readonly payload: unknown;
  /** What a saga calls it. */
  readonly name?: string | null;
  readonly key: string | null;
  readonly saga: { readonly type: string; readonly id: string } | null;
  readonly lease_until: string | null;
  readonly tries: number;
  readonly dead_at: string | null;
  readonly error: string | null;
}
