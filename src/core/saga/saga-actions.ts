import type { NamedCalendars } from "../calendar/business-calendar.ts";
import { refuse, refuseUnknownKeys, show } from "../errors.ts";
import { placedId } from "../home/place-job.ts";
import type { IdSource } from "../ids.ts";
import {
  type EnqueueContext,
  type EnqueueOptions,
  type JobTemplate,
  type NewJob,
  prepareJob,
  preparePayload,
  stamp,
} from "../job/enqueue/envelope.ts";
import type { JobDefinition } from "../job/job-definition.ts";
import { TimeoutError } from "../job/reasons.ts";
import { type Json, type KeepsLiterals, toJsonText, validate } from "../schema.ts";
import type { Instant } from "../time.ts";
import { parseWhen, type When, wallClockOf } from "../timeout/when.ts";
import { checkMessageName, checkTimeoutName, checkUndoName, prepareMessage } from "./message.ts";
import {
  type PendingTimeout,
  planOf,
  type RegisteredUndo,
  type RequestOptions,
  type SagaContext,
  type SagaOutlet,
  type SagaPlan,
  type SendOptions,
} from "./saga.ts";
import { PENDING_LIMIT, type ReplyAddress, UNDO_LIMIT } from "./saga-record.ts";

/** A timeout to store with the step. */
export interface TimeoutRequest extends PendingTimeout {
  readonly dueAt: Instant;
  /** JSON text. */
  readonly payload: string;
  /** What `dueAt` was resolved from, if it was a wall-clock time or a time by a business calendar. */
  readonly wallClock: Json | null;
  /** It is delivered to the handler of an undo. */
  readonly isUndo?: true;
}

/** A message to store with the step. */
export interface OutgoingMessage {
  readonly id: string;
  /** The type of the receiving saga. `to` names which one. */
  readonly saga: string;
  readonly to: string;
  readonly name: string;
  readonly payload: string;
  readonly replyTo: ReplyAddress | null;
}

/** What a step does besides changing the state. All of it is committed together with the state. */
export type SagaEffect =
  | { readonly request: TimeoutRequest }
  /** `isCancelled`: the end of the saga revoked it, not the handler. */
  | { readonly revoke: PendingTimeout; readonly isCancelled?: true }
  | { readonly enqueue: NewJob }
  | { readonly send: OutgoingMessage }
  | { readonly reply: { readonly to: ReplyAddress; readonly value: string } };

/** One event for one saga at one moment. */
export interface ActionsInput {
  readonly plan: SagaPlan;
  readonly id: string;
  readonly eventId: string;
  readonly now: Instant;
  readonly nextId: IdSource;
  readonly signal: AbortSignal;
  readonly enqueue: Omit<EnqueueContext, "now" | "nextId">;
  /** Business calendars that a request may name. */
  readonly calendars?: NamedCalendars;
  readonly pending: readonly PendingTimeout[];
  readonly sender: ReplyAddress | null;
  readonly starter: ReplyAddress | null;
  readonly undos: readonly RegisteredUndo[];
  /** `undo`: the handler takes a step back. `other`: another handler of a saga that is being taken back. */
  readonly compensating: "undo" | "other" | null;
}

/**
 * Collects what one handler asks for while it runs. Nothing is stored here, so a handler that throws leaves nothing
 * behind.
 */
export class SagaActions {
  readonly #input: ActionsInput;
  readonly #pending: PendingTimeout[];
  readonly #requests = new Map<string, TimeoutRequest>();
  readonly #revokes: PendingTimeout[] = [];
  readonly #others: (SagaEffect | Promise<SagaEffect>)[] = [];
  readonly #checks: Promise<unknown>[] = [];
  readonly #undos: RegisteredUndo[];
  #isOver = false;
  #isCompleted = false;
  #isTakenBack = false;

  constructor(input: ActionsInput) {
    this.#input = input;
    this.#pending = [...input.pending];
    this.#undos = [...input.undos];
  }

  /** The undos after the handler, including those that it registered. */
  get undos(): readonly RegisteredUndo[] {
    return this.#isCompleted ? [] : this.#undos;
  }

  /** The handler called `compensate`. */
  get isTakenBack(): boolean {
    return this.#isTakenBack;
  }

  get isCompleted(): boolean {
    return this.#isCompleted;
  }

  get pending(): readonly PendingTimeout[] {
    return this.#isCompleted ? [] : this.#pending;
  }

  /** Closes the actions: a call after the handler's end would be lost silently, so it is refused from here on. */
  async end(): Promise<SagaEffect[]> {
    this.#isOver = true;
    const [others] = await Promise.all([Promise.all(this.#others), Promise.all(this.#checks)]);
    if (this.#isCompleted) {
      const left = this.#pending.filter(({ id }) => !this.#requests.has(id));
      return [
        ...this.#revokes.map((revoke) => ({ revoke })),
        ...left.map((revoke) => ({ revoke, isCancelled: true as const })),
        ...others,
      ];
    }
    return [
      ...this.#revokes.map((revoke) => ({ revoke })),
      ...[...this.#requests.values()].map((request) => ({ request })),
      ...others,
    ];
  }

  /** Closes the actions after the handler threw. Checks that still run must not become unhandled rejections. */
  drop(): void {
    this.#isOver = true;
    for (const check of [...this.#checks, ...this.#others])
      if (check instanceof Promise) check.catch(() => {});
  }

  outlet(): SagaOutlet {
    const { id, now, signal } = this.#input;
    return Object.freeze<SagaOutlet>({
      id,
      now,
      signal,
      enqueue: (definition, ...[payload, options]) => this.#enqueue(definition, payload, options),
      send: (saga, name, payload, options) => this.#send(saga, name, payload, options),
      reply: (value, options) => this.#reply(value, options),
    });
  }

  context(): SagaContext {
    const pending = () => this.#pending.map((timeout) => ({ ...timeout }));
    return Object.freeze<SagaContext>({
      ...this.outlet(),
      eventId: this.#input.eventId,
      get pending() {
        return pending();
      },
      request: (name, when, ...[payload, options]) => this.#request(name, when, payload, options),
      revoke: (keyOrId) => this.#revoke(keyOrId),
      undo: (name, ...[payload]) => this.#undo(name, payload),
      isCompensating: this.#input.compensating !== null,
      compensate: <State>(state: KeepsLiterals<State>) => {
        this.#assertRunning("compensate");
        this.#refuseWhile(
          this.#isCompleted,
          "compensate",
          "the handler has completed the saga: do one of the two",
        );
        this.#isTakenBack = true;
        return state as State;
      },
      complete: <State>(state: KeepsLiterals<State>) => {
        this.#assertRunning("complete");
        const isTakenBack = this.#isTakenBack || this.#input.compensating !== null;
        this.#refuseWhile(
          isTakenBack,
          "complete",
          "the saga is compensated, and completes after its last undo",
        );
        this.#isCompleted = true;
        return state as State;
      },
    });
  }

  #refuseWhile(isRefused: boolean, call: string, fix: string): void {
    if (isRefused) throw refuse("compensating", `saga.${call}`, this.#input.id, fix);
  }

  #undo(name: string, payload: unknown = {}): string {
    this.#assertRunning("undo");
    const { plan, nextId, enqueue, compensating } = this.#input;
    this.#refuseWhile(compensating === "undo", "undo", "the handler of an undo has nothing to take back");
    const schema = checkUndoName(plan, name);
    const checked = validate(schema, payload, "payload", "invalid_payload");
    if (checked instanceof Promise) this.#checks.push(checked);
    if (this.#undos.length >= UNDO_LIMIT) {
      const fix = `a saga may register ${UNDO_LIMIT}: one undo can take back many things`;
      throw refuse("too_many_pending", "undo", name, fix);
    }
    const text = toJsonText(payload, "payload", enqueue.documentLimit);
    const id = nextId();
    this.#undos.push({ id, name, payload: JSON.parse(text) as Json });
    return id;
  }

  #assertRunning(call: string): void {
    const { signal } = this.#input;
    // What a handler does past its limit cannot be committed (SEMANTICS 7.9).
    if (signal.aborted && signal.reason instanceof TimeoutError) throw signal.reason;
    if (!this.#isOver) return;
    throw refuse("step_over", `saga.${call}`, this.#input.id, "await everything before the handler returns");
  }

  #request(name: string, when: When, payload: unknown = {}, options: RequestOptions = {}): string {
    this.#assertRunning("request");
    const isTakenBack = this.#isTakenBack || this.#input.compensating !== null;
    this.#refuseWhile(isTakenBack, "request", "a saga that is compensated waits for its undos only");
    const { plan, now, nextId, enqueue, calendars } = this.#input;
    const schema = checkTimeoutName(plan, name);
    refuseUnknownKeys(options, "options", ["key"]);
    const key = options.key === undefined ? null : checkKey(options.key);
    const parsed = parseWhen(when, enqueue.anchor ?? now, "when", calendars);
    const checked = validate(schema, payload, "payload", "invalid_payload");
    if (checked instanceof Promise) this.#checks.push(checked);
    const text = toJsonText(payload, "payload", enqueue.documentLimit);
    if (key !== null) this.#take((pending) => pending.key === key);
    if (this.#pending.length >= PENDING_LIMIT) {
      const fix = `a saga may have ${PENDING_LIMIT} pending: revoke some, or use one key for those that replace each other`;
      throw refuse("too_many_pending", "request", name, fix);
    }
    const id = nextId();
    const wallClock = wallClockOf(parsed) ?? null;
    this.#pending.push({ id, name, key });
    this.#requests.set(id, { id, name, key, dueAt: parsed.dueAt, payload: text, wallClock });
    return id;
  }

  #revoke(keyOrId: string): "revoked" | "not-pending" {
    this.#assertRunning("revoke");
    if (typeof keyOrId !== "string" || keyOrId === "") {
      const fix = "pass the key of a request, or the id that request() returned";
      throw refuse("invalid_option", "revoke", keyOrId, fix);
    }
    const isTaken = this.#take(({ id, key }) => key === keyOrId || id === keyOrId);
    return isTaken ? "revoked" : "not-pending";
  }

  /** Removes a timeout from the pending ones. One that this step requested was never stored. */
  #take(matches: (pending: PendingTimeout) => boolean): boolean {
    const index = this.#pending.findIndex(matches);
    const [taken] = index < 0 ? [] : this.#pending.splice(index, 1);
    if (!taken) return false;
    if (!this.#requests.delete(taken.id)) this.#revokes.push(taken);
    return true;
  }

  #enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    payload: unknown,
    options: EnqueueOptions | undefined,
  ): string {
    this.#assertRunning("enqueue");
    const { now, nextId, enqueue } = this.#input;
    if (options?.tx !== undefined) {
      const fix = "leave it out: the job is committed together with the state of the saga";
      throw refuse("invalid_option", "options.tx", typeof options.tx, fix);
    }
    const template = prepareJob(definition, options, { ...enqueue, now, nextId });
    const text = preparePayload(definition, payload as never, enqueue.documentLimit);
    const id = template.id ?? this.#placed(template, payload)();
    const stamped = (text: string): SagaEffect => ({ enqueue: stamp(template, text, () => id, payload) });
    this.#others.push(typeof text === "string" ? stamped(text) : text.then(stamped));
    return id;
  }

  /** The source of a new job's id. In a store with several homes its payload may decide where it is. */
  #placed(template: JobTemplate, payload: unknown): () => string {
    const { nextId, enqueue } = this.#input;
    if (nextId.namePrefix === undefined) return nextId;
    return placedId(template, toJsonText(payload ?? null, "payload", enqueue.documentLimit), nextId, payload);
  }

  #send(saga: unknown, name: string, payload: unknown, options: SendOptions = {}): string {
    this.#assertRunning("send");
    const { plan, id: from, nextId, enqueue } = this.#input;
    const target = planOf(saga);
    refuseUnknownKeys(options, "options", ["replyAs"]);
    const { replyAs } = options;
    if (replyAs !== undefined) checkMessageName(plan, replyAs);
    const id = nextId();
    const replyTo = replyAs === undefined ? null : { message: id, saga: plan.type, id: from, as: replyAs };
    const sent = (prepared: { to: string; payload: string }): SagaEffect => ({
      send: { id, saga: target.type, name, replyTo, ...prepared },
    });
    const prepared = prepareMessage(target, name, payload, enqueue.documentLimit);
    this.#others.push(prepared instanceof Promise ? prepared.then(sent) : sent(prepared));
    return id;
  }

  #reply(value: Json, options: { readonly to: "sender" | "starter" } = { to: "sender" }): void {
    this.#assertRunning("reply");
    refuseUnknownKeys(options, "options", ["to"]);
    if (options.to !== "sender" && options.to !== "starter") {
      throw refuse("invalid_option", "options.to", options.to, 'write "sender" or "starter"');
    }
    const { sender, starter, enqueue } = this.#input;
    const to = options.to === "sender" ? sender : starter;
    if (to === null) {
      const fix = 'a timeout has no sender: use { to: "starter" } to reply to the starter';
      throw refuse("no_sender", "reply", show(value), fix);
    }
    this.#others.push({ reply: { to, value: toJsonText(value, "reply", enqueue.documentLimit) } });
  }
}

function checkKey(key: unknown): string {
  if (typeof key === "string" && key !== "" && key.length <= 255 && !key.includes("\0")) return key;
  throw refuse("invalid_option", "options.key", key, "use a text of 1 to 255 characters");
}
