import { z } from "zod";
import { instant, job } from "./replies.ts";

/** Replies to operators, for the OpenAPI document. Tests compare real replies with these. */

const count = z.int().min(0);

export const pagination = z
  .looseObject({
    total: count.optional(),
    total_is_exact: z.boolean().optional(),
    page: z.int().min(1).optional(),
    per_page: z.int().min(1),
    has_more: z.boolean(),
    next_cursor: z.string().nullable(),
  })
  .meta({
    id: "Pagination",
    description:
      "Where total_is_exact is false, only the first 10,000 jobs were looked at, and there may be more than total.",
  });

const listOf = (item: z.ZodType) => z.looseObject({ items: z.array(item), pagination });

const counts = z
  .looseObject({
    available: count,
    active: count,
    scheduled: count,
    retryable: count,
    pending: count,
    completed: count,
    discarded: count,
    cancelled: count,
  })
  .meta({
    id: "JobCounts",
    description: "Jobs that wait or run now, and those that ended in the last 24 hours.",
  });

const throughput = z.looseObject({ processed_per_minute: z.number(), failed_per_minute: z.number() });

/** The progress of a search that reads jobs one by one. */
const scanFields = {
  scanned: count.meta({ description: "At most this many jobs were looked at for this page." }),
  is_complete: z.boolean().meta({ description: "False: next_cursor goes on, and may find more." }),
};

export const adminJobsReply = listOf(job)
  .extend({
    scanned: scanFields.scanned.optional(),
    is_complete: scanFields.is_complete.optional(),
    matched_by: z.enum(["id", "payload"]).optional(),
  })
  .meta({ id: "AdminJobs", description: "With search it says how far that came." });

export const nearMissesReply = z
  .looseObject({
    items: z.array(
      z.looseObject({
        used: z.number(),
        kind: z.enum(["execution", "total"]),
        limit_ms: z.number(),
        late: z.boolean(),
        job,
      }),
    ),
    ...scanFields,
    pagination,
  })
  .meta({ id: "NearMisses" });

export const firedTimeoutsReply = z
  .looseObject({
    items: z.array(
      z.looseObject({
        id: z.string(),
        at: instant,
        event: z.string(),
        kind: z.string().nullable(),
        mode: z.string().nullable(),
        job_id: z.string(),
        type: z.string().nullable(),
        queue: z.string().nullable(),
        attempt: count.nullable(),
        limit_ms: z.number().nullable(),
        elapsed_ms: z.number().nullable(),
        forced: z.boolean(),
      }),
    ),
    is_recording: z.boolean().meta({ description: "False: this server records no events now." }),
    ...scanFields,
    searched_from: instant.nullable().optional().meta({ description: "How far back was searched." }),
    before: z.string().nullable().optional().meta({
      description: "Looks further back; null if nothing older is recorded, or a next page comes first.",
    }),
    pagination,
  })
  .meta({ id: "FiredTimeouts", description: "scanned counts events here." });
export const adminJobReply = z
  .looseObject({
    id: z.string(),
    state: z.string(),
    errors: z.array(z.any()),
    total_at: instant.nullable(),
    late: z.boolean().meta({ description: "Completed after its soft signal, within the grace." }),
    job,
  })
  .meta({ id: "AdminJob" });

export const statsReply = z
  .looseObject({
    queues: count,
    workers: count,
    jobs: counts,
    throughput,
    timeouts_per_minute: z.record(z.string(), z.number()),
    deadline_lateness: z
      .looseObject({
        bounds_ms: z.array(z.number()),
        counts: z.array(count),
        sum_ms: z.number(),
        total: count,
      })
      .meta({ description: "How late deadlines fired in this process since it started." }),
    oldest_waits: z.array(
      z.looseObject({
        queue: z.string(),
        job_id: z.string().nullable(),
        waiting_since: instant.nullable(),
        wait_ms: count.nullable(),
      }),
    ),
    oldest_waits_are_complete: z.boolean(),
  })
  .meta({ id: "AdminStats" });

export const historyReply = z
  .looseObject({
    period: z.string(),
    since: instant,
    until: instant,
    attainment: z.number().nullable().meta({
      description:
        "Of the jobs that completed or were ended by a timeout, the share that completed in time; null if there were none.",
    }),
    data: z.array(
      z.looseObject({
        timestamp: instant,
        span_ms: count,
        processed: count,
        failed: count,
        enqueued: count,
        late: count,
        near_misses: count,
        timeouts: z.record(z.string(), count),
        waiting: count
          .optional()
          .meta({ description: "The most jobs that waited at once; left out where no engine looked." }),
        oldest_wait_ms: count
          .optional()
          .meta({ description: "The longest that the oldest of them had waited." }),
        latency_p50_ms: z.number().optional(),
        latency_p95_ms: z.number().optional(),
        latency_p99_ms: z.number().optional(),
      }),
    ),
  })
  .meta({ id: "AdminStatsHistory" });

export const bulkReply = z
  .looseObject({
    action: z.string(),
    dry_run: z.boolean(),
    matched: count,
    succeeded: count,
    failed: count,
    skipped: count,
    is_complete: z.boolean(),
    next_cursor: z.string().nullable(),
    errors: z.array(z.looseObject({ error: z.string() })),
  })
  .meta({ id: "BulkResult" });

const worker = z
  .looseObject({
    id: z.string(),
    state: z.enum(["running", "quiet", "terminate", "stale"]),
    remote: z.boolean(),
    queues: z.array(z.string()),
    active_jobs: count,
    last_heartbeat_at: instant,
  })
  .meta({ id: "Worker" });
export const workerReply = z.looseObject({ id: z.string(), state: z.string(), worker });
export const workersReply = z
  .looseObject({
    items: z.array(worker),
    summary: z.looseObject({ total: count, running: count, quiet: count, stale: count }),
    pagination,
  })
  .meta({ id: "Workers" });

export const deadLetterStatsReply = z
  .looseObject({
    total: count,
    total_is_exact: z.boolean(),
    sampled: count,
    by_queue: z.record(z.string(), count),
    by_type: z.record(z.string(), count),
    by_error_type: z.record(z.string(), count),
    oldest_at: instant.nullable(),
    newest_at: instant.nullable(),
  })
  .meta({ id: "DeadLetterStats", description: "The parts are counted over the newest 500." });

export const adviseReply = z.looseObject({
  items: z.array(
    z
      .looseObject({
        type: z.string(),
        verdict: z.enum(["unknown", "keep", "raise", "lower", "set"]),
        timeout_ms: z.int().nullable(),
        suggested_timeout_ms: z.int().nullable(),
        text: z.string(),
        adaptive: z.looseObject({ code: z.string() }).nullable(),
        adaptive_what_if: z
          .looseObject({ limit_ms: z.int(), runs: z.int(), share: z.number(), already_cut: z.int() })
          .optional(),
      })
      .meta({ id: "Advice" }),
  ),
});

export const auditReply = listOf(
  z
    .looseObject({
      id: z.string(),
      at: instant,
      actor: z.string(),
      action: z.string(),
      reason: z.string().nullable(),
      job_id: z.string().optional(),
      queue: z.string().optional(),
    })
    .meta({ id: "AuditEntry" }),
).meta({ id: "Audit" });

const queueFields = {
  name: z.string(),
  status: z.enum(["active", "paused"]),
  state: z.enum(["active", "paused"]),
  paused: z.boolean(),
  paused_at: instant.optional(),
};
const queue = z
  .looseObject({
    ...queueFields,
    depth: count,
    counts,
    throughput,
    latency_ms: z.looseObject({ p50: z.number(), p95: z.number(), p99: z.number() }).optional(),
    configuration: z.looseObject({}),
  })
  .meta({ id: "Queue", description: "`depth` is how many jobs wait, for whatever." });
export const queueReply = z.looseObject({ name: z.string(), counts, queue });
export const queuesReply = z
  .looseObject({ queues: z.array(queue), items: z.array(queue), pagination })
  .meta({ id: "Queues" });
export const pausedReply = z
  .looseObject({ ...queueFields, queue: z.looseObject(queueFields) })
  .meta({ id: "PausedQueue" });
export const queueStatsReply = z
  .looseObject({
    name: z.string(),
    queue: z.looseObject({ name: z.string(), available: count, active: count, completed: count }),
    stats: z.looseObject({ queue: z.string(), depth: count }),
    available: count,
    active: count,
    completed: count,
  })
  .meta({ id: "QueueStats" });

const limit = z
  .looseObject({
    key: z.string(),
    concurrency: z.int().nullable(),
    rate: z.looseObject({ limit: z.int(), period: z.string() }).nullable(),
    active: count,
    waiting: count,
    available: count,
    next_at: instant.nullable(),
  })
  .meta({ id: "Limit" });
export const limitReply = z
  .looseObject({ key: z.string(), active: count, waiting: count, rate_limit: limit })
  .meta({ id: "LimitReply" });
export const limitsReply = z
  .looseObject({ items: z.array(limit), rate_limits: z.array(limit), pagination })
  .meta({ id: "Limits" });

export const queueConfigReply = z
  .looseObject({ name: z.string(), configuration: z.looseObject({}), config: z.looseObject({}) })
  .meta({ id: "QueueConfigReply" });
export const purgeReply = z
  .looseObject({ queue: z.string(), purged_count: count, deleted: count, is_complete: z.boolean() })
  .meta({ id: "Purged" });

export const maintenanceReply = z
  .looseObject({
    enabled: z.boolean(),
    maintenance: z.boolean(),
    reason: z.string().nullable(),
    started_at: instant.nullable(),
    ends_at: instant.nullable(),
    estimated_end: instant.nullable(),
  })
  .meta({ id: "Maintenance" });
export const configReply = z
  .looseObject({
    uptime_seconds: count,
    backend: z.string(),
    limits: z.looseObject({ body: count, depth: count, keys: count }),
    authentication: z.boolean(),
  })
  .meta({ id: "ServerConfig" });
const middlewareEntries = z.array(
  z.looseObject({ name: z.string(), phase: z.enum(["enqueue", "execution"]), order: z.int().min(1) }),
);
export const middlewareReply = z
  .looseObject({ enqueue: middlewareEntries, execution: middlewareEntries })
  .meta({ id: "MiddlewareChains" });
export const metricsReply = z
  .looseObject({ uptime_seconds: count, jobs_enqueued_total: count, jobs_active: count })
  .meta({ id: "Metrics" });

export const uniqueJobsReply = listOf(
  z
    .looseObject({
      key: z.string(),
      job_id: z.string(),
      type: z.string().nullable(),
      queue: z.string().nullable(),
      state: z.string(),
      locked_until: instant.optional(),
    })
    .meta({ id: "UniqueKey" }),
).meta({ id: "UniqueKeys" });
export const priorityStatsReply = z
  .looseObject({
    queue: z.string(),
    distribution: z.array(z.looseObject({ priority: z.int(), count })),
    is_complete: z.boolean(),
  })
  .meta({ id: "PriorityStats", description: "Of the first 10,000 available jobs, where there are more." });
export const directiveReply = z.looseObject({
  directive: z.string(),
  workers: count,
  is_complete: z.boolean(),
});
export const sessionReply = z
  .looseObject({
    name: z.string(),
    role: z.enum(["producer", "worker", "admin", "read-only"]),
    tenant: z.string().nullable().meta({ description: "The tenant that replies are about; null for none." }),
    tenants: z
      .union([z.array(z.string()), z.literal("*")])
      .meta({ description: "What the caller may choose." }),
    rights: z.array(z.string()),
    authentication: z.enum(["key", "session", "host", "nobody"]),
    can_log_out: z.boolean(),
    ends_at: instant.nullable(),
    has_keys: z.boolean(),
    version: z.string(),
    store: z.string(),
    server_time: instant,
    uptime_seconds: count,
    notice: z
      .looseObject({
        label: z.string(),
        text: z.string().optional(),
        links: z.array(z.looseObject({ text: z.string(), to: z.string() })).optional(),
      })
      .nullable(),
  })
  .meta({ id: "Session" });
