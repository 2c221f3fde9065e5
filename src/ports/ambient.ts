import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { TimeoutError } from "../core/job/reasons.ts";
import { isInstance } from "../core/user-values.ts";

/** The handler, step or call that runs now: what is left of its time, and its signal. */
export interface Ambient {
  /** Milliseconds until its signal aborts by a timeout, at the latest; Infinity for none. */
  untilSignal(): number;
  readonly signal: AbortSignal;
}

/**
 * What has its limit from the code around ends when that signal aborts, and this much later without it. It must not end
 * before: a handler whose call has timed out would fail, when it is about to time out itself.
 */
export const SIGNAL_WITHIN = 100;

/** Whether the signal of the code around aborted because its time is up. Other reasons stop what runs inside. */
export function hasTimedOut(around: Ambient): boolean {
  return isInstance(around.signal.reason, TimeoutError) && around.untilSignal() < SIGNAL_WITHIN;
}

/** Made when calls are first used, because a program without calls should pay nothing for it. */
let storage: AsyncLocalStorage<Ambient> | undefined;

/** From now on, handlers that are entered can be asked for by `currentAmbient`. */
export function followDeadlines(): void {
  storage ??= new AsyncLocalStorage();
}

/** The innermost handler, step or call; undefined outside of all. */
export function currentAmbient(): Ambient | undefined {
  return storage?.getStore();
}

/** Returns a function that runs others in the async context of now: what the caller stored for its traces and tenants. */
export function captureContext(): <Value>(call: () => Value) => Value {
  // `AsyncLocalStorage.snapshot()` does the same and costs microseconds.
  const resource = new AsyncResource("curfew.context");
  return (call) => resource.runInAsyncScope(call);
}

export function runInside<Value>(ambient: Ambient, call: () => Value): Value {
  return storage ? storage.run(ambient, call) : call();
}
