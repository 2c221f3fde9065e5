import { describe, expect, it } from "vitest";
import { CurfewError, defineJob, type LimitOptions, processor, unchecked } from "../../src/index.ts";
import { deaf, errorOf, openOver, openPair, openStage, START, type Stage } from "./stage.ts";

/** Runs jobs of one limit for the same time each, and remembers when each began and how many ran at once. */
async function openLimited(limit: LimitOptions, runs = 1_000, more: object = {}) {
  const stage = await openStage();
  const definition = defineJob({ type: "test.job", payload: unchecked<string>(), limit, ...more });
  const seen = watch(stage, runs);
  const processors = [processor(definition, seen.run)];
  return { stage, definition, processors, ...seen };
}

function watch(stage: Stage, runs: number) {
  const starts: { name: string; at: number }[] = [];
  const counts = { running: 0, most: 0 };
  const run = async ({ payload }: { payload: string }) => {
    starts.push({ name: payload, at: stage.now() - START });
    counts.running += 1;
    counts.most = Math.max(counts.most, counts.running);
    await stage.sleep(runs);
    counts.running -= 1;
  };
  return { starts, counts, run };
}

const names = (starts: readonly { name: string }[]) => starts.map(({ name }) => name).join("");

describe("concurrency by key", () => {
  it("a job is admitted although the first of its call was known, and nobody admitted it at its enqueue", async () => {
    let isLost = false;
    const stage = await openOver((store) => ({
      ...store,
      async commit(units, options) {
        const isAdmission = units.some(({ job, effects }) => !job && effects?.some((one) => "admit" in one));
        // As if the process had died after the enqueue.
        if (isLost && isAdmission) throw new CurfewError("store_failed", "lost");
        return store.commit(units, options);
      },
    }));
    const limit = { key: "k", concurrency: 1 };
    const { starts, run } = watch(stage, 1_000);
    const definition = defineJob({ type: "test.job", payload: unchecked<string>(), limit });
    stage.work([processor(definition, run)]);
    const id = "018bcfe5-0000-7000-8000-000000000001";
    await stage.engine.enqueue(definition, "a", { id });
    await stage.advance("5s");
    isLost = true;
    // Both go to the store in one call.
    await Promise.all([stage.engine.enqueue(definition, "a", { id }), stage.engine.enqueue(definition, "b")]);
    await stage.advance("5s");
    expect(names(starts)).toBe("ab");
  });

  it("a key runs at most its concurrency at once, and runs all of its jobs", async () => {
    const { stage, definition, processors, counts, starts } = await openLimited({ key: "k", concurrency: 3 });
    stage.work(processors);
    await stage.engine.enqueueMany(definition, [..."abcdefghij"]);
    await stage.advance("20s");
    expect(counts).toEqual({ running: 0, most: 3 });
    expect(names(starts)).toBe("abcdefghij");
    expect(starts.map(({ at }) => at)).toEqual(
      [0, 0, 0, 1, 1, 1, 2, 2, 2, 3].map((second) => second * 1_000),
    );
  });

  it("takes its key from the payload, and a full key does not delay others", async () => {
    const stage = await openStage();
    const { run, starts } = watch(stage, 1_000);
    const definition = defineJob({
      type: "test.job",
      payload: unchecked<string>(),
      limit: { key: (payload) => `customer ${payload}`, concurrency: 1 },
    });
    stage.work([processor(definition, run)]);
    await stage.engine.enqueueMany(definition, [..."aaabbc"]);
    await stage.advance("10s");
    expect(starts.map(({ name, at }) => `${name}${at}`)).toEqual([
      "a0",
      "b0",
      "c0",
      "a1000",
      "b1000",
      "a2000",
    ]);
  });

  it("goes by priority within a key, and by arrival within a priority", async () => {
    const { stage, definition, processors, starts } = await openLimited({ key: "k", concurrency: 1 });
    for (const [name, priority] of [
      ["a", 0],
      ["b", 0],
      ["c", 5],
      ["d", -5],
      ["e", 5],
    ] as const)
      await stage.engine.enqueue(definition, name, { priority });
    stage.work(processors);
    await stage.advance("10s");
    // The first was let through when it came, before the better ones were there.
    expect(names(starts)).toBe("acebd");
  });

  it("admits the next job in the commit that ends the one before", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1 });
    const jobs = await stage.engine.enqueueMany(definition, [..."abc"]);
    const states = () => Promise.all(jobs.map(async (job) => (await stage.load(job)).state));
    expect(await states()).toEqual(["available", "pending", "pending"]);
    await jobs[0]?.cancel();
    expect(await states()).toEqual(["cancelled", "available", "pending"]);
    await jobs[2]?.cancel();
    await jobs[1]?.cancel();
    expect(await stage.engine.limits.get("k")).toMatchObject({ inUse: 0, waiting: 0, room: 0 });
  });

  it("a job at its limitKey still keeps its wait and total", async () => {
    const limit = { key: "k", concurrency: 1 };
    const { stage, definition } = await openLimited(limit, 1_000, { timeouts: { wait: "5s" } });
    const [, waiting] = await stage.engine.enqueueMany(definition, [..."ab"]);
    await stage.advance("5s");
    expect((await stage.load(waiting as never)).errors?.[0]?.code).toBe("enqueue_ttl_expired");
  });

  it("frees the slot of a crashed worker's job when the sweep decides on it, and not before", async () => {
    const pair = await openPair();
    const definition = defineJob({
      type: "test.job",
      payload: unchecked<string>(),
      limit: { key: "k", concurrency: 1 },
      timeouts: { heartbeat: "20s" },
      retry: { attempts: 1 },
    });
    pair.second.work([processor(definition, deaf)]);
    const jobs = await pair.first.engine.enqueueMany(definition, [..."ab"]);
    await pair.advance(2_000);
    pair.crashSecond();
    await pair.advance(15_000);
    expect((await pair.first.load(jobs[1] as never)).state).toBe("pending");
    const { run, starts } = watch(pair.first, 10);
    pair.first.work([processor(definition, run)]);
    await pair.advance(30_000);
    expect((await pair.first.load(jobs[0] as never)).state).toBe("discarded");
    expect(names(starts)).toBe("b");
  });

  it("a retry waits for its key again, and others may be admitted before it", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1 });
    const order: string[] = [];
    stage.work([
      processor(definition, async ({ payload, attempt }) => {
        order.push(`${payload}${attempt}`);
        await stage.sleep(10);
        if (payload === "a" && attempt === 1) throw new Error("once");
      }),
    ]);
    await stage.engine.enqueueMany(definition, [..."abc"]);
    await stage.advance("10s");
    expect(order).toEqual(["a1", "b1", "c1", "a2"]);
  });

  it("strict: a job that waits for its retry keeps its slot, and no other job starts before it", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1, strict: true });
    const order: string[] = [];
    stage.work([
      processor(definition, async ({ payload, attempt }) => {
        order.push(`${payload}${attempt}`);
        if (payload === "a" && attempt < 3) throw new Error("twice");
      }),
    ]);
    await stage.engine.enqueueMany(definition, [..."abc"]);
    await stage.advance("30s");
    expect(order).toEqual(["a1", "a2", "a3", "b1", "c1"]);
  });

  it("strict: a job that a worker gives back unrun keeps its slot too", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1, strict: true });
    const unknown = defineJob({ type: "test.unknown", limit: { key: "k", concurrency: 1, strict: true } });
    const order: string[] = [];
    stage.work([
      processor(definition, ({ payload }) => {
        order.push(payload as string);
      }),
    ]);
    const first = await stage.engine.enqueue(unknown, null);
    await stage.engine.enqueue(definition, "second");
    await stage.advance("30s");
    expect(await stage.load(first)).toMatchObject({ state: "retryable", attempt: 0, returns: 0 });
    expect(order).toEqual([]);
    const codes = (await stage.engine.why(first.id)).reasons.map(({ code }) => code);
    expect(codes).toContain("given_back");
    expect(codes).not.toContain("backoff");
    await stage.engine.cancel(first.id);
    await stage.advance("1s");
    expect(order).toEqual(["second"]);
  });

  it("holds for a manual retry, and for a job that is enqueued for later", async () => {
    const { stage, definition, processors, counts } = await openLimited({ key: "k", concurrency: 1 });
    const later = await stage.engine.enqueue(definition, "later", { delay: "1s" });
    const now = await stage.engine.enqueue(definition, "now", { timeouts: { wait: "1ms" } });
    const held = await stage.engine.enqueue(definition, "held");
    await stage.advance("1s");
    expect((await stage.load(now)).state).toBe("discarded");
    expect((await stage.load(later)).state).toBe("pending");
    await stage.engine.retry(now.id);
    expect((await stage.load(now)).state).toBe("pending");
    expect((await stage.load(held)).state).toBe("available");
    await stage.advance("1s");
    stage.work(processors);
    await stage.advance("10s");
    expect(counts).toEqual({ running: 0, most: 1 });
    expect((await stage.load(later)).state).toBe("completed");
  });
});

describe("rate by key", () => {
  /** The most starts in any span of that length. */
  function densest(starts: readonly { at: number }[], span: number): number {
    return Math.max(
      ...starts.map(({ at }) => starts.filter((other) => other.at >= at && other.at < at + span).length),
    );
  }

  it("a key starts its rate in each span, neither more nor less", async () => {
    const limit = { key: "k", rate: { limit: 5, per: "1s" as const } };
    const { stage, definition, processors, starts } = await openLimited(limit, 10);
    stage.work(processors);
    await stage.engine.enqueueMany(definition, [..."abcdefghijklmnopqrst"]);
    await stage.advance("10s");
    expect(densest(starts, 1_000)).toBe(5);
    expect(names(starts)).toBe("abcdefghijklmnopqrst");
    expect(starts.at(-1)?.at).toBeLessThan(3_100);
  });

  it("counts a start for the whole span, whether the job has ended or still runs", async () => {
    const limit = { key: "k", rate: { limit: 2, per: "10s" as const } };
    const { stage, definition, processors, starts, counts } = await openLimited(limit, 60_000);
    stage.work(processors);
    await stage.engine.enqueueMany(definition, [..."abcdef"]);
    await stage.advance("29s");
    expect(starts.map(({ at }) => Math.floor(at / 1_000))).toEqual([0, 0, 10, 10, 20, 20]);
    expect(counts.running).toBe(6);
    expect(await stage.engine.limits.get("k")).toMatchObject({ starts: 2, inUse: 6, waiting: 0 });
  });

  it("jobs admitted while no worker ran still start at the rate limit", async () => {
    const limit = { key: "k", rate: { limit: 2, per: "1s" as const } };
    const { stage, definition, processors, starts } = await openLimited(limit, 10);
    await stage.engine.enqueueMany(definition, [..."abcdefgh"]);
    await stage.advance("1m");
    stage.work(processors);
    await stage.advance("10s");
    expect(starts).toHaveLength(8);
    expect(densest(starts, 1_000)).toBe(2);
  });

  it("counts every attempt, including released ones", async () => {
    const limit = { key: "k", rate: { limit: 1, per: "5s" as const } };
    const { stage, definition, starts, run } = await openLimited(limit, 10);
    stage.work([
      processor(definition, async (context) => {
        await run(context);
        if (context.attempt < 3) throw new Error("again");
      }),
    ]);
    await stage.engine.enqueue(definition, "a");
    await stage.advance("1m");
    expect(starts).toHaveLength(3);
    expect(densest(starts, 5_000)).toBe(1);
  });

  it("holds together with a concurrency", async () => {
    const limit = { key: "k", concurrency: 2, rate: { limit: 10, per: "1s" as const } };
    const { stage, definition, processors, counts } = await openLimited(limit, 500);
    stage.work(processors);
    await stage.engine.enqueueMany(definition, [..."abcdefgh"]);
    await stage.advance("10s");
    expect(counts).toEqual({ running: 0, most: 2 });
  });

  it("a start counts even if the process crashes right after it", async () => {
    const pair = await openPair();
    const definition = defineJob({
      type: "test.job",
      payload: unchecked<string>(),
      limit: { key: "k", rate: { limit: 1, per: "1m" } },
    });
    const entered: number[] = [];
    pair.second.work([
      processor(definition, () => {
        entered.push(pair.second.now() - START);
        pair.crashSecond();
        return deaf();
      }),
    ]);
    await pair.first.engine.enqueueMany(definition, [..."ab"]);
    await pair.advance(1_000);
    expect(entered).toHaveLength(1);
    const { run, starts } = watch(pair.first, 10);
    pair.first.work([processor(definition, run)]);
    await pair.advance(58_000);
    expect(starts).toEqual([]);
    await pair.advance(10_000);
    expect(starts).toHaveLength(1);
    expect((starts[0]?.at ?? 0) - (entered[0] as number)).toBeGreaterThanOrEqual(60_000);
  });
});

describe("on limit", () => {
  it("onLimit drop discards the jobs that find no room, with an error that says why, and no others", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 2, onLimit: "drop" });
    const jobs = await stage.engine.enqueueMany(definition, [..."abcd"]);
    await stage.settle();
    const rows = await Promise.all(jobs.map((job) => stage.load(job)));
    expect(rows.map(({ state }) => state)).toEqual(["available", "available", "discarded", "discarded"]);
    expect(rows[2]?.errors).toMatchObject([
      { code: "rate_limited", message: 'Dropped: the limit "k" was reached' },
    ]);
    expect(stage.names(rows[2]?.id)).toEqual(["job.enqueued", "job.discarded"]);
  });

  it("onLimit drop keeps a retry, which waits for its limit", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1, onLimit: "drop" });
    const first = await stage.engine.enqueue(definition, "a");
    const worker = stage.work([
      processor(definition, () => {
        throw new Error("once");
      }),
    ]);
    await stage.settle();
    await worker.close();
    await stage.engine.enqueue(definition, "b");
    await stage.advance("5s");
    expect((await stage.load(first)).state).toBe("pending");
  });

  it("onLimit reschedule tries a job again until its limit has room", async () => {
    const limit = { key: "k", concurrency: 1, onLimit: { reschedule: "10s" as const } };
    const { stage, definition, processors, starts } = await openLimited(limit, 15_000);
    stage.work(processors);
    const [, second] = await stage.engine.enqueueMany(definition, [..."ab"]);
    await stage.advance("1s");
    expect((await stage.load(second as never)).state).toBe("scheduled");
    await stage.advance("40s");
    expect(starts.map(({ at }) => at)).toEqual([0, 20_000]);
  });
});

describe("operators", () => {
  it("see what is in use, waiting and next, and change it at run time", async () => {
    const limit = { key: "k", concurrency: 1 };
    const { stage, definition, processors, counts } = await openLimited(limit, 60_000);
    stage.work(processors);
    await stage.engine.enqueueMany(definition, [..."abcdef"]);
    await stage.advance("1s");
    expect(await stage.engine.limits.list()).toEqual([
      {
        key: "k",
        limit: { concurrency: 1 },
        override: null,
        inUse: 1,
        starts: 0,
        waiting: 5,
        room: 0,
        nextAt: null,
      },
    ]);
    expect(await stage.engine.limits.put("k", { concurrency: 3 })).toMatchObject({ inUse: 3, waiting: 3 });
    await stage.advance("1s");
    expect(counts.running).toBe(3);
    await stage.engine.limits.put("k", { concurrency: 1 });
    await stage.advance("61s");
    expect(counts.running).toBe(1);
    expect((await stage.engine.limits.delete("k")).limit).toEqual({ concurrency: 1 });
    await stage.engine.limits.put("k", { concurrency: "none" });
    await stage.advance("1s");
    expect(counts).toMatchObject({ running: 3, most: 3 });
    expect(stage.told("limit.changed")?.key).toBe("k");
  });

  it("list limits in pages, with overrides of idle keys and without the marks of queues", async () => {
    const stage = await openStage();
    const job = defineJob({ type: "test.job", payload: unchecked<string>() });
    await stage.engine.queues.configure("default", { concurrency: 5 });
    await stage.engine.enqueueMany(job, [..."xy"]);
    const fetching = stage.engine.service.fetch({ queues: ["default"], count: 2, worker: "w", hears: true });
    await stage.settle();
    expect((await fetching).map(({ limitKey }) => limitKey)).toEqual(["queue default", "queue default"]);
    for (const key of ["a", "z", "q"])
      await stage.engine.enqueue(job, key, { limit: { key, concurrency: 1 } });
    await stage.engine.limits.put("m", { concurrency: 1 });
    const keys = async (page?: object) => (await stage.engine.limits.list(page)).map(({ key }) => key);
    expect(await keys()).toEqual(["a", "m", "q", "z"]);
    expect(await keys({ limit: 1 })).toEqual(["a"]);
    expect(await keys({ after: "q", limit: 1 })).toEqual(["z"]);
  });

  it("give a rate to jobs without a limit of their own", async () => {
    const { stage, definition, processors, starts } = await openLimited({ key: "k", concurrency: 100 }, 10);
    stage.work(processors);
    await stage.engine.limits.put("k", { rate: { limit: 1, per: "10s" } });
    await stage.engine.enqueueMany(definition, [..."abc"]);
    await stage.advance("25s");
    expect(starts.map(({ at }) => Math.floor(at / 1_000))).toEqual([0, 10, 20]);
  });

  it("an enqueue may override the limit, or remove it", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1 });
    await stage.engine.enqueue(definition, "a");
    const free = await stage.engine.enqueue(definition, "b", { limit: "none" });
    const other = await stage.engine.enqueue(definition, "c", { limit: { key: "other", concurrency: 1 } });
    for (const job of [free, other]) expect((await stage.load(job)).state).toBe("available");
    expect((await stage.load(other)).limitKey).toBe("other");
    expect((await stage.load(free)).limitKey).toBeNull();
  });

  it("a remote producer may take the key from the payload", async () => {
    const stage = await openStage();
    const definition = defineJob({
      type: "test.job",
      payload: unchecked<{ account: string }>(),
      limit: { key: ({ account }) => account, concurrency: 1 },
    });
    const job = { definition: definition as never, payload: '{"account":"seven"}', options: {} };
    const [made] = await stage.engine.service.enqueue([job], stage.now());
    expect(made?.row.limitKey).toBe("seven");
  });

  it("activate a pending job with a limit: it waits for its limit", async () => {
    const { stage, definition } = await openLimited({ key: "k", concurrency: 1 });
    const limit = { key: "k", concurrency: 1 };
    const base = { definition: definition as never, payload: '"x"', options: { limit } };
    const [waiting] = await stage.engine.service.enqueue([{ ...base, isPending: true }], stage.now());
    await stage.advance("2s");
    const { id } = (waiting as { row: { id: string } }).row;
    expect((await stage.load({ id })).state).toBe("pending");
    await stage.engine.activate(id);
    await stage.settle();
    expect((await stage.load({ id })).state).toBe("available");
  });
});

describe("bad input", () => {
  const refused = (limit: unknown) => () => defineJob({ type: "test.job", limit: limit as never });

  it.each([
    [{ concurrency: 1 }, /limit\.key: undefined is not a valid name; use a text/],
    [{ key: "", concurrency: 1 }, /limit\.key/],
    [{ key: "queue x", concurrency: 1 }, /limit\.key: "queue x" .* use another beginning/],
    [{ key: "k" }, /limit: .* name concurrency or rate/],
    [{ key: "k", concurrency: 0 }, /limit\.concurrency: 0 .* whole number from 1/],
    [{ key: "k", concurrency: 1.5 }, /limit\.concurrency: 1\.5/],
    [{ key: "k", rate: { limit: 1, per: 1000 } }, /limit\.rate\.per: 1000 .* duration/],
    [{ key: "k", rate: { limit: -1, per: "1s" } }, /limit\.rate\.limit: -1/],
    [{ key: "k", rate: { max: 1, per: "1s" } }, /limit\.rate\.max/],
    [{ key: "k", concurrency: 2, strict: true }, /limit\.strict: true .* concurrency: 1/],
    [{ key: "k", concurrency: 1, onLimit: "later" }, /limit\.onLimit: "later" .* reschedule/],
    [{ key: "k", concurrency: 1, onLimit: { reschedule: "0s" } }, /limit\.onLimit\.reschedule: "0s"/],
    [{ key: "k", concurrency: 1, burst: 1 }, /limit\.burst/],
  ])("%j is refused with field, value and fix", (limit, words) => {
    expect(refused(limit)).toThrow(words);
  });

  it("a key function that returns no text and bad overrides of operators are refused", async () => {
    const stage = await openStage();
    const definition = defineJob({
      type: "test.job",
      limit: { key: () => 7 as never, concurrency: 1 },
    });
    expect((await errorOf(stage.engine.enqueue(definition, null))).message).toMatch(
      /limit\.key\(payload\): 7/,
    );
    expect((await errorOf(stage.engine.limits.put("", { concurrency: 1 }))).message).toMatch(/key: ""/);
    expect((await errorOf(stage.engine.limits.put("k", {}))).message).toMatch(/"none" lifts one/);
    expect((await errorOf(stage.engine.limits.put("k", { concurrency: 0 }))).message).toMatch(
      /concurrency: 0/,
    );
  });
});
