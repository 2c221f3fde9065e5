import { expect, test } from "vitest";
import type { Session } from "./session.ts";
import { WriteQueue } from "./write-queue.ts";

const SESSION = {} as Session;

/** A queue whose transactions are lists of what their work returned, and whose turns are run by hand. */
function setUp({ failsToCommit = (_written: readonly unknown[]): boolean => false } = {}) {
  const turns: (() => void)[] = [];
  const transactions: unknown[][] = [];
  const clock = { now: 0 };
  let current: unknown[] = [];
  const queue = new WriteQueue({
    system: { soon: (callback) => void turns.push(callback), monotonic: () => clock.now },
    transact: async (work) => {
      current = [];
      work(SESSION);
      if (failsToCommit(current)) throw new Error("the disk is full");
      transactions.push(current);
    },
  });
  const add = (name: string, work: () => void = () => {}) =>
    queue.add(() => {
      work();
      current.push(name);
      return name;
    });
  const run = async () => {
    for (let turn = turns.shift(); turn; turn = turns.shift()) {
      turn();
      for (let tick = 0; tick < 20; tick++) await undefined;
    }
  };
  return { queue, add, run, transactions, clock };
}

const fails = () => {
  throw new Error("refused");
};

test("work of one turn shares a transaction, in its order", async () => {
  const { add, run, transactions } = setUp();
  const answers = Promise.all([add("a"), add("b"), add("c")]);
  await run();
  expect(await answers).toEqual(["a", "b", "c"]);
  expect(transactions).toEqual([["a", "b", "c"]]);
});

test("work that comes while a transaction is committed goes into the next one", async () => {
  const { add, run, transactions } = setUp();
  const first = add("a").then(() => add("b"));
  await run();
  expect(await first).toBe("b");
  expect(transactions).toEqual([["a"], ["b"]]);
});

test("work that fails is refused alone, and the others are written in order", async () => {
  const { add, run, transactions } = setUp();
  const answers = Promise.allSettled([add("a"), add("b", fails), add("c")]);
  await run();
  expect((await answers).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(transactions).toEqual([["a"], ["c"]]);
});

test("after a commit that fails, each gets a transaction of its own", async () => {
  const { add, run, transactions } = setUp({ failsToCommit: (written) => written.includes("b") });
  const answers = Promise.allSettled([add("a"), add("b"), add("c")]);
  await run();
  expect((await answers).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(transactions).toEqual([["a"], ["c"]]);
});

test("a group ends when its time is over, so that the event loop runs again", async () => {
  const { add, run, transactions, clock } = setUp();
  const isSlow = () => {
    clock.now += 2;
  };
  const answers = Promise.all([add("a", isSlow), add("b", isSlow), add("c", isSlow), add("d", isSlow)]);
  await run();
  await answers;
  expect(transactions).toEqual([
    ["a", "b"],
    ["c", "d"],
  ]);
});

test("what was committed is told before anybody goes on", async () => {
  const { queue, run } = setUp();
  const order: string[] = [];
  const first = queue
    .add(
      () => "a",
      () => void order.push("committed a"),
    )
    .then(() => order.push("a goes on"));
  const second = queue.add(
    () => "b",
    () => void order.push("committed b"),
  );
  await run();
  await Promise.all([first, second]);
  expect(order).toEqual(["committed a", "committed b", "a goes on"]);
});

test("idle waits for all work", async () => {
  const { queue, add, run } = setUp();
  const order: string[] = [];
  const written = add("a").then(() => order.push("written"));
  const idle = queue.idle().then(() => order.push("idle"));
  await run();
  await Promise.all([written, idle]);
  expect(order).toEqual(["written", "idle"]);
});
