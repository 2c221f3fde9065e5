import { decide } from "../../core/job/decide/decide.ts";
import type { JobEvent } from "../../core/job/decide/job-events.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { CLAIM_LEASE, startsCommitted } from "../../core/job/policy/deadlines.ts";
import { jittered } from "../../core/pace.ts";
import type { Random } from "../../core/random.ts";
import type { Json } from "../../core/schema.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { BeatAnswer } from "../../ports/store.ts";
import { rest, type Timer } from "../../ports/system.ts";
import { Attempt, type AttemptDeps } from "../attempt/attempt.ts";
import { AttemptWrite } from "../attempt/attempt-writes.ts";
import type { Processor } from "../attempt/processor.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import { type Decided, unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import type { Moment } from "../runtime/engine-clock.ts";
import { PolicyCache } from "./policy-cache.ts";
import { type ConsumerDeps, type Prefetched, QueueConsumer } from "./queue-consumer.ts";
import { warnOfHolds } from "./warn-of-holds.ts";
import type { WorkOptions } from "./work-options.ts";
import { WorkerBeat } from "./worker-beat.ts";
import { WorkerReporter } from "./worker-reporter.ts";
import { UNKNOWN_TYPE_DELAY, WorkerShell } from "./worker-shell.ts";

const UNFLUSHED_ROOM = 1_200;
const MARK_AFTER = 400;
const SHORT_LEASE = 2_000;
/** Ways to the store and back of a verdict that outsiders overtake twice: each time a commit before it, its own, a load. */
const TRIPS_OF_A_VERDICT = 6;
const REFUSED_DELAY = 500;
const TOO_CLOSE_WAIT = 2;
/**
 * A start that is committed before its handler is entered counts its deadlines from the expected entry, at most this much
 * later. If the process crashes before the entry, the sweep finds the job that much later.
 */
const LONGEST_START = 5_000;
const TOO_CLOSE = { ok: false, because: "too_close" } as const;

/** Claims jobs from the store, runs their handlers, and gives each attempt its one verdict on time. */
export class Worker
  extends WorkerShell<Attempt, QueueConsumer, EngineContext>
  implements AttemptDeps, ConsumerDeps
{
  readonly writer: CommitQueue;
  protected override readonly beat: WorkerBeat;
  readonly #policies: PolicyCache;
  readonly #reporter: WorkerReporter;
  readonly #onClosed: (worker: Worker) => void;
  /**
   * How long the last start took that was committed first, with its wait for the commit before it. The next one counts its
   * limits from the expected entry of its handler.
   */
  #startTakes = 0;
  #markTimer: Timer | undefined;

  constructor(parts: EngineContext, options: WorkOptions, onClosed: (worker: Worker) => void) {
    super({ id: parts.nextId(), parts, clock: parts.clock }, options);
    for (const [queue, concurrency] of this.slots)
      this.consumers.set(queue, new QueueConsumer(this, queue, concurrency));
    this.#onClosed = onClosed;
    for (const { definition } of this.processors.values()) warnOfHolds(parts, definition);
    this.#policies = new PolicyCache(parts);
    this.#reporter = new WorkerReporter(this, this.stuckHandlers);
    this.writer = new CommitQueue(parts, { onCommitted: () => this.pumpAll() });
    this.beat = new WorkerBeat(parts, this);
  }

  override start(): this {
    super.start();
    this.#announce("worker.started");
    return this;
  }

  #announce(name: "worker.started" | "worker.quiet"): void {
    const { bus, clock } = this.parts;
    if (bus.wants(name)) bus.emit({ name, at: clock.now(), worker: this.id, queues: this.queues });
  }

  protected override get outgoing(): CommitQueue {
    return this.writer;
  }

  protected override failureOf({ queue }: QueueConsumer): string {
    return `claims from queue ${queue} are failing`;
  }

  report(): { readonly [name: string]: Json } {
    return this.#reporter.body();
  }

  get room(): number {
    return this.concurrency + UNFLUSHED_ROOM - this.running.size - this.prefetchedCount - this.writer.backlog;
  }

  get isCommitting(): boolean {
    return this.writer.backlog > 0;
  }

  /** For workers with a limited time. */
  dried(): void {}

  /** Queues whose last claim found too few jobs. */
  get dryQueues(): string[] {
    return [...this.consumers.values()].filter(({ isDry }) => isDry).map(({ queue }) => queue);
  }

  /** The queue has jobs to claim. */
  notify(queue: string): void {
    this.consumers.get(queue)?.notify();
  }

  /** Another process changed this job or its fence. If it runs here, a beat asks the store for its state at once. */
  suspect(id: JobId): void {
    for (const attempt of this.attempts()) {
      if (attempt.row.id !== id) continue;
      this.beat.pace.loop.wake();
      return;
    }
  }

  enter(consumer: QueueConsumer, prefetched: Prefetched, moment: Moment): void {
    const { row } = prefetched;
    const { now } = moment;
    const processor = this.processorOf(row);
    const refusal = processor && this.sandboxes.refusal(processor);
    if (!processor || refusal) {
      if (refusal) this.release(row, refusal.delay);
      else this.releaseUnknown(row);
      this.free(consumer);
      return;
    }
    const policy = row.policy ?? this.#policies.of(processor, row);
    const isMarked = startsCommitted(row, policy) || this.#expiresBeforeMark(row);
    // A start that is committed first counts from the entry that is expected.
    const delay = isMarked ? this.#startTakes : 0;
    const event: JobEvent = {
      type: "start",
      policy,
      upper: moment.upper,
      anchor: moment.anchor + delay,
    };
    // A start that is dated too early would time out too early, and its rate limit would forget it too early.
    const decision = moment.isBehind ? TOO_CLOSE : decide(row, event, now, this.parts.random);
    if (!decision.ok) this.#notEntered(consumer, prefetched, decision.because);
    else if (decision.image.state !== "active") {
      this.#write(row, event, decision, now);
      this.free(consumer);
    } else if (isMarked) this.#enterMarked(consumer, processor, row, decision, now);
    else this.#run(consumer, new Attempt(this, processor, row, decision, moment.elapsed), row.waitAt);
  }

  /**
   * Handlers and middleware cannot cause this: what they throw fails their attempt. The job is released and comes back
   * after a delay, so that it neither holds its slot nor stops its queue.
   */
  entryThrew(consumer: QueueConsumer, { row }: Prefetched, error: unknown): void {
    this.parts.logger.error({ job: row.id, error }, "a job could not be entered; it was released");
    const entered = [...this.attempts()].find((one) => one.row.id === row.id && one.row.fence === row.fence);
    if (entered) entered.giveBackUnentered();
    else {
      this.release(row, Math.round(jittered(UNKNOWN_TYPE_DELAY, this.parts.random)));
      this.free(consumer);
    }
  }

  /**
   * Whether `wait` may end before a mark or a verdict is stored. The sweep would then discard a job whose handler was
   * entered. The farther away the store is, the longer it takes until a write that was refused is decided again.
   */
  #expiresBeforeMark({ waitAt }: JobRow): boolean {
    const { clock } = this.parts;
    if (waitAt === null || !clock.isWide) return false;
    const now = clock.now();
    return waitAt - now < SHORT_LEASE + TRIPS_OF_A_VERDICT * (clock.upper() - now);
  }

  #run(consumer: QueueConsumer, attempt: Attempt, waitAt: Instant | null): void {
    this.running.set(attempt, consumer);
    this.#markTimer ??= this.parts.system.after(MARK_AFTER, () => this.#markRunning());
    // Commit the start before the lease of the claim, `wait` or `total` runs out: the sweep would end the job otherwise.
    const { totalAt, startedAt } = attempt.row;
    const endsAt = earlier(waitAt, totalAt) ?? Number.POSITIVE_INFINITY;
    const isShort =
      (attempt.policy.heartbeat ?? CLAIM_LEASE) < SHORT_LEASE || endsAt - (startedAt ?? 0) < SHORT_LEASE;
    if (isShort) attempt.mark.write();
    attempt.run();
  }

  #notEntered(consumer: QueueConsumer, prefetched: Prefetched, because: string): void {
    if (because === "too_close") {
      // The clock cannot say yet whether the deadline has passed. The job keeps its slot until the next try.
      this.#awaitAtClose(
        rest(this.parts.system, TOO_CLOSE_WAIT).then(() => {
          if (!this.isClosing) return consumer.putBack(prefetched);
          this.giveBack([prefetched]);
          this.free(consumer);
        }),
      );
      return;
    }
    // The lease is over, or nearly. Release the job now, so that it does not wait for the sweep. The delay lets other
    // workers claim it first: this one may be unsure of the time and would refuse it again.
    this.release(prefetched.row, Math.round(jittered(REFUSED_DELAY, this.parts.random)));
    this.free(consumer);
  }

  /**
   * Commits the start before the handler is entered: see `startsCommitted` (SEMANTICS 4.3).
   */
  #enterMarked(
    consumer: QueueConsumer,
    processor: Processor,
    row: JobRow,
    decision: Decided,
    at: Instant,
  ): void {
    const { clock } = this.parts;
    const enteredAt = clock.elapsed();
    let sentAt = 0;
    this.writer.push({
      id: row.id,
      unit: () => {
        sentAt = clock.elapsed();
        return unitOf(this.parts, { row, decision, at, by: "holder" });
      },
      done: (outcome) => {
        if (!outcome.ok) {
          // An outsider changed the row, but the claim still holds: release it, so that it need not run out.
          if (outcome.because === "stale") this.giveBack([{ row }]);
          else this.parts.counters.add("lost");
          this.free(consumer);
          return;
        }
        const now = clock.elapsed();
        this.#startTakes = Math.min(Math.ceil(now - enteredAt), LONGEST_START);
        this.#enterAfterMark(consumer, new Attempt(this, processor, row, decision, now), sentAt);
      },
    });
  }

  /** Enters the handler, and counts the attempt from now. Releases the job unspent if its time is up meanwhile. */
  #enterAfterMark(consumer: QueueConsumer, attempt: Attempt, sentAt: number): void {
    attempt.mark.written();
    this.running.set(attempt, consumer);
    const isEntered = !this.isClosing && this.isFresh(sentAt) && attempt.startAnew();
    if (isEntered) attempt.run();
    else attempt.giveBackUnentered();
  }

  protected override release(row: JobRow, delay?: number): void {
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

  giveBack(jobs: readonly Pick<Prefetched, "row">[]): void {
    for (const { row } of jobs) this.release(row);
  }

  confirm(consumer: QueueConsumer, jobs: readonly Prefetched[]): void {
    const confirming = this.beat.confirm(jobs).then(
      (valid) => consumer.confirmed(jobs, valid),
      // The claims are not confirmed, so these jobs must not start here. Release them.
      (error) => {
        this.parts.storeFailed(error, "beat");
        if (!this.isClosing) this.giveBack(jobs);
        consumer.confirmed(jobs, []);
      },
    );
    this.#awaitAtClose(confirming);
  }

  /** close() waits for this before the last jobs are given back. */
  #awaitAtClose(work: Promise<void>): void {
    this.unanswered.add(work);
    void work.finally(() => this.unanswered.delete(work));
  }

  /** The store's answer to a beat about this attempt. */
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

  beaten(attempt: Attempt): void {
    this.beat.pace.hurry(attempt.row.heartbeat);
  }

  protected override blocked(gap: number): void {
    this.#reporter.blocked(this.parts.clock.now(), gap);
    this.parts.clock.sample().catch((error) => this.parts.storeFailed(error, "clock"));
    super.blocked(gap);
  }

  /** Commits the starts of attempts that run for longer than `MARK_AFTER`, so that a crash spends them. */
  #markRunning(): void {
    this.#markTimer = undefined;
    for (const attempt of this.attempts()) attempt.mark.write();
    if (this.running.size > 0)
      this.#markTimer = this.parts.system.after(MARK_AFTER, () => this.#markRunning());
  }

  protected override giveBackPrefetched(consumer: QueueConsumer): void {
    this.giveBack(consumer.takePrefetched());
  }

  protected override closing(): void {
    this.#announce("worker.quiet");
  }

  protected override closed(): void {
    this.#markTimer?.cancel();
    this.#onClosed(this);
  }
}

/** Starts with a random worker: a worker without the processor must not get the jobs first each time. */
export function notifyWorkers(workers: readonly Worker[], queue: string, random: Random): void {
  const first = Math.floor(random() * workers.length);
  for (let offset = 0; offset < workers.length; offset++)
    workers[(first + offset) % workers.length]?.notify(queue);
}
