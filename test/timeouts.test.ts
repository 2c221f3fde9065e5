import { describe, expect, it, onTestFinished } from "vitest";
import { createMemoryStore } from "../src/stores/memory/memory-store.ts";
import { createSimSystem, type SimSystem } from "../src/testing/index.ts";
import {
  ConcurrencyError,
  type LoneTimeoutStore,
  type OpenedTimeouts,
  type OpenTimeoutsOptions,
  openTimeouts,
} from "../src/timeouts.ts";

const START = Date.UTC(2030, 0, 1);

async function open(
  options: Partial<OpenTimeoutsOptions> = {},
): Promise<{ timeouts: OpenedTimeouts; system: SimSystem }> {
  const system = createSimSystem({ seed: 1, startAt: START });
  const timeouts = await openTimeouts({ store: "memory:", system, ...options });
  onTestFinished(() => timeouts.close());
  return { timeouts, system };
}

async function errorOf(work: Promise<unknown>): Promise<ConcurrencyError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConcurrencyError);
  return error as ConcurrencyError;
}

describe("the timeout store alone", () => {
  it("inserts, claims, removes and releases by the store's own clock", async () => {
    const { timeouts, system } = await open();
    const id = await timeouts.insert({ destination: "mail", dueAt: "10s", payload: { n: 1 } });
    expect(await timeouts.nextDueAt()).toBe(START + 10_000);
    expect(await timeouts.claimDue()).toEqual([]);
    await system.advance(10_000);
    const [claimed] = await timeouts.claimDue();
    expect(claimed).toMatchObject({ id, payload: { n: 1 }, leaseUntil: START + 10_000 + 300_000 });
    const owner = claimed?.owner ?? "";
    await timeouts.release(id, owner, { after: "1m", error: "busy" });
    expect(await timeouts.claimDue()).toEqual([]);
    await system.advance(60_000);
    const [again] = await timeouts.claimDue({ lease: "10s" });
    expect(again).toMatchObject({ id, tries: 1, error: "busy", leaseUntil: START + 80_000 });
    expect(await timeouts.extend(id, again?.owner ?? "", { lease: "20s" })).toBe(START + 90_000);
    await timeouts.remove(id, again?.owner);
    expect(await timeouts.list()).toEqual([]);
  });

  it("a lease that is not held is a ConcurrencyError with id, owner and reason", async () => {
    const { timeouts, system } = await open({ lease: "30s" });
    await timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    expect(await errorOf(timeouts.remove("nobody", "me"))).toMatchObject({
      code: "concurrency",
      id: "nobody",
      owner: "me",
      reason: "gone",
    });
    expect((await errorOf(timeouts.release("t", "me"))).reason).toBe("unleased");
    const [claimed] = await timeouts.claimDue();
    expect((await errorOf(timeouts.extend("t", "me"))).reason).toBe("stolen");
    await system.advance(30_000);
    expect((await errorOf(timeouts.remove("t", claimed?.owner))).reason).toBe("expired");
    expect(await timeouts.reap()).toBe(1);
    await timeouts.remove("nobody");
    await timeouts.release("nobody");
    await timeouts.remove("t");
    expect(await timeouts.count()).toEqual({ pending: 0, due: 0, leased: 0, dead: 0 });
  });

  it("a known id is refused, an empty one too, and a key replaces", async () => {
    const { timeouts } = await open();
    await timeouts.insert({ id: "t", destination: "mail", dueAt: "1h" });
    const again = timeouts.insert({ id: "t", destination: "mail", dueAt: "2h" });
    await expect(again).rejects.toMatchObject({ code: "known_id", message: expect.stringContaining(" t ") });
    await expect(timeouts.insert({ id: "", destination: "mail", dueAt: "1h" })).rejects.toThrow(
      /timeout\.id: ""/,
    );
    await expect(timeouts.insert({ destination: "", dueAt: "1h" })).rejects.toThrow(
      /timeout\.destination: ""/,
    );
    await timeouts.insert({ id: "a", destination: "mail", dueAt: "1h", key: "k" });
    await timeouts.insert({ id: "b", destination: "mail", dueAt: "1h", key: "k" });
    expect((await timeouts.list()).map(({ id }) => id)).toEqual(["b", "t"]);
    expect(await timeouts.cancel({ destination: "mail", key: "k" })).toEqual({ pending: 1, leased: 0 });
  });

  it("an aborted signal on any call is its reason, and nothing changes", async () => {
    const { timeouts } = await open();
    await timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    const before = await timeouts.list();
    const options = { signal: AbortSignal.abort() };
    const calls = [
      () => timeouts.insert({ destination: "mail", dueAt: "1s" }, options),
      () => timeouts.claimDue(options),
      () => timeouts.remove("t", undefined, options),
      () => timeouts.release("t", undefined, { ...options, after: "1h" }),
      () => timeouts.extend("t", "me", options),
      () => timeouts.reap(options),
      () => timeouts.cancel({ id: "t" }, options),
      () => timeouts.requeue(["t"], options),
      () => timeouts.list({}, options),
      () => timeouts.nextDueAt(options),
      () => timeouts.count(options),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ name: "AbortError" });
    expect(await timeouts.list()).toEqual(before);
  });

  it("refuses leases and batches that cannot be kept, and limits as a RangeError", async () => {
    await expect(open({ lease: "0s" })).rejects.toThrow(/lease: "0s"/);
    await expect(open({ lease: -1 as never })).rejects.toThrow(/lease: -1/);
    await expect(open({ batch: 0 })).rejects.toThrow(RangeError);
    await expect(open({ store: 5 as never })).rejects.toMatchObject({ code: "unknown_store" });
    await expect(open({ stroe: "x" } as never)).rejects.toMatchObject({ code: "unknown_option" });
    const { timeouts } = await open();
    await expect(timeouts.claimDue({ limit: Number.NaN })).rejects.toThrow(/limit: NaN/);
    await expect(timeouts.claimDue({ lease: "0s" })).rejects.toThrow(/lease: "0s"/);
  });

  it("works on your own store that serves nothing else", async () => {
    const { timeouts: port, clock, close } = createMemoryStore({ clock: () => START });
    const lone: LoneTimeoutStore = { timeouts: port, clock, close };
    const { timeouts } = await open({ store: lone });
    await timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    expect((await timeouts.claimDue()).map(({ id }) => id)).toEqual(["t"]);
  });
});

describe("due()", () => {
  it("hands out what is due, wakes on insert, and removes what the loop came back from", async () => {
    const { timeouts, system } = await open();
    const seen: [string, number][] = [];
    const stop = new AbortController();
    const loop = (async () => {
      for await (const { id } of timeouts.due({ signal: stop.signal, poll: "1h" })) {
        seen.push([id, system.wall() - START]);
      }
    })();
    await system.settle();
    await timeouts.insertMany([
      { id: "b", destination: "mail", dueAt: "5s" },
      { id: "a", destination: "mail", dueAt: "5s" },
    ]);
    await system.advance(10_000);
    expect(seen).toEqual([
      ["a", 5_000],
      ["b", 5_000],
    ]);
    expect(await timeouts.list()).toEqual([]);
    stop.abort();
    await loop;
  });

  it("renews the lease of a slow body, and gives back what a body releases", async () => {
    const { timeouts, system } = await open({ lease: "10s" });
    await timeouts.insertMany([
      { id: "a", destination: "mail", dueAt: "0s" },
      { id: "b", destination: "mail", dueAt: "0s" },
    ]);
    const seen: string[] = [];
    const stop = new AbortController();
    const loop = (async () => {
      for await (const timeout of timeouts.due({ signal: stop.signal })) {
        seen.push(timeout.id);
        if (timeout.id === "a") await new Promise<void>((resolve) => system.after(60_000, resolve));
        else if (timeout.tries === 0) await timeout.release({ after: "5s", error: "busy" });
      }
    })();
    await system.advance(59_000);
    expect(seen).toEqual(["a"]);
    expect(await timeouts.claimDue()).toEqual([]);
    await system.advance(10_000);
    expect(seen).toEqual(["a", "b", "b"]);
    expect(await timeouts.list()).toEqual([]);
    stop.abort();
    await loop;
  });

  it("leaving the loop gives back the one in hand and those behind it, and spends no try", async () => {
    const { timeouts } = await open();
    const ids = ["a", "b", "c"];
    await timeouts.insertMany(ids.map((id) => ({ id, destination: "mail", dueAt: "0s" })));
    const run = async () => {
      for await (const { id } of timeouts.due()) if (id === "b") throw new Error("no");
    };
    await expect(run()).rejects.toThrow("no");
    const left = await timeouts.claimDue();
    expect(left.map(({ id, tries }) => [id, tries])).toEqual([
      ["b", 0],
      ["c", 0],
    ]);
  });

  it("goes on when the store fails, and says so", async () => {
    const store = createMemoryStore({ clock: () => START });
    let fails = 3;
    const flaky: LoneTimeoutStore = {
      ...store,
      timeouts: {
        ...store.timeouts,
        claimDue: (request) =>
          fails-- > 0 ? Promise.reject(new Error("down")) : store.timeouts.claimDue(request),
      },
    };
    const { timeouts, system } = await open({ store: flaky });
    await timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    const errors: unknown[] = [];
    const stream = timeouts.due({ onError: (error) => errors.push(error) });
    const next = stream.next();
    await system.advance(5_000);
    expect((await next).value).toMatchObject({ id: "t" });
    expect(errors).toHaveLength(3);
    await stream.return();
  });
});
