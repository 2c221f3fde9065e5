import { describe, expect, it } from "vitest";
import { constant, defineJob, type FairOptions, processor, unchecked } from "../../src/index.ts";
import { errorOf, openStage, type Stage } from "./stage.ts";

const byLetter = defineJob({ type: "test.letter", payload: unchecked<string>(), fair: (payload) => payload });
const plain = defineJob({ type: "test.plain", payload: unchecked<string>() });

/** Runs the jobs of a fair queue, each for a second, and remembers the order in which they started. */
async function openFair(fair: FairOptions = {}, concurrency = 1) {
  const stage = await openStage();
  await stage.engine.queues.configure("default", { fair });
  const started: string[] = [];
  const run = async ({ payload }: { payload: string }) => {
    started.push(payload);
    await stage.sleep(1_000);
  };
  const work = () =>
    stage.work([processor(byLetter, run), processor(plain, run)], {
      queues: { default: { concurrency } },
    });
  return { stage, started, work };
}

async function runAll(stage: Stage, work: () => void): Promise<void> {
  work();
  await stage.advance("60s");
}

describe("fair queues", () => {
  it("start the jobs of each key in turn, however many one key has", async () => {
    const { stage, started, work } = await openFair();
    await stage.engine.enqueueMany(byLetter, [..."aaaaaaaabbc"]);
    await runAll(stage, work);
    expect([...started].sort().join("")).toBe("aaaaaaaabbc");
    // Two turns of three keys; which key is first is drawn.
    expect(started.slice(0, 3).sort().join("")).toBe("abc");
    expect(started.slice(3, 5).sort().join("")).toBe("ab");
  });

  it("give a key as many starts as its weight", async () => {
    const { stage, started, work } = await openFair({ weights: { a: 3 } });
    await stage.engine.enqueueMany(byLetter, [..."a".repeat(30), ..."b".repeat(30)]);
    work();
    await stage.advance("40s");
    const ofA = started.filter((name) => name === "a").length;
    expect(started.length).toBe(41);
    expect(ofA).toBeGreaterThanOrEqual(29);
    expect(ofA).toBeLessThanOrEqual(30);
  });

  it("ten jobs beside a thousand wait no longer than their share", async () => {
    const { stage, started, work } = await openFair({}, 4);
    await stage.engine.enqueueMany(byLetter, Array(1_000).fill("a"));
    work();
    await stage.advance("5s");
    await stage.engine.enqueueMany(byLetter, Array(10).fill("b"));
    const before = started.length;
    // Alone with two slots: five rounds. With four slots and every other start: the same.
    await stage.advance("6s");
    expect(started.slice(before).filter((name) => name === "b").length).toBe(10);
  });

  it("a better priority goes before the turns", async () => {
    const { stage, started, work } = await openFair();
    await stage.engine.enqueueMany(byLetter, [..."aabb"]);
    await stage.engine.enqueueMany(byLetter, [..."cc"], { priority: 5 });
    await runAll(stage, work);
    expect(started.slice(0, 2).join("")).toBe("cc");
    expect(started.length).toBe(6);
  });

  it("keys of a priority keep their turns while jobs of a better one come in between", async () => {
    const { stage, started, work } = await openFair();
    await stage.engine.enqueueMany(byLetter, [..."a".repeat(20), ..."b".repeat(20)]);
    work();
    for (let nth = 0; nth < 10; nth++) {
      // One urgent job for each two starts, of a key after those that wait.
      await stage.engine.enqueue(byLetter, "c", { priority: 5 });
      await stage.advance("2s");
    }
    const count = (key: string) => started.filter((name) => name === key).length;
    expect(count("c")).toBe(10);
    expect(Math.abs(count("a") - count("b"))).toBeLessThanOrEqual(1);
  });

  it("a key with less than its weight leaves its place to keys that follow, however many there are", async () => {
    const { stage, started, work } = await openFair({ defaultWeight: 50 }, 100);
    await stage.engine.enqueueMany(byLetter, Array(1_000).fill("a"));
    const few = Array.from({ length: 90 }, (_, nth) => `b-${nth}`);
    await stage.engine.enqueueMany(byLetter, few);
    work();
    await stage.advance("10ms");
    // "a" has one turn of 50 in the first hundred starts; which key is first is drawn.
    await stage.advance("1s");
    const ofA = started.slice(0, 140).filter((name) => name === "a").length;
    expect(ofA).toBeLessThanOrEqual(100);
    expect(new Set(started.slice(0, 200)).size).toBe(91);
  });

  it("jobs that return, that were delayed and that are limited have their turns like all others", async () => {
    const { stage, started } = await openFair();
    const flaky = defineJob({
      type: "test.flaky",
      payload: unchecked<string>(),
      fair: (payload) => payload,
      retry: { attempts: 2, backoff: constant({ first: "1s", jitter: false }) },
    });
    const fails = async ({ payload, attempt }: { payload: string; attempt: number }) => {
      started.push(payload);
      await stage.sleep(1_000);
      if (attempt === 1) throw new Error("again");
    };
    await stage.engine.enqueueMany(flaky, Array(20).fill("a"));
    await stage.engine.enqueueMany(flaky, Array(5).fill("b"), { delay: "5s" });
    await stage.engine.enqueueMany(flaky, Array(5).fill("c"), { limit: { key: "c", concurrency: 1 } });
    stage.work([processor(flaky, fails)], { queues: { default: { concurrency: 1 } } });
    await stage.advance("5s");
    const before = started.length;
    await stage.advance("30s");
    const then = started.slice(before, before + 30);
    const count = (key: string) => then.filter((name) => name === key).length;
    expect(started.length).toBeGreaterThanOrEqual(30);
    // Ten starts of "b", two of each job; "c" gives up its slot between its tries.
    expect(count("b")).toBeGreaterThanOrEqual(9);
    expect(count("c")).toBeGreaterThanOrEqual(4);
  });

  it("new weights hold for the jobs that wait already", async () => {
    const { stage, started, work } = await openFair();
    await stage.engine.enqueueMany(byLetter, [..."a".repeat(60), ..."b".repeat(60)]);
    work();
    await stage.advance("10s");
    await stage.engine.queues.configure("default", { fair: { weights: { b: 4 } } });
    const before = started.length;
    await stage.advance("20s");
    const ofB = started.slice(before).filter((name) => name === "b").length;
    expect(ofB).toBeGreaterThanOrEqual(15);
    expect(ofB).toBeLessThanOrEqual(17);
  });

  it("keys that come and go leave nothing behind, and take no turns from one that stays", async () => {
    const { stage, started, work } = await openFair();
    await stage.engine.enqueueMany(byLetter, Array(40).fill("m"));
    work();
    for (let nth = 0; nth < 30; nth++) {
      await stage.engine.enqueue(byLetter, `${nth % 2 === 0 ? "a" : "z"}-${nth}`);
      await stage.advance("2s");
    }
    const ofM = started.filter((name) => name === "m").length;
    expect(ofM).toBeGreaterThanOrEqual(started.length - 31);
    // Each new key had its turn at once.
    expect(new Set(started.slice(0, 58)).size).toBeGreaterThanOrEqual(28);
    await stage.advance("60s");
    expect(await stage.engine.queues.shares("default")).toMatchObject({ keys: [], hasMore: false });
  });

  it("take the key from the enqueue, then the definition, then the queue", async () => {
    const { stage } = await openFair({ by: "meta.tenant_id" });
    const { engine } = stage;
    const keyOf = async (job: { readonly id: string }) => (await stage.load(job)).fairKey;
    expect(await keyOf(await engine.enqueue(byLetter, "x", { fairKey: "y" }))).toBe("y");
    expect(await keyOf(await engine.enqueue(byLetter, "x", { meta: { tenant_id: "t" } }))).toBe("x");
    expect(await keyOf(await engine.enqueue(plain, "x", { meta: { tenant_id: "t" } }))).toBe("t");
    expect(await keyOf(await engine.enqueue(plain, "x", { meta: { tenant_id: 7 } }))).toBe("7");
    expect(await keyOf(await engine.enqueue(plain, "x"))).toBe("");
    expect(await keyOf(await engine.enqueue(plain, "x", { queue: "other" }))).toBeNull();
  });

  it("go back to the order of arrival when the setting is removed, without losing a job", async () => {
    const { stage, started, work } = await openFair();
    await stage.engine.enqueueMany(byLetter, [..."aaab"]);
    await stage.engine.queues.reset("default");
    await stage.engine.enqueueMany(plain, [..."x"]);
    await runAll(stage, work);
    expect(started.join("")).toBe("aaabx");
  });

  it("jobs that waited before the queue was fair run too, as one key", async () => {
    const stage = await openStage();
    await stage.engine.enqueueMany(plain, [..."xxx"]);
    await stage.engine.queues.configure("default", { fair: {} });
    await stage.engine.enqueueMany(byLetter, [..."aaa"]);
    const started: string[] = [];
    const run = async ({ payload }: { payload: string }) => {
      started.push(payload);
      await stage.sleep(1_000);
    };
    stage.work([processor(byLetter, run), processor(plain, run)], {
      queues: { default: { concurrency: 1 } },
    });
    await stage.advance("30s");
    expect(started.slice(0, 4).sort().join("")).toBe("aaxx");
    expect(started.length).toBe(6);
  });

  it("why says that a job waits for its share, and shares lists the keys", async () => {
    const { stage, work } = await openFair({ weights: { b: 2 } });
    const { engine } = stage;
    await engine.enqueueMany(byLetter, Array(500).fill("a"));
    work();
    await stage.advance("100ms");
    const handles = await engine.enqueueMany(byLetter, [..."bbb"]);
    const why = await engine.why(handles[2]?.id as string);
    expect(why.reasons[0]?.code).toBe("fair_share");
    expect(why.reasons[0]?.sentence).toMatch(
      /Its fair key "b" is one of 2 keys .* with weight 2\. 2 jobs of the key and up to 2 of others/,
    );
    expect(await engine.queues.shares("default")).toMatchObject({
      keys: [
        { key: "a", weight: 1, share: 1 / 3, waiting: 499 },
        { key: "b", weight: 2, share: 2 / 3, waiting: 3 },
      ],
      hasMore: false,
    });
  });
});

describe("the options of fair queues", () => {
  it.each<[FairOptions, string]>([
    [{ by: "payload.customer" }, "queue.fair.by"],
    [{ strategy: "random" as "weighted" }, "queue.fair.strategy"],
    [{ strategy: "round-robin", weights: { a: 2 } }, "queue.fair.strategy"],
    [{ weights: { a: 0 } }, 'queue.fair.weights["a"]'],
    [{ weights: { a: 1.5 } }, 'queue.fair.weights["a"]'],
    [{ defaultWeight: 1_001 }, "queue.fair.defaultWeight"],
    [
      { weights: Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`k${n}`, 1])) },
      "queue.fair.weights",
    ],
    [{ weight: 2 } as FairOptions, "weight"],
  ])("%j is refused", async (fair, field) => {
    const stage = await openStage();
    const error = await errorOf(stage.engine.queues.configure("default", { fair }));
    expect(error.message).toContain(field);
  });

  it("an enqueue refuses a key that is empty, too long or no text, and a function that gives none", async () => {
    const stage = await openStage();
    const bad = defineJob({ type: "test.bad", fair: () => "" });
    for (const fairKey of ["", "x".repeat(256), 7 as unknown as string])
      expect((await errorOf(stage.engine.enqueue(plain, "x", { fairKey }))).message).toContain(
        "options.fairKey",
      );
    expect((await errorOf(stage.engine.enqueue(bad, null))).message).toContain("fair(payload)");
    expect(() => defineJob({ type: "test.bad", fair: "" })).toThrow("fair");
  });

  it("a key that no database can store is refused, and one of the meta is made storable", async () => {
    const stage = await openStage();
    for (const fairKey of ["a\0b", "\ud83d"])
      expect((await errorOf(stage.engine.enqueue(plain, "x", { fairKey }))).message).toContain(
        "options.fairKey",
      );
    await stage.engine.queues.configure("default", { fair: { by: "meta.of" } });
    const keyOf = async (of: string) =>
      (await stage.load(await stage.engine.enqueue(plain, "x", { meta: { of } }))).fairKey;
    expect(await keyOf("a\0b")).toBe("a\ufffdb");
    expect(await keyOf(`${"x".repeat(254)}\u{1f600}`)).toBe(`${"x".repeat(254)}\ufffd`);
  });

  it("a key may be named like a member of every object", async () => {
    const stage = await openStage();
    await stage.engine.queues.configure("default", {
      fair: { weights: JSON.parse('{"__proto__": 3, "constructor": 2}') },
    });
    await stage.engine.enqueue(plain, "x", { fairKey: "__proto__" });
    await stage.engine.enqueue(plain, "x", { fairKey: "toString" });
    const { keys } = await stage.engine.queues.shares("default");
    expect(keys.map(({ key, weight }) => [key, weight])).toEqual([
      ["__proto__", 3],
      ["toString", 1],
    ]);
  });
});
