import { beatenUntil, type Directive, directiveFor, type Sender } from "../../core/job/decide/holder.ts";
import { briefRow } from "../../core/job/documents/brief-row.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { BeatAnswer } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { announceHeartbeat } from "../events/heartbeat.ts";
import { loadBrief, loadInParts } from "../find/bounded-reader.ts";
import { remoteName } from "../worker/worker-record.ts";
import { type RemoteWorker, RemoteWorkers } from "./remote-workers.ts";
import type { RowCache } from "./row-cache.ts";

/** The sweep deletes the record of a worker after this long without a beat. */
const FORGOTTEN_AFTER = 60_000;

export interface JobBeat {
  readonly id: JobId;
  readonly sender: Sender;
  /** The worker only asks for the directive: the handler gave no beat, so `stallAt` stays. */
  readonly isWatched?: boolean;
}

/** The answer to a beat: a directive for the worker, and one for each job of the beat. */
export interface BeatReport {
  readonly now: Instant;
  readonly directive: RemoteWorker["directive"];
  readonly jobs: readonly {
    readonly beat: JobBeat;
    readonly directive: Directive;
    readonly row: JobRow | null;
  }[];
}

/** Beats of remote workers. They move the `stallAt` of the jobs that they name (SEMANTICS 3.6). */
export class RemoteBeats {
  readonly #context: EngineContext;
  readonly #rowCache: RowCache;
  readonly #workers: RemoteWorkers;

  constructor(context: EngineContext, rowCache: RowCache, workers: RemoteWorkers) {
    this.#context = context;
    this.#rowCache = rowCache;
    this.#workers = workers;
  }

  async beat(sent: RemoteWorker, jobs: readonly JobBeat[], visibility?: number): Promise<BeatReport> {
    const known = await this.#workers.find(sent.id);
    const worker: RemoteWorker = known?.directive ? { ...sent, directive: known.directive } : sent;
    await this.#workers.announceChange(worker, known);
    const rows = await this.#rowsOf(jobs);
    const answers = await this.#send(worker, jobs, rows, visibility);
    await this.#reloadDoubtful(jobs, rows, answers);
    this.#workers.learn(sent.id, worker);
    const now = this.#context.clock.now();
    return {
      now,
      directive: worker.directive,
      jobs: jobs.map((beat, index) => {
        const row = rows[index] ?? null;
        return { beat, row, directive: directiveFor(row, beat.sender, now) };
      }),
    };
  }

  /** Progress, checkpoints and log lines count as a beat of their job. */
  async alive(row: JobRow): Promise<BeatAnswer> {
    const { store, clock, recorder } = this.#context;
    const now = clock.now();
    const stallAt = beatenUntil(row, clock.anchor());
    if (stallAt === null) return "ok";
    const { id, fence, rev, policy } = row;
    const known = await this.#workers.find(policy?.worker ?? "");
    const worker = { id: policy?.worker ?? "", state: "running", running: 1, ...known, seenAt: now };
    await this.#workers.announceChange(worker, known);
    const records = recorder.heartbeat(row, stallAt, now);
    const [answer] = await store.jobs.beat({
      now,
      worker: this.#record(worker, now),
      jobs: [{ id, fence, rev, stallAt, ...(records && { records }) }],
    });
    this.#workers.learn(worker.id, worker);
    if (answer === "ok" || answer === "changed") announceHeartbeat(this.#context, row, stallAt);
    if (answer === "ok" && this.#rowCache.get(id) === row) this.#rowCache.set({ ...row, stallAt });
    return answer ?? "ok";
  }

  #record(worker: RemoteWorker, now: Instant) {
    return {
      id: remoteName(worker.id),
      body: RemoteWorkers.bodyOf(worker),
      wakeAt: now + FORGOTTEN_AFTER,
    };
  }

  async #rowsOf(jobs: readonly JobBeat[]): Promise<(JobRow | null)[]> {
    const rows = jobs.map(({ id }) => this.#rowCache.get(id) ?? null);
    const missing = jobs.filter((_, index) => rows[index] === null).map(({ id }) => id);
    if (missing.length === 0) return rows;
    const loaded = new Map<JobId, JobRow | null>();
    const found = await loadBrief(this.#context.store, missing);
    for (const [index, id] of missing.entries()) loaded.set(id, found[index] ?? null);
    return jobs.map(({ id }, index) => rows[index] ?? loaded.get(id) ?? null);
  }

  /** Writes the worker's record and moves `stallAt` of its jobs. The answer is null for a job that it does not hold. */
  async #send(
    worker: RemoteWorker,
    jobs: readonly JobBeat[],
    rows: (JobRow | null)[],
    visibility: number | undefined,
  ): Promise<(BeatAnswer | null)[]> {
    const { store, clock, recorder } = this.#context;
    const [now, anchor] = [clock.now(), clock.anchor()];
    // The request may name a job twice, with and without a beat or under two fences. The store gets it once.
    const beats = new Map<JobId, { row: JobRow; stallAt: Instant | null; indexes: number[] }>();
    for (const [index, { sender, isWatched }] of jobs.entries()) {
      const row = rows[index];
      const directive = directiveFor(row ?? null, sender, now);
      if (!row || directive === "lost" || directive === "cancel") continue;
      const stallAt = isWatched ? null : beatenUntil(row, anchor, visibility);
      const before = beats.get(row.id);
      if (before) {
        before.stallAt ??= stallAt;
        before.indexes.push(index);
      } else beats.set(row.id, { row, stallAt, indexes: [index] });
    }
    const entries = [...beats.values()];
    const answers = await store.jobs.beat({
      now,
      worker: this.#record(worker, now),
      jobs: entries.map(({ row, stallAt }) => {
        const { id, fence, rev } = row;
        const records = stallAt === null ? undefined : recorder.heartbeat(row, stallAt, now);
        return { id, fence, rev, ...(stallAt !== null && { stallAt }), ...(records && { records }) };
      }),
    });
    const answerOf: (BeatAnswer | null)[] = jobs.map(() => null);
    for (const [at, { indexes, row, stallAt }] of entries.entries()) {
      const answer = answers[at] as BeatAnswer;
      for (const index of indexes) answerOf[index] = answer;
      if (stallAt !== null && (answer === "ok" || answer === "changed"))
        announceHeartbeat(this.#context, row, stallAt);
      if (answer !== "ok" || stallAt === null) continue;
      // The reply has the new `stallAt`.
      const moved = { ...row, stallAt };
      for (const index of indexes) rows[index] = moved;
      if (this.#rowCache.get(row.id) === row) this.#rowCache.set(moved);
    }
    return answerOf;
  }

  /** Loads the rows that are not as the cache has them, so that the directive is about the stored row. */
  async #reloadDoubtful(
    jobs: readonly JobBeat[],
    rows: (JobRow | null)[],
    answers: readonly (BeatAnswer | null)[],
  ): Promise<void> {
    const doubtful = jobs.flatMap(({ id }, index) => {
      const isCached = this.#rowCache.get(id) !== undefined;
      return answers[index] === "ok" || (answers[index] === null && !isCached) ? [] : [{ id, index }];
    });
    if (doubtful.length === 0) return;
    const ids = doubtful.map(({ id }) => id);
    let at = 0;
    for await (const row of loadInParts(this.#context.store, ids)) {
      const { id, index } = doubtful[at++] as (typeof doubtful)[number];
      rows[index] = row && briefRow(row);
      if (row?.state === "active" && row.startedAt !== null) this.#rowCache.set(row);
      else this.#rowCache.delete(id);
    }
  }
}
