import { refuse, refuseUnknownKeys } from "../errors.ts";
import { isObject } from "../is-object.ts";
import { checkType } from "../job/job-definition.ts";
import { keysOf } from "../option-keys.ts";
import { type InputOf, isSchema, type Json, type OutputOf, type Schema } from "../schema.ts";
import { type Duration, parseDuration } from "../time.ts";
import {
  type ErasedHandler,
  type HandlerLimits,
  type MessageTarget,
  type NotFoundHook,
  PLAN,
  type SagaPlan,
  type SchemaMap,
  type StartHandler,
  type StateHandler,
  type StepEvent,
} from "./saga.ts";
import { type StepOptions, type StepResult, tryStep } from "./try-step.ts";

/** What the sender and the host of a saga share. */
export interface SagaDefinition<
  S extends Schema = Schema,
  Messages extends SchemaMap = SchemaMap,
  Timeouts extends SchemaMap = SchemaMap,
> extends MessageTarget<Messages> {
  readonly state: S;
  readonly timeouts: Timeouts;
  readonly [PLAN]: SagaPlan;
  /**
   * Runs one handler without an engine and a store, for tests. Takes the state (null for a start, or the result of
   * the step before) and the message or timeout. Rejects with what the handler throws.
   */
  step(
    state: InputOf<S> | StepResult<InputOf<S>> | null,
    event: StepEvent<Messages, Timeouts>,
    options?: StepOptions,
  ): Promise<StepResult<InputOf<S>>>;
}

type HandlerLimit = Duration | "none";

/** How long handlers may run: one limit for all, or some by name. */
export type AttemptOptions<Message extends string, Timeout extends string, Undo extends string = string> =
  | HandlerLimit
  | {
      readonly standard?: HandlerLimit;
      readonly start?: HandlerLimit;
      readonly on?: { readonly [Name in Message]?: HandlerLimit };
      readonly onTimeout?: { readonly [Name in Timeout]?: HandlerLimit };
      readonly onUndo?: { readonly [Name in Undo]?: HandlerLimit };
    };

type Names<Map> = keyof Map & string;

type MessageHandlers<
  S,
  M extends SchemaMap,
  T extends SchemaMap,
  Starter extends string,
  U extends SchemaMap,
> = {
  readonly [Name in Exclude<Names<M>, Starter>]: StateHandler<S, OutputOf<M[Name]>, M, T, U>;
} & {
  readonly [Name in Starter]?: StateHandler<S, OutputOf<M[Name]>, M, T, U>;
};

type TimeoutHandlers<S, M extends SchemaMap, T extends SchemaMap, U extends SchemaMap> = {
  readonly [Name in Names<T>]: StateHandler<S, OutputOf<T[Name]>, M, T, U>;
};

type UndoHandlers<S, M extends SchemaMap, T extends SchemaMap, U extends SchemaMap> = {
  readonly [Name in Names<U>]: StateHandler<S, OutputOf<U[Name]>, M, T, U>;
};

export interface SagaOptions<
  S extends Schema,
  M extends SchemaMap,
  T extends SchemaMap,
  Starter extends Names<M>,
  U extends SchemaMap = Record<never, Schema>,
> {
  /** Lower-case words joined by dots: `"order"`. */
  readonly type: string;
  /** Any Standard Schema. The state is stored as JSON, as handlers return it, and parsed before each handler. */
  readonly state: S;
  /** The messages of the saga, by name. */
  readonly messages: M;
  /** The timeouts that it can request, by name. */
  readonly timeouts?: T;
  /** For each message, which saga it belongs to: a text or a whole number. */
  readonly correlate: {
    readonly [Name in Names<M>]: (message: OutputOf<M[Name]>) => string | number | bigint;
  };
  /** The message or messages that start a saga if there is none. */
  readonly startedBy: Starter | readonly Starter[];
  /** Makes the first state from the starting message. */
  readonly start: StartHandler<S, OutputOf<M[Starter]>, M, T, U>;
  /**
   * A handler for each message that does not start the saga. A handler of a starter runs if the saga has already
   * started.
   */
  readonly on: MessageHandlers<S, M, T, Starter, U>;
  /** A handler for each timeout. */
  readonly onTimeout?: TimeoutHandlers<S, M, T, U>;
  /** What its handlers can register to take a step back, by name. */
  readonly undos?: U;
  /** A handler for each undo. It is tried again like every other, and must be safe to run twice. */
  readonly onUndo?: UndoHandlers<S, M, T, U>;
  /**
   * What a message or timeout does whose handler failed ten times: `keep` (default) leaves the saga as it is;
   * `compensate` takes it back.
   */
  readonly onFailure?: "keep" | "compensate";
  /** Called with messages for which there is no saga. Without it, they are counted and dropped. */
  readonly notFound?: NotFoundHook<M>;
  /** Reads the id of the saga from a state, so that a handler that changes it is refused (SEMANTICS 7.6). */
  readonly identify?: (state: OutputOf<S>) => string | number | bigint;
  /** How long a handler may run. Default 30 s. */
  readonly attempt?: AttemptOptions<Names<M>, Names<T>, Names<U>>;
  /** The version of the state's shape, counted from 1. */
  readonly version?: number;
  /** Brings a state of an older version to this one. */
  readonly migrate?: (state: Json, from: number) => InputOf<S> | Promise<InputOf<S>>;
  /**
   * How long the record of a completed saga is kept, at least a minute. Default 24 h. `"0s"` drops the state at once;
   * only the ids of its last messages are remembered for that minute.
   */
  readonly retention?: Duration;
}

/** If timeouts are declared, their handlers are required. */
type NeedsTimeoutHandlers<S, M extends SchemaMap, T extends SchemaMap, U extends SchemaMap> =
  Names<T> extends never ? unknown : { readonly onTimeout: TimeoutHandlers<S, M, T, U> };

/** If undos are declared, their handlers are required. */
type NeedsUndoHandlers<S, M extends SchemaMap, T extends SchemaMap, U extends SchemaMap> =
  Names<U> extends never ? unknown : { readonly onUndo: UndoHandlers<S, M, T, U> };

/** The options of any saga. */
type AnyOptions = SagaOptions<Schema, SchemaMap, SchemaMap, string, SchemaMap>;

const KEYS = keysOf<AnyOptions>({
  type: true,
  state: true,
  messages: true,
  timeouts: true,
  correlate: true,
  startedBy: true,
  start: true,
  on: true,
  onTimeout: true,
  undos: true,
  onUndo: true,
  onFailure: true,
  notFound: true,
  identify: true,
  attempt: true,
  version: true,
  migrate: true,
  retention: true,
});

const BUILT_IN_ATTEMPT = 30_000;
/** How long a completed saga is kept, unless its definition says otherwise. */
export const SAGA_RETENTION = 24 * 3_600_000;
const NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;

/** Declares a saga: its state, its messages and timeouts, and its handlers. */
export function defineSaga<
  S extends Schema,
  const M extends SchemaMap,
  const T extends SchemaMap = Record<never, Schema>,
  const Starter extends Names<M> = Names<M>,
  const U extends SchemaMap = Record<never, Schema>,
>(
  options: SagaOptions<S, M, T, Starter, U> &
    NeedsTimeoutHandlers<S, M, T, U> &
    NeedsUndoHandlers<S, M, T, U>,
): SagaDefinition<S, M, T> {
  const plan = planSaga(options as unknown as LooseOptions);
  const definition: SagaDefinition<S, M, T> = {
    type: plan.type,
    state: options.state,
    messages: plan.messages as M,
    timeouts: plan.timeouts as T,
    [PLAN]: plan,
    step: (state, event, given) => tryStep(plan, state, event, given),
  };
  return Object.freeze(definition);
}

/** The options as JavaScript callers may have written them. */
type LooseOptions = { readonly [Name in keyof AnyOptions]?: unknown };

function planSaga(options: LooseOptions): SagaPlan {
  refuseUnknownKeys(options, "saga", KEYS);
  const type = checkType(options.type as string, "type");
  if (!isSchema(options.state)) throw refuse("invalid_option", "state", options.state, SCHEMA_FIX);
  const messages = checkSchemas(options.messages, "messages");
  const timeouts = checkSchemas(options.timeouts ?? {}, "timeouts");
  const undos = checkSchemas(options.undos ?? {}, "undos");
  const { onFailure = "keep" } = options;
  if (onFailure !== "keep" && onFailure !== "compensate")
    throw refuse("invalid_option", "onFailure", onFailure, 'write "keep" or "compensate"');
  const startedBy = checkStarters(options.startedBy, messages);
  const version = checkVersion(options.version ?? 1);
  if (version > 1 && options.migrate === undefined) {
    const fix = "add migrate(state, from), which brings an older state to this version";
    throw refuse("missing_handler", "migrate", `version ${version}`, fix);
  }
  return Object.freeze<SagaPlan>({
    type,
    state: options.state,
    version,
    messages,
    timeouts,
    startedBy,
    migrate: optionalFunction(options.migrate, "migrate"),
    correlate: checkCorrelations(options.correlate, messages),
    identify: optionalFunction(options.identify, "identify"),
    start: checkFunction(options.start, "start", "missing_handler", "start"),
    on: checkHandlers(options.on ?? {}, messages, startedBy, "on"),
    onTimeout: checkHandlers(options.onTimeout ?? {}, timeouts, [], "onTimeout"),
    undos,
    onUndo: checkHandlers(options.onUndo ?? {}, undos, [], "onUndo"),
    onFailure,
    notFound: optionalFunction(options.notFound, "notFound"),
    attempt: parseLimits(options.attempt as AttemptOptions<string, string> | undefined, {
      on: messages,
      onTimeout: timeouts,
      onUndo: undos,
    }),
    retention:
      options.retention === undefined
        ? SAGA_RETENTION
        : parseDuration(options.retention, "retention", { zero: true }),
  });
}

const SCHEMA_FIX = "use a Standard Schema, for example one made with zod";

function checkSchemas(value: unknown, field: string): SchemaMap {
  if (!isObject(value)) {
    throw refuse("invalid_option", field, value, "write an object of names and schemas");
  }
  for (const [name, schema] of Object.entries(value)) {
    if (!NAME.test(name)) {
      const fix = 'start with a letter; use letters, digits, "_", "." and "-", at most 100 characters';
      throw refuse("invalid_name", field, name, fix);
    }
    if (!isSchema(schema)) throw refuse("invalid_option", `${field}.${name}`, schema, SCHEMA_FIX);
  }
  return Object.freeze({ ...value }) as SchemaMap;
}

function checkStarters(value: unknown, messages: SchemaMap): string[] {
  const names: unknown[] = Array.isArray(value) ? value : [value];
  const known = `name one of its messages: ${Object.keys(messages).join(", ")}`;
  if (names.length === 0) throw refuse("invalid_option", "startedBy", value, known);
  for (const name of names) {
    if (typeof name !== "string" || !Object.hasOwn(messages, name)) {
      throw refuse("unknown_message", "startedBy", name, known);
    }
  }
  return names as string[];
}

function checkCorrelations(value: unknown, messages: SchemaMap): SagaPlan["correlate"] {
  const given = checkNames(value ?? {}, messages, "correlate", "unknown_message");
  for (const name of Object.keys(messages)) {
    const fix = `add correlate.${name}: (message) => the id of its saga`;
    checkFunction(given[name], `correlate.${name}`, "missing_correlation", name, fix);
  }
  return given as SagaPlan["correlate"];
}

type HandlerField = "on" | "onTimeout" | "onUndo";
type UnknownCode = "unknown_message" | "unknown_timeout" | "unknown_undo";

const UNKNOWN: Readonly<Record<HandlerField, UnknownCode>> = {
  on: "unknown_message",
  onTimeout: "unknown_timeout",
  onUndo: "unknown_undo",
};

function checkHandlers(
  value: unknown,
  declared: SchemaMap,
  optional: readonly string[],
  field: HandlerField,
): SagaPlan["on"] {
  const given = checkNames(value, declared, field, UNKNOWN[field]);
  for (const name of Object.keys(declared)) {
    if (given[name] === undefined && optional.includes(name)) continue;
    const fix = `add ${field}.${name}: (state, payload, saga) => the next state`;
    checkFunction(given[name], `${field}.${name}`, "missing_handler", name, fix);
  }
  return given as SagaPlan["on"];
}

/** A copy without a prototype, so that a message called "constructor" does not find an inherited function. */
function checkNames(
  value: unknown,
  declared: SchemaMap,
  field: string,
  code: UnknownCode,
): Record<string, unknown> {
  if (!isObject(value)) {
    throw refuse("invalid_option", field, value, "write an object of names and functions");
  }
  for (const name of Object.keys(value)) {
    if (Object.hasOwn(declared, name)) continue;
    throw refuse(code, `${field}.${name}`, name, `use one of ${Object.keys(declared).join(", ") || "none"}`);
  }
  return Object.freeze(Object.assign(Object.create(null), value));
}

function checkFunction(
  value: unknown,
  field: string,
  missing: "missing_handler" | "missing_correlation",
  name: string,
  fix = "add it",
): ErasedHandler {
  if (value === undefined) throw refuse(missing, field, name, fix);
  if (typeof value !== "function") throw refuse("invalid_option", field, value, "pass a function");
  return value as ErasedHandler;
}

function optionalFunction(value: unknown, field: string) {
  if (value === undefined) return undefined;
  if (typeof value !== "function") throw refuse("invalid_option", field, value, "pass a function");
  return value as ErasedHandler & ((state: Json, from: number) => unknown);
}

function checkVersion(version: unknown): number {
  if (typeof version === "number" && Number.isSafeInteger(version) && version >= 1) return version;
  throw refuse("invalid_option", "version", version, "count the shapes of the state from 1");
}

function parseLimits(
  attempt: AttemptOptions<string, string> | undefined,
  declared: Readonly<Record<HandlerField, SchemaMap>>,
): HandlerLimits {
  const limit = (value: unknown, field: string) => (value === "none" ? null : parseDuration(value, field));
  const isOne = typeof attempt === "string" || !isLimitMap(attempt);
  if (attempt !== undefined && isOne) {
    return { standard: limit(attempt, "attempt"), start: undefined, on: {}, onTimeout: {}, onUndo: {} };
  }
  const said = (attempt ?? {}) as Exclude<AttemptOptions<string, string>, HandlerLimit>;
  refuseUnknownKeys(said, "attempt", LIMIT_NAMES);
  const byName = (field: HandlerField) => {
    const named = checkNames(said[field] ?? {}, declared[field], `attempt.${field}`, UNKNOWN[field]);
    return Object.fromEntries(
      Object.entries(named).map(([name, value]) => [name, limit(value, `attempt.${field}.${name}`)]),
    );
  };
  return {
    standard: said.standard === undefined ? BUILT_IN_ATTEMPT : limit(said.standard, "attempt.standard"),
    start: said.start === undefined ? undefined : limit(said.start, "attempt.start"),
    on: byName("on"),
    onTimeout: byName("onTimeout"),
    onUndo: byName("onUndo"),
  };
}

const LIMIT_NAMES = ["standard", "start", "on", "onTimeout", "onUndo"];

/** Whether limits were given by name rather than as one duration. */
function isLimitMap(attempt: unknown): boolean {
  if (typeof attempt !== "object" || attempt === null) return false;
  return LIMIT_NAMES.some((name) => name in attempt);
}
