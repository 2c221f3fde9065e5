import { describe, expect, it } from "vitest";
import { defineJob, processor, unchecked } from "../../src/index.ts";
import type { ClaimRequest, Store } from "../../src/ports/store.ts";
import { jobOf, openOver } from "./stage.ts";

/** An engine whose claims are written down; `between` runs while the answer of the nth claim is on its way. */
async function openCounted(between: (nth: number) => Promise<void> = async () => {}) {
  const claims: { from: number; got: number; limit: number }[] = [];
  const stage = await openOver((store) => ({
    ...store,
    jobs: {
      ...store.jobs,
      async claim(request: ClaimRequest) {
        const rows = await store.jobs.claim(request);
        claims.push({ from: request.from, got: rows.length, limit: request.limit });
        await between(claims.length);
        return rows;
      },
    },
  }));
  return { ...stage, claims };
}

const definition = jobOf();

describe("where a claim begins", () => {
  it("a claim continues after the last rank, and scans from the start before the queue counts as empty", async () => {
    const stage = await openCounted();
    for (let added = 0; added < 2_000; added += 1_000)
      await stage.engine.enqueueMany(
        definition,
        Array.from({ length: 1_000 }, () => null),
      );
    const entered: number[] = [];
    stage.work([processor(definition, () => void entered.push(1))]);
    await stage.advance("5s");
    expect(entered).toHaveLength(2_000);
    expect(stage.claims[0]).toMatchObject({ from: 0 });
    const further = stage.claims.filter(({ from }) => from > 0);
    expect(further.length).toBeGreaterThan(3);
    // A claim that finds fewer jobs than it asked for starts again at rank 0, so the last claim of a drain saw all of the queue.
    const short = stage.claims.findIndex(({ got, limit }) => got < limit);
    expect(stage.claims.slice(short + 1)[0]).toMatchObject({ from: 0 });
  });

  it("an urgent job that arrives during a claim is in the next claim", async () => {
    let urgent: () => Promise<void> = async () => {};
    const stage = await openCounted((nth) => (nth === 3 ? urgent() : Promise.resolve()));
    const order: string[] = [];
    urgent = async () => {
      await stage.engine.enqueue(definition, "urgent", { priority: 50 });
    };
    await stage.engine.enqueueMany(
      definition,
      Array.from({ length: 1_000 }, () => "plain"),
    );
    stage.work([processor(definition, (context) => void order.push(context.payload as string))]);
    await stage.advance("5s");
    expect(stage.claims[3]).toMatchObject({ from: 0 });
    expect(order).toHaveLength(1_001);
    expect(order.slice(0, 900)).toContain("urgent");
  });
});

describe("when a claim is sent", () => {
  async function storyOf(inProcess: boolean): Promise<string[]> {
    const story: string[] = [];
    const stage = await openOver((store) => ({
      ...store,
      capabilities: { ...store.capabilities, inProcess },
      jobs: {
        ...store.jobs,
        async claim(request: ClaimRequest) {
          story.push("claim");
          const rows = await store.jobs.claim(request);
          if (rows.length > 0) story.push("answer");
          return rows;
        },
      },
    }));
    await stage.engine.enqueueMany(
      definition,
      Array.from({ length: 1_000 }, () => null),
    );
    stage.work([processor(definition, () => void (story.at(-1) === "run" || story.push("run")))]);
    await stage.advance("5s");
    return story;
  }

  it("the next claim is under way while the jobs of the last one run, even if their handlers end at once", async () => {
    const story = await storyOf(false);
    // Nothing is claimed ahead in the first round, because nobody knows yet how long handlers take.
    expect(story.slice(0, 6)).toEqual(["claim", "answer", "run", "claim", "answer", "claim"]);
    expect(story.filter((each) => each === "run").length).toBeGreaterThan(2);
  });

  it("a store in this process, which would only hold up the jobs, is asked after they have run", async () => {
    const story = await storyOf(true);
    expect(story.slice(0, 9)).toEqual([
      ...["claim", "answer", "run"],
      ...["claim", "answer", "run"],
      ...["claim", "answer", "run"],
    ]);
  });
});

describe("how often claims are sent", () => {
  it("a job that ends while a claim is under way causes no further claim: the one under way takes what there is", async () => {
    const first = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const stage = await openCounted(async (nth) => {
      if (nth !== 2) return;
      first.resolve();
      await ended.promise;
    });
    stage.engine.on("job.completed", () => ended.resolve());
    await stage.engine.enqueue(definition, "first");
    const entered: unknown[] = [];
    const handle = async (payload: unknown) => {
      entered.push(payload);
      if (payload === "first") await first.promise;
    };
    stage.work([processor(definition, ({ payload }) => handle(payload))]);
    await stage.advance("100ms");
    await stage.engine.enqueue(definition, "second");
    await stage.advance("1s");
    expect(entered).toEqual(["first", "second"]);
    expect(stage.claims.map(({ got }) => got)).toEqual([1, 1]);
  });
});

describe("how many jobs a claim takes", () => {
  const byKey = defineJob({ type: "test.key", payload: unchecked<string>(), fair: (payload) => payload });

  /** Jobs of a store, with the limit of each claim. */
  function noting(limits: number[], jobs: Store["jobs"]): Store["jobs"] {
    return {
      ...jobs,
      async claim(request) {
        limits.push(request.limit);
        return jobs.claim(request);
      },
    };
  }

  /** Enqueues 8,000 jobs of ten keys and begins to work on them. Its `ran` counts them. */
  async function workOff(stage: Awaited<ReturnType<typeof openOver>>): Promise<{ ran: number }> {
    const payloads = Array.from({ length: 1_000 }, (_, nth) => `key-${nth % 10}`);
    for (let added = 0; added < 8; added++) await stage.engine.enqueueMany(byKey, payloads);
    const done = { ran: 0 };
    const run = () => {
      done.ran += 1;
    };
    stage.work([processor(byKey, run)], { queues: { default: { concurrency: 1_000 } } });
    return done;
  }

  async function limitsOf(how: { inProcess: boolean; isFair: boolean }): Promise<number[]> {
    const limits: number[] = [];
    const stage = await openOver((store) => ({
      ...store,
      capabilities: { ...store.capabilities, inProcess: how.inProcess },
      jobs: noting(limits, store.jobs),
    }));
    if (how.isFair) await stage.engine.queues.configure("default", { fair: {} });
    const done = await workOff(stage);
    await stage.advance("5s");
    expect(done.ran).toBe(8_000);
    return limits;
  }

  it("up to 1,000 of a busy fair queue on a store in this process, and never more than 400 before it is busy", async () => {
    const limits = await limitsOf({ inProcess: true, isFair: true });
    expect(limits.slice(0, 2)).toEqual([400, 400]);
    // None is divided into what the commits of its verdicts make room for.
    expect(limits.length).toBeGreaterThan(6);
    expect(new Set(limits.slice(3))).toEqual(new Set([1_000]));
  });

  it("a large claim waits for the commit that makes room for all of it, but not for longer than 100 ms", async () => {
    const limits: number[] = [];
    const gate = Promise.withResolvers<void>();
    const stage = await openOver((store) => ({
      ...store,
      capabilities: { ...store.capabilities, inProcess: true },
      async commit(units, options) {
        if (limits.includes(1_000)) await gate.promise;
        return store.commit(units, options);
      },
      jobs: noting(limits, store.jobs),
    }));
    await stage.engine.queues.configure("default", { fair: {} });
    const done = await workOff(stage);
    await stage.advance("50ms");
    await stage.engine.enqueue(byKey, "hint");
    await stage.advance("10ms");
    expect(limits.at(-1)).toBe(1_000);
    const before = limits.length;
    await stage.advance("60ms");
    await stage.engine.enqueue(byKey, "hint");
    await stage.advance("10ms");
    expect(limits.length).toBeGreaterThan(before);
    expect(limits[before]).toBeLessThan(1_000);
    gate.resolve();
    await stage.advance("5s");
    expect(done.ran).toBe(8_002);
  });

  it("up to 400 of a queue that is not fair, and on a store that is not in this process", async () => {
    expect(Math.max(...(await limitsOf({ inProcess: true, isFair: false })))).toBe(400);
    expect(Math.max(...(await limitsOf({ inProcess: false, isFair: true })))).toBe(400);
  });
});
