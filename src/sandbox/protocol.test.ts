import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CurfewError } from "../core/errors.ts";
import { Discard, Snooze, StopError, TimeoutError } from "../core/job/reasons.ts";
import {
  decodeError,
  decodeReason,
  decodeSnooze,
  encodeError,
  encodeReason,
  encodeSnooze,
  FrameReader,
  ProtocolFlaw,
  parseReport,
} from "./protocol.ts";

const travelled = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value));
const crossed = (error: unknown) => decodeError(travelled(encodeError(error)));

describe("errors that cross", () => {
  it("keep name, message, stack, cause and own fields", () => {
    const cause = Object.assign(new RangeError("because"), { code: "E_CAUSE" });
    const error = Object.assign(new TypeError("wrong", { cause }), { code: "E_WRONG", far: { deep: [1] } });
    const arrived = crossed(error) as Error;
    expect(arrived).toBeInstanceOf(Error);
    expect(arrived).toMatchObject({
      name: "TypeError",
      message: "wrong",
      code: "E_WRONG",
      far: { deep: [1] },
    });
    expect(arrived.stack).toBe(error.stack);
    expect(arrived.cause).toMatchObject({ name: "RangeError", message: "because", code: "E_CAUSE" });
    expect(Object.keys(arrived)).not.toContain("name");
  });

  it("keep the classes that affect the verdict", () => {
    expect(crossed(new Discard("no use"))).toBeInstanceOf(Discard);
    const error = crossed(new CurfewError("never_runs", "too late", { field: "timeouts.wait" }));
    expect(error).toBeInstanceOf(CurfewError);
    expect(error).toMatchObject({ code: "never_runs", field: "timeouts.wait" });
  });

  it("may be anything that was thrown", () => {
    for (const thrown of [null, 7, "text", { a: [1] }]) expect(crossed(thrown)).toEqual(thrown);
    expect(crossed(undefined)).toBeNull();
    expect(crossed(1n)).toBeNull();
  });

  it("lose only fields that are not JSON or too large", () => {
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    let deep = new Error("deepest");
    for (let depth = 0; depth < 20; depth++) deep = new Error(`depth ${depth}`, { cause: deep });
    const error = Object.assign(deep, { loop, big: "x".repeat(100_000), call: () => {}, code: "E_KEPT" });
    const arrived = crossed(error) as Error & { loop?: unknown; big?: unknown };
    expect(arrived).toMatchObject({ message: "depth 19", code: "E_KEPT" });
    expect([arrived.loop, arrived.big]).toEqual([undefined, undefined]);
    expect(JSON.stringify(encodeError(error)).length).toBeLessThan(100_000);
  });

  it("do not reach into prototypes", () => {
    const text = JSON.parse(
      '{"name":"E","message":"m","fields":{"__proto__":{"polluted":true},"toString":1}}',
    );
    const arrived = decodeError(text) as Error;
    expect((arrived as unknown as { polluted?: true }).polluted).toBeUndefined();
    expect(Object.getPrototypeOf(arrived)).toBe(Error.prototype);
  });
});

describe("reasons and snoozes that cross", () => {
  it.each([
    new TimeoutError("execution", 500, 501, 1_000),
    new TimeoutError("total", 500, 501, null),
    new StopError("cancelled", 5, 1_000),
    new StopError("shutdown", 5, null),
  ])("%s", (reason) => {
    const arrived = decodeReason(travelled(encodeReason(reason)));
    expect(arrived).toBeInstanceOf(reason.constructor);
    expect(encodeReason(arrived)).toEqual(encodeReason(reason));
  });

  it("a snooze by a duration or an instant of any kind", () => {
    const arrived = (when: ConstructorParameters<typeof Snooze>[0]) =>
      decodeSnooze(travelled(encodeSnooze(new Snooze(when))));
    expect(arrived({ after: { minutes: 2 } })).toMatchObject({ after: "120000ms" });
    expect(arrived({ after: "5m" })).toMatchObject({ after: "300000ms" });
    for (const until of [new Date(5_000), { epochMilliseconds: 5_000 }, "1970-01-01T00:00:05Z"])
      expect(arrived({ until })).toMatchObject({ until: "1970-01-01T00:00:05.000Z" });
    expect(() => encodeSnooze(new Snooze({ after: "soon" as never }))).toThrow("snooze.after");
  });
});

const KEY = "id 7";
const SOUND = [
  { say: "ready", protocol: 1 },
  { say: "unloadable", error: encodeError(new Error("x", { cause: new Error("y") })) },
  { say: "crashed", error: encodeError(7) },
  { say: "alive", key: KEY },
  { say: "heard", key: KEY, resources: ["Timeout"] },
  { say: "beat", key: KEY },
  { say: "progress", key: KEY, fraction: 0.5, note: "half" },
  { say: "checkpoint", key: KEY, number: 1, state: null },
  { say: "log", key: KEY, message: "m", fields: { a: 1 } },
  { say: "enqueue", key: KEY, number: 2, definition: { type: "a" }, payload: "1", options: {} },
  { say: "print", key: KEY, stream: "stderr", text: "t" },
  { say: "cleanup_failed", key: KEY, error: encodeError(new Error("x")) },
  { say: "returned", key: KEY, result: { a: 1 } },
  { say: "returned", key: KEY },
  { say: "snoozed", key: KEY, when: { after: "1s" } },
  { say: "threw", key: KEY, error: encodeError(new Error("x")) },
  { say: "idle", key: KEY },
];

describe("what the parent reads", () => {
  it.each(SOUND)("$say", (report) => {
    expect(parseReport(JSON.stringify(report))).toEqual(report);
  });

  const FREE = new Set(["note", "result", "state", "resources"]);
  const wrong = SOUND.flatMap((report) =>
    Object.keys(report)
      .filter((field) => !FREE.has(field))
      .map((field) => ({ say: report.say, field, text: JSON.stringify({ ...report, [field]: [[]] }) })),
  );

  it.each(wrong)("$say with a wrong $field is a flaw", ({ text }) => {
    expect(() => parseReport(text)).toThrow(ProtocolFlaw);
  });

  it.each(SOUND.filter((report) => "key" in report))("$say without its attempt is a flaw", (report) => {
    expect(() => parseReport(JSON.stringify({ ...report, key: undefined }))).toThrow(ProtocolFlaw);
  });

  it("any text gives a report or a flaw", () => {
    const texts = fc.oneof(
      fc.string(),
      fc.json(),
      fc
        .tuple(fc.constantFrom(...SOUND), fc.string(), fc.jsonValue())
        .map(([report, field, value]) => JSON.stringify({ ...report, [field]: value })),
      fc.constantFrom(
        '{"say":"__proto__"}',
        '{"say":"constructor"}',
        '{"say":"toString","key":"a"}',
        "null",
        "[]",
      ),
    );
    fc.assert(
      fc.property(texts, (text) => {
        try {
          expect(Object.hasOwn(parseReport(text), "say")).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolFlaw);
        }
      }),
    );
  });
});

describe("frames", () => {
  it("are the same for every split of the stream", () => {
    const lines = fc.array(fc.string({ unit: "binary" }).map((text) => text.replaceAll("\n", "")));
    fc.assert(
      fc.property(lines, fc.array(fc.nat(20)), (texts, cuts) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(""));
        const reader = new FrameReader();
        const read: string[] = [];
        let from = 0;
        for (const cut of [...cuts, bytes.length]) {
          read.push(...reader.push(bytes.subarray(from, from + cut)));
          from = Math.min(bytes.length, from + cut);
        }
        expect(read).toEqual(texts.map((text) => Buffer.from(text).toString()));
      }),
    );
  });

  it("beyond the limit are a flaw before they are complete", () => {
    const reader = new FrameReader(10);
    expect([...reader.push(Buffer.from("0123456789\n"))]).toEqual(["0123456789"]);
    expect([...reader.push(Buffer.from("01234567"))]).toEqual([]);
    expect(() => [...reader.push(Buffer.from("89a"))]).toThrow(ProtocolFlaw);
  });
});
