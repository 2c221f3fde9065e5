/** Example bodies of requests, by the name of their schema. A test checks each against its schema. */
const JOB = {
  type: "email.send",
  args: [{ to: "user@example.com", template: "welcome" }],
  options: { queue: "email", timeout_ms: 30_000, total_timeout_ms: 600_000, retry: { max_attempts: 5 } },
};
const ID = "019414d4-8b2e-7c3a-b5d1-f0e2a3b4c5d6";
const FENCE = 2_097_152;
const FAILURE = { code: "handler_error", message: "SMTP connection refused", retryable: true };

export const EXAMPLES: Readonly<Record<string, object>> = {
  EnqueueRequest: JOB,
  EnqueueBatchRequest: { jobs: [JOB, { type: "email.archive", args: [] }] },
  FetchRequest: { queues: ["email"], count: 1, worker_id: "worker-1", wait_ms: 1_000 },
  AckRequest: { job_id: ID, fence: FENCE, result: { message_id: "m-1" } },
  AckBatchRequest: { worker_id: "worker-1", jobs: [{ job_id: ID, fence: FENCE }] },
  NackRequest: { job_id: ID, fence: FENCE, error: FAILURE },
  NackBatchRequest: { worker_id: "worker-1", jobs: [{ job_id: ID, fence: FENCE, error: FAILURE }] },
  BeatRequest: { worker_id: "worker-1", state: "running", active_jobs: [{ id: ID, fence: FENCE }] },
  ProgressRequest: { progress: 0.4, message: "page 2 of 5", fence: FENCE },
  WorkerProgressRequest: { job_id: ID, percentage: 40 },
  CheckpointRequest: { state: { page: 2 }, fence: FENCE },
  LogRequest: { lines: [{ message: "page 2 is done" }], fence: FENCE },
  ExtendRequest: { timeout_ms: 60_000 },
  PriorityRequest: { priority: 10 },
  BulkRequest: { filter: { queue: "email", state: "discarded" }, dry_run: true },
  DeadLetterBulkRequest: { filter: { queue: "email", error_type: "ConnectionError" }, confirm: true },
  DeadLetterPurgeRequest: { queue: "email", older_than: "P30D", confirm: true },
  WorkflowRequest: {
    type: "graph",
    name: "onboarding",
    options: { queue: "email" },
    steps: [
      { id: "welcome", type: "email.send", args: ["welcome"], depends_on: [] },
      { id: "remind", type: "email.send", args: ["remind"], depends_on: ["welcome"] },
    ],
  },
  SchemaRegistration: { type: "email.send", version: 1, schema: { type: "array", items: {}, minItems: 1 } },
  SchemaRules: { validation: "always" },
  SchemaCheckRequest: { args: [{ to: "user@example.com" }] },
  SchemaRequest: {
    schema: { type: "array", prefixItems: [{ type: "object", required: ["to"] }], items: {} },
    compatibility: "backward",
    validation: "always",
  },
  CronRequest: {
    name: "daily-report",
    cron: "0 9 * * *",
    timezone: "Europe/Berlin",
    type: "report.make",
    args: [],
  },
  CronChange: { enabled: false },
  NewQueue: { name: "email", concurrency: 10 },
  QueueConfig: { concurrency: 10, backpressure: { max_depth: 1_000 } },
  PurgeRequest: { states: ["completed"], older_than: "P7D", confirm: true },
  LimitOverride: { rate: { limit: 100, period: "PT1M" } },
  MaintenanceRequest: { enabled: true, reason: "database upgrade", duration: "PT30M" },
  DirectiveRequest: { directive: "quiet" },
  TenantRequest: { limits: { max_queue_depth: 50_000, max_enqueue_rate: { limit: 1_000, period: "PT1M" } } },
  TenantLimits: { max_concurrency: 20, max_payload_bytes: 65_536 },
  SessionChange: { tenant: "acme" },
  WebhookRequest: {
    url: "https://example.com/hooks/jobs",
    events: ["job.failed", "job.discarded"],
    filter: { queues: ["email"] },
  },
  WebhookChange: { active: false },
  WebhookRotation: { overlap: "PT12H" },
  RescheduleRequest: { due_at: "+PT1H" },
  CalendarRequest: {
    zone: "Europe/Berlin",
    week: { mon: "09:00-17:00", fri: "09:00-15:00" },
    days: [{ date: "2030-12-24", hours: "09:00-12:00", name: "Christmas Eve" }, { date: "2030-12-25" }],
    until: "2030-12-31",
  },
  ExplainWhenRequest: { when: { calendar: "frankfurt", working_days: 2, at: "17:00", cut_off: "15:00" } },
};

/** What each tag holds. */
export const TAGS: Readonly<Record<string, string>> = {
  schemas: "What the arguments of jobs must look like, by type and version",
  system: "Health, readiness, metrics and the description of the server",
  session: "Sessions of browsers",
  calls: "Methods of the library under their own names, for curfew's own client",
  jobs: "Enqueue jobs, look at them, wait for them and end them",
  workers: "Fetch jobs, report on them and stay alive",
  progress: "Progress, checkpoints and logs of running jobs",
  "dead letters": "Jobs that failed for good",
  crons: "Jobs that repeat",
  calendars: "Working days, holidays and hours",
  workflows: "Jobs that depend on each other",
  events: "What happened, by cursor or as a stream",
  queues: "Queues and their settings",
  "rate limits": "Limits by key",
  tenants: "Across tenants: who they are, what they use and what they may use",
  webhooks: "Events that are sent to endpoints",
  admin: "For operators: search, bulk actions, statistics, timeouts, sagas, the audit",
};
