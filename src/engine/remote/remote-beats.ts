import { beatenUntil, type Directive, directiveFor, type Sender } from "../../core/job/holder.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { BeatAnswer } from "../../ports/store.ts";
import type { EngineContext } from "../context.ts";
import { announceHeartbeat } from "../events/heartbeat.ts";
import { remoteName } from "../worker/worker-record.ts";
import { type RemoteWorker, RemoteWorkers } from "./remote-workers.ts";
import type { RowCache } from "./row-cache.ts";

/** A worker that has not beaten for this long is gone, and its record with it. */
const FORGOTTEN_AFTER = 60_000;

export interface JobBeat {
  readonly id: JobId;
  readonly sender: Sender;
  /** Only asked about: its handler gave no sign of life, so its silence goes on. */
  readonly isWatched?: boolean;
}

/** What the beat says about each job it named, and what is wanted of the worker as a whole. */
export interface BeatReport {
  readonly now: Instant;
  readonly directive: RemoteWorker["directive"];
  readonly jobs: readonly {
    readonly beat: JobBeat;
    readonly directive: Directive;
    readonly row: JobRow | null;
  }[];
}

/** Signs of life of remote workers: they move the `stallAt` of the jobs that they name (SEMANTICS 3.6). */
export class RemoteBeats {
  readonly #parts: EngineContext;
  readonly #held: RowCache;
  readonly #workers: RemoteWorkers;

  constructor(parts: EngineContext, held: RowCache, workers: RemoteWorkers) {
    this.#parts = parts;
    this.#held = held;
    this.#workers = workers;
  }

  async beat(said: RemoteWorker, jobs: readonly JobBeat[], visibility?: number): Promise<BeatReport> {
    const known = await this.#workers.find(said.id);
    const worker: RemoteWorker = known?.directive ? { ...said, directive: known.directive } : said;
    await this.#workers.announceChange(worker, known);
    const rows = await this.#rowsOf(jobs);
    const answers = await this.#send(worker, jobs, rows, visibility);
    await this.#lookAgain(jobs, rows, answers);
    this.#workers.learn(said.id, worker);
    const now = this.#parts.clock.now();
    return {
      now,
      directive: worker.directive,
      jobs: jobs.map((beat, index) => {
        const row = rows[index] ?? null;
        return { beat, row, directive: directiveFor(row, beat.sender, now) };
      }),
    };
  }

  /** A sign of life that came with something else: progress or a checkpoint. */
  async alive(row: JobRow): Promise<BeatAnswer> {
    const { store, clock, recorder } = this.#parts;
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
    if (answer === "ok" || answer === "changed") announceHeartbeat(this.#parts, row, stallAt);
    if (answer === "ok" && this.#held.get(id) === row) this.#held.set({ ...row, stallAt });
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
    const rows = jobs.map(({ id }) => this.#held.get(id) ?? null);
    const missing = jobs.filter((_, index) => rows[index] === null).map(({ id }) => id);
    if (missing.length === 0) return rows;
    const loaded = new Map<JobId, JobRow | null>();
    const found = await this.#parts.store.jobs.load(missing);
    for (const [index, id] of missing.entries()) loaded.set(id, found[index] ?? null);
    return jobs.map(({ id }, index) => rows[index] ?? loaded.get(id) ?? null);
  }

  /** Renews the worker's record and moves `stallAt` of what it holds; answers are null where nothing was asked. */
  async #send(
    worker: RemoteWorker,
    jobs: readonly JobBeat[],
    rows: (JobRow | null)[],
    visibility: number | undefined,
  ): Promise<(BeatAnswer | null)[]> {
    const { store, clock, recorder } = this.#parts;
    const [now, anchor] = [clock.now(), clock.anchor()];
    // A job may be named twice, as beaten and as watched or under two fences; it is asked about once.
    const asked = new Map<JobId, { row: JobRow; stallAt: Instant | null; indexes: number[] }>();
    for (const [index, { sender, isWatched }] of jobs.entries()) {
      const row = rows[index];
      const directive = directiveFor(row ?? null, sender, now);
      if (!row || directive === "lost" || directive === "cancel") continue;
      const stallAt = isWatched ? null : beatenUntil(row, anchor, visibility);
      const before = asked.get(row.id);
      if (before) {
        before.stallAt ??= stallAt;
        before.indexes.push(index);
      } else asked.set(row.id, { row, stallAt, indexes: [index] });
    }
    const entries = [...asked.values()];
    const answers = await store.jobs.beat({
      now,
      worker: this.#record(worker, now),
      jobs: entries.map(({ row, stallAt }) => {
        const { id, fence, rev } = row;
        const records = stallAt === null ? undefined : recorder.heartbeat(row, stallAt, now);
        return { id, fence, rev, ...(stallAt !== null && { stallAt }), ...(records && { records }) };
      }),
    });
    const all: (BeatAnswer | null)[] = jobs.map(() => null);
    for (const [at, { indexes, row, stallAt }] of entries.entries()) {
      const answer = answers[at] as BeatAnswer;
      for (const index of indexes) all[index] = answer;
      if (stallAt !== null && (answer === "ok" || answer === "changed"))
        announceHeartbeat(this.#parts, row, stallAt);
      if (answer !== "ok" || stallAt === null) continue;
      // What is answered is the silence that is allowed from now on, not the one before this beat.
      const moved = { ...row, stallAt };
      for (const index of indexes) rows[index] = moved;
      if (this.#held.get(row.id) === row) this.#held.set(moved);
    }
    return all;
  }

  /** Rows that are not what they were thought to be are read from the store, so that the directive is about the truth. */
  async #lookAgain(
    jobs: readonly JobBeat[],
    rows: (JobRow | null)[],
    answers: readonly (BeatAnswer | null)[],
  ): Promise<void> {
    const doubtful = jobs.flatMap(({ id }, index) => {
      const isHeld = this.#held.get(id) !== undefined;
      return answers[index] === "ok" || (answers[index] === null && !isHeld) ? [] : [{ id, index }];
    });
    if (doubtful.length === 0) return;
    const found = await this.#parts.store.jobs.load(doubtful.map(({ id }) => id));
    for (const [at, { id, index }] of doubtful.entries()) {
      const row = found[at] ?? null;
      rows[index] = row;
      if (row?.state === "active" && row.startedAt !== null) this.#held.set(row);
      else this.#held.delete(id);
    }
  }
}
