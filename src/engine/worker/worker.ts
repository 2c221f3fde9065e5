import { CLAIM_LEASE } from "../../core/job/deadlines.ts";
import { decide } from "../../core/job/decide.ts";
import type { JobId, JobRow, Policy } from "../../core/job/job.ts";
import type { JobEvent } from "../../core/job/job-events.ts";
import { resolvePolicy } from "../../core/job/policy.ts";
import { writtenRow } from "../../core/job/written-row.ts";
import { jittered } from "../../core/pace.ts";
import { earlier, type Instant } from "../../core/time.ts";
import type { BeatAnswer } from "../../ports/store.ts";
import type { Timer } from "../../ports/system.ts";
import { Attempt, type AttemptHost } from "../attempt/attempt.ts";
import { VerdictWrite } from "../attempt/attempt-write.ts";
import type { Processor } from "../attempt/processor.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import { type Decided, holdersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { type ConsumerDeps, type Prefetched, QueueConsumer } from "./queue-consumer.ts";
import { warnOfHolds } from "./warn-of-holds.ts";
import type { WorkOptions } from "./work-options.ts";
import { BeatLoop } from "./worker-beat.ts";
import { WorkerShell } from "./worker-shell.ts";

const UNFLUSHED_ROOM = 600;
const MARK_AFTER = 400;
const SHORT_LEASE = 2_000;
const REFUSED_DELAY = 500;
const TOO_CLOSE = { ok: false, because: "too_close" } as const;

/** Claims jobs, runs their handlers, and makes sure that each attempt gets its one verdict on time. */
export class Worker
  extends WorkerShell<Attempt, QueueConsumer, EngineContext>
  implements AttemptHost, ConsumerDeps
{
  readonly writer: CommitQueue;
  protected override readonly beat: BeatLoop;
  readonly #policies = new Map<Processor, Map<string, Policy>>();
  readonly #onClosed: (worker: Worker) => void;
  #policyEpoch = -1;
  #markTimer: Timer | undefined;

  constructor(parts: EngineContext, options: WorkOptions, onClosed: (worker: Worker) => void) {
    super({ id: parts.nextId(), parts, clock: parts.clock }, options);
    for (const [queue, concurrency] of this.slots)
      this.consumers.set(queue, new QueueConsumer(this, queue, concurrency));
    this.#onClosed = onClosed;
    for (const { definition } of this.processors.values()) warnOfHolds(parts, definition);
    this.writer = new CommitQueue(parts, () => this.pumpAll());
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
    const policy = row.policy ?? this.#policyOf(processor, row);
    const event: JobEvent = { type: "start", policy, upper: clock.upper() };
    const isRated = row.limitKey !== null && row.options?.limit?.rate !== undefined;
    const now = clock.now();
    // A start that is written down too early would be forgotten too early, and too many would follow it.
    const decision = isRated && clock.isBehind() ? TOO_CLOSE : decide(row, event, now, random);
    if (!decision.ok) this.#notEntered(consumer, held, decision.because);
    else if (decision.image.state !== "active") {
      this.#write(row, event, decision, now);
      this.free(consumer);
    } else if (row.expiredClaims > 0 || isRated) this.#enterMarked(consumer, processor, row, decision);
    else this.#run(consumer, new Attempt(this, processor, row, decision), row.waitAt);
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

  #policyOf(processor: Processor, row: JobRow): Policy {
    const { queues, settings: engine } = this.parts;
    const definition = processor.definition.settings;
    const enqueue = row.options?.settings;
    const queue = queues.policyOf(row.queue);
    if (enqueue) return resolvePolicy({ enqueue, definition, queue, engine });
    if (this.#policyEpoch !== queues.epoch) {
      this.#policies.clear();
      this.#policyEpoch = queues.epoch;
    }
    const byQueue = this.#policies.get(processor) ?? new Map<string, Policy>();
    const policy = byQueue.get(row.queue) ?? resolvePolicy({ definition, queue, engine });
    this.#policies.set(processor, byQueue.set(row.queue, policy));
    return policy;
  }

  #notEntered(consumer: QueueConsumer, held: Prefetched, because: string): void {
    if (because === "too_close") {
      // The slot stays taken for the moment in which it cannot be told whether the deadline has passed.
      this.parts.system.after(2, () => {
        if (!this.isClosing) return this.enter(consumer, held);
        this.giveBack([held]);
        this.free(consumer);
      });
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
  #enterMarked(consumer: QueueConsumer, processor: Processor, row: JobRow, decision: Decided): void {
    let sentAt = 0;
    this.writer.push({
      id: row.id,
      unit: () => {
        sentAt = this.parts.clock.elapsed();
        const { recorder } = this.parts;
        if (!recorder.isOn) return holdersUnit(row, decision);
        const started = writtenRow(row, decision, row.rev);
        return holdersUnit(
          row,
          decision,
          undefined,
          recorder.recorded(started, decision, started.startedAt ?? 0),
        );
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
    const { parts, writer } = this;
    writer.push(new VerdictWrite({ parts, writer, row, event, decision, at }));
  }

  giveBack(held: readonly Pick<Prefetched, "row">[]): void {
    for (const { row } of held) this.release(row);
  }

  confirm(consumer: QueueConsumer, held: readonly Prefetched[]): void {
    const asked = this.beat.confirm(held).then(
      (valid) => consumer.confirmed(held.length, valid),
      // Without an answer nothing may be entered, so the jobs go back to whoever can.
      (error) => {
        this.parts.storeFailed(error, "beat");
        this.giveBack(held);
        consumer.confirmed(held.length, []);
      },
    );
    this.unanswered.add(asked);
    void asked.finally(() => this.unanswered.delete(asked));
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
