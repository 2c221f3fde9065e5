import { describe, expect, it } from "vitest";
import type { Instant } from "../../src/core/time.ts";
import { defineJob, processor, unchecked } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import {
  createLatch,
  type Fault,
  type FaultPlan,
  failFirst,
  faultyStore,
  type StoreCall,
} from "../../src/testing/index.ts";
import { jobsOf } from "../../src/testing/read-store.ts";
import { openStage, START, type Stage } from "./stage.ts";

const LEASE = 300_000;

interface Delivered {
  readonly id: string;
  readonly at: Instant;
}

/** Serves a destination that only notes what it gets. */
function note(stage: Stage, destination = "mail", then: (id: string) => unknown = () => {}): Delivered[] {
  const delivered: Delivered[] = [];
  stage.engine.timeouts.serve(destination, ({ id }) => {
    delivered.push({ id, at: stage.now() - START });
    return then(id);
  });
  return delivered;
}

/** A stage on a memory store that fails as the plan says, with every call noted. */
async function openFaulty(plan: FaultPlan): Promise<{ stage: Stage; calls: StoreCall[] }> {
  const calls: StoreCall[] = [];
  const stage = await openStage({
    store: (clock): Store =>
      faultyStore(createMemoryStore({ clock }), (call, nth) => {
        calls.push(call);
        return plan(call, nth);
      }),
  });
  return { stage, calls };
}

describe("SEMANTICS 6, dispatcher: sending", () => {
  it("sends at the due instant and never before, in due order, with payload, headers and key", async () => {
    const stage = await openStage();
    const seen: unknown[] = [];
    stage.engine.timeouts.serve("mail", ({ id, payload, headers, key, tries }) => {
      seen.push([stage.now() - START, id, payload, headers, key, tries]);
    });
    const headers = { trace: ["a"], raw: new Uint8Array([1, 255]) };
    await stage.engine.timeouts.insertMany([
      { id: "late", destination: "mail", dueAt: "3s", payload: { n: 1 }, headers, key: "k" },
      { id: "soon", destination: "mail", dueAt: { after: "250ms" } },
      { id: "past", destination: "mail", dueAt: new Date(START - 5_000) },
    ]);
    await stage.advance("10s");
    expect(seen).toEqual([
      [expect.any(Number), "past", null, {}, null, 0],
      [250, "soon", null, {}, null, 0],
      [3_000, "late", { n: 1 }, headers, "k", 0],
    ]);
    expect(await stage.engine.timeouts.list()).toEqual([]);
    expect(stage.names().filter((name) => name === "timeout.sent")).toHaveLength(3);
  });

  it("wakes on insert, while it sleeps until something later", async () => {
    const stage = await openStage();
    const delivered = note(stage);
    await stage.engine.timeouts.insert({ id: "hour", destination: "mail", dueAt: "1h" });
    await stage.advance("10m");
    await stage.engine.timeouts.insert({ id: "now", destination: "mail", dueAt: "7ms" });
    await stage.advance("7ms");
    expect(delivered).toEqual([{ id: "now", at: 600_007 }]);
  });

  it("leaves looking to the lookout, which looks every 1.4 s", async () => {
    const { stage, calls } = await openFaulty(() => undefined);
    note(stage);
    await stage.advance("1s");
    calls.length = 0;
    await stage.advance("60s");
    const count = (name: string) => calls.filter((call) => call === name).length;
    expect(count("look")).toBeGreaterThanOrEqual(42);
    expect(count("look")).toBeLessThanOrEqual(45);
    expect(count("timeouts.claimDue")).toBeLessThanOrEqual(2);
    expect(calls.filter((call) => /claim|sweep|nextDue|records/.test(call)).length).toBeLessThanOrEqual(20);
  });

  it("leaves timeouts of destinations that are not served here, and sends them in due order once they are", async () => {
    const stage = await openStage();
    await stage.engine.timeouts.insertMany([
      { id: "b", destination: "mail", dueAt: "2s" },
      { id: "a", destination: "mail", dueAt: "1s" },
    ]);
    await stage.advance("1h");
    expect(await stage.engine.timeouts.count()).toEqual({ pending: 2, due: 2, leased: 0, dead: 0 });
    const delivered = note(stage);
    await stage.settle();
    expect(delivered.map(({ id }) => id)).toEqual(["a", "b"]);
  });

  it("never sends a timeout that was cancelled while it waited, and the cancel reports it", async () => {
    const stage = await openStage();
    const delivered = note(stage);
    await stage.engine.timeouts.insert({ destination: "mail", dueAt: "1s", key: "k" });
    const cancelled = await stage.engine.timeouts.cancel({ destination: "mail", key: "k" });
    expect(cancelled).toEqual({ pending: 1, leased: 0 });
    await stage.advance("1h");
    expect(delivered).toEqual([]);
    expect(await stage.engine.timeouts.cancel({ destination: "mail", key: "k" })).toEqual({
      pending: 0,
      leased: 0,
    });
  });
});

describe("SEMANTICS 6, dispatcher: failures", () => {
  it("a failed send is released with a growing delay and is dead after 10 tries: listed, and requeued", async () => {
    const stage = await openStage();
    let isBroken = true;
    const delivered = note(stage, "mail", () => {
      if (isBroken) throw new Error("no route");
    });
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("2h");
    expect(delivered).toHaveLength(10);
    const gaps = delivered.slice(1).map(({ at }, index) => at - (delivered[index] as Delivered).at);
    for (const [index, gap] of gaps.entries()) {
      const delay = Math.min(1_000 * 2 ** index, 300_000);
      expect(gap).toBeGreaterThanOrEqual(delay * 0.75);
      expect(gap).toBeLessThanOrEqual(delay * 1.25 + 10);
    }
    const [dead] = await stage.engine.timeouts.list({ isDead: true });
    expect(dead).toMatchObject({ id: "t", tries: 10, error: "Error: no route" });
    expect(stage.told("timeout.dead")).toMatchObject({ timeout: "t", destination: "mail", tries: 10 });
    expect(await stage.engine.timeouts.metrics()).toMatchObject({ failed: 10, dead: 1, sent: 0 });
    isBroken = false;
    expect(await stage.engine.timeouts.requeue(["t"])).toBe(1);
    await stage.settle();
    expect(delivered).toHaveLength(11);
    expect(await stage.engine.timeouts.list()).toEqual([]);
  });

  it("an AbortError of the destination itself is a failed try, and the loop goes on", async () => {
    const stage = await openStage();
    let calls = 0;
    const delivered = note(stage, "mail", () => {
      calls += 1;
      if (calls === 1) throw AbortSignal.abort().reason;
    });
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("2s");
    expect(delivered.map(({ id }) => id)).toEqual(["t", "t"]);
  });

  it("a destination that fails or hangs does not delay the others", async () => {
    const stage = await openStage();
    const latch = createLatch();
    stage.engine.timeouts.serve("slow", () => latch.pass(), { concurrency: 5 });
    stage.engine.timeouts.serve("broken", () => Promise.reject(new Error("no")));
    const delivered = note(stage, "good");
    const many = (destination: string, count: number) =>
      Array.from({ length: count }, () => ({ destination, dueAt: "1s" as const }));
    await stage.engine.timeouts.insertMany([
      ...many("slow", 300),
      ...many("broken", 300),
      ...many("good", 300),
    ]);
    await stage.advance("1200ms");
    expect(delivered).toHaveLength(300);
    expect(Math.max(...delivered.map(({ at }) => at))).toBeLessThan(1_100);
    // No more are claimed than can be handled: the rest is there for other processes.
    expect(await stage.engine.timeouts.count()).toMatchObject({ leased: 5, due: 295 });
    latch.open();
    await stage.advance("2s");
    expect(await stage.engine.timeouts.list({ destination: "slow" })).toEqual([]);
  });

  it("a failing store never ends the loop", async () => {
    const hurt = ["claimDue", "nextDueAt", "remove", "reap"].map((name) => `timeouts.${name}`);
    const { stage } = await openFaulty((call, nth) => (hurt.includes(call) && nth <= 6 ? "drop" : undefined));
    const delivered = note(stage);
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("60s");
    expect(delivered.map(({ id }) => id)).toEqual(["t"]);
    expect(await stage.engine.store.timeouts.list({}, null, 10)).toEqual([]);
    expect(stage.names()).toContain("store.error");
  });
});

describe("SEMANTICS 6, dispatcher: leases", () => {
  it("a remove that fails after the send is tried again while the lease is renewed, and it is sent once", async () => {
    const { stage, calls } = await openFaulty((call) =>
      call === "timeouts.remove" && stage.now() - START < 3 * LEASE ? "drop" : undefined,
    );
    const delivered = note(stage);
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("16m");
    expect(delivered).toHaveLength(1);
    expect(calls).not.toContain("timeouts.release");
    expect(await stage.engine.timeouts.list()).toEqual([]);
  });

  it("a remove that fails until the lease is over is not followed by a release: it is sent again", async () => {
    const { stage, calls } = await openFaulty((call) =>
      ["timeouts.remove", "timeouts.extend"].includes(call) && stage.now() - START < LEASE
        ? "drop"
        : undefined,
    );
    const delivered = note(stage);
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("299s");
    expect(delivered).toHaveLength(1);
    expect(calls).not.toContain("timeouts.release");
    await stage.advance("10s");
    expect(delivered.map(({ id }) => id)).toEqual(["t", "t"]);
    expect((delivered[1] as Delivered).at).toBeGreaterThanOrEqual(LEASE);
    expect(await stage.engine.store.timeouts.list({}, null, 10)).toEqual([]);
  });

  it("a slow send renews its lease and is sent once", async () => {
    const stage = await openStage();
    const delivered = note(stage, "mail", () => stage.sleep(3 * LEASE));
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("20m");
    expect(delivered).toHaveLength(1);
    expect(await stage.engine.timeouts.list()).toEqual([]);
  });

  it("a send whose lease ends is aborted, not removed, and sent again", async () => {
    const { stage } = await openFaulty((call) =>
      call === "timeouts.extend" && stage.now() - START < 2 * LEASE ? "drop" : undefined,
    );
    const latch = createLatch();
    const signals: AbortSignal[] = [];
    stage.engine.timeouts.serve("mail", async (_timeout, { signal }) => {
      signals.push(signal);
      if (signals.length === 1) await latch.pass();
    });
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("6m");
    expect(signals).toHaveLength(2);
    expect(signals[0]?.reason).toMatchObject({ kind: "lost" });
    expect(signals[1]?.aborted).toBe(false);
    latch.open();
    await stage.advance("1s");
    expect(await stage.engine.timeouts.metrics()).toMatchObject({ sent: 1, lapsed: 1 });
  });

  it("a claim whose reply comes near the end of its lease is not sent", async () => {
    const delay = (): Fault => ({ delay: () => stage.sleep(LEASE - 1_000) });
    let isSlow = false;
    const { stage } = await openFaulty((call) => {
      if (call !== "timeouts.claimDue" || !isSlow) return undefined;
      isSlow = false;
      return delay();
    });
    await stage.settle();
    // The call arrives late, and its lease is counted from when it was sent.
    isSlow = true;
    const delivered = note(stage);
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.advance("299s");
    expect(delivered).toEqual([]);
    await stage.advance("10s");
    expect(delivered).toHaveLength(1);
    expect((await stage.engine.timeouts.metrics()).lapsed).toBe(1);
  });

  it("reaps by itself, every quarter of a lease", async () => {
    const { stage, calls } = await openFaulty(() => undefined);
    await stage.advance("1h");
    const reaps = calls.filter((call) => call === "timeouts.reap").length;
    expect(reaps).toBeGreaterThanOrEqual(48);
    expect(reaps).toBeLessThanOrEqual(50);
  });

  it("a claim whose reply was lost is sent once its lease is over", async () => {
    let isDeaf = false;
    const { stage } = await openFaulty((call) => {
      if (call !== "timeouts.claimDue" || !isDeaf) return undefined;
      isDeaf = false;
      return "lose-reply";
    });
    await stage.engine.timeouts.insert({ id: "t", destination: "mail", dueAt: "0s" });
    await stage.settle();
    isDeaf = true;
    const delivered = note(stage);
    await stage.advance("299s");
    expect(delivered).toEqual([]);
    await stage.advance("2s");
    expect(delivered).toHaveLength(1);
  });

  it("closing waits for sends within its drain, aborts the others and releases their leases", async () => {
    let store: Store | undefined;
    const stage = await openStage({
      store(clock) {
        store = createMemoryStore({ clock });
        return { ...store, close: async () => {} };
      },
    });
    const signals: AbortSignal[] = [];
    stage.engine.timeouts.serve("mail", ({ id }, { signal }) => {
      signals.push(signal);
      return id === "short" ? stage.sleep(2_000) : new Promise(() => {});
    });
    await stage.engine.timeouts.insertMany([
      { id: "short", destination: "mail", dueAt: "0s" },
      { id: "stuck", destination: "mail", dueAt: "0s" },
      { id: "later", destination: "mail", dueAt: "6s" },
    ]);
    await stage.settle();
    const closing = stage.engine.close({ drain: "5s" });
    await stage.advance("20s");
    await closing;
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
    const left = (await store?.timeouts.list({}, null, 10)) ?? [];
    expect(left.map(({ id, owner, tries }) => [id, owner, tries])).toEqual([
      ["later", null, 0],
      ["stuck", null, 0],
    ]);
  });
});

describe("SEMANTICS 6, dispatcher: jobs as destinations", () => {
  const send = defineJob({
    type: "mail.send",
    payload: unchecked<{ to: string }>(),
    timeouts: { wait: "10m", total: "1h" },
  });

  it("enqueues the job when the time has come, with budgets counted from there", async () => {
    const stage = await openStage();
    const ran: unknown[] = [];
    stage.work([processor(send, ({ payload }) => void ran.push([payload, stage.now() - START]))]);
    await stage.engine.timeouts.enqueue(send, { to: "a" }, { dueAt: "2h" });
    await stage.advance("119m");
    expect(await jobsOf(stage.engine.store)).toEqual([]);
    await stage.advance("2m");
    expect(ran).toEqual([[{ to: "a" }, 7_200_000]]);
    const [job] = await jobsOf(stage.engine.store);
    expect(job).toMatchObject({ state: "completed", createdAt: START + 7_200_000 });
  });

  it("a key replaces the waiting job, and a cancel revokes it", async () => {
    const stage = await openStage();
    await stage.engine.timeouts.enqueue(send, { to: "a" }, { dueAt: "1m", key: "k" });
    await stage.engine.timeouts.enqueue(send, { to: "b" }, { dueAt: "2m", key: "k" });
    await stage.engine.timeouts.enqueue(send, { to: "c" }, { dueAt: "2m", key: "other" });
    await stage.engine.timeouts.cancel({ destination: "job", key: "other" });
    await stage.advance("1h");
    const jobs = await jobsOf(stage.engine.store);
    expect(jobs.map(({ payload }) => payload)).toEqual(['{"to":"b"}']);
  });

  it("a job that is delivered twice, because a reply was lost, is enqueued once", async () => {
    const { stage } = await openFaulty(failFirst("commit", "lose-reply"));
    await stage.engine.timeouts.enqueue(send, { to: "a" }, { dueAt: "1s" });
    await stage.advance("1m");
    expect(await jobsOf(stage.engine.store)).toHaveLength(1);
    expect(await stage.engine.timeouts.list()).toEqual([]);
  });
});

describe("serving", () => {
  it("serve refuses a bad destination, with field, value and fix", async () => {
    const { timeouts } = (await openStage()).engine;
    const served = timeouts.serve("mail", () => {});
    expect(() => timeouts.serve("mail", () => {})).toThrow(/destination: "mail" .* served here already/);
    expect(() => timeouts.serve("", () => {})).toThrow(/destination/);
    expect(() => timeouts.serve("job", () => {})).toThrow(/use another name/);
    expect(() => timeouts.serve("saga:order", () => {})).toThrow(/use another name/);
    expect(() => timeouts.serve("bell", 5 as never)).toThrow(/handler: 5/);
    expect(() => timeouts.serve("bell", () => {}, { concurrency: 0 })).toThrow(RangeError);
    await served.close();
    timeouts.serve("mail", () => {});
  });
});
