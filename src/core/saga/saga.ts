import { refuse } from "../errors.ts";
import type { EnqueueOptions } from "../job/enqueue/envelope.ts";
import type { JobId } from "../job/job.ts";
import type { JobDefinition, PayloadArgs } from "../job/job-definition.ts";
import type { InputOf, Json, KeepsLiterals, OutputOf, Schema } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { When } from "../timeout/when.ts";

/** Schemas by name: the messages or the timeouts of a saga. */
export type SchemaMap = { readonly [name: string]: Schema };

type Names<Map> = keyof Map & string;

/** A message as the not-found hook sees it. Its name determines the type of its payload. */
export type MessageOf<Messages extends SchemaMap> = {
  [Name in Names<Messages>]: { readonly name: Name; readonly payload: OutputOf<Messages[Name]> };
}[Names<Messages>];

/** An event for `saga.step()`: a message or a timeout, by name, with its payload. */
export type StepEvent<Messages extends SchemaMap, Timeouts extends SchemaMap> =
  | {
      [Name in Names<Messages>]: {
        readonly message: Name;
        readonly payload: InputOf<Messages[Name]>;
        readonly timeout?: never;
        readonly undo?: never;
      };
    }[Names<Messages>]
  /** The undo that was registered last, with the payload that it was registered with. */
  | { readonly undo: string; readonly message?: never; readonly timeout?: never }
  | {
      [Name in Names<Timeouts>]: {
        readonly timeout: Name;
        readonly payload: InputOf<Timeouts[Name]>;
        readonly message?: never;
        readonly undo?: never;
      };
    }[Names<Timeouts>];

/** A timeout that was requested and has neither fired nor been revoked. */
export interface PendingTimeout {
  readonly id: string;
  readonly name: string;
  readonly key: string | null;
}

/** What a saga does to take one of its steps back, as it was registered. */
export interface RegisteredUndo {
  readonly id: string;
  readonly name: string;
  readonly payload: Json;
}

/** The payload may be left out if nothing in it is required. */
type PayloadAndOptions<Input, Options> =
  Record<never, never> extends Input
    ? [payload?: NoInfer<Input>, options?: Options]
    : [payload: NoInfer<Input>, options?: Options];

export interface RequestOptions {
  /** A later request under the same key replaces this one. `revoke` accepts it too. */
  readonly key?: string;
}

export interface SendOptions<Reply extends string = string> {
  /** A reply to this message reaches this saga as the message of this name. */
  readonly replyAs?: Reply;
}

/** What a handler can do without a state. The not-found hook gets only this. */
export interface SagaOutlet<Messages extends SchemaMap = SchemaMap> {
  /** The correlation value as text: which saga this is. */
  readonly id: string;
  readonly now: Instant;
  /** Aborts when the `attempt` timeout of the handler is over or the process shuts down. */
  readonly signal: AbortSignal;
  /** Enqueues a job with the commit of this step. Returns its id. */
  enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    ...args: PayloadArgs<Input, EnqueueOptions>
  ): JobId;
  /** Sends a message to a saga of another type with the commit of this step. Returns its id. */
  send<Other extends SchemaMap, Name extends Names<Other>>(
    saga: MessageTarget<Other>,
    name: Name,
    payload: InputOf<Other[Name]>,
    options?: SendOptions<Names<Messages>>,
  ): string;
  /** Replies to the sender of the message that is being handled, or of the message that started the saga. */
  reply(value: Json, options?: { readonly to: "sender" | "starter" }): void;
}

/** What a handler of a saga can do. Everything takes effect with the commit of the step, and nothing before. */
export interface SagaContext<
  Messages extends SchemaMap = SchemaMap,
  Timeouts extends SchemaMap = SchemaMap,
  Undos extends SchemaMap = SchemaMap,
> extends SagaOutlet<Messages> {
  /**
   * The id of the message or timeout that is being handled. Use it as the idempotency key for calls to other systems.
   */
  readonly eventId: string;
  /** What is pending now, including the requests and revokes of this step. */
  readonly pending: readonly PendingTimeout[];
  /** Requests a timeout. Returns its id. Two requests give two timeouts, unless both have the same key. */
  request<Name extends Names<Timeouts>>(
    name: Name,
    when: When,
    ...args: PayloadAndOptions<InputOf<Timeouts[Name]>, RequestOptions>
  ): string;
  /**
   * Revokes a timeout by its key or id. Once this is committed, the timeout is never handled, even if it is already
   * being delivered.
   */
  revoke(keyOrId: string): "revoked" | "not-pending";
  /**
   * Registers how to take this step back. If the saga is compensated later, the undos of its committed steps run in
   * reverse order. Returns the id of the undo, which is the `eventId` of its handler.
   */
  undo<Name extends Names<Undos>>(
    name: Name,
    ...args: PayloadAndOptions<InputOf<Undos[Name]>, never>
  ): string;
  /**
   * Begins to take the saga back: revokes what is pending, then runs the registered undos one after the other, the last
   * one first. The saga completes after them. Use it as `return saga.compensate(state)`.
   */
  compensate<State>(state: KeepsLiterals<State>): State;
  /** Whether the saga is being taken back. Then `request` and `complete` are refused. */
  readonly isCompensating: boolean;
  /** Ends the saga with this state and revokes what is pending. Use it as `return saga.complete(state)`. */
  complete<State>(state: KeepsLiterals<State>): State;
}

/** The part of a definition that a sender needs. */
export interface MessageTarget<Messages extends SchemaMap = SchemaMap> {
  readonly type: string;
  readonly messages: Messages;
}

export interface AnySaga extends MessageTarget {
  readonly timeouts: SchemaMap;
  readonly [PLAN]: SagaPlan;
}

type Next<S> = KeepsLiterals<InputOf<S>> | Promise<KeepsLiterals<InputOf<S>>>;

export type StateHandler<
  S,
  Input,
  Messages extends SchemaMap,
  Timeouts extends SchemaMap,
  Undos extends SchemaMap = SchemaMap,
> = (state: OutputOf<S>, payload: Input, saga: SagaContext<Messages, Timeouts, Undos>) => Next<S>;

export type StartHandler<
  S,
  Input,
  Messages extends SchemaMap,
  Timeouts extends SchemaMap,
  Undos extends SchemaMap = SchemaMap,
> = (message: Input, saga: SagaContext<Messages, Timeouts, Undos>) => Next<S>;

export type NotFoundHook<Messages extends SchemaMap> = (
  message: MessageOf<Messages>,
  saga: SagaOutlet<Messages>,
) => void | Promise<void>;

/** A handler whose types the definition has checked and the runner need not know. */
export type ErasedHandler = (...args: never[]) => unknown;

/** What the engine runs: a checked definition with its defaults. */
export interface SagaPlan {
  readonly type: string;
  readonly state: Schema;
  readonly version: number;
  readonly migrate: ((state: Json, from: number) => unknown) | undefined;
  readonly messages: SchemaMap;
  readonly timeouts: SchemaMap;
  readonly startedBy: readonly string[];
  readonly correlate: { readonly [name: string]: (message: never) => unknown };
  readonly identify: ((state: never) => unknown) | undefined;
  readonly start: ErasedHandler;
  readonly on: { readonly [name: string]: ErasedHandler | undefined };
  readonly onTimeout: { readonly [name: string]: ErasedHandler | undefined };
  readonly undos: SchemaMap;
  readonly onUndo: { readonly [name: string]: ErasedHandler | undefined };
  /** Whether an event that is given up for good begins the compensation. */
  readonly onFailure: "keep" | "compensate";
  readonly notFound: ErasedHandler | undefined;
  /** How long a handler may run, in milliseconds; null for no limit. */
  readonly attempt: HandlerLimits;
  /** How long the record of a completed saga is kept, in milliseconds. */
  readonly retention: number;
}

export interface HandlerLimits {
  readonly standard: number | null;
  readonly start: number | null | undefined;
  readonly on: { readonly [name: string]: number | null };
  readonly onTimeout: { readonly [name: string]: number | null };
  readonly onUndo: { readonly [name: string]: number | null };
}

/** The property under which a definition carries its plan. A symbol, so that editors do not offer it to users. */
export const PLAN: unique symbol = Symbol("curfew.saga");

export function planOf(saga: unknown, field = "saga"): SagaPlan {
  const plan = typeof saga === "object" && saga !== null ? (saga as { [PLAN]?: SagaPlan })[PLAN] : undefined;
  if (!plan) throw refuse("invalid_saga", field, saga, "pass what defineSaga() returned");
  return plan;
}
