import { decide } from "../../core/job/decide/decide.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { Enqueued } from "../../ports/store.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { firstJobs } from "../find/find-jobs.ts";
import { QueueFullError } from "./queue-full-error.ts";

const PAGE = 200;
const WAITING = ["available", "pending", "scheduled", "retryable"] as const;

/** Resolves jobs whose queue is full, and warns about queues that are nearly full. */
export class Backpressure {
  readonly #context: EngineContext;
  readonly #pressed = new Set<string>();

  constructor(context: EngineContext) {
    this.#context = context;
  }

  /** The bounds of these jobs' queues; undefined if none of the queues is bounded. */
  boundsOf(jobs: readonly NewJob[]): ReadonlyMap<string, number> | undefined {
    const { bounds } = this.#context.queues;
    return bounds && jobs.some(({ queue }) => bounds.has(queue)) ? bounds : undefined;
  }

  /** Warns once when a queue reaches its threshold, and announces relief when it is below again. */
  tally(queue: string, waiting: number): void {
    const { queues, bus, clock } = this.#context;
    const depth = queues.depthOf(queue);
    if (depth) queues.noteWaiting(queue, waiting);
    if (!depth || depth.warnAt === undefined) return;
    const isPressed = waiting >= depth.warnAt;
    if (isPressed === this.#pressed.has(queue)) return;
    if (isPressed) this.#pressed.add(queue);
    else this.#pressed.delete(queue);
    const name = isPressed ? "queue.pressure" : "queue.relieved";
    bus.emit({ name, at: clock.now(), queue, waiting, most: depth.most });
  }

  /**
   * Resolves refused jobs of full queues: drops the oldest jobs where the queue is set to, and calls `store` again.
   * Jobs that are still refused reject with a QueueFullError.
   */
  async resolveFull(
    jobs: readonly NewJob[],
    answers: readonly Enqueued[],
    store: (jobs: readonly NewJob[]) => Promise<Enqueued[]>,
  ): Promise<Enqueued[]> {
    const resolved = [...answers];
    // Another process may fill the freed room first.
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      const full = jobs.flatMap((job, index) => (resolved[index] === "full" ? [{ job, index }] : []));
      const dropping = full.filter(
        ({ job }) => this.#context.queues.depthOf(job.queue)?.onFull === "drop-oldest",
      );
      if (dropping.length === 0) break;
      await this.#makeRoom(dropping.map(({ job }) => job));
      const again = await store(dropping.map(({ job }) => job));
      for (const [nth, { index }] of dropping.entries()) resolved[index] = again[nth] as Enqueued;
    }
    this.#refuseFull(jobs, resolved);
    return resolved;
  }

  #refuseFull(jobs: readonly NewJob[], answers: readonly Enqueued[]): void {
    const refused = jobs.filter((_, index) => answers[index] === "full");
    const first = refused[0];
    if (!first) return;
    const { queues, bus, clock } = this.#context;
    const most = queues.depthOf(first.queue)?.most ?? 0;
    bus.emit({ name: "queue.full", at: clock.now(), queue: first.queue, waiting: most, most });
    throw new QueueFullError(
      first.queue,
      most,
      refused.map(({ id }) => id),
    );
  }

  async #makeRoom(jobs: readonly NewJob[]): Promise<void> {
    const wanted = new Map<string, number>();
    for (const { queue } of jobs) wanted.set(queue, (wanted.get(queue) ?? 0) + 1);
    for (const [queue, count] of wanted) await this.#dropOldest(queue, Math.min(count, PAGE));
  }

  /** Discards the oldest jobs without a retry: a job that changed was claimed, which frees its room too. */
  async #dropOldest(queue: string, count: number): Promise<void> {
    const { store, clock, random } = this.#context;
    const at = clock.now();
    const pages = await Promise.all(WAITING.map((state) => firstJobs(store, { queue, state }, null, count)));
    const oldest = pages.flat().sort((a, b) => (a.id < b.id ? -1 : 1));
    const message = `Dropped: queue "${queue}" was full, and this job was its oldest`;
    const decided: DecidedJob[] = [];
    for (const row of oldest) {
      const decision = decide(row, { type: "drop", message }, at, random);
      if (decision.ok && decided.length < count) decided.push({ row, decision, at, by: "outsider" });
    }
    await commitJobs(this.#context, decided);
  }
}
