import { describe, expectTypeOf, it } from "vitest";
import type { Duration } from "../../src/core/time.ts";

describe("a duration", () => {
  it("is a number with its unit, or fields", () => {
    expectTypeOf<"30s">().toExtend<Duration>();
    expectTypeOf<"1.5h">().toExtend<Duration>();
    expectTypeOf<{ minutes: 5 }>().toExtend<Duration>();
  });

  it("is not a bare number, which would not say its unit", () => {
    // @ts-expect-error a unit is missing
    const bare: Duration = 30;
    // @ts-expect-error a unit is missing
    const text: Duration = "30";
    expectTypeOf([bare, text]);
  });

  it("has no unit whose length depends on the calendar", () => {
    // @ts-expect-error a month has no fixed length
    const month: Duration = "1mo";
    // @ts-expect-error a year has no fixed length
    const year: Duration = { years: 1 };
    expectTypeOf([month, year]);
  });
});
