import type { NamedCalendars } from "../calendar/business-calendar.ts";
import { refuse, refuseUnknownKeys } from "../errors.ts";
import { createIdSource } from "../ids.ts";
import type { NewJob } from "../job/enqueue/envelope.ts";
import { type Json, toJsonText, validate } from "../schema.ts";
import { type Instant, type InstantInput, parseInstant } from "../time.ts";
import { checkMessageName, checkTimeoutName, checkUndoName, correlationOf, identityText } from "./message.ts";
import type { PendingTimeout, RegisteredUndo, SagaPlan } from "./saga.ts";
import type { SagaEffect } from "./saga-actions.ts";
import type { SagaRecord } from "./saga-record.ts";
import { runStep, type SagaEvent } from "./step.ts";

export interface StepOptions {
  /** The time of the step. Default 2030-01-01T00:00:00Z, where the test engine also starts. */
  readonly now?: InstantInput;
  /** The id of the saga, if neither the message nor `identify` gives it. */
  readonly id?: string;
  /** Business calendars that a handler may name. */
  readonly calendars?: NamedCalendars;
}

/** What a step would commit. Pass it to the next step as the state, so that the next step knows what is pending. */
export interface StepResult<State = unknown> {
  readonly state: State;
  readonly completed: boolean;
  /** `"ignored"` and `"not-found"` mean that no handler of the saga ran. */
  readonly outcome: "stepped" | "not-found" | "ignored";
  readonly requested: readonly RequestedTimeout[];
  /** Timeouts that were pending and are revoked, including those of a completed saga. */
  readonly revoked: readonly PendingTimeout[];
  readonly enqueued: readonly EnqueuedBySaga[];
  readonly sent: readonly SentBySaga[];
  readonly replied: readonly Json[];
  /** All that is pending after the step; of a saga that is compensated, its next undo. */
  readonly pending: readonly PendingTimeout[];
  /** How the steps so far would be taken back, the newest last. */
  readonly undos: readonly RegisteredUndo[];
  readonly compensating: boolean;
  readonly [RECORD]: SagaRecord | null;
}

export interface RequestedTimeout extends PendingTimeout {
  readonly payload: Json;
  readonly dueAt: Instant;
}

export interface EnqueuedBySaga {
  readonly id: string;
  readonly type: string;
  readonly payload: Json;
  readonly job: NewJob;
}

export interface SentBySaga {
  readonly id: string;
  readonly saga: string;
  readonly to: string;
  readonly name: string;
  readonly payload: Json;
}

const RECORD: unique symbol = Symbol("curfew.saga.record");
const START_AT = "2030-01-01T00:00:00Z";

/** The untyped input of `saga.step()`. */
interface LooseEvent {
  readonly message?: string;
  readonly timeout?: string;
  readonly undo?: string;
  readonly payload?: unknown;
}

/** Runs one step of a saga in memory, for `saga.step()` (SEMANTICS 7, without a store). */
export async function tryStep<State>(
  plan: SagaPlan,
  given: State | StepResult<State> | null,
  said: LooseEvent,
  options: StepOptions = {},
): Promise<StepResult<State>> {
  refuseUnknownKeys(options, "options", ["now", "id", "calendars"]);
  const { calendars } = options;
  const now = parseInstant(options.now ?? START_AT, "options.now");
  const before = recordOf(plan, given, now);
  const nextId = idSource(before, now);
  const event = await readEvent(plan, said, nextId, before);
  const id = options.id ?? (await idOf(plan, event, before));
  const record = event.kind === "timeout" ? withPending(before, event) : before;
  const signal = new AbortController().signal;
  // Nothing is stored, so a unique key may be long.
  const hash = (text: string) => text;
  const outcome = await runStep({
    plan,
    id,
    record,
    event,
    now,
    nextId,
    signal,
    enqueue: { hash },
    ...(calendars && { calendars }),
  });
  const after = outcome.kind === "stepped" ? outcome.record : before;
  const effects = outcome.kind === "ignored" ? [] : outcome.effects;
  return { ...describe<State>(after, effects), outcome: outcome.kind };
}

function recordOf<State>(
  plan: SagaPlan,
  given: State | StepResult<State> | null,
  now: Instant,
): SagaRecord | null {
  if (given === null || given === undefined) return null;
  if (typeof given === "object" && RECORD in given) return given[RECORD];
  return {
    state: JSON.parse(toJsonText(given, "state")),
    schema: plan.version,
    generation: "step",
    startedAt: now,
    changedAt: now,
    completedAt: null,
    pending: [],
    handled: [],
    fixed: [],
    starter: { message: "starter" },
  };
}

async function readEvent(
  plan: SagaPlan,
  said: LooseEvent,
  nextId: () => string,
  before: SagaRecord | null,
): Promise<SagaEvent> {
  refuseUnknownKeys(said, "event", ["message", "timeout", "undo", "payload"]);
  const { message, timeout, undo, payload = {} } = said;
  if (undo !== undefined) {
    checkUndoName(plan, undo);
    const last = before?.undos?.at(-1);
    const id = last?.name === undo ? last.id : nextId();
    return { kind: "undo", id, name: undo, payload: null, sender: null };
  }
  if ((message === undefined) === (timeout === undefined)) {
    throw refuse("invalid_option", "event", said, "name a message, a timeout or an undo");
  }
  const text = JSON.parse(toJsonText(payload, "event.payload")) as Json;
  if (message !== undefined) {
    checkMessageName(plan, message);
    const id = nextId();
    return { kind: "message", id, name: message, payload: text, sender: { message: id } };
  }
  const name = timeout as string;
  checkTimeoutName(plan, name);
  const known = before?.pending.find((pending) => pending.name === name);
  return { kind: "timeout", id: known?.id ?? nextId(), name, payload: text, sender: null };
}

async function idOf(plan: SagaPlan, event: SagaEvent, before: SagaRecord | null): Promise<string> {
  if (event.kind === "message") {
    const schema = checkMessageName(plan, event.name);
    const parsed = await validate(schema, event.payload, "event.payload", "invalid_payload");
    return correlationOf(plan, event.name, parsed);
  }
  if (!before) return "saga";
  const [field] = before.fixed;
  if (field !== undefined) return String((before.state as Record<string, Json>)[field]);
  if (!plan.identify) return "saga";
  const parsed = await validate(plan.state, before.state, "state", "invalid_saga_state");
  return identityText(plan.identify(parsed as never), "identify");
}

/** A test that starts from a bare state has requested nothing, but may fire any timeout. */
function withPending(before: SagaRecord | null, { id, name }: SagaEvent): SagaRecord | null {
  if (!before || before.pending.some((pending) => pending.id === id)) return before;
  return { ...before, pending: [...before.pending, { id, name, key: null }] };
}

function describe<State>(
  record: SagaRecord | null,
  effects: readonly SagaEffect[],
): Omit<StepResult<State>, "outcome"> {
  const json = (text: string) => JSON.parse(text) as Json;
  return {
    state: (record?.state ?? null) as State,
    completed: record !== null && record.completedAt !== null,
    requested: effects.flatMap((effect) => {
      if (!("request" in effect)) return [];
      const { id, name, key, dueAt, payload } = effect.request;
      return [{ id, name, key, dueAt, payload: json(payload) }];
    }),
    revoked: effects.flatMap((effect) => ("revoke" in effect ? [effect.revoke] : [])),
    enqueued: effects.flatMap((effect) => {
      if (!("enqueue" in effect)) return [];
      const { id, type, payload } = effect.enqueue;
      return [{ id, type, payload: json(payload), job: effect.enqueue }];
    }),
    sent: effects.flatMap((effect) => {
      if (!("send" in effect)) return [];
      const { id, saga, to, name, payload } = effect.send;
      return [{ id, saga, to, name, payload: json(payload) }];
    }),
    replied: effects.flatMap((effect) => ("reply" in effect ? [json(effect.reply.value)] : [])),
    pending: record?.pending ?? [],
    undos: record?.undos ?? [],
    compensating: record?.compensation !== undefined && record.completedAt === null,
    [RECORD]: record,
  };
}

/** Ids without randomness: a test sees the same ones each time, and never one that is already pending. */
function idSource(before: SagaRecord | null, now: Instant): () => string {
  const taken = new Set([...(before?.pending.map(({ id }) => id) ?? []), ...(before?.handled ?? [])]);
  const next = createIdSource(
    () => now,
    (bytes) => bytes.fill(0),
  );
  return () => {
    let id = next();
    while (taken.has(id)) id = next();
    return id;
  };
}
