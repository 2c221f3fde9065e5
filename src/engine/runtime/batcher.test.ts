import { describe, expect, it } from "vitest";
import { createDeferred, type Deferred } from "../../testing/index.ts";
import { Batcher, type BatcherOptions } from "./batcher.ts";

interface Call {
  readonly items: readonly string[];
  readonly reply: Deferred<readonly string[]>;
}

/** A batcher whose calls wait until the test replies. */
function openBatcher(options: Partial<BatcherOptions<string, string>> = {}) {
  const calls: Call[] = [];
  const batcher = new Batcher<string, string>({
    call: (items) => {
      const reply = createDeferred<readonly string[]>();
      calls.push({ items, reply });
      return reply.promise;
    },
    ...options,
  });
  return { batcher, calls, sent: () => calls.map(({ items }) => items.join("")) };
}

/** Answers each item with itself in capitals. */
function capitals(call: Call | undefined): void {
  call?.reply.resolve(call.items.map((item) => item.toUpperCase()));
}

/** More microtasks than any chain of promises in these tests has. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await undefined;
}

describe("a batcher", () => {
  it("sends items of one turn together, and what comes during a call with the next call", async () => {
    const { batcher, calls, sent } = openBatcher();
    const first = Promise.all([batcher.add("a"), batcher.add("b")]);
    await settle();
    const second = Promise.all([batcher.add("c"), batcher.add("d")]);
    await settle();
    expect(sent()).toEqual(["ab"]);
    capitals(calls[0]);
    expect(await first).toEqual(["A", "B"]);
    await settle();
    expect(sent()).toEqual(["ab", "cd"]);
    capitals(calls[1]);
    expect(await second).toEqual(["C", "D"]);
  });

  it("with soon, the first call waits for the items of other callers in the same turn", async () => {
    const turns: (() => void)[] = [];
    const { batcher, calls, sent } = openBatcher({ soon: (start) => void turns.push(start) });
    const first = batcher.add("a");
    await settle();
    const second = batcher.add("b");
    expect(sent()).toEqual([]);
    expect(turns.length).toBe(1);
    turns[0]?.();
    await settle();
    expect(sent()).toEqual(["ab"]);
    const third = batcher.add("c");
    capitals(calls[0]);
    expect(await Promise.all([first, second])).toEqual(["A", "B"]);
    await settle();
    // What came during a call waits for no turn.
    expect(sent()).toEqual(["ab", "c"]);
    capitals(calls[1]);
    expect(await third).toBe("C");
  });

  it("takes at most 1,000 items for a call", async () => {
    const sizes: number[] = [];
    const batcher = new Batcher<number, number>({
      call: async (items) => {
        sizes.push(items.length);
        return items;
      },
    });
    const numbers = Array.from({ length: 2_500 }, (_, index) => index);
    expect(await Promise.all(numbers.map((number) => batcher.add(number)))).toEqual(numbers);
    expect(sizes).toEqual([1_000, 1_000, 500]);
  });

  it("takes as many items as count says", async () => {
    const { batcher, calls, sent } = openBatcher({ count: (waiting) => (waiting[0] === "a" ? 1 : 2) });
    const answers = Promise.all(["a", "b", "c", "d"].map((item) => batcher.add(item)));
    for (let call = 0; call < 3; call++) {
      await settle();
      capitals(calls[call]);
    }
    expect(await answers).toEqual(["A", "B", "C", "D"]);
    expect(sent()).toEqual(["a", "bc", "d"]);
  });

  it("runs as many calls at once as concurrency allows", async () => {
    const { batcher, calls, sent } = openBatcher({ count: () => 1, concurrency: 2 });
    const answers = Promise.all(["a", "b", "c"].map((item) => batcher.add(item)));
    await settle();
    expect(sent()).toEqual(["a", "b"]);
    capitals(calls[1]);
    await settle();
    expect(sent()).toEqual(["a", "b", "c"]);
    capitals(calls[0]);
    capitals(calls[2]);
    expect(await answers).toEqual(["A", "B", "C"]);
  });

  it("with splitFrom, sends many items as two calls at once, and few with one", async () => {
    const { batcher, calls, sent } = openBatcher({ concurrency: 2, splitFrom: 4 });
    const addAll = (items: string) => Promise.all([...items].map((item) => batcher.add(item)));
    const many = addAll("abcde");
    await settle();
    expect(sent()).toEqual(["abc", "de"]);
    const one = batcher.add("f");
    capitals(calls[0]);
    await settle();
    expect(sent()).toEqual(["abc", "de", "f"]);
    for (const call of calls) capitals(call);
    expect([...(await many), await one]).toEqual(["A", "B", "C", "D", "E", "F"]);
    const few = addAll("xyz");
    await settle();
    expect(sent().slice(3)).toEqual(["xyz"]);
    capitals(calls[3]);
    expect(await few).toEqual(["X", "Y", "Z"]);
  });

  it("with splitFrom, one item waits for the call that runs", async () => {
    const { batcher, calls, sent } = openBatcher({ concurrency: 2, splitFrom: 4 });
    const first = batcher.add("a");
    await settle();
    const second = batcher.add("b");
    await settle();
    expect(sent()).toEqual(["a"]);
    capitals(calls[0]);
    await settle();
    expect(sent()).toEqual(["a", "b"]);
    capitals(calls[1]);
    expect([await first, await second]).toEqual(["A", "B"]);
  });

  it("a call that fails rejects its own items, and the next call runs", async () => {
    const { batcher, calls } = openBatcher();
    const failing = Promise.allSettled([batcher.add("a"), batcher.add("b")]);
    await settle();
    const later = batcher.add("c");
    calls[0]?.reply.reject(new Error("no"));
    expect((await failing).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    await settle();
    capitals(calls[1]);
    expect(await later).toBe("C");
  });

  it("a call that throws before it awaits rejects its items", async () => {
    const batcher = new Batcher<string, string>({
      call: () => {
        throw new Error("at once");
      },
    });
    await expect(batcher.add("a")).rejects.toThrow("at once");
  });

  it("an answer that is a promise delays only its own caller", async () => {
    const late = createDeferred<string>();
    const batcher = new Batcher<string, string>({
      call: async (items) => items.map((item) => (item === "slow" ? late.promise : item)),
    });
    const slow = batcher.add("slow");
    expect(await batcher.add("fast")).toBe("fast");
    await batcher.idle();
    late.resolve("at last");
    expect(await slow).toBe("at last");
  });

  it("with rejoin, callers that add again at once join those that wait", async () => {
    const groupsWith = async (rejoin: number) => {
      const { batcher, calls, sent } = openBatcher({ rejoin });
      const again = async (item: string) => {
        const answer = await batcher.add(item);
        for (let turn = 0; turn < 5; turn++) await undefined;
        return batcher.add(answer);
      };
      const looping = again("a");
      await settle();
      const waiting = batcher.add("b");
      capitals(calls[0]);
      await settle();
      capitals(calls[1]);
      await settle();
      capitals(calls[2]);
      await Promise.all([looping, waiting]);
      return sent();
    };
    expect(await groupsWith(0)).toEqual(["a", "b", "A"]);
    expect(await groupsWith(20)).toEqual(["a", "bA"]);
  });

  it("is idle when nothing waits and no call runs", async () => {
    let timesIdle = 0;
    const { batcher, calls } = openBatcher({ onIdle: () => timesIdle++ });
    await batcher.idle();
    const answer = batcher.add("a");
    let isIdle = false;
    const idle = batcher.idle().then(() => {
      isIdle = true;
    });
    await settle();
    expect([isIdle, timesIdle]).toEqual([false, 0]);
    capitals(calls[0]);
    await idle;
    expect([await answer, timesIdle]).toEqual(["A", 1]);
  });
});
