import { describe, expect, it } from "vitest";
import { z } from "zod";
import { at, enqueued, ID, newJob, T0 } from "../../../../test/support/rows.ts";
import { rankOf } from "../job.ts";
import { defineJob } from "../job-definition.ts";
import { type EnqueueOptions, prepareJob, preparePayload, stamp } from "./envelope.ts";

const job = defineJob({ type: "card.charge", queue: "money", priority: 5 });
const context = { now: T0, nextId: () => ID, hash: (text: string) => text };

/** Options as plain JavaScript may write them. */
const enqueue = (options: object) => () => prepareJob(job, options as EnqueueOptions, context);

describe("an enqueue", () => {
  it("takes from the definition what it does not say itself", () => {
    expect(prepareJob(job, undefined, context)).toMatchObject({
      id: undefined,
      queue: "money",
      type: "card.charge",
      priority: 5,
      createdAt: T0,
      options: null,
      image: { state: "available", rank: rankOf(5, T0), wakeAt: null, attempt: 0 },
    });
    const own = prepareJob(job, { queue: "other", priority: -3 }, context);
    expect([own.queue, own.priority]).toEqual(["other", -3]);
  });

  it("is scheduled by a delay or an instant to come, and available otherwise", () => {
    expect(enqueued({ enqueue: { delay: "5s" } })).toMatchObject({ state: "scheduled", wakeAt: at("5s") });
    expect(enqueued({ enqueue: { at: new Date(at("5s")) } })).toMatchObject({
      state: "scheduled",
      wakeAt: at("5s"),
      wake: "ready",
    });
    expect(enqueued({ enqueue: { delay: "0s" } }).state).toBe("available");
    const past = enqueued({ enqueue: { at: new Date(T0 - 5) } });
    expect([past.state, past.rank]).toEqual(["available", rankOf(0, T0)]);
  });

  it("keeps what no worker will know: the enqueue settings, the budgets and who gave them, meta", () => {
    const { options } = newJob({
      settings: { timeouts: { wait: "5m" } },
      enqueue: { timeouts: { total: "1h", attempt: "none" }, meta: { "a.b": [1] } },
    });
    expect(options).toEqual({
      settings: { timeouts: { total: 3_600_000, attempt: null } },
      wait: 300_000,
      waitFrom: "definition",
      total: 3_600_000,
      totalFrom: "enqueue",
      meta: { "a.b": [1] },
    });
  });

  it("keeps how it ends for a job that ends before its first start", () => {
    const { options } = newJob({ settings: { retry: { onExhausted: "dead-letter" }, retention: "1h" } });
    expect(options).toEqual({
      onExhausted: "dead-letter",
      retention: { completed: 3_600_000, discarded: 3_600_000, cancelled: 3_600_000 },
    });
  });

  it("what is kept is a copy: changing the caller's meta afterwards changes nothing", () => {
    const meta = { tags: ["a"] };
    const { options } = newJob({ enqueue: { meta } });
    meta.tags.push("b");
    expect(options?.meta).toEqual({ tags: ["a"] });
  });

  it("one template serves many payloads", () => {
    const template = prepareJob(job, { delay: "1s" }, context);
    let nth = 0;
    const jobs = ["1", "2"].map((payload) => stamp(template, payload, () => `id-${++nth}`));
    expect(jobs.map(({ id, payload, hasNewId: fresh }) => [id, payload, fresh])).toEqual([
      ["id-1", "1", true],
      ["id-2", "2", true],
    ]);
    expect(jobs[0]?.image).toBe(jobs[1]?.image);
  });
});

describe("1.1 what is refused at enqueue, before anything exists", () => {
  it.each<[string, object, string, string]>([
    ["an unknown option", { timeout: "5s" }, "unknown_option", "options.timeout"],
    ["an unknown timeout", { timeouts: { ttl: "5s" } }, "unknown_option", "options.timeouts.ttl"],
    ["an unknown retry key", { retry: { tries: 3 } }, "unknown_option", "options.retry.tries"],
    ["a timeout of 0", { timeouts: { attempt: "0s" } }, "invalid_duration", "options.timeouts.attempt"],
    ["a bare number", { timeouts: { total: 5 } }, "invalid_duration", "options.timeouts.total"],
    ["30 sec", { timeouts: { wait: "30 sec" } }, "invalid_duration", "options.timeouts.wait"],
    ["an unknown mode", { timeouts: { mode: "kill" } }, "invalid_timeout", "options.timeouts.mode"],
    ["a bare delay", { delay: 5 }, "invalid_duration", "options.delay"],
    ["a negative delay", { delay: "-5s" }, "invalid_duration", "options.delay"],
    ["a local time", { at: "2030-01-31T12:00:00" }, "invalid_instant", "options.at"],
    ["a bare instant", { expiresAt: T0 }, "invalid_instant", "options.expiresAt"],
    ["delay and at together", { delay: "5s", at: new Date(T0) }, "invalid_option", "options.at"],
    ["a bad queue", { queue: "A" }, "invalid_name", "options.queue"],
    ["a bad priority", { priority: 101 }, "invalid_priority", "options.priority"],
    ["an id that is no UUID", { id: "order-1" }, "invalid_option", "options.id"],
    ["an upper-case id", { id: ID.replace("89", "AB") }, "invalid_option", "options.id"],
    ["an empty id", { id: "" }, "invalid_option", "options.id"],
    ["meta that is text", { meta: "a" }, "invalid_option", "options.meta"],
    ["meta that is a list", { meta: [1] }, "invalid_option", "options.meta"],
    ["meta that is null", { meta: null }, "invalid_option", "options.meta"],
    ["detach as text", { detach: "yes" }, "invalid_option", "options.detach"],
    ["meta that is not JSON", { meta: { at: new Date(T0) } }, "not_json", "options.meta.at"],
    [
      "total below attempt",
      { timeouts: { total: "1s", attempt: "2s" } },
      "timeouts_contradict",
      "options.timeouts.total",
    ],
  ])("%s", (_name, options, code, field) => {
    expect(enqueue(options)).toThrow(
      expect.objectContaining({ code, field, message: expect.stringMatching(/: .+; .+/) }),
    );
  });

  it("options that are no object, and a definition that is none", () => {
    expect(enqueue([])).toThrow(expect.objectContaining({ code: "invalid_option", field: "options" }));
    expect(() => prepareJob({ type: "a" } as never, {}, context)).toThrow(
      expect.objectContaining({ code: "invalid_definition", field: "definition" }),
    );
  });
});

describe("1.2 a job that could never run", () => {
  it.each<[string, EnqueueOptions, string, string]>([
    ["wait", { delay: "10m", timeouts: { wait: "5m" } }, "timeouts.wait", "5m"],
    ["total", { delay: "10m", timeouts: { total: "5m" } }, "timeouts.total", "5m"],
    ["wait at the very instant", { delay: "5m", timeouts: { wait: "5m" } }, "timeouts.wait", "5m"],
    ["total at the very instant", { delay: "5m", timeouts: { total: "5m" } }, "timeouts.total", "5m"],
    [
      "expiresAt",
      { delay: "10m", expiresAt: new Date(at("5m")) },
      "expiresAt",
      new Date(at("5m")).toISOString(),
    ],
    ["a past expiresAt", { expiresAt: new Date(T0 - 1) }, "expiresAt", new Date(T0 - 1).toISOString()],
  ])("%s at or before the scheduled time is refused", (_name, options, field, value) => {
    expect(enqueue(options)).toThrow(
      expect.objectContaining({
        code: "never_runs",
        field,
        message: expect.stringContaining(`${field}: "${value}" ends at or before the job's scheduled time`),
      }),
    );
  });

  it("the message names both fields and the fix", () => {
    expect(enqueue({ delay: "10m", timeouts: { wait: "5m" } })).toThrow(
      "options.delay/at starts it 10m from now: lengthen timeouts.wait or start it earlier",
    );
  });

  it("an inherited wait or total that ends before the scheduled time is refused too", () => {
    const engineSettings = { timeouts: { total: 60_000 } };
    const late = () => prepareJob(job, { delay: "2m" }, { ...context, engineSettings: engineSettings });
    expect(late).toThrow(expect.objectContaining({ code: "never_runs", field: "timeouts.total" }));
  });

  it("one millisecond of room is enough", () => {
    const options = { delay: "5m", timeouts: { wait: "300001ms", total: "300001ms" } } as const;
    expect(enqueued({ enqueue: options })).toMatchObject({ state: "scheduled", waitAt: at("5m") + 1 });
  });

  it("an inherited attempt longer than the total is cut, not refused", () => {
    const long = { timeouts: { attempt: "2h" } } as const;
    expect(enqueued({ settings: long, enqueue: { timeouts: { total: "1m" } } }).totalAt).toBe(at("1m"));
  });
});

describe("payloads", () => {
  const schema = z.object({ cents: z.int().positive(), note: z.string().trim().optional() });
  const typed = defineJob({ type: "card.charge", payload: schema });

  it("what is kept is the caller's input: the worker parses it again", () => {
    expect(preparePayload(typed, { cents: 5, note: " a " })).toBe('{"cents":5,"note":" a "}');
  });

  it("a payload that does not fit its schema is refused with its path", () => {
    expect(() => preparePayload(typed, { cents: -1 })).toThrow(
      expect.objectContaining({ code: "invalid_payload", field: "payload.cents" }),
    );
  });

  it("a payload that is not JSON is refused even if its schema takes it", () => {
    const dated = defineJob({ type: "a", payload: z.object({ at: z.date() }) });
    expect(() => preparePayload(dated, { at: new Date(T0) })).toThrow(
      expect.objectContaining({ code: "not_json", field: "payload.at" }),
    );
  });

  it("without a schema any JSON goes, and nothing at all is null", () => {
    const free = defineJob({ type: "a" });
    expect([preparePayload(free, [1]), preparePayload(free, undefined)]).toEqual(["[1]", "null"]);
  });

  it("a limit that the caller sets counts bytes", () => {
    expect(() => preparePayload(defineJob({ type: "a" }), "€€", 7)).toThrow(
      expect.objectContaining({ code: "too_large", field: "payload" }),
    );
  });

  it("an asynchronous schema is waited for", async () => {
    const slow = defineJob({ type: "a", payload: z.string().refine(async (text) => text === "yes") });
    await expect(preparePayload(slow, "yes")).resolves.toBe('"yes"');
    await expect(preparePayload(slow, "no")).rejects.toMatchObject({ code: "invalid_payload" });
  });
});
