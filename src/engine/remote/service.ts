import type { By } from "../../core/audit/audit-entry.ts";
import { applied, decide } from "../../core/job/decide.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  isEmpty,
  type NewJob,
  prepareJob,
  stampAny,
} from "../../core/job/envelope.ts";
import { ANONYMOUS, isCounted, isHolder, isTooLate, type Sender } from "../../core/job/holder.ts";
import type { JobId, JobRow, Policy, PolicySettings } from "../../core/job/job.ts";
import type { JobDefinition } from "../../core/job/job-definition.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { newRow } from "../../core/job/new-row.ts";
import { resolvePolicy, type WorkerKind } from "../../core/job/policy.ts";
import type { UniqueRule } from "../../core/job/unique-key.ts";
import type { Instant } from "../../core/time.ts";
import type { Enqueued } from "../../ports/store.ts";
import { type System, within } from "../../ports/system.ts";
import { STALE_TRIES, tooManyChanges } from "../commit/commit.ts";
import { CommitQueue } from "../commit/commit-queue.ts";
import type { Decided } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import type { Crons } from "../crons/crons.ts";
import { tracedEach } from "../enqueue/trace-enqueue.ts";
import { JobRows } from "../operations/job-rows.ts";
import { removeJob } from "../operations/operate-job.ts";
import { type BeatReport, type JobBeat, RemoteBeats } from "./remote-beats.ts";
import { Claims } from "./remote-claims.ts";
import { RemoteNotes } from "./remote-notes.ts";
import { type RemoteWorker, RemoteWorkers } from "./remote-workers.ts";
import { Repeats } from "./repeated-fetches.ts";
import type { Report, Reported } from "./report-types.ts";
import { RowCache } from "./row-cache.ts";
import { ReadyWaits } from "./waiting-fetches.ts";

/** A job from a producer that has no definition: its payload is JSON text already. */
export interface RemoteJob {
  readonly definition: JobDefinition<unknown, unknown, unknown>;
  readonly payload: string;
  readonly options: EnqueueOptions;
  readonly isPending?: boolean | undefined;
  readonly visibility?: number | undefined;
  readonly wire?: EnqueueContext["wire"];
  /** The running job that enqueues this one, and hands on what is left of its total (SEMANTICS 4.7). */
  readonly parent?: JobId | undefined;
}

/** What became of a remote job that was to be added. */
export interface RemoteEnqueued {
  readonly row: JobRow;
  /** Its id or its unique key was known, and nothing was added. */
  readonly duplicate: boolean;
  /** The job that has the unique key; `row` is that job, unless it was not kept. */
  readonly existing?: JobId;
  /** The rule says that the producer shall be refused. */
  readonly isRejected?: boolean;
}

export interface RemoteFetch {
  readonly queues: readonly string[];
  readonly count: number;
  readonly worker?: string | undefined;
  /** The name of the key of the worker, if the server has keys. */
  readonly caller?: string | undefined;
  /** Whether the worker hears the soft signal (SEMANTICS 1.4). */
  readonly hears: boolean;
  readonly visibility?: number | undefined;
  /** What the worker's definitions say, by job type: the definition source of SEMANTICS 2. */
  readonly definitions?: ReadonlyMap<string, PolicySettings> | undefined;
  /** How many milliseconds to wait for a job where there is none. */
  readonly wait?: number | undefined;
  /** Whether the worker has hung up meanwhile: then nobody would work on what it is given. */
  readonly isGone?: (() => boolean) | undefined;
  /** The worker's name for this fetch: asked again under it, it gets the same jobs again. */
  readonly key?: string | undefined;
}

/** What the service needs of its engine. */
interface ServiceHost {
  store(jobs: readonly NewJob[], rules: ReadonlyMap<NewJob, UniqueRule> | undefined): Promise<Enqueued[]>;
  context(): EnqueueContext;
  readonly crons: Crons;
}

const CLOSE_LIMIT = 5_000;
const LOOK_AGAIN = 1_000;
/** One claim of a fetch, and the characters after which it claims no more: a row may hold several MB. */
const ROWS_PER_CLAIM = 50;
const FETCH_SIZE = 16_000_000;
const MOST_POLICIES = 2_000;
const NO_ROWS: ReadonlyMap<JobId, JobRow> = new Map();

/**
 * The engine for workers that live elsewhere. Nothing about them is kept in this process that the row does not say:
 * an attempt is started in the store before the worker hears of it, and whatever it reports is decided on the row.
 */
export class Service {
  readonly id: string;
  readonly workers: RemoteWorkers;
  /** Jobs as they are stored: what is written to the wire. */
  readonly rows: JobRows;
  readonly notes: RemoteNotes;
  readonly #parts: EngineContext;
  readonly #host: ServiceHost;
  readonly #claims: Claims;
  readonly #commits: CommitQueue;
  /**
   * Starts wait neither for verdicts nor for the disk: a start that a crash of the machine takes back is found as a
   * claim that ran out, and its worker's report is refused by the fence.
   */
  readonly #starts: CommitQueue;
  readonly #held = new RowCache();
  readonly #beats: RemoteBeats;
  readonly #ready: ReadyWaits;
  readonly #repeats: Repeats;
  readonly #policies = new Map<string, Policy>();
  #policyEpoch = -1;
  #isClosing = false;
  #underWay = 0;
  #onIdle: (() => void)[] = [];

  constructor(parts: EngineContext, host: ServiceHost) {
    this.id = parts.nextId();
    this.#parts = parts;
    this.#host = host;
    this.#claims = new Claims(parts, this.id);
    this.#commits = new CommitQueue(parts);
    this.#starts = new CommitQueue(parts, { relaxed: true });
    this.#ready = new ReadyWaits(parts);
    this.#repeats = new Repeats(parts.system);
    this.workers = new RemoteWorkers(parts);
    this.rows = new JobRows(parts);
    this.#beats = new RemoteBeats(parts, this.#held, this.workers);
    this.notes = new RemoteNotes(parts, this.#held, this.#commits, this.#beats);
  }

  /**
   * Adds jobs; all are checked before any is stored. `now` is the instant from which their relative times were counted.
   * The answers are the rows, with the word whether the id was known.
   */
  enqueue(jobs: readonly RemoteJob[], now: Instant): Promise<RemoteEnqueued[]> {
    const { tracing } = this.#parts;
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
      // Jobs that say nothing of their own share a template, and stores write those together.
      const template = prepareJob(definition, isEmpty(options) ? undefined : options, context);
      const job = stampAny(template, payload, this.#parts.nextId);
      if (template.unique !== undefined) {
        rules ??= new Map();
        rules.set(job, template.unique);
      }
      return job;
    });
    const answers = await this.#host.store(made, rules);
    if (rules) return this.#uniqueAnswers(made, answers, rules);
    return made.map((job, index) => ({ row: newRow(job), duplicate: answers[index] !== "created" }));
  }

  /** Of a job whose key was taken the one that has it is answered, as far as it was kept. */
  async #uniqueAnswers(
    made: readonly NewJob[],
    answers: readonly Enqueued[],
    rules: ReadonlyMap<NewJob, UniqueRule>,
  ): Promise<RemoteEnqueued[]> {
    const rivals = answers.flatMap((answer) => (typeof answer === "object" ? [answer.duplicate] : []));
    // One that took over the schedule of another is not what was sent.
    const replacing = made.filter((job) => rules.get(job)?.onConflict === "replace-except-schedule");
    const ids = [...new Set([...rivals, ...replacing.map(({ id }) => id)])];
    const rows = ids.length > 0 ? await this.#parts.store.jobs.load(ids) : [];
    const found = new Map(rows.flatMap((row) => (row ? [[row.id, row] as const] : [])));
    return made.map((job, index) => {
      const answer = answers[index] as Enqueued;
      const existing = typeof answer === "object" ? answer.duplicate : undefined;
      return {
        row: found.get(existing ?? job.id) ?? newRow(job),
        duplicate: answer !== "created",
        ...(existing !== undefined && {
          existing,
          isRejected: rules.get(job)?.onConflict === "reject",
        }),
      };
    });
  }

  /** Jobs that enqueue others; one that is not running hands nothing on. */
  async #parentsOf(jobs: readonly RemoteJob[]): Promise<ReadonlyMap<JobId, JobRow>> {
    const ids = new Set<JobId>();
    for (const { parent } of jobs) if (parent !== undefined) ids.add(parent);
    const rows = await this.#parts.store.jobs.load([...ids]);
    return new Map(rows.flatMap((row) => (row?.state === "active" ? [[row.id, row] as const] : [])));
  }

  /** Claims jobs for a remote worker and starts them: what is answered has its start committed (SEMANTICS 4.3). */
  async fetch(request: RemoteFetch): Promise<JobRow[]> {
    const { key, worker } = request;
    if (key === undefined || worker === undefined) return this.#fetch(request);
    const name = JSON.stringify([request.caller, worker, key]);
    const repeated = await this.#repeats.find(name);
    // What was reported on or lost meanwhile is not handed out a second time.
    if (repeated) return repeated.filter(({ id, fence }) => this.#held.get(id)?.fence === fence);
    const rows = this.#fetch(request);
    this.#repeats.keep(name, rows);
    return rows;
  }

  async #fetch(request: RemoteFetch): Promise<JobRow[]> {
    const { elapsed } = this.#timer();
    const { queues, wait = 0 } = request;
    for (;;) {
      if (this.#isClosing || request.isGone?.()) return [];
      if (request.worker !== undefined && !(await this.workers.mayFetch(request.worker))) return [];
      const rows = await this.#fetchNow(request);
      if (rows.length > 0 && request.isGone?.()) {
        await Promise.all(rows.map((row) => this.#giveBack(row)));
        return [];
      }
      const left = wait - elapsed();
      if (rows.length > 0 || left <= 0) return rows;
      await this.#ready.wait(queues, left);
    }
  }

  #timer(): { elapsed: () => number } {
    const { system } = this.#parts;
    const startedAt = system.monotonic();
    return { elapsed: () => system.monotonic() - startedAt };
  }

  async #fetchNow(request: RemoteFetch): Promise<JobRow[]> {
    this.#underWay += 1;
    try {
      const started: JobRow[] = [];
      let size = 0;
      for (const queue of request.queues) {
        for (;;) {
          const wanted = Math.min(request.count - started.length, ROWS_PER_CLAIM);
          if (wanted <= 0 || size > FETCH_SIZE) break;
          const rows = await this.#claims.claim(queue, wanted);
          const outcomes = await Promise.all(rows.map((row) => this.#start(row, request)));
          for (const row of outcomes) if (row) started.push(row);
          for (const row of rows) size += row.payload.length + (row.checkpoint?.length ?? 0);
          if (rows.length < wanted) break;
        }
      }
      return started;
    } finally {
      this.#underWay -= 1;
      if (this.#underWay === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    }
  }

  /** The started row, or null if the job was not to be entered: it has ended, or it was given back. */
  async #start(claimed: JobRow, request: RemoteFetch): Promise<JobRow | null> {
    const { clock, random, store } = this.#parts;
    let row = claimed;
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
      const policy = row.policy ?? this.#policyOf(row, kind, request.definitions?.get(row.type));
      const start = { type: "start", policy, kind, upper: clock.upper(), anchor: clock.anchor() } as const;
      const decision = decide(row, start, at, random);
      if (!decision.ok) return this.#giveBack(row);
      const outcome = await this.#starts.commit({ row, decision, at, by: "holder" });
      if (outcome.ok) return decision.image.state === "active" ? this.#handOut(row, decision) : null;
      if (outcome.because !== "stale") return null;
      const [again] = await store.jobs.load([row.id]);
      if (!again || again.fence !== row.fence) return null;
      row = again;
    }
    return null;
  }

  /** The commit may have taken its time: nobody is handed a job whose time is up (SEMANTICS 3.1). */
  #handOut(row: JobRow, decision: Decided): JobRow | Promise<null> {
    const started = applied(row, decision);
    const { softAt, stallAt } = started;
    const upper = this.#parts.clock.upper();
    if ((softAt !== null && upper >= softAt) || (stallAt !== null && upper >= stallAt))
      return this.#giveBack(started);
    this.#held.set(started);
    return started;
  }

  async #giveBack(row: JobRow): Promise<null> {
    const { clock, random } = this.#parts;
    const at = clock.now();
    this.#held.delete(row.id);
    const decision = decide(row, { type: "release" }, at, random);
    if (decision.ok) await this.#commits.commit({ row, decision, at, by: "holder" });
    return null;
  }

  /** Most jobs of a queue share their policy, so it is resolved once until a setting changes. */
  #policyOf(row: JobRow, kind: WorkerKind, definition: PolicySettings | undefined): Policy {
    const { queues, settings: engine } = this.#parts;
    const queue = queues.policyOf(row.queue);
    const enqueue = row.options?.settings;
    if (enqueue || definition) return resolvePolicy({ enqueue, definition, queue, engine }, kind);
    if (this.#policyEpoch !== queues.epoch || this.#policies.size >= MOST_POLICIES) {
      this.#policies.clear();
      this.#policyEpoch = queues.epoch;
    }
    // By worker too: the same object again is one that a store has put into text before.
    const key = `${row.queue} ${kind.hears} ${kind.visibility} ${kind.caller} ${kind.worker}`;
    const known = this.#policies.get(key);
    if (known) return known;
    const policy = resolvePolicy({ queue, engine }, kind);
    this.#policies.set(key, policy);
    return policy;
  }

  /**
   * Decides what a remote worker reports. The sender must hold the attempt (SEMANTICS 3.8); one that comes too late is
   * refused, even where its coming was what brought the verdict that was due. A worker that gives that very verdict is
   * not late.
   */
  async report(id: JobId, sender: Sender, event: Report["event"]): Promise<Reported> {
    return this.#judge({ id, sender, event }, this.#held.get(id) ?? (await this.#load(id)));
  }

  /**
   * Reports that came together, each decided for itself: rows that are not remembered are read in one call, and what is
   * decided shares its commits. One that fails holds up none of the others.
   */
  async reportMany(reports: readonly Report[]): Promise<PromiseSettledResult<Reported>[]> {
    const strange = new Set<JobId>();
    for (const { id } of reports) if (!this.#held.get(id)) strange.add(id);
    const rows = strange.size === 0 ? [] : await this.#parts.store.jobs.load([...strange]);
    const found = new Map(rows.flatMap((row) => (row ? [[row.id, row] as const] : [])));
    return Promise.allSettled(
      reports.map((report) => this.#judge(report, this.#held.get(report.id) ?? found.get(report.id) ?? null)),
    );
  }

  async #judge({ id, sender, event }: Report, known: JobRow | null): Promise<Reported> {
    const { clock, random } = this.#parts;
    let row = known;
    for (let tries = 0; tries < STALE_TRIES; tries++) {
      if (row === null) return { ok: false, because: "gone", row };
      const now = clock.now();
      if (isHolder(row, sender)) {
        const said = event(row, now);
        const decision = decide(row, said, now, random);
        if (!decision.ok) return this.#refused(row);
        const outcome = await this.#commits.commit({ row, decision, at: now, by: "holder" });
        if (outcome.ok) {
          this.#held.delete(id);
          const settled = applied(row, decision);
          const isVerdictDue = said.type === "expire" || said.type === "stall";
          return isTooLate(row, now) && !isVerdictDue ? this.#refused(settled) : { ok: true, row: settled };
        }
      } else if (this.#held.get(id) !== row) {
        return isCounted(row, sender, event(row, now).type) ? { ok: true, row } : this.#refused(row);
      }
      // What was remembered may be old: the row in the store decides.
      this.#held.delete(id);
      row = await this.#load(id);
    }
    throw tooManyChanges("report", `job ${id}`);
  }

  #refused(row: JobRow): Reported {
    this.#held.delete(row.id);
    this.#parts.counters.add("lost");
    return { ok: false, because: "lost", row };
  }

  async #load(id: JobId): Promise<JobRow | null> {
    const [row] = await this.#parts.store.jobs.load([id]);
    return row ?? null;
  }

  /** A beat of a remote worker: renews what it still holds, and tells what became of the rest. */
  async beat(worker: RemoteWorker, jobs: readonly JobBeat[], visibility?: number): Promise<BeatReport> {
    const report = await this.#beats.beat(worker, jobs, visibility);
    // A worker that stops does not wait for the fetch that it has under way.
    if (RemoteWorkers.isStopped(worker)) this.#ready.wakeAll();
    return report;
  }

  /** Deletes a finished job; false if it changed meanwhile. */
  remove(row: JobRow, by?: By): Promise<boolean> {
    return removeJob(this.#parts, row, by);
  }

  /** Crons, for producers that have no definitions: see `putRemote`. */
  get crons(): Crons {
    return this.#host.crons;
  }

  get system(): System {
    return this.#parts.system;
  }

  /** A queue may have something to claim. */
  notify(queue: string): void {
    this.#ready.notify(queue);
  }

  /** Somebody voided the fence of this job: what is remembered of it is of no use. */
  forget(id: JobId): void {
    this.#held.delete(id);
  }

  /** The job once it has ended, or as it stands after `wait` milliseconds. */
  async whenEnded(id: JobId, wait: number): Promise<JobRow | null> {
    const { elapsed } = this.#timer();
    const { system, waiters } = this.#parts;
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

  /** Stops handing out jobs and waits for what is being written. Jobs that workers hold stay theirs. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#ready.close();
    const { system } = this.#parts;
    const idle =
      this.#underWay === 0
        ? Promise.resolve()
        : new Promise<void>((resolve) => {
            this.#onIdle.push(resolve);
          });
    await within(system, CLOSE_LIMIT, idle);
    await within(system, CLOSE_LIMIT, Promise.all([this.#starts.flushed(), this.#commits.flushed()]));
    this.#starts.abandon();
    this.#commits.abandon();
  }
}
