import type { Json } from "../../core/schema.ts";
import { BATCH_LIMIT, type BeatAnswer, type BeatRequest } from "../../ports/store.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { announceHeartbeat } from "../events/heartbeat.ts";
import { workerEvent } from "../events/recording-rules.ts";
import { Loop } from "../runtime/loop.ts";
import { BeatPace, BUSY_EVERY, IDLE_EVERY } from "./beat-pace.ts";
import type { Prefetched } from "./queue-consumer.ts";
import { WORKERS } from "./worker-record.ts";

/** What the beat needs of the worker it keeps alive. */
interface BeatHost {
  readonly id: string;
  readonly queues: readonly string[];
  /** What the worker says of itself, beside that it lives. */
  report(): { readonly [name: string]: Json };
  attempts(): Iterable<Attempt>;
  isFresh(since: number): boolean;
  heard(attempt: Attempt, answer: BeatAnswer): void;
}

/** A worker that has not beaten for this long is gone, and its record with it. */
const FORGOTTEN_AFTER = 60_000;

/**
 * The worker's sign of life. One record per worker says that its event loop runs, which is what most jobs need; jobs
 * whose handler beats for itself are named with their new `stallAt`. The answer tells what was taken away meanwhile.
 */
export class BeatLoop {
  readonly loop: Loop;
  readonly pace: BeatPace;
  readonly #parts: EngineContext;
  readonly #host: BeatHost;

  constructor(parts: EngineContext, host: BeatHost) {
    this.#parts = parts;
    this.#host = host;
    const { system, logger, storeFailed } = parts;
    this.loop = new Loop({
      name: "beat",
      keepAlive: true,
      system,
      logger,
      round: () => this.#round(),
      onError: (error) => storeFailed(error, "beat"),
    });
    this.pace = new BeatPace(system, this.loop);
  }

  async #round(): Promise<number> {
    this.pace.began(this.#parts.clock.elapsed());
    const attempts = [...this.#host.attempts()].filter((attempt) => !attempt.isOver);
    for (let from = 0; from === 0 || from < attempts.length; from += BATCH_LIMIT) {
      await this.#beat(attempts.slice(from, from + BATCH_LIMIT));
    }
    return this.#rest();
  }

  async #beat(attempts: readonly Attempt[]): Promise<void> {
    const { recorder, clock } = this.#parts;
    const sent = attempts.map((attempt): BeatRequest["jobs"][number] => {
      const { row } = attempt;
      // Before the start is marked the row holds the claim's lease, which a long heartbeat must not stretch.
      const unsentStallAt = attempt.mark.isWritten ? attempt.unsentStallAt : undefined;
      // Two revisions are fine while our own start mark is on its way: the one before it and the one after.
      const { id, fence, rev } = row;
      if (unsentStallAt === undefined) return { id, fence, rev };
      attempt.unsentStallAt = undefined;
      const records = recorder.heartbeat(row, unsentStallAt, clock.now());
      return { id, fence, rev, stallAt: unsentStallAt, ...(records && { records }) };
    });
    const answers = await this.#parts.store.jobs.beat(this.#request(sent));
    for (const [index, attempt] of attempts.entries()) {
      const answer = answers[index] as BeatAnswer;
      const isOwnMark = answer === "changed" && attempt.row.rev !== sent[index]?.rev;
      const stallAt = sent[index]?.stallAt;
      if (stallAt !== undefined && (answer === "ok" || answer === "changed"))
        announceHeartbeat(this.#parts, attempt.row, stallAt);
      if (!isOwnMark) this.#host.heard(attempt, answer);
    }
  }

  #request(jobs: BeatRequest["jobs"]): BeatRequest {
    const now = this.#parts.clock.now();
    const body = {
      seenAt: now,
      queues: [...this.#host.queues],
      running: jobs.length,
      ...this.#host.report(),
    };
    return { now, worker: { id: this.#host.id, body, wakeAt: now + FORGOTTEN_AFTER }, jobs };
  }

  /** Asks which of these claims still hold; only they may be entered. */
  async confirm(held: readonly Prefetched[]): Promise<Prefetched[]> {
    const jobs = held.map(({ row: { id, fence, rev } }) => ({ id, fence, rev }));
    const sentAt = this.#parts.clock.elapsed();
    const answers = await this.#parts.store.jobs.beat(this.#request(jobs));
    const confirmedAt = this.#host.isFresh(sentAt) ? this.#parts.clock.elapsed() : sentAt;
    const changed = held.filter((_, index) => answers[index] === "changed");
    const rows =
      changed.length === 0 ? [] : await this.#parts.store.jobs.load(changed.map(({ row }) => row.id));
    for (const [index, entry] of changed.entries()) entry.row = rows[index] ?? entry.row;
    return held
      .filter((_, index) => answers[index] === "ok" || answers[index] === "changed")
      .map((entry) => Object.assign(entry, { confirmedAt }));
  }

  #rest(): number {
    for (const _attempt of this.#host.attempts()) return BUSY_EVERY;
    return IDLE_EVERY;
  }

  /** The last word of a worker that closes: its record goes, so nobody waits for its next beat. */
  async close(): Promise<void> {
    await this.pace.stop();
    const { clock, storeFailed, recorder, bus } = this.#parts;
    // What was noted of it comes before its end.
    await recorder.flush();
    const at = clock.now();
    const end = { name: "worker.stopped", at, worker: this.#host.id, queues: this.#host.queues } as const;
    const told = recorder.kept(workerEvent(end));
    await commitUnits(this.#parts, [{ effects: [WORKERS.remove(this.#host.id), ...told] }])
      .then(() => bus.emit(end))
      .catch((error) => storeFailed(error, "close"));
  }
}
