import { describe, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { type CronView, defineJob, type Engine, type JobHandle } from "../../src/index.ts";

declare const engine: Engine;
const typed = defineJob({ type: "a.b", payload: z.object({ n: z.number() }) });
const plain = defineJob({ type: "a.c" });

describe("crons", () => {
  it("take the payload of their job", () => {
    expectTypeOf(
      engine.crons.put("a", { cron: "@daily", job: typed, payload: { n: 1 } }),
    ).resolves.toEqualTypeOf<CronView>();
    void engine.crons.put("a", { cron: "@daily", job: plain });
    // @ts-expect-error the payload is missing
    void engine.crons.put("a", { cron: "@daily", job: typed });
    // @ts-expect-error the payload is of another type
    void engine.crons.put("a", { cron: "@daily", job: typed, payload: { n: "1" } });
  });

  it("know their options", () => {
    const job = { cron: "@daily", job: plain } as const;
    void engine.crons.put("a", {
      ...job,
      missed: { all: "1d" },
      overlap: "skip",
      clockChange: { gap: "skip" },
    });
    // @ts-expect-error there is no such policy
    void engine.crons.put("a", { ...job, overlap: "queue" });
    // @ts-expect-error a window has a unit
    void engine.crons.put("a", { ...job, missed: { all: 60 } });
    // @ts-expect-error a cron says when its jobs start
    void engine.crons.put("a", { ...job, options: { delay: "1m" } });
    // @ts-expect-error overlap keeps them apart
    void engine.crons.put("a", { ...job, options: { unique: {} } });
    expectTypeOf(engine.crons.trigger("a")).resolves.toEqualTypeOf<JobHandle<unknown>>();
  });
});

describe("unique jobs", () => {
  it("know their options", () => {
    defineJob({ type: "a.b", unique: { payload: ["a.b", ["c", 0]], period: "1h", states: ["active"] } });
    // @ts-expect-error a period has a unit
    defineJob({ type: "a.b", unique: { period: 60 } });
    // @ts-expect-error there is no such state
    defineJob({ type: "a.b", unique: { states: ["running"] } });
    // @ts-expect-error there is no such answer
    defineJob({ type: "a.b", unique: { onConflict: "drop" } });
    void engine.enqueue(plain, null, { unique: false });
    // @ts-expect-error what is the same must be said
    void engine.enqueue(plain, null, { unique: true });
  });
});
