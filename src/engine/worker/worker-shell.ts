import { refuseUnknownKeys } from "../../core/errors.ts";
import type { JobRow } from "../../core/job/job.ts";
import { jittered } from "../../core/pace.ts";
import { takesVersion } from "../../core/registry/job-version.ts";
import { type Duration, type Instant, parseDuration } from "../../core/time.ts";
import type { SandboxRunner } from "../../ports/sandbox.ts";
import { within } from "../../ports/system.ts";
import type { Gathering } from "../attempt/gathering.ts";
import type { Middleware, Processor } from "../attempt/processor.ts";
import type { RunDeps, RunningAttempt } from "../attempt/running-attempt.ts";
import type { AttemptParts } from "../context.ts";
import { CLOSE_MARKS, CloseBudget } from "../runtime/close-budget.ts";
import type { EngineClock } from "../runtime/engine-clock.ts";
import type { Loop } from "../runtime/loop.ts";
import { LoopMonitor } from "../runtime/loop-monitor.ts";
import type { BeatPace } from "./beat-pace.ts";
import { DeadlineWatch } from "./deadline-watch.ts";
import { Gatherings } from "./gatherings.ts";
import { Sandboxes } from "./sandboxes.ts";
import { StuckHandlers } from "./stuck-handlers.ts";
import {
  checkMaxStuck,
  checkMiddleware,
  checkProcessors,
  checkQueues,
  parseDrain,
  WORK_KEYS,
  type WorkerStatus,
  type WorkOptions,
  workerId,
} from "./work-options.ts";

/** What the shell needs from the consumer of one queue. */
interface Consumer {
  readonly queue: string;
  readonly concurrency: number;
  readonly loop: Loop;
  readonly running: number;
  readonly prefetchedCount: number;
  readonly isBusy: boolean;
  pump(): void;
  freed(): void;
  ranFor(elapsed: number): void;
  tidy(now: number): void;
}

interface Beat {
  readonly pace: BeatPace;
  close(): Promise<void>;
}

/** Verdicts that are not written or reported yet. */
interface Outgoing {
  readonly backlog: number;
  flushed(): Promise<void>;
  abandon(): void;
}

export interface ShellDeps<Parts extends AttemptParts> {
  readonly id: string;
  readonly parts: Parts;
  readonly clock: EngineClock;
}

const DEFAULT_DRAIN = 25_000;
const SHUTDOWN_GRACE = 5_000;
/** How long a job that this worker cannot enter waits, so that another worker claims it first. */
export const UNKNOWN_TYPE_DELAY = 5_000;
const OTHER_VERSION_DELAY = 1_000;
/** A warning about a blocked event loop names at most this many jobs. */
const MOST_NAMED = 100;

/** Ways to the store and back that are kept for the releases of a shutdown: a commit, a load if it is refused, a commit. */
const TRIPS_OF_A_RELEASE = 3;
/** Handlers of a worker that is far away from its store still have 2 s. */
const MOST_RESERVED = 3_000;

/**
 * What the local and the remote worker share: running attempts, the loop monitor, stuck handlers and the shutdown. A
 * subclass knows where jobs come from and where verdicts go.
 */
export abstract class WorkerShell<
  One extends RunningAttempt,
  Queue extends Consumer,
  Parts extends AttemptParts = AttemptParts,
> implements RunDeps, AsyncDisposable
{
  readonly id: string;
  readonly parts: Parts;
  readonly clock: EngineClock;
  readonly middleware: readonly Middleware[];
  readonly sandboxes: Sandboxes;
  readonly processors = new Map<string, Processor>();
  readonly consumers = new Map<string, Queue>();
  /** By attempt, not by job: a job that was lost may come back while its old handler still runs. */
  protected readonly running = new Map<One, Queue>();
  /** The subclass makes one consumer for each. */
  protected readonly slots: readonly (readonly [queue: string, concurrency: number])[];
  protected readonly concurrency: number;
  protected readonly deadlines: DeadlineWatch;
  /** Calls that `close()` waits for. */
  protected readonly unanswered = new Set<Promise<void>>();
  protected readonly stuckHandlers: StuckHandlers;
  readonly #gatherings: Gatherings;
  readonly #loopMonitor: LoopMonitor;
  readonly #drain: number;
  readonly #endedInGap: One[] = [];
  #onIdle: (() => void)[] = [];
  #isClosing = false;
  /** Whether `worker.unready` was announced last. */
  #isUnready = false;
  /** When the drain of a close ends. */
  #shutdownAt: Instant | null = null;
  /** How much of the grace of a shutdown is kept for the way to the store. */
  #reserved = 0;
  #closed: Promise<void> | undefined;
  #drainedAt: number | undefined;

  constructor({ id, parts, clock }: ShellDeps<Parts>, options: WorkOptions) {
    refuseUnknownKeys(options, "work", WORK_KEYS);
    this.id = workerId(options.name, id);
    this.parts = parts;
    this.clock = clock;
    this.middleware = checkMiddleware(options.middleware ?? []);
    const { drain } = options;
    this.#drain = drain === undefined ? DEFAULT_DRAIN : parseDuration(drain, "work.drain", { zero: true });
    for (const processor of checkProcessors(options.processors))
      this.processors.set(processor.definition.type, processor);
    this.slots = checkQueues(options.queues, options.processors);
    this.concurrency = this.slots.reduce((sum, [, concurrency]) => sum + concurrency, 0);
    const maxStuck = checkMaxStuck(options.maxStuck ?? this.concurrency);
    this.stuckHandlers = new StuckHandlers(parts, maxStuck, () => this.readinessChanged());
    this.sandboxes = new Sandboxes(parts, this.id, this.processors.values(), this.concurrency);
    this.#gatherings = new Gatherings(parts, this.processors.values(), this.slots);
    this.deadlines = new DeadlineWatch(parts, () => this.attempts());
    this.#loopMonitor = new LoopMonitor(
      parts.system,
      () => clock.elapsed(),
      (now) => this.#tick(now),
      (gap) => this.blocked(gap),
    );
  }

  protected abstract readonly beat: Beat;
  protected abstract readonly outgoing: Outgoing;
  /** Says, for the status, that the consumer gets no jobs. */
  protected abstract failureOf(consumer: Queue): string;
  /** Releases a job that was not entered; it can run again after the delay. */
  protected abstract release(row: JobRow, delay: number): void;
  protected abstract giveBackPrefetched(consumer: Queue): void;
  /** Called once, after the consumers have stopped and before the wait for running attempts. */
  protected abstract closing(): void;
  /** Called once, at the very end of the shutdown. */
  protected abstract closed(): void;

  start(): this {
    for (const consumer of this.consumers.values()) consumer.loop.start();
    this.beat.pace.loop.start();
    return this;
  }

  /** For readiness checks. A worker that is not ready takes no jobs or releases them, and says why. */
  status(): WorkerStatus {
    const reason = this.#isClosing ? "closing" : (this.#outage ?? this.problem);
    return {
      ready: reason === null,
      reason,
      running: this.running.size,
      held: this.prefetchedCount,
      stuck: this.stuckHandlers.size,
    };
  }

  /** Why the worker gets no jobs; null if it does. A broken sandbox has events of its own. */
  get #outage(): string | null {
    const { isFull, size } = this.stuckHandlers;
    if (isFull) return `${size} ${size === 1 ? "handler is" : "handlers are"} stuck past the hard deadline`;
    const failing = [...this.consumers.values()].find((consumer) => consumer.loop.isFailing);
    return failing ? this.failureOf(failing) : null;
  }

  /** Announces once that the worker gets no jobs, and once that it does again. */
  readinessChanged(): void {
    const reason = this.#outage;
    if (this.#isClosing || (reason !== null) === this.#isUnready) return;
    this.#isUnready = reason !== null;
    const { bus, clock, logger } = this.parts;
    const text = reason === null ? "the worker claims jobs again" : "the worker claims no more jobs";
    logger.warn({ worker: this.id, ...(reason !== null && { reason }) }, text);
    const name = reason === null ? "worker.ready" : "worker.unready";
    bus.emit({ name, at: clock.now(), worker: this.id, reason: reason ?? text });
  }

  protected get problem(): string | null {
    return this.sandboxes.problem;
  }

  get queues(): readonly string[] {
    return [...this.consumers.keys()];
  }

  attempts(): Iterable<One> {
    return this.running.keys();
  }

  protected get prefetchedCount(): number {
    let count = 0;
    for (const consumer of this.consumers.values()) count += consumer.prefetchedCount;
    return count;
  }

  get canClaim(): boolean {
    return !this.#isClosing && !this.stuckHandlers.isFull;
  }

  /** When its drain was over, in monotonic time. A close has a limit from there on. */
  get drainedAt(): number | undefined {
    return this.#drainedAt;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** The processor for a job's type and version. */
  protected processorOf(row: JobRow): Processor | undefined {
    const processor = this.processors.get(row.type);
    return processor && takesVersion(processor.definition.versions, row) ? processor : undefined;
  }

  protected releaseUnknown(row: JobRow): void {
    const { bus, clock, system, logger } = this.parts;
    const isKnown = this.processors.has(row.type);
    const delay = isKnown ? OTHER_VERSION_DELAY : UNKNOWN_TYPE_DELAY;
    this.release(row, Math.round(jittered(delay, system.random)));
    // Jobs of another version are no mistake: they wait for a worker that runs them.
    if (isKnown) return;
    logger.warn({ job: row.id, type: row.type }, "no processor for this job type; the job was released");
    if (bus.wants("job.unknown_type")) bus.emit(bus.detail(row, "job.unknown_type", clock.now()));
  }

  gatheringOf({ processor, row }: RunningAttempt): Gathering | undefined {
    return this.#gatherings.of(processor, row.queue);
  }

  runnerOf(processor: Processor): SandboxRunner | undefined {
    return this.sandboxes.of(processor);
  }

  freed(attempt: One): void {
    const consumer = this.running.get(attempt);
    if (!consumer) return;
    this.running.delete(attempt);
    const now = this.clock.elapsed();
    consumer.ranFor(now - attempt.enteredAt);
    // The tick is overdue, so the loop was blocked while this attempt ran. It may be the cause: the warning names it.
    if (this.#loopMonitor.isOverdue(now) && this.#endedInGap.length < MOST_NAMED)
      this.#endedInGap.push(attempt);
    this.free(consumer);
  }

  protected free(consumer: Queue): void {
    consumer.freed();
    if (this.#onIdle.length > 0 && this.#isIdle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  /** Every slot is free: no handler runs, and no job waits for its sandbox. */
  get #isIdle(): boolean {
    for (const consumer of this.consumers.values()) if (consumer.running > 0) return false;
    return true;
  }

  stuck(attempt: One): void {
    this.stuckHandlers.add(attempt);
  }

  unstuck(attempt: One): void {
    if (this.stuckHandlers.delete(attempt)) this.pumpAll();
  }

  protected pumpAll(): void {
    for (const consumer of this.consumers.values()) consumer.pump();
  }

  watch(attempt: One): void {
    this.deadlines.until(attempt.nextAt);
  }

  busy(): void {
    this.#loopMonitor.start();
  }

  isFresh(since: number): boolean {
    return this.#loopMonitor.ranSince(since);
  }

  /** Releases jobs that waited too long. Returns false once no job is prefetched or running. */
  #tick(now: number): boolean {
    for (const consumer of this.consumers.values()) consumer.tidy(now);
    // A job that waits for its sandbox holds a slot too. The beat reports it.
    if (!this.#isIdle) this.beat.pace.keepUp(now);
    for (const consumer of this.consumers.values()) if (consumer.isBusy) return true;
    return false;
  }

  /** Warns that the event loop was blocked and names the jobs that ran. A beat asks which of them this worker still holds. */
  protected blocked(gap: number): void {
    const { bus, clock, logger } = this.parts;
    const running = [...this.#endedInGap.splice(0), ...this.attempts()].slice(0, MOST_NAMED);
    const jobs = running.map(({ row }) => ({ id: row.id, type: row.type }));
    const text = "the event loop was blocked; this process checked no deadlines during that time";
    logger.warn({ gap: Math.round(gap), jobs }, text);
    bus.emit({ name: "worker.blocked", at: clock.now(), worker: this.id, gap: Math.round(gap), jobs });
    this.beat.pace.loop.wake();
  }

  /** Takes no more jobs, drains, then aborts and releases the jobs that still run (SEMANTICS 5.2). */
  async close(options: { readonly drain?: Duration } = {}): Promise<void> {
    const drain = parseDrain(options) ?? this.#drain;
    this.#closed ??= this.#close(drain);
    await this.#closed;
  }

  async #close(drain: number): Promise<void> {
    this.#isClosing = true;
    const now = this.clock.now();
    this.#shutdownAt = now + drain;
    if (this.clock.isWide)
      this.#reserved = Math.min(TRIPS_OF_A_RELEASE * (this.clock.upper() - now), MOST_RESERVED);
    // Do not wait for a running claim or fetch: a store that hangs must not delay close(). `#finish` releases its jobs.
    const stopped = Promise.all([...this.consumers.values()].map((consumer) => consumer.loop.stop()));
    this.#giveBackAll();
    this.#gatherings.close();
    this.closing();
    const isIdle = await this.#idleWithin(drain);
    this.#drainedAt = this.parts.system.monotonic();
    if (!isIdle) {
      const running = [...this.attempts()];
      for (const attempt of running) attempt.shutDown(this.parts.clock.now() + this.#graceOf(attempt));
      await this.#idleWithin(Math.max(0, ...running.map((attempt) => this.#graceOf(attempt))));
      for (const attempt of [...this.attempts()]) attempt.release();
    }
    await this.#finish(stopped, isIdle ? 0 : this.#reserved);
  }

  shutdownOf(attempt: One): { readonly at: Instant; readonly deadline: Instant } | null {
    const at = this.#shutdownAt;
    return at === null ? null : { at, deadline: at + this.#graceOf(attempt) };
  }

  /** How long a handler may go on after the signal of a shutdown. */
  #graceOf({ policy }: One): number {
    return Math.min(policy.grace ?? SHUTDOWN_GRACE, SHUTDOWN_GRACE - this.#reserved);
  }

  #giveBackAll(): void {
    for (const consumer of this.consumers.values()) this.giveBackPrefetched(consumer);
  }

  async #finish(stopped: Promise<unknown>, reserved: number): Promise<void> {
    const { system } = this.parts;
    const budget = new CloseBudget(system, this.#drainedAt);
    await budget.until(CLOSE_MARKS.claims, Promise.all([stopped, ...this.unanswered]));
    this.#giveBackAll();
    await Promise.all([
      budget.until(CLOSE_MARKS.writes, this.outgoing.flushed(), reserved),
      within(system, 2 * SHUTDOWN_GRACE, this.sandboxes.close()),
    ]);
    this.outgoing.abandon();
    await budget.until(CLOSE_MARKS.goodbye, this.beat.close());
    this.deadlines.close();
    this.#loopMonitor.stop();
    this.closed();
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
