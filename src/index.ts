export { CurfewError, ERRORS, type ErrorCode } from "./core/errors.ts";
export { type DefinitionOptions, defineJob, type JobDefinition, unchecked } from "./core/job/definition.ts";
export type { EnqueueOptions } from "./core/job/envelope.ts";
export type { ExplainedField, Explanation } from "./core/job/explain.ts";
export type { ErrorRecord, JobRow, JobState, Policy, TimeoutKind, TimeoutMode } from "./core/job/job.ts";
export type { RetentionOptions, RungOptions, TimeoutOptions } from "./core/job/policy.ts";
export {
  type AbortReason,
  Discard,
  type Snooze,
  StopError,
  snooze,
  TimeoutError,
} from "./core/job/reasons.ts";
export { constant, delays, exponential, linear, polynomial, type RetryOptions } from "./core/job/retry.ts";
export type { GateLimit, LimitOptions, LimitOverride, RateOptions } from "./core/limit/limit.ts";
export type { DepthOptions, QueueOptions } from "./core/limit/queue-settings.ts";
export { defineSaga, type SagaDefinition, type SagaOptions } from "./core/saga/definition.ts";
export type { PendingTimeout, SagaContext, SagaOutlet } from "./core/saga/saga.ts";
export type { StepResult } from "./core/saga/try-step.ts";
export type { Json, Schema } from "./core/schema.ts";
export type { Duration, Instant, InstantInput } from "./core/time.ts";
export type { WallClockInput } from "./core/timeout/wall-clock.ts";
export { explainWhen, type When, type WhenExplanation } from "./core/timeout/when.ts";
export type { EngineEvent, EngineEventName, EngineEvents } from "./engine/bus.ts";
export type { CounterSnapshot } from "./engine/counters.ts";
export { LATENESS_BOUNDS } from "./engine/counters.ts";
export type { LogLine } from "./engine/draft.ts";
export type { Engine } from "./engine/engine.ts";
export { JobFailedError, type JobHandle } from "./engine/handle.ts";
export { EnqueueFailedError } from "./engine/intake.ts";
export type { LimitChange, Limits, LimitView } from "./engine/limits.ts";
export {
  type AttemptContext,
  type CleanupHook,
  type Handler,
  type Middleware,
  type Processor,
  processor,
} from "./engine/processor.ts";
export { QueueFullError } from "./engine/queue-full.ts";
export type { PurgeOptions, Queues, QueueView } from "./engine/queues.ts";
export type { MessageHandle } from "./engine/sagas/message-handle.ts";
export type { SagaHandle, SagaView } from "./engine/sagas/saga-handle.ts";
export type { MessageOptions, SagaHost } from "./engine/sagas/sagas.ts";
export type {
  EngineTimeouts,
  EnqueueLaterOptions,
  ServedDestination,
  ServeOptions,
  TimeoutHandler,
  TimeoutMetrics,
} from "./engine/timeouts/engine-timeouts.ts";
export type { Timeout, TimeoutInput } from "./engine/timeouts/timeout-view.ts";
export type { WorkerStatus, WorkOptions } from "./engine/work-options.ts";
export type { Worker } from "./engine/worker.ts";
export { type OpenOptions, openEngine, openPostgresStore } from "./open.ts";
export { type Logger, silentLogger } from "./ports/log.ts";
export type { SandboxedProcessor } from "./ports/sandbox.ts";
export type { JobFilter, Store } from "./ports/store.ts";
export { type MemorySize, type SandboxOptions, sandboxed } from "./sandbox/sandboxed.ts";
export { createMemoryStore } from "./stores/memory/memory-store.ts";
