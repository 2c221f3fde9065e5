import { describe, expect, it } from "vitest";
import { StopError, TimeoutError } from "../../src/calls/index.ts";
import { never, openCalls } from "./open-calls.ts";

/** SEMANTICS 10.1 to 10.5, in virtual time. */

describe("the deadline of a call", () => {
  it("rejects at the limit, never before, and aborts the signal with the same reason", async () => {
    const { system, within, watch, calls } = openCalls();
    let signal: AbortSignal | undefined;
    const seen = await watch(
      within({ attempt: "5s" }, (context) => {
        signal = context.signal;
        return never();
      }),
    );
    await system.advance(4_999);
    expect([seen.at, signal?.aborted]).toEqual([undefined, false]);
    await system.advance(1);
    expect(seen.at).toBe(5_000);
    expect(seen.error).toBeInstanceOf(TimeoutError);
    expect(seen.error).toMatchObject({ kind: "execution", limit: 5_000, elapsed: 5_000 });
    expect(signal?.reason).toBe(seen.error);
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
  });

  it("resolves with what the function returns, and leaves no timer", async () => {
    const { system, within, watch, calls, sleep } = openCalls();
    const seen = await watch(within({ attempt: "5s" }, () => sleep(100).then(() => "done")));
    await system.advance(100);
    expect(seen).toEqual({ at: 100, value: "done" });
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
    expect(await within({}, () => 1)).toBe(1);
    await expect(within({}, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    const thrown = within({}, () => {
      throw new Error("at once");
    });
    await expect(thrown).rejects.toThrow("at once");
  });

  it("gives a grace between the signal and the end; a result in it counts and is late", async () => {
    const { system, within, watch, calls, sleep } = openCalls();
    const policy = { name: "a", attempt: "5s", grace: "2s" } as const;
    const late = await watch(within(policy, () => sleep(6_000).then(() => 1)));
    const hung = await watch(within(policy, never));
    const threw = await watch(
      within(policy, async ({ signal }) => {
        await sleep(6_500);
        throw new Error("cleaned up", { cause: signal.reason });
      }),
    );
    await system.advance(10_000);
    expect(late).toEqual({ at: 6_000, value: 1 });
    expect([hung.at, threw.at]).toEqual([7_000, 6_500]);
    expect(threw.error).toMatchObject({ name: "TimeoutError", cause: { message: "cleaned up" } });
    expect(calls.counts()).toMatchObject([{ calls: 3, completed: 1, late: 1, timeouts: { execution: 2 } }]);
  });

  it("an error before the signal is the function's own, also one that looks like a timeout", async () => {
    const { within } = openCalls();
    const own = new TimeoutError("execution", 1, 1, null);
    await expect(within({ attempt: "5s" }, () => Promise.reject(own))).rejects.toBe(own);
    await expect(within({}, () => Promise.reject(undefined))).rejects.toBeUndefined();
  });

  it("`none` switches the limit off", async () => {
    const { system, within, watch, sleep } = openCalls({ defaults: { attempt: "1s" } });
    const seen = await watch(within({ attempt: "none" }, () => sleep(3_600_000).then(() => 1)));
    await system.advance(3_600_000);
    expect(seen.value).toBe(1);
  });
});

describe("what a function does after its verdict", () => {
  it("is dropped, counted, and warned of once per name", async () => {
    const warnings: unknown[] = [];
    const logger = { debug() {}, info() {}, warn: (fields: unknown) => warnings.push(fields), error() {} };
    const { system, within, watch, calls, sleep } = openCalls({ logger: logger as never });
    for (const end of [() => Promise.resolve(2), () => Promise.reject(new Error("late"))])
      await watch(within({ name: "slow", attempt: "1s" }, () => sleep(3_000).then(end)));
    await system.advance(1_000);
    expect(calls.counts()).toMatchObject([{ stuck: 2, ignored: 0 }]);
    await system.advance(2_000);
    expect(calls.counts()).toMatchObject([{ stuck: 0, ignored: 2, timeouts: { execution: 2, total: 0 } }]);
    expect(warnings).toEqual([{ call: "slow" }]);
  });

  it("is not counted if it ends with the reason of its signal, or with an error that this reason caused", async () => {
    const { system, within, watch, calls } = openCalls();
    const ends = {
      reason: (reason: Error) => reason,
      cause: (cause: Error) => new Error("The operation was aborted", { cause }),
      other: () => new Error("something else"),
    };
    for (const [name, end] of Object.entries(ends))
      await watch(
        within({ name, attempt: "1s" }, async ({ signal }) => {
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          throw end(signal.reason);
        }),
      );
    await system.advance(1_000);
    const ignored = calls.counts().map((counts) => [counts.name, counts.ignored, counts.stuck]);
    expect(ignored).toEqual([
      ["reason", 0, 0],
      ["cause", 0, 0],
      ["other", 1, 0],
    ]);
  });
});

describe("the caller's own signal", () => {
  it("ends the call at once, with its reason", async () => {
    const { system, within, watch, calls } = openCalls();
    const caller = new AbortController();
    let inner: AbortSignal | undefined;
    const seen = await watch(
      within({ attempt: "5s", grace: "1s", signal: caller.signal }, ({ signal }) => {
        inner = signal;
        return never();
      }),
    );
    await system.advance(100);
    const reason = new Error("the client left");
    caller.abort(reason);
    await system.settle();
    expect(seen).toEqual({ at: 100, error: reason });
    expect(inner?.reason).toBe(reason);
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
    expect(calls.counts()).toMatchObject([{ stopped: 1, stuck: 1 }]);
  });

  it("wins over the timeout in the grace, and from a listener at the deadline itself", async () => {
    const { system, within, watch } = openCalls();
    const late = new AbortController();
    const inGrace = await watch(within({ attempt: "1s", grace: "5s", signal: late.signal }, never));
    const caller = new AbortController();
    const atDeadline = await watch(
      within({ attempt: "1s", signal: caller.signal }, ({ signal }) => {
        signal.addEventListener("abort", () => caller.abort("gave up"));
        return never();
      }),
    );
    await system.advance(2_000);
    late.abort("gave up later");
    await system.settle();
    expect(atDeadline).toEqual({ at: 1_000, error: "gave up" });
    expect(inGrace).toEqual({ at: 2_000, error: "gave up later" });
    expect(system.pendingTimers).toBe(0);
  });

  it("that is aborted already enters nothing", async () => {
    const { within } = openCalls();
    let entered = 0;
    const call = within({ signal: AbortSignal.abort("gone") }, () => ++entered);
    await expect(call).rejects.toBe("gone");
    expect(entered).toBe(0);
  });
});

describe("retries", () => {
  const retry = {
    attempts: 3,
    backoff: { kind: "constant", first: 1_000, max: 1_000, jitter: false },
  } as const;

  it("repeats after the backoff, each try with its own limit, and gives the last error", async () => {
    const { system, within, watch, calls } = openCalls();
    const tries: number[] = [];
    const seen = await watch(
      within({ attempt: "2s", retry }, ({ attempt }) => {
        tries.push(system.monotonic());
        return attempt === 2 ? Promise.reject(new Error("no")) : never();
      }),
    );
    await system.advance(20_000);
    expect(tries).toEqual([0, 3_000, 4_000]);
    expect(seen).toMatchObject({ at: 6_000, error: { name: "TimeoutError", limit: 2_000 } });
    expect(calls.counts()).toMatchObject([{ retries: 2, timeouts: { execution: 1 } }]);
  });

  it("begins no retry that cannot fit into the total, and cuts a try to what is left of it", async () => {
    const { system, within, watch } = openCalls();
    const full = await watch(within({ attempt: "2s", total: "4s", retry }, never));
    const any = await watch(
      within({ attempt: "2s", total: "4s", retry: { ...retry, retryFit: "any" } }, never),
    );
    await system.advance(20_000);
    expect(full).toMatchObject({ at: 2_000, error: { kind: "execution" } });
    expect(any).toMatchObject({ at: 4_000, error: { kind: "total", limit: 4_000 } });
  });

  it("does not repeat what `except` names, nor a timeout in mode discard", async () => {
    const { system, within, watch } = openCalls();
    let entered = 0;
    const count = (end: () => Promise<unknown>) => () => {
      entered += 1;
      return end();
    };
    const named = await watch(
      within(
        { retry: { ...retry, except: ["RangeError"] } },
        count(() => Promise.reject(new RangeError("x"))),
      ),
    );
    const discard = await watch(within({ attempt: "1s", mode: "discard", retry }, count(never)));
    await system.advance(10_000);
    expect([named.at, discard.at, entered]).toEqual([0, 1_000, 2]);
  });

  it("ends during the backoff when the caller gives up", async () => {
    const { system, within, watch, calls } = openCalls();
    const caller = new AbortController();
    const seen = await watch(within({ retry, signal: caller.signal }, () => Promise.reject(new Error("x"))));
    await system.advance(500);
    caller.abort("enough");
    await system.settle();
    expect(seen).toEqual({ at: 500, error: "enough" });
    expect([calls.pending, system.pendingTimers]).toEqual([0, 0]);
  });
});

describe("deadlines travel", () => {
  it("a call inside a call gets the smaller of its own limit and of what is left", async () => {
    const { system, within, watch, sleep } = openCalls();
    let inner: { remaining: number } | undefined;
    const seen = await watch(
      within({ attempt: "5s" }, async () => {
        await sleep(2_000);
        return within({ attempt: "10s" }, ({ remaining }) => {
          inner = { remaining: remaining() };
          return never();
        });
      }),
    );
    await system.advance(10_000);
    expect(inner).toEqual({ remaining: 3_000 });
    expect(seen.at).toBe(5_000);
  });

  it("`detach` goes on after the call around it", async () => {
    const { system, within, watch, sleep } = openCalls();
    const outer: { inner?: Promise<number> } = {};
    await watch(
      within({ attempt: "1s" }, () => {
        outer.inner = within({ attempt: "5s", detach: true }, () => sleep(3_000).then(() => 7));
        return never();
      }),
    );
    await system.advance(3_000);
    expect(await outer.inner).toBe(7);
  });

  it("a stop of the code around ends the call with its reason", async () => {
    const { system, within, watch } = openCalls();
    const caller = new AbortController();
    let inner: Promise<unknown> | undefined;
    await watch(
      within({ signal: caller.signal }, () => {
        inner = within({ attempt: "10s" }, never);
        return inner;
      }),
    );
    const reason = new StopError("shutdown", 0, null);
    const seen = await watch(inner as Promise<unknown>);
    caller.abort(reason);
    await system.settle();
    expect(seen).toEqual({ at: 0, error: reason });
    expect(system.pendingTimers).toBe(0);
  });
});

describe("defineCall", () => {
  it("names a function and its limits, and a call may change them", async () => {
    const { system, calls, watch } = openCalls({ defaults: { grace: "1s" } });
    const charge = calls.defineCall({ name: "charge", attempt: "2s", run: (_euros: number) => never() });
    const seen = await watch(charge(5, { attempt: "4s" }));
    await system.advance(10_000);
    expect(seen.at).toBe(5_000);
    expect(charge.explain({ attempt: "4s" })).toMatchObject({
      attempt: { value: 4_000, source: "call", lost: [{ source: "definition", value: 2_000 }, {}] },
      grace: { value: 1_000, source: "defaults" },
      total: { value: null, source: "built-in", lost: [] },
    });
  });

  it("advises from what was seen", async () => {
    const { system, calls, sleep } = openCalls();
    const quick = calls.defineCall({ name: "quick", attempt: "60s", run: () => sleep(20) });
    for (let count = 0; count < 200; count++) void quick(undefined);
    await system.advance(20);
    expect(calls.advise("quick")).toMatchObject({ verdict: "lower", attempt: 60_000, suggested: 100 });
    expect(calls.advise("quick", { attempt: "10ms" })?.whatIf).toMatchObject({ wouldCut: { atLeast: 200 } });
    expect(calls.advise("unknown")).toBeUndefined();
  });
});

describe("what is refused", () => {
  const { calls } = openCalls();
  it.each<[string, () => unknown, string]>([
    ["a typo", () => calls.within({ atempt: "5s" } as never, never), "did you mean attempt?"],
    [
      "a number",
      () => calls.within({ attempt: 5 } as never, never),
      "within.attempt: 5 is not a valid duration",
    ],
    ["no function", () => calls.within({}, 5 as never), "pass a function"],
    ["a queue's timeout", () => calls.within({ wait: "5s" } as never, never), "within.wait"],
    ["a total below the attempt", () => calls.within({ attempt: "5s", total: "1s" }, never), "within.total"],
    ["no name", () => calls.defineCall({ name: "", run: never }), "defineCall.name"],
  ])("%s", (_what, act, message) => {
    expect(act).toThrow(message);
  });
});
