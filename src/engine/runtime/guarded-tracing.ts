import { callSafely } from "../../core/user-values.ts";
import type { Logger } from "../../ports/log.ts";
import type { AttemptTrace, EnqueueTrace, Tracing } from "../../ports/trace.ts";

/** The tracing of a user. A tracer that throws costs its spans, and neither the enqueue nor the attempt. */
export function guardedTracing(tracing: Tracing, logger: Logger): Tracing {
  const failed = (error: unknown) => logger.warn({ error }, "a tracer threw; its span is lost");
  const guard = (call: () => unknown) => callSafely(call, failed);
  return {
    enqueue(what) {
      let trace: EnqueueTrace | undefined;
      let meta: EnqueueTrace["meta"] = {};
      guard(() => {
        trace = tracing.enqueue(what);
        meta = { ...trace.meta };
      });
      return { meta, ended: (outcome) => guard(() => trace?.ended(outcome)) };
    },
    enter(row) {
      let trace: AttemptTrace | undefined;
      guard(() => {
        trace = tracing.enter(row);
      });
      return {
        run: (call) => runIn(trace, call, guard),
        aborted: (reason) => guard(() => trace?.aborted(reason)),
        settled: (verdict) => guard(() => trace?.settled(verdict)),
      };
    },
    ended: (row, verdict) => guard(() => tracing.ended(row, verdict)),
  };
}

/** Calls once, in the span if the tracer allows it. What the call throws is not the tracer's error. */
function runIn<Value>(
  trace: AttemptTrace | undefined,
  call: () => Value,
  guard: (call: () => unknown) => void,
): Value {
  let outcome: { readonly value: Value } | { readonly error: unknown } | undefined;
  guard(() => {
    trace?.run(() => {
      try {
        outcome ??= { value: call() };
      } catch (error) {
        outcome = { error };
      }
    });
  });
  // TypeScript does not see that the closure assigns it.
  const ended = outcome as { readonly value: Value } | { readonly error: unknown } | undefined;
  if (!ended) return call();
  if ("error" in ended) throw ended.error;
  return ended.value;
}
