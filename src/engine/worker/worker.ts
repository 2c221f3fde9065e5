import { refuseUnknownKeys } from "../../core/errors.ts";
import { CLAIM_LEASE } from "../../core/job/deadlines.ts";
import { decide } from "../../core/job/decide.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import type { Json } from "../../core/schema.ts";
import { type Duration, earlier, type Instant, parseDuration } from "../../core/time.ts";
import type { SandboxRunner } from "../../ports/sandbox.ts";
import type { BeatAnswer } from "../../ports/store.ts";
import type { Timer } from "../../ports/system.ts";
import { Attempt, type AttemptHost } from "../attempt/attempt.ts";
import { AttemptWrite } from "../attempt/attempt-write.ts";
import type { Middleware, Processor } from "../attempt/processor.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import { type Decided, unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { LoopMonitor } from "../runtime/loop-monitor.ts";
import { within } from "../runtime/within.ts";
import { Watch } from "./deadline-watch.ts";
import { PolicyCache } from "./policy-cache.ts";
import { type ConsumerDeps, type Prefetched, QueueConsumer } from "./queue-consumer.ts";
import { Sandboxes } from "./sandboxes.ts";
import { StuckHandlers } from "./stuck-handlers.ts";
import { warnOfHolds } from "./warn-of-holds.ts";
import {
  checkMaxStuck,
  checkMiddleware,
  checkProcessors,
  checkQueues,
  parseDrain,
  WORK_KEYS,
  type WorkerStatus,
  type WorkOptions,
} from "./work-options.ts";
import { BeatLoop } from "./worker-beat.ts";
import { WorkerReporter } from "./worker-report.ts";

const UNFLUSHED_ROOM = 600;
const MARK_AFTER = 400;
const SHORT_LEASE = 2_000;
const UNKNOWN_TYPE_DELAY = 5_000;
const REFUSED_DELAY = 500;
const SHUTDOWN_GRACE = 5_000;
const TOO_CLOSE_WAIT = 2;
/** A crash between a committed start and the entry of its handler is found at most this much later. */
const LONGEST_START = 5_000;
const TOO_CLOSE = { ok: false, because: "too_close" } as const;
/** A warning about a blocked event loop names at most this many handlers. */
const MOST_NAMED = 100;

/** Claims jobs, runs their handlers, and makes sure that each attempt gets its one verdict on time. */
export class Worker implements AttemptHost, ConsumerDeps, AsyncDisposable {
  readonly id: string;
  readonly parts: EngineContext;
  readonly writer: CommitQueue;
  readonly middleware: readonly Middleware[];
  readonly processors = new Map<string, Processor>();
  readonly consumers = new Map<string, QueueConsumer>();
  /** By attempt and not by job: a job that was lost may come back while its old handler still runs. */
  readonly #running = new Map<Attempt, QueueConsumer>();
  readonly #stuck: StuckHandlers;
  readonly #reporter: WorkerReporter;
  readonly sandboxes: Sandboxes;
  readonly #watch: Watch;
  readonly #beat: BeatLoop;
  readonly #loopMonitor: LoopMonitor;
  readonly #concurrency: number;
  readonly #drain: number;
  readonly #policies: PolicyCache;
  readonly #onClosed: (worker: Worker) => void;
  #closing: Promise<void> | undefined;
  #markTimer: Timer | undefined;
  #onIdle: (() => void)[] = [];
  readonly #confirms = new Set<Promise<void>>();
  readonly #endedInGap: Attempt[] = [];
  /** What the last commit of a start took: the limits of the next one count from when its handler will be entered. */
  #startTakes = 0;

  constructor(parts: EngineContext, options: WorkOptions, onClosed: (worker: Worker) => void) {
    refuseUnknownKeys(options, "work", WORK_KEYS);
    this.parts = parts;
    this.#policies = new PolicyCache(parts);
    this.id = parts.nextId();
    this.writer = new CommitQueue(parts, { onCommitted: () => this.#pumpAll() });
    this.middleware = checkMiddleware(options.middleware ?? []);
    this.#onClosed = onClosed;
    this.#drain =
      options.drain === undefined ? 25_000 : parseDuration(options.drain, "work.drain", { zero: true });
    for (const processor of checkProcessors(options.processors)) {
      this.processors.set(processor.definition.type, processor);
      warnOfHolds(parts, processor.definition);
    }
    for (const [queue, concurrency] of checkQueues(options.queues, options.processors))
      this.consumers.set(queue, new QueueConsumer(this, queue, concurrency));
    this.#concurrency = [...this.consumers.values()].reduce((sum, consumer) => sum + consumer.concurrency, 0);
    this.#stuck = new StuckHandlers(parts, this.id, checkMaxStuck(options.maxStuck ?? this.#concurrency));
    this.sandboxes = new Sandboxes(parts, this.id, this.processors.values(), this.#concurrency);
    this.#reporter = new WorkerReporter(this, this.#stuck, this.processors.values());
    this.#watch = new Watch(parts, () => this.attempts());
    this.#beat = new BeatLoop(parts, this);
    this.#loopMonitor = new LoopMonitor(
      parts.system,
      () => parts.clock.elapsed(),
      (now) => this.#tick(now),
      (gap) => this.#blocked(gap),
    );
  }

  start(): this {
    for (const consumer of this.consumers.values()) consumer.loop.start();
    this.#beat.loop.start();
    this.#tell("worker.started");
    return this;
  }

  #tell(name: "worker.started" | "worker.quiet"): void {
    const { bus, clock } = this.parts;
    if (bus.wants(name)) bus.emit({ name, at: clock.now(), worker: this.id, queues: this.queues });
  }

  /** What the worker is doing, for readiness checks: an unready worker claims nothing or gives back, and says why. */
  status(): WorkerStatus {
    const reason = this.#reporter.problem;
    return {
      ready: reason === null,
      reason,
      running: this.#running.size,
      held: this.#heldCount,
      stuck: this.#stuck.size,
    };
  }

  get queues(): readonly string[] {
    return [...this.consumers.keys()];
  }

  /** What it says of itself with each beat. */
  report(): { readonly [name: string]: Json } {
    return this.#reporter.body();
  }
  attempts(): Iterable<Attempt> {
    return this.#running.keys();
  }

  get #heldCount(): number {
    let count = 0;
    for (const consumer of this.consumers.values()) count += consumer.prefetchedCount;
    return count;
  }

  get room(): number {
    return this.#concurrency + UNFLUSHED_ROOM - this.#running.size - this.#heldCount - this.writer.backlog;
  }

  get canClaim(): boolean {
    return this.#closing === undefined && !this.#stuck.isFull;
  }

  get isClosing(): boolean {
    return this.#closing !== undefined;
  }

  /** A queue has something to claim. */
  notify(queue: string): void {
    this.consumers.get(queue)?.notify();
  }

  /** Somebody changed this job or voided its fence: ask the store at once what became of it. */
  suspect(id: JobId): void {
    for (const attempt of this.attempts()) {
      if (attempt.row.id !== id) continue;
      this.#beat.loop.wake();
      return;
    }
  }

  // What consumers ask of their worker.

  enter(consumer: QueueConsumer, held: Prefetched): void {
    const { clock, random } = this.parts;
    const { row } = held;
    const processor = this.processors.get(row.type);
    const refusal = processor && this.sandboxes.refusal(processor);
    if (!processor || refusal) {
      if (refusal) this.#release(row, refusal.delay);
      else this.#releaseUnknown(row);
      this.#free(consumer);
      return;
    }
    const policy = row.policy ?? this.#policies.of(processor, row);
    const isMarked =
      row.expiredClaims > 0 || (row.limitKey !== null && row.options?.limit?.rate !== undefined);
    const anchor = clock.anchor() + (isMarked ? this.#startTakes : 0);
    const event: JobEvent = { type: "start", policy, upper: clock.upper(), anchor };
    const now = clock.now();
    // A start that is written down too early would be timed out too early, and its rate would forget it too early.
    const decision = clock.isBehind() ? TOO_CLOSE : decide(row, event, now, random);
    if (!decision.ok) this.#notEntered(consumer, held, decision.because);
    else if (decision.image.state !== "active") {
      this.#write(row, event, decision, now);
      this.#free(consumer);
    } else if (isMarked) this.#enterMarked(consumer, processor, row, decision, now);
    else this.#run(consumer, new Attempt(this, processor, row, decision), row.waitAt);
  }

  #run(consumer: QueueConsumer, attempt: Attempt, waitAt: Instant | null): void {
    this.#running.set(attempt, consumer);
    this.#markTimer ??= this.parts.system.after(MARK_AFTER, () => this.#markRunning());
    // The sweep must hear of the start before the claim's lease, `wait` or `total` could run out on it.
    const { totalAt, startedAt } = attempt.row;
    const endsAt = earlier(waitAt, totalAt) ?? Number.POSITIVE_INFINITY;
    const isShort =
      (attempt.policy.heartbeat ?? CLAIM_LEASE) < SHORT_LEASE || endsAt - (startedAt ?? 0) < SHORT_LEASE;
    if (isShort) attempt.mark.write();
    attempt.run();
  }

  #notEntered(consumer: QueueConsumer, held: Prefetched, because: string): void {
    if (because === "too_close") {
      // The slot stays taken for the moment in which it cannot be told whether the deadline has passed.
      this.parts.system.after(TOO_CLOSE_WAIT, () => {
        if (!this.isClosing) return consumer.putBack(held);
        this.giveBack([held]);
        this.#free(consumer);
      });
      return;
    }
    // The lease may be over, or nearly: giving the job back spares it the wait for the sweep. A process that is unsure of
    // the time would claim and refuse it again at once, so others go first.
    this.#release(held.row, this.#jittered(REFUSED_DELAY));
    this.#free(consumer);
  }

  /**
   * A job that once took its worker down with it is entered only after its start is committed (SEMANTICS 4.3), and so is
   * one whose start counts against a rate: a crash must not make it forgotten.
   */
  #enterMarked(
    consumer: QueueConsumer,
    processor: Processor,
    row: JobRow,
    decision: Decided,
    at: Instant,
  ): void {
    let sentAt = 0;
    this.writer.push({
      id: row.id,
      unit: () => {
        sentAt = this.parts.clock.elapsed();
        return unitOf(this.parts, { row, decision, at, by: "holder" });
      },
      done: (outcome) => {
        if (!outcome.ok) {
          // An outsider's change leaves the claim in force, so it is given back instead of being let run out.
          if (outcome.because === "stale") this.giveBack([{ row }]);
          else this.parts.counters.add("lost");
          this.#free(consumer);
          return;
        }
        this.#enterAfterMark(consumer, new Attempt(this, processor, row, decision), sentAt);
      },
    });
  }

  /** The commit took its time: the attempt counts from its entry, or is given back unspent if it can no longer be entered. */
  #enterAfterMark(consumer: QueueConsumer, attempt: Attempt, sentAt: number): void {
    this.#startTakes = Math.min(this.parts.clock.elapsed() - sentAt, LONGEST_START);
    attempt.mark.written();
    this.#running.set(attempt, consumer);
    const isEntered = !this.isClosing && this.isFresh(sentAt) && attempt.startAnew();
    if (isEntered) attempt.run();
    else attempt.giveBackUnentered();
  }

  #releaseUnknown(row: JobRow): void {
    const { bus, clock, logger } = this.parts;
    this.#release(row, this.#jittered(UNKNOWN_TYPE_DELAY));
    logger.warn({ job: row.id, type: row.type }, "no processor for this job type; it was given back");
    if (bus.wants("job.unknown_type")) bus.emit(bus.detail(row, "job.unknown_type", clock.now()));
  }

  #jittered(delay: number): number {
    return Math.round(delay * (0.75 + 0.5 * this.parts.random()));
  }

  /** Gives back a claim that was not entered, at once or to be claimed again after a delay. */
  #release(row: JobRow, delay?: number): void {
    const { clock, random } = this.parts;
    const now = clock.now();
    const event: JobEvent = { type: "release", ...(delay !== undefined && { delay }) };
    const decision = decide(row, event, now, random);
    if (decision.ok) this.#write(row, event, decision, now);
  }

  #write(row: JobRow, event: JobEvent, decision: Decided, at: number): void {
    const { parts: context, writer: queue } = this;
    queue.push(new AttemptWrite({ context, queue, row, event, decision, at }));
  }

  giveBack(held: readonly Pick<Prefetched, "row">[]): void {
    for (const { row } of held) this.#release(row);
  }

  confirm(consumer: QueueConsumer, held: readonly Prefetched[]): void {
    const asked = this.#beat.confirm(held).then(
      (valid) => consumer.confirmed(held.length, valid),
      // Without an answer nothing may be entered, so the jobs go back to whoever can.
      (error) => {
        this.parts.storeFailed(error, "beat");
        this.giveBack(held);
        consumer.confirmed(held.length, []);
      },
    );
    this.#confirms.add(asked);
    void asked.finally(() => this.#confirms.delete(asked));
  }

  /** What a beat learned about a running attempt. */
  heard(attempt: Attempt, answer: BeatAnswer): void {
    if (answer === "ok") return;
    if (answer === "changed") this.changed(attempt);
    else attempt.stop(answer.lost === "cancelled" ? "cancelled" : "lost");
  }

  changed(attempt: Attempt): void {
    void this.#reload(attempt);
  }

  async #reload(attempt: Attempt): Promise<void> {
    try {
      const [row] = await this.parts.store.jobs.load([attempt.row.id]);
      if (row) attempt.refresh(row);
    } catch (error) {
      this.parts.storeFailed(error, "load");
    }
  }

  // What attempts ask of their worker.

  freed(attempt: Attempt): void {
    const consumer = this.#running.get(attempt);
    if (!consumer) return;
    this.#running.delete(attempt);
    const now = this.parts.clock.elapsed();
    consumer.ranFor(now - attempt.enteredAt);
    // Whoever ends before the tick that is overdue was running meanwhile, and may be the one that blocked it.
    if (this.#loopMonitor.isOverdue(now) && this.#endedInGap.length < MOST_NAMED)
      this.#endedInGap.push(attempt);
    this.#free(consumer);
  }

  #free(consumer: QueueConsumer): void {
    consumer.freed();
    if (this.#onIdle.length > 0 && this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** No slot is taken, neither by a handler nor by a job that is about to be entered. */
  get #isIdle(): boolean {
    for (const consumer of this.consumers.values()) if (consumer.running > 0) return false;
    return true;
  }

  runnerOf(processor: Processor): SandboxRunner | undefined {
    return this.sandboxes.of(processor);
  }

  stuck(attempt: Attempt): void {
    this.#stuck.add(attempt);
  }

  unstuck(attempt: Attempt): void {
    if (this.#stuck.delete(attempt)) this.#pumpAll();
  }

  #pumpAll(): void {
    for (const consumer of this.consumers.values()) consumer.pump();
  }

  watch(attempt: Attempt): void {
    this.#watch.until(attempt.nextAt);
  }

  beaten(attempt: Attempt): void {
    this.#beat.hurry(attempt);
  }

  busy(): void {
    this.#loopMonitor.start();
  }

  isFresh(since: number): boolean {
    return this.#loopMonitor.ranSince(since);
  }

  /** Looks after jobs that wait too long; there is nothing to look after once nothing is held or running. */
  #tick(now: number): boolean {
    for (const consumer of this.consumers.values()) consumer.tidy(now);
    // A job that waits for its sandbox holds a slot too, and the beat says what it waits for.
    if (!this.#isIdle) this.#beat.keepUp(now);
    for (const consumer of this.consumers.values()) if (consumer.isBusy) return true;
    return false;
  }

  /** The event loop stood still: say which jobs were running, and let a beat tell which of them are still ours. */
  #blocked(gap: number): void {
    const { bus, clock, logger } = this.parts;
    this.#reporter.blocked(clock.now(), gap);
    const running = [...this.#endedInGap.splice(0), ...this.attempts()];
    const jobs = running.map(({ row }) => ({ id: row.id, type: row.type }));
    logger.warn(
      { gap: Math.round(gap), jobs },
      "the event loop was blocked; no deadline in this process could be kept meanwhile",
    );
    bus.emit({ name: "worker.blocked", at: clock.now(), worker: this.id, gap: Math.round(gap), jobs });
    clock.sample().catch((error) => this.parts.storeFailed(error, "clock"));
    this.#beat.loop.wake();
  }

  /** Tells the store that attempts have started, so that a crash spends them; short ones never need it. */
  #markRunning(): void {
    this.#markTimer = undefined;
    for (const attempt of this.attempts()) attempt.mark.write();
    if (this.#running.size > 0)
      this.#markTimer = this.parts.system.after(MARK_AFTER, () => this.#markRunning());
  }

  // Shutdown (SEMANTICS 5.2).

  /** Stops claiming, drains, aborts what is left, gives it back, and resolves when nothing is claimed any more. */
  async close(options: { readonly drain?: Duration } = {}): Promise<void> {
    const drain = parseDrain(options) ?? this.#drain;
    this.#closing ??= this.#close(drain);
    await this.#closing;
  }

  async #close(drain: number): Promise<void> {
    const { clock } = this.parts;
    this.#tell("worker.quiet");
    // A claim under way is not waited for here: a store that hangs must not keep close() from keeping its own time.
    const stopped = Promise.all([...this.consumers.values()].map((consumer) => consumer.loop.stop()));
    this.#giveBackHeld();
    if (!(await this.#idleWithin(drain))) {
      const running = [...this.attempts()];
      const graceOf = ({ policy }: Attempt) => Math.min(policy.grace ?? SHUTDOWN_GRACE, SHUTDOWN_GRACE);
      for (const attempt of running) attempt.shutDown(clock.now() + graceOf(attempt));
      await this.#idleWithin(Math.max(0, ...running.map(graceOf)));
      for (const attempt of [...this.attempts()]) attempt.release();
    }
    await this.#finish(stopped);
  }

  #giveBackHeld(): void {
    this.giveBack([...this.consumers.values()].flatMap((consumer) => consumer.takePrefetched()));
  }

  async #finish(stopped: Promise<unknown>): Promise<void> {
    const { system } = this.parts;
    await within(system, SHUTDOWN_GRACE, Promise.all([stopped, ...this.#confirms]));
    this.#giveBackHeld();
    await Promise.all([
      within(system, SHUTDOWN_GRACE, this.writer.flushed()),
      within(system, 2 * SHUTDOWN_GRACE, this.sandboxes.close()),
    ]);
    this.writer.abandon();
    await within(system, SHUTDOWN_GRACE, this.#beat.close());
    this.#watch.close();
    this.#loopMonitor.stop();
    this.#markTimer?.cancel();
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
