import { z } from "zod";
import { JOB_STATES } from "../../core/job/job.ts";
import { durationOf, isInstantText } from "../../ojs/wire-durations.ts";
import { businessTimeSchema } from "./business-time.ts";
import { overrideSchema } from "./retry-override.ts";
import { instant, jobType, optional, queueName, workerId } from "./schemas.ts";

/** Requests of operators, for validation and for the OpenAPI document. */

const state = z.enum(JOB_STATES);
const errorName = z.string().min(1).max(255);
/** A cursor may be a name that goes to the store. Not every database takes these characters. */
const cursor = z
  .string()
  .max(512)
  .refine((text) => text.isWellFormed() && !text.includes("\0"), {
    error: "not a cursor of this server; leave it out to start over",
  });
/** A cursor that holds the id of a timeout or of a saga, which may be long. */
const longCursor = z
  .string()
  .max(1_200)
  .refine((text) => text.isWellFormed() && !text.includes("\0"), {
    error: "not a cursor of this server; leave it out to start over",
  });
/** Entries to skip from the start. */
const offset = z.coerce.number().int().min(0).max(1_000_000);
const perPage = z.coerce.number().int().min(1).max(200);

const flag = z.enum(["true", "false"]).transform((text) => text === "true");

/** Lists are read by page or by cursor; a cursor costs the same everywhere. */
const pageFields = {
  page: z.coerce.number().int().min(1).max(1_000_000).optional(),
  per_page: perPage.optional(),
  limit: perPage.optional(),
  offset: offset.optional(),
  cursor: cursor.optional(),
};

export const adminPageQuery = z.looseObject(pageFields);

const filterFields = {
  queue: queueName.optional(),
  type: jobType.optional(),
  since: instant.optional(),
  until: instant.optional(),
};

export const deadLettersQuery = z.looseObject({
  ...pageFields,
  ...filterFields,
  error_type: errorName.optional(),
});

/** A cursor of an export may hold a unique key. */
export const exportQuery = z.looseObject({
  ...filterFields,
  state: state.optional(),
  dead_letter: flag.optional(),
  per_page: perPage.optional(),
  cursor: longCursor.optional(),
  ended: flag
    .optional()
    .meta({ description: "Also jobs that have ended; dead letters are exported in any case." }),
});

export const importSchema = z
  .looseObject({
    lines: z.array(z.looseObject({})).min(1).max(1_000),
    dry_run: optional(z.boolean()),
    reason: optional(z.string()),
  })
  .meta({ id: "ImportRequest", description: "Lines of an export." });

export const adminJobsQuery = z.looseObject({
  ...pageFields,
  ...filterFields,
  state: state.optional(),
  dead_letter: flag.optional(),
  search: z
    .string()
    .min(2)
    .max(512)
    .refine((text) => text.isWellFormed() && !text.includes("\0"), { error: "use text without NUL" })
    .optional()
    .meta({
      description:
        "The id of a job or its first 8 characters or more; else a text in the payload, as its JSON is written.",
    }),
  sort: z.enum(["created_at", "-created_at", "scheduled_at", "priority"]).optional().meta({
    description: "By scheduled_at and priority at most 5,000 jobs are sorted: narrow the filter.",
  }),
  order: z.enum(["asc", "desc"]).optional(),
});

export const nearMissesQuery = z.looseObject({
  ...filterFields,
  limit: perPage.optional(),
  per_page: perPage.optional(),
  cursor: cursor.optional(),
});

const TIMEOUT_KINDS = ["execution", "total", "enqueue_ttl", "stalled", "visibility"] as const;

export const firedTimeoutsQuery = z.looseObject({
  kind: z.enum(TIMEOUT_KINDS).optional(),
  mode: z.enum(["fail", "discard"]).optional(),
  queue: queueName.optional(),
  type: jobType.optional(),
  page: pageFields.page,
  limit: perPage.optional(),
  per_page: perPage.optional(),
  cursor: cursor.optional(),
  before: cursor
    .optional()
    .meta({ description: "Looks further back: `before` of the last reply. Of no use with `cursor`." }),
});

export const timeoutsQuery = z.looseObject({
  destination: z.string().min(1).max(512).optional(),
  from: instant.optional(),
  to: instant.optional(),
  dead: flag.optional(),
  limit: perPage.optional(),
  per_page: perPage.optional(),
  cursor: longCursor.optional(),
});

export const sagasQuery = z.looseObject({
  type: z.string().min(1).max(512).optional(),
  limit: perPage.optional(),
  per_page: perPage.optional(),
  cursor: longCursor.optional(),
  order: z.enum(["asc", "desc"]).optional().meta({
    description: "By type and id. Default desc: the last id first, which is the newest where ids grow.",
  }),
});

export const rescheduleSchema = z
  .looseObject({
    due_at: optional(instant).meta({
      description: 'RFC 3339 with a zone, or "+PT30S" for an instant from now.',
    }),
    when: optional(businessTimeSchema).meta({
      description: "Instead of due_at: a time by a business calendar.",
    }),
  })
  .refine(({ due_at, when }) => (due_at == null) !== (when == null), {
    error: "send either due_at or when",
    path: ["due_at"],
  })
  .meta({ id: "RescheduleRequest" });

/** ISO 8601, or the short form of a command line. */
export const someTime = z
  .string()
  .max(64)
  .refine((text) => durationOf(text) !== undefined, { error: 'use a duration such as "PT30M" or "30m"' });

/** When a job ended: an instant, or how long ago. */
const ended = z
  .string()
  .max(64)
  .refine((text) => isInstantText(text) || durationOf(text) !== undefined, {
    error: 'use RFC 3339 such as "2030-01-31T12:00:00Z", or how long ago such as "P7D" or "7d"',
  })
  .meta({ description: "Only jobs that ended before this instant, or longer ago than this duration." });

const reason = optional(z.string().max(500)).meta({ description: "Why, for the audit." });

const confirm = optional(z.boolean()).meta({
  description: "Must be true unless dry_run is: the action cannot be undone.",
});

const filterSchema = z.strictObject({
  queue: optional(queueName),
  type: optional(jobType),
  state: optional(state),
  since: optional(instant),
  until: optional(instant),
  error_type: optional(errorName),
  error_code: optional(errorName),
  dead_letter: optional(z.boolean()),
  older_than: optional(ended),
  all: optional(z.literal(true)),
});

const bulkFields = {
  confirm,
  dry_run: optional(z.boolean()).meta({ description: "Only counts." }),
  limit: optional(z.int().min(1).max(10_000)).meta({
    description: "The most jobs to change, by default 10,000; continue with next_cursor.",
  }),
  cursor: optional(cursor),
  reason,
};

/** Destructive requests are strict: a filter with a typo would fit every job. */
export const bulkSchema = z
  .strictObject({
    filter: optional(filterSchema),
    job_ids: optional(z.array(z.string().max(128)).min(1).max(10_000)),
    ...bulkFields,
  })
  .meta({
    id: "BulkRequest",
    description: "Which jobs are meant: all that a filter fits, or those that are named.",
  });

const letterFilter = filterSchema.omit({ state: true, dead_letter: true }).meta({ id: "DeadLetterFilter" });

export const deadLettersBulkSchema = z
  .strictObject({ filter: optional(letterFilter), override: optional(overrideSchema), ...bulkFields })
  .meta({ id: "DeadLetterBulkRequest", description: "An empty filter fits every dead letter." });

const letterFields = {
  queue: optional(queueName),
  type: optional(jobType),
  error_type: optional(errorName),
  since: optional(instant),
  until: optional(instant),
};

export const deadLettersPurgeSchema = z
  .strictObject({
    ...letterFields,
    older_than: optional(ended),
    filter: optional(letterFilter),
    ...bulkFields,
  })
  .nullish()
  .meta({
    id: "DeadLetterPurgeRequest",
    description: "Which dead letters are meant: in the body, or in the query for clients that send no body.",
  });

export const deadLettersPurgeQuery = z.looseObject({
  queue: queueName.optional(),
  type: jobType.optional(),
  error_type: errorName.optional(),
  since: instant.optional(),
  until: instant.optional(),
  older_than: ended.optional(),
  confirm: flag.optional(),
  dry_run: flag.optional(),
});

export const prioritySchema = z
  .looseObject({ priority: z.int().min(-100).max(100) })
  .meta({ id: "PriorityRequest" });

export const statsQuery = z.looseObject({ queue: queueName.optional() });

export const historyQuery = z.looseObject({
  period: z.enum(["1m", "5m", "15m", "1h", "6h", "1d"]).optional(),
  since: instant.optional(),
  until: instant.optional(),
  queue: queueName.optional(),
  type: jobType.optional(),
});

export const adviseQuery = z.looseObject({
  queue: queueName.optional(),
  type: jobType.optional(),
  since: instant.optional(),
  timeout_ms: z.coerce.number().int().min(1).max(315_360_000_000).optional(),
  adaptive_floor_ms: z.coerce.number().int().min(1).max(315_360_000_000).optional(),
  adaptive_ceiling_ms: z.coerce.number().int().min(1).max(315_360_000_000).optional(),
  adaptive_from: z.enum(["p50", "p90", "p95", "p99", "max"]).optional(),
  adaptive_times: z.coerce.number().optional(),
  adaptive_samples: z.coerce.number().int().optional(),
});

export const auditQuery = z.looseObject({
  actor: z.string().max(100).optional(),
  action: z.string().max(100).optional(),
  job_id: z.string().max(128).optional(),
  queue: queueName.optional(),
  limit: perPage.optional(),
  per_page: perPage.optional(),
  cursor: cursor.optional(),
});

const purged = z.enum([
  "available",
  "pending",
  "scheduled",
  "retryable",
  "completed",
  "discarded",
  "cancelled",
]);

const purgeFields = { older_than: optional(ended), confirm, reason };
export const purgeSchema = z
  .strictObject({ states: z.array(purged).min(1).max(7), ...purgeFields })
  .meta({ id: "PurgeRequest", description: "Jobs that run are never deleted: cancel them first." });
export const purgeWaitingSchema = z
  .strictObject({ states: optional(z.array(purged).min(1).max(7)), ...purgeFields })
  .nullish()
  .meta({ id: "PurgeWaitingRequest", description: "Without states: jobs that wait." });

export const maintenanceSchema = z
  .looseObject({
    enabled: z.boolean(),
    reason: optional(z.string().max(500)).meta({ description: "What is being done; kept in the audit too." }),
    duration: optional(someTime).meta({
      description: "It ends by itself after this time. Without it, when somebody ends it.",
    }),
    estimated_duration: optional(someTime).meta({ description: "Only shown." }),
  })
  .meta({ id: "MaintenanceRequest" });

export const directiveSchema = z
  .looseObject({ directive: z.enum(["quiet", "terminate", "resume"]) })
  .meta({ id: "DirectiveRequest" });

export const metricsQuery = z.looseObject({ format: z.enum(["json", "prometheus"]).optional() });

export const workerParam = workerId;

export type PageQuery = z.infer<typeof adminPageQuery>;
export type PurgeBody = NonNullable<z.infer<typeof purgeWaitingSchema>>;
export type BulkBody = z.infer<typeof bulkSchema>;
export type FilterBody = z.infer<typeof filterSchema>;
