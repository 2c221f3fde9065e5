import type { AttemptContext, Handler, Middleware } from "./processor.ts";

/** The part of an attempt that middleware must feel: its end by force, and what our signal makes of a thrown error. */
export interface Enforced {
  /** Rejects with a TimeoutError at the hard deadline, whether or not the handler listens. */
  readonly forced: Promise<never>;
  /** The TimeoutError that an error thrown after our signal stands for, or the error itself (SEMANTICS 3.5). */
  readonly classify: (error: unknown) => unknown;
  /** Told when the handler itself is entered and left, since middleware may not wait for it. */
  readonly inside: (isInside: boolean) => void;
}

/**
 * Runs a handler inside its middleware, outer to inner. Retry sits outside of all of it and cannot be registered in
 * the wrong order: whatever comes out here is what the retry policy judges.
 */
export function runPipeline(
  middleware: readonly Middleware[],
  handler: Handler<never, unknown>,
  context: AttemptContext,
  enforced: Enforced,
): Promise<unknown> {
  const enter = async (index: number): Promise<unknown> => {
    const layer = middleware[index];
    if (!layer) {
      enforced.inside(true);
      const run = (async () => handler(context as AttemptContext<never>))().finally(() =>
        enforced.inside(false),
      );
      return Promise.race([run, enforced.forced]).catch((error) => {
        throw enforced.classify(error);
      });
    }
    let isCalled = false;
    return layer(context, () => {
      if (isCalled) throw new Error("next() was called twice by one middleware");
      isCalled = true;
      return enter(index + 1);
    });
  };
  return enter(0);
}

/** Query builders and the like are promises only in shape, and do their work when they are awaited. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (value instanceof Promise) return true;
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
