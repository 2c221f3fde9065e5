import { describe, expect, it } from "vitest";
import { EPOCH, Scheduler } from "./scheduler.ts";
import { runUntilSettled } from "./world.ts";

const MINUTE = 60_000;

/** Five things that wait for each other; each takes nine minutes, and after `stallsAfter` of them nothing goes on. */
async function settle({ stallsAfter = 5, isCounted = true } = {}) {
  const scheduler = new Scheduler();
  let done = 0;
  for (let nth = 1; nth <= stallsAfter; nth++)
    scheduler.after(nth * 9 * MINUTE, null, () => {
      done += 1;
    });
  const left = await runUntilSettled(
    { scheduler },
    () => false,
    15 * MINUTE,
    async () => ["one", "two", "three", "four", "five"].slice(done),
    isCounted ? () => done : undefined,
  );
  return { left, minutes: (scheduler.now - EPOCH) / MINUTE };
}

describe("waiting until a world has settled", () => {
  it("goes on as long as one thing after the other settles in time", async () => {
    expect(await settle()).toEqual({ left: [], minutes: 45 });
  });

  it("names what is left when nothing has settled for the whole time", async () => {
    expect(await settle({ stallsAfter: 3 })).toEqual({ left: ["four", "five"], minutes: 27 + 15 });
    expect(await settle({ stallsAfter: 0 })).toMatchObject({ minutes: 15 });
  });

  it("ends although something settles for ever", async () => {
    let count = 0;
    const scheduler = new Scheduler();
    const left = await runUntilSettled(
      { scheduler },
      () => false,
      MINUTE,
      async () => ["next"],
      () => count++,
    );
    expect({ left, minutes: (scheduler.now - EPOCH) / MINUTE }).toEqual({ left: ["next"], minutes: 40 });
  });

  it("is over at a fixed time where nothing is counted", async () => {
    expect(await settle({ isCounted: false })).toMatchObject({
      left: ["two", "three", "four", "five"],
      minutes: 15,
    });
  });
});
