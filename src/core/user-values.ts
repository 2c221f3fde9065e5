/**
 * The one place that reads values of user code: what a handler threw, what a callback returned. Such a value may throw
 * when it is read: a getter, a revoked Proxy, a `toString`. Nothing in this file throws, except `isThenable`.
 */

const UNREADABLE = "(a value that cannot be read)";

/** `value instanceof type`; false if the value throws when it is asked, as a revoked Proxy does. */
export function isInstance<Type>(
  value: unknown,
  type: abstract new (...args: never[]) => Type,
): value is Type {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

/** `value[key]`; undefined if the value has no such key or throws. */
export function readKey(value: unknown, key: string): unknown {
  try {
    return (value as { readonly [key: string]: unknown })[key];
  } catch {
    return undefined;
  }
}

/** `Object.keys(value)`; none if the value throws. */
export function ownKeys(value: object): readonly string[] {
  try {
    return Object.keys(value);
  } catch {
    return [];
  }
}

/** `String(value)`, or a text that says that the value cannot be read. */
export function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return tagOf(value);
  }
}

/** A text for the kind of the value, such as `[object Map]`. */
export function tagOf(value: unknown): string {
  try {
    return Object.prototype.toString.call(value);
  } catch {
    return UNREADABLE;
  }
}

export interface DescribedError {
  readonly name: string;
  readonly message: string;
  readonly stack?: string;
  readonly code?: string;
  readonly cause?: unknown;
}

/** The fields of a thrown Error; undefined if the value is not an Error. */
export function describeError(thrown: unknown): DescribedError | undefined {
  if (!isInstance(thrown, Error)) return undefined;
  const name = readKey(thrown, "name");
  const message = readKey(thrown, "message");
  const stack = readKey(thrown, "stack");
  const code = codeOf(thrown);
  const cause = readKey(thrown, "cause");
  return {
    name: typeof name === "string" && name !== "" ? name : "Error",
    message: message === undefined ? "(a message that cannot be read)" : textOf(message),
    ...(typeof stack === "string" && { stack }),
    ...(code !== undefined && { code }),
    ...(cause !== undefined && { cause }),
  };
}

/** The `code` of a thrown value, if it has one that is a text. */
export function codeOf(thrown: unknown): string | undefined {
  if (typeof thrown !== "object" || thrown === null) return undefined;
  const code = readKey(thrown, "code");
  return typeof code === "string" && code !== "" ? code : undefined;
}

/**
 * Calls user code whose result does not matter. `failed` gets what it throws, or what its promise rejects with, and must
 * not throw itself.
 */
export function callSafely(call: () => unknown, failed: (error: unknown) => void): void {
  try {
    const returned = call();
    if (returned instanceof Promise) returned.catch(failed);
  } catch (error) {
    failed(error);
  }
}

/**
 * Also true for query builders, which have `then` and do their work when they are awaited. Throws if the value cannot be
 * read: then the caller's handler has failed.
 */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
