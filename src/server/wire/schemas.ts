import { z } from "zod";
import { UUID_V7 } from "../../core/ids.ts";
import { INTERNAL } from "../../core/job/internal-queue.ts";
import { isInstantText, readIsoDuration } from "../../ojs/wire-durations.ts";
import { poolStrategy, queueWeights } from "./fair.ts";
import { rateLimitSchema } from "./limit.ts";
import { uniqueSchema } from "./unique.ts";

/** Request bodies, for validation and for the OpenAPI document. */

const MOST_SECONDS = 315_360_000;
const MOST_MS = MOST_SECONDS * 1_000;

const seconds = z.int().min(1).max(MOST_SECONDS);
const ms = z.int().min(1).max(MOST_MS);
const none = z.literal("none");
export const iso = z.string().refine((text) => readIsoDuration(text) !== undefined, {
  error: 'use an ISO 8601 duration such as "PT30S", at most 10 years',
});
const someTime = iso.refine((text) => readIsoDuration(text) !== 0, {
  error: "use a duration of one millisecond at least",
});
export const instant = z.string().max(64).refine(isInstantText, {
  error: 'use RFC 3339 with a zone such as "2030-01-31T12:00:00Z", or "+PT30S" for an instant from now',
});

const jobId = z
  .string()
  .regex(UUID_V7, { error: "use a lower-case UUIDv7" })
  .meta({ description: "A UUIDv7 in lower case." });
/** Ids in paths and reports may be any text. An unknown one is a 404. */
const anyId = z.string().min(1).max(128);

const RESERVED = `use another name: those that begin with "${INTERNAL}" belong to the server`;
const isFree = (name: string) => !name.startsWith(INTERNAL);

export const queueName = z
  .string()
  .max(128)
  .regex(/^[a-z0-9][a-z0-9.-]*$/, {
    error: 'use lower-case letters, digits, "-" and ".", beginning with a letter or digit',
  })
  .refine(isFree, { error: RESERVED });

export const jobType = z
  .string()
  .max(255)
  .regex(/^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*$/, {
    error: 'use lower-case words joined by dots, such as "card.charge"',
  })
  .refine(isFree, { error: RESERVED });

/** A type with its version behind it, as job-versioning has it: `card.charge@2.0`. */
export const versionedType = z
  .string()
  .max(255)
  .regex(/^[a-z][a-z0-9_-]*(\.[a-z][a-z0-9_-]*)*(@[1-9]\d{0,8}(\.\d{1,9}){0,2})?$/, {
    error: 'use lower-case words joined by dots, such as "card.charge"',
  })
  .refine(isFree, { error: RESERVED });

export const optional = <Schema extends z.ZodType>(schema: Schema) => schema.nullish();

/** The engine checks the ranges, so that its errors are the same everywhere. */
const adaptiveSchema = z
  .strictObject({
    from: z.enum(["p50", "p90", "p95", "p99", "max"]).optional(),
    times: z.number().optional(),
    floor_ms: ms,
    ceiling_ms: ms,
    samples: z.int().optional(),
    step: z.number().optional(),
    every_ms: ms.optional(),
    window_ms: ms.optional(),
  })
  .meta({
    id: "AdaptiveTimeout",
    description: "An attempt timeout that follows the recorded runs of the type. It stands for timeout_ms.",
  });

/** The five timeouts in both spellings, and their options (SEMANTICS 1). */
export const timeoutFields = {
  timeout: optional(z.union([seconds, none])).meta({
    description: "Seconds from the start of each attempt to its soft signal.",
  }),
  timeout_ms: optional(z.union([ms, none])),
  total_timeout: optional(z.union([seconds, none])).meta({
    description: "Seconds from creation through queue time, attempts and backoff.",
  }),
  total_timeout_ms: optional(z.union([ms, none])),
  enqueue_ttl: optional(z.union([seconds, none])).meta({
    description: "Seconds from creation until the first start.",
  }),
  enqueue_ttl_ms: optional(z.union([ms, none])),
  grace_period: optional(z.union([z.int().min(0).max(MOST_SECONDS), z.literal("unbounded")])).meta({
    description: "Seconds from the soft signal until the attempt is ended by force.",
  }),
  grace_period_ms: optional(z.union([z.int().min(0).max(MOST_MS), z.literal("unbounded")])),
  heartbeat_timeout: optional(z.union([seconds, none])).meta({
    description: "The longest silence of a running attempt, in seconds.",
  }),
  heartbeat_timeout_ms: optional(z.union([ms, none])),
  visibility_timeout: optional(z.union([seconds, someTime])),
  visibility_timeout_ms: optional(ms),
  timeout_mode: optional(z.enum(["fail", "discard"])),
  timeout_adaptive: optional(adaptiveSchema),
  retry_fit: optional(z.enum(["full", "any"])),
};

const strategy = z.enum(["none", "constant", "linear", "exponential", "polynomial", "delays"]);

export const retrySchema = z
  .looseObject({
    max_attempts: optional(z.int().min(0).max(1_000)),
    initial_interval: optional(iso),
    initial_interval_ms: optional(z.int().min(0).max(MOST_MS)),
    initial_delay_ms: optional(z.int().min(0).max(MOST_MS)),
    backoff_coefficient: optional(z.number().min(1).max(100)),
    backoff_strategy: optional(strategy),
    strategy: optional(strategy),
    delays_ms: optional(z.array(z.int().min(0).max(MOST_MS)).min(1).max(100)).meta({
      description: 'With backoff_strategy "delays": exactly these, the last one for all further retries.',
    }),
    max_interval: optional(iso),
    max_interval_ms: optional(ms),
    jitter: optional(z.boolean()),
    non_retryable_errors: optional(z.array(z.string().min(1).max(255)).max(100)),
    on_exhaustion: optional(z.enum(["discard", "dead_letter"])),
    on_stall: optional(z.enum(["retry", "discard"])),
  })
  .meta({ id: "RetryPolicy" });

export const kept = z.int().min(0).max(MOST_MS);
const retention = z.union([
  kept,
  z
    .looseObject({
      completed: optional(kept),
      discarded: optional(kept),
      cancelled: optional(kept),
      dead_letter: optional(z.union([kept, z.literal("until_removed")])),
    })
    .meta({ id: "JobRetention" }),
]);

const optionFields = {
  queue: optional(queueName),
  priority: optional(z.int().min(-100).max(100)),
  scheduled_at: optional(instant),
  delay_until: optional(instant),
  expires_at: optional(instant),
  pending: optional(z.boolean()),
  ...timeoutFields,
  retry: optional(retrySchema),
  retention_ms: optional(retention).meta({ description: "How long the job is kept once it has ended." }),
  tags: optional(z.array(z.string().max(255)).max(100)),
  unique: optional(uniqueSchema),
  rate_limit: optional(rateLimitSchema),
  fair_key: optional(z.string().min(1).max(255)).meta({
    description: "Its key in a fair queue, such as a customer. Each key has its turn.",
  }),
  version: z.any().optional().meta({
    description:
      'The version of its arguments, such as 2 or "1.4.0": it routes to workers and names a schema.',
  }),
  schema: z.any().optional().meta({ description: "The uri of the schema of its arguments." }),
  redact: optional(
    z
      .array(
        z.union([z.string().min(1).max(500), z.array(z.union([z.string().min(1), z.int().min(0)])).max(20)]),
      )
      .max(50),
  ).meta({
    description:
      'What people must not see of the job: paths such as "payload.card.number", "payload.items.*.token", "result", "checkpoint.key", "meta.token". Workers get everything.',
  }),
};

/** The body was parsed as JSON, so every value is JSON. */
const anyJson = z.any().meta({ description: "Any JSON." });

/** Characters of a JSON object that is stored with a job or worker, besides its documents. */
const MOST_META = 64_000;
const MOST_LABELS = 2_000;
const smallObject = (most: number) =>
  z.record(z.string(), z.any()).refine((value) => JSON.stringify(value).length <= most, {
    error: `use at most ${most} characters of JSON; larger data belongs into args`,
  });
export const metaObject = smallObject(MOST_META);

/** Options of a job, or defaults for all jobs of a workflow. */
export const optionsSchema = z
  .looseObject({ ...optionFields, meta: optional(metaObject), metadata: optional(metaObject) })
  .meta({ id: "EnqueueOptions" });

export const enqueueSchema = z
  .looseObject({
    type: versionedType,
    args: z.array(z.any()).meta({
      description:
        "What the job is given. Any JSON, handed through as it came; whole numbers that would lose digits (beyond 2^53) are refused.",
    }),
    id: optional(jobId),
    parent_id: optional(anyId).meta({
      description: "The running job that enqueues this one: what is left of its total is an upper bound.",
    }),
    meta: optional(metaObject),
    metadata: optional(metaObject).meta({ description: "Joined with meta, which goes first." }),
    curfew: optional(z.looseObject({})).meta({
      description: "Options of curfew's own client in the words of its library, such as limit and unique.",
    }),
    options: optional(optionsSchema).meta({
      description: "The same fields may stand at the top level; these go first.",
    }),
    ...optionFields,
  })
  .meta({
    id: "EnqueueRequest",
    description: "A job. Fields that are not named here are kept and given back.",
  });

export const batchSchema = z
  .looseObject({ jobs: z.array(enqueueSchema).min(1).max(1_000) })
  .meta({ id: "EnqueueBatchRequest", description: "All jobs are stored, or none is." });

/** Worker names are store keys, and not every store can keep every character. */
export const workerId = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, { error: "use a name without control characters" });

const definitionSchema = z
  .looseObject({ ...timeoutFields, retry: optional(retrySchema), retention_ms: optional(retention) })
  .meta({ id: "DefinitionRung" });

const handledVersions = z
  .union([
    z
      .array(z.union([z.int().min(1), z.string().min(1).max(40)]))
      .min(1)
      .max(100),
    z.string().min(1).max(255),
    z.int().min(1),
  ])
  .meta({ description: 'A list, "*", one version, or a range such as ">=1.0 <3.0".' });
/** Characters of the handlers of one worker. All workers are read at once. */
const MOST_HANDLERS = 8_000;
const handlers = z
  .array(z.looseObject({ type: z.string().max(255), versions: optional(handledVersions) }))
  .max(200)
  .refine((value) => JSON.stringify(value).length <= MOST_HANDLERS, {
    error: `use at most ${MOST_HANDLERS} characters of JSON; leave out types that run all versions`,
  })
  .meta({
    description:
      "The versions of jobs that the worker runs, by type, as in `versions`. Those of its last heartbeat hold for fetches that name none.",
  });

export const fetchSchema = z
  .looseObject({
    queues: z.array(queueName).min(1).max(100),
    count: optional(z.int().min(1).max(200)),
    worker_id: optional(workerId),
    pool: optional(z.string().min(1).max(255)).meta({
      description: "The pool of the worker: it gets jobs of the pool's queues only, by the pool's strategy.",
    }),
    strategy: optional(poolStrategy).meta({
      description: "Without a pool: how to choose among the queues. Left out: in their order.",
    }),
    weights: optional(queueWeights),
    visibility_timeout_ms: optional(ms),
    visibility_timeout: optional(z.union([seconds, someTime])),
    wait_ms: optional(z.int().min(0).max(2_000)).meta({
      description: "Wait up to this many milliseconds for a job.",
    }),
    fetch_id: optional(z.string().min(1).max(128)).meta({
      description: "Asked again under the same id within 30 s, the worker gets the same jobs again.",
    }),
    definitions: optional(z.record(z.string().max(255), definitionSchema)).meta({
      description: "What the worker's definitions say, by job type, for jobs whose producer had none.",
    }),
    versions: optional(z.record(z.string().max(255), handledVersions)).meta({
      description:
        "The versions of jobs that the worker runs, by type; jobs of others stay for other workers.",
    }),
    handlers: optional(handlers),
    soft_timeout: optional(z.boolean()).meta({
      description:
        "The worker hears soft signals: it obeys `deadlines.soft_at` and the directives of its beats.",
    }),
  })
  .meta({ id: "FetchRequest" });

/** The sender of a report: by fence, else by worker name, else every report on an active job counts. */
const senderFields = {
  fence: optional(z.int().min(0)).meta({
    description: "The fence of the fetched job. It decides whether the report counts.",
  }),
  worker_id: optional(workerId),
};

const reportFields = {
  ...senderFields,
  signalled: optional(z.boolean()).meta({
    description:
      "Whether the handler had heard its soft signal. Counts only from a worker that fetched with soft_timeout.",
  }),
};

const succeedBody = { result: anyJson.optional(), ...reportFields };
export const succeedSchema = z.looseObject({ job_id: anyId, ...succeedBody }).meta({ id: "AckRequest" });
export const succeedByPathSchema = z.looseObject(succeedBody).nullish().meta({ id: "JobAckRequest" });

const errorInput = z
  .looseObject({
    code: optional(z.string().max(255)),
    type: optional(z.string().max(255)),
    message: optional(z.string().max(100_000)),
    retryable: optional(z.boolean()),
    details: anyJson.optional(),
    backtrace: optional(z.union([z.string(), z.array(z.string())])),
    stack: optional(z.string()),
    cause: optional(
      z.looseObject({
        type: optional(z.string().max(255)),
        code: optional(z.string().max(255)),
        message: optional(z.string().max(100_000)),
        stack: optional(z.string()),
      }),
    ),
  })
  .meta({ id: "ReportedError" });

const failBody = {
  error: optional(errorInput),
  requeue: optional(z.boolean()).meta({ description: "Give the job back without spending the attempt." }),
  delay_ms: optional(z.int().min(0).max(MOST_MS)).meta({
    description: "With requeue: the delay in milliseconds.",
  }),
  snooze_until: optional(instant).meta({ description: "Call me again then; no attempt is spent." }),
  forced: optional(z.boolean()).meta({
    description: "The worker ended the attempt at its hard deadline; counts only with the fence.",
  }),
  stalled: optional(z.boolean()).meta({
    description:
      "The worker saw no sign of life of the handler for its heartbeat timeout; counts only with the fence.",
  }),
  discard: optional(z.boolean()).meta({ description: "End the job: no retry, no dead letter." }),
  ...reportFields,
};
export const failSchema = z.looseObject({ job_id: anyId, ...failBody }).meta({ id: "NackRequest" });
export const failByPathSchema = z.looseObject(failBody).meta({ id: "JobNackRequest" });

/** Many reports in one request. An invalid body is refused as a whole. */
const manyOf = <Item extends z.ZodType>(item: Item) =>
  z.looseObject({
    worker_id: optional(workerId).meta({ description: "Of all jobs that name no worker of their own." }),
    jobs: z.array(item).min(1).max(1_000),
  });
export const succeedManySchema = manyOf(succeedSchema).meta({ id: "AckBatchRequest" });
export const failManySchema = manyOf(failSchema).meta({ id: "NackBatchRequest" });

const activeJob = z.union([anyId, z.looseObject({ id: anyId, fence: optional(z.int().min(0)) })]);

export const beatSchema = z
  .looseObject({
    worker_id: workerId,
    active_jobs: optional(z.union([z.array(activeJob).max(1_000), z.int().min(0)])),
    active_job_ids: optional(z.array(anyId).max(1_000)),
    watched_jobs: optional(z.array(activeJob).max(1_000)).meta({
      description: "Jobs that are only asked about: their silence goes on.",
    }),
    state: optional(z.string().max(64)),
    visibility_timeout_ms: optional(ms),
    shutdown: optional(z.boolean()),
    hostname: optional(z.string().max(255)),
    pid: optional(z.int()),
    queues: optional(z.array(z.string().max(128)).max(100)),
    job_types: optional(z.array(z.string().max(255)).max(200)).meta({
      description: "Job types that the worker has processors for; left out, it is taken to have all.",
    }),
    handlers: optional(handlers),
    concurrency: optional(z.int().min(0)),
    labels: optional(z.union([z.array(z.string().max(255)).max(100), smallObject(MOST_LABELS)])).meta({
      description: "At most 2,000 characters of JSON.",
    }),
  })
  .meta({ id: "BeatRequest" });

const note = { message: optional(z.string().max(10_000)), data: anyJson.optional() };
export const progressSchema = z
  .looseObject({ progress: z.number(), checkpoint: anyJson.optional(), ...note, ...senderFields })
  .meta({ id: "ProgressRequest", description: "A fraction; what lies outside of 0 to 1 is cut." });
export const workerProgressSchema = z
  .looseObject({ job_id: anyId, percentage: z.number(), ...note, ...senderFields })
  .meta({ id: "WorkerProgressRequest" });

export const checkpointSchema = z
  .looseObject({
    state: anyJson.refine((state) => state !== null, { error: "send a value; DELETE forgets the saved one" }),
    step_index: optional(z.int().min(0)).meta({ description: "Which step the state was saved after." }),
    metadata: optional(metaObject),
    ...senderFields,
  })
  .meta({ id: "CheckpointRequest" });

export const logsSchema = z
  .looseObject({
    lines: z
      .array(
        z.looseObject({
          message: z.string().max(4_000),
          fields: optional(metaObject),
          at: optional(instant),
        }),
      )
      .min(1)
      .max(1_000),
    ...senderFields,
  })
  .meta({ id: "LogRequest" });

const duration = z.union([ms, none]);
export const extendSchema = z
  .looseObject({
    timeout_ms: optional(duration),
    total_timeout_ms: optional(duration),
    heartbeat_timeout_ms: optional(duration),
    priority: optional(z.int().min(-100).max(100)).meta({ description: "Of a job that waits." }),
  })
  .meta({ id: "ExtendRequest", description: "New limits for a waiting or running job." });

export const emptySchema = z
  .looseObject({ reason: optional(z.string().max(500)).meta({ description: "Why, for the audit." }) })
  .nullish()
  .meta({ id: "ActionRequest" });

const limit = z.coerce.number().int().min(1).max(200).optional();
export const pageQuery = z.looseObject({ limit, cursor: z.string().max(128).optional() });
export const jobQuery = z.looseObject({ wait_ms: z.coerce.number().int().min(0).max(2_000).optional() });
export const resultQuery = z.looseObject({
  wait: z.enum(["true", "false"]).optional(),
  timeout: z.coerce.number().int().min(0).max(30).optional().meta({
    description: "With wait: for how many seconds.",
  }),
});
export const jobsQuery = z.looseObject({
  limit,
  offset: z.coerce.number().int().min(0).max(1_000_000).optional(),
  cursor: z.string().max(128).optional(),
  queue: queueName.optional(),
  type: jobType.optional(),
  state: z
    .enum(["scheduled", "available", "pending", "active", "retryable", "completed", "cancelled", "discarded"])
    .optional(),
});
export const eventsQuery = z.looseObject({
  limit: z.coerce.number().int().min(1).max(1_000).optional(),
  page: z.coerce.number().int().min(1).max(1).optional().meta({
    description: "Only the first: continue with after. The public admin page sends it.",
  }),
  since: instant.optional().meta({ description: "Only events since this instant." }),
  per_page: z.coerce.number().int().min(1).max(1_000).optional(),
  types: z.string().max(2_000).optional(),
  type: z.string().max(2_000).optional(),
  queues: z.string().max(10_000).optional(),
  queue: z.string().max(128).optional(),
  job_id: z.string().max(128).optional(),
  after: z.string().max(128).optional(),
  cursor: z.string().max(128).optional(),
  before: z.string().max(128).optional().meta({
    description: "Without after: the newest events before this one, the before of a reply.",
  }),
  saga_type: z
    .string()
    .min(1)
    .max(512)
    .optional()
    .meta({ description: "With saga_id: only events of this saga." }),
  saga_id: z.string().min(1).max(512).optional(),
});

export type OptionsBody = z.infer<typeof optionsSchema>;
export type EnqueueBody = z.infer<typeof enqueueSchema>;
export type RetryBody = z.infer<typeof retrySchema>;
export type DefinitionBody = z.infer<typeof definitionSchema>;
export type FailBody = z.infer<typeof failByPathSchema>;
export type BeatBody = z.infer<typeof beatSchema>;
