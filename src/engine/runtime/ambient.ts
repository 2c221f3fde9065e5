import { AsyncLocalStorage } from "node:async_hooks";

/** The handler, step or call that runs now: what is left of its time, and its signal. */
export interface Ambient {
  /** Milliseconds until its soft deadline; Infinity for none. */
  remaining(): number;
  readonly signal: AbortSignal;
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

export function runInside<Value>(ambient: Ambient, call: () => Value): Value {
  return storage ? storage.run(ambient, call) : call();
}
