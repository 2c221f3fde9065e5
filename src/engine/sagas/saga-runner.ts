import { type IdSource, idsBeside } from "../../core/ids.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import { TimeoutError } from "../../core/job/reasons.ts";
import type { SagaPlan } from "../../core/saga/saga.ts";
import type { SagaEffect } from "../../core/saga/saga-actions.ts";
import type { SagaRecord } from "../../core/saga/saga-record.ts";
import { attemptLimitOf, runStep, type SagaEvent, type StepOutcome } from "../../core/saga/step.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import { runInside } from "../../ports/ambient.ts";
import type { Effect, RecordKey, RecordRow, Unit } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { STALE_TRIES } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import type { Delivery, DeliveryLease } from "../dispatch/destination.ts";
import { sha256 } from "../runtime/sha256.ts";
import { announceStep, stepEvents } from "./announce-saga.ts";
import {
  mailKeyOf,
  messageRow,
  REPLIES,
  readRow,
  recordKeyOf,
  rowIdOf,
  SAGAS,
  type SagaName,
  sagaName,
  timeoutRow,
} from "./saga-addresses.ts";
import { writeOf } from "./write-record.ts";

const CONFLICT_PAUSE = 50;
/** How long a message waits if another process holds an earlier one. */
const FIRST_PAUSE = 100;
/** How long a reply is stored. */
const REPLY_KEPT = 3_600_000;

/** What the steps of all sagas of one engine share. */
export interface StepContext extends EngineContext {
  /** Loads a record, in one call with other requests of the same time. It is never older than the request. */
  loadRecord(key: RecordKey): Promise<RecordRow | null>;
  /** Announces jobs that a step enqueued. */
  noticeJobs(jobs: readonly NewJob[]): void;
  /** Wakes a caller of this process that waits for the reply to this message. */
  hintReply(message: string): void;
}

interface Loaded {
  readonly row: RecordRow | null;
  readonly record: SagaRecord | null;
}

/**
 * Delivers one claimed message or timeout to its saga: load, step, commit. The commit names the record's version and
 * the row's lease, and removes the row, so an event counts once even if it is delivered twice. No changeRecord: a
 * handler runs between read and write, and the lease may end during it.
 */
export async function deliver(
  context: StepContext,
  plan: SagaPlan,
  row: TimeoutRow,
  lease: DeliveryLease,
): Promise<Delivery> {
  const { saga, event } = readRow(row);
  for (let tries = 0; tries < STALE_TRIES; tries++) {
    // Both reads at once: if the record changes between them, the commit conflicts and this loop tries again.
    const [waitUntil, loaded] = await Promise.all([
      event.kind === "message" ? waitUntilFirst(context, saga, row) : null,
      load(context, saga),
    ]);
    if (waitUntil !== null) return { again: waitUntil };
    const outcome = await stepWithin(context, plan, saga, loaded.record, event, lease);
    if (outcome.kind === "ignored") {
      announceStep(context, saga, event, outcome, []);
      return "sent";
    }
    const now = context.clock.now();
    const step = unitOf(plan, saga, loaded, outcome, row, lease, now, context.nextId);
    const events = stepEvents(context.recorder, saga, event, outcome, now);
    const unit = events.length > 0 ? { ...step, effects: [...step.effects, ...events] } : step;
    const answer = await context.committer.commit(unit);
    if (answer.ok) {
      announceCommitted(context, saga, event, outcome, answer.revoked ?? []);
      return "done";
    }
    // The lease ended during the step: another process gets the row, and this step is discarded.
    if (answer.because === "lapsed") {
      context.counters.sagas.add("lapsed");
      return "done";
    }
    context.counters.sagas.add("conflicts");
  }
  return { again: context.clock.now() + CONFLICT_PAUSE };
}

/** Until when a message waits for earlier ones; null if it is the first of its mailbox. */
async function waitUntilFirst(
  context: StepContext,
  saga: SagaName,
  row: TimeoutRow,
): Promise<Instant | null> {
  const [first] = await context.store.timeouts.list({ saga: mailKeyOf(saga), isDead: false }, null, 1);
  if (!first || first.id === row.id) return null;
  const now = context.clock.now();
  return first.dueAt > now ? first.dueAt : now + FIRST_PAUSE;
}

async function load(context: StepContext, saga: SagaName): Promise<Loaded> {
  const row = await context.loadRecord(recordKeyOf(saga));
  return { row, record: row && SAGAS.read(row).body };
}

/**
 * Runs the handler within its limit (SEMANTICS 7.9). A handler that blocks the event loop also blocks the timer, so its
 * time is checked again before the commit.
 */
async function stepWithin(
  context: StepContext,
  plan: SagaPlan,
  { id }: SagaName,
  record: SagaRecord | null,
  event: SagaEvent,
  lease: DeliveryLease,
): Promise<StepOutcome> {
  const { system, clock, queues, calendars, settings, documentLimit, recorder } = context;
  // Timeouts, undos and plain jobs of a saga are in its home.
  const nextId = idsBeside(context.nextId, sagaName({ type: plan.type, id }));
  const limit = attemptLimitOf(plan, event, record) ?? Number.POSITIVE_INFINITY;
  const controller = new AbortController();
  const stop = () => controller.abort(lease.signal.reason);
  if (lease.signal.aborted) stop();
  else lease.signal.addEventListener("abort", stop, { once: true });
  const startedAt = system.monotonic();
  const overdue = () => new TimeoutError("execution", limit, system.monotonic() - startedAt, clock.now());
  const enqueue = {
    queueSettings: (queue: string) => queues.policyOf(queue),
    hash: sha256,
    sealing: context.sealing,
    engineSettings: settings,
    documentLimit,
    sharedFieldsOf: recorder.sharedFieldsOf,
    anchor: clock.anchor(),
  };
  try {
    const { signal } = controller;
    const untilSignal = () => Math.max(0, startedAt + limit - system.monotonic());
    const step = runInside({ untilSignal, signal }, () =>
      runStep({ plan, id, record, event, now: clock.now(), nextId, signal, enqueue, calendars }),
    );
    if (limit === Number.POSITIVE_INFINITY) return await step;
    const outcome = await endedWithin(system, limit, step, () => {
      const error = overdue();
      controller.abort(error);
      return error;
    });
    if (system.monotonic() - startedAt > limit) throw overdue();
    return outcome;
  } finally {
    lease.signal.removeEventListener("abort", stop);
  }
}

/** Settles as `work` does, or rejects after `limit` and ignores how `work` ends. */
function endedWithin<Value>(
  system: System,
  limit: number,
  work: Promise<Value>,
  onLimit: () => Error,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const timer = system.after(limit, () => reject(onLimit()), { keepAlive: true });
    work.finally(() => timer.cancel()).then(resolve, reject);
  });
}

type Counted = Exclude<StepOutcome, { kind: "ignored" }>;

function unitOf(
  plan: SagaPlan,
  saga: SagaName,
  { row: stored }: Loaded,
  outcome: Counted,
  row: TimeoutRow,
  lease: DeliveryLease,
  now: Instant,
  nextId: IdSource,
): Unit & { readonly effects: readonly Effect[] } {
  const key = recordKeyOf(saga);
  const written = outcome.kind === "stepped" ? writeOf(plan, outcome.record) : null;
  return {
    when: [
      { record: key, version: stored?.version ?? 0 },
      { timeout: row.id, owner: lease.owner },
    ],
    effects: [
      ...(written ? [SAGAS.put(sagaName(saga), written.body, written.wakeAt)] : []),
      { remove: row.id },
      ...outcome.effects.map((effect) => storedEffect(effect, saga, now, nextId)),
    ],
  };
}

function storedEffect(effect: SagaEffect, saga: SagaName, now: Instant, nextId: IdSource): Effect {
  if ("request" in effect) return { request: timeoutRow(effect.request, saga) };
  if ("revoke" in effect) return { revoke: { id: effect.revoke.id } };
  if ("enqueue" in effect) return { enqueue: effect.enqueue };
  if ("send" in effect) {
    const { send } = effect;
    return { request: messageRow(send, rowIdOf(send, nextId), now) };
  }
  const { to, value } = effect.reply;
  if ("saga" in to) {
    const message = { saga: to.saga, to: to.id, name: to.as, payload: value, replyTo: null };
    return { request: messageRow(message, rowIdOf(message, nextId), now) };
  }
  return REPLIES.put(to.message, { value: JSON.parse(value) as Json }, now + REPLY_KEPT);
}

/** Announces a committed step in this process. */
function announceCommitted(
  context: StepContext,
  saga: SagaName,
  event: SagaEvent,
  outcome: Counted,
  revoked: readonly Revoked[],
): void {
  const jobs = outcome.effects.flatMap((effect) => ("enqueue" in effect ? [effect.enqueue] : []));
  if (jobs.length > 0) context.noticeJobs(jobs);
  for (const effect of outcome.effects) {
    if ("reply" in effect && !("saga" in effect.reply.to)) context.hintReply(effect.reply.to.message);
  }
  announceStep(context, saga, event, outcome, revoked);
}
