import type { By } from "../../core/audit/audit-entry.ts";
import { applied, decide } from "../../core/job/decide/decide.ts";
import { ANONYMOUS, isCounted, isHolder, isTooLate, type Sender } from "../../core/job/decide/holder.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  isEmpty,
  type NewJob,
  prepareJob,
  stampAny,
} from "../../core/job/enqueue/envelope.ts";
import { newRow } from "../../core/job/enqueue/new-row.ts";
import type { UniqueRule } from "../../core/job/enqueue/unique-key.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { WorkerKind } from "../../core/job/policy/policy.ts";
import { takesVersion } from "../../core/registry/job-version.ts";
import type { Instant } from "../../core/time.ts";
import type { Enqueued } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import { STALE_TRIES, tooManyChanges } from "../commit/commit.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import type { Decided } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import type { Crons } from "../crons/crons.ts";
import { tracedEach } from "../enqueue/trace-enqueue.ts";
import { loadBrief, loadWithin } from "../find/bounded-reader.ts";
import { JobRows } from "../operations/job-rows.ts";
import { removeJob } from "../operations/operate-job.ts";
import { CLOSE_MARKS, CloseBudget } from "../runtime/close-budget.ts";
import { Pools } from "./pools.ts";
import { type BeatReport, type JobBeat, RemoteBeats } from "./remote-beats.ts";
import { RemoteClaims } from "./remote-claims.ts";
import type { RemoteFetch } from "./remote-fetch.ts";
import { RemoteNotes } from "./remote-notes.ts";
import { RemotePolicies } from "./remote-policies.ts";
import { type RemoteWorker, RemoteWorkers } from "./remote-workers.ts";
import { RepeatedFetches } from "./repeated-fetches.ts";
import { reportInParts } from "./report-parts.ts";
import type { Report, Reported } from "./report-types.ts";
import { RowCache } from "./row-cache.ts";
import { VersionShelf } from "./version-shelf.ts";
import { WaitingFetches } from "./waiting-fetches.ts";

/** A job from a producer without definitions. Its payload is JSON text. */
export interface RemoteJob {
  readonly definition: JobDefinition<unknown, unknown, unknown>;
  readonly payload: string;
  readonly options: EnqueueOptions;
  readonly isPending?: boolean | undefined;
  readonly visibility?: number | undefined;
  readonly wire?: EnqueueContext["wire"];
  /** The running job that enqueues this one, which inherits the rest of its `total` (SEMANTICS 4.7). */
  readonly parent?: JobId | undefined;
}

/** The answer to the enqueue of one remote job. */
export interface RemoteEnqueued {
  readonly row: JobRow;
  /** The id or the unique key was taken, so the job was not added. */
  readonly duplicate: boolean;
  /** The job that has the unique key. `row` is that job, unless its retention is over. */
  readonly existing?: JobId;
  /** `row` is brief: the jobs of this answer are too large together. */
  readonly isBrief?: boolean;
  /** The unique rule says `reject`: the producer gets an error. */
  readonly isRejected?: boolean;
}

interface ServiceDeps {
  store(jobs: readonly NewJob[], rules: ReadonlyMap<NewJob, UniqueRule> | undefined): Promise<Enqueued[]>;
  context(): EnqueueContext;
  /** Promotes what is due by now. Returns whether a fetch that found nothing should look again. */
  promoteDue(): Promise<boolean>;
  readonly crons: Crons;
}

/** Characters of existing jobs in one answer. One job is always whole. */
const EXISTING_SIZE = 4_000_000;
const LOOK_AGAIN = 1_000;
/** One claim of a fetch, and the characters after which it claims no more: a row may hold several MB. */
const ROWS_PER_CLAIM = 50;
/** How long a job of a version that a worker does not run stays out of its way. */
const OTHER_VERSION_DELAY = 1_000;
const FETCH_SIZE = 16_000_000;
/** How long a fetch rests after it released a job. */
const REST_AFTER_RELEASE = 100;
const NO_ROWS: ReadonlyMap<JobId, JobRow> = new Map();

/**
 * The engine for workers and producers in other processes. The start of an attempt is committed before its worker gets the
 * job, and every report is decided on the row. So any server can serve any worker.
 */
export class Service {
  readonly id: string;
  readonly workers: RemoteWorkers;
  /** Jobs as stored rows, for the wire formats. */
  readonly rows: JobRows;
  readonly notes: RemoteNotes;
  readonly pools: Pools;
  readonly #context: EngineContext;
  readonly #host: ServiceDeps;
  readonly #claims: RemoteClaims;
  readonly #shelf: VersionShelf;
  readonly #commits: CommitQueue;
  /**
   * Starts wait neither for verdicts nor for the disk. If a crash of the machine loses a start, its claim expires and the
   * fence refuses the worker's report. A start with `onStall: "discard"` waits for the disk.
   */
  readonly #starts: CommitQueue;
  readonly #rowCache = new RowCache();
  readonly #beats: RemoteBeats;
  readonly #waitingFetches: WaitingFetches;
  readonly #repeatedFetches: RepeatedFetches;
  readonly #policies: RemotePolicies;
  #isClosing = false;
  #underWay = 0;
  #onIdle: (() => void)[] = [];

  constructor(context: EngineContext, host: ServiceDeps) {
    this.id = context.nextId();
    this.#context = context;
    this.#host = host;
    this.#claims = new RemoteClaims(context, this.id);
    this.#commits = new CommitQueue(context);
    this.#starts = new CommitQueue(context, { relaxed: true });
    this.#waitingFetches = new WaitingFetches(context);
    this.#repeatedFetches = new RepeatedFetches(context.system);
    this.workers = new RemoteWorkers(context);
    this.rows = new JobRows(context);
    this.pools = new Pools(context);
    this.#policies = new RemotePolicies(context);
    this.#shelf = new VersionShelf(context.system, (row) => this.#giveBack(row, OTHER_VERSION_DELAY));
    this.#beats = new RemoteBeats(context, this.#rowCache, this.workers);
    this.notes = new RemoteNotes(context, this.#rowCache, this.#commits, this.#beats);
  }

  /** Whether no request is under way. */
  get isIdle(): boolean {
    return this.#underWay === 0;
  }

  /**
   * Adds jobs. Checks all of them before it stores any. `now` is the instant from which their relative times count.
   * Returns one answer per job, in order.
   */
  enqueue(jobs: readonly RemoteJob[], now: Instant): Promise<RemoteEnqueued[]> {
    const { tracing } = this.#context;
    return tracing ? tracedEach(tracing, jobs, (more) => this.#enqueue(more, now)) : this.#enqueue(jobs, now);
  }

  async #enqueue(jobs: readonly RemoteJob[], now: Instant): Promise<RemoteEnqueued[]> {
    const base = { ...this.#host.context(), now };
    const isFromJob = jobs.some(({ parent }) => parent !== undefined);
    const parents = isFromJob ? await this.#parentsOf(jobs) : NO_ROWS;
    let rules: Map<NewJob, UniqueRule> | undefined;
    const made = jobs.map(({ definition, payload, options, isPending, visibility, wire, parent }) => {
      const running = parent === undefined ? undefined : parents.get(parent);
      const context = { ...base, isPending, visibility, wire, parent: running };
      // Jobs without options share a template. Stores write the jobs of one template together.
      const template = prepareJob(definition, isEmpty(options) ? undefined : options, context);
      const job = stampAny(template, payload, this.#context.nextId);
      if (template.unique !== undefined) {
        rules ??= new Map();
        rules.set(job, template.unique);
      }
      return job;
    });
    const checking = this.#context.schemas.check(made);
    if (checking) await checking;
    const answers = await this.#host.store(made, rules);
    if (rules) return this.#uniqueAnswers(made, answers, rules);
    return made.map((job, index) => ({ row: newRow(job), duplicate: answers[index] !== "created" }));
  }

  /** For a job whose unique key is taken, the answer has the job that holds the key, unless its retention is over. */
  async #uniqueAnswers(
    made: readonly NewJob[],
    answers: readonly Enqueued[],
    rules: ReadonlyMap<NewJob, UniqueRule>,
  ): Promise<RemoteEnqueued[]> {
    const holders = answers.flatMap((answer) => (typeof answer === "object" ? [answer.duplicate] : []));
    // A job that took over the schedule of another one differs from what was sent.
    const replacing = made.filter((job) => {
      const rule = rules.get(job);
      return rule?.pace !== undefined || rule?.onConflict === "replace-except-schedule";
    });
    const ids = [...new Set([...holders, ...replacing.map(({ id }) => id)])];
    const { rows: found, isBrief } = await loadWithin(this.#context.store, ids, EXISTING_SIZE);
    return made.map((job, index) => {
      const answer = answers[index] as Enqueued;
      const existing = typeof answer === "object" ? answer.duplicate : undefined;
      const id = existing ?? job.id;
      return {
        row: found.get(id) ?? newRow(job),
        duplicate: answer !== "created",
        ...(isBrief(id) && { isBrief: true }),
        ...(existing !== undefined && {
          existing,
          isRejected: rules.get(job)?.onConflict === "reject",
        }),
      };
    });
  }

  /** The running parents by id. A parent that does not run is left out, so its `total` is not inherited. */
  async #parentsOf(jobs: readonly RemoteJob[]): Promise<ReadonlyMap<JobId, JobRow>> {
    const ids = new Set<JobId>();
    for (const { parent } of jobs) if (parent !== undefined) ids.add(parent);
    const rows = await loadBrief(this.#context.store, [...ids]);
    return new Map(rows.flatMap((row) => (row?.state === "active" ? [[row.id, row] as const] : [])));
  }

  /** Claims jobs for a remote worker and starts them. Returns only jobs whose start is committed (SEMANTICS 4.3). */
  async fetch(request: RemoteFetch): Promise<JobRow[]> {
    const { key, worker } = request;
    if (key === undefined || worker === undefined) return this.#fetch(request);
    const name = JSON.stringify([request.caller, worker, key]);
    const repeated = await this.#repeatedFetches.find(name);
    // Leave out jobs that were reported on or lost meanwhile.
    if (repeated) return repeated.filter(({ id, fence }) => this.#rowCache.get(id)?.fence === fence);
    const rows = this.#fetch(request);
    this.#repeatedFetches.keep(name, rows);
    return rows;
  }

  async #fetch(request: RemoteFetch): Promise<JobRow[]> {
    const { wait = 0 } = request;
    const { elapsed } = this.#timer();
    const watch = wait > 0 ? this.#waitingFetches.watch(request.queues) : undefined;
    try {
      for (;;) {
        watch?.claims();
        if (this.#isClosing || request.isGone?.()) return [];
        if (request.worker !== undefined && !(await this.workers.mayFetch(request.worker))) return [];
        const { rows, isAnyReleased } = await this.#fetchDue(request);
        if (rows.length > 0 && request.isGone?.()) {
          await Promise.all(rows.map((row) => this.#giveBack(row)));
          return [];
        }
        const left = wait - elapsed();
        if (rows.length > 0 || left <= 0 || !watch) return rows;
        // The release of a job wakes the fetches of its queue. This one would claim and release it again without a rest.
        if (isAnyReleased) await watch.rest(Math.min(left, REST_AFTER_RELEASE));
        else await watch.wait(left);
      }
    } finally {
      watch?.end();
    }
  }

  /** A fetch that found nothing looks again if the sweep is late with what is due: its worker may not come back soon. */
  async #fetchDue(request: RemoteFetch): Promise<{ rows: JobRow[]; isAnyReleased: boolean }> {
    const fetched = await this.#fetchNow(request);
    if (fetched.rows.length > 0 || fetched.isAnyReleased || !(await this.#host.promoteDue())) return fetched;
    return this.#isClosing ? fetched : this.#fetchNow(request);
  }

  #timer(): { elapsed: () => number } {
    const { system } = this.#context;
    const startedAt = system.monotonic();
    return { elapsed: () => system.monotonic() - startedAt };
  }

  async #fetchNow(request: RemoteFetch): Promise<{ rows: JobRow[]; isAnyReleased: boolean }> {
    this.#underWay += 1;
    try {
      const started: JobRow[] = [];
      let isAnyReleased = false;
      let size = 0;
      const plan = await this.pools.plan(request, request.count);
      for (let step = plan?.next(); step && !step.done && size <= FETCH_SIZE; ) {
        const { queue, count } = step.value;
        const before = started.length;
        for (;;) {
          const wanted = Math.min(before + count - started.length, ROWS_PER_CLAIM);
          if (wanted <= 0 || size > FETCH_SIZE) break;
          const shelved = this.#shelf.take(queue, request.versions, wanted);
          const rows = shelved.length > 0 ? shelved : await this.#claims.claim(queue, wanted);
          const outcomes = await Promise.all(rows.map((row) => this.#start(row, request)));
          for (const row of outcomes) {
            if (row === "released") isAnyReleased = true;
            else if (typeof row === "object") started.push(row);
          }
          for (const row of rows) size += row.payload.length + (row.checkpoint?.length ?? 0);
          // The next claim would return the released job, for ever if its time is too short to start it.
          if ((rows.length < wanted && shelved.length === 0) || isAnyReleased) break;
        }
        step = plan?.next(started.length - before);
      }
      this.pools.handedOut(request.pool, started);
      return { rows: started, isAnyReleased };
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** Returns the started row. `ended` also stands for a job that another worker has now. */
  async #start(claimed: JobRow, request: RemoteFetch): Promise<JobRow | "released" | "ended" | "shelved"> {
    const { clock, random, store } = this.#context;
    let row = claimed;
    // Not available meanwhile, so that the jobs behind it are reached.
    if (!takesVersion(request.versions?.get(row.type), row))
      return this.#shelf.put(row) ? this.#shelved(row) : this.#giveBack(row, OTHER_VERSION_DELAY);
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      const visibility = row.options?.visibility ?? request.visibility;
      const kind: WorkerKind = {
        remote: true,
        hears: request.hears,
        worker: request.worker ?? ANONYMOUS,
        ...(request.caller !== undefined && { caller: request.caller }),
        ...(visibility !== undefined && { visibility }),
      };
      const at = clock.now();
      const policy = row.policy ?? this.#policies.of(row, kind, request.definitions?.get(row.type));
      const start = { type: "start", policy, kind, upper: clock.upper(), anchor: clock.anchor() } as const;
      const decision = decide(row, start, at, random);
      if (!decision.ok) return this.#giveBack(row);
      const queue = policy.retry.onStall === "discard" ? this.#commits : this.#starts;
      const outcome = await queue.commit({ row, decision, at, by: "holder" });
      if (outcome.ok) return decision.image.state === "active" ? this.#handOut(row, decision) : "ended";
      if (outcome.because !== "stale") return "ended";
      const [again] = await store.jobs.load([row.id]);
      if (!again || again.fence !== row.fence) return "ended";
      row = again;
    }
    return "ended";
  }

  /** A worker of its version may be waiting. */
  #shelved({ queue }: JobRow): "shelved" {
    this.#waitingFetches.notify(queue);
    return "shelved";
  }

  /** Returns the started row. Releases the job if its time ran out during the commit (SEMANTICS 3.1). */
  #handOut(row: JobRow, decision: Decided): JobRow | Promise<"released"> {
    const started = applied(row, decision);
    const { softAt, stallAt } = started;
    const upper = this.#context.clock.upper();
    if ((softAt !== null && upper >= softAt) || (stallAt !== null && upper >= stallAt))
      return this.#giveBack(started);
    this.#rowCache.set(started);
    return started;
  }

  async #giveBack(row: JobRow, delay?: number): Promise<"released"> {
    const { clock, random } = this.#context;
    const at = clock.now();
    this.#rowCache.delete(row.id);
    const decision = decide(row, { type: "release", ...(delay !== undefined && { delay }) }, at, random);
    if (decision.ok) await this.#commits.commit({ row, decision, at, by: "holder" });
    return "released";
  }

  /**
   * Decides on a report of a remote worker. The sender must hold the attempt (SEMANTICS 3.8). A late report is refused,
   * although it makes the service commit the timeout that was due. A report of that same timeout is not late.
   */
  async report(id: JobId, sender: Sender, event: Report["event"]): Promise<Reported> {
    return this.#decide({ id, sender, event }, this.#rowCache.get(id) ?? (await this.#load(id)));
  }

  /** Decides on each of several reports. A report that fails does not delay the others. The answers have brief rows. */
  async reportMany(reports: readonly Report[]): Promise<PromiseSettledResult<Reported>[]> {
    return reportInParts(this.#context.store, this.#rowCache, reports, (report, row) =>
      this.#decide(report, row),
    );
  }

  async #decide({ id, sender, event }: Report, known: JobRow | null): Promise<Reported> {
    const { clock, random } = this.#context;
    let row = known;
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      if (row === null) return { ok: false, because: "gone", row };
      const now = clock.now();
      if (isHolder(row, sender)) {
        const reported = event(row, now);
        const decision = decide(row, reported, now, random);
        if (!decision.ok) return this.#refused(row);
        const outcome = await this.#commits.commit({ row, decision, at: now, by: "holder" });
        if (outcome.ok) {
          this.#rowCache.delete(id);
          this.pools.ended(id);
          const settled = applied(row, decision);
          const isVerdictDue = reported.type === "expire" || reported.type === "stall";
          return isTooLate(row, now) && !isVerdictDue ? this.#refused(settled) : { ok: true, row: settled };
        }
      } else if (this.#rowCache.get(id) !== row) {
        return isCounted(row, sender, event(row, now).type) ? { ok: true, row } : this.#refused(row);
      }
      // The cached row may be old: decide on the stored row.
      this.#rowCache.delete(id);
      row = await this.#load(id);
    }
    throw tooManyChanges("report", `job ${id}`);
  }

  #refused(row: JobRow): Reported {
    this.#rowCache.delete(row.id);
    this.#context.counters.add("lost");
    return { ok: false, because: "lost", row };
  }

  async #load(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#context.store.jobs.load([id]);
    return row ?? null;
  }

  /** A beat of a remote worker: renews the jobs that it holds, and says which of the others it lost. */
  async beat(worker: RemoteWorker, jobs: readonly JobBeat[], visibility?: number): Promise<BeatReport> {
    const report = await this.#beats.beat(worker, jobs, visibility);
    // A worker that stops should not wait for its open fetch, so end it.
    if (RemoteWorkers.isStopped(worker)) this.#waitingFetches.wakeAll();
    return report;
  }

  /** Deletes a finished job. Returns false if it changed meanwhile. */
  remove(row: JobRow, by?: By): Promise<boolean> {
    return removeJob(this.#context, row, by);
  }

  /** Crons, for producers without definitions: see `putRemote`. */
  get crons(): Crons {
    return this.#host.crons;
  }

  get system(): System {
    return this.#context.system;
  }

  /** The most bytes of a payload or result. */
  get documentLimit(): number {
    return this.#context.documentLimit;
  }

  /** Queues that a fetch waits for. */
  get awaited(): Iterable<string> {
    return this.#waitingFetches.queues;
  }

  /** The queue may have jobs to claim. */
  notify(queue: string): void {
    this.#waitingFetches.notify(queue);
  }

  /** The fence of this job changed, so the cached row is useless. */
  forget(id: JobId): void {
    this.#rowCache.delete(id);
  }

  /** Returns the job when it has ended, or its current row after `wait` milliseconds. */
  async whenEnded(id: JobId, wait: number): Promise<JobRow | null> {
    const { elapsed } = this.#timer();
    const { system, waiters } = this.#context;
    for (;;) {
      const row = await this.#load(id);
      const left = wait - elapsed();
      if (row === null || isTerminal(row.state) || left <= 0 || this.#isClosing) return row;
      await new Promise<void>((resolve) => {
        const wake = () => {
          timer.cancel();
          off();
          resolve();
        };
        const timer = system.after(Math.min(left, LOOK_AGAIN), wake, { keepAlive: true });
        const off = waiters.add(id, wake);
      });
    }
  }

  /** Stops handing out jobs and waits for running writes. Workers keep the jobs that they hold. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#waitingFetches.close();
    this.#shelf.close();
    const { system } = this.#context;
    const idle =
      this.#underWay === 0
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            this.#onIdle.push(resolve);
          });
    const budget = new CloseBudget(system);
    await budget.until(CLOSE_MARKS.claims, idle);
    await budget.until(CLOSE_MARKS.writes, Promise.all([this.#starts.flushed(), this.#commits.flushed()]));
    this.#starts.abandon();
    this.#commits.abandon();
  }
}
