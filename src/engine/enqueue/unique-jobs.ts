import { CurfewError } from "../../core/errors.ts";
import { decide } from "../../core/job/decide.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import {
  holderRecord,
  holdersIn,
  holdersLeft,
  inPlaceOf,
  planHolders,
  type UniqueHolder,
  type UniqueJob,
} from "../../core/job/unique-holders.ts";
import { isWhileAlive, replaces, type UniqueRule } from "../../core/job/unique-key.ts";
import { backoff } from "../../core/pace.ts";
import type { Instant } from "../../core/time.ts";
import {
  BATCH_LIMIT,
  type Effect,
  type Enqueued,
  type RecordKey,
  type RecordRow,
  type Unit,
} from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import { commitJobs, commitUnits, STORE_TRIES } from "../commit/commit.ts";
import type { DecidedJob } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { Batcher } from "../runtime/batcher.ts";
import { EnqueueFailedError, foundOr, type Intake } from "./enqueue-batches.ts";
import { UNIQUE } from "./unique-keys.ts";

/** The key of a job was taken, and its rule says to refuse it. `existing` is the job that has the key. */
export class DuplicateJobError extends CurfewError {
  override readonly name = "DuplicateJobError";
  readonly existing: JobId;

  constructor(type: string, existing: JobId) {
    super(
      "duplicate_job",
      `enqueue: job ${existing} of type ${type} has the same unique key, and nothing was added`,
    );
    this.existing = existing;
  }
}

interface Waiting {
  readonly unique: UniqueJob;
  /** Calls of the store that failed, and commits that another process was faster than. */
  failures: number;
  races: number;
}

type Answer = Enqueued | CurfewError;
type Answers = Map<Waiting, Answer | Promise<Answer>>;

/** What was decided for the jobs of one key. */
interface Planned {
  readonly waiting: readonly Waiting[];
  readonly plan: ReturnType<typeof planHolders>;
  /** The unit that stores all of it, or the job that is cancelled with it; null if nothing is stored. */
  readonly write: Unit | DecidedJob | null;
}

const ROUND = 500;
/**
 * More than STALE_TRIES: several processes may enqueue under one key at the same time, and one of them wins each round, so
 * to lose 20 rounds in a row is nothing rare.
 */
const MOST_RACES = 100;
const BACKOFF = { first: 25, factor: 4, most: 400 };

/**
 * Enqueues jobs of which there must be one. Where a job blocks others exactly while it lives, the store keeps its key and
 * says who has it. Every other rule is kept in a record per key, which names the jobs that were added under it: what is
 * decided by it is committed under its version, so of two processes one is refused and looks again. No changeRecord: the
 * keys of all calls share a commit.
 */
export class UniqueJobs {
  readonly #parts: EngineContext;
  readonly #intake: Intake;
  readonly #rounds: Batcher<Waiting, Answer>;

  constructor(parts: EngineContext, intake: Intake) {
    this.#parts = parts;
    this.#intake = intake;
    this.#rounds = new Batcher({ call: (batch) => this.#serve(batch), count: () => ROUND });
  }

  async enqueue(jobs: readonly UniqueJob[]): Promise<Enqueued[]> {
    const alive = jobs.filter(({ rule }) => isWhileAlive(rule));
    const answers = new Map<UniqueJob, Enqueued>();
    const others = jobs
      .filter(({ rule }) => !isWhileAlive(rule))
      .map(async (unique) => {
        answers.set(unique, await this.#keep(unique));
      });
    const first = alive.length > 0 ? await this.#intake.enqueue(alive.map(({ job }) => job)) : [];
    for (const [index, unique] of alive.entries()) {
      const answer = first[index] as Enqueued;
      const isReplacing = typeof answer === "object" && replaces(unique.rule);
      answers.set(unique, isReplacing ? await this.#replace(unique, answer.duplicate) : answer);
    }
    await Promise.all(others);
    return jobs.map((unique) => answers.get(unique) as Enqueued);
  }

  /** Jobs of which some are unique, in their order. */
  async enqueueSome(jobs: readonly NewJob[], rules: ReadonlyMap<NewJob, UniqueRule>): Promise<Enqueued[]> {
    const plain = jobs.filter((job) => !rules.has(job));
    const unique = jobs.flatMap((job) => {
      const rule = rules.get(job);
      return rule ? [{ job: job.hasNewId ? job : foundOr(job, this.#parts.random), rule }] : [];
    });
    const [plainAnswers, uniqueAnswers] = await Promise.all([
      plain.length > 0 ? this.#intake.enqueue(plain) : [],
      this.enqueue(unique),
    ]);
    let [nextPlain, nextUnique] = [0, 0];
    return jobs.map(
      (job) => (rules.has(job) ? uniqueAnswers[nextUnique++] : plainAnswers[nextPlain++]) as Enqueued,
    );
  }

  /** Resolves when everything that was taken in has its answer. */
  flushed(): Promise<void> {
    return this.#rounds.idle();
  }

  /** Cancels the job that has the key, and adds the new one in the same commit. */
  async #replace({ job, rule }: UniqueJob, holder: JobId): Promise<Enqueued> {
    const { store, clock, random } = this.#parts;
    let rival = holder;
    for (let races = 0; races < MOST_RACES; races++) {
      const [row] = await store.jobs.load([rival]);
      const now = clock.now();
      const decision = row && decide(row, { type: "cancel", replacedBy: job.id }, now, random);
      if (row && decision?.ok) {
        const made = inPlaceOf(row, job, rule, now);
        if (made instanceof CurfewError) throw made;
        const effects = [{ enqueue: this.#told(made, job) }];
        if (await this.#isCommitted({ row, decision, at: now, by: "outsider", effects })) {
          this.#intake.notice([made]);
          return "created";
        }
      }
      // It has ended or changed meanwhile: the key may be free.
      const [answer] = await this.#intake.enqueue([foundOr(job, random)]);
      if (answer === "exists" && job.hasNewId) return "created";
      if (typeof answer !== "object") return answer as Enqueued;
      rival = answer.duplicate;
    }
    throw tooManyRaces(job);
  }

  /** A commit whose answer is lost may have been written: then the job is found by its id. */
  async #isCommitted(job: DecidedJob): Promise<boolean> {
    try {
      const [outcome] = await commitJobs(this.#parts, [job]);
      return outcome?.ok ?? false;
    } catch (error) {
      this.#parts.storeFailed(error, "enqueue");
      return false;
    }
  }

  async #keep(unique: UniqueJob): Promise<Enqueued> {
    const answer = await this.#rounds.add({ unique, failures: 0, races: 0 });
    if (answer instanceof CurfewError) throw answer;
    return answer;
  }

  /** Some jobs can be decided only when others of their key are stored, so this may take more than one round. */
  async #serve(batch: readonly Waiting[]): Promise<(Answer | Promise<Answer>)[]> {
    const answers: Answers = new Map();
    for (let left = batch; left.length > 0; left = batch.filter((one) => !answers.has(one))) {
      try {
        await this.#round(left, answers);
      } catch (error) {
        await this.#failed(left, answers, error);
      }
    }
    return batch.map((one) => answers.get(one) as Answer);
  }

  /** All keys of a round are read together, decided each by itself, and committed together. */
  async #round(batch: readonly Waiting[], answers: Answers): Promise<void> {
    const { store, clock } = this.#parts;
    const groups = Map.groupBy(batch, ({ unique }) => unique.job.uniqueKey as string);
    const keys = [...groups.keys()].map((key): RecordKey => [UNIQUE, key]);
    const records = await store.records.load(keys);
    const known = records.map((record) => (record ? holdersIn(record.body) : []));
    const given = batch.flatMap(({ unique: { job } }) => (job.hasNewId ? [] : [job.id]));
    const rows = await this.#rows([...known.flat().map(({ id }) => id), ...given]);
    const now = clock.now();
    const planned: Planned[] = [];
    for (const [index, waiting] of [...groups.values()].entries()) {
      const record = { key: keys[index] as RecordKey, version: records[index]?.version ?? 0 };
      planned.push(this.#plan(waiting, record, known[index] as UniqueHolder[], rows, now));
    }
    const written = planned.filter(({ write }) => write !== null);
    const outcomes = await commitJobs(
      this.#parts,
      written.map(({ write }) => write as Unit | DecidedJob),
    );
    const failed = new Set(written.filter((_, index) => !outcomes[index]?.ok));
    for (const one of planned) {
      if (failed.has(one)) this.#again(one.waiting, answers);
      else this.#answer(one, answers);
    }
  }

  async #rows(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JobRow>> {
    const found = new Map<JobId, JobRow>();
    for (let from = 0; from < ids.length; from += BATCH_LIMIT) {
      for (const row of await this.#parts.store.jobs.load(ids.slice(from, from + BATCH_LIMIT)))
        if (row) found.set(row.id, row);
    }
    return found;
  }

  #plan(
    waiting: readonly Waiting[],
    record: { readonly key: RecordKey; readonly version: number },
    known: readonly UniqueHolder[],
    rows: ReadonlyMap<JobId, JobRow>,
    now: Instant,
  ): Planned {
    const jobs = waiting.map(({ unique }) => unique);
    const plan = planHolders(known, (id) => rows.get(id) ?? null, jobs, now);
    const effects: Effect[] = plan.created.map((job) => {
      const asked = jobs.find((unique) => unique.job.id === job.id)?.job;
      return { enqueue: withoutKey(asked ? this.#told(job, asked) : job) };
    });
    if (effects.length === 0) return { waiting, plan, write: null };
    const { replaced } = plan;
    effects.push({ put: record.key, ...holderRecord(plan.holders, now) });
    const when = [{ record: record.key, version: record.version }];
    const replacedBy = plan.created[0]?.id as JobId;
    const decision = replaced && decide(replaced, { type: "cancel", replacedBy }, now, this.#parts.random);
    if (!decision?.ok) return { waiting, plan, write: { when, effects } };
    const write = { row: replaced as JobRow, decision, at: now, by: "outsider", when, effects } as const;
    return { waiting, plan, write };
  }

  /** A job that took over another one's schedule has something else to tell. */
  #told(made: NewJob, asked: NewJob): NewJob {
    return made.image === asked.image ? made : this.#parts.recorder.enqueued(made);
  }

  #answer({ waiting, plan }: Planned, answers: Answers): void {
    if (plan.created.length > 0) this.#intake.notice(plan.created);
    for (const [index, answer] of plan.answers.entries()) answers.set(waiting[index] as Waiting, answer);
  }

  /** Another process wrote the record or the job: the next call reads both again. */
  #again(waiting: readonly Waiting[], answers: Answers): void {
    for (const one of waiting) {
      one.races += 1;
      const answer = one.races >= MOST_RACES ? tooManyRaces(one.unique.job) : this.#rounds.add(one);
      answers.set(one, answer);
    }
  }

  /** A call that failed may have written: a job that is tried again finds itself in the record then. */
  async #failed(left: readonly Waiting[], answers: Answers, error: unknown): Promise<void> {
    const { system, storeFailed } = this.#parts;
    storeFailed(error, "enqueue");
    let most = 0;
    for (const one of left) {
      one.failures += 1;
      if (one.failures >= STORE_TRIES) answers.set(one, new EnqueueFailedError([one.unique.job], error));
      else most = Math.max(most, one.failures);
    }
    if (most > 0) await rest(system, backoff(most, BACKOFF));
  }

  /** Deletes due records that block no job any more; the others are looked at later. */
  async clean(records: readonly RecordRow[], now: Instant): Promise<void> {
    const keepers = records.map(({ body }) => holdersIn(body));
    const asked = keepers.flat().flatMap(({ id, until }) => (until === null ? [id] : []));
    const rows = await this.#rows(asked);
    const units = records.map(({ key, version }, index): Unit => {
      const left = holdersLeft(keepers[index] as UniqueHolder[], (id) => rows.get(id) ?? null, now);
      const effect: Effect = left.length === 0 ? { delete: key } : { put: key, ...holderRecord(left, now) };
      return { when: [{ record: key, version }], effects: [effect] };
    });
    await commitUnits(this.#parts, units);
  }
}

/** A job whose rule a record keeps holds no key in the store: there may be two that live. */
function withoutKey({ uniqueKey: _key, ...job }: NewJob): NewJob {
  return job;
}

function tooManyRaces({ id, type }: NewJob): CurfewError {
  return new CurfewError(
    "invalid_state",
    `enqueue: the unique key of job ${id} (${type}) changed hands ${MOST_RACES} times while it was being enqueued; try again`,
  );
}
