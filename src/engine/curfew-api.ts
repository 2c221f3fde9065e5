import type { CronOptions } from "../core/cron/cron.ts";
import type { ScheduleOptions } from "../core/cron/expression.ts";
import type { CronInstant } from "../core/cron/instants-of.ts";
import type { UnattendedQueue } from "../core/doctor/doctor-facts.ts";
import type { JournalEvent } from "../core/event/journal-event.ts";
import type { SavedCheckpoint } from "../core/job/documents/checkpoint.ts";
import type { EnqueueOptions } from "../core/job/enqueue/envelope.ts";
import type { JobId } from "../core/job/job.ts";
import type { JobDefinition, PayloadArgs } from "../core/job/job-definition.ts";
import type { Job } from "../core/job/job-view.ts";
import type { Explanation } from "../core/job/policy/explain.ts";
import type { Why } from "../core/job/why/reason.ts";
import type { QueueOptions } from "../core/limit/queue-settings.ts";
import type { AnySaga, MessageTarget, SchemaMap } from "../core/saga/saga.ts";
import type { InputOf, Json, Schema } from "../core/schema.ts";
import type { Advice } from "../core/stats/advice.ts";
import type { Duration, Instant, InstantInput } from "../core/time.ts";
import type { Owner, TimeoutId, TimeoutRow } from "../core/timeout/timeout.ts";
import type { When, WhenExplanation } from "../core/timeout/when.ts";
import type { WebhookOptions } from "../core/webhook/subscription.ts";
import type { WorkflowNode } from "../core/workflow/node.ts";
import type { Revoked, TimeoutCounts, TimeoutFilter, Which } from "../ports/timeouts.ts";
import type { CalendarView, StoredCalendarInput } from "./calendars/calendars.ts";
import type { CronInput, CronView } from "./crons/crons.ts";
import type { EnqueueLaterOptions } from "./dispatch/engine-timeouts.ts";
import type { RevokedState } from "./dispatch/operate-timeout.ts";
import type { CalendarOptions, CalendarPage, CallOptions, ClaimedTimeout } from "./dispatch/timeout-api.ts";
import type { Timeout, TimeoutInput } from "./dispatch/timeout-view.ts";
import type { AuditOptions, AuditPage } from "./events/audit-log.ts";
import type {
  FollowOptions,
  JournalPage,
  LatestOptions,
  LatestPage,
  ReadOptions,
} from "./events/event-journal.ts";
import type { JobPage, PageOptions } from "./find/find-jobs.ts";
import type { JobQuery } from "./find/job-query.ts";
import type { BulkOptions, BulkResult } from "./operations/bulk.ts";
import type { DeadLetterQuery } from "./operations/dead-letters.ts";
import type { JobProgress, LogPage } from "./operations/job-handle.ts";
import type { ExtendOptions } from "./operations/operate-job.ts";
import type { JobRequestOptions } from "./operations/request-job.ts";
import type { RescheduleOptions } from "./operations/reschedule-options.ts";
import type { RetryByHandOptions } from "./operations/retry-by-hand.ts";
import type { LimitChange, LimitView } from "./queues/key-limits.ts";
import type { MaintenanceOptions } from "./queues/maintenance.ts";
import type { MaintenanceView } from "./queues/maintenance-record.ts";
import type { OldestWaits } from "./queues/oldest-waits.ts";
import type { PurgeOptions, QueueView } from "./queues/queues.ts";
import type { CloseOnSignalsOptions } from "./runtime/close-on-signals.ts";
import type { SagaView } from "./sagas/saga-handle.ts";
import type { SagaDetail, SagaListOptions, SagaPage } from "./sagas/saga-records.ts";
import type { MessageOptions } from "./sagas/sagas.ts";
import type { CounterSnapshot } from "./statistics/counters.ts";
import type { Stats } from "./statistics/statistics.ts";
import type { AdviseQuery, StatsQuery } from "./statistics/stats-query.ts";
import type { ExportPage, ExportPageOptions } from "./transfer/export-jobs.ts";
import type { ImportedLine, ImportOptions } from "./transfer/import-jobs.ts";
import type { DeliveriesOptions, DeliveryPage, DeliveryView } from "./webhooks/delivery-log.ts";
import type {
  CreatedWebhook,
  NewWebhook,
  RotateOptions,
  WebhookTest,
  WebhookView,
} from "./webhooks/webhooks.ts";
import type { WorkerStatus, WorkOptions } from "./worker/work-options.ts";
import type { WorkflowOptions } from "./workflows/start-options.ts";
import type { WorkflowSummary, WorkflowView } from "./workflows/workflow-view.ts";
import type { WorkflowPage } from "./workflows/workflows.ts";

/*
 * What an engine and a remote client both offer. Code that takes a `CurfewApi` runs beside the store or behind a server.
 * Operators' names (`by`, `as`) are not part of it: over HTTP the server takes the name of the key.
 */

export type ResultOf<Definition> =
  Definition extends JobDefinition<unknown, unknown, infer Result> ? Result : never;

interface WaitOptions {
  readonly within?: Duration;
  readonly signal?: AbortSignal;
}

interface ListPage {
  readonly after?: string;
  readonly limit?: number;
}

/** One job; see `JobHandle`. */
export interface JobHandleApi<Result = unknown> {
  readonly id: JobId;
  readonly duplicate: boolean;
  load(): Promise<Job<Result> | null>;
  result(options?: WaitOptions): Promise<Result>;
  cancel(): Promise<Job<Result>>;
  extend(options: ExtendOptions): Promise<Job<Result>>;
  retry(options?: RetryByHandOptions): Promise<Job<Result>>;
  activate(): Promise<Job<Result>>;
  prioritise(priority: number): Promise<Job<Result>>;
  runNow(): Promise<Job<Result>>;
  reschedule(when: RescheduleOptions): Promise<Job<Result>>;
  explain(definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation>;
  why(): Promise<Why>;
  progress(): Promise<JobProgress>;
  checkpoint(): Promise<SavedCheckpoint | null>;
  clearCheckpoint(): Promise<void>;
  logs(page?: { readonly after?: number | null; readonly limit?: number }): Promise<LogPage>;
}

/** One workflow; see `WorkflowHandle`. */
export interface WorkflowHandleApi<Result = unknown> {
  readonly id: string;
  readonly duplicate: boolean;
  view(): Promise<WorkflowView | null>;
  steps(page?: { readonly from?: number; readonly limit?: number }): Promise<(Job | null)[]>;
  cancel(): Promise<WorkflowSummary>;
  result(options?: WaitOptions): Promise<Result>;
}

/** One saga; see `SagaHandle`. */
export interface SagaHandleApi<State = unknown> {
  readonly type: string;
  readonly id: string;
  load(): Promise<SagaView<State> | null>;
  timeouts(): Promise<TimeoutRow[]>;
  messages(): Promise<TimeoutRow[]>;
  revoke(keyOrId: string): Promise<"revoked" | "not-pending">;
  compensate(): Promise<"begun" | "resumed" | "running" | null>;
  end(): Promise<boolean>;
}

/** A message that was sent to a saga; see `MessageHandle`. */
export interface MessageHandleApi {
  readonly id: string;
  reply(options: { readonly within: Duration }): Promise<Json>;
}

export interface QueuesApi {
  configure(queue: string, options: QueueOptions): Promise<void>;
  reset(queue: string): Promise<void>;
  pause(queue: string): Promise<void>;
  resume(queue: string): Promise<void>;
  list(): Promise<QueueView[]>;
  describe(queue: string): Promise<QueueView>;
  depth(queue?: string): Promise<QueueView["depth"]>;
  unattended(): Promise<UnattendedQueue[]>;
  oldestWaits(): Promise<OldestWaits>;
  purge(queue: string, options?: PurgeOptions): Promise<number>;
}

export interface MaintenanceApi {
  status(): Promise<MaintenanceView | null>;
  begin(options?: MaintenanceOptions): Promise<MaintenanceView>;
  end(): Promise<void>;
}

export interface LimitsApi {
  put(key: string, change: LimitChange): Promise<LimitView>;
  delete(key: string): Promise<LimitView>;
  get(key: string): Promise<LimitView>;
  list(page?: ListPage): Promise<LimitView[]>;
}

export interface CronsApi {
  put<Input>(name: string, input: CronInput<Input>): Promise<CronView>;
  update(name: string, changes: Partial<CronOptions>): Promise<CronView>;
  pause(name: string): Promise<CronView>;
  resume(name: string): Promise<CronView>;
  trigger(name: string): Promise<JobHandleApi>;
  delete(name: string): Promise<boolean>;
  get(name: string): Promise<CronView | null>;
  list(page?: ListPage): Promise<CronView[]>;
  preview(
    cron: string | ScheduleOptions,
    options?: { readonly count?: number; readonly from?: InstantInput },
  ): Promise<CronInstant[]>;
}

/** See `Webhooks`. */
export interface WebhooksApi {
  create(options: NewWebhook): Promise<CreatedWebhook>;
  update(id: string, options: WebhookOptions): Promise<WebhookView>;
  delete(id: string): Promise<boolean>;
  get(id: string): Promise<WebhookView | null>;
  list(page?: ListPage): Promise<WebhookView[]>;
  rotate(id: string, options?: RotateOptions): Promise<{ readonly secret: string | null }>;
  test(id: string): Promise<WebhookTest>;
  deliveries(options?: DeliveriesOptions): Promise<DeliveryPage>;
  delivery(id: string): Promise<DeliveryView | null>;
  redeliver(id: string): Promise<DeliveryView>;
}

/** See `Calendars`. Over HTTP, `days` is a list and not a provider. */
export interface CalendarsApi {
  put(name: string, input: StoredCalendarInput): Promise<CalendarView & { readonly moved: number }>;
  delete(name: string): Promise<boolean>;
  get(name: string): Promise<CalendarView | null>;
  list(page?: ListPage): Promise<CalendarView[]>;
  explain(when: When, options?: { readonly now?: InstantInput }): Promise<WhenExplanation>;
}

export interface WorkflowsApi {
  start<Result>(node: WorkflowNode<Result>, options?: WorkflowOptions): Promise<WorkflowHandleApi<Result>>;
  get<Result = unknown>(id: string): WorkflowHandleApi<Result>;
  list(page?: WorkflowPage): Promise<WorkflowSummary[]>;
  cancel(id: string): Promise<WorkflowSummary>;
}

type BulkAction = Omit<BulkOptions, "by">;

export interface BulkApi {
  count(query: JobQuery, options?: CallOptions): Promise<number>;
  cancel(query: JobQuery, options?: BulkAction): Promise<BulkResult>;
  retry(query: JobQuery, options?: BulkAction & RetryByHandOptions): Promise<BulkResult>;
  delete(query: JobQuery, options?: BulkAction): Promise<BulkResult>;
  prioritise(query: JobQuery, options: BulkAction & { readonly priority: number }): Promise<BulkResult>;
}

export interface DeadLettersApi {
  list(query?: DeadLetterQuery, page?: PageOptions): Promise<JobPage>;
  get(id: JobId): Promise<Job | null>;
  count(query?: DeadLetterQuery, options?: CallOptions): Promise<number>;
  retry(id: JobId, options?: RetryByHandOptions): Promise<Job>;
  retryAll(query: DeadLetterQuery, options?: BulkAction & RetryByHandOptions): Promise<BulkResult>;
  delete(id: JobId): Promise<void>;
  deleteAll(query: DeadLetterQuery, options?: BulkAction): Promise<BulkResult>;
}

export interface TimeoutsApi {
  insert(timeout: TimeoutInput, options?: CallOptions): Promise<TimeoutId>;
  insertMany(timeouts: readonly TimeoutInput[], options?: CallOptions): Promise<TimeoutId[]>;
  enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: NoInfer<Input>,
    options: EnqueueLaterOptions,
  ): Promise<TimeoutId>;
  get(id: TimeoutId, options?: CallOptions): Promise<Timeout | null>;
  calendar(options?: CallOptions & CalendarOptions): Promise<CalendarPage>;
  list(
    filter?: TimeoutFilter,
    options?: CallOptions & { readonly after?: TimeoutId; readonly limit?: number },
  ): Promise<Timeout[]>;
  cancel(which: Which, options?: CallOptions): Promise<Revoked>;
  revoke(id: TimeoutId): Promise<RevokedState>;
  reschedule(id: TimeoutId, when: When): Promise<Timeout>;
  revive(id: TimeoutId): Promise<Timeout>;
  requeue(ids: readonly TimeoutId[], options?: CallOptions): Promise<number>;
  nextDueAt(options?: CallOptions): Promise<Instant | null>;
  claimDue(
    options?: CallOptions & {
      readonly limit?: number;
      readonly lease?: Duration;
      readonly destinations?: readonly string[];
    },
  ): Promise<ClaimedTimeout[]>;
  remove(id: TimeoutId, owner?: Owner, options?: CallOptions): Promise<void>;
  release(
    id: TimeoutId,
    owner?: Owner,
    options?: CallOptions & { readonly after?: Duration; readonly error?: string },
  ): Promise<void>;
  extend(
    id: TimeoutId,
    owner: Owner,
    options?: CallOptions & { readonly lease?: Duration },
  ): Promise<Instant>;
  reap(options?: CallOptions): Promise<number>;
  count(options?: CallOptions): Promise<TimeoutCounts>;
}

export interface JournalApi {
  read(options?: ReadOptions): Promise<JournalPage>;
  latest(options?: LatestOptions): Promise<LatestPage>;
  follow(options?: FollowOptions): AsyncGenerator<JournalEvent, void, undefined>;
}

export interface AuditApi {
  read(options?: AuditOptions): Promise<AuditPage>;
}

export interface SagaRecordsApi {
  list(options?: SagaListOptions): Promise<SagaPage>;
  get(type: string, id: string): Promise<SagaDetail | null>;
}

/** A running worker, in a process with an engine or with a client. */
export interface WorkerApi extends AsyncDisposable {
  status(): WorkerStatus;
  close(options?: { readonly drain?: Duration }): Promise<void>;
}

/**
 * Everything that code can do with jobs wherever it runs: an engine offers it, and so does a client of a server.
 * docs/guides/remote-workers.md lists what only an engine can do, and why.
 */
export interface CurfewApi extends AsyncDisposable {
  readonly queues: QueuesApi;
  readonly maintenance: MaintenanceApi;
  readonly limits: LimitsApi;
  readonly crons: CronsApi;
  readonly webhooks: WebhooksApi;
  readonly calendars: CalendarsApi;
  readonly workflows: WorkflowsApi;
  readonly bulk: BulkApi;
  readonly deadLetters: DeadLettersApi;
  readonly timeouts: TimeoutsApi;
  readonly journal: JournalApi;
  readonly audit: AuditApi;
  readonly sagaRecords: SagaRecordsApi;

  enqueue<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    ...rest: PayloadArgs<Input, EnqueueOptions>
  ): Promise<JobHandleApi<Result>>;
  enqueueMany<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payloads: readonly NoInfer<Input>[],
    options?: Omit<EnqueueOptions, "id">,
  ): Promise<JobHandleApi<Result>[]>;
  request<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payload: NoInfer<Input>,
    options: JobRequestOptions,
  ): Promise<Result>;
  job<Definition extends JobDefinition<unknown, unknown, unknown>>(
    id: JobId,
    definition?: Definition,
  ): JobHandleApi<ResultOf<Definition>>;
  load(id: JobId): Promise<Job | null>;
  find(query?: JobQuery, page?: PageOptions): Promise<JobPage>;
  cancel(id: JobId): Promise<Job>;
  extend(id: JobId, options: ExtendOptions): Promise<Job>;
  retry(id: JobId, options?: RetryByHandOptions): Promise<Job>;
  activate(id: JobId): Promise<Job>;
  explain(id: JobId, definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation>;
  why(id: JobId): Promise<Why>;
  exportJobs(query?: JobQuery, page?: ExportPageOptions): Promise<ExportPage>;
  importJobs(lines: readonly unknown[], options?: Omit<ImportOptions, "by">): Promise<ImportedLine[]>;

  send<Messages extends SchemaMap, Name extends keyof Messages & string>(
    saga: MessageTarget<Messages>,
    name: Name,
    payload: InputOf<Messages[Name]>,
    options?: MessageOptions,
  ): Promise<MessageHandleApi>;
  saga<S extends Schema>(
    saga: AnySaga & { readonly state: S },
    id: string | number | bigint,
  ): SagaHandleApi<InputOf<S>>;
  sagas<S extends Schema>(
    saga: AnySaga & { readonly state: S },
    page?: ListPage,
  ): Promise<SagaView<InputOf<S>>[]>;

  stats(query?: StatsQuery): Promise<Stats>;
  advise(query?: AdviseQuery): Promise<Advice[]>;

  work(options: WorkOptions): WorkerApi;
  /** Counts of this process. */
  counters(): CounterSnapshot;
  close(options?: { readonly drain?: Duration }): Promise<void>;
  closeOnSignals(options?: CloseOnSignalsOptions): () => void;
}
