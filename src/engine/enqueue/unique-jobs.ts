import { CurfewError } from "../../core/errors.ts";
import { decide } from "../../core/job/decide/decide.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { planPaced } from "../../core/job/enqueue/paced-jobs.ts";
import {
  holderRecord,
  holdersIn,
  holdersLeft,
  inPlaceOf,
  planHolders,
  type UniqueHolder,
  type UniqueJob,
} from "../../core/job/enqueue/unique-holders.ts";
import { isWhileAlive, replaces, type UniqueRule } from "../../core/job/enqueue/unique-key.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { backoff } from "../../core/pace.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect, Enqueued, RecordKey, RecordRow, Unit } from "../../ports/store.ts";
import { rest } from "../../ports/system.ts";
import { commitJobs, commitUnits, STALE_TRIES, STORE_TRIES } from "../commit/commit.ts";
import { type DecidedJob, unitOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { rowsById } from "../find/find-jobs.ts";
import { Batcher } from "../runtime/batcher.ts";
import { foundOr, type Intake } from "./enqueue-batches.ts";
import { EnqueueFailedError } from "./enqueue-failed-error.ts";
import { UNIQUE } from "./unique-keys.ts";

interface Waiting {
  readonly unique: UniqueJob;
  /** Failed store calls, and commits that were stale because another process wrote first. */
  failures: number;
  races: number;
}

type Answer = Enqueued | CurfewError;
type Answers = Map<Waiting, Answer | Promise<Answer>>;

/** The decision on the jobs of one key. */
interface Planned {
  readonly waiting: readonly Waiting[];
  readonly plan: ReturnType<typeof planHolders>;
  /** The unit that stores them, or the cancelled job together with them; null if nothing is stored. */
  readonly write: Unit | DecidedJob | null;
}

const ROUND = 500;
/** More than STALE_TRIES: of several processes that enqueue with one key, one wins each round. */
const MOST_RACES = 100;
/** A burst of enqueues replaces many jobs, which nobody needs to see for long. */
const REPLACED_FOR = 60_000;
const BACKOFF = { first: 25, factor: 4, most: 400 };

/**
 * Enqueues unique jobs. If a key is held exactly while its job lives, the store's index keeps it. All other rules are
 * kept in a record per key, which names the jobs that were added under it. Decisions are committed under the record's
 * version: of two processes, one is refused and reads again. No changeRecord: the keys of all calls share a commit.
 */
export class UniqueJobs {
  readonly #context: EngineContext;
  readonly #intake: Intake;
  readonly #rounds: Batcher<Waiting, Answer>;

  constructor(context: EngineContext, intake: Intake) {
    this.#context = context;
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

  /** Enqueues jobs of which some are unique, and answers in their order. */
  async enqueueSome(jobs: readonly NewJob[], rules: ReadonlyMap<NewJob, UniqueRule>): Promise<Enqueued[]> {
    const plain = jobs.filter((job) => !rules.has(job));
    const unique = jobs.flatMap((job) => {
      const rule = rules.get(job);
      return rule ? [{ job: job.hasNewId ? job : foundOr(job, this.#context.random), rule }] : [];
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

  /**
   * Enqueues debounced or throttled jobs in a transaction of the caller. Their keys are read outside of it, and their
   * versions are checked inside, so the first one to commit wins and the other one reads again.
   */
  async enqueueWithin(jobs: readonly UniqueJob[], tx: unknown): Promise<Enqueued[]> {
    const waiting = jobs.map((unique): Waiting => ({ unique, failures: 0, races: 0 }));
    const answers: Answers = new Map();
    for (let races = 0; answers.size < waiting.length; races++) {
      if (races >= STALE_TRIES) throw tooManyInTx((jobs[0] as UniqueJob).job);
      const planned = await this.#planAll(waiting.filter((one) => !answers.has(one)));
      const written = planned.filter(({ write }) => write !== null);
      const units = written.map(({ write }) => {
        const one = write as Unit | DecidedJob;
        return "decision" in one ? unitOf(this.#context, one) : one;
      });
      const outcomes = await commitUnits(this.#context, units, { tx });
      const failed = new Set(written.filter((_, index) => !outcomes[index]?.ok));
      for (const one of planned.filter((each) => !failed.has(each)))
        for (const [index, answer] of one.plan.answers.entries())
          answers.set(one.waiting[index] as Waiting, answer);
    }
    return waiting.map((one) => {
      const answer = answers.get(one) as Answer;
      if (answer instanceof CurfewError) throw answer;
      return answer;
    });
  }

  /** Resolves when every enqueue has its answer. */
  flushed(): Promise<void> {
    return this.#rounds.idle();
  }

  /** Cancels the job that holds the key, and adds the new one in the same commit. */
  async #replace({ job, rule }: UniqueJob, holder: JobId): Promise<Enqueued> {
    const { store, clock, random } = this.#context;
    let rival = holder;
    for (let races = 0; races < MOST_RACES; races++) {
      const [row] = await store.jobs.load([rival]);
      const now = clock.now();
      const decision = row && decide(row, { type: "cancel", replacedBy: job.id }, now, random);
      if (row && decision?.ok) {
        const made = inPlaceOf(row, job, rule, now);
        if (made instanceof CurfewError) throw made;
        const effects = [{ enqueue: this.#withEvent(made, job) }];
        if (await this.#isCommitted({ row, decision, at: now, by: "outsider", effects })) {
          this.#intake.notice([made]);
          return "created";
        }
      }
      // The holder has ended or changed: the key may be free.
      const [answer] = await this.#intake.enqueue([foundOr(job, random)]);
      if (answer === "exists" && job.hasNewId) return "created";
      if (typeof answer !== "object") return answer as Enqueued;
      rival = answer.duplicate;
    }
    throw tooManyRaces(job);
  }

  /** A commit whose reply was lost may be in the store: then the job is found by its id. */
  async #isCommitted(job: DecidedJob): Promise<boolean> {
    try {
      const [outcome] = await commitJobs(this.#context, [job]);
      return outcome?.ok ?? false;
    } catch (error) {
      this.#context.storeFailed(error, "enqueue");
      return false;
    }
  }

  async #keep(unique: UniqueJob): Promise<Enqueued> {
    const answer = await this.#rounds.add({ unique, failures: 0, races: 0 });
    if (answer instanceof CurfewError) throw answer;
    return answer;
  }

  /** Jobs that depend on others with the same key are decided in a later round. */
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

  /** Reads all keys of a round together, decides on each, and commits them together. */
  async #round(batch: readonly Waiting[], answers: Answers): Promise<void> {
    const planned = await this.#planAll(batch);
    const written = planned.filter(({ write }) => write !== null);
    const outcomes = await commitJobs(
      this.#context,
      written.map(({ write }) => write as Unit | DecidedJob),
    );
    const failed = new Set(written.filter((_, index) => !outcomes[index]?.ok));
    for (const one of planned) {
      if (failed.has(one)) this.#again(one.waiting, answers);
      else this.#answer(one, answers);
    }
  }

  async #planAll(batch: readonly Waiting[]): Promise<Planned[]> {
    const { store, clock } = this.#context;
    const groups = Map.groupBy(batch, ({ unique }) => unique.job.uniqueKey as string);
    const keys = [...groups.keys()].map((key): RecordKey => [UNIQUE, key]);
    const records = await store.records.load(keys);
    const known = records.map((record) => (record ? holdersIn(record.body) : []));
    // A call whose reply was lost may have stored its job, which another process may have replaced since.
    const given = batch.flatMap(({ unique: { job }, failures }) =>
      job.hasNewId && failures === 0 ? [] : [job.id],
    );
    const rows = await rowsById(this.#context.store, [...known.flat().map(({ id }) => id), ...given]);
    const now = clock.now();
    const planned: Planned[] = [];
    for (const [index, waiting] of [...groups.values()].entries()) {
      const record = { key: keys[index] as RecordKey, version: records[index]?.version ?? 0 };
      planned.push(this.#plan(waiting, record, known[index] as UniqueHolder[], rows, now));
    }
    return planned;
  }

  #plan(
    waiting: readonly Waiting[],
    record: { readonly key: RecordKey; readonly version: number },
    known: readonly UniqueHolder[],
    rows: ReadonlyMap<JobId, JobRow>,
    now: Instant,
  ): Planned {
    const all = waiting.map(({ unique }) => unique);
    const isPaced = all[0]?.rule.pace !== undefined;
    const other = all.findIndex(({ rule }) => (rule.pace !== undefined) !== isPaced);
    const jobs = other === -1 ? all : all.slice(0, other);
    const rowOf = (id: JobId) => rows.get(id) ?? null;
    const plan = isPaced
      ? planPaced(known, rowOf, jobs, { now, anchor: this.#context.clock.anchor() })
      : planHolders(known, rowOf, jobs, now);
    const effects: Effect[] = plan.created.map((job) => {
      const original = jobs.find((unique) => unique.job.id === job.id)?.job;
      return { enqueue: withoutKey(original ? this.#withEvent(job, original) : job) };
    });
    if (effects.length === 0) return { waiting, plan, write: null };
    const { replaced } = plan;
    effects.push({ put: record.key, ...holderRecord(plan.holders, now) });
    const when = [{ record: record.key, version: record.version }];
    const replacedBy = plan.created[0]?.id as JobId;
    const cancel = { type: "cancel", replacedBy, ...(isPaced && { keptAtMost: REPLACED_FOR }) } as const;
    const decision = replaced && decide(replaced, cancel, now, this.#context.random);
    if (!decision?.ok) return { waiting, plan, write: { when, effects } };
    const write = { row: replaced as JobRow, decision, at: now, by: "outsider", when, effects } as const;
    return { waiting, plan, write };
  }

  /** Records the enqueue anew for a job that took over another job's schedule. */
  #withEvent(made: NewJob, original: NewJob): NewJob {
    return made.image === original.image ? made : this.#context.recorder.enqueued(made);
  }

  #answer({ waiting, plan }: Planned, answers: Answers): void {
    if (plan.created.length > 0) this.#intake.notice(plan.created);
    for (const [index, answer] of plan.answers.entries()) answers.set(waiting[index] as Waiting, answer);
  }

  /** Another process wrote the record or the job: the next round reads both again. */
  #again(waiting: readonly Waiting[], answers: Answers): void {
    for (const one of waiting) {
      one.races += 1;
      // The last enqueue wins, so a later one must not overtake this: it is decided again before any other.
      if (one.unique.rule.pace && one.races < MOST_RACES) continue;
      const answer = one.races >= MOST_RACES ? tooManyRaces(one.unique.job) : this.#rounds.add(one);
      answers.set(one, answer);
    }
  }

  /** A failed call may have written: a job that is tried again then finds itself in the record. */
  async #failed(left: readonly Waiting[], answers: Answers, error: unknown): Promise<void> {
    const { system, storeFailed } = this.#context;
    storeFailed(error, "enqueue");
    let most = 0;
    for (const one of left) {
      one.failures += 1;
      if (one.failures >= STORE_TRIES) answers.set(one, new EnqueueFailedError([one.unique.job], error));
      else most = Math.max(most, one.failures);
    }
    if (most > 0) await rest(system, backoff(most, BACKOFF));
  }

  /** Deletes due records that block no job any more; reschedules the others. */
  async clean(records: readonly RecordRow[], now: Instant): Promise<void> {
    const keepers = records.map(({ body }) => holdersIn(body));
    const holderIds = keepers.flat().flatMap(({ id, until }) => (until === null ? [id] : []));
    const rows = await rowsById(this.#context.store, holderIds);
    const units = records.map(({ key, version }, index): Unit => {
      const left = holdersLeft(keepers[index] as UniqueHolder[], (id) => rows.get(id) ?? null, now);
      const effect: Effect = left.length === 0 ? { delete: key } : { put: key, ...holderRecord(left, now) };
      return { when: [{ record: key, version }], effects: [effect] };
    });
    await commitUnits(this.#context, units);
  }
}

/** A job whose rule is kept in a record holds no key in the store: two of them may live at once. */
function withoutKey({ uniqueKey: _key, ...job }: NewJob): NewJob {
  return job;
}

/** Inside the transaction the record has changed, and outside it has not: the transaction itself has written it. */
function tooManyInTx({ id, type }: NewJob): CurfewError {
  const fix =
    "a transaction can enqueue one debounced or throttled job per key; pass all payloads to one enqueueMany";
  return new CurfewError(
    "invalid_state",
    `enqueue: the unique key of job ${id} (${type}) changed during this call; ${fix}`,
  );
}

function tooManyRaces({ id, type }: NewJob): CurfewError {
  return new CurfewError(
    "invalid_state",
    `enqueue: the unique key of job ${id} (${type}) changed ${MOST_RACES} times during this call; try again`,
  );
}
