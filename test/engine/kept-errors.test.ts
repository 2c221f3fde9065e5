import { describe, expect, it } from "vitest";
import { type PolicyOptions, processor } from "../../src/index.ts";
import { deaf, jobOf, jobWith, openStage, openWithJob, START } from "./stage.ts";

const once: PolicyOptions = { retry: { attempts: 1 } };

describe("3.9 the error kept on the job, exactly", () => {
  it("an error of the handler: its own name, code, message, cause and stack", async () => {
    const stage = await openStage();
    class CardDeclined extends Error {
      override readonly name = "Card.Declined";
      readonly code = "card_declined";
    }
    const { definition, processors } = jobWith(() => {
      throw new CardDeclined("no funds", { cause: new RangeError("-5") });
    }, once);
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    expect((await stage.load(job)).errors).toEqual([
      {
        type: "Card.Declined",
        code: "card_declined",
        message: "no funds",
        attempt: 1,
        at: START,
        stack: expect.stringContaining("kept-errors.test.ts"),
        cause: { type: "RangeError", message: "-5", stack: expect.any(String) },
      },
    ]);
  });

  it.each([
    ["a plain error", new Error("no"), { type: "Error", code: "handler_error", message: "no" }],
    [
      "something that is no error",
      { a: 1 },
      { type: "NotAnError", code: "handler_error", message: '{"a":1}' },
    ],
    ["nothing", undefined, { type: "NotAnError", message: "undefined" }],
  ])("%s", async (_name, thrown, record) => {
    const { stage, job } = await openWithJob(() => Promise.reject(thrown), once);
    await stage.settle();
    expect((await stage.load(job)).errors?.[0]).toMatchObject(record);
  });

  it("the four kinds of timeouts", async () => {
    const stage = await openStage();
    const cases = [
      [{ attempt: "30s", grace: "0s" }, "timeout", "Timed out after 30s", "execution", 30_000],
      [
        { total: "30s", grace: "0s" },
        "total_timeout",
        "Timed out (deadline exceeded, 30s total budget)",
        "total",
        30_000,
      ],
      [{ heartbeat: "60s" }, "stalled", "Stalled: no beat for 60s", "stalled", 60_000],
    ] as const;
    for (const [timeouts, type, message, kind, limit] of cases) {
      const { definition, processors } = jobWith(deaf, { ...once, timeouts });
      const worker = stage.work(processors);
      const job = await stage.engine.enqueue(definition);
      await stage.advance("61s");
      const [record] = (await stage.load(job)).errors ?? [];
      const { at, elapsed, ...rest } = record ?? { at: 0, elapsed: 0 };
      const forced = kind === "stalled" ? {} : { forced: true };
      expect(rest).toEqual({ type, code: type, message, kind, limit, attempt: 1, ...forced });
      expect(elapsed).toBe(limit);
      void worker.close({ drain: "0s" });
      await stage.advance("10s");
    }
  });

  it("a payload and a result that do not match their schemas", async () => {
    const { z } = await import("zod");
    const { defineJob } = await import("../../src/index.ts");
    const stage = await openStage();
    const producer = jobOf(once, "a.job");
    const consumer = defineJob({ type: "a.job", payload: z.object({ cents: z.int() }) });
    const wrong = defineJob({ type: "b.job", result: z.object({ receipt: z.string() }), ...once });
    stage.work([processor(consumer, () => null), processor(wrong, () => undefined as never)]);
    const unfit = await stage.engine.enqueue(producer, { cents: "1" });
    const bad = await stage.engine.enqueue(wrong);
    await stage.settle();
    expect((await stage.load(unfit)).errors?.[0]).toMatchObject({
      type: "CurfewError",
      code: "invalid_payload",
    });
    expect((await stage.load(bad)).errors?.[0]).toMatchObject({
      type: "CurfewError",
      code: "invalid_result",
    });
  });
});

describe("3.9 the line of a timeout in the job's log", () => {
  it("comes after the lines that the handler wrote before its verdict", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      ({ signal, log }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            log("the last words");
            reject(signal.reason);
          });
        }),
      { retry: { attempts: 1 }, timeouts: { attempt: "10s", grace: "5s" } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("15s");
    const { lines } = await job.logs();
    expect(lines.map(({ message }) => message)).toEqual(["the last words", "Timed out after 10s"]);
  });
});
