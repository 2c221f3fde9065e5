import { describe, expect, it, vi } from "vitest";
import { adaptive, createCalls, deadlineFetch, TimeoutError } from "../../src/calls/index.ts";
import { never, openCalls } from "./open-calls.ts";

const MINUTE = 60_000;
const limit = adaptive({ floor: "10ms", ceiling: "1s", samples: 10, step: 10, every: "1m", window: "8m" });

/** Calls that take as long as their input says. */
function openQuotes(attempt = limit) {
  const stage = openCalls();
  const quote = stage.calls.defineCall({
    name: "quote",
    attempt,
    run: (took: number) => stage.sleep(took),
  });
  const run = async (count: number, took: number) => {
    const calls = Array.from({ length: count }, () => quote(took).catch(() => {}));
    await stage.system.advance(took + 1_000);
    await Promise.all(calls);
  };
  /** When a call that never ends is cut off. */
  const cutAt = async () => {
    const startedAt = stage.system.monotonic();
    const seen = await stage.watch(quote(10 * MINUTE));
    await stage.system.advance(1_001);
    expect(seen.error).toBeInstanceOf(TimeoutError);
    return (seen.at as number) - startedAt;
  };
  return { ...stage, quote, run, cutAt };
}

describe("adaptive limits of calls (SEMANTICS 16.6)", () => {
  it("begin at the ceiling and follow the calls of their name, exactly", async () => {
    const { system, run, cutAt, quote } = openQuotes();
    expect(quote.explain().attempt).toMatchObject({ value: 1_000, source: "definition" });
    await run(200, 20);
    expect(await cutAt()).toBe(1_000);
    await system.advance(MINUTE);
    expect(await cutAt()).toBe(100);
    await system.advance(MINUTE);
    expect(await cutAt()).toBe(60);
    expect(quote.explain().attempt).toMatchObject({ value: 60 });
    expect(quote.explain().attempt.note).toContain("200 runs and 2 cut off");
  });

  it("forget what left the window, and go back to the ceiling by steps", async () => {
    const { system, run, cutAt } = openQuotes();
    await run(200, 20);
    await system.advance(2 * MINUTE);
    expect(await cutAt()).toBe(100);
    await system.advance(9 * MINUTE);
    expect(await cutAt()).toBe(1_000);
  });

  it("count each try that was cut off, also if the next one succeeds", async () => {
    const { system, calls, sleep, run, cutAt } = openQuotes();
    await run(100, 20);
    await system.advance(2 * MINUTE);
    expect(await cutAt()).toBe(100);
    const flaky = calls.defineCall({
      name: "quote",
      attempt: limit,
      retry: { attempts: 2, backoff: { kind: "constant", first: 1, max: 1, jitter: false } },
      run: (_: undefined, { attempt }) => (attempt === 1 ? never() : sleep(20)),
    });
    const all = Array.from({ length: 5 }, () => flaky(undefined));
    await system.advance(1_000);
    await Promise.all(all);
    await system.advance(MINUTE);
    // 6 of 111 tries were cut off: more than p99 leaves out.
    expect(await cutAt()).toBe(1_000);
  });

  it("give all tries of one call the limit of its start", async () => {
    const { system, calls, run } = openQuotes();
    await run(200, 20);
    const tries: number[] = [];
    const slow = calls.defineCall({
      name: "quote",
      attempt: limit,
      retry: {
        attempts: 2,
        backoff: { kind: "constant", first: 2 * MINUTE, max: 2 * MINUTE, jitter: false },
      },
      run: (_: undefined, { remaining }) => {
        tries.push(remaining());
        return never();
      },
    });
    const ended = slow(undefined).catch(() => {});
    await system.advance(4 * MINUTE);
    await ended;
    expect(tries).toEqual([1_000, 1_000]);
  });

  it("need a name, and let a call's own duration win", async () => {
    const { calls, quote, run, system } = openQuotes();
    expect(() => calls.within({ attempt: limit }, () => 1)).toThrow("within.name");
    await run(200, 20);
    await system.advance(2 * MINUTE);
    const { attempt } = quote.explain({ attempt: "3s" });
    expect(attempt).toMatchObject({ value: 3_000, source: "call" });
    expect(attempt).not.toHaveProperty("note");
  });

  it("keep no timer and no more than their bound of rules and slices", async () => {
    const { calls, system } = openQuotes();
    for (let floor = 1; floor <= 50; floor++) {
      const attempt = adaptive({ floor: `${floor}ms`, ceiling: "1s", samples: 10 });
      await calls.within({ name: "many", attempt }, () => 1);
    }
    expect(calls.pending).toBe(0);
    await system.advance(MINUTE);
    expect(calls.counts().find(({ name }) => name === "many")?.completed).toBe(50);
  });
});

describe("the header of a deadline (SEMANTICS 10.6)", () => {
  it("is rounded up, so that no service stops before its caller", async () => {
    const { system, sleep } = openCalls();
    let fraction = 0;
    const calls = createCalls({ system: { ...system, monotonic: () => system.monotonic() + fraction } });
    const sent: (string | null)[] = [];
    vi.stubGlobal("fetch", async (_url: string, init: RequestInit) => {
      sent.push(new Headers(init.headers).get("curfew-timeout-ms"));
      return new Response("");
    });
    try {
      const call = calls.within({ attempt: "100ms" }, async () => {
        await sleep(30);
        fraction = 0.25;
        await deadlineFetch("http://localhost/");
        await sleep(69);
        fraction = 0.5;
        await deadlineFetch("http://localhost/");
      });
      await system.advance(99);
      await call;
    } finally {
      vi.unstubAllGlobals();
    }
    expect(sent).toEqual(["70", "1"]);
  });
});
