import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineJob, openEngine, processor, snooze, type WorkOptions } from "../../src/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { errorOf, jobOf, jobWith, openStage, type Stage } from "./stage.ts";

const job = jobOf();

/** Plain JavaScript may pass anything. */
const loose = (value: unknown) => value as never;

async function storedJobs(stage: Stage): Promise<number> {
  return (await jobsOf(stage.engine.store)).length;
}

describe("1.1 enqueue refuses bad input and stores nothing", () => {
  it.each<[string, unknown, string, string]>([
    ["a wait of 0", { timeouts: { wait: "0s" } }, "invalid_duration", "options.timeouts.wait"],
    ["a negative attempt", { timeouts: { attempt: "-1s" } }, "invalid_duration", "options.timeouts.attempt"],
    ["a bare number", { timeouts: { total: 30 } }, "invalid_duration", "options.timeouts.total"],
    ["NaN", { timeouts: { heartbeat: Number.NaN } }, "invalid_duration", "options.timeouts.heartbeat"],
    ["30 sec", { timeouts: { grace: "30 sec" } }, "invalid_duration", "options.timeouts.grace"],
    ["over 10 years", { timeouts: { total: "4000d" } }, "invalid_duration", "options.timeouts.total"],
    ["an infinite total", { timeouts: { total: "Infinity" } }, "invalid_duration", "options.timeouts.total"],
    ["an unknown mode", { timeouts: { mode: "kill" } }, "invalid_timeout", "options.timeouts.mode"],
    ["an unknown option", { timeout: "5s" }, "unknown_option", "options.timeout"],
    ["a bad retry", { retry: { attempts: 0 } }, "invalid_retry", "options.retry.attempts"],
    ["a bad id", { id: "1" }, "invalid_option", "options.id"],
    ["a bad priority", { priority: 1e3 }, "invalid_priority", "options.priority"],
    ["a bad queue", { queue: "A B" }, "invalid_name", "options.queue"],
    ["a local time", { at: "2030-01-31T12:00:00" }, "invalid_instant", "options.at"],
    [
      "a wait that ends before the start",
      { delay: "1h", timeouts: { wait: "1h" } },
      "never_runs",
      "timeouts.wait",
    ],
    [
      "a total that ends before it",
      { delay: "2h", timeouts: { total: "1h" } },
      "never_runs",
      "timeouts.total",
    ],
    ["an expiresAt in the past", { expiresAt: new Date(0) }, "never_runs", "expiresAt"],
    [
      "total below attempt",
      { timeouts: { total: "1s", attempt: "2s" } },
      "timeouts_contradict",
      "options.timeouts.total",
    ],
  ])("%s", async (_name, options, code, field) => {
    const stage = await openStage();
    const error = await errorOf(stage.engine.enqueue(job, null, loose(options)));
    expect(error).toMatchObject({ code, field });
    expect(error.message).toMatch(/^[\w.]+: .+; .+/);
    const many = await errorOf(stage.engine.enqueueMany(job, [null, null], loose(options)));
    expect(many.message).toMatch(/^[\w.]+: .+; .+/);
    expect(await storedJobs(stage)).toBe(0);
  });

  it("enqueueMany refuses one id for many jobs", async () => {
    const stage = await openStage();
    const id = "01890000-0000-7000-8000-000000000001";
    const error = await errorOf(stage.engine.enqueueMany(job, [1, 2], loose({ id })));
    expect(error).toMatchObject({ code: "unknown_option", field: "options.id" });
    expect(await storedJobs(stage)).toBe(0);
  });

  it("enqueueMany refuses a definition that defineJob did not make, and payloads that are no list", async () => {
    const stage = await openStage();
    const error = await errorOf(stage.engine.enqueue(loose({ type: "a" }), null));
    expect(error).toMatchObject({ code: "invalid_definition", field: "definition" });
    const many = await errorOf(stage.engine.enqueueMany(job, loose("ab")));
    expect(many).toMatchObject({ code: "invalid_option", field: "payloads" });
  });

  it("enqueue refuses a payload that fails its schema, is no JSON or is too large", async () => {
    const stage = await openStage();
    const typed = defineJob({ type: "a", payload: z.object({ cents: z.int() }) });
    const unfit = await errorOf(stage.engine.enqueue(typed, loose({ cents: 0.5 })));
    expect(unfit).toMatchObject({ code: "invalid_payload", field: "payload.cents" });
    const notJson = await errorOf(stage.engine.enqueue(job, loose({ at: 1n })));
    expect(notJson).toMatchObject({ code: "not_json", field: "payload.at" });
    const large = await errorOf(stage.engine.enqueue(job, "x".repeat(2_000_000)));
    expect(large).toMatchObject({ code: "too_large", field: "payload" });
    expect(await storedJobs(stage)).toBe(0);
  });

  it("enqueueMany stores none of 5,000 payloads if one is bad", async () => {
    const stage = await openStage();
    const typed = defineJob({ type: "a", payload: z.object({ nth: z.int() }) });
    const payloads = Array.from({ length: 5_000 }, (_, nth) => ({ nth: nth === 4_321 ? 0.5 : nth }));
    const error = await errorOf(stage.engine.enqueueMany(typed, payloads));
    expect(error).toMatchObject({ code: "invalid_payload" });
    expect(await storedJobs(stage)).toBe(0);
    expect(stage.counters().enqueued).toBe(0);
  });
});

describe("1.1 work() refuses bad input", () => {
  const { processors } = jobWith(() => null);

  it.each<[string, unknown, string, string]>([
    ["no processors", { processors: [] }, "invalid_option", "work.processors"],
    ["a processor that is none", { processors: [{}] }, "invalid_option", "work.processors[0]"],
    [
      "two of one type",
      { processors: [...processors, ...processors] },
      "invalid_option",
      "work.processors[1]",
    ],
    ["no queue", { processors, queues: {} }, "invalid_option", "work.queues"],
    [
      "a concurrency of 0",
      { processors, queues: { default: { concurrency: 0 } } },
      "invalid_limit",
      "work.queues.default.concurrency",
    ],
    [
      "half a slot",
      { processors, queues: { default: { concurrency: 1.5 } } },
      "invalid_limit",
      "work.queues.default.concurrency",
    ],
    [
      "an unknown queue option",
      { processors, queues: { default: { slots: 1 } } },
      "unknown_option",
      "work.queues.default.slots",
    ],
    [
      "a bad queue name",
      { processors, queues: { "A B": { concurrency: 1 } } },
      "invalid_name",
      "work.queues.A B",
    ],
    ["a maxStuck of 0", { processors, maxStuck: 0 }, "invalid_limit", "work.maxStuck"],
    ["a bare drain", { processors, drain: 25 }, "invalid_duration", "work.drain"],
    [
      "middleware that is no list",
      { processors, middleware: () => null },
      "invalid_option",
      "work.middleware",
    ],
    [
      "middleware that is no function",
      { processors, middleware: [1] },
      "invalid_option",
      "work.middleware[0]",
    ],
    ["an unknown option", { processors, concurrency: 5 }, "unknown_option", "work.concurrency"],
  ])("%s", async (_name, options, code, field) => {
    const stage = await openStage();
    const before = stage.system.pendingTimers;
    expect(() => stage.engine.work(options as WorkOptions)).toThrow(
      expect.objectContaining({ code, field, message: expect.stringMatching(/: .+; .+/) }),
    );
    expect(stage.system.pendingTimers).toBe(before);
  });

  it("work() refuses a handler that is no function, and a bad definition", () => {
    expect(() => processor(job, loose("run"))).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "handler" }),
    );
    expect(() =>
      processor(
        loose({}),
        loose(() => null),
      ),
    ).toThrow(expect.objectContaining({ code: "invalid_definition" }));
  });
});

describe("1.1 other calls refuse bad input and change nothing", () => {
  it.each<[string, unknown, string, string]>([
    ["nothing at all", {}, "invalid_option", "extend"],
    ["a bare number", { attempt: 5 }, "invalid_duration", "extend.attempt"],
    ["a total of 0", { total: "0s" }, "invalid_duration", "extend.total"],
    ["wait", { wait: "5m" }, "unknown_option", "extend.wait"],
    ["grace", { grace: "5m" }, "unknown_option", "extend.grace"],
    ["no object", "5m", "invalid_option", "extend"],
  ])("extend with %s", async (_name, options, code, field) => {
    const stage = await openStage();
    const { id } = await stage.engine.enqueue(job);
    const before = await stage.load({ id });
    const error = await errorOf(stage.engine.extend(id, loose(options)));
    expect(error).toMatchObject({ code, field, message: expect.stringMatching(/: .+; .+/) });
    expect(await stage.load({ id })).toEqual(before);
  });

  it.each<[string, object, string, string]>([
    ["a bad timeout", { timeouts: { attempt: "5 min" } }, "invalid_duration", "timeouts.attempt"],
    ["a bad retry", { retry: { retryFit: "most" } }, "invalid_retry", "retry.retryFit"],
    ["a bad retention", { retention: 5 }, "invalid_duration", "retention"],
    ["an unknown option", { queue: "a" }, "unknown_option", "options.queue"],
    ["a bad document limit", { documentLimit: "1mb" }, "invalid_limit", "documentLimit"],
    ["an unknown store", { store: "mysql://u:secret@host/db" }, "unknown_store", "store"],
    ["no store", { store: undefined }, "unknown_store", "store"],
  ])("openEngine with %s", async (_name, options, code, field) => {
    const error = await errorOf(openEngine({ store: "memory:", ...options } as never));
    expect(error).toMatchObject({ code, field });
    expect(error.message).not.toContain("secret");
  });

  it("configure, pause and resume refuse a bad name or setting", async () => {
    const { engine } = await openStage();
    const setting = await errorOf(engine.queues.configure("a", { timeouts: { attempt: loose("5 min") } }));
    expect(setting).toMatchObject({ code: "invalid_duration", field: "queue.timeouts.attempt" });
    for (const call of [
      engine.queues.configure("A B", {}),
      engine.queues.pause("A B"),
      engine.queues.resume("A B"),
    ])
      expect(await errorOf(call)).toMatchObject({ code: "invalid_name", field: "queue" });
    expect(await errorOf(engine.queues.configure("a", loose({ colour: 5 })))).toMatchObject({
      code: "unknown_option",
      field: "queue.colour",
    });
    expect(await errorOf(engine.queues.configure("a", loose({ rate: 5 })))).toMatchObject({
      field: "queue.rate",
    });
  });

  it("calls refuse an unknown job, an unknown event and a bad wait", async () => {
    const { engine } = await openStage();
    const id = "01890000-0000-7000-8000-000000000001";
    for (const call of [
      engine.cancel(id),
      engine.retry(id),
      engine.extend(id, { total: "1h" }),
      engine.explain(id),
    ])
      expect(await errorOf(call)).toMatchObject({ code: "not_found" });
    const refusals = [
      [engine.job(id).result({ within: loose("5 min") }), "invalid_duration", "result.within"],
      [engine.job(id).result(loose({ withn: "5m" })), "unknown_option", "result.withn"],
      [engine.timeouts.enqueue(job, loose(undefined), loose(undefined)), "invalid_when", "options.dueAt"],
      [engine.close({ drain: loose(5) }), "invalid_duration", "close.drain"],
      [engine.close(loose({ drian: "5s" })), "unknown_option", "close.drian"],
    ] as const;
    for (const [call, code, field] of refusals) expect(await errorOf(call)).toMatchObject({ code, field });
    expect(() => snooze(loose("10m"))).toThrow(
      'snooze: "10m" is not a valid value here; write { after: "10m" }',
    );
    expect(() => engine.on(loose("job.complete"), () => {})).toThrow(/on: "job.complete".*job\.completed/);
    expect(() => engine.on("job.completed", loose("print"))).toThrow(/on\(job.completed\): "print"/);
  });
});
