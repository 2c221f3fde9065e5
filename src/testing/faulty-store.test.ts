import { describe, expect, it } from "vitest";
import { seededRandom } from "../core/random.ts";
import { createMemoryStore } from "../stores/memory/memory-store.ts";
import { failFirst, failRandomly, faultyStore } from "./faulty-store.ts";
import { createLatch } from "./latch.ts";

const NOW = 1_800_000_000_000;
const event = (body: string) => [{ effects: [{ event: body }] }];
const open = () => createMemoryStore({ clock: () => NOW });

describe("a faulty store", () => {
  it("drops before the work and loses replies after it, as the plan says", async () => {
    const store = open();
    const dropping = faultyStore(store, failFirst("commit", "drop", 2));
    const losing = faultyStore(store, failFirst("commit", "lose-reply"));
    await expect(dropping.commit(event("a"), { now: NOW })).rejects.toThrow("dropped before");
    await expect(dropping.commit(event("b"), { now: NOW })).rejects.toThrow("dropped before");
    await dropping.commit(event("c"), { now: NOW });
    await expect(losing.commit(event("d"), { now: NOW })).rejects.toThrow("the reply was lost");
    expect((await store.inspect.events(null, 10)).events).toEqual(["c", "d"]);
  });

  it("delays a call until the test continues it", async () => {
    const latch = createLatch();
    const store = faultyStore(open(), failFirst("clock", { delay: latch.pass }));
    let answer: number | undefined;
    const asked = store.clock().then((at) => {
      answer = at;
    });
    await latch.reached();
    expect(answer).toBeUndefined();
    latch.open();
    await asked;
    expect(answer).toBe(NOW);
  });

  it("repeats its random faults from the seed", async () => {
    const draw = async () => {
      const plan = failRandomly(seededRandom(7), { drop: 0.3, loseReply: 0.3 });
      const store = faultyStore(open(), plan);
      const calls = Array.from({ length: 30 }, () => store.clock().catch((error: Error) => error.message));
      return Promise.all(calls);
    };
    const first = await draw();
    expect(await draw()).toEqual(first);
    expect(new Set(first).size).toBe(3);
  });
});
