import { decide } from "../../core/job/decide.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { Enqueued } from "../../ports/store.ts";
import { commitJobs, STALE_TRIES } from "../commit/commit.ts";
import type { DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { QueueFullError } from "./queue-full-error.ts";

const PAGE = 200;
const WAITING = ["available", "pending", "scheduled", "retryable"] as const;

/** What becomes of jobs for which their queue has no room, and the word that a queue is nearly full. */
export class Backpressure {
  readonly #parts: EngineContext;
  readonly #pressed = new Set<string>();

  constructor(parts: EngineContext) {
    this.#parts = parts;
  }

  /** The bounds that these jobs have to do with; undefined for jobs of unbounded queues, which cost nothing more. */
  boundsOf(jobs: readonly NewJob[]): ReadonlyMap<string, number> | undefined {
    const { bounds } = this.#parts.queues;
    return bounds && jobs.some(({ queue }) => bounds.has(queue)) ? bounds : undefined;
  }

  /** Warns once when a queue comes to its threshold, and says when it is below again. */
  tally(queue: string, waiting: number): void {
    const { queues, bus, clock } = this.#parts;
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
   * Answers for jobs of which some found their queue full: room is made for those whose queue drops the oldest, and
   * `store` is asked again. What is still refused then is an error that names it.
   */
  async settle(
    jobs: readonly NewJob[],
    answers: readonly Enqueued[],
    store: (jobs: readonly NewJob[]) => Promise<Enqueued[]>,
  ): Promise<Enqueued[]> {
    const settled = [...answers];
    // Other processes may take the room that was made.
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      const full = jobs.flatMap((job, index) => (settled[index] === "full" ? [{ job, index }] : []));
      const yielding = full.filter(
        ({ job }) => this.#parts.queues.depthOf(job.queue)?.onFull === "drop-oldest",
      );
      if (yielding.length === 0) break;
      await this.#makeRoom(yielding.map(({ job }) => job));
      const again = await store(yielding.map(({ job }) => job));
      for (const [nth, { index }] of yielding.entries()) settled[index] = again[nth] as Enqueued;
    }
    this.#refuseFull(jobs, settled);
    return settled;
  }

  #refuseFull(jobs: readonly NewJob[], answers: readonly Enqueued[]): void {
    const refused = jobs.filter((_, index) => answers[index] === "full");
    const first = refused[0];
    if (!first) return;
    const { queues, bus, clock } = this.#parts;
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

  /** Discards the oldest jobs, without another try: a job that changed meanwhile was taken, which makes room too. */
  async #dropOldest(queue: string, count: number): Promise<void> {
    const { store, clock, random } = this.#parts;
    const at = clock.now();
    const pages = await Promise.all(
      WAITING.map((state) => store.inspect.jobs({ queue, state }, null, count)),
    );
    const oldest = pages.flat().sort((a, b) => (a.id < b.id ? -1 : 1));
    const message = `Dropped: the queue "${queue}" was full, and this job had waited longest`;
    const decided: DecidedJob[] = [];
    for (const row of oldest) {
      const decision = decide(row, { type: "drop", message }, at, random);
      if (decision.ok && decided.length < count) decided.push({ row, decision, at, by: "outsider" });
    }
    await commitJobs(this.#parts, decided);
  }
}
