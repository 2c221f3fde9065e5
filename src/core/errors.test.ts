import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CurfewError, ERRORS, type ErrorCode, refuse, refuseUnknownKeys, show } from "./errors.ts";

describe("refuse", () => {
  it("names field, value, what is wrong and the fix", () => {
    const error = refuse("invalid_priority", "options.priority", 1_000, "use a number up to 100");
    expect(error).toBeInstanceOf(CurfewError);
    expect(error).toMatchObject({ name: "CurfewError", code: "invalid_priority", field: "options.priority" });
    expect(error.message).toBe("options.priority: 1000 is not a valid priority; use a number up to 100");
  });

  it("keeps a cause where there is one", () => {
    const cause = new Error("disk");
    expect(new CurfewError("store_failed", "no answer", { cause }).cause).toBe(cause);
    expect("cause" in new CurfewError("closed", "closed")).toBe(false);
  });

  it("unknown keys are refused with their path and the known ones", () => {
    expect(() => refuseUnknownKeys({ a: 1, b: 2 }, "options", ["a"])).toThrow(
      expect.objectContaining({
        code: "unknown_option",
        field: "options.b",
        message: 'options.b: "b" is not an option; use one of a',
      }),
    );
    expect(() => refuseUnknownKeys({ b: 2 }, "", ["a"])).toThrow('b: "b" is not an option; use one of a');
    expect(refuseUnknownKeys({ a: 1 }, "options", ["a", "b"])).toBeUndefined();
  });

  it.each([
    ["quue", "queue"],
    ["qeuue", "queue"],
    ["Queue", "queue"],
    ["prioritty", "priority"],
    ["id", undefined],
    ["colour", undefined],
  ])("for %j it asks whether %j was meant", (written, meant) => {
    const known = ["queue", "priority", "at"];
    const question = meant === undefined ? "" : `did you mean ${meant}? `;
    expect(() => refuseUnknownKeys({ [written]: 1 }, "options", known)).toThrow(
      `options.${written}: "${written}" is not an option; ${question}use one of queue, priority, at`,
    );
  });

  it.each([null, undefined, 5, "text", [1]])("%j is not an object of options", (value) => {
    expect(() => refuseUnknownKeys(value, "options", ["a"])).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "options" }),
    );
  });
});

describe("a value in a message", () => {
  const cyclic: Record<string, unknown> = {};
  cyclic.self = cyclic;

  it.each<[unknown, string]>([
    ["a\nb", '"a\\nb"'],
    [Number.NaN, "NaN"],
    [-0.5, "-0.5"],
    [12n, "12n"],
    [undefined, "undefined"],
    [null, "null"],
    [() => 1, "function"],
    [Symbol("x"), "symbol"],
    [{ a: [1] }, '{"a":[1]}'],
    [cyclic, "[object Object]"],
    [{ big: 1n }, "[object Object]"],
    [{ toJSON: () => undefined }, "[object Object]"],
  ])("%# is recognisable and on one line", (value, text) => {
    expect(show(value)).toBe(text);
  });

  it("is bounded", () => {
    expect(show("x".repeat(5_000))).toHaveLength(120);
  });
});

/**
 * Codes whose part of the code is still to be written. It must only shrink: a code listed here that has come into
 * use fails the test, and so does one that is neither used nor listed.
 */
const NOT_YET: readonly ErrorCode[] = ["discarded_by_handler"];

describe("the registry", () => {
  it("every code is used somewhere in src", () => {
    const used = sources().join("\n");
    const unused = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => !used.includes(`"${code}"`));
    expect(unused.sort()).toEqual([...NOT_YET].sort());
  });

  it("codes are snake_case, and each says something", () => {
    for (const [code, { says }] of Object.entries(ERRORS)) {
      expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/);
      expect(says.length).toBeGreaterThan(10);
    }
  });

  it("programmer errors read on after a value, the others stand alone", () => {
    for (const { kind, says } of Object.values(ERRORS)) {
      expect(/^[a-z]/.test(says)).toBe(kind === "programmer");
    }
  });
});

function sources(): string[] {
  const root = join(import.meta.dirname, "..");
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .map((path) => readFileSync(join(root, path), "utf8"));
}
