import { describe, expect, it } from "vitest";
import { z } from "zod";
import {
  assertDefinition,
  checkPriority,
  checkQueue,
  checkType,
  defineJob,
  unchecked,
} from "./job-definition.ts";

/** What plain JavaScript may pass where TypeScript would not compile. */
function loose(value: unknown): never {
  return value as never;
}

const define = (more: object) => () => defineJob({ type: "card.charge", ...more });

describe("a definition", () => {
  it("is a frozen value with its defaults", () => {
    const payload = z.object({ orderId: z.string() });
    const job = defineJob({ type: "card.charge", payload, timeouts: { attempt: "30s" } });
    expect(job).toMatchObject({ type: "card.charge", queue: "default", priority: 0, payload });
    expect(job.settings).toEqual({ timeouts: { attempt: 30_000 } });
    expect(Object.isFrozen(job)).toBe(true);
    expect(assertDefinition(job, "definition")).toBeUndefined();
  });

  it("keeps none as null and unbounded as null, and says nothing about what was left out", () => {
    const { settings } = defineJob({
      type: "a",
      timeouts: { wait: "none", grace: "unbounded", mode: "discard" },
      retention: { discarded: "0s" },
    });
    expect(settings).toEqual({
      timeouts: { wait: null, grace: null, mode: "discard" },
      retention: { discarded: 0 },
    });
    expect(defineJob({ type: "a", retention: "1h" }).settings.retention).toEqual({
      completed: 3_600_000,
      discarded: 3_600_000,
      cancelled: 3_600_000,
    });
  });

  it.each([null, undefined, {}, { type: "card.charge", settings: {} }, "card.charge"])(
    "%j is not one",
    (value) => {
      expect(() => assertDefinition(value, "definition")).toThrow(
        expect.objectContaining({ code: "invalid_definition", field: "definition" }),
      );
    },
  );

  it("takes any value where the type alone is wanted", () => {
    const schema = unchecked<{ a: number }>();
    expect(schema["~standard"].validate({ a: 1 })).toEqual({ value: { a: 1 } });
  });
});

describe("names and priorities", () => {
  it.each(["a", "card.charge", "retry.test.max-attempts", "a_b.c2", "a".repeat(255)])("type %s", (type) => {
    expect(checkType(type, "type")).toBe(type);
  });

  it.each<unknown>([
    "",
    "Card",
    "card charge",
    "1card",
    ".card",
    "card.",
    "card..charge",
    "card.1",
    "@!",
    "a\n",
    "a".repeat(256),
    undefined,
    5,
  ])("type %j is refused", (type) => {
    expect(() => checkType(loose(type), "type")).toThrow(
      expect.objectContaining({ code: "invalid_name", field: "type" }),
    );
  });

  it.each(["default", "a-b.c", "0", "q".repeat(128)])("queue %s", (queue) => {
    expect(checkQueue(queue, "queue")).toBe(queue);
  });

  it.each<unknown>(["", "Mail", "a_b", "-a", ".a", "a b", "a!", "q".repeat(129), null, 5])(
    "queue %j is refused",
    (queue) => {
      expect(() => checkQueue(loose(queue), "options.queue")).toThrow(
        expect.objectContaining({ code: "invalid_name", field: "options.queue" }),
      );
    },
  );

  it.each([-100, 0, 100])("priority %d", (priority) => {
    expect(checkPriority(priority, "priority")).toBe(priority);
  });

  it.each<unknown>([-101, 101, 0.5, Number.NaN, Number.POSITIVE_INFINITY, "5", null])(
    "priority %j is refused",
    (priority) => {
      expect(() => checkPriority(loose(priority), "priority")).toThrow(
        expect.objectContaining({ code: "invalid_priority", field: "priority" }),
      );
    },
  );
});

describe("1.1 what is refused where a definition is written", () => {
  it.each<[string, object, string, string]>([
    ["an attempt of 0", { timeouts: { attempt: "0s" } }, "invalid_duration", "timeouts.attempt"],
    ["a wait of 0", { timeouts: { wait: "0ms" } }, "invalid_duration", "timeouts.wait"],
    ["a total of 0", { timeouts: { total: "0s" } }, "invalid_duration", "timeouts.total"],
    ["a heartbeat of 0", { timeouts: { heartbeat: "0s" } }, "invalid_duration", "timeouts.heartbeat"],
    ["a negative attempt", { timeouts: { attempt: "-1s" } }, "invalid_duration", "timeouts.attempt"],
    ["a negative grace", { timeouts: { grace: "-1s" } }, "invalid_duration", "timeouts.grace"],
    ["NaN", { timeouts: { attempt: Number.NaN } }, "invalid_duration", "timeouts.attempt"],
    ["30 sec", { timeouts: { attempt: "30 sec" } }, "invalid_duration", "timeouts.attempt"],
    ["Infinity", { timeouts: { total: "Infinity" } }, "invalid_duration", "timeouts.total"],
    ["over 10 years", { timeouts: { wait: "3651d" } }, "invalid_duration", "timeouts.wait"],
    ["a bare number", { timeouts: { heartbeat: 30 } }, "invalid_duration", "timeouts.heartbeat"],
    ["null", { timeouts: { attempt: null } }, "invalid_duration", "timeouts.attempt"],
    ["unbounded elsewhere", { timeouts: { attempt: "unbounded" } }, "invalid_duration", "timeouts.attempt"],
    ["no grace at all", { timeouts: { grace: "none" } }, "invalid_duration", "timeouts.grace"],
    ["an unknown mode", { timeouts: { mode: "retry" } }, "invalid_timeout", "timeouts.mode"],
    ["an unknown timeout", { timeouts: { timeout: "30s" } }, "unknown_option", "timeouts.timeout"],
    ["timeouts that are no object", { timeouts: "30s" }, "invalid_option", "timeouts"],
    ["null for timeouts", { timeouts: null }, "invalid_option", "timeouts"],
    ["an unknown retry key", { retry: { max: 3 } }, "unknown_option", "retry.max"],
    ["retry as a number", { retry: 3 }, "invalid_option", "retry"],
    ["a negative retention", { retention: "-1s" }, "invalid_duration", "retention"],
    ["null for retention", { retention: null }, "invalid_duration", "retention"],
    ["a bad state's retention", { retention: { completed: 5 } }, "invalid_duration", "retention.completed"],
    [
      "an unknown state's retention",
      { retention: { completed: "1d", active: "1d" } },
      "unknown_option",
      "retention.active",
    ],
    ["an unknown option", { timeout: "30s" }, "unknown_option", "definition.timeout"],
    ["a payload that is no schema", { payload: { a: 1 } }, "invalid_option", "payload"],
    ["a result that is no schema", { result: String }, "invalid_option", "result"],
    ["a bad type", { type: "Card" }, "invalid_name", "type"],
    ["a bad queue", { queue: "a b" }, "invalid_name", "queue"],
    ["a bad priority", { priority: 101 }, "invalid_priority", "priority"],
    [
      "total below attempt",
      { timeouts: { total: "1s", attempt: "2s" } },
      "timeouts_contradict",
      "timeouts.total",
    ],
  ])("%s", (_name, more, code, field) => {
    expect(define(more)).toThrow(
      expect.objectContaining({
        code,
        field,
        message: expect.stringMatching(new RegExp(`^${field.replaceAll(".", "\\.")}: .+; .+`)),
      }),
    );
  });

  it("options that are no object at all", () => {
    expect(() => defineJob(loose(undefined))).toThrow(expect.objectContaining({ code: "invalid_option" }));
  });
});
