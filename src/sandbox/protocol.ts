import { CurfewError, type ErrorCode } from "../core/errors.ts";
import { isObject } from "../core/is-object.ts";
import { type AbortReason, Discard, Snooze, StopError, TimeoutError } from "../core/job/reasons.ts";
import type { PortableDefinition, PortableOptions } from "../core/job/transfer/portable.ts";
import type { Json } from "../core/schema.ts";
import { type Duration, type InstantInput, parseDuration, parseInstant } from "../core/time.ts";
import { describeError, ownKeys, readKey } from "../core/user-values.ts";
import type { SandboxJob } from "../ports/sandbox.ts";
import { shapeProblem } from "./shape.ts";

/** Both sides come from one package. A child of another version is refused. */
export const PROTOCOL = 1;

/** The most characters of one message: four documents of the default limit. */
export const MESSAGE_LIMIT = 4_000_000;

/** Shorter messages cost less than looking at their shape. */
const SHORT_MESSAGE = 4_000;
/** The levels of a message around a document. */
const LEVELS_AROUND = 10;

/** The most lines of output per attempt that go into the job's log. */
export const MOST_LINES = 500;

/** From parent to child. Every message about an attempt names it. */
export type Order =
  | { readonly say: "load"; readonly protocol: number; readonly module: string; readonly type: string }
  | { readonly say: "run"; readonly key: string; readonly job: SandboxJob }
  | { readonly say: "abort"; readonly key: string; readonly reason: ReasonText }
  | {
      readonly say: "deadline";
      readonly key: string;
      readonly deadline: number | null;
      readonly remaining: number | null;
    }
  | {
      /** The answer to a checkpoint or an enqueue, by its number. */
      readonly say: "answer";
      readonly key: string;
      readonly number: number;
      readonly value?: Json;
      readonly error?: ErrorText;
    };

/** From child to parent. */
export type Report =
  | { readonly say: "ready"; readonly protocol: number }
  | { readonly say: "unloadable"; readonly error: ErrorText }
  | { readonly say: "crashed"; readonly error: ErrorText }
  | {
      /** The child has the attempt. It says so before any code of the user runs for this job. */
      readonly say: "entered";
      readonly key: string;
    }
  | { readonly say: "alive"; readonly key: string }
  | { readonly say: "heard"; readonly key: string; readonly resources: readonly string[] }
  | { readonly say: "beat"; readonly key: string }
  | { readonly say: "progress"; readonly key: string; readonly fraction: number; readonly note?: Json }
  | { readonly say: "checkpoint"; readonly key: string; readonly number: number; readonly state: Json }
  | {
      readonly say: "log";
      readonly key: string;
      readonly message: string;
      readonly fields?: { readonly [key: string]: Json };
    }
  | {
      readonly say: "enqueue";
      readonly key: string;
      readonly number: number;
      readonly definition: PortableDefinition;
      /** JSON text. The child has checked it against its schema, which cannot be sent. */
      readonly payload: string;
      readonly options: PortableOptions;
    }
  | {
      /** A line that the code of this attempt wrote to stdout or stderr. */
      readonly say: "print";
      readonly key: string;
      readonly stream: "stdout" | "stderr";
      readonly text: string;
    }
  | { readonly say: "cleanup_failed"; readonly key: string; readonly error: ErrorText }
  | { readonly say: "returned"; readonly key: string; readonly result?: Json }
  | { readonly say: "snoozed"; readonly key: string; readonly when: Json }
  | { readonly say: "threw"; readonly key: string; readonly error: ErrorText }
  | { readonly say: "idle"; readonly key: string };

export interface ErrorText {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly cause?: ErrorText;
  /** What was thrown, if it was not an Error. */
  readonly thrown?: Json;
  readonly fields?: { readonly [key: string]: Json };
}

export interface ReasonText {
  readonly name: "TimeoutError" | "StopError";
  readonly kind: string;
  readonly limit: number;
  readonly elapsed: number;
  readonly deadline: number | null;
}

const STACK_LIMIT = 8_000;
const TEXT_LIMIT = 16_000;
const DEEPEST_CAUSE = 5;
const OWN_ALREADY = new Set(["name", "message", "stack", "cause"]);

export function encodeError(thrown: unknown, depth = 0): ErrorText {
  const error = describeError(thrown);
  if (!error) return { name: "NotAnError", message: "", thrown: jsonOr(thrown) };
  const fields: Record<string, Json> = {};
  for (const key of ownKeys(thrown as Error)) {
    if (OWN_ALREADY.has(key) || key === "__proto__") continue;
    const value = jsonOr(readKey(thrown, key));
    if (value !== null) fields[key] = value;
  }
  const { name, message, stack, cause } = error;
  return {
    name: name.slice(0, 255),
    message: message.slice(0, TEXT_LIMIT),
    ...(stack !== undefined && { stack: stack.slice(0, STACK_LIMIT) }),
    ...(cause !== undefined && depth < DEEPEST_CAUSE && { cause: encodeError(cause, depth + 1) }),
    ...(Object.keys(fields).length > 0 && { fields }),
  };
}

/** The value if it is small JSON, else null: a field that cannot be sent must not cost the error that has it. */
function jsonOr(value: unknown): Json {
  try {
    const text = JSON.stringify(value);
    return text === undefined || text.length > TEXT_LIMIT ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * What was thrown in the child, as far as it can be rebuilt. Only the classes that affect the verdict are rebuilt as
 * such.
 */
export function decodeError(text: ErrorText): unknown {
  if (text.thrown !== undefined) return text.thrown;
  const options = text.cause === undefined ? undefined : { cause: decodeError(text.cause) };
  const error = rebuild(text, options);
  // Classes of curfew already have their name. Defining it again would make it writable.
  if (error.name !== text.name) hide(error, "name", text.name);
  hide(error, "stack", text.stack ?? `${text.name}: ${text.message}`);
  for (const [key, value] of Object.entries(text.fields ?? {})) {
    if (key !== "__proto__")
      Object.defineProperty(error, key, { value, enumerable: true, configurable: true });
  }
  return error;
}

function rebuild({ name, message, fields }: ErrorText, options: { cause?: unknown } | undefined): Error {
  if (name === "Discard") return new Discard(message, options);
  if (name === "CurfewError") return new CurfewError(fields?.code as ErrorCode, message, options);
  return new Error(message, options);
}

function hide(error: Error, key: string, value: unknown): void {
  Object.defineProperty(error, key, { value, configurable: true, writable: true });
}

export function encodeReason(reason: AbortReason): ReasonText {
  const { name, kind, limit, elapsed, deadline } = reason;
  return { name, kind, limit, elapsed, deadline };
}

export function decodeReason({ name, kind, limit, elapsed, deadline }: ReasonText): AbortReason {
  return name === "TimeoutError"
    ? new TimeoutError(kind as TimeoutError["kind"], limit, elapsed, deadline)
    : new StopError(kind as StopError["kind"], elapsed, deadline);
}

/** A snooze as JSON. Durations and instants of every kind become equivalent texts. */
export function encodeSnooze({ after, until }: Snooze): Json {
  if (after !== undefined) return { after: `${parseDuration(after, "snooze.after")}ms` };
  return { until: new Date(parseInstant(until, "snooze.until")).toISOString() };
}

export function decodeSnooze(when: Json): Snooze {
  return new Snooze(when as unknown as { after: Duration } | { until: InstantInput });
}

/** The child sent something that no child of curfew sends. It is not trusted any further. */
export class ProtocolFlaw extends Error {
  override readonly name = "ProtocolFlaw";
}

type Check = (value: unknown) => boolean;
const text: Check = (value) => typeof value === "string";
const number: Check = (value) => typeof value === "number";
const fraction: Check = (value) => typeof value === "number" && value >= 0 && value <= 1;
const maybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const object: Check = isObject;
const present: Check = (value) => value !== undefined;
const anything: Check = () => true;
const error: Check = (value) => {
  if (!object(value)) return false;
  const { name, message, stack, cause, fields } = value as Record<string, unknown>;
  return text(name) && text(message) && maybe(text)(stack) && maybe(error)(cause) && maybe(object)(fields);
};

/** The required fields of each report. Reports come from code that the parent does not trust. */
const REPORTS: { readonly [Say in Report["say"]]: { readonly [field: string]: Check } } = {
  ready: { protocol: number },
  unloadable: { error },
  crashed: { error },
  entered: { key: text },
  alive: { key: text },
  heard: { key: text, resources: Array.isArray },
  beat: { key: text },
  progress: { key: text, fraction, note: anything },
  checkpoint: { key: text, number, state: present },
  log: { key: text, message: text, fields: maybe(object) },
  enqueue: { key: text, number, definition: object, payload: text, options: object },
  print: { key: text, stream: (value) => value === "stdout" || value === "stderr", text },
  cleanup_failed: { key: text, error },
  returned: { key: text, result: anything },
  snoozed: { key: text, when: object },
  threw: { key: text, error },
  idle: { key: text },
};

function refuseShape(text: string): void {
  const problem = text.length > SHORT_MESSAGE ? shapeProblem(text, LEVELS_AROUND) : undefined;
  if (problem) throw new ProtocolFlaw(`a message with ${problem}`);
}

/** Reads one report. Throws a ProtocolFlaw that names what is wrong. */
export function parseReport(line: string): Report {
  refuseShape(line);
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new ProtocolFlaw(`a message that is not JSON: ${line.slice(0, 80)}`, { cause });
  }
  const say = object(value) ? (value as { say?: unknown }).say : undefined;
  const fields =
    typeof say === "string" && Object.hasOwn(REPORTS, say) ? REPORTS[say as Report["say"]] : undefined;
  if (!fields) throw new ProtocolFlaw(`a message of an unknown kind: ${line.slice(0, 80)}`);
  for (const [field, check] of Object.entries(fields)) {
    if (!check((value as Record<string, unknown>)[field]))
      throw new ProtocolFlaw(`a message "${say}" with a wrong ${field}`);
  }
  // The payload is JSON in a string, which is parsed later.
  if (say === "enqueue") refuseShape((value as Extract<Report, { say: "enqueue" }>).payload);
  return value as Report;
}

/** Splits a stream into lines. A line beyond the limit is a flaw at once, before it fills the memory. */
export class FrameReader {
  #parts: Buffer[] = [];
  #size = 0;
  readonly #limit: number;

  constructor(limit: number = MESSAGE_LIMIT) {
    this.#limit = limit;
  }

  *push(chunk: Buffer): Iterable<string> {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, end));
      from = end + 1;
      const line = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
      this.#parts = [];
      this.#size = 0;
      yield line.toString("utf8");
    }
    if (from < chunk.length) this.#add(chunk.subarray(from));
  }

  #add(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#limit) throw new ProtocolFlaw(`a message of more than ${this.#limit} bytes`);
    this.#parts.push(part);
  }
}
