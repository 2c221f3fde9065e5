import { describe, expect, it } from "vitest";
import { defineJob, openEngine, processor, type Schema, silentLogger, unchecked } from "../../src/index.ts";

/** Counts what happens in each turn of the event loop, until it is asked for the most. */
function turns() {
  let [inTurn, most, isOver] = [0, 0, false];
  const turn = () => {
    most = Math.max(most, inTurn);
    inTurn = 0;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  return {
    count: () => {
      inTurn += 1;
    },
    most() {
      isOver = true;
      return Math.max(most, inTurn);
    },
  };
}

const COUNT = 60;
const text = "x".repeat(100_000);
/** A million characters, the one that passes them, and the one that is entered or written before anybody looks. */
const IN_A_TURN = 12;

describe("large payloads do not block the event loop", () => {
  it("no turn of the event loop enqueues more than about a million characters", async () => {
    await using engine = await openEngine({ store: "memory:", logger: silentLogger });
    const watched = turns();
    const payload: Schema<{ text: string }> = {
      "~standard": {
        version: 1,
        vendor: "test",
        validate(value) {
          watched.count();
          return { value: value as { text: string } };
        },
      },
    };
    const definition = defineJob({ type: "large", payload });
    await engine.enqueueMany(
      definition,
      Array.from({ length: COUNT }, () => ({ text })),
    );
    expect(watched.most()).toBeLessThanOrEqual(IN_A_TURN);
  });

  it("no turn of the event loop enters handlers with more than about a million characters", async () => {
    await using engine = await openEngine({ store: "memory:", logger: silentLogger });
    const definition = defineJob({ type: "large", payload: unchecked<{ text: string }>() });
    const jobs = await engine.enqueueMany(
      definition,
      Array.from({ length: COUNT }, () => ({ text })),
    );
    const watched = turns();
    engine.work({
      queues: { default: { concurrency: 10 } },
      processors: [processor(definition, () => watched.count())],
    });
    await Promise.all(jobs.map((job) => job.result({ within: "10s" })));
    expect(watched.most()).toBeLessThanOrEqual(IN_A_TURN);
  });
});
