import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  type SpanOptions,
  type SpanStatus,
  type Tracer,
  trace,
} from "@opentelemetry/api";

/** A span as the tests look at it. */
export interface SeenSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly startedAt: unknown;
  readonly attributes: Attributes;
  readonly events: string[];
  status: SpanStatus | undefined;
  endedAt: unknown;
}

/** As much of an OpenTelemetry SDK as a test needs: it keeps what it is told. */
export function setUpTracer(): { readonly tracer: Tracer; readonly spans: SeenSpan[]; tearDown(): void } {
  const spans: SeenSpan[] = [];
  const storage = new AsyncLocalStorage<Context>();
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, call, self, ...args) => storage.run(active, () => call.call(self as never, ...args)),
    bind: (_active, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  propagation.setGlobalPropagator({
    inject(from, carrier, setter) {
      const span = trace.getSpanContext(from);
      if (span) setter.set(carrier, "traceparent", `00-${span.traceId}-${span.spanId}-01`);
    },
    extract(into, carrier, getter) {
      const [, traceId, spanId] = String(getter.get(carrier, "traceparent") ?? "").split("-");
      if (!traceId || !spanId) return into;
      return trace.setSpanContext(into, { traceId, spanId, traceFlags: 1, isRemote: true });
    },
    fields: () => ["traceparent"],
  });
  const startSpan = (name: string, options: SpanOptions = {}, from: Context = context.active()) => {
    const parent = trace.getSpanContext(from);
    const number = spans.length + 1;
    const span: SeenSpan = {
      name,
      traceId: parent?.traceId ?? number.toString(16).padStart(32, "0"),
      spanId: number.toString(16).padStart(16, "0"),
      parentId: parent?.spanId,
      startedAt: options.startTime,
      attributes: { ...options.attributes },
      events: [],
      status: undefined,
      endedAt: undefined,
    };
    spans.push(span);
    return recording(span);
  };
  const tracer = { startSpan } as unknown as Tracer;
  return {
    tracer,
    spans,
    tearDown() {
      context.disable();
      propagation.disable();
    },
  };
}

function recording(span: SeenSpan): Span {
  const itself = {
    spanContext: (): SpanContext => ({ traceId: span.traceId, spanId: span.spanId, traceFlags: 1 }),
    setAttribute(name: string, value: never) {
      span.attributes[name] = value;
      return itself;
    },
    setAttributes(attributes: Attributes) {
      Object.assign(span.attributes, attributes);
      return itself;
    },
    addEvent(name: string) {
      span.events.push(name);
      return itself;
    },
    setStatus(status: SpanStatus) {
      span.status = status;
      return itself;
    },
    recordException: () => {},
    end(at?: unknown) {
      span.endedAt = at ?? "now";
    },
  };
  return itself as unknown as Span;
}
