import { context, trace } from "@opentelemetry/api";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { constant, defineJob, processor, unchecked } from "../src/index.ts";
import { openTestEngine } from "../src/testing/index.ts";
import { rowOf } from "../src/testing/read-store.ts";
import { openTelemetry } from "../src/tracing.ts";
import { never, openCalls } from "./calls/open-calls.ts";
import { type SeenSpan, setUpTracer } from "./tracer.ts";

const charge = defineJob({
  type: "card.charge",
  payload: unchecked<{ cents: number }>(),
  timeouts: { attempt: "10s", grace: "0s" },
  retry: { attempts: 1, backoff: constant({ first: "1s" }) },
});

let tracer: ReturnType<typeof setUpTracer>;
beforeEach(() => {
  tracer = setUpTracer();
});
afterEach(() => tracer.tearDown());

const open = () => openTestEngine({ tracing: openTelemetry({ tracer: tracer.tracer }) });
const named = (name: string): SeenSpan => tracer.spans.find((span) => span.name === name) as SeenSpan;

describe("traces", () => {
  it("a job is one trace: enqueue, wait, attempt, settle, and what the handler does", async () => {
    await using test = await open();
    test.engine.work({
      processors: [
        processor(charge, async () => {
          await test.sleep("2s");
          tracer.tracer.startSpan("inside", {}, context.active()).end();
        }),
      ],
    });
    const job = await test.engine.enqueue(charge, { cents: 1 }, { delay: "5s" });
    await test.advance("1m");
    expect(tracer.spans.map(({ name }) => name)).toEqual([
      "enqueue card.charge",
      "wait card.charge",
      "attempt card.charge",
      "inside",
      "settle",
    ]);
    const [enqueue, wait, attempt, inside, settle] = tracer.spans as [
      SeenSpan,
      SeenSpan,
      SeenSpan,
      SeenSpan,
      SeenSpan,
    ];
    expect(new Set(tracer.spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect([wait.parentId, attempt.parentId]).toEqual([enqueue.spanId, enqueue.spanId]);
    expect([inside.parentId, settle.parentId]).toEqual([attempt.spanId, attempt.spanId]);
    expect(attempt.attributes).toMatchObject({
      "messaging.system": "curfew",
      "messaging.destination.name": "default",
      "messaging.message.id": job.id,
      "curfew.attempt": 1,
      "curfew.state": "completed",
    });
    expect(attempt.events).toEqual(["job.completed"]);
    expect(attempt.status).toBeUndefined();
    // The wait counts from when the job was due, not from when it was enqueued.
    expect(Number(wait.endedAt) - Number(wait.startedAt)).toBe(0);
    expect(Number(attempt.endedAt) - Number(attempt.startedAt)).toBe(2_000);
    expect(tracer.spans.every(({ endedAt }) => endedAt !== undefined)).toBe(true);
  });

  it("a timeout is an event of its attempt, with the signal before it", async () => {
    await using test = await open();
    test.engine.work({ processors: [processor(charge, ({ signal }) => test.sleep("1h", signal))] });
    await test.engine.enqueue(charge, { cents: 1 });
    await test.advance("1m");
    const attempt = named("attempt card.charge");
    expect(attempt.events).toEqual(["signal", "job.timeout", "job.failed", "job.discarded"]);
    expect(attempt.status).toMatchObject({ message: "Timed out after 10s" });
    expect(attempt.attributes["curfew.state"]).toBe("discarded");
  });

  it("a job that ends while it waits has a span that says so", async () => {
    await using test = await open();
    await test.engine.enqueue(charge, { cents: 1 }, { timeouts: { wait: "5s" } });
    await test.advance("1m");
    const wait = named("wait card.charge");
    expect(wait.events).toContain("job.ttl_expired");
    expect(wait.parentId).toBe(named("enqueue card.charge").spanId);
  });

  it("belongs to what its producer was doing, or to the parent that its meta names", async () => {
    await using test = await open();
    const request = tracer.tracer.startSpan("request");
    await context.with(trace.setSpan(context.active(), request), () =>
      test.engine.enqueue(charge, { cents: 1 }),
    );
    expect(named("enqueue card.charge").parentId).toBe(request.spanContext().spanId);

    const traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const job = await test.engine.enqueue(charge, { cents: 2 }, { meta: { traceparent, mine: 1 } });
    const second = tracer.spans.at(-1) as SeenSpan;
    expect(second.parentId).toBe("b".repeat(16));
    const { options } = (await rowOf(test.engine.store, job.id)) ?? {};
    expect(options?.meta).toEqual({ mine: 1, traceparent: `00-${"a".repeat(32)}-${second.spanId}-01` });
  });

  it("an enqueue that is refused ends its span with the error", async () => {
    await using test = await open();
    const refused = test.engine.enqueue(charge, { cents: 1 }, { priority: 7_000 });
    await expect(refused).rejects.toThrow("priority");
    expect(named("enqueue card.charge").status?.message).toContain("priority");
  });

  it("many jobs share one enqueue; each attempt is its child", async () => {
    await using test = await open();
    test.engine.work({ processors: [processor(charge, () => {})] });
    await test.engine.enqueueMany(charge, [{ cents: 1 }, { cents: 2 }]);
    await test.advance("1s");
    const enqueue = named("enqueue card.charge");
    const attempts = tracer.spans.filter(({ name }) => name === "attempt card.charge");
    expect(enqueue.attributes["messaging.batch.message_count"]).toBe(2);
    expect(attempts.map(({ parentId }) => parentId)).toEqual([enqueue.spanId, enqueue.spanId]);
  });

  it("the span of a remote attempt ends when it is reported", async () => {
    await using test = await open();
    const { service } = test.engine;
    const job = { definition: defineJob({ type: "remote.job" }), payload: "{}", options: {} };
    await service.enqueue([job as never], test.now());
    const fetched = service.fetch({ queues: ["default"], count: 1, worker: "w", hears: false });
    await test.advance("3s");
    const [row] = await fetched;
    const reported = service.report(row?.id as string, { worker: "w" }, () => ({
      type: "succeed",
      signalled: false,
    }));
    await test.settle();
    await reported;
    const attempt = named("attempt remote.job");
    expect(attempt.parentId).toBe(named("enqueue remote.job").spanId);
    expect(Number(attempt.endedAt) - Number(attempt.startedAt)).toBe(3_000);
    expect(attempt.attributes["curfew.state"]).toBe("completed");
  });
});

describe("traces of calls", () => {
  const openTraced = () => openCalls({ tracing: openTelemetry({ tracer: tracer.tracer }) });

  it("a call is one span through all its tries, a child of its caller, and its function runs inside", async () => {
    const { system, within, watch, sleep } = openTraced();
    const caller = tracer.tracer.startSpan("caller");
    const retry = { attempts: 2, backoff: constant({ first: "1s" }) };
    await context.with(trace.setSpan(context.active(), caller), () =>
      watch(
        within({ name: "quote", attempt: "5s", retry }, async ({ attempt }) => {
          tracer.tracer.startSpan(`inside ${attempt}`, {}, context.active()).end();
          await sleep(attempt === 1 ? 10_000 : 1_000);
        }),
      ),
    );
    await system.advance(20_000);
    const [outer, call, first, second] = tracer.spans as [SeenSpan, SeenSpan, SeenSpan, SeenSpan];
    expect(tracer.spans.map(({ name }) => name)).toEqual(["caller", "call quote", "inside 1", "inside 2"]);
    expect([call.parentId, first.parentId, second.parentId]).toEqual([
      outer.spanId,
      call.spanId,
      call.spanId,
    ]);
    expect(call.events).toEqual(["signal"]);
    expect(call.attributes).toEqual({
      "curfew.call.name": "quote",
      "curfew.outcome": "ok",
      "curfew.attempt": 2,
    });
    expect([call.status, call.endedAt !== undefined]).toEqual([undefined, true]);
  });

  it("a timeout, a failure and a stop are errors of their span", async () => {
    const { system, within, watch } = openTraced();
    const leaving = new AbortController();
    await watch(within({ name: "slow", attempt: "5s" }, never));
    await watch(within({ name: "broken" }, () => Promise.reject(new Error("no"))));
    await watch(within({ name: "left", signal: leaving.signal }, never));
    leaving.abort(new Error("gone"));
    await system.advance(10_000);
    const [slow, broken, left] = ["slow", "broken", "left"].map((name) => named(`call ${name}`));
    expect(slow?.attributes).toMatchObject({
      "curfew.outcome": "timeout",
      "curfew.timeout.kind": "execution",
      "curfew.timeout.limit": 5_000,
    });
    const status = [slow, broken, left].map((span) => span?.status?.message);
    expect(status).toEqual(["Timed out (execution) after 5s", "no", "gone"]);
    expect(tracer.spans.every(({ endedAt }) => endedAt !== undefined)).toBe(true);
  });

  it("a tracer that throws costs its span and nothing else, and one that is none is refused", async () => {
    const tracing = {
      call: () => {
        throw new Error("no tracer");
      },
    };
    const { within } = openCalls({ tracing });
    expect(await within({}, () => 7)).toBe(7);
    expect(() => openCalls({ tracing: {} as never })).toThrow("createCalls.tracing");
  });
});
