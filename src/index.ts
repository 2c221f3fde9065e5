/*
 * What users need: functions that they call, errors that they catch, options that they pass and values that they get. A
 * part of one of these types is reached through it, as in `Engine["crons"]` or `CronOptions["missed"]`.
 */
export type { AuditEntry, By } from "./core/audit/audit-entry.ts";
export type { CalendarDay, HolidayProvider } from "./core/calendar/business-calendar.ts";
export type { BusinessTimeInput } from "./core/calendar/business-time.ts";
export { type IcsOptions, icsHolidays } from "./core/calendar/ics.ts";
export type { CronOptions, CronRun } from "./core/cron/cron.ts";
export type { CronInstant } from "./core/cron/instants-of.ts";
export type { UnattendedQueue } from "./core/doctor/doctor-facts.ts";
export { CurfewError, type ErrorCode } from "./core/errors.ts";
export type { JournalEvent } from "./core/event/journal-event.ts";
export type { FairOptions } from "./core/fair/fair-options.ts";
export type { SavedCheckpoint } from "./core/job/documents/checkpoint.ts";
export type { RedactPath } from "./core/job/documents/redaction.ts";
export type { EnqueueOptions } from "./core/job/enqueue/envelope.ts";
export type { UniqueOptions } from "./core/job/enqueue/unique-key.ts";
export type { Backoff, ErrorRecord, JobState } from "./core/job/job.ts";
export { defineJob, type JobDefinition, unchecked } from "./core/job/job-definition.ts";
export type { Job } from "./core/job/job-view.ts";
export type { Explanation } from "./core/job/policy/explain.ts";
export type { PolicyOptions, TimeoutOptions } from "./core/job/policy/policy.ts";
export {
  constant,
  delays,
  exponential,
  linear,
  polynomial,
  type RetryOptions,
} from "./core/job/policy/retry.ts";
export {
  type AbortReason,
  Discard,
  type Snooze,
  StopError,
  snooze,
  TimeoutError,
} from "./core/job/reasons.ts";
export type { JobLine } from "./core/job/transfer/job-line.ts";
export type { WhyCode } from "./core/job/why/codes.ts";
export type { Why, WhyReason } from "./core/job/why/reason.ts";
export type { LimitOptions } from "./core/limit/limit.ts";
export type { QueueOptions } from "./core/limit/queue-settings.ts";
export type { Compatibility } from "./core/registry/compatibility.ts";
export type { SagaContext } from "./core/saga/saga.ts";
export { defineSaga, type SagaDefinition } from "./core/saga/saga-definition.ts";
export type { StepResult } from "./core/saga/try-step.ts";
export type { Json, Schema } from "./core/schema.ts";
export { type Adaptive, type AdaptiveOptions, adaptive } from "./core/stats/adaptive-limit.ts";
export type { Advice } from "./core/stats/advice.ts";
export type { Duration, Instant, InstantInput } from "./core/time.ts";
export { explainWhen, type When, type WhenExplanation } from "./core/timeout/when.ts";
export type { Transaction, TransactionClient } from "./core/transaction.ts";
export type { WebhookOptions } from "./core/webhook/subscription.ts";
export {
  type BatchNode,
  batch,
  type ChainNode,
  chain,
  type GraphNode,
  type GroupNode,
  graph,
  group,
  type StepNode,
  type StepOptions,
  step,
  type WorkflowNode,
} from "./core/workflow/node.ts";
export type { LogLine } from "./engine/attempt/attempt-notes.ts";
export {
  type AttemptContext,
  type BatchContext,
  type BatchHandler,
  type BatchJob,
  type BatchOptions,
  batchProcessor,
  type CleanupHook,
  type Handler,
  type Middleware,
  type Processor,
  processor,
} from "./engine/attempt/processor.ts";
export type { CalendarView, StoredCalendarInput } from "./engine/calendars/calendars.ts";
export type { CronInput, CronView } from "./engine/crons/crons.ts";
export type { CurfewApi } from "./engine/curfew-api.ts";
export type { ServedDestination, TimeoutHandler, TimeoutMetrics } from "./engine/dispatch/engine-timeouts.ts";
export type { RevokedState } from "./engine/dispatch/operate-timeout.ts";
export type { CalendarPage } from "./engine/dispatch/timeout-api.ts";
export type { Timeout, TimeoutInput } from "./engine/dispatch/timeout-view.ts";
export type { Engine } from "./engine/engine.ts";
export { DuplicateJobError } from "./engine/enqueue/duplicate-job-error.ts";
export { EnqueueFailedError } from "./engine/enqueue/enqueue-failed-error.ts";
export { QueueFullError } from "./engine/enqueue/queue-full-error.ts";
export type { AuditPage } from "./engine/events/audit-log.ts";
export type { EngineEvent, EngineEventName, EngineEvents } from "./engine/events/event-bus.ts";
export type { JournalPage, LatestOptions, LatestPage } from "./engine/events/event-journal.ts";
export type { JobPage, PageOptions } from "./engine/find/find-jobs.ts";
export type { JobQuery } from "./engine/find/job-query.ts";
export type { BulkOptions, BulkResult } from "./engine/operations/bulk.ts";
export type { DeadLetterQuery } from "./engine/operations/dead-letters.ts";
export { JobFailedError } from "./engine/operations/job-failed-error.ts";
export type { JobHandle, JobProgress, LogPage } from "./engine/operations/job-handle.ts";
export type { JobRequestOptions } from "./engine/operations/request-job.ts";
export type { RescheduleOptions } from "./engine/operations/reschedule-options.ts";
export type { Operator } from "./engine/operator.ts";
export type { LimitView } from "./engine/queues/key-limits.ts";
export type { MaintenanceView } from "./engine/queues/maintenance-record.ts";
export type { OldestWaits } from "./engine/queues/oldest-waits.ts";
export type { QueueView } from "./engine/queues/queues.ts";
export type { EncryptionOptions } from "./engine/runtime/aes-sealing.ts";
export type { CloseOnSignalsOptions } from "./engine/runtime/close-on-signals.ts";
export type { MessageHandle } from "./engine/sagas/message-handle.ts";
export type { SagaHandle, SagaView } from "./engine/sagas/saga-handle.ts";
export type { SagaDetail, SagaPage } from "./engine/sagas/saga-records.ts";
export type { SagaHost } from "./engine/sagas/sagas.ts";
export type { CounterSnapshot } from "./engine/statistics/counters.ts";
export { LATENESS_BOUNDS } from "./engine/statistics/counters.ts";
export type { Stats } from "./engine/statistics/statistics.ts";
export type { StatsQuery } from "./engine/statistics/stats-query.ts";
export type {
  ExportLine,
  ExportPage,
  ExportPageOptions,
  UniqueLine,
} from "./engine/transfer/export-jobs.ts";
export type { ImportedLine, ImportOptions } from "./engine/transfer/import-jobs.ts";
export type { DeliveriesOptions, DeliveryPage, DeliveryView } from "./engine/webhooks/delivery-log.ts";
export type {
  CreatedWebhook,
  NewWebhook,
  RotateOptions,
  Webhooks,
  WebhookTest,
  WebhookView,
} from "./engine/webhooks/webhooks.ts";
export type { WorkForOptions, WorkForSummary } from "./engine/worker/work-for.ts";
export type { WorkerStatus, WorkOptions } from "./engine/worker/work-options.ts";
export type { Worker } from "./engine/worker/worker.ts";
export type { WorkflowOptions } from "./engine/workflows/start-options.ts";
export { WorkflowFailedError } from "./engine/workflows/workflow-failed-error.ts";
export type { WorkflowHandle } from "./engine/workflows/workflow-handle.ts";
export type { WorkflowSummary, WorkflowView } from "./engine/workflows/workflow-view.ts";
export { type CloudEvent, toCloudEvent } from "./ojs/cloud-event.ts";
export {
  backupSqlite,
  type OpenOptions,
  openEngine,
  openPostgresStore,
  openRedisStore,
  openSqliteStore,
  restoreSqlite,
  type WebhookServing,
} from "./open.ts";
export { type Logger, silentLogger } from "./ports/log.ts";
export type { SandboxedProcessor } from "./ports/sandbox.ts";
export type { Store } from "./ports/store.ts";
export { type SandboxOptions, sandboxed } from "./sandbox/sandboxed.ts";
export { createMemoryStore } from "./stores/memory/memory-store.ts";
export type { BackupResult, RestoreResult } from "./stores/sqlite/backup.ts";
export type { SqliteDatabase } from "./stores/sqlite/own-database.ts";
