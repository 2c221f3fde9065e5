import { describe, expect, it } from "vitest";
import { errorInput } from "./error-input.ts";

class DeclinedError extends Error {
  override readonly name = "Card.Declined";
  readonly code = "E_DECLINED";
}

describe("3.9 a thrown error as it is kept", () => {
  it("type is the error's own name, code its own or handler_error", () => {
    expect(errorInput(new DeclinedError("no funds"))).toMatchObject({
      type: "Card.Declined",
      code: "E_DECLINED",
      message: "no funds",
    });
    expect(errorInput(new TypeError("x"))).toMatchObject({ type: "TypeError", code: "handler_error" });
  });

  it("a code that is not text, and a name that is empty, are not taken over", () => {
    const odd = Object.assign(new Error("x"), { code: 42, name: "" });
    expect(errorInput(odd)).toMatchObject({ type: "Error", code: "handler_error" });
  });

  it("the cause is kept with its own type, code and message", () => {
    const thrown = new Error("outer", { cause: new DeclinedError("inner") });
    expect(errorInput(thrown).cause).toMatchObject({
      type: "Card.Declined",
      code: "E_DECLINED",
      message: "inner",
    });
  });

  it.each([undefined, null, "text", 5, { a: 1 }, Symbol("x")])("anything may be thrown (%#)", (thrown) => {
    const kept = errorInput(thrown);
    expect(kept).toMatchObject({ type: "NotAnError", code: "handler_error" });
    expect(kept.message).not.toBe("");
    expect(JSON.parse(JSON.stringify(kept))).toEqual(kept);
  });

  it("stack and message are bounded", () => {
    const endless = Object.assign(new Error("m".repeat(1e5)), { stack: "s".repeat(1e5) });
    const kept = errorInput(endless);
    expect([kept.message.length, kept.stack?.length]).toEqual([4_000, 8_000]);
  });
});
