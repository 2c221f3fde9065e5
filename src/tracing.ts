import { createRequire } from "node:module";
import type { Attributes, Context, Span, Tracer } from "@opentelemetry/api";
import type { LifecycleEvent } from "./core/job/decide/decision.ts";
import { dueAtOf, type JobRow } from "./core/job/job.ts";
import type { AbortReason } from "./core/job/reasons.ts";
import { ifMissing } from "./core/load-package.ts";
import type {
  AttemptTrace,
  CallTrace,
  CallTracing,
  EnqueueToTrace,
  EnqueueTrace,
  TracedCall,
  TracedVerdict,
  Tracing,
} from "./ports/trace.ts";

/** The fields of W3C Trace Context, as OpenTelemetry's own propagator names them. */
const CARRIED = ["traceparent", "tracestate", "baggage"] as const;

type Api = typeof import("@opentelemetry/api");

let found: Api | undefined;

/**
 * The copy that the user has: spans of another one would reach no SDK. It is required, not imported, because this entry must
 * load without it, and a bundle must not get a copy of its own.
 */
function api(): Api {
  try {
    found ??= createRequire(import.meta.url)("@opentelemetry/api") as Api;
    return found;
  } catch (error) {
    return ifMissing("@opentelemetry/api", "Tracing")(error);
  }
}

/**
 * Traces jobs with the OpenTelemetry SDK of the process: `openEngine({ store, tracing: openTelemetry() })`. A job is
 * one trace: `enqueue`, then for each attempt `wait`, `attempt` and, inside it, `settle`. Calls have one span each:
 * `createCalls({ tracing: openTelemetry() })`.
 */
export function openTelemetry(options: { readonly tracer?: Tracer } = {}): Tracing & CallTracing {
  const { trace } = api();
  const tracer = options.tracer ?? trace.getTracer("curfew");
  return {
    enqueue: (request) => traceEnqueue(tracer, request),
    enter: (row) => new OpenAttempt(tracer, row),
    ended(row, verdict) {
      // A job that ended while it waited has no attempt.
      if (row.startedAt === null) traceEndOfWait(tracer, row, verdict);
      else new OpenAttempt(tracer, row).settled(verdict);
    },
    call: (name) => new OpenCall(tracer, name),
  };
}

/** The span of a call through all its tries, a child of what its caller was doing. */
class OpenCall implements CallTrace {
  readonly #span: Span;
  readonly #context: Context;

  constructor(tracer: Tracer, name: string) {
    const parent = api().context.active();
    this.#span = tracer.startSpan(`call ${name}`, { attributes: { "curfew.call.name": name } }, parent);
    this.#context = api().trace.setSpan(parent, this.#span);
  }

  run<Value>(call: () => Value): Value {
    return api().context.with(this.#context, call);
  }

  aborted(reason: AbortReason): void {
    addSignal(this.#span, reason);
  }

  ended({ outcome, attempts, kind, limit, error }: TracedCall): void {
    this.#span.setAttributes({
      "curfew.outcome": outcome,
      "curfew.attempt": attempts,
      ...(kind !== undefined && { "curfew.timeout.kind": kind }),
      ...(kind !== undefined && limit !== null && { "curfew.timeout.limit": Math.round(limit) }),
    });
    if (outcome !== "ok" && outcome !== "late") fail(this.#span, error);
    this.#span.end();
  }
}

function carriedBy(meta: Readonly<Record<string, unknown>> | undefined): Record<string, string> {
  const carrier: Record<string, string> = {};
  for (const name of CARRIED) {
    const value = meta?.[name];
    if (typeof value === "string") carrier[name] = value;
  }
  return carrier;
}

function traceEnqueue(tracer: Tracer, { type, queue, count, meta }: EnqueueToTrace): EnqueueTrace {
  const given = carriedBy(meta);
  // The parent in the job's meta, if the caller set one; else the active span.
  const parent =
    given.traceparent === undefined
      ? api().context.active()
      : api().propagation.extract(api().ROOT_CONTEXT, given);
  const attributes = {
    ...commonAttributes(type, queue),
    "messaging.operation.type": "send",
    ...(count > 1 && { "messaging.batch.message_count": count }),
  };
  const span = tracer.startSpan(`enqueue ${type}`, { kind: api().SpanKind.PRODUCER, attributes }, parent);
  const carrier: Record<string, string> = {};
  api().propagation.inject(api().trace.setSpan(parent, span), carrier);
  return {
    meta: carrier,
    ended(outcome) {
      if ("error" in outcome) fail(span, outcome.error);
      else if (outcome.ids.length === 1) span.setAttribute("messaging.message.id", outcome.ids[0] as string);
      span.end();
    },
  };
}

class OpenAttempt implements AttemptTrace {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #context: Context;

  constructor(tracer: Tracer, row: JobRow) {
    this.#tracer = tracer;
    const parent = contextOf(row);
    const startTime = new Date(row.startedAt ?? row.createdAt);
    const wait = tracer.startSpan(
      `wait ${row.type}`,
      { startTime: new Date(dueAtOf(row.rank)), attributes: jobAttributes(row) },
      parent,
    );
    wait.end(startTime);
    const attributes = { ...jobAttributes(row), "messaging.operation.type": "process" };
    this.#span = tracer.startSpan(
      `attempt ${row.type}`,
      { kind: api().SpanKind.CONSUMER, startTime, attributes },
      parent,
    );
    this.#context = api().trace.setSpan(parent, this.#span);
  }

  run<Value>(call: () => Value): Value {
    return api().context.with(this.#context, call);
  }

  aborted(reason: AbortReason): void {
    addSignal(this.#span, reason);
  }

  settled({ state, events, at, committedAt }: TracedVerdict): void {
    const settle = this.#tracer.startSpan("settle", { startTime: new Date(at) }, this.#context);
    settle.end(new Date(committedAt));
    addVerdict(this.#span, state, events, at);
    this.#span.end(new Date(Math.max(at, committedAt)));
  }
}

function addSignal(span: Span, { kind, elapsed }: AbortReason): void {
  span.addEvent("signal", { "curfew.reason": kind, "curfew.elapsed": elapsed });
}

function traceEndOfWait(tracer: Tracer, row: JobRow, { state, events, at }: TracedVerdict): void {
  const span = tracer.startSpan(
    `wait ${row.type}`,
    { startTime: new Date(dueAtOf(row.rank)), attributes: jobAttributes(row) },
    contextOf(row),
  );
  addVerdict(span, state, events, at);
  span.end(new Date(at));
}

/** Timeouts and failures become events of the span; an error becomes its status. */
function addVerdict(span: Span, state: string, events: readonly LifecycleEvent[], at: number): void {
  span.setAttribute("curfew.state", state);
  for (const { name, error, late } of events) {
    const attributes: Attributes = {
      ...(error && { "exception.type": error.type, "exception.message": error.message }),
      ...(error?.kind && { "curfew.timeout.kind": error.kind }),
      ...(error?.limit !== undefined && { "curfew.timeout.limit": error.limit }),
      ...(late && { "curfew.late": true }),
    };
    span.addEvent(name, attributes, new Date(at));
    if (error) span.setStatus({ code: api().SpanStatusCode.ERROR, message: error.message });
  }
}

function fail(span: Span, error: unknown): void {
  span.recordException(error instanceof Error ? error : String(error));
  span.setStatus({
    code: api().SpanStatusCode.ERROR,
    message: error instanceof Error ? error.message : String(error),
  });
}

function contextOf({ options }: JobRow): Context {
  return api().propagation.extract(api().ROOT_CONTEXT, carriedBy(options?.meta));
}

/** Attributes of the semantic conventions for messaging, where they have one. */
function commonAttributes(type: string, queue: string): Attributes {
  return { "messaging.system": "curfew", "messaging.destination.name": queue, "curfew.job.type": type };
}

function jobAttributes(row: JobRow): Attributes {
  return {
    ...commonAttributes(row.type, row.queue),
    "messaging.message.id": row.id,
    "curfew.attempt": row.attempt,
  };
}
