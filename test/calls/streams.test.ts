import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { createCalls, type StreamOptions, TimeoutError } from "../../src/calls/index.ts";
import { createSimSystem } from "../../src/testing/sim-clock.ts";

/** SEMANTICS 10.7, in virtual time. */
function open() {
  const system = createSimSystem({ seed: 1, startAt: 0 });
  const calls = createCalls({ system });
  const sleep = (delay: number) => new Promise<void>((resolve) => void system.after(delay, resolve));
  /** Gives an item after each delay; counts how often it was asked to return. */
  const source = (delays: readonly number[], more: { returnTakes?: number; endless?: boolean } = {}) => {
    let index = 0;
    const seen = { returned: 0, asked: 0 };
    const iterator: AsyncIterableIterator<number> = {
      [Symbol.asyncIterator]: () => iterator,
      next: async () => {
        seen.asked += 1;
        if (index >= delays.length && !more.endless) return { done: true, value: undefined };
        await sleep(delays[index++ % delays.length] as number);
        return { done: false, value: index };
      },
      return: async () => {
        seen.returned += 1;
        await sleep(more.returnTakes ?? 0);
        return { done: true, value: undefined };
      },
    };
    return { iterator, seen };
  };
  /** Reads a stream to its end; `pause` is what the consumer takes for each item. */
  const read = (options: StreamOptions, iterable: AsyncIterable<number>, pause = 0) => {
    const seen: { items: number[]; at?: number; error?: unknown } = { items: [] };
    const reading = async () => {
      for await (const item of calls.limitStream(options, iterable)) {
        seen.items.push(item);
        if (pause > 0) await sleep(pause);
      }
    };
    reading().then(
      () => Object.assign(seen, { at: system.monotonic() }),
      (error) => Object.assign(seen, { at: system.monotonic(), error }),
    );
    return seen;
  };
  return { system, calls, sleep, source, read };
}

describe("limits of a stream", () => {
  it("passes all items on and leaves no timer", async () => {
    const { system, source, read, calls } = open();
    const { iterator, seen } = source([10, 20, 30]);
    const reader = read({ first: "1s", idle: "1s", total: "1s" }, iterator);
    await system.advance(100);
    expect(reader).toEqual({ items: [1, 2, 3], at: 60 });
    expect([seen.returned, calls.pending, system.pendingTimers]).toEqual([0, 0, 0]);
  });

  it.each<[string, StreamOptions, number[], number, number, string]>([
    ["first", { first: "5s", idle: "1s" }, [6_000], 0, 5_000, "first"],
    ["idle instead of a first that is not named", { idle: "1s" }, [6_000], 0, 1_000, "first"],
    ["idle", { first: "5s", idle: "1s" }, [4_000, 500, 2_000], 2, 5_500, "idle"],
    ["total", { total: "5s" }, [2_000, 2_000, 2_000], 2, 5_000, "total"],
  ])("%s ends it at the instant", async (_name, options, delays, items, at, kind) => {
    const { system, source, read } = open();
    const { iterator, seen } = source(delays);
    const reader = read(options, iterator);
    await system.advance(at - 1);
    expect(reader.at).toBeUndefined();
    await system.advance(1);
    expect(reader.items).toHaveLength(items);
    expect(reader).toMatchObject({ at, error: { name: "TimeoutError", kind } });
    await system.advance(60_000);
    expect([seen.returned, system.pendingTimers]).toEqual([1, 0]);
  });

  it("does not count the time that the consumer takes", async () => {
    const { system, source, read } = open();
    const reader = read({ first: "1s", idle: "1s", total: "1s" }, source([100, 100, 100]).iterator, 60_000);
    await system.advance(300_000);
    expect(reader).toMatchObject({ items: [1, 2, 3] });
    expect(reader.error).toBeUndefined();
  });

  it("a consumer that stops early causes one return, and waits for it no longer than the grace", async () => {
    const { system, source, calls } = open();
    const { iterator, seen } = source([10], { endless: true, returnTakes: 60_000 });
    let at: number | undefined;
    const reading = async () => {
      for await (const _item of calls.limitStream({ idle: "1s", grace: "2s" }, iterator)) break;
      at = system.monotonic();
    };
    void reading();
    await system.advance(10_000);
    expect([at, seen.returned]).toEqual([2_010, 1]);
    expect(calls.counts()).toMatchObject([{ name: "stream", calls: 1, stuck: 1 }]);
    await system.advance(60_000);
    expect(calls.counts()).toMatchObject([{ stuck: 0 }]);
    expect(system.pendingTimers).toBe(0);
  });

  it("drops an item that comes after the limit, and ends for a consumer that asks again", async () => {
    const { system, source, calls } = open();
    const stream = calls.limitStream({ idle: "1s" }, source([1_500, 1]).iterator);
    const first = expect(stream.next()).rejects.toBeInstanceOf(TimeoutError);
    await system.advance(2_000);
    await first;
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(calls.counts()).toMatchObject([{ ignored: 1 }]);
  });

  it("asks the source for one item at a time, whatever the consumer asks for", async () => {
    const { system, source, calls } = open();
    const { iterator, seen } = source([10, 10]);
    const stream = calls.limitStream({ idle: "1s" }, iterator);
    const asked = Promise.all([stream.next(), stream.next(), stream.next()]);
    await system.settle();
    expect(seen.asked).toBe(1);
    await system.advance(100);
    expect((await asked).map(({ value }) => value)).toEqual([1, 2, undefined]);
  });

  it("passes on an error of the source, and the caller's own signal", async () => {
    const { system, calls } = open();
    const broken = async function* (): AsyncGenerator<number> {
      yield 1;
      throw new Error("broken");
    };
    const stream = calls.limitStream({ idle: "1s" }, broken());
    await stream.next();
    await expect(stream.next()).rejects.toThrow("broken");
    const caller = new AbortController();
    const waiting = calls.limitStream({ signal: caller.signal }, () => broken());
    await waiting.next();
    caller.abort("enough");
    await expect(waiting.next()).rejects.toBe("enough");
    expect(await waiting.next()).toEqual({ done: true, value: undefined });
    await system.settle();
    expect(system.pendingTimers).toBe(0);
  });

  it("ends with the call around it", async () => {
    const { system, calls, source } = open();
    let at: number | undefined;
    let kind: string | undefined;
    void calls
      .within({ attempt: "3s", grace: "1s" }, async () => {
        for await (const _item of calls.limitStream({ idle: "10s" }, source([1_000, 9_000]).iterator));
      })
      .catch((error) => {
        at = system.monotonic();
        kind = (error.cause ?? error).kind;
      });
    await system.advance(20_000);
    expect([at, kind]).toEqual([3_000, "total"]);
    expect(system.pendingTimers).toBe(0);
  });
});

describe("kinds of sources", () => {
  it("a stream of the Web that hangs is cancelled at once, with the reason", async () => {
    const { system, calls } = open();
    let cancelled: unknown;
    const hung = new ReadableStream<number>({
      start: (controller) => controller.enqueue(1),
      cancel: (reason) => {
        cancelled = reason;
      },
    });
    const stream = calls.limitStream({ idle: "1s" }, hung);
    expect((await stream.next()).value).toBe(1);
    const next = expect(stream.next()).rejects.toMatchObject({ kind: "idle" });
    await system.advance(1_000);
    await next;
    expect(cancelled).toMatchObject({ kind: "idle" });
    expect([hung.locked, system.pendingTimers]).toEqual([false, 0]);
  });

  it("a stream of Node that hangs is destroyed", async () => {
    const { system, calls } = open();
    const hung = new Readable({ read() {}, objectMode: true });
    hung.push(1);
    const stream = calls.limitStream({ idle: "1s" }, hung);
    const first = stream.next();
    await new Promise(setImmediate);
    expect((await first).value).toBe(1);
    const next = expect(stream.next()).rejects.toMatchObject({ kind: "idle" });
    await system.advance(1_000);
    await next;
    expect(hung.destroyed).toBe(true);
  });

  it("a generator made by a function hears the signal", async () => {
    const { system, calls } = open();
    let heard: unknown;
    const made = async function* ({ signal }: { signal: AbortSignal }): AsyncGenerator<number> {
      yield await new Promise<number>((_resolve, reject) =>
        signal.addEventListener("abort", () => {
          heard = signal.reason;
          reject(signal.reason);
        }),
      );
    };
    const next = expect(calls.limitStream({ first: "1s" }, made).next()).rejects.toMatchObject({
      kind: "first",
    });
    await system.advance(1_000);
    await next;
    expect(heard).toMatchObject({ kind: "first" });
    expect(calls.counts()).toMatchObject([{ ignored: 0, stuck: 0 }]);
  });

  it.each([undefined, null, 5, {}, []])("%s is refused", (source) => {
    expect(() => open().calls.limitStream({}, source as never)).toThrow("limitStream");
  });
});

it("counts streams by how they ended", async () => {
  const { calls, system, source, read } = open();
  read({ idle: "2s" }, source([1_000, 1_000]).iterator);
  read({ first: "500ms" }, source([1_000]).iterator);
  read({ idle: "1500ms" }, source([1_000, 5_000]).iterator);
  read({ total: "1500ms" }, source([1_000, 1_000]).iterator);
  const left = calls.limitStream({ idle: "2s" }, source([1_000, 1_000]).iterator);
  void left.next().then(() => left.return?.());
  await system.advance(20_000);
  const timeouts = { execution: 0, first: 1, idle: 1, total: 1 };
  expect(calls.counts()).toMatchObject([{ calls: 5, completed: 1, failed: 0, stopped: 1, timeouts }]);
});
