/**
 * Rows for tests of the pure core. They are made by the real enqueue and moved by the real `decide`, so that a test
 * never decides on a row that could not exist.
 */

import { applied, decide } from "../../src/core/job/decide/decide.ts";
import type { Decision } from "../../src/core/job/decide/decision.ts";
import type { EventOf, JobEvent } from "../../src/core/job/decide/job-events.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  type NewJob,
  prepareJob,
  stamp,
} from "../../src/core/job/enqueue/envelope.ts";
import type { ErrorRecord, JobRow, Policy } from "../../src/core/job/job.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import type { LifecycleEventName } from "../../src/core/job/lifecycle-events.ts";
import { CLAIM_LEASE } from "../../src/core/job/policy/deadlines.ts";
import {
  LOCAL_WORKER,
  type PolicyOptions,
  parseSettings,
  resolvePolicy,
  type WorkerKind,
} from "../../src/core/job/policy/policy.ts";
import type { Random } from "../../src/core/random.ts";
import { type Duration, type Instant, parseDuration } from "../../src/core/time.ts";

/** Some instant in 2027; tests count from it. */
export const T0: Instant = 1_800_000_000_000;
export const ID = "01890000-0000-7000-8000-000000000001";
export const SECOND = 1_000;
export const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Jitter's middle: a factor of exactly 1. */
export const half: Random = () => 0.5;

export interface Said {
  /** What the definition says. */
  readonly settings?: PolicyOptions;
  readonly enqueue?: EnqueueOptions;
  readonly worker?: Partial<WorkerKind>;
  readonly context?: Partial<EnqueueContext>;
}

/** `T0` plus a duration. */
export function at(duration: Duration): Instant {
  return T0 + parseDuration(duration, "test", { zero: true });
}

export function policyOf(settings: PolicyOptions = {}, worker: Partial<WorkerKind> = {}): Policy {
  return resolvePolicy({ definition: parseSettings(settings, "") }, { ...LOCAL_WORKER, ...worker });
}

export function newJob({ settings = {}, enqueue = {}, context = {} }: Said = {}): NewJob {
  const definition = defineJob({ type: "test.job", ...settings });
  const template = prepareJob(definition, enqueue, {
    now: T0,
    nextId: () => ID,
    hash: (text) => text,
    ...context,
  });
  return stamp(template, "null", () => ID);
}

/** A job as it stands in a store right after its enqueue at `T0`. */
export function enqueued(said: Said = {}): JobRow {
  const {
    hasNewId: _fresh,
    image,
    needs,
    workflow,
    limitKey,
    fairKey,
    uniqueKey: _key,
    ...job
  } = newJob(said);
  return {
    ...job,
    ...image,
    fence: 0,
    rev: 0,
    claimedAt: null,
    worker: null,
    needs: needs ?? 0,
    workflow: workflow ?? null,
    limitKey: limitKey ?? null,
    fairKey: fairKey ?? null,
    policy: null,
    errors: null,
    progress: null,
    checkpoint: null,
    result: null,
  };
}

export function pending(said: Said = {}, changes: Partial<JobRow> = {}): JobRow {
  const row = enqueued(said);
  return { ...row, state: "pending", wake: "decide", needs: 1, ...changes };
}

/** Claimed at `T0`, its handler not entered. */
export function claimed(said: Said = {}, now: Instant = T0): JobRow {
  return step(enqueued(said), { type: "claim", lease: CLAIM_LEASE, salt: 7 }, now);
}

/** Its handler was entered at `T0`. */
export function running(said: Said = {}, now: Instant = T0): JobRow {
  return step(claimed(said, now), startEvent(said, now), now);
}

export function startEvent(said: Said = {}, now: Instant = T0): EventOf<"start"> {
  const layers = {
    enqueue: parseSettings(withoutUndefined(said.enqueue), "options"),
    definition: parseSettings(said.settings ?? {}, ""),
    engine: said.context?.engineSettings,
  };
  return { type: "start", policy: resolvePolicy(layers, { ...LOCAL_WORKER, ...said.worker }), upper: now };
}

function withoutUndefined(said: EnqueueOptions = {}): PolicyOptions {
  const { timeouts, retry, retention } = said;
  return { ...(timeouts && { timeouts }), ...(retry && { retry }), ...(retention && { retention }) };
}

export function failEvent(more: Partial<EventOf<"fail">> = {}): EventOf<"fail"> {
  return {
    type: "fail",
    error: { type: "Error", code: "handler_error", message: "no" },
    signalled: false,
    ...more,
  };
}

/** A failed first attempt, waiting for its second. */
export function retryable(said: Said = {}, now: Instant = at("1s")): JobRow {
  return step(running(said), failEvent(), now);
}

export function discarded(said: Said = {}, now: Instant = at("1s")): JobRow {
  return step(running(said), failEvent({ final: true }), now);
}

export type Accepted = Extract<Decision, { ok: true }>;

/** The decision, which must not be a rejection. */
export function accepted(decision: Decision): Accepted {
  if (!decision.ok) throw new Error(`rejected: ${decision.because}`);
  return decision;
}

export function decideOk(job: JobRow, event: JobEvent, now: Instant, random: Random = half): Accepted {
  return accepted(decide(job, event, now, random));
}

export function step(job: JobRow, event: JobEvent, now: Instant, random: Random = half): JobRow {
  return applied(job, decideOk(job, event, now, random));
}

export function namesOf(decision: Accepted): LifecycleEventName[] {
  return decision.events.map(({ name }) => name);
}

/** The error a decision puts on the job. */
export function errorOf(decision: Accepted): ErrorRecord {
  const error = decision.documents?.errors?.at(-1);
  if (!error) throw new Error("the decision kept no error");
  return error;
}
