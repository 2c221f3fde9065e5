/// <reference lib="esnext.disposable" preserve="true" />

import { type By, parseBy } from "../core/audit/audit-entry.ts";
import { CurfewError } from "../core/errors.ts";
import type { EnqueueOptions, NewJob } from "../core/job/enqueue/envelope.ts";
import type { JobDefinition, PayloadArgs } from "../core/job/job-definition.ts";
import type { AnySaga, MessageTarget, SchemaMap } from "../core/saga/saga.ts";
import type { InputOf, Schema } from "../core/schema.ts";
import type { Advice } from "../core/stats/advice.ts";
import type { TenantLimits } from "../core/tenant/tenant-limits.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import type { Hint } from "../ports/store.ts";
import { Calendars } from "./calendars/calendars.ts";
import { closeParts } from "./close-parts.ts";
import type { EngineContext } from "./context.ts";
import { CRONS } from "./crons/cron-jobs.ts";
import { CronScheduler } from "./crons/cron-scheduler.ts";
import { Crons } from "./crons/crons.ts";
import type { CurfewApi } from "./curfew-api.ts";
import { Dispatcher, LEASE } from "./dispatch/dispatcher.ts";
import { EngineTimeouts } from "./dispatch/engine-timeouts.ts";
import { JOB_DESTINATION, JobDestination } from "./dispatch/job-destination.ts";
import { checkEvents, checkRole, type EngineOptions, refuseRole } from "./engine-options.ts";
import { Intake } from "./enqueue/enqueue-batches.ts";
import { Enqueuer } from "./enqueue/enqueuer.ts";
import { UniqueJobs } from "./enqueue/unique-jobs.ts";
import { UNIQUE } from "./enqueue/unique-keys.ts";
import { AuditLog } from "./events/audit-log.ts";
import type { EngineEvent, EngineEventName, EngineEvents } from "./events/event-bus.ts";
import { EventJournal } from "./events/event-journal.ts";
import { recordBusEvents } from "./events/recording-rules.ts";
import { JobCalls } from "./job-calls.ts";
import { openSharedContext, type SharedContext } from "./open-context.ts";
import { Bulk } from "./operations/bulk.ts";
import { DeadLetters } from "./operations/dead-letters.ts";
import type { JobHandle } from "./operations/job-handle.ts";
import { type JobRequestOptions, requestJob } from "./operations/request-job.ts";
import { Operator } from "./operator.ts";
import { Limits } from "./queues/key-limits.ts";
import { Maintenance } from "./queues/maintenance.ts";
import { Queues } from "./queues/queues.ts";
import { Service } from "./remote/service.ts";
import { type CloseOnSignalsOptions, closeOnSignals } from "./runtime/close-on-signals.ts";
import type { MessageHandle } from "./sagas/message-handle.ts";
import type { SagaHandle, SagaView } from "./sagas/saga-handle.ts";
import { SagaRecords } from "./sagas/saga-records.ts";
import { resolveZones } from "./sagas/saga-zones.ts";
import { type MessageOptions, type SagaHost, Sagas } from "./sagas/sagas.ts";
import { Schemas } from "./schemas/schemas.ts";
import { Statistics, type Stats } from "./statistics/statistics.ts";
import type { AdviseQuery, StatsQuery } from "./statistics/stats-query.ts";
import { forgettingHandlers, type RecordHandlers, startHandlers } from "./sweep/due-records.ts";
import { SweepLoop } from "./sweep/sweep-loop.ts";
import { tenantContext } from "./tenants/tenant-context.ts";
import type { TenantScope } from "./tenants/tenant-scope.ts";
import { type OpenTenant, Tenants } from "./tenants/tenants.ts";
import { type ImportedLine, type ImportOptions, importLines } from "./transfer/import-jobs.ts";
import { Upkeep } from "./upkeep.ts";
import { openWebhooks, type WebhookDelivery } from "./webhooks/webhook-delivery.ts";
import type { Webhooks } from "./webhooks/webhooks.ts";
import { QueueWarnings } from "./worker/warn-of-queues.ts";
import { type WorkForOptions, type WorkForSummary, workFor } from "./worker/work-for.ts";
import { parseDrain, type WorkOptions } from "./worker/work-options.ts";
import { notifyWorkers, Worker } from "./worker/worker.ts";
import { StepScheduler } from "./workflows/step-scheduler.ts";
import { WorkflowCleanup } from "./workflows/workflow-cleanup.ts";
import { WORKFLOWS } from "./workflows/workflow-records.ts";
import { Workflows } from "./workflows/workflows.ts";

const DRAIN = 25_000;

/** What engines of tenants take over. */
type TenantOptions = Pick<EngineOptions, "events" | "role" | "zoneData" | "webhooks">;

/** What a user opens: it enqueues jobs, runs workers, and acts on due rows. */
export class Engine extends JobCalls implements CurfewApi {
  /** Stores, delivers and revokes timeouts (SEMANTICS 6). */
  readonly timeouts: EngineTimeouts;
  /** Settings, pauses and depths of queues. */
  readonly queues: Queues;
  /** Begins and ends times in which no queue hands out jobs. */
  readonly maintenance: Maintenance;
  /** Limit keys: their use, and what operators set for them. */
  readonly limits: Limits;
  readonly schemas: Schemas;
  /** The recorded events of all jobs, if `events` is on. */
  readonly journal: EventJournal;
  readonly audit: AuditLog;
  /** Jobs that depend on each other, started and cancelled as one. */
  readonly workflows: Workflows;
  /** Business calendars: working days, holidays and hours, for timeouts and crons. */
  readonly calendars: Calendars;
  /** Jobs that are enqueued at the instants of a cron expression. */
  readonly crons: Crons;
  /** Subscriptions of events to endpoints over HTTP, and their deliveries (SEMANTICS 11). */
  readonly webhooks: Webhooks;
  /** Actions on many jobs at once: cancel, retry, delete, prioritise. */
  readonly bulk: Bulk;
  /** Jobs that failed for good and were kept (SEMANTICS 4.5). */
  readonly deadLetters: DeadLetters;
  /** Sagas of any type, without their definitions. */
  readonly sagaRecords: SagaRecords;
  /** Tenants: their limits and use, and the list of them (SEMANTICS 13). */
  readonly tenants: Tenants<Engine>;
  readonly #context: EngineContext;
  readonly #intake: Intake;
  readonly #unique: UniqueJobs;
  readonly #enqueuer: Enqueuer;
  readonly #sweep: SweepLoop;
  readonly #stepScheduler: StepScheduler;
  readonly #workflowCleanup: WorkflowCleanup;
  readonly #upkeep: Upkeep;
  readonly #statistics: Statistics;
  readonly #dispatcher: Dispatcher;
  readonly #delivery: WebhookDelivery | undefined;
  readonly #sagas: Sagas;
  readonly #workers = new Set<Worker>();
  readonly #warnings: QueueWarnings;
  #service: Service | undefined;
  #listening: AsyncDisposable | undefined;
  #closing: Promise<void> | undefined;
  /** The engine of all tenants, which acts on due rows; undefined if this is that engine. */
  readonly #all: Engine | undefined;
  #isDispatching = false;
  readonly #jobs: JobDestination;

  private constructor(shared: SharedContext, lease: number, options: TenantOptions, all?: Engine) {
    super();
    const { events, role, webhooks } = options;
    this.#all = all;
    this.#context = {
      ...shared,
      assertOpen: () => this.#assertOpen(),
      enqueueFrom: (parent, definition, payload, options) =>
        this.#enqueuer.enqueue(definition, payload, options, parent),
      wakeSweepAt: (at) => (all ?? this).#sweep.wakeAt(at),
      ready: (queue) => this.#ready(queue),
      changed: (id) => {
        for (const worker of this.#workers) worker.suspect(id);
      },
    };
    this.#warnings = new QueueWarnings(shared.system, shared.logger, () => this.#workers);
    this.journal = new EventJournal(this.#context, events);
    this.audit = new AuditLog(this.#context);
    recordBusEvents(this.#context);
    this.#intake = new Intake(this.#context);
    this.#unique = new UniqueJobs(this.#context, this.#intake);
    const fresh = () => this.#upkeep.fresh();
    this.#enqueuer = new Enqueuer(this.#context, this.#intake, this.#unique, fresh);
    const notice = (jobs: readonly NewJob[]) => this.#intake.notice(jobs);
    const context = () => this.#enqueuer.context(undefined);
    this.calendars = new Calendars(this.#context);
    this.crons = new Crons(this.#context, { context, notice });
    const cronScheduler = new CronScheduler(this.#context, { context, notice });
    const host = { context, notice, journal: this.journal };
    [this.webhooks, this.#delivery] = openWebhooks(this.#context, host, webhooks);
    this.#stepScheduler = new StepScheduler(this.#context);
    this.#workflowCleanup = new WorkflowCleanup(this.#context);
    this.workflows = new Workflows(this.#context, { ...host, cleanup: this.#workflowCleanup });
    const recordHandlers: RecordHandlers = {
      ...forgettingHandlers(this.#context),
      ...startHandlers(this.#context),
      [UNIQUE]: (records, now) => this.#unique.clean(records, now),
      [CRONS.kind]: (records) => cronScheduler.decide(records),
      [WORKFLOWS.kind]: (records) => this.#workflowCleanup.clean(records),
    };
    this.tenants = new Tenants<Engine>(this.#context, (scope, limits) =>
      this.#openTenant(scope, limits, lease, options),
    );
    this.#sweep = new SweepLoop(
      this.#context,
      recordHandlers,
      (rows) => this.#stepScheduler.decide(rows),
      this.tenants,
    );
    this.#dispatcher = new Dispatcher(this.#context, lease);
    this.#jobs = new JobDestination(this.#context, (row, held) => this.tenants.deliver(row, held));
    if (!all) this.#dispatcher.serve(JOB_DESTINATION, this.#jobs, { keepAlive: false });
    this.timeouts = new EngineTimeouts(this.#context, this.#dispatcher, {
      assertServes: () => this.#assertDispatches("timeouts.serve"),
      fresh,
    });
    this.queues = new Queues(this.#context);
    this.maintenance = new Maintenance(this.#context, () => this.#readyAll());
    this.limits = new Limits(this.#context);
    this.schemas = new Schemas(this.#context);
    this.#sagas = new Sagas(this.#context, notice);
    this.sagaRecords = new SagaRecords(this.#context.store, this.#sagas);
    this.bulk = new Bulk(this.#context);
    this.deadLetters = new DeadLetters(this.#context, this.bulk);
    this.#statistics = new Statistics(this.#context);
    const lookedFor = { workers: this.#workers, sweep: this.#sweep, dispatcher: this.#dispatcher };
    const parts = { journal: this.journal, statistics: this.#statistics, service: () => this.#service };
    this.#upkeep = new Upkeep(this.#context, { ...parts, ...lookedFor }, role);
  }

  static async open(options: EngineOptions): Promise<Engine> {
    const { timeoutLease: given } = options;
    const lease = given === undefined ? LEASE : parseDuration(given, "timeoutLease");
    checkEvents(options.events);
    checkRole(options.role);
    const shared = await openSharedContext(options);
    const engine = new Engine(shared, lease, options);
    await engine.journal.open();
    if (options.role === "producer") return engine;
    engine.#listening = await shared.store.listen((hint) => engine.#hear(hint));
    engine.#upkeep.start();
    if (options.role === "operator") return engine;
    await resolveZones(shared, options.zoneData);
    engine.#sweep.loop.start();
    engine.#dispatcher.start();
    // The first subscription may be found while the engine closes.
    engine.#delivery?.start((options) => engine.#closing ?? engine.work(options));
    return engine;
  }

  /**
   * The engine within a tenant: it has the same calls, and sees and changes nothing but what belongs to the tenant. It
   * shares the store, the clock and the loops of this engine, and is closed with it.
   */
  tenant(name: string): Promise<Engine> {
    this.#assertOpen();
    return this.tenants.open(name);
  }

  /** The tenant that this engine works within; null for what belongs to none. */
  get tenantName(): string | null {
    return this.#context.tenant;
  }

  protected get context(): EngineContext {
    return this.#context;
  }

  async #openTenant(
    scope: TenantScope,
    limits: () => TenantLimits,
    lease: number,
    options: TenantOptions,
  ): Promise<OpenTenant<Engine>> {
    const shared = await tenantContext(this.#context, scope, limits);
    const engine = new Engine(shared, lease, options, this);
    await engine.journal.open();
    // The setting may not be stored yet.
    if (this.journal.isOn && options.events === undefined) shared.recorder.setRecording(true);
    if (options.role !== "producer") engine.#upkeep.start();
    if (!options.role) {
      await resolveZones(shared, options.zoneData);
      await engine.#delivery?.startIfNeeded((more) => engine.#closing ?? engine.work(more));
    }
    return {
      engine,
      act: (due, now) => engine.#sweep.act(due, now),
      deliverJob: (row, held) => engine.#jobs.deliver(row, held),
      hear: (hint) => engine.#hear(hint),
      isIdle: () =>
        engine.#workers.size === 0 &&
        !engine.#isDispatching &&
        engine.#service?.isIdle !== false &&
        !engine.journal.isFollowed,
    };
  }

  /** Adds one job; resolves when it is durable. If the id exists, returns that job, marked `duplicate`. */
  enqueue<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    ...[payload, options]: PayloadArgs<Input, EnqueueOptions>
  ): Promise<JobHandle<Result>> {
    return this.#enqueuer.enqueue(definition, payload as Input, options, undefined) as Promise<
      JobHandle<Result>
    >;
  }

  /**
   * Adds many jobs of one definition. Checks all payloads before it stores any job. Up to 1,000 jobs are stored all or
   * none; more are stored in batches of 1,000, so a store that fails may have stored some of them.
   */
  async enqueueMany<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payloads: readonly NoInfer<Input>[],
    options?: Omit<EnqueueOptions, "id">,
  ): Promise<JobHandle<Result>[]> {
    return (await this.#enqueuer.enqueueMany(definition, payloads, options)) as JobHandle<Result>[];
  }

  /** Enqueues a job and waits for its result; rejects with a TimeoutError after `within` (SEMANTICS 10.8). */
  request<Input, Result>(
    definition: JobDefinition<Input, unknown, Result>,
    payload: NoInfer<Input>,
    options: JobRequestOptions,
  ): Promise<Result> {
    const enqueue = (more: EnqueueOptions) =>
      this.#enqueuer.enqueue(definition, payload, more, undefined, true) as Promise<JobHandle<Result>>;
    return requestJob({ enqueue, system: this.#context.system }, options);
  }

  /** Sends a message to a saga; resolves when it is durable. A process that hosts the saga handles it. */
  send<Messages extends SchemaMap, Name extends keyof Messages & string>(
    saga: MessageTarget<Messages>,
    name: Name,
    payload: InputOf<Messages[Name]>,
    options?: MessageOptions,
  ): Promise<MessageHandle> {
    this.#assertOpen();
    const send = () => this.#sagas.send(saga, name, payload, options);
    return this.#upkeep.fresh()?.then(send) ?? send();
  }

  /** Handles messages and timeouts of these sagas in this process, until the host or the engine is closed. */
  host(sagas: readonly AnySaga[]): SagaHost {
    this.#assertDispatches("host");
    return this.#sagas.host(sagas, (name, destination) => this.#dispatcher.serve(name, destination));
  }

  /** A handle on the saga with this correlation value. */
  saga<S extends Schema>(
    saga: AnySaga & { readonly state: S },
    id: string | number | bigint,
  ): SagaHandle<InputOf<S>> {
    return this.#sagas.handle(saga, id);
  }

  /** A page of the sagas of one type, live and completed, by id. `after` is the last id of the page before. */
  sagas<S extends Schema>(
    saga: AnySaga & { readonly state: S },
    page: { readonly after?: string; readonly limit?: number } = {},
  ): Promise<SagaView<InputOf<S>>[]> {
    return this.#sagas.list(saga, page);
  }

  /** Stores up to 1,000 lines of an export, each under its own id. Repeating a call adds nothing twice. */
  importJobs(lines: readonly unknown[], options: ImportOptions = {}): Promise<ImportedLine[]> {
    this.#assertOpen();
    return importLines(this.#context, lines, options);
  }

  /** Starts a worker in this process. */
  work(options: WorkOptions): Worker {
    return this.#start((onClosed) => new Worker(this.#context, options, onClosed));
  }

  /** Runs due jobs until there are none or the time is used, for functions that are called by a schedule (SEMANTICS 5.6). */
  async workFor(options: WorkForOptions): Promise<WorkForSummary> {
    const [context, sweep, dispatcher] = [this.#context, (this.#all ?? this).#sweep, this.#dispatcher];
    return workFor(options, { context, sweep, dispatcher, start: (make) => this.#start(make) });
  }

  #start<One extends Worker>(make: (onClosed: (worker: Worker) => void) => One): One {
    this.#assertServes("work");
    const worker = make((closed) => this.#workers.delete(closed));
    this.#workers.add(worker);
    this.#warnings.look();
    return worker.start();
  }

  /** The workers of this process. */
  get ownWorkers(): readonly Worker[] {
    return [...this.#workers];
  }

  /** The engine for workers and producers in other processes. A server is built on it. */
  get service(): Service {
    this.#assertServes("service");
    this.#service ??= new Service(this.#context, {
      store: (jobs, rules) => {
        this.#assertOpen();
        const store = () => (rules ? this.#unique.enqueueSome(jobs, rules) : this.#intake.enqueue(jobs));
        return this.#context.admit?.(jobs)?.then(store) ?? store();
      },
      context: () => this.#enqueuer.context(undefined),
      promoteDue: () => (this.#all ?? this).#sweep.promoteDue(),
      crons: this.crons,
    });
    return this.#service;
  }

  /** The commands under an operator's name: each adds an entry to `audit` in the same commit. */
  as(by: By): Operator {
    return new Operator(this, parseBy(by));
  }

  /** Calls the listener for each event of this process. Returns the function that removes it. */
  on<Name extends EngineEventName>(name: Name, listener: (event: EngineEvents[Name]) => void): () => void {
    return this.#context.bus.on(name, listener);
  }

  /** All events of this process, until the signal aborts or the caller leaves the loop. */
  events(signal?: AbortSignal): AsyncGenerator<EngineEvent, void, undefined> {
    return this.#context.bus.stream(signal);
  }

  /** Counts of all processes that share the store, for a span of time: totals and points for plots. */
  async stats(query: StatsQuery = {}): Promise<Stats> {
    this.#assertOpen();
    return this.#statistics.stats(query);
  }

  /** Suggests attempt timeouts from measured runs, and says how many runs another timeout would have ended. */
  async advise(query: AdviseQuery = {}): Promise<Advice[]> {
    this.#assertOpen();
    return this.#statistics.advise(query);
  }

  /** One round of the sweep, for tests and operators. The engine also sweeps by itself. */
  async sweepOnce(): Promise<void> {
    await (this.#all ?? this).#sweep.round();
  }

  async pruneOnce(): Promise<void> {
    await (this.#all ?? this).#upkeep.prune();
  }

  #ready(queue: string): void {
    notifyWorkers([...this.#workers], queue, this.#context.random);
    this.#service?.notify(queue);
  }

  #readyAll(): void {
    for (const queue of new Set([...this.#workers].flatMap(({ queues }) => queues))) this.#ready(queue);
  }

  /** The store answers again: what waits between two tries goes on at once. */
  #lookAgain(): void {
    this.#readyAll();
    for (const each of [this.#context.pauses, this.#sweep.loop, this.#dispatcher.loop]) each.wake();
  }

  #hear(hint: Hint): void {
    this.journal.wake();
    if (!this.#all) this.tenants.hear(hint);
    this.#delivery?.wake();
    if ("ready" in hint) this.#ready(hint.ready);
    else if ("settled" in hint) this.#context.waiters.hint(hint.settled);
    else if ("timeouts" in hint) this.#dispatcher.wakeAt(hint.timeouts);
    else if ("missed" in hint) this.#lookAgain();
    else {
      this.#context.changed(hint.lost);
      this.#service?.forget(hint.lost);
    }
  }

  #assertOpen(): void {
    if (this.#closing) throw new CurfewError("closed", "the engine is closed; open another one");
  }

  #assertServes(call: string): void {
    this.#assertOpen();
    refuseRole(this.#upkeep.role, call);
  }

  /** The dispatcher of a tenant starts when it has something to deliver to; jobs are delivered by the engine of all. */
  #assertDispatches(call: string): void {
    this.#assertServes(call);
    if (this.#all) this.#dispatcher.start();
    this.#isDispatching = true;
  }

  /** Closes the workers (SEMANTICS 5.2), then the loops and the store. May be called twice. */
  async close(options: { readonly drain?: Duration } = {}): Promise<void> {
    parseDrain(options);
    this.#closing ??= this.#close(options);
    await this.#closing;
  }

  /**
   * Closes the engine at SIGTERM or SIGINT. Further signals change nothing until it is closed, so they cannot end the
   * process while jobs run. Returns a function that undoes this.
   */
  closeOnSignals(options: CloseOnSignalsOptions = {}): () => void {
    const closing = options.drain === undefined ? {} : { drain: options.drain };
    parseDrain(closing);
    return closeOnSignals(options, this.#context.logger, () => this.close(closing));
  }

  async #close(options: { readonly drain?: Duration }): Promise<void> {
    await this.tenants.close((engine) => engine.close(options));
    const then = () => {
      this.journal.close();
      return [
        this.#delivery?.stop(),
        this.#unique.flushed().then(() => this.#intake.flushed()),
        this.#sagas.flushed(),
        this.bulk.close(),
        this.#sweep
          .stop()
          .then(() => Promise.all([this.#stepScheduler.flushed(), this.#workflowCleanup.flushed()])),
        this.#context.recorder.close(),
        this.#upkeep.stop(),
        this.#listening?.[Symbol.asyncDispose](),
      ];
    };
    const first = [this.#service?.close(), this.#dispatcher.stop(parseDrain(options) ?? DRAIN)];
    await closeParts(this.#context, [...this.#workers], options, { first, then });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
