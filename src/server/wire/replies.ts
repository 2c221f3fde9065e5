import { z } from "zod";
import { JOB_STATES } from "../../core/job/job.ts";

/** Replies of the server, for the OpenAPI document. A test compares real replies with these. */

export const instant = z.iso.datetime().meta({ description: "RFC 3339 in UTC, to the millisecond." });
const any = z.any();

const errorSchema = z
  .looseObject({
    type: z.string(),
    code: z.string(),
    message: z.string(),
    attempt: z.int(),
    occurred_at: instant,
    timeout_kind: z.enum(["execution", "total", "enqueue_ttl", "stalled"]).optional(),
    limit_seconds: z.number().optional(),
    elapsed_seconds: z.number().optional(),
    predicted: z.literal(true).optional(),
    forced: z.literal(true).optional(),
    details: any.optional(),
    backtrace: z.array(z.string()).optional(),
  })
  .meta({ id: "JobError" });

const deadlines = z
  .looseObject({
    soft_at: instant.nullable(),
    hard_at: instant.nullable(),
    total_at: instant.nullable(),
    stall_at: instant.nullable(),
    silence_ms: z.int().nullable(),
    server_time: instant,
  })
  .meta({
    id: "Deadlines",
    description: "The instants of a running attempt. Count from server_time, never from a clock of your own.",
  });

const jobFields = {
  specversion: z.literal("1.0"),
  id: z.string(),
  type: z.string(),
  queue: z.string(),
  state: z.enum(JOB_STATES),
  held_by: z
    .string()
    .optional()
    .meta({ description: "The key of the limit that an available job waits for." }),
  fair_key: z.string().optional().meta({ description: "Its key in a fair queue." }),
  priority: z.int(),
  args: z.array(any),
  meta: z.record(z.string(), any),
  attempt: z.int(),
  max_attempts: z.int(),
  max_attempts_assumed: z.literal(true).optional().meta({
    description:
      "Nothing that is stored with the job says max_attempts, so it is the built-in 3. The definition of its worker may say something else: it is stored with the first start, but not for an attempt that succeeds quickly.",
  }),
  created_at: instant,
  enqueued_at: instant,
  scheduled_at: z.string().optional(),
  expires_at: z.string().optional(),
  started_at: instant.optional(),
  completed_at: instant.optional(),
  cancelled_at: instant.optional(),
  discarded_at: instant.optional(),
  next_attempt_at: instant.optional(),
  retry_delay_ms: z.int().optional(),
  timeout_ms: z.int().optional(),
  total_timeout_ms: z.int().optional(),
  enqueue_ttl_ms: z.int().optional(),
  grace_period_ms: z.int().optional(),
  heartbeat_timeout_ms: z.int().optional(),
  visibility_timeout_ms: z.int().optional(),
  timeout_mode: z.enum(["fail", "discard"]).optional(),
  timeout_adaptive: z.looseObject({ floor_ms: z.int(), ceiling_ms: z.int() }).optional(),
  retry_fit: z.enum(["full", "any"]).optional(),
  error: errorSchema.optional(),
  errors: z.array(errorSchema).optional(),
  result: any.optional(),
  progress: z.number().optional(),
  checkpoint: z.looseObject({ state: any, sequence: z.int() }).optional(),
  dead_letter: z.literal(true).optional(),
};

export const job = z.looseObject(jobFields).meta({ id: "Job" });
const fetchedJob = z
  .looseObject({ ...jobFields, fence: z.int(), beats: z.enum(["worker", "handler"]), deadlines })
  .meta({
    id: "FetchedJob",
    description: "A job whose attempt has begun; the fence belongs into every report on it.",
  });

const pagination = z.looseObject({ has_more: z.boolean(), next_cursor: z.string().nullable() });

export const jobReplySchema = z.looseObject({ job });
export const jobsReplySchema = z.looseObject({ jobs: z.array(job), pagination });
export const batchReplySchema = z.looseObject({ jobs: z.array(job), count: z.int() });
export const fetchReplySchema = z.looseObject({ jobs: z.array(fetchedJob) });

const settledFields = {
  acknowledged: z.literal(true),
  id: z.string(),
  job_id: z.string(),
  state: z.enum(JOB_STATES),
  attempt: z.int(),
  max_attempts: z.int(),
  next_attempt_at: instant.optional(),
  completed_at: instant.optional(),
  discarded_at: instant.optional(),
  retry_delay_ms: z.int().optional(),
};
export const settledReplySchema = z.looseObject({ ...settledFields, job }).meta({ id: "Settled" });

const refusedReport = z.looseObject({
  job_id: z.string(),
  status: z.int().min(400),
  error: z.looseObject({ code: z.string(), message: z.string(), retryable: z.boolean() }),
});
export const settledManyReplySchema = z
  .looseObject({
    results: z.array(
      z.union([z.looseObject({ ...settledFields, status: z.literal(200) }), refusedReport]).meta({
        id: "ReportResult",
        description: "What a single report would have been answered, without the job itself.",
      }),
    ),
    count: z.int(),
    refused: z.int(),
  })
  .meta({ id: "SettledBatch", description: "One result for each report, in their order." });

const workerState = z.enum(["running", "quiet", "terminate"]);
export const beatReplySchema = z
  .looseObject({
    acknowledged: z.literal(true),
    state: workerState,
    directive: workerState,
    jobs_extended: z.int(),
    server_time: instant,
    jobs: z.array(
      z.looseObject({
        id: z.string(),
        fence: z.int().optional(),
        directive: z.enum(["continue", "cancel", "soft_timeout", "lost"]),
        deadlines: deadlines.optional(),
        deadline: instant.nullable().optional(),
        kind: z.enum(["execution", "total"]).optional(),
      }),
    ),
  })
  .meta({ id: "BeatReply" });

export const progressReplySchema = z
  .looseObject({
    job_id: z.string(),
    progress: z.number().nullable(),
    percentage: z.number().nullable(),
    message: z.string().nullable(),
    data: any,
    updated_at: instant.nullable(),
  })
  .meta({ id: "Progress" });

export const checkpointReplySchema = z.looseObject({ job_id: z.string(), state: any, sequence: z.int() });
export const logsReplySchema = z.looseObject({
  job_id: z.string(),
  lines: z.array(z.looseObject({ at: instant, attempt: z.int(), message: z.string() })),
});
export const retriesReplySchema = z.looseObject({
  job_id: z.string(),
  retries: z.array(
    z.looseObject({
      attempt: z.int(),
      state: z.enum(["failed", "discarded"]),
      error: z.string(),
      failed_at: instant,
      next_retry_at: instant.optional(),
    }),
  ),
  policy: z.looseObject({}),
});
export const deletedReplySchema = z.looseObject({ deleted: z.literal(true), job_id: z.string() });

export const eventsReplySchema = z
  .looseObject({
    events: z.array(
      z
        .looseObject({
          specversion: z.literal("1.0"),
          id: z.string(),
          type: z.string(),
          source: z.string(),
          time: instant,
          subject: z.string().optional(),
          data: z.looseObject({
            job_type: z.string().optional(),
            queue: z.string().optional(),
            attempt: z.int().optional(),
          }),
        })
        .meta({ id: "Event" }),
    ),
    cursor: z.string().nullable(),
    has_more: z.boolean(),
    scanned: z.int().optional().meta({ description: "Without after: how many events were read." }),
    searched_from: instant.nullable().optional().meta({ description: "When the oldest of them happened." }),
    before: z.string().nullable().optional().meta({
      description: "Goes on with older events; null if there is none.",
    }),
  })
  .meta({ id: "EventPage" });

export const healthReplySchema = z.looseObject({
  status: z.enum(["healthy", "unhealthy"]),
  version: z.string(),
  backend: z.looseObject({ type: z.string(), status: z.string() }),
});
