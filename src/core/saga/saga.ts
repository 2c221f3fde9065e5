import { refuse } from "../errors.ts";
import type { EnqueueOptions } from "../job/envelope.ts";
import type { JobId } from "../job/job.ts";
import type { JobDefinition } from "../job/job-definition.ts";
import type { InputOf, Json, OutputOf, Schema } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { When } from "../timeout/when.ts";

/** Schemas by name: the messages or the timeouts of a saga. */
export type SchemaMap = { readonly [name: string]: Schema };

type Names<Map> = keyof Map & string;

/** A message as the not-found hook sees it: its name tells which payload it has. */
export type MessageOf<Messages extends SchemaMap> = {
  [Name in Names<Messages>]: { readonly name: Name; readonly payload: OutputOf<Messages[Name]> };
}[Names<Messages>];

/** What a test feeds to `saga.step()`: a message or a timeout, by name, with its payload. */
export type StepEvent<Messages extends SchemaMap, Timeouts extends SchemaMap> =
  | {
      [Name in Names<Messages>]: {
        readonly message: Name;
        readonly payload: InputOf<Messages[Name]>;
        readonly timeout?: never;
      };
    }[Names<Messages>]
  | {
      [Name in Names<Timeouts>]: {
        readonly timeout: Name;
        readonly payload: InputOf<Timeouts[Name]>;
        readonly message?: never;
      };
    }[Names<Timeouts>];

/** A timeout that has been requested and has neither fired nor been revoked. */
export interface PendingTimeout {
  readonly id: string;
  readonly name: string;
  readonly key: string | null;
}

/** The payload may be left out where nothing in it is required. */
type PayloadAndOptions<Input, Options> =
  Record<never, never> extends Input
    ? [payload?: NoInfer<Input>, options?: Options]
    : [payload: NoInfer<Input>, options?: Options];

export interface RequestOptions {
  /** A later request under the same key replaces this one; `revoke` takes it too. */
  readonly key?: string;
}

export interface SendOptions<Reply extends string = string> {
  /** A reply to this message comes back to this saga as the message of this name. */
  readonly replyAs?: Reply;
}

/** What a handler can do without a state of its own: the not-found hook gets no more than this. */
export interface SagaOutlet<Messages extends SchemaMap = SchemaMap> {
  /** The correlation value as text: which saga this is. */
  readonly id: string;
  readonly now: Instant;
  /** Aborts when the handler has used up its `attempt` timeout or the process shuts down. */
  readonly signal: AbortSignal;
  /** Enqueues a job with the commit of this step; returns its id. */
  enqueue<Input>(
    definition: JobDefinition<Input, unknown, unknown>,
    ...args: undefined extends Input
      ? [payload?: NoInfer<Input>, options?: EnqueueOptions]
      : [payload: NoInfer<Input>, options?: EnqueueOptions]
  ): JobId;
  /** Sends a message to a saga of another type with the commit of this step; returns its id. */
  send<Other extends SchemaMap, Name extends Names<Other>>(
    saga: MessageTarget<Other>,
    name: Name,
    payload: InputOf<Other[Name]>,
    options?: SendOptions<Names<Messages>>,
  ): string;
  /** Answers whoever sent the message that is being handled, or the one that started the saga. */
  reply(value: Json, options?: { readonly to: "sender" | "starter" }): void;
}

/** What a handler of a saga can do. Nothing of it happens before the step is committed, and then all of it does. */
export interface SagaContext<Messages extends SchemaMap = SchemaMap, Timeouts extends SchemaMap = SchemaMap>
  extends SagaOutlet<Messages> {
  /** The id of the message or timeout that is being handled: the idempotency key for the outside world. */
  readonly eventId: string;
  /** What is pending as of now, this step's own requests and revokes included. */
  readonly pending: readonly PendingTimeout[];
  /** Asks for a timeout; returns its id. Asking twice gives two, unless both have the same key. */
  request<Name extends Names<Timeouts>>(
    name: Name,
    when: When,
    ...args: PayloadAndOptions<InputOf<Timeouts[Name]>, RequestOptions>
  ): string;
  /** Takes back a timeout by its key or id. Once committed it will never be handled, even if it is already under way. */
  revoke(keyOrId: string): "revoked" | "not-pending";
  /** Ends the saga with this state; what is pending is revoked. Use it as `return saga.complete(state)`. */
  complete<State>(state: State): State;
}

/** The part of a definition that a sender needs. */
export interface MessageTarget<Messages extends SchemaMap = SchemaMap> {
  readonly type: string;
  readonly messages: Messages;
}

/** Any saga, whatever its types. */
export interface AnySaga extends MessageTarget {
  readonly timeouts: SchemaMap;
  readonly [PLAN]: SagaPlan;
}

type Next<S> = InputOf<S> | Promise<InputOf<S>>;

export type StateHandler<S, Input, Messages extends SchemaMap, Timeouts extends SchemaMap> = (
  state: OutputOf<S>,
  payload: Input,
  saga: SagaContext<Messages, Timeouts>,
) => Next<S>;

export type StartHandler<S, Input, Messages extends SchemaMap, Timeouts extends SchemaMap> = (
  message: Input,
  saga: SagaContext<Messages, Timeouts>,
) => Next<S>;

export type NotFoundHook<Messages extends SchemaMap> = (
  message: MessageOf<Messages>,
  saga: SagaOutlet<Messages>,
) => void | Promise<void>;

/** A handler whose types the definition has checked and the runner need not know. */
export type ErasedHandler = (...args: never[]) => unknown;

/** What the engine runs: everything a definition says, checked and with its defaults. */
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
}

/** Under which a definition carries its plan: not for users, whose editors need not list it. */
export const PLAN: unique symbol = Symbol("curfew.saga");

export function planOf(saga: unknown, field = "saga"): SagaPlan {
  const plan = typeof saga === "object" && saga !== null ? (saga as { [PLAN]?: SagaPlan })[PLAN] : undefined;
  if (!plan) throw refuse("invalid_saga", field, saga, "pass what defineSaga() returned");
  return plan;
}
