import { describe, expect, it } from "vitest";
import { TimeoutError } from "../../src/calls/index.ts";
import { never, openCalls } from "./open-calls.ts";

/** SEMANTICS 10.7 against sources and consumers that do what they should not, in virtual time. */

const DONE = { done: true, value: undefined };

/** A source with the given methods. */
const sourceOf = (methods: { next: () => unknown; return?: () => unknown }) =>
  ({ [Symbol.asyncIterator]: () => methods }) as AsyncIterable<number>;

describe("a consumer", () => {
  it("that returns while an item is under way gets no hanging next, and no error after it", async () => {
    const { calls, system, watch } = openCalls();
    const stream = calls.limitStream({ idle: "1s" }, sourceOf({ next: never }));
    const first = await watch(stream.next());
    const second = await watch(stream.next());
    expect(await stream.return?.()).toEqual(DONE);
    await system.settle();
    expect([first, second]).toEqual([
      { at: 0, value: DONE },
      { at: 0, value: DONE },
    ]);
    expect(await stream.next()).toEqual(DONE);
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
  });

  it("that returned itself causes no warning when the item under way comes later", async () => {
    const { calls, system, sleep } = openCalls();
    const next = () => sleep(100).then(() => ({ done: false, value: 1 }));
    const stream = calls.limitStream({ idle: "1s" }, sourceOf({ next }));
    void stream.next();
    await stream.return?.();
    await system.advance(1_000);
    expect(calls.counts()).toMatchObject([{ ignored: 0, stuck: 0 }]);
  });

  it("that calls return twice causes one return of the source", async () => {
    const { calls } = openCalls();
    let returned = 0;
    const source = sourceOf({ next: never, return: async () => ++returned });
    const stream = calls.limitStream({ idle: "1s" }, source);
    await Promise.all([stream.return?.(), stream.return?.()]);
    await expect(stream.throw?.(new Error("mine"))).rejects.toThrow("mine");
    expect(returned).toBe(1);
  });

  it("that gave up hears it once", async () => {
    const { calls, system, watch } = openCalls();
    const caller = new AbortController();
    const stream = calls.limitStream({ signal: caller.signal }, sourceOf({ next: never }));
    const seen = await watch(stream.next());
    caller.abort("enough");
    await system.settle();
    expect(seen).toEqual({ at: 0, error: "enough" });
    expect(await stream.next()).toEqual(DONE);
  });

  it("whose signal aborts with a TimeoutError stops a stream that has a total", async () => {
    const { calls, system, watch } = openCalls();
    const caller = new AbortController();
    const stream = calls.limitStream({ total: "1h", signal: caller.signal }, sourceOf({ next: never }));
    const seen = await watch(stream.next());
    const reason = new TimeoutError("execution", 1, 1, null);
    caller.abort(reason);
    await system.settle();
    expect(seen).toEqual({ at: 0, error: reason });
  });
});

describe("a source", () => {
  it.each<[string, () => unknown, string]>([
    [
      "throws in next",
      () => {
        throw new Error("at once");
      },
      "at once",
    ],
    ["rejects", () => Promise.reject(new Error("later")), "later"],
    ["gives no object", () => Promise.resolve(undefined), "limitStream: undefined"],
  ])("that %s fails the stream at once, and leaves no timer", async (_name, next, message) => {
    const { calls, system, watch } = openCalls();
    const stream = calls.limitStream({ idle: "1s" }, sourceOf({ next }));
    const seen = await watch(stream.next());
    expect(seen.at).toBe(0);
    expect(String(seen.error)).toContain(message);
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
    expect(await stream.next()).toEqual(DONE);
  });

  it("whose next gives a value instead of a promise works as with for await", async () => {
    const { calls } = openCalls();
    const stream = calls.limitStream({ idle: "1s" }, sourceOf({ next: () => ({ done: false, value: 7 }) }));
    expect(await stream.next()).toEqual({ done: false, value: 7 });
  });

  it.each<[string, () => unknown]>([
    [
      "throws",
      () => {
        throw new Error("no");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no"))],
  ])("whose return %s costs the consumer nothing", async (_name, give) => {
    const { calls, system, watch } = openCalls();
    const stream = calls.limitStream({ idle: "1s" }, sourceOf({ next: never, return: give }));
    const seen = await watch(stream.next());
    await system.advance(1_000);
    expect(seen).toMatchObject({ at: 1_000, error: { kind: "first" } });
    expect(calls.counts()).toMatchObject([{ ignored: 0, stuck: 0 }]);
    expect(system.pendingTimers).toBe(0);
  });

  it("that errors while it is cancelled is unlocked again", async () => {
    const { calls, system, watch } = openCalls();
    const source = new ReadableStream<number>({ cancel: () => Promise.reject(new Error("no")) });
    const stream = calls.limitStream({ idle: "1s" }, source);
    const seen = await watch(stream.next());
    await system.advance(1_000);
    expect(seen).toMatchObject({ at: 1_000, error: { kind: "first" } });
    expect([source.locked, system.pendingTimers]).toEqual([false, 0]);
  });
});

describe("the deadline of the code around a stream", () => {
  it("that is shorter than the stream's own limits is named in the error", async () => {
    const { calls, system, watch, within } = openCalls();
    let inner: Promise<unknown> = Promise.resolve();
    await watch(
      within({ attempt: "3s" }, () => {
        inner = calls.limitStream({ idle: "1h", total: "2h" }, sourceOf({ next: never })).next();
        return inner;
      }),
    );
    const seen = await watch(inner);
    await system.advance(3_000);
    expect(seen).toMatchObject({ at: 3_000, error: { kind: "total", limit: 3_000, elapsed: 3_000 } });
    await system.advance(10_000);
    expect(system.pendingTimers).toBe(0);
  });
});
