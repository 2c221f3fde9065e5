import { refuse } from "../../core/errors.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  type JobTemplate,
  type NewJob,
  prepareJob,
  preparePayload,
  stamp,
  stampAny,
} from "../../core/job/enqueue/envelope.ts";
import { checkMany } from "../../core/job/enqueue/many.ts";
import { isWhileAlive, replaces, type UniqueRule } from "../../core/job/enqueue/unique-key.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { assertDefinition, type JobDefinition } from "../../core/job/job-definition.ts";
import { BATCH_LIMIT, type Enqueued } from "../../ports/store.ts";
import { CHARACTERS_PER_TURN } from "../../ports/system.ts";
import { checkTx } from "../commit/check-tx.ts";
import type { EngineContext } from "../context.ts";
import { JobHandle } from "../operations/job-handle.ts";
import { sha256 } from "../runtime/sha256.ts";
import { DuplicateJobError } from "./duplicate-job-error.ts";
import { foundOr, type Intake } from "./enqueue-batches.ts";
import { QueueFullError } from "./queue-full-error.ts";
import { traced } from "./trace-enqueue.ts";
import type { UniqueJobs } from "./unique-jobs.ts";

/** Checks enqueues and passes them to the intake, or to the caller's transaction. */
export class Enqueuer {
  readonly #context: EngineContext;
  readonly #intake: Intake;
  readonly #unique: UniqueJobs;
  /** Resolves when the settings are new enough. Undefined if they are. */
  readonly #fresh: () => Promise<void> | undefined;

  constructor(
    context: EngineContext,
    intake: Intake,
    unique: UniqueJobs,
    fresh: () => Promise<void> | undefined,
  ) {
    this.#context = context;
    this.#intake = intake;
    this.#unique = unique;
    this.#fresh = fresh;
  }

  async enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: Input,
    options: EnqueueOptions | undefined,
    parent: JobRow | undefined,
    isRequested = false,
  ): Promise<JobHandle<unknown>> {
    // A handler that finishes while the engine drains may still enqueue.
    if (!parent) this.#context.assertOpen();
    const stale = this.#fresh();
    if (stale) await stale;
    const { tracing } = this.#context;
    if (!tracing) return this.#enqueueOne(definition, payload, options, parent, isRequested);
    assertDefinition(definition, "definition");
    return traced(tracing, definition, options, 1, (more) =>
      this.#enqueueOne(definition, payload, more, parent, isRequested),
    );
  }

  async #enqueueOne<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: Input,
    options: EnqueueOptions | undefined,
    parent: JobRow | undefined,
    isRequested: boolean,
  ): Promise<JobHandle<unknown>> {
    const context = this.context(parent);
    const template = prepareJob(definition, options, isRequested ? { ...context, isRequested } : context);
    const text = await preparePayload(definition, payload, this.#context.documentLimit);
    if (template.unique !== undefined) {
      const one = [{ text, given: payload }];
      const [handle] = await this.#enqueueUnique(template, template.unique, one, options?.tx, true);
      return handle as JobHandle<unknown>;
    }
    const job = stamp(template, text, this.#context.nextId, payload);
    const [answer] = await this.#store([job], options?.tx);
    return this.#handle(job.id, answer as Enqueued);
  }

  async enqueueMany<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payloads: readonly Input[],
    options: Omit<EnqueueOptions, "id"> | undefined,
  ): Promise<JobHandle<unknown>[]> {
    this.#context.assertOpen();
    const stale = this.#fresh();
    if (stale) await stale;
    checkMany(payloads, options);
    const { tracing } = this.#context;
    if (!tracing) return this.#enqueueAll(definition, payloads, options);
    assertDefinition(definition, "definition");
    return traced(tracing, definition, options, payloads.length, (more) =>
      this.#enqueueAll(definition, payloads, more),
    );
  }

  async #enqueueAll<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payloads: readonly Input[],
    options: Omit<EnqueueOptions, "id"> | undefined,
  ): Promise<JobHandle<unknown>[]> {
    const template = prepareJob(definition, options, this.context(undefined));
    const { documentLimit, nextId, system } = this.#context;
    const texts: string[] = [];
    let written = 0;
    for (const payload of payloads) {
      const prepared = preparePayload(definition, payload, documentLimit);
      const text = typeof prepared === "string" ? prepared : await prepared;
      texts.push(text);
      written += text.length;
      if (written < CHARACTERS_PER_TURN) continue;
      written = 0;
      await new Promise<void>((resolve) => system.soon(resolve));
    }
    if (template.unique !== undefined) {
      const many = texts.map((text, index) => ({ text, given: payloads[index] }));
      return this.#enqueueUnique(template, template.unique, many, options?.tx, false);
    }
    const jobs = texts.map((text, index) => stamp(template, text, nextId, payloads[index]));
    const answers = await this.#store(jobs, options?.tx);
    return jobs.map((job, index) => this.#handle(job.id, answers[index] as Enqueued));
  }

  /** Never rejects for one taken key among many jobs: each handle says whether it is a duplicate. */
  async #enqueueUnique(
    template: JobTemplate,
    rule: UniqueRule,
    payloads: readonly { readonly text: string; readonly given: unknown }[],
    tx: unknown,
    mayReject: boolean,
  ): Promise<JobHandle<unknown>[]> {
    const { nextId, random } = this.#context;
    const jobs = payloads.map(({ text, given }) => stampAny(template, text, nextId, given));
    if (this.#context.admit) await this.#context.admit(jobs);
    let answers: Enqueued[];
    const checking = tx === undefined ? this.#context.schemas.check(jobs) : undefined;
    if (checking) await checking;
    if (tx === undefined) {
      answers = await this.#unique.enqueue(
        jobs.map((job) => ({ job: job.hasNewId ? job : foundOr(job, random), rule })),
      );
    } else {
      refuseOutsideTx(rule);
      answers = rule.pace ? await this.#storePaced(jobs, rule, tx) : await this.#storeAdmitted(jobs, tx);
    }
    return jobs.map((job, index) => {
      const answer = answers[index] as Enqueued;
      if (mayReject && rule.onConflict === "reject" && typeof answer === "object")
        throw new DuplicateJobError(job.type, answer.duplicate);
      return this.#handle(job.id, answer);
    });
  }

  #storePaced(jobs: readonly NewJob[], rule: UniqueRule, tx: unknown): Promise<Enqueued[]> {
    const { store, random } = this.#context;
    checkTx(store, tx);
    return this.#unique.enqueueWithin(
      jobs.map((job) => ({ job: job.hasNewId ? job : foundOr(job, random), rule })),
      tx,
    );
  }

  /** A caller's transaction may be rolled back, so its jobs share no store call and are not announced. */
  #store(stamped: readonly NewJob[], tx: unknown): Promise<Enqueued[]> {
    const checking = this.#context.schemas.check(stamped);
    return checking ? checking.then(() => this.#storeChecked(stamped, tx)) : this.#storeChecked(stamped, tx);
  }

  #storeChecked(stamped: readonly NewJob[], tx: unknown): Promise<Enqueued[]> {
    const waiting = this.#context.admit?.(stamped);
    return waiting ? waiting.then(() => this.#storeAdmitted(stamped, tx)) : this.#storeAdmitted(stamped, tx);
  }

  #storeAdmitted(stamped: readonly NewJob[], tx: unknown): Promise<Enqueued[]> {
    const { store, random } = this.#context;
    const jobs = stamped.every(({ hasNewId }) => hasNewId)
      ? stamped
      : stamped.map((job) => (job.hasNewId ? job : foundOr(job, random)));
    if (tx === undefined) return this.#intake.enqueue(jobs);
    checkTx(store, tx);
    if (jobs.length > BATCH_LIMIT) {
      throw refuse(
        "invalid_limit",
        "payloads",
        jobs.length,
        `enqueue at most ${BATCH_LIMIT} jobs in one call with tx`,
      );
    }
    return this.#storeWithin(jobs, tx);
  }

  /** A transaction may be rolled back, so no job is dropped for it: a full queue rejects. */
  async #storeWithin(jobs: readonly NewJob[], tx: unknown): Promise<Enqueued[]> {
    const { store, clock, queues } = this.#context;
    const bounded = this.#intake.bounded(jobs);
    const answers = await store.jobs.enqueue(jobs, { now: clock.now(), tx, ...bounded });
    const refused = jobs.filter((_, index) => answers[index] === "full");
    const first = refused[0];
    if (!first) return answers;
    const ids = refused.map(({ id }) => id);
    throw new QueueFullError(first.queue, queues.depthOf(first.queue)?.most ?? 0, ids);
  }

  #handle(id: JobId, answer: Enqueued): JobHandle<unknown> {
    if (typeof answer === "object") return new JobHandle(this.#context, answer.duplicate, true);
    return new JobHandle(this.#context, id, answer === "exists");
  }

  context(parent: JobRow | undefined): EnqueueContext {
    const { clock, recorder } = this.#context;
    return {
      ...enqueueContext(this.#context, clock.now()),
      anchor: clock.anchor(),
      sharedFieldsOf: recorder.sharedFieldsOf,
      ...(parent && { parent: { id: parent.id, totalAt: parent.totalAt } }),
    };
  }
}

/** What an enqueue at this instant needs to know of the engine. */
export function enqueueContext(context: EngineContext, now: number): EnqueueContext {
  const { nextId, queues, settings, documentLimit, sealing, tenant } = context;
  return {
    now,
    nextId,
    hash: sha256,
    sealing,
    queueSettings: (queue) => queues.policyOf(queue),
    engineSettings: settings,
    tenant: tenant ?? undefined,
    documentLimit,
  };
}

/** Refuses rules that must read other jobs first: a transaction cannot wait for their changes. */
function refuseOutsideTx(rule: UniqueRule): void {
  if (rule.pace) return;
  const fix = 'with tx a job is unique while it lives, and onConflict is "ignore" or "reject"';
  if (!isWhileAlive(rule)) {
    const field = rule.period === null ? "states" : "period";
    throw refuse("invalid_option", `options.unique.${field}`, rule.period ?? rule.states, fix);
  }
  if (replaces(rule)) throw refuse("invalid_option", "options.unique.onConflict", rule.onConflict, fix);
}
