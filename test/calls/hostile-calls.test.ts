import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import { TimeoutError } from "../../src/calls/index.ts";
import { never, openCalls } from "./open-calls.ts";

/** SEMANTICS 10.2 to 10.6 against functions and callers that do what they should not, in virtual time. */

const constant = (delay: number) => ({ kind: "constant", first: delay, max: delay, jitter: false }) as const;

describe("thenables", () => {
  it("one that resolves twice, or resolves and throws, settles the call once", async () => {
    const { within, calls, system } = openCalls();
    const twice = {
      // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested.
      then(resolve: (value: number) => void) {
        resolve(1);
        resolve(2);
        throw new Error("and throws");
      },
    };
    expect(await within({ name: "a" }, () => twice as never)).toBe(1);
    await system.settle();
    expect(calls.counts()).toMatchObject([{ calls: 1, completed: 1, ignored: 0, stuck: 0 }]);
  });

  it("one that resolves with a promise that hangs is cut at the limit", async () => {
    const { within, watch, system, calls } = openCalls();
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested.
    const hung = { then: (resolve: (value: unknown) => void) => resolve(never()) };
    const seen = await watch(within({ attempt: "1s" }, () => hung as never));
    await system.advance(1_000);
    expect(seen).toMatchObject({ at: 1_000, error: { name: "TimeoutError" } });
    expect(calls.counts()).toMatchObject([{ completed: 0, timeouts: { execution: 1 } }]);
  });

  it("one whose `then` throws when it is read fails the call", async () => {
    const { within } = openCalls();
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested.
    const broken = Object.defineProperty({}, "then", {
      get() {
        throw new Error("unreadable");
      },
    });
    await expect(within({}, () => broken as never)).rejects.toThrow("unreadable");
  });
});

describe("a function that blocks the event loop", () => {
  it("beyond the hard deadline has timed out, although it returned before the timer could fire", async () => {
    const { within, system, calls } = openCalls();
    const call = within({ attempt: "1s", grace: "500ms" }, () => {
      system.pause(2_000);
      return 1;
    });
    await expect(call).rejects.toMatchObject({ name: "TimeoutError", limit: 1_000, elapsed: 2_000 });
    expect(calls.counts()).toMatchObject([
      { completed: 0, timeouts: { execution: 1 }, ignored: 1, stuck: 0 },
    ]);
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
  });

  it("into the grace is late, and an error there is the timeout", async () => {
    const { within, system, calls } = openCalls();
    const policy = { attempt: "1s", grace: "500ms" } as const;
    const late = within(policy, () => {
      system.pause(1_200);
      return 1;
    });
    expect(await late).toBe(1);
    const failed = within(policy, ({ signal }) => {
      system.pause(1_200);
      throw new Error("too late", { cause: signal });
    });
    await expect(failed).rejects.toMatchObject({ name: "TimeoutError", cause: { message: "too late" } });
    expect(calls.counts()).toMatchObject([{ late: 1, timeouts: { execution: 1 } }]);
  });
});

describe("deadlines that fall due in the same tick", () => {
  it("a stream that was stopped by a listener of another deadline ends once, and the others still fire", async () => {
    const { within, watch, system, calls } = openCalls();
    const caller = new AbortController();
    const first = await watch(
      within({ attempt: "1s" }, ({ signal }) => {
        signal.addEventListener("abort", () => caller.abort("enough"));
        return never();
      }),
    );
    const source = { [Symbol.asyncIterator]: () => ({ next: never }) };
    const stream = calls.limitStream({ idle: "1s", signal: caller.signal }, source);
    const second = await watch(stream.next());
    const third = await watch(within({ attempt: "1s" }, never));
    await system.advance(1_000);
    expect(first).toMatchObject({ at: 1_000, error: { name: "TimeoutError" } });
    expect(second).toEqual({ at: 1_000, error: "enough" });
    expect(third).toMatchObject({ at: 1_000, error: { name: "TimeoutError" } });
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
  });
});

describe("retries", () => {
  it("run in the async context of their own caller", async () => {
    const { within, watch, system } = openCalls();
    const tenant = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const start = (name: string, backoff: number) =>
      tenant.run(name, () =>
        watch(
          within({ retry: { attempts: 2, backoff: constant(backoff) } }, () => {
            seen.push(tenant.getStore());
            return Promise.reject(new Error("no"));
          }),
        ),
      );
    await start("a", 1_000);
    await start("b", 1_000);
    await start("c", 500);
    await system.advance(2_000);
    expect(seen).toEqual(["a", "b", "c", "c", "a", "b"]);
  });

  it("a built-in attempt that is longer than the total does not forbid them", async () => {
    const { within, watch, system } = openCalls();
    let entered = 0;
    const retry = { attempts: 3, backoff: constant(1_000) };
    await watch(
      within({ total: "10s", retry }, () => {
        entered += 1;
        return Promise.reject(new Error("no"));
      }),
    );
    await system.advance(10_000);
    expect(entered).toBe(3);
  });

  it("one whose backoff ends with the total is not begun, and the last error stays", async () => {
    const { within, watch, system, calls } = openCalls();
    const retry = { attempts: 3, backoff: constant(1_000) };
    const seen = await watch(
      within({ attempt: "none", total: "1s", retry }, () => Promise.reject(new Error("the bank said no"))),
    );
    await system.advance(5_000);
    expect(seen).toMatchObject({ at: 0, error: { message: "the bank said no" } });
    expect(calls.counts()).toMatchObject([{ failed: 1, retries: 0, timeouts: { total: 0 } }]);
  });

  it("one whose timer fires too late to fit is not begun, and the last error stays", async () => {
    const { within, watch, system } = openCalls();
    let entered = 0;
    const retry = { attempts: 3, backoff: constant(1_000) };
    const seen = await watch(
      within({ attempt: "1s", total: "3s", retry }, () => {
        entered += 1;
        return Promise.reject(new Error("the bank said no"));
      }),
    );
    system.after(900, () => system.pause(5_000));
    await system.advance(10_000);
    expect(seen).toMatchObject({ error: { message: "the bank said no" } });
    expect(entered).toBe(1);
  });
});

describe("a call inside another", () => {
  it("ends when the caller of the outer one stops it by a TimeoutError", async () => {
    const { within, watch, system } = openCalls();
    const caller = new AbortController();
    let inner: Promise<unknown> = Promise.resolve();
    await watch(
      within({ attempt: "1h", signal: caller.signal }, () => {
        inner = within({ attempt: "30m" }, never);
        return inner;
      }),
    );
    const seen = await watch(inner);
    const reason = new TimeoutError("total", 1, 1, null);
    caller.abort(reason);
    await system.settle();
    expect(seen).toEqual({ at: 0, error: reason });
    expect(system.pendingTimers).toBe(0);
  });

  it("is not entered in the grace of the outer one, unless it is detached", async () => {
    const { within, watch, system, sleep } = openCalls();
    let entered = 0;
    let attached: Promise<unknown> = Promise.resolve();
    const seen = await watch(
      within({ attempt: "1s", grace: "5s" }, async () => {
        await sleep(2_000);
        attached = within({ attempt: "1s" }, () => ++entered);
        await attached.catch(() => {});
        return within({ attempt: "1s", detach: true }, () => "cleaned up");
      }),
    );
    await system.advance(2_000);
    expect(seen).toEqual({ at: 2_000, value: "cleaned up" });
    await expect(attached).rejects.toMatchObject({ name: "TimeoutError", kind: "total" });
    expect(entered).toBe(0);
  });
});

describe("bad input", () => {
  const { calls } = openCalls();
  it.each<[string, () => unknown, string]>([
    [
      "a controller instead of its signal",
      () => calls.within({ signal: new AbortController() as never }, never),
      "within.signal",
    ],
    ["a name that is no text", () => calls.within({ name: 5 as never }, never), "within.name"],
    ["a text for detach", () => calls.within({ detach: "no" as never }, never), "within.detach"],
    ["no options", () => calls.within(undefined as never, never), "within"],
    ["no options of a stream", () => calls.limitStream(undefined as never, [] as never), "limitStream"],
    [
      "a signal of a stream",
      () => calls.limitStream({ signal: 5 as never }, [] as never),
      "limitStream.signal",
    ],
    [
      "a total below idle",
      () => calls.limitStream({ idle: "5s", total: 5 as never }, [] as never),
      "limitStream.total",
    ],
  ])("%s is refused", (_what, act, message) => {
    expect(act).toThrow(message);
  });
});
