import { createIdSource } from "../core/ids.ts";
import { type EnqueueOptions, preparePayload } from "../core/job/enqueue/envelope.ts";
import { checkMany } from "../core/job/enqueue/many.ts";
import type { JobId, JobRow } from "../core/job/job.ts";
import type { AnyDefinition, JobDefinition, PayloadArgs } from "../core/job/job-definition.ts";
import type { Job } from "../core/job/job-view.ts";
import type { Explanation } from "../core/job/policy/explain.ts";
import type { Why } from "../core/job/why/reason.ts";
import { refuseOldNode } from "../core/node-version.ts";
import type { AnySaga, MessageTarget, SchemaMap } from "../core/saga/saga.ts";
import type { InputOf, Schema } from "../core/schema.ts";
import type { Advice } from "../core/stats/advice.ts";
import type { Duration } from "../core/time.ts";
import type { AttemptParts } from "../engine/context.ts";
import type {
  AuditApi,
  BulkApi,
  CalendarsApi,
  CronsApi,
  CurfewApi,
  DeadLettersApi,
  JournalApi,
  LimitsApi,
  MaintenanceApi,
  QueuesApi,
  ResultOf,
  SagaRecordsApi,
  TimeoutsApi,
  WebhooksApi,
  WorkflowsApi,
} from "../engine/curfew-api.ts";
import {
  type EngineEvent,
  type EngineEventName,
  type EngineEvents,
  EventBus,
} from "../engine/events/event-bus.ts";
import type { JobPage, PageOptions } from "../engine/find/find-jobs.ts";
import type { JobQuery } from "../engine/find/job-query.ts";
import type { ExtendOptions } from "../engine/operations/operate-job.ts";
import { type JobRequestOptions, requestJob } from "../engine/operations/request-job.ts";
import type { RetryByHandOptions } from "../engine/operations/retry-by-hand.ts";
import { openSealing } from "../engine/runtime/aes-sealing.ts";
import { type CloseOnSignalsOptions, closeOnSignals } from "../engine/runtime/close-on-signals.ts";
import { EngineClock } from "../engine/runtime/engine-clock.ts";
import type { SagaView } from "../engine/sagas/saga-handle.ts";
import type { MessageOptions } from "../engine/sagas/sagas.ts";
import { type CounterSnapshot, Counters } from "../engine/statistics/counters.ts";
import type { Stats } from "../engine/statistics/statistics.ts";
import type { AdviseQuery, StatsQuery } from "../engine/statistics/stats-query.ts";
import type { ExportPage, ExportPageOptions } from "../engine/transfer/export-jobs.ts";
import type { ImportedLine, ImportOptions } from "../engine/transfer/import-jobs.ts";
import { QueueWarnings } from "../engine/worker/warn-of-queues.ts";
import type { WorkOptions } from "../engine/worker/work-options.ts";
import { Caller } from "./caller.ts";
import { type CheckedOptions, type ClientOptions, checkOptions } from "./client-options.ts";
import { RemoteEnqueuer } from "./remote-enqueuer.ts";
import { remoteAudit, remoteJournal } from "./remote-events.ts";
import { RemoteJobHandle } from "./remote-job-handle.ts";
import { jobPage, remoteBulk, remoteDeadLetters } from "./remote-jobs.ts";
import { remoteCrons, remoteLimits, remoteMaintenance, remoteQueues } from "./remote-queues.ts";
import {
  listSagas,
  type RemoteMessageHandle,
  type RemoteSagaHandle,
  remoteSagaRecords,
  sagaHandle,
  sendMessage,
} from "./remote-sagas.ts";
import { refuseTx, remoteTimeouts } from "./remote-timeouts.ts";
import { remoteCalendars, remoteWebhooks } from "./remote-webhooks.ts";
import { RemoteWorker } from "./remote-worker.ts";
import { remoteWorkflows } from "./remote-workflows.ts";
import { Transport } from "./transport.ts";

/** Opens a client of a server. Opening sends no request. */
export function openClient(options: ClientOptions): Client {
  refuseOldNode(process.versions.node);
  return new Client(checkOptions(options));
}

/** A process without a store uses this for everything that an engine offers, over HTTP. */
export class Client implements CurfewApi {
  /** Settings, pauses and depths of queues. */
  readonly queues: QueuesApi;
  /** Begins and ends times in which no queue hands out jobs. */
  readonly maintenance: MaintenanceApi;
  /** Limit keys: their use, and what operators set for them. */
  readonly limits: LimitsApi;
  /** Jobs that are enqueued at the instants of a cron expression. */
  readonly crons: CronsApi;
  /** Subscriptions of endpoints to events, and their deliveries. */
  readonly webhooks: WebhooksApi;
  /** Business calendars: working days, holidays and hours, for timeouts and crons. */
  readonly calendars: CalendarsApi;
  /** Jobs that depend on each other, started and cancelled as one. */
  readonly workflows: WorkflowsApi;
  /** Actions on many jobs at once: cancel, retry, delete, prioritise. */
  readonly bulk: BulkApi;
  /** Jobs that failed for good and were kept (SEMANTICS 4.5). */
  readonly deadLetters: DeadLettersApi;
  /** Stores, reads and revokes timeouts (SEMANTICS 6). */
  readonly timeouts: TimeoutsApi;
  /** The recorded events of all jobs. */
  readonly journal: JournalApi;
  /** What named operators did. */
  readonly audit: AuditApi;
  /** Sagas of any type, without their definitions. */
  readonly sagaRecords: SagaRecordsApi;
  readonly #transport: Transport;
  readonly #parts: AttemptParts;
  readonly #clock: EngineClock;
  readonly #workers = new Set<RemoteWorker>();
  readonly #warnings: QueueWarnings;
  readonly #caller: Caller;
  readonly #enqueuer: RemoteEnqueuer;
  #closing: Promise<void> | undefined;

  constructor(options: CheckedOptions) {
    const { system, logger, documentLimit, timeout, encryption } = options;
    const sealing = encryption && openSealing(encryption, system, documentLimit);
    this.#transport = new Transport(options);
    this.#warnings = new QueueWarnings(system, logger, () => this.#workers);
    this.#clock = EngineClock.unread(system);
    // The machine's clock is good enough for ids.
    const nextId = createIdSource(() => system.wall(), system.fill);
    this.#caller = new Caller({
      system,
      transport: this.#transport,
      timeout,
      documentLimit,
      nextId,
      sealing,
    });
    this.#enqueuer = new RemoteEnqueuer(this.#caller, this.#transport);
    this.#parts = {
      system,
      logger,
      documentLimit,
      sealing,
      clock: this.#clock,
      bus: new EventBus(logger),
      counters: new Counters(),
      enqueueFrom: (parent, definition, payload, more) => this.#enqueue(definition, payload, more, parent),
    };
    this.queues = remoteQueues(this.#caller);
    this.maintenance = remoteMaintenance(this.#caller);
    this.limits = remoteLimits(this.#caller);
    this.crons = remoteCrons(this.#caller);
    this.webhooks = remoteWebhooks(this.#caller);
    this.calendars = remoteCalendars(this.#caller);
    this.workflows = remoteWorkflows(this.#caller);
    this.bulk = remoteBulk(this.#caller);
    this.deadLetters = remoteDeadLetters(this.#caller);
    this.timeouts = remoteTimeouts(this.#caller);
    this.journal = remoteJournal(this.#caller);
    this.audit = remoteAudit(this.#caller);
    this.sagaRecords = remoteSagaRecords(this.#caller);
  }

  /** Adds one job; resolves when it is durable. A known id returns the old job, marked `duplicate`. */
  enqueue<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    ...[payload, options]: PayloadArgs<Input, EnqueueOptions>
  ): Promise<RemoteJobHandle<Result>> {
    return this.#enqueue(definition, payload as Input, options, undefined) as Promise<
      RemoteJobHandle<Result>
    >;
  }

  async #enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: Input,
    options: EnqueueOptions | undefined,
    parent: JobRow | undefined,
  ): Promise<RemoteJobHandle<unknown>> {
    // A handler of a draining worker may still enqueue child jobs.
    if (!parent) this.#caller.assertOpen();
    return this.#enqueuer.enqueue(definition as AnyDefinition, payload, options, parent?.id);
  }

  /** Adds many jobs of one definition; all payloads are checked before any is sent. */
  async enqueueMany<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payloads: readonly NoInfer<Input>[],
    options?: Omit<EnqueueOptions, "id">,
  ): Promise<RemoteJobHandle<Result>[]> {
    this.#caller.assertOpen();
    checkMany(payloads, options);
    const many = await this.#enqueuer.enqueueMany(definition as AnyDefinition, payloads, options, (payload) =>
      preparePayload(definition, payload as Input, this.#parts.documentLimit),
    );
    return many as RemoteJobHandle<Result>[];
  }

  /** Enqueues a job and waits for its result; rejects with a TimeoutError after `within` (SEMANTICS 10.8). */
  request<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payload: NoInfer<Input>,
    options: JobRequestOptions,
  ): Promise<Result> {
    const enqueue = (more: EnqueueOptions) =>
      this.#enqueue(definition, payload, more, undefined) as Promise<RemoteJobHandle<Result>>;
    return requestJob({ enqueue, system: this.#parts.system }, options);
  }

  /** A handle on a job that was enqueued elsewhere or earlier. */
  job<Definition extends JobDefinition<unknown, unknown, unknown>>(
    id: JobId,
    _definition?: Definition,
  ): RemoteJobHandle<ResultOf<Definition>> {
    return new RemoteJobHandle(this.#caller, id);
  }

  readonly #byId = (id: JobId) => new RemoteJobHandle<Job["payload"]>(this.#caller, id);

  /** The current job, or null. */
  load(id: JobId): Promise<Job | null> {
    return this.#byId(id).load();
  }

  /** A page of the jobs that match the query. */
  find(query?: JobQuery, page?: PageOptions): Promise<JobPage> {
    return jobPage(this.#caller, "jobs.find", query, page);
  }

  /** Ends a waiting or running job at once. Later writes of its handler are refused (SEMANTICS 5.1). */
  cancel(id: JobId): Promise<Job> {
    return this.#byId(id).cancel();
  }

  /** Changes the limits of a waiting or running job (SEMANTICS 5.3). */
  extend(id: JobId, options: ExtendOptions): Promise<Job> {
    return this.#byId(id).extend(options);
  }

  /** Runs a discarded job again: attempts, `wait` and `total` start anew (SEMANTICS 4.6). */
  retry(id: JobId, options?: RetryByHandOptions): Promise<Job> {
    return this.#byId(id).retry(options);
  }

  /** Makes a pending job available. */
  activate(id: JobId): Promise<Job> {
    return this.#byId(id).activate();
  }

  /** For every limit of a job: the source that won, the sources that lost, the instants, and warnings. */
  explain(id: JobId, definition?: JobDefinition<unknown, unknown, unknown>): Promise<Explanation> {
    return this.#byId(id).explain(definition);
  }

  /** Explains why a job does not run, does not end, or ended. Act on the first reason. */
  why(id: JobId): Promise<Why> {
    return this.#byId(id).why();
  }

  /** One page of jobs as lines that `importJobs` takes, on any store. */
  exportJobs(query?: JobQuery, page?: ExportPageOptions): Promise<ExportPage> {
    return this.#caller.call("jobs.export", [query, page]);
  }

  /** Stores up to 1,000 lines of an export, each under its own id. Repeating a call adds nothing twice. */
  async importJobs(
    lines: readonly unknown[],
    options: Omit<ImportOptions, "by"> = {},
  ): Promise<ImportedLine[]> {
    refuseTx(options);
    return this.#caller.call("jobs.import", [lines, options]);
  }

  /** Sends a message to a saga; resolves when it is durable. A process that hosts the saga handles it. */
  async send<Messages extends SchemaMap, Name extends keyof Messages & string>(
    saga: MessageTarget<Messages>,
    name: Name,
    payload: InputOf<Messages[Name]>,
    options?: MessageOptions,
  ): Promise<RemoteMessageHandle> {
    return sendMessage(this.#caller, saga, name, payload, options);
  }

  /** A handle on the saga with this correlation value. */
  saga<S extends Schema>(
    saga: AnySaga & { readonly state: S },
    id: string | number | bigint,
  ): RemoteSagaHandle<InputOf<S>> {
    return sagaHandle(this.#caller, saga, id);
  }

  /** A page of the sagas of one type, live and completed, by id. `after` is the last id of the page before. */
  async sagas<S extends Schema>(
    saga: AnySaga & { readonly state: S },
    page?: { readonly after?: string; readonly limit?: number },
  ): Promise<SagaView<InputOf<S>>[]> {
    return listSagas(this.#caller, saga, page);
  }

  /** Counts of all processes that share the store, for a span of time: totals and points for plots. */
  stats(query?: StatsQuery): Promise<Stats> {
    return this.#caller.call("stats", [query]);
  }

  /** Suggests attempt timeouts from measured runs, and says how many runs another timeout would have ended. */
  advise(query?: AdviseQuery): Promise<Advice[]> {
    return this.#caller.call("advise", [query]);
  }

  /** Starts a worker in this process. It fetches jobs from the server. */
  work(options: WorkOptions): RemoteWorker {
    this.#caller.assertOpen();
    const shared = {
      id: this.#caller.nextId(),
      parts: this.#parts,
      clock: this.#clock,
      transport: this.#transport,
    };
    const worker = new RemoteWorker(shared, options, (closed) => this.#workers.delete(closed));
    this.#workers.add(worker);
    this.#warnings.look();
    return worker.start();
  }

  /** Calls back for events of this process's workers. `journal` has the events of all processes. */
  on<Name extends EngineEventName>(name: Name, listener: (event: EngineEvents[Name]) => void): () => void {
    return this.#parts.bus.on(name, listener);
  }

  /** All events of this process, until the signal aborts or the loop ends. */
  events(signal?: AbortSignal): AsyncGenerator<EngineEvent, void, undefined> {
    return this.#parts.bus.stream(signal);
  }

  /** Counts of this process: started attempts, lost and stuck ones, and how late deadlines fired. */
  counters(): CounterSnapshot {
    return this.#parts.counters.snapshot();
  }

  /** Closes the workers (SEMANTICS 5.2), then everything else. Calling it twice is harmless. */
  close(options: { readonly drain?: Duration } = {}): Promise<void> {
    this.#closing ??= this.#close(options);
    return this.#closing;
  }

  /** Closes the client at SIGTERM or SIGINT. Returns a function that undoes this. */
  closeOnSignals(options: CloseOnSignalsOptions = {}): () => void {
    const closing = options.drain === undefined ? {} : { drain: options.drain };
    return closeOnSignals(options, this.#parts.logger, () => this.close(closing));
  }

  async #close(options: { readonly drain?: Duration }): Promise<void> {
    this.#caller.stop();
    await Promise.all([...this.#workers].map((worker) => worker.close(options)));
    this.#transport.close();
    this.#caller.close();
    this.#parts.bus.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
