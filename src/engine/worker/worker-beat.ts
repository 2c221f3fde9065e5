import type { Json } from "../../core/schema.ts";
import { BATCH_LIMIT, type BeatAnswer, type BeatRequest } from "../../ports/store.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { commitUnits, STALE_TRIES } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { announceHeartbeat } from "../events/heartbeat.ts";
import { workerEvent } from "../events/recording-rules.ts";
import { BeatPace, BUSY_EVERY } from "./beat-pace.ts";
import type { Prefetched } from "./queue-consumer.ts";
import { WORKERS } from "./worker-record.ts";

interface BeatDeps {
  readonly id: string;
  readonly queues: readonly string[];
  /** The fields of the worker's record that only the worker knows. */
  report(): { readonly [name: string]: Json };
  attempts(): Iterable<Attempt>;
  isFresh(since: number): boolean;
  heard(attempt: Attempt, answer: BeatAnswer): void;
}

/** Others count a worker as dead after 15 s of silence. */
const IDLE_EVERY = 10_000;
/** The sweep deletes the record of a worker after this long without a beat. */
const FORGOTTEN_AFTER = 60_000;

/**
 * Sends the beats of a worker. One record per worker says that its event loop runs, which is enough for most jobs. For
 * jobs whose handlers beat, the request has their new `stallAt`. The answers say which jobs the worker lost or must reload.
 */
export class WorkerBeat {
  readonly pace: BeatPace;
  readonly #context: EngineContext;
  readonly #host: BeatDeps;

  constructor(context: EngineContext, host: BeatDeps) {
    this.#context = context;
    this.#host = host;
    const { system, logger, storeFailed } = context;
    const onError = (error: unknown) => storeFailed(error, "beat");
    this.pace = new BeatPace({ system, logger, round: () => this.#round(), onError });
  }

  async #round(): Promise<number> {
    this.pace.began(this.#context.clock.elapsed());
    const attempts = [...this.#host.attempts()].filter((attempt) => !attempt.isOver);
    for (let from = 0; from === 0 || from < attempts.length; from += BATCH_LIMIT) {
      await this.#beat(attempts.slice(from, from + BATCH_LIMIT));
    }
    return this.#rest();
  }

  async #beat(attempts: readonly Attempt[]): Promise<void> {
    const { recorder, clock } = this.#context;
    const sent = attempts.map((attempt): BeatRequest["jobs"][number] => {
      const { row } = attempt;
      // Until the start is committed, `stallAt` is the lease of the claim. A long heartbeat must not extend it.
      const unsentStallAt = attempt.mark.isWritten ? attempt.unsentStallAt : undefined;
      const { id, fence, rev } = row;
      if (unsentStallAt === undefined) return { id, fence, rev };
      attempt.unsentStallAt = undefined;
      const records = recorder.heartbeat(row, unsentStallAt, clock.now());
      return { id, fence, rev, stallAt: unsentStallAt, ...(records && { records }) };
    });
    const answers = await this.#context.store.jobs.beat(this.#request(sent));
    for (const [index, attempt] of attempts.entries()) {
      const answer = answers[index] as BeatAnswer;
      // Our own start mark was committed during the beat: the row changed, but not by another process.
      const isOwnMark = answer === "changed" && attempt.row.rev !== sent[index]?.rev;
      const stallAt = sent[index]?.stallAt;
      if (stallAt !== undefined && (answer === "ok" || answer === "changed"))
        announceHeartbeat(this.#context, attempt.row, stallAt);
      if (!isOwnMark) this.#host.heard(attempt, answer);
    }
  }

  #request(jobs: BeatRequest["jobs"]): BeatRequest {
    const now = this.#context.clock.now();
    const body = {
      seenAt: now,
      queues: [...this.#host.queues],
      running: jobs.length,
      ...this.#host.report(),
    };
    return { now, worker: { id: this.#host.id, body, wakeAt: now + FORGOTTEN_AFTER }, jobs };
  }

  /**
   * Returns those of these jobs whose claims still hold. Only they may be entered. Rows that others changed are read, and
   * asked about again: reading takes time, in which the claim may be lost and the answer gets old.
   */
  async confirm(prefetched: readonly Prefetched[]): Promise<Prefetched[]> {
    const { clock, store } = this.#context;
    let held = [...prefetched];
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      const sentAt = clock.elapsed();
      const answers = await store.jobs.beat(
        this.#request(held.map(({ row: { id, fence, rev } }) => ({ id, fence, rev }))),
      );
      const confirmedAt = this.#host.isFresh(sentAt) ? clock.elapsed() : sentAt;
      const changed = held.filter((_, index) => answers[index] === "changed");
      held = held.filter((_, index) => answers[index] === "ok" || answers[index] === "changed");
      for (const entry of held) entry.confirmedAt = confirmedAt;
      if (changed.length === 0) return held;
      const rows = await store.jobs.load(changed.map(({ row }) => row.id));
      for (const [index, entry] of changed.entries()) {
        const row = rows[index];
        // Under another fence it is the job of another worker: the next answer says that it is lost.
        if (row?.fence === entry.row.fence) entry.row = row;
      }
    }
    throw new Error(`claimed jobs changed ${STALE_TRIES} times while their claims were confirmed`);
  }

  #rest(): number {
    for (const _attempt of this.#host.attempts()) return BUSY_EVERY;
    return IDLE_EVERY;
  }

  /** Stops and deletes the worker's record, so that no process waits for its next beat. */
  async close(): Promise<void> {
    await this.pace.stop();
    const { clock, storeFailed, recorder, bus } = this.#context;
    // Events of this worker must be recorded before its end.
    await recorder.flush();
    const at = clock.now();
    const end = { name: "worker.stopped", at, worker: this.#host.id, queues: this.#host.queues } as const;
    const records = recorder.kept(workerEvent(end));
    await commitUnits(this.#context, [{ effects: [WORKERS.remove(this.#host.id), ...records] }])
      .then(() => bus.emit(end))
      .catch((error) => storeFailed(error, "close"));
  }
}
