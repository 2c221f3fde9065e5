import type { AttemptContext, Handler, Middleware } from "./processor.ts";

/** The part of an attempt that middleware must feel: its end by force, and what our signal makes of a thrown error. */
export interface Enforced {
  /** Rejects with a TimeoutError at the hard deadline, whether or not the handler listens. */
  readonly forced: Promise<never>;
  /** The TimeoutError that an error thrown after our signal stands for, or the error itself (SEMANTICS 3.5). */
  readonly classify: (error: unknown) => unknown;
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
      const run = (async () => handler(context as AttemptContext<never>))();
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
