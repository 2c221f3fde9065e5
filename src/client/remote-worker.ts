import { hostname } from "node:os";
import { refuseUnknownKeys } from "../core/errors.ts";
import type { JobRow } from "../core/job/job.ts";
import { jittered } from "../core/pace.ts";
import { type Duration, parseDuration } from "../core/time.ts";
import type { Middleware, Processor } from "../engine/attempt/processor.ts";
import type { Verdict } from "../engine/attempt/running-attempt.ts";
import type { AttemptParts } from "../engine/context.ts";
import type { EngineClock } from "../engine/runtime/engine-clock.ts";
import { LoopMonitor } from "../engine/runtime/loop-monitor.ts";
import { Watch } from "../engine/worker/deadline-watch.ts";
import { Sandboxes } from "../engine/worker/sandboxes.ts";
import { StuckHandlers } from "../engine/worker/stuck-handlers.ts";
import {
  checkMaxStuck,
  checkMiddleware,
  checkProcessors,
  checkQueues,
  WORK_KEYS,
  type WorkerStatus,
  type WorkOptions,
} from "../engine/worker/work-options.ts";
import type { SandboxRunner } from "../ports/sandbox.ts";
import { within } from "../ports/system.ts";
import { Fetcher } from "./fetcher.ts";
import { RemoteAttempt, type RemoteAttemptHost } from "./remote-attempt.ts";
import type { AttemptNotes } from "./remote-attempt-notes.ts";
import { type Heard, RemoteBeat } from "./remote-beat.ts";
import { type Fetched, RemoteConsumer } from "./remote-consumer.ts";
import { Reports } from "./reports.ts";
import type { Transport } from "./transport.ts";

export interface RemoteWorkerStatus extends WorkerStatus {
  /** Verdicts that the server has not answered yet. */
  readonly unreported: number;
}

const UNREPORTED_ROOM = 200;
const UNKNOWN_TYPE_DELAY = 5_000;
const SHUTDOWN_GRACE = 5_000;
const MOST_NAMED = 100;

/** Fetches jobs from a server, runs their handlers under the deadlines that it named, and reports their verdicts. */
export class RemoteWorker implements RemoteAttemptHost, AsyncDisposable {
  readonly id: string;
  readonly parts: AttemptParts;
  readonly clock: EngineClock;
  readonly transport: Transport;
  readonly middleware: readonly Middleware[];
  readonly #processors = new Map<string, Processor>();
  readonly #consumers = new Map<string, RemoteConsumer>();
  /** By attempt and not by job: a job that was lost may come back while its old handler still runs. */
  readonly #running = new Map<RemoteAttempt, RemoteConsumer>();
  readonly #stuck: StuckHandlers;
  readonly #sandboxes: Sandboxes;
  readonly #watch: Watch;
  readonly #beat: RemoteBeat;
  readonly #loopMonitor: LoopMonitor;
  readonly #reports: Reports;
  readonly #fetcher: Fetcher;
  readonly #concurrency: number;
  readonly #drain: number;
  readonly #onClosed: (worker: RemoteWorker) => void;
  #closing: Promise<void> | undefined;
  #isQuiet = false;
  #onIdle: (() => void)[] = [];

  constructor(
    shared: {
      readonly id: string;
      readonly parts: AttemptParts;
      readonly clock: EngineClock;
      readonly transport: Transport;
    },
    options: WorkOptions,
    onClosed: (worker: RemoteWorker) => void,
  ) {
    refuseUnknownKeys(options, "work", WORK_KEYS);
    const { parts, clock, transport } = shared;
    this.id = shared.id;
    this.parts = parts;
    this.clock = clock;
    this.transport = transport;
    this.#onClosed = onClosed;
    this.middleware = checkMiddleware(options.middleware ?? []);
    this.#drain =
      options.drain === undefined ? 25_000 : parseDuration(options.drain, "work.drain", { zero: true });
    for (const processor of checkProcessors(options.processors))
      this.#processors.set(processor.definition.type, processor);
    for (const [queue, concurrency] of checkQueues(options.queues))
      this.#consumers.set(queue, new RemoteConsumer(this, queue, concurrency));
    this.#concurrency = [...this.#consumers.values()].reduce(
      (sum, consumer) => sum + consumer.concurrency,
      0,
    );
    this.#stuck = new StuckHandlers(parts, this.id, checkMaxStuck(options.maxStuck ?? this.#concurrency));
    this.#sandboxes = new Sandboxes(parts, this.id, this.#processors.values(), this.#concurrency);
    this.#fetcher = new Fetcher(this, [...this.#processors.values()]);
    this.#watch = new Watch(parts, () => this.attempts());
    this.#beat = new RemoteBeat(this);
    this.#reports = new Reports({
      id: this.id,
      transport,
      system: parts.system,
      logger: parts.logger,
      lost: (row) => this.#lost(row),
      reported: () => this.#pumpAll(),
    });
    this.#loopMonitor = new LoopMonitor(
      parts.system,
      () => clock.elapsed(),
      (now) => this.#tick(now),
      (gap) => this.#blocked(gap),
    );
  }

  start(): this {
    for (const consumer of this.#consumers.values()) consumer.loop.start();
    this.#beat.loop.start();
    return this;
  }

  /** What the worker is doing, for readiness checks: an unready worker fetches nothing or gives back, and says why. */
  status(): RemoteWorkerStatus {
    const failing = [...this.#consumers.values()].find((consumer) => consumer.loop.isFailing);
    const reason = this.#closing
      ? "closing"
      : this.#stuck.isFull
        ? `${this.#stuck.size} handlers are stuck past their hard deadline`
        : failing
          ? `fetches from queue ${failing.queue} are failing: ${failing.failure}`
          : this.#isQuiet
            ? "the server wants it quiet"
            : this.#sandboxes.problem;
    return {
      ready: reason === null,
      reason,
      running: this.#running.size,
      held: this.#heldCount,
      stuck: this.#stuck.size,
      unreported: this.#reports.backlog,
    };
  }

  get #heldCount(): number {
    let count = 0;
    for (const consumer of this.#consumers.values()) count += consumer.heldCount;
    return count;
  }

  // What lanes ask of their worker.

  get canFetch(): boolean {
    return this.#closing === undefined && !this.#isQuiet && !this.#stuck.isFull;
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  get room(): number {
    return this.#concurrency + UNREPORTED_ROOM - this.#running.size - this.#heldCount - this.#reports.backlog;
  }

  busy(): void {
    this.#loopMonitor.start();
  }

  isFresh(since: number): boolean {
    return this.#loopMonitor.ranSince(since);
  }

  fetch(queue: string, count: number): Promise<Fetched> {
    return this.#fetcher.fetch(queue, count);
  }

  confirm(rows: readonly JobRow[]): Promise<Set<JobRow>> {
    return this.#beat.confirm(rows);
  }

  giveBack(rows: readonly JobRow[]): void {
    for (const row of rows) this.report(row, { type: "release" }, undefined);
  }

  enter(consumer: RemoteConsumer, row: JobRow): void {
    const processor = this.#processors.get(row.type);
    const refusal = processor && this.#sandboxes.refusal(processor);
    // The deadlines run since the fetch, and a handler is never entered past one (SEMANTICS 3.1).
    const endsAt = Math.min(row.softAt ?? Number.POSITIVE_INFINITY, row.stallAt ?? Number.POSITIVE_INFINITY);
    if (!processor || refusal || this.clock.upper() >= endsAt) {
      if (!processor) this.#releaseUnknown(row);
      else this.report(row, { type: "release", ...(refusal && { delay: refusal.delay }) }, undefined);
      this.#free(consumer);
      return;
    }
    // A job that comes again was taken back: whatever its old handler still does is lost.
    for (const attempt of [...this.attempts()]) if (attempt.row.id === row.id) attempt.stop("lost");
    const attempt = new RemoteAttempt(this, processor, row, this.clock.elapsed());
    this.#running.set(attempt, consumer);
    this.parts.counters.add("started");
    attempt.run();
  }

  #releaseUnknown(row: JobRow): void {
    const { bus, clock, system, logger } = this.parts;
    const delay = Math.round(jittered(UNKNOWN_TYPE_DELAY, system.random));
    this.report(row, { type: "release", delay }, undefined);
    logger.warn({ job: row.id, type: row.type }, "no processor for this job type; it was given back");
    if (bus.wants("job.unknown_type")) bus.emit(bus.detail(row, "job.unknown_type", clock.now()));
  }

  // What attempts ask of their worker.

  report(row: JobRow, verdict: Verdict, notes: AttemptNotes | undefined): void {
    this.#reports.push({ row, verdict, notes });
  }

  #lost(row: JobRow): void {
    const { bus, clock, counters } = this.parts;
    counters.add("lost");
    if (bus.wants("job.lost")) bus.emit(bus.detail(row, "job.lost", clock.now()));
  }

  runnerOf(processor: Processor): SandboxRunner | undefined {
    return this.#sandboxes.of(processor);
  }

  freed(attempt: RemoteAttempt): void {
    const consumer = this.#running.get(attempt);
    if (!consumer) return;
    this.#running.delete(attempt);
    consumer.ranFor(this.clock.elapsed() - attempt.enteredAt);
    this.#free(consumer);
  }

  #free(consumer: RemoteConsumer): void {
    consumer.freed();
    if (this.#onIdle.length > 0 && this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  get #isIdle(): boolean {
    for (const consumer of this.#consumers.values()) if (consumer.running > 0) return false;
    return true;
  }

  stuck(attempt: RemoteAttempt): void {
    this.#stuck.add(attempt);
  }

  unstuck(attempt: RemoteAttempt): void {
    if (this.#stuck.delete(attempt)) this.#pumpAll();
  }

  #pumpAll(): void {
    for (const consumer of this.#consumers.values()) consumer.pump();
  }

  watch(attempt: RemoteAttempt): void {
    this.#watch.until(attempt.nextAt);
  }

  beaten(attempt: RemoteAttempt): void {
    this.#beat.hurry(attempt.row.heartbeat);
  }

  // What the beat asks of its worker.

  about(): Record<string, unknown> {
    return {
      state: this.#closing ? "drain" : "running",
      hostname: hostname().slice(0, 255),
      pid: process.pid,
      queues: [...this.#consumers.keys()],
      concurrency: this.#concurrency,
    };
  }

  *attempts(): Iterable<RemoteAttempt> {
    yield* this.#running.keys();
  }

  *others(): Iterable<JobRow> {
    for (const consumer of this.#consumers.values()) yield* consumer.held();
    yield* this.#reports.rows();
  }

  hear(attempt: RemoteAttempt, { directive, deadlines }: Heard): void {
    if (directive === "cancel") attempt.stop("cancelled");
    else if (directive === "lost") attempt.stop("lost");
    else {
      if (deadlines) attempt.refresh(deadlines);
      if (directive === "soft_timeout") attempt.hearSoftSignal();
    }
  }

  /** The server said what time it is: what is due by that is done before anything else that it said. */
  heardTime(): void {
    this.#watch.look();
  }

  /** An operator may want the worker to fetch no more, or to end. */
  direct(state: unknown): void {
    if (this.#closing) return;
    const isQuiet = state === "quiet";
    if (isQuiet !== this.#isQuiet) {
      this.#isQuiet = isQuiet;
      this.parts.logger.info({ worker: this.id, state }, isQuiet ? "told to be quiet" : "told to go on");
      if (!isQuiet) this.#pumpAll();
    }
    if (state === "terminate") {
      this.parts.logger.info({ worker: this.id }, "told to end");
      void this.close();
    }
  }

  failed(error: unknown, during: string): void {
    const { bus, clock, logger } = this.parts;
    if (this.transport.isClosed) return;
    logger.warn({ error, during }, "the server failed");
    bus.emit({ name: "store.error", at: clock.now(), during, error });
  }

  /** Looks after jobs that wait too long; there is nothing to look after once nothing is held or running. */
  #tick(now: number): boolean {
    for (const consumer of this.#consumers.values()) consumer.tidy(now);
    if (this.#running.size > 0) this.#beat.keepUp(now);
    for (const consumer of this.#consumers.values()) if (consumer.isBusy) return true;
    return false;
  }

  /** The event loop stood still: say which jobs were running, and let a beat tell which of them are still ours. */
  #blocked(gap: number): void {
    const { bus, clock, logger } = this.parts;
    const jobs = [...this.attempts()].slice(0, MOST_NAMED).map(({ row }) => ({ id: row.id, type: row.type }));
    const says = "the event loop was blocked; no deadline in this process could be kept meanwhile";
    logger.warn({ gap: Math.round(gap), jobs }, says);
    bus.emit({ name: "worker.blocked", at: clock.now(), worker: this.id, gap: Math.round(gap), jobs });
    this.#beat.loop.wake();
  }

  // Shutdown (SEMANTICS 5.2).

  /** Stops fetching, drains, aborts what is left, gives it back, and resolves when the server has heard of it. */
  close(options: { readonly drain?: Duration } = {}): Promise<void> {
    const drain =
      options.drain === undefined ? this.#drain : parseDuration(options.drain, "close.drain", { zero: true });
    this.#closing ??= this.#close(drain);
    return this.#closing;
  }

  async #close(drain: number): Promise<void> {
    // A fetch under way is not cut off: its reply may carry jobs, and they are given back when it comes.
    const stopped = Promise.all([...this.#consumers.values()].map((consumer) => consumer.loop.stop()));
    this.#giveBackHeld();
    // The server hears of it at once, so that a fetch which waits there is answered.
    this.#beat.loop.wake();
    if (!(await this.#idleWithin(drain))) {
      const running = [...this.attempts()];
      const graceOf = ({ policy }: RemoteAttempt) => Math.min(policy.grace ?? SHUTDOWN_GRACE, SHUTDOWN_GRACE);
      for (const attempt of running) attempt.shutDown(this.clock.now() + graceOf(attempt));
      await this.#idleWithin(Math.max(0, ...running.map(graceOf)));
      for (const attempt of [...this.attempts()]) attempt.release();
    }
    await this.#finish(stopped);
  }

  #giveBackHeld(): void {
    for (const consumer of this.#consumers.values()) this.giveBack(consumer.takeHeld());
  }

  async #finish(stopped: Promise<unknown>): Promise<void> {
    const { system } = this.parts;
    await within(system, SHUTDOWN_GRACE, stopped);
    this.#giveBackHeld();
    await Promise.all([
      within(system, SHUTDOWN_GRACE, this.#reports.flushed()),
      within(system, 2 * SHUTDOWN_GRACE, this.#sandboxes.close()),
    ]);
    this.#reports.abandon();
    await within(system, SHUTDOWN_GRACE, this.#beat.close());
    this.#watch.close();
    this.#loopMonitor.stop();
    this.#onClosed(this);
  }

  #idleWithin(delay: number): Promise<boolean> {
    if (this.#isIdle) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = this.parts.system.after(delay, () => resolve(false), { keepAlive: true });
      this.#onIdle.push(() => {
        timer.cancel();
        resolve(true);
      });
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
