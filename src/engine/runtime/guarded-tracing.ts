import { callSafely } from "../../core/user-values.ts";
import type { Logger } from "../../ports/log.ts";
import type { AttemptTrace, CallTracing, EnqueueTrace, Tracing } from "../../ports/trace.ts";

type Guard = (call: () => unknown) => void;

function guardWith(logger: Logger): Guard {
  const failed = (error: unknown) => logger.warn({ error }, "a tracer threw; its span is lost");
  return (call) => callSafely(call, failed);
}

/** The tracing of a user. A tracer that throws costs its spans, and neither the enqueue nor the attempt. */
export function guardedTracing(tracing: Tracing, logger: Logger): Tracing {
  const guard = guardWith(logger);
  return {
    enqueue(what) {
      let meta: EnqueueTrace["meta"] = {};
      const trace = begun(guard, () => tracing.enqueue(what));
      guard(() => {
        meta = { ...trace?.meta };
      });
      return { meta, ended: (outcome) => guard(() => trace?.ended(outcome)) };
    },
    enter(row) {
      const trace = begun(guard, () => tracing.enter(row));
      return {
        run: (call) => runIn(trace, call, guard),
        aborted: (reason) => guard(() => trace?.aborted(reason)),
        settled: (verdict) => guard(() => trace?.settled(verdict)),
      };
    },
    ended: (row, verdict) => guard(() => tracing.ended(row, verdict)),
  };
}

/** The same for calls. */
export function guardedCallTracing(tracing: CallTracing, logger: Logger): CallTracing {
  const guard = guardWith(logger);
  return {
    call(name) {
      const trace = begun(guard, () => tracing.call(name));
      return {
        run: (call) => runIn(trace, call, guard),
        aborted: (reason) => guard(() => trace?.aborted(reason)),
        ended: (end) => guard(() => trace?.ended(end)),
      };
    },
  };
}

/** The span, or undefined if the tracer threw. */
function begun<Trace>(guard: Guard, begin: () => Trace): Trace | undefined {
  let trace: Trace | undefined;
  guard(() => {
    trace = begin();
  });
  return trace;
}

/** Calls once, in the span if the tracer allows it. What the call throws is not the tracer's error. */
function runIn<Value>(trace: Pick<AttemptTrace, "run"> | undefined, call: () => Value, guard: Guard): Value {
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
