import { describe, expect, it } from "vitest";
import {
  constant,
  Discard,
  delays,
  exponential,
  linear,
  type PolicyOptions,
  polynomial,
  processor,
  type RetryOptions,
  snooze,
} from "../../src/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import {
  deaf,
  jobOf,
  jobWith,
  jobWithExpiredClaim,
  obedient,
  openPair,
  openStage,
  openWithJob,
  START,
  type Stage,
  sleepOn,
} from "./stage.ts";

const even = { jitter: false } as const;
const fail = () => Promise.reject(new Error("no"));

/** Runs a job that always fails and tells at which seconds its attempts began. */
async function attemptsOf(stage: Stage, retry: RetryOptions, run: () => unknown = fail): Promise<number[]> {
  const startedAt: number[] = [];
  const { definition, processors } = jobWith(
    () => {
      startedAt.push(stage.now() - START);
      return run();
    },
    { retry },
  );
  stage.work(processors);
  await stage.engine.enqueue(definition);
  await stage.advance("200s");
  return startedAt.map((at) => Math.round(at / 1_000));
}

describe("4.1 backoffs at work", () => {
  it.each([
    ["constant", constant({ first: "10s", ...even }), [0, 10, 20, 30]],
    ["linear", linear({ first: "10s", ...even }), [0, 10, 30, 60]],
    ["exponential", exponential({ first: "10s", ...even }), [0, 10, 30, 70]],
    ["exponential with a max", exponential({ first: "10s", max: "15s", ...even }), [0, 10, 25, 40]],
    ["polynomial", polynomial({ first: "10s", ...even }), [0, 10, 50, 140]],
    ["delays", delays(["5s", "20s"]), [0, 5, 25, 45]],
    ["no delay at all", constant({ first: "0s", ...even }), [0, 0, 0, 0]],
  ] as const)("%s", async (_name, backoff, seconds) => {
    const stage = await openStage();
    expect(await attemptsOf(stage, { attempts: 4, backoff })).toEqual(seconds);
  });

  it("jitter spreads the retries between half and one and a half of the delay", async () => {
    const stage = await openStage({ seed: 11 });
    const { definition, processors } = jobWith(fail, {
      retry: { attempts: 2, backoff: constant({ first: "100s" }) },
    });
    stage.work(processors, { queues: { default: { concurrency: 50 } } });
    const jobs = await stage.engine.enqueueMany(definition, new Array(50).fill(null));
    await stage.settle();
    const waits = await Promise.all(jobs.map(async (job) => ((await stage.load(job)).wakeAt ?? 0) - START));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(50_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(150_000);
    expect(new Set(waits).size).toBeGreaterThan(40);
  });

  it("the built-ins: 3 attempts", async () => {
    const stage = await openStage();
    expect(await attemptsOf(stage, {})).toHaveLength(3);
    expect(stage.counters()).toMatchObject({ failed: 3, retrying: 2, discarded: 1 });
  });

  it.each([
    ["its type exactly", ["Card.Declined"], 1],
    ["a prefix", ["Card.*"], 1],
    ["another type", ["Card"], 3],
  ])("except names %s", async (_name, except, count) => {
    const stage = await openStage();
    const declined = () => {
      throw Object.assign(new Error("no"), { name: "Card.Declined" });
    };
    expect(await attemptsOf(stage, { except }, declined)).toHaveLength(count);
  });

  it.each([
    ["timeout", { attempt: "5s" }],
    ["stalled", { heartbeat: "5s" }],
  ] as const)("except %s", async (type, timeouts) => {
    const { stage, job } = await openWithJob(obedient, { timeouts, retry: { except: [type] } });
    await stage.advance("6s");
    expect(await stage.load(job)).toMatchObject({ state: "discarded", attempt: 1 });
  });
});

describe("4.2 does a retry fit", () => {
  const timeouts = { attempt: "10s", total: "1m" } as const;
  const backoff = constant({ first: "30s", ...even });

  it("full: a job whose retry could not end in time is discarded at once, and keeps its own error", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(
      async () => {
        await stage.sleep(9_000);
        throw new RangeError("no");
      },
      { timeouts, retry: { attempts: 9, backoff } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("50s");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "discarded", attempt: 2 });
    expect(row.errors?.map(({ type, predicted }) => [type, predicted])).toEqual([
      ["RangeError", undefined],
      ["RangeError", undefined],
      ["total_timeout", true],
    ]);
    expect(stage.names(job.id).slice(-3)).toEqual(["job.failed", "job.total_timeout", "job.discarded"]);
  });

  it("any: a retry starts if any budget is left, and its attempt is cut to the rest", async () => {
    const stage = await openStage();
    const rooms: number[] = [];
    const { definition, processors } = jobWith(
      async ({ attempt, remaining }) => {
        rooms.push(Math.round(remaining() / 1_000));
        if (attempt === 1) {
          await stage.sleep(9_000);
          await fail();
        }
        return obedient as never;
      },
      { timeouts, retry: { attempts: 9, retryFit: "any", backoff: constant({ first: "45s", ...even }) } },
    );
    stage.work(processors);
    await stage.engine.enqueue(definition);
    await stage.advance("1m");
    expect(rooms).toEqual([10, 6]);
  });

  it("a built-in attempt counts as 0 here", async () => {
    const { stage, job } = await openWithJob(fail, {
      timeouts: { total: "1m" },
      retry: { attempts: 2, backoff },
    });
    await stage.advance("31s");
    expect(await stage.load(job)).toMatchObject({ state: "discarded", attempt: 2 });
  });
});

describe("4.3 crashes and expiredClaims", () => {
  it("a stall of a started attempt spends it; onStall discard forbids a second run", async () => {
    const stage = await openStage();
    const stalling = (onStall: "retry" | "discard", type: string) =>
      jobWith(deaf, { timeouts: { heartbeat: "5s" }, retry: { onStall, attempts: 5 } }, type);
    const [again, never] = [stalling("retry", "a.again"), stalling("discard", "b.never")];
    stage.work([...again.processors, ...never.processors]);
    const first = await stage.engine.enqueue(again.definition);
    const second = await stage.engine.enqueue(never.definition);
    await stage.advance("5s");
    expect(await stage.load(first)).toMatchObject({ state: "retryable", attempt: 1 });
    expect(await stage.load(second)).toMatchObject({ state: "discarded", attempt: 1, deadLetter: false });
  });

  it("a crash after the start was marked spends the attempt", async () => {
    const pair = await openPair();
    const { definition, processors } = jobWith(deaf, { retry: { attempts: 1 } });
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(1_000);
    pair.crashSecond();
    await pair.advance(63_000);
    const row = await pair.first.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["discarded", "stalled"]);
  });

  it("onStall discard forbids a second run also after a crash at the entry", async () => {
    const pair = await openPair();
    let entered = 0;
    const run = () => {
      entered += 1;
      return deaf();
    };
    const { definition, processors } = jobWith(run, { retry: { onStall: "discard", attempts: 5 } });
    pair.second.work(processors);
    const job = await pair.second.engine.enqueue(definition);
    await pair.advance(100);
    expect(entered).toBe(1);
    pair.crashSecond();
    pair.first.work(processors);
    await pair.advance(120_000, 1_000);
    expect(entered).toBe(1);
    const row = await pair.first.load(job);
    expect([row.state, row.attempt, row.errors?.[0]?.type]).toEqual(["discarded", 1, "stalled"]);
  });

  it("a job whose claim expired is entered only after its start is committed", async () => {
    const pair = await openPair();
    const seen: unknown[] = [];
    const { processors } = jobWith(async ({ id }) => {
      const row = await rowOf(pair.first.engine.store, id);
      seen.push([row?.expiredClaims, row?.attempt, row?.startedAt !== null]);
    });
    const job = await jobWithExpiredClaim(pair);
    expect(await pair.first.load(job)).toMatchObject({
      state: "available",
      attempt: 0,
      expiredClaims: 1,
      errors: null,
    });
    expect(pair.first.names(job.id)).toContain("job.claim_expired");
    pair.first.work(processors);
    await pair.first.settle();
    expect(seen).toEqual([[1, 1, true]]);
  });

  it("a job with an expired claim is released if the commit of its start took too long", async () => {
    const pair = await openPair();
    const job = await jobWithExpiredClaim(pair, { timeouts: { attempt: "2s" } });
    let entered = 0;
    const { processors } = jobWith(() => void entered++, { timeouts: { attempt: "2s" } });
    const { commit } = pair.first.engine.store;
    const slowed = pair.first.engine.store as { commit: typeof commit };
    slowed.commit = async (...args) => {
      slowed.commit = commit;
      const outcomes = await commit(...args);
      await sleepOn(pair.first.system, 3_000);
      return outcomes;
    };
    pair.first.work(processors);
    await pair.first.advance("2900ms");
    expect(entered).toBe(0);
    await pair.first.advance("2s");
    expect(entered).toBe(1);
    expect(await pair.first.load(job)).toMatchObject({ state: "completed", attempt: 1, returns: 1 });
  });
});

describe("4.4 giving back", () => {
  it("a snooze does not spend the attempt, waits, and is no failure", async () => {
    const stage = await openStage();
    const attempts: number[] = [];
    const { definition, processors } = jobWith(
      ({ attempt }) => {
        attempts.push(attempt);
        return attempts.length < 4 ? snooze({ after: "1m" }) : "done";
      },
      { retry: { attempts: 1 } },
    );
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    expect(await stage.load(job)).toMatchObject({
      state: "scheduled",
      attempt: 0,
      wakeAt: START + 60_000,
      returns: 1,
    });
    await stage.advance("181s");
    expect(attempts).toEqual([1, 1, 1, 1]);
    expect(await stage.load(job)).toMatchObject({ state: "completed", errors: null });
    expect(stage.told("job.snoozed")).toMatchObject({ dueAt: expect.any(Number) });
  });

  it("a snooze until an instant starts then, and at once if the instant has passed", async () => {
    const stage = await openStage();
    let nth = 0;
    const until = [new Date(START + 90_000), new Date(START)];
    const { definition, processors } = jobWith(() => {
      const next = until[nth++];
      return next ? snooze({ until: next }) : stage.now() - START;
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("91s");
    const result = await job.result();
    expect(result).toBeGreaterThanOrEqual(90_000);
    expect(result).toBeLessThan(90_100);
  });

  it("a snooze past totalAt discards the job at once", async () => {
    const { stage, job } = await openWithJob(() => snooze({ after: "1h" }), { timeouts: { total: "1h" } });
    await stage.settle();
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]]).toEqual([
      "discarded",
      expect.objectContaining({ type: "total_timeout", predicted: true }),
    ]);
  });

  it("a snooze that names no time is a failed attempt", async () => {
    const { stage, job } = await openWithJob(() => snooze({ after: "soon" as never }));
    await stage.settle();
    expect((await stage.load(job)).errors?.[0]).toMatchObject({ code: "invalid_duration" });
  });

  it("a job is returned at most 1,000 times", async () => {
    const stage = await openStage();
    let runs = 0;
    const { definition, processors } = jobWith(() => {
      runs += 1;
      return snooze({ after: "1ms" });
    });
    stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.advance("10s");
    const row = await stage.load(job);
    expect([row.state, row.errors?.[0]?.type]).toEqual(["discarded", "too_many_returns"]);
    expect(runs).toBe(1_001);
  });
});

describe("4.5 exhausted", () => {
  const dead: PolicyOptions = { retry: { attempts: 1, onExhausted: "dead-letter" } };

  it.each<[string, () => unknown, PolicyOptions, boolean]>([
    ["a failure", fail, {}, true],
    ["a total timeout", deaf, { timeouts: { total: "5s", grace: "0s" } }, true],
    ["a stall", deaf, { timeouts: { heartbeat: "5s" } }, true],
    ["mode discard", deaf, { timeouts: { attempt: "5s", grace: "0s", mode: "discard" } }, false],
    ["Discard", () => Promise.reject(new Discard("enough")), {}, false],
  ])("onExhausted decides after %s", async (_name, run, settings, deadLetter) => {
    const { stage, job } = await openWithJob(run, { ...dead, ...settings });
    await stage.advance("6s");
    expect(await stage.load(job)).toMatchObject({ state: "discarded", deadLetter, startedAt: START });
    expect("deadLetter" in (stage.told("job.discarded") ?? {})).toBe(deadLetter);
  });

  it("wait and cancel make no dead letter; a total that ends in the queue uses the settings of the enqueue", async () => {
    const stage = await openStage();
    const wait = await stage.engine.enqueue(jobOf({ ...dead, timeouts: { wait: "5s" } }));
    const total = await stage.engine.enqueue(jobOf({ ...dead, timeouts: { total: "5s" } }));
    const cancelled = await stage.engine.enqueue(jobOf(dead));
    await stage.engine.cancel(cancelled.id);
    await stage.advance("6s");
    const marks = await Promise.all(
      [wait, total, cancelled].map(async (job) => (await stage.load(job)).deadLetter),
    );
    expect(marks).toEqual([false, true, false]);
    expect((await stage.load(total)).startedAt).toBeNull();
  });

  it("Discard keeps its own message and is never retried", async () => {
    const { stage, job } = await openWithJob(() => Promise.reject(new Discard("no such order")));
    await stage.settle();
    const row = await stage.load(job);
    expect([row.state, row.attempt, row.errors?.[0]?.message]).toEqual(["discarded", 1, "no such order"]);
  });
});

describe("4.6 manual retry", () => {
  it("only a discarded job can be retried: attempts, total and wait start anew, and policies are resolved again", async () => {
    const stage = await openStage();
    const settings: PolicyOptions = { timeouts: { total: "1h", wait: "30m" }, retry: { attempts: 1 } };
    const { definition, processors } = jobWith(fail, settings);
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    await stage.advance("2h");
    await worker.close();
    await stage.engine.retry(job.id);
    const now = stage.now();
    expect(await stage.load(job)).toMatchObject({
      state: "available",
      attempt: 0,
      policy: null,
      result: null,
      finishedAt: null,
      totalAt: now + 3_600_000,
      waitAt: now + 1_800_000,
    });
    stage.work(jobWith(() => stage.sleep(1_000), { timeouts: { attempt: "7s" } }).processors);
    await stage.advance("2s");
    const row = await stage.load(job);
    expect(row).toMatchObject({ state: "completed", attempt: 1, policy: { attempt: 7_000 } });
    expect(row.errors).toHaveLength(1);
    expect(stage.names(job.id)).toContain("job.retried");
    await expect(stage.engine.retry(job.id)).rejects.toMatchObject({ code: "invalid_state" });
  });

  it("a manual retry with keepDeadline keeps the total", async () => {
    const stage = await openStage();
    const { definition, processors } = jobWith(fail, { timeouts: { total: "1h" }, retry: { attempts: 1 } });
    const worker = stage.work(processors);
    const job = await stage.engine.enqueue(definition);
    await stage.settle();
    await worker.close();
    await stage.engine.retry(job.id, { keepDeadline: true });
    expect((await stage.load(job)).totalAt).toBe(START + 3_600_000);
  });
});

describe("4.7 jobs that a job enqueues", () => {
  it("inherit what is left of the parent's total, unless detached or due beyond it", async () => {
    const stage = await openStage();
    const child = jobOf({ timeouts: { attempt: "2h" } }, "child.job");
    const children: Record<string, { id: string }> = {};
    const { definition, processors } = jobWith(
      async ({ enqueue }) => {
        await stage.sleep(60_000);
        children.bound = await enqueue(child, null);
        children.shorter = await enqueue(child, null, { timeouts: { total: "1m", attempt: "30s" } });
        children.longer = await enqueue(child, null, { timeouts: { total: "5h" } });
        children.detached = await enqueue(child, null, { detach: true });
        children.beyond = await enqueue(child, null, { delay: "1h" });
      },
      { timeouts: { total: "10m" } },
    );
    stage.work(processors);
    const parent = await stage.engine.enqueue(definition);
    await stage.advance("61s");
    const totals: Record<string, number | null> = {};
    for (const [name, { id }] of Object.entries(children)) {
      const { totalAt } = await stage.load({ id });
      totals[name] = totalAt === null ? null : totalAt - START;
    }
    expect(totals).toEqual({
      bound: 600_000,
      shorter: 120_000,
      longer: 600_000,
      detached: null,
      beyond: null,
    });
    await stage.advance("10m");
    const bound = await stage.load(children.bound as { id: string });
    expect([bound.state, bound.errors?.[0]?.message]).toEqual([
      "discarded",
      `Timed out (deadline exceeded, inherited from job ${parent.id})`,
    ]);
  });

  it("a child of a child is bound by the same deadline", async () => {
    const stage = await openStage();
    const leaf = jobOf({}, "leaf.job");
    const middle = jobOf({}, "middle.job");
    let leafId = "";
    const { definition, processors } = jobWith(async ({ enqueue }) => void (await enqueue(middle, null)), {
      timeouts: { total: "10m" },
    });
    stage.work([
      ...processors,
      processor(middle, async ({ enqueue }) => {
        leafId = (await enqueue(leaf, null, { delay: "1m" })).id;
        return null;
      }),
    ]);
    await stage.engine.enqueue(definition);
    await stage.settle();
    expect((await stage.load({ id: leafId })).totalAt).toBe(START + 600_000);
  });
});
