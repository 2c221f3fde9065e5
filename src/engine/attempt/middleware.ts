import type { AttemptContext, Handler, Middleware } from "./processor.ts";

/** How an attempt acts on the handler inside its middleware. */
export interface Enforced {
  /** Rejects with a TimeoutError at the hard deadline, even if the handler ignores its signal. */
  readonly forced: Promise<never>;
  /** The TimeoutError that an error thrown after our signal stands for, or the error itself (SEMANTICS 3.5). */
  readonly classify: (error: unknown) => unknown;
  /** Called when the handler is entered and left, because middleware may return before the handler does. */
  readonly inside: (isInside: boolean) => void;
}

/**
 * Runs a handler inside its middleware, outer to inner. Retry is outside of all middleware: it decides on the value or
 * error that the outermost one returns or throws.
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
