import type { NewJob } from "../../core/job/envelope.ts";
import { TimeoutError } from "../../core/job/reasons.ts";
import type { SagaPlan } from "../../core/saga/saga.ts";
import type { SagaEffect } from "../../core/saga/saga-actions.ts";
import type { SagaRecord } from "../../core/saga/saga-record.ts";
import { attemptLimitOf, runStep, type SagaEvent, type StepOutcome } from "../../core/saga/step.ts";
import type { Json } from "../../core/schema.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Effect, RecordKey, RecordRow, Unit } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { STALE_TRIES } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import type { Delivery, DeliveryLease } from "../dispatch/destination.ts";
import { announceStep, stepEvents } from "./announce-saga.ts";
import {
  mailKeyOf,
  messageRow,
  REPLIES,
  readRow,
  recordKeyOf,
  SAGAS,
  type SagaName,
  sagaName,
  timeoutRow,
} from "./saga-addresses.ts";

const CONFLICT_PAUSE = 50;
/** How long a message waits for one before it that another process holds. */
const HEAD_PAUSE = 100;
const SHORTEST_RETENTION = 60_000;
/** How long a reply waits to be fetched. */
const REPLY_KEPT = 3_600_000;

/** What the steps of all sagas of one engine share. */
export interface RunnerParts extends EngineContext {
  /** Loads a record with others that are asked for at the same time; the answer is never older than the request. */
  loadRecord(key: RecordKey): Promise<RecordRow | null>;
  /** Tells the process of jobs that a step has enqueued. */
  noticeJobs(jobs: readonly NewJob[]): void;
  /** Somebody in this process may be waiting for the reply to this message. */
  hintReply(message: string): void;
}

interface Loaded {
  readonly row: RecordRow | null;
  readonly record: SagaRecord | null;
}

/**
 * Delivers one claimed message or timeout to its saga: load, step, commit. The commit names the version of the record
 * and the lease on the row, and removes the row with them, so an event counts once however often it is delivered. No
 * changeRecord: a handler runs between read and write, and the lease may lapse meanwhile.
 */
export async function deliver(
  parts: RunnerParts,
  plan: SagaPlan,
  row: TimeoutRow,
  hold: DeliveryLease,
): Promise<Delivery> {
  const { saga, event } = readRow(row);
  for (let tries = 0; tries < STALE_TRIES; tries++) {
    // Both at once: a message that is first and a record that has changed meanwhile end in a conflict, and in another try.
    const [waits, loaded] = await Promise.all([
      event.kind === "message" ? waitsFor(parts, saga, row) : null,
      load(parts, saga),
    ]);
    if (waits !== null) return { again: waits };
    const outcome = await stepWithin(parts, plan, saga, loaded.record, event, hold);
    if (outcome.kind === "ignored") {
      announceStep(parts, saga, event, outcome, []);
      return "sent";
    }
    const now = parts.clock.now();
    const step = unitOf(plan, saga, loaded, outcome, row, hold, now, parts.nextId);
    const told = stepEvents(parts.recorder, saga, event, outcome, now);
    const unit = told.length > 0 ? { ...step, effects: [...step.effects, ...told] } : step;
    const answer = await parts.committer.commit(unit);
    if (answer.ok) {
      follow(parts, saga, event, outcome, answer.revoked ?? []);
      return "done";
    }
    // The lease ran out during the step: another process has the row or will have it, and nothing of this step counts.
    if (answer.because === "lapsed") {
      parts.counters.sagas.add("lapsed");
      return "done";
    }
    parts.counters.sagas.add("conflicts");
  }
  return { again: parts.clock.now() + CONFLICT_PAUSE };
}

/** Until when a message waits for those that arrived before it; null for the first of its mailbox. */
async function waitsFor(parts: RunnerParts, saga: SagaName, row: TimeoutRow): Promise<Instant | null> {
  const [head] = await parts.store.timeouts.list({ saga: mailKeyOf(saga), isDead: false }, null, 1);
  if (!head || head.id === row.id) return null;
  const now = parts.clock.now();
  return head.dueAt > now ? head.dueAt : now + HEAD_PAUSE;
}

async function load(parts: RunnerParts, saga: SagaName): Promise<Loaded> {
  const row = await parts.loadRecord(recordKeyOf(saga));
  return { row, record: row && SAGAS.read(row).body };
}

/**
 * Runs the handler within its limit (SEMANTICS 7.9). A handler that blocks the loop keeps the timer from firing, so its
 * time is measured again when it has ended: it is judged before the commit.
 */
async function stepWithin(
  parts: RunnerParts,
  plan: SagaPlan,
  { id }: SagaName,
  record: SagaRecord | null,
  event: SagaEvent,
  hold: DeliveryLease,
): Promise<StepOutcome> {
  const { system, clock, nextId, queues, settings, documentLimit, recorder } = parts;
  const limit = attemptLimitOf(plan, event, record) ?? Number.POSITIVE_INFINITY;
  const controller = new AbortController();
  const stop = () => controller.abort(hold.signal.reason);
  if (hold.signal.aborted) stop();
  else hold.signal.addEventListener("abort", stop, { once: true });
  const startedAt = system.monotonic();
  const overdue = () => new TimeoutError("execution", limit, system.monotonic() - startedAt, clock.now());
  const enqueue = {
    queueSettings: (queue: string) => queues.policyOf(queue),
    engineSettings: settings,
    documentLimit,
    sharedFieldsOf: recorder.sharedFieldsOf,
    anchor: clock.anchor(),
  };
  try {
    const { signal } = controller;
    const step = runStep({ plan, id, record, event, now: clock.now(), nextId, signal, enqueue });
    if (limit === Number.POSITIVE_INFINITY) return await step;
    const outcome = await endedWithin(system, limit, step, () => {
      const error = overdue();
      controller.abort(error);
      return error;
    });
    if (system.monotonic() - startedAt > limit) throw overdue();
    return outcome;
  } finally {
    hold.signal.removeEventListener("abort", stop);
  }
}

/** The promise's own end, or a rejection when the time is up; whatever it does afterwards is nobody's concern. */
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
  hold: DeliveryLease,
  now: Instant,
  nextId: () => string,
): Unit & { readonly effects: readonly Effect[] } {
  const key = recordKeyOf(saga);
  const written = outcome.kind === "stepped" ? writeOf(plan, outcome.record) : null;
  return {
    when: [
      { record: key, version: stored?.version ?? 0 },
      { timeout: row.id, owner: hold.owner },
    ],
    effects: [
      ...(written ? [SAGAS.put(sagaName(saga), written.body, written.wakeAt)] : []),
      { remove: row.id },
      ...outcome.effects.map((effect) => storedEffect(effect, saga, now, nextId)),
    ],
  };
}

/**
 * A completed saga is kept for its retention, so that a message that comes again is recognised; for a minute at least,
 * without its state if nothing was to be kept: a sender that repeats itself after a lost reply does so within moments.
 */
export function writeOf(
  { retention }: Pick<SagaPlan, "retention">,
  record: SagaRecord,
): { readonly body: SagaRecord; readonly wakeAt: Instant | null } {
  const { completedAt } = record;
  if (completedAt === null) return { body: record, wakeAt: null };
  const body = retention === 0 ? { ...record, state: null } : record;
  return { body, wakeAt: completedAt + Math.max(retention, SHORTEST_RETENTION) };
}

function storedEffect(effect: SagaEffect, saga: SagaName, now: Instant, nextId: () => string): Effect {
  if ("request" in effect) return { request: timeoutRow(effect.request, saga) };
  if ("revoke" in effect) return { revoke: { id: effect.revoke.id } };
  if ("enqueue" in effect) return { enqueue: effect.enqueue };
  if ("send" in effect) return { request: messageRow(effect.send, effect.send.id, now) };
  const { to, value } = effect.reply;
  if ("saga" in to) {
    const message = { saga: to.saga, to: to.id, name: to.as, payload: value, replyTo: null };
    return { request: messageRow(message, nextId(), now) };
  }
  return REPLIES.put(to.message, { value: JSON.parse(value) as Json }, now + REPLY_KEPT);
}

/** What the process itself has to know of a committed step. */
function follow(
  parts: RunnerParts,
  saga: SagaName,
  event: SagaEvent,
  outcome: Counted,
  revoked: readonly Revoked[],
): void {
  const jobs = outcome.effects.flatMap((effect) => ("enqueue" in effect ? [effect.enqueue] : []));
  if (jobs.length > 0) parts.noticeJobs(jobs);
  for (const effect of outcome.effects) {
    if ("reply" in effect && !("saga" in effect.reply.to)) parts.hintReply(effect.reply.to.message);
  }
  announceStep(parts, saga, event, outcome, revoked);
}
