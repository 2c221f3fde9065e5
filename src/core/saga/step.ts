import type { NamedCalendars } from "../calendar/business-calendar.ts";
import { CurfewError, refuse } from "../errors.ts";
import type { IdSource } from "../ids.ts";
import type { EnqueueContext } from "../job/enqueue/envelope.ts";
import { type Json, type Schema, toJsonText, validate } from "../schema.ts";
import type { Instant } from "../time.ts";
import { beginning, nextUndo } from "./compensation.ts";
import {
  checkMessageName,
  checkTimeoutName,
  checkUndoName,
  correlationFields,
  identityText,
} from "./message.ts";
import type { ErasedHandler, SagaContext, SagaOutlet, SagaPlan } from "./saga.ts";
import { type ActionsInput, SagaActions, type SagaEffect } from "./saga-actions.ts";
import { HANDLED_LIMIT, type ReplyAddress, type SagaRecord } from "./saga-record.ts";

/** A message or a timeout for a saga. */
export interface SagaEvent {
  readonly kind: "message" | "timeout" | "undo";
  readonly id: string;
  readonly name: string;
  readonly payload: Json;
  /** Who sent it; null for a timeout, and for a message whose sender wants no reply. */
  readonly sender: ReplyAddress | null;
}

export interface StepInput {
  readonly plan: SagaPlan;
  /** The correlation value as text. */
  readonly id: string;
  /** The stored record of the saga, completed or not; null if there is none. */
  readonly record: SagaRecord | null;
  readonly event: SagaEvent;
  readonly now: Instant;
  readonly nextId: IdSource;
  readonly signal: AbortSignal;
  /** The less specific sources and limits for jobs that the handler enqueues. */
  readonly enqueue: Omit<EnqueueContext, "now" | "nextId">;
  /** Business calendars that the handler may name. */
  readonly calendars?: NamedCalendars;
}

/**
 * `stepped`: the record and the effects to commit together. `not-found`: there is no saga for this message; the
 * effects are those of the hook. `ignored`: there is nothing to do.
 */
export type StepOutcome =
  | {
      readonly kind: "stepped";
      readonly isStart: boolean;
      readonly record: SagaRecord;
      readonly effects: readonly SagaEffect[];
    }
  | { readonly kind: "not-found"; readonly effects: readonly SagaEffect[] }
  | { readonly kind: "ignored"; readonly because: IgnoredBecause };

/**
 * `not-pending`: revoked, replaced or handled before. `handled`: the message came twice. `started`: a starting
 * message for a saga that has started and has no handler for it.
 */
export type IgnoredBecause = "no-saga" | "not-pending" | "handled" | "started";

/**
 * Runs the handler of one message or timeout, and returns what to commit. It stores nothing. Rejects if the handler
 * throws, returns nothing or changes the saga's identity (SEMANTICS 7.1, 7.4, 7.6).
 */
export async function runStep(input: StepInput): Promise<StepOutcome> {
  const { plan, record, event } = input;
  const live = record && record.completedAt === null ? record : null;
  if (event.kind === "timeout")
    return live ? fireTimeout(input, live) : { kind: "ignored", because: "no-saga" };
  if (event.kind === "undo") return live ? takeBack(input, live) : { kind: "ignored", because: "no-saga" };
  const schema = checkMessageName(plan, event.name);
  if (record?.handled.includes(event.id)) return { kind: "ignored", because: "handled" };
  if (live) {
    const handler = plan.on[event.name];
    // A starting message for a saga that has started does not start it again. Without a handler there is nothing to
    // do.
    if (!handler) return { kind: "ignored", because: "started" };
    return handle(input, live, handler, await parse(schema, event));
  }
  if (plan.startedBy.includes(event.name)) return start(input, await parse(schema, event));
  return reportNotFound(input, await parse(schema, event));
}

/** How long the handler of an event may run, in milliseconds; null for no limit (SEMANTICS 7.9). */
export function attemptLimitOf(plan: SagaPlan, event: SagaEvent, record: SagaRecord | null): number | null {
  const { standard, start, on, onTimeout, onUndo } = plan.attempt;
  if (event.kind === "undo")
    return onUndo[event.name] === undefined ? standard : (onUndo[event.name] ?? null);
  const isStart = event.kind === "message" && (record === null || record.completedAt !== null);
  const named =
    event.kind === "timeout"
      ? onTimeout[event.name]
      : isStart && plan.startedBy.includes(event.name)
        ? start
        : on[event.name];
  return named === undefined ? standard : named;
}

async function fireTimeout(input: StepInput, live: SagaRecord): Promise<StepOutcome> {
  const { plan, event } = input;
  if (!live.pending.some(({ id }) => id === event.id)) return { kind: "ignored", because: "not-pending" };
  const schema = checkTimeoutName(plan, event.name);
  const pending = live.pending.filter(({ id }) => id !== event.id);
  const handler = plan.onTimeout[event.name] as ErasedHandler;
  return handle(input, { ...live, pending }, handler, await parse(schema, event));
}

/** Runs the undo that was registered last. Any other is not its turn, or has run. */
async function takeBack(input: StepInput, live: SagaRecord): Promise<StepOutcome> {
  const { plan, event } = input;
  const undo = live.undos?.at(-1);
  if (!live.compensation || undo?.id !== event.id) return { kind: "ignored", because: "not-pending" };
  const schema = checkUndoName(plan, event.name);
  const pending = live.pending.filter(({ id }) => id !== event.id);
  const left = { ...live, pending, undos: live.undos?.slice(0, -1) ?? [] };
  const handler = plan.onUndo[event.name] as ErasedHandler;
  return handle(input, left, handler, await parse(schema, { ...event, payload: undo.payload }));
}

function parse(schema: Schema, { kind, name, payload }: SagaEvent): unknown {
  return validate(schema, payload, `${kind}.${name}`, "invalid_payload");
}

async function start(input: StepInput, message: unknown): Promise<StepOutcome> {
  const { plan, id, record, event, now, nextId } = input;
  const actions = new SagaActions(actionsInput(input, NEW_SAGA, event.sender));
  const { returned, effects } = await run(actions, () =>
    plan.start(message as never, actions.context() as never),
  );
  const { state, parsed } = await checkState(input, returned, "start");
  const named = correlationFields(plan, event.name, message, id);
  const fixed = named.filter((field) => fieldOf(state, field) === id);
  checkIdentity(plan, id, state, parsed, fixed, "start");
  const begun: SagaRecord = {
    state,
    schema: plan.version,
    generation: nextId(),
    startedAt: now,
    changedAt: now,
    completedAt: actions.isCompleted ? now : null,
    pending: [...actions.pending],
    handled: remember(record?.handled ?? [], event),
    fixed,
    starter: event.sender,
    ...(actions.undos.length > 0 && { undos: actions.undos }),
  };
  return { kind: "stepped", isStart: true, ...settled(begun, effects, actions, now) };
}

async function handle(
  input: StepInput,
  live: SagaRecord,
  handler: ErasedHandler,
  payload: unknown,
): Promise<StepOutcome> {
  const { plan, id, event, now } = input;
  const where = `${FIELDS[event.kind]}.${event.name}`;
  const current = await readState(plan, live, id);
  const actions = new SagaActions(actionsInput(input, live, live.starter));
  const context: SagaContext = actions.context();
  const { returned, effects } = await run(actions, () =>
    handler(current as never, payload as never, context as never),
  );
  const { state, parsed } = await checkState(input, returned, where);
  checkIdentity(plan, id, state, parsed, live.fixed, where);
  const { undos: _before, ...kept } = live;
  const next: SagaRecord = {
    ...kept,
    state,
    schema: plan.version,
    changedAt: now,
    completedAt: actions.isCompleted ? now : null,
    pending: [...actions.pending],
    handled: event.kind === "message" ? remember(live.handled, event) : live.handled,
    ...(actions.undos.length > 0 && { undos: actions.undos }),
  };
  return { kind: "stepped", isStart: false, ...settled(next, effects, actions, now) };
}

const FIELDS = { message: "on", timeout: "onTimeout", undo: "onUndo" } as const;
const NEW_SAGA = { pending: [] };

/** A saga that is being taken back waits for its next undo, and for nothing else. */
function settled(
  record: SagaRecord,
  effects: readonly SagaEffect[],
  { isTakenBack }: SagaActions,
  now: Instant,
): { readonly record: SagaRecord; readonly effects: readonly SagaEffect[] } {
  if (!isTakenBack && !record.compensation) return { record, effects };
  const compensation = record.compensation ?? beginning("handler", now);
  // Another undo is the next one now, so the one that failed before waits for its turn again.
  const isStuck = compensation.failed?.undo === record.undos?.at(-1)?.id;
  return nextUndo(
    { ...record, compensation: isStuck ? compensation : { ...compensation, failed: null } },
    effects,
    now,
  );
}

async function reportNotFound(input: StepInput, payload: unknown): Promise<StepOutcome> {
  const { plan, event } = input;
  const { notFound } = plan;
  if (!notFound) return { kind: "not-found", effects: [] };
  const actions = new SagaActions(actionsInput(input, NEW_SAGA, null));
  const outlet: SagaOutlet = actions.outlet();
  const { effects } = await run(actions, () =>
    notFound({ name: event.name, payload } as never, outlet as never),
  );
  return { kind: "not-found", effects };
}

async function run(
  actions: SagaActions,
  handler: () => unknown,
): Promise<{ returned: unknown; effects: SagaEffect[] }> {
  try {
    const returned = await handler();
    return { returned, effects: await actions.end() };
  } catch (error) {
    actions.drop();
    throw error;
  }
}

function actionsInput(
  input: StepInput,
  { pending, undos = [], compensation }: Pick<SagaRecord, "pending" | "undos" | "compensation">,
  starter: ReplyAddress | null,
): ActionsInput {
  const { event, record: _record, ...rest } = input;
  const compensating = compensation ? (event.kind === "undo" ? "undo" : "other") : null;
  return { ...rest, eventId: event.id, sender: event.sender, pending, starter, undos, compensating };
}

/** The stored state as the handler sees it: migrated to this version of the definition, then parsed. */
async function readState(plan: SagaPlan, record: SagaRecord, id: string): Promise<unknown> {
  if (record.schema > plan.version) {
    throw new CurfewError(
      "newer_state",
      `saga ${plan.type} ${show(id)}: its state has version ${record.schema} and this process knows ${plan.version}; deploy the newer definition`,
    );
  }
  const copy: Json = structuredClone(record.state) as Json;
  const stored = record.schema < plan.version ? await plan.migrate?.(copy, record.schema) : copy;
  return validate(plan.state, stored, "state", "invalid_saga_state");
}

/** What the handler returned, as it is stored and as its schema parses it. */
async function checkState({ plan, enqueue }: StepInput, returned: unknown, where: string) {
  if (returned === undefined) {
    throw refuse("no_next_state", where, returned, "return the next state, or saga.complete(state)");
  }
  const parsed = await validate(plan.state, returned, "state", "invalid_saga_state");
  return { state: JSON.parse(toJsonText(returned, "state", enqueue.documentLimit)) as Json, parsed };
}

/** SEMANTICS 7.6: messages could no longer find a saga that changed its identity. */
function checkIdentity(
  plan: SagaPlan,
  id: string,
  state: Json,
  parsed: unknown,
  fixed: readonly string[],
  where: string,
): void {
  const fix = `keep ${show(id)}: the id of a saga never changes`;
  if (plan.identify) {
    const found = identityText(plan.identify(parsed as never), "identify");
    if (found !== id) throw refuse("identity_changed", `${where}: identify(state)`, found, fix);
  }
  for (const field of fixed) {
    const found = fieldOf(state, field);
    if (found !== id) throw refuse("identity_changed", `${where}: state.${field}`, found, fix);
  }
}

function fieldOf(state: Json, field: string): string | undefined {
  if (typeof state !== "object" || state === null || !Object.hasOwn(state, field)) return undefined;
  return String((state as Record<string, Json>)[field]);
}

function remember(handled: readonly string[], { id }: SagaEvent): string[] {
  return [...handled.slice(1 - HANDLED_LIMIT), id];
}

function show(id: string): string {
  return JSON.stringify(id);
}
