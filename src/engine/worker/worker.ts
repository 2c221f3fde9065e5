import { CLAIM_LEASE, isRated } from "../../core/job/deadlines.ts";
import { decide } from "../../core/job/decide.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import { jittered } from "../../core/pace.ts";
import type { Json } from "../../core/schema.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { BeatAnswer } from "../../ports/store.ts";
import { rest, type Timer } from "../../ports/system.ts";
import { Attempt, type AttemptHost } from "../attempt/attempt.ts";
import { AttemptWrite } from "../attempt/attempt-write.ts";
import type { Processor } from "../attempt/processor.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import { type Decided, unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { PolicyCache } from "./policy-cache.ts";
import { type ConsumerDeps, type Prefetched, QueueConsumer } from "./queue-consumer.ts";
import { warnOfHolds } from "./warn-of-holds.ts";
import type { WorkOptions } from "./work-options.ts";
import { BeatLoop } from "./worker-beat.ts";
import { WorkerReporter } from "./worker-report.ts";
import { WorkerShell } from "./worker-shell.ts";

const UNFLUSHED_ROOM = 600;
const MARK_AFTER = 400;
const SHORT_LEASE = 2_000;
const REFUSED_DELAY = 500;
const TOO_CLOSE_WAIT = 2;
/** A crash between a committed start and the entry of its handler is found at most this much later. */
const LONGEST_START = 5_000;
const TOO_CLOSE = { ok: false, because: "too_close" } as const;

/** Claims jobs, runs their handlers, and makes sure that each attempt gets its one verdict on time. */
export class Worker
  extends WorkerShell<Attempt, QueueConsumer, EngineContext>
  implements AttemptHost, ConsumerDeps
{
  readonly writer: CommitQueue;
  protected override readonly beat: BeatLoop;
  readonly #policies: PolicyCache;
  readonly #reporter: WorkerReporter;
  readonly #onClosed: (worker: Worker) => void;
  /** What the last commit of a start took: the limits of the next one count from when its handler will be entered. */
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
    this.beat = new BeatLoop(parts, this);
  }

  override start(): this {
    super.start();
    this.#tell("worker.started");
    return this;
  }

  #tell(name: "worker.started" | "worker.quiet"): void {
    const { bus, clock } = this.parts;
    if (bus.wants(name)) bus.emit({ name, at: clock.now(), worker: this.id, queues: this.queues });
  }

  protected override get outgoing(): CommitQueue {
    return this.writer;
  }

  protected override failureOf({ queue }: QueueConsumer): string {
    return `claims from queue ${queue} are failing`;
  }

  /** What it says of itself with each beat. */
  report(): { readonly [name: string]: Json } {
    return this.#reporter.body();
  }

  get room(): number {
    return this.concurrency + UNFLUSHED_ROOM - this.running.size - this.prefetchedCount - this.writer.backlog;
  }

  /** A queue has something to claim. */
  notify(queue: string): void {
    this.consumers.get(queue)?.notify();
  }

  /** Somebody changed this job or voided its fence: ask the store at once what became of it. */
  suspect(id: JobId): void {
    for (const attempt of this.attempts()) {
      if (attempt.row.id !== id) continue;
      this.beat.loop.wake();
      return;
    }
  }

  enter(consumer: QueueConsumer, held: Prefetched): void {
    const { clock, random } = this.parts;
    const { row } = held;
    const processor = this.processors.get(row.type);
    const refusal = processor && this.sandboxes.refusal(processor);
    if (!processor || refusal) {
      if (refusal) this.release(row, refusal.delay);
      else this.releaseUnknown(row);
      this.free(consumer);
      return;
    }
    const policy = row.policy ?? this.#policies.of(processor, row);
    const isMarked = row.expiredClaims > 0 || isRated(row) || this.#expiresBeforeMark(row);
    // A start that is committed first counts from the entry that is expected.
    const delay = isMarked ? this.#startTakes : 0;
    const event: JobEvent = {
      type: "start",
      policy,
      upper: clock.upper(),
      anchor: clock.anchor() + delay,
    };
    const now = clock.now();
    // A start that is written down too early would be timed out too early, and its rate would forget it too early.
    const decision = clock.isBehind() ? TOO_CLOSE : decide(row, event, now, random);
    if (!decision.ok) this.#notEntered(consumer, held, decision.because);
    else if (decision.image.state !== "active") {
      this.#write(row, event, decision, now);
      this.free(consumer);
    } else if (isMarked) this.#enterMarked(consumer, processor, row, decision, now);
    else this.#run(consumer, new Attempt(this, processor, row, decision), row.waitAt);
  }

  /** Far from the store, the sweep could take a job whose handler runs for one that waited too long. */
  #expiresBeforeMark({ waitAt }: JobRow): boolean {
    const { clock } = this.parts;
    return waitAt !== null && clock.isWide && waitAt - clock.now() < SHORT_LEASE;
  }

  #run(consumer: QueueConsumer, attempt: Attempt, waitAt: Instant | null): void {
    this.running.set(attempt, consumer);
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
      this.#awaitAtClose(
        rest(this.parts.system, TOO_CLOSE_WAIT).then(() => {
          if (!this.isClosing) return consumer.putBack(held);
          this.giveBack([held]);
          this.free(consumer);
        }),
      );
      return;
    }
    // The lease may be over, or nearly: giving the job back spares it the wait for the sweep. A process that is unsure of
    // the time would claim and refuse it again at once, so others go first.
    this.release(held.row, Math.round(jittered(REFUSED_DELAY, this.parts.random)));
    this.free(consumer);
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
          this.free(consumer);
          return;
        }
        this.#enterAfterMark(consumer, new Attempt(this, processor, row, decision), sentAt);
      },
    });
  }

  /** The commit took its time: the attempt counts from its entry, or is given back unspent if it can no longer be entered. */
  #enterAfterMark(consumer: QueueConsumer, attempt: Attempt, sentAt: number): void {
    this.#startTakes = Math.min(Math.ceil(this.parts.clock.elapsed() - sentAt), LONGEST_START);
    attempt.mark.written();
    this.running.set(attempt, consumer);
    const isEntered = !this.isClosing && this.isFresh(sentAt) && attempt.startAnew();
    if (isEntered) attempt.run();
    else attempt.giveBackUnentered();
  }

  /** Gives back a claim that was not entered, at once or to be claimed again after a delay. */
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

  giveBack(held: readonly Pick<Prefetched, "row">[]): void {
    for (const { row } of held) this.release(row);
  }

  confirm(consumer: QueueConsumer, held: readonly Prefetched[]): void {
    const asked = this.beat.confirm(held).then(
      (valid) => consumer.confirmed(held.length, valid),
      // The claims are not confirmed, so these jobs must not start here. Release them.
      (error) => {
        this.parts.storeFailed(error, "beat");
        this.giveBack(held);
        consumer.confirmed(held.length, []);
      },
    );
    this.#awaitAtClose(asked);
  }

  /** close() waits for this before the last jobs are given back. */
  #awaitAtClose(work: Promise<void>): void {
    this.unanswered.add(work);
    void work.finally(() => this.unanswered.delete(work));
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

  beaten(attempt: Attempt): void {
    this.beat.pace.hurry(attempt.row.heartbeat);
  }

  protected override blocked(gap: number): void {
    this.#reporter.blocked(this.parts.clock.now(), gap);
    this.parts.clock.sample().catch((error) => this.parts.storeFailed(error, "clock"));
    super.blocked(gap);
  }

  /** Tells the store that attempts have started, so that a crash spends them; short ones never need it. */
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
    this.#tell("worker.quiet");
  }

  protected override closed(): void {
    this.#markTimer?.cancel();
    this.#onClosed(this);
  }
}
