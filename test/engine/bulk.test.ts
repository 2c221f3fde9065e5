import { describe, expect, it } from "vitest";
import { CurfewError, defineJob, type Job, processor } from "../../src/index.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { type FaultPlan, failFirst, faultyStore } from "../../src/testing/index.ts";
import { rowOf } from "../../src/testing/read-store.ts";
import { errorOf, openOver, openStage, START, type Stage } from "./stage.ts";

class CardError extends Error {
  override readonly name = "CardError";
  readonly code = "card_declined";
}

const retry = { attempts: 1, onExhausted: "dead-letter" } as const;
const charge = defineJob({ type: "charge", retry, timeouts: { total: "1h", wait: "10m" } });
const mail = defineJob({ type: "mail", queue: "mail", retry });
const plain = defineJob({ type: "plain" });

/** A worker whose jobs all fail: charges by a declined card, mails by a plain error. */
function failAll(stage: Stage) {
  return stage.engine.work({
    queues: { default: { concurrency: 10 }, mail: { concurrency: 10 } },
    processors: [
      processor(charge, () => {
        throw new CardError("declined");
      }),
      processor(mail, () => {
        throw new TypeError("no address");
      }),
    ],
  });
}

/** Three dead charges and two dead mails, a minute apart. */
async function withDeadLetters(stage: Stage): Promise<void> {
  const worker = failAll(stage);
  for (const definition of [charge, mail, charge, mail, charge]) {
    await stage.engine.enqueue(definition);
    await stage.advance("1m");
  }
  await worker.close();
}

const idsOf = (rows: readonly Job[]) => rows.map(({ id }) => id);

describe("dead letters", () => {
  it("are listed by when they ended, in both directions, page by page, and counted", async () => {
    const stage = await openStage();
    await withDeadLetters(stage);
    const { deadLetters } = stage.engine;
    const { jobs, cursor } = await deadLetters.list();
    expect(jobs.map(({ type }) => type)).toEqual(["charge", "mail", "charge", "mail", "charge"]);
    expect(cursor).toBeNull();
    const newest = await deadLetters.list({}, { newestFirst: true, limit: 2 });
    expect(idsOf(newest.jobs)).toEqual(idsOf(jobs).toReversed().slice(0, 2));
    const rest = await deadLetters.list({}, { newestFirst: true, after: newest.cursor });
    expect(idsOf(rest.jobs)).toEqual(idsOf(jobs).toReversed().slice(2));
    expect(await deadLetters.count()).toBe(5);
  });

  it("are found by type, queue, error and time", async () => {
    const stage = await openStage();
    await withDeadLetters(stage);
    const { deadLetters } = stage.engine;
    const types = async (query: object) => {
      const { jobs } = await deadLetters.list(query);
      expect(await deadLetters.count(query)).toBe(jobs.length);
      return jobs.map(({ type }) => type);
    };
    expect(await types({ type: "mail" })).toEqual(["mail", "mail"]);
    expect(await types({ queue: "default" })).toEqual(["charge", "charge", "charge"]);
    expect(await types({ errorType: "TypeError" })).toEqual(["mail", "mail"]);
    expect(await types({ errorCode: "card_declined" })).toEqual(["charge", "charge", "charge"]);
    expect(await types({ errorType: "CardError", errorCode: "other" })).toEqual([]);
    const from = new Date(START + 60_000);
    const before = new Date(START + 3 * 60_000);
    expect(await types({ finishedFrom: from, finishedBefore: before })).toEqual(["mail", "charge"]);
  });

  it("are run again with new deadlines, or with the old ones", async () => {
    const stage = await openStage();
    await withDeadLetters(stage);
    const { deadLetters } = stage.engine;
    const [first, second] = (await deadLetters.list({ type: "charge" })).jobs as [Job, Job];
    await stage.advance("30m");
    const now = stage.now();
    const retried = await deadLetters.retry(first.id);
    expect(retried).toMatchObject({
      state: "available",
      attempt: 0,
      deadLetter: false,
      deadlines: { total: now + 3_600_000, wait: now + 600_000 },
      result: undefined,
      finishedAt: null,
    });
    expect(retried.errors).toHaveLength(1);
    const kept = await deadLetters.retry(second.id, { keepDeadline: true });
    expect(kept.deadlines.total).toBe(second.deadlines.total);
    expect(await deadLetters.get(first.id)).toBeNull();
    expect(await errorOf(deadLetters.retry(first.id))).toMatchObject({ code: "not_found" });
  });

  it("are retried by query once each, even if some fail again during the call", async () => {
    const stage = await openStage();
    await withDeadLetters(stage);
    failAll(stage);
    const retried = await stage.engine.deadLetters.retryAll({ type: "charge" });
    expect(retried).toMatchObject({ matched: 3, done: 3, skipped: 0, failed: 0, isComplete: true });
    await stage.advance("1m");
    const { jobs } = await stage.engine.deadLetters.list({ type: "charge" });
    expect(jobs.map(({ errors }) => errors?.length)).toEqual([2, 2, 2]);
  });

  it("are deleted one by one or by query, with their logs", async () => {
    const stage = await openStage();
    await withDeadLetters(stage);
    const { deadLetters } = stage.engine;
    const [first] = (await deadLetters.list()).jobs as [Job];
    await deadLetters.delete(first.id);
    expect(await rowOf(stage.engine.store, first.id)).toBeNull();
    expect(await errorOf(deadLetters.delete(first.id))).toMatchObject({ code: "not_found" });
    expect(await deadLetters.deleteAll({ queue: "mail" })).toMatchObject({ matched: 2, done: 2 });
    expect(await deadLetters.count()).toBe(2);
    expect(await deadLetters.deleteAll({ all: true })).toMatchObject({ matched: 2, done: 2 });
    expect(await deadLetters.count()).toBe(0);
  });

  it("are kept until they are deleted, or until their retention ends", async () => {
    const stage = await openStage({ retention: { discarded: "1h", deadLetter: "2d" } });
    const worker = failAll(stage);
    await stage.engine.enqueue(charge);
    await stage.engine.enqueue(charge, undefined, { retention: { deadLetter: "until-removed" } });
    await stage.advance("1m");
    await worker.close();
    const ends = (await stage.engine.deadLetters.list()).jobs.map(({ pruneAt }) => pruneAt);
    expect(ends.sort()).toEqual([START + 2 * 86_400_000, null].sort());
    await stage.advance("47h");
    expect(await stage.engine.deadLetters.count()).toBe(2);
    await stage.advance("2h");
    expect(await stage.engine.deadLetters.count()).toBe(1);
  });
});

describe("bulk actions", () => {
  it("change exactly the jobs that count and dryRun reported", async () => {
    const { engine } = await openStage();
    await engine.enqueueMany(plain, new Array(450).fill(null));
    await engine.enqueue(plain, null, { queue: "other" });
    const query = { type: "plain", queue: "default" };
    expect(await engine.bulk.count(query)).toBe(450);
    const preview = await engine.bulk.cancel(query, { dryRun: true });
    expect(preview).toMatchObject({ matched: 450, done: 0, skipped: 0, failed: 0, isComplete: true });
    const seen: number[] = [];
    const answer = await engine.bulk.cancel(query, { onProgress: ({ done }) => seen.push(done) });
    expect(answer).toEqual({
      matched: 450,
      done: 450,
      skipped: 0,
      failed: 0,
      isComplete: true,
      cursor: null,
      errors: [],
    });
    expect(seen).toEqual([200, 400, 450]);
    expect(engine.counters().cancelled).toBe(450);
    expect(await engine.bulk.count({ isLive: true })).toBe(1);
  });

  it("stop at a signal or a limit, and continue from the cursor", async () => {
    const { engine } = await openStage();
    await engine.enqueueMany(plain, new Array(500).fill(null));
    const stop = new AbortController();
    const first = await engine.bulk.cancel(
      { type: "plain" },
      { signal: stop.signal, onProgress: () => stop.abort() },
    );
    expect(first).toMatchObject({ done: 200, isComplete: false });
    const second = await engine.bulk.cancel({ type: "plain" }, { limit: 50, after: first.cursor });
    expect(second).toMatchObject({ done: 50, isComplete: false });
    const third = await engine.bulk.cancel({ type: "plain" }, { after: second.cursor });
    expect(third).toMatchObject({ done: 250, isComplete: true, cursor: null });
  });

  it("cancel running handlers, and leave jobs that were enqueued later alone", async () => {
    const stage = await openStage();
    const aborted: unknown[] = [];
    stage.work([
      processor(plain, ({ signal }) => {
        return new Promise<void>((_, reject) =>
          signal.addEventListener("abort", () => {
            aborted.push(signal.reason);
            reject(signal.reason);
          }),
        );
      }),
    ]);
    await stage.engine.enqueue(plain);
    await stage.advance("1s");
    expect(await stage.engine.bulk.cancel({ type: "plain" })).toMatchObject({ done: 1 });
    await stage.settle();
    expect(aborted).toHaveLength(1);
  });

  it("skip a job that changed between read and write, unless it still matches", async () => {
    const { engine, claim } = await openWithClaims();
    await engine.enqueueMany(plain, new Array(3).fill(null));
    claim.count = 1;
    expect(await engine.bulk.cancel({ state: "available" })).toMatchObject({
      matched: 3,
      done: 2,
      skipped: 1,
    });
    await engine.enqueueMany(plain, new Array(3).fill(null));
    claim.count = 1;
    // Active jobs are meant too, so the one that was claimed meanwhile is cancelled as it is now.
    expect(await engine.bulk.cancel({ type: "plain" })).toMatchObject({ matched: 4, done: 4, skipped: 0 });
  });

  it("recognise their own work after a lost reply, and count jobs that the store failed to write", async () => {
    let calls = failFirst("commit", "lose-reply", 1);
    const stage = await openOver((store) => faultyStore(store, (call, nth) => calls(call, nth)));
    const finish = async <Answer>(answer: Promise<Answer>) => {
      await stage.advance("10s");
      return answer;
    };
    await stage.engine.enqueueMany(plain, new Array(5).fill(null));
    const lost = await finish(stage.engine.bulk.cancel({ type: "plain" }));
    expect(lost).toMatchObject({ matched: 5, done: 5, skipped: 0, failed: 0, isComplete: true });
    expect(lost.errors).toHaveLength(1);
    await stage.engine.enqueueMany(plain, new Array(5).fill(null));
    calls = (call) => (call === "commit" ? "drop" : undefined);
    const refused = await finish(stage.engine.bulk.cancel({ type: "plain" }));
    expect(refused).toMatchObject({ matched: 5, done: 0, failed: 5 });
    calls = (call) => (call === "inspect.page" ? "drop" : undefined);
    const blind = await finish(stage.engine.bulk.cancel({ type: "plain" }));
    expect(blind).toMatchObject({ matched: 0, isComplete: false, cursor: null });
    expect(blind.errors).toHaveLength(3);
  });

  it("retry a job once, even if it fails again before the lost reply is noticed", async () => {
    let calls: FaultPlan = () => undefined;
    const stage = await openOver((store) => faultyStore(store, (call, nth) => calls(call, nth)));
    await withDeadLetters(stage);
    failAll(stage);
    // The worker writes as well, so only the first commit from here on is meant: that of the action.
    let isFirst = true;
    calls = (call) => {
      if (call !== "commit" || !isFirst) return undefined;
      isFirst = false;
      return "lose-reply";
    };
    const retried = stage.engine.bulk.retry({ type: "charge" });
    await stage.advance("10s");
    expect(await retried).toMatchObject({ matched: 3, done: 3, skipped: 0, failed: 0, isComplete: true });
    expect((await retried).errors).toHaveLength(1);
    const { jobs } = await stage.engine.find({ type: "charge" });
    expect(jobs.map(({ errors }) => errors?.length)).toEqual([2, 2, 2]);
  });

  it("retry a job once, even if a failed commit takes effect after the next read", async () => {
    const stage = await openWithLateCommit();
    await withDeadLetters(stage);
    failAll(stage);
    stage.late.isAwaited = true;
    const retried = stage.engine.bulk.retry({ type: "charge" });
    await stage.advance("10s");
    expect(await retried).toMatchObject({ matched: 3, done: 3, skipped: 0, failed: 0, isComplete: true });
    const { jobs } = await stage.engine.find({ type: "charge" });
    expect(jobs.map(({ errors }) => errors?.length)).toEqual([2, 2, 2]);
  });

  it("stop when the engine closes, and leave no timer behind", async () => {
    const stage = await openOver((store) =>
      faultyStore(store, (call) => (call === "inspect.page" ? "drop" : undefined)),
    );
    await stage.engine.enqueue(plain, null);
    const cancelled = stage.engine.bulk.cancel({ type: "plain" });
    await stage.settle();
    await stage.engine.close();
    expect(stage.system.pendingTimers).toBe(0);
    expect(await cancelled).toMatchObject({ done: 0, isComplete: false, cursor: null });
    await expect(stage.engine.bulk.cancel({ type: "plain" })).rejects.toThrow("the engine is closed");
  });

  it("retry, delete and prioritise only where the state allows it", async () => {
    const stage = await openStage();
    const { engine } = stage;
    await engine.enqueueMany(plain, new Array(3).fill(null));
    expect(await engine.bulk.delete({ type: "plain" })).toMatchObject({ matched: 3, done: 0, skipped: 3 });
    expect(await engine.bulk.delete({ type: "plain", isLive: true })).toMatchObject({
      matched: 3,
      skipped: 3,
    });
    expect(await engine.bulk.retry({ type: "plain" })).toMatchObject({ matched: 0 });
    expect(await engine.bulk.prioritise({ type: "plain" }, { priority: 9 })).toMatchObject({ done: 3 });
    const { jobs } = await engine.find({ type: "plain" });
    expect(jobs.map(({ priority }) => priority)).toEqual([9, 9, 9]);
    const [first] = jobs as [Job];
    expect((await engine.job(first.id).prioritise(-3)).priority).toBe(-3);
    const named = await engine.find({ ids: idsOf(jobs), state: "available" }, { limit: 2 });
    expect(idsOf(named.jobs)).toEqual(idsOf(jobs).slice(0, 2));
    const rest = await engine.find({ ids: idsOf(jobs) }, { after: named.cursor });
    expect([idsOf(rest.jobs), rest.cursor]).toEqual([idsOf(jobs).slice(2), null]);
    await engine.bulk.cancel({ ids: [first.id] });
    expect(await engine.bulk.delete({ ids: idsOf(jobs) })).toMatchObject({ matched: 3, done: 1, skipped: 2 });
    expect(await rowOf(engine.store, first.id)).toBeNull();
  });

  it("refuse an empty query and bad options", async () => {
    const { engine } = await openStage();
    const { bulk, deadLetters } = engine;
    const refused: [Promise<unknown>, string][] = [
      [bulk.cancel({}), "all: true"],
      [deadLetters.deleteAll({}), "all: true"],
      [bulk.cancel({ queue: "" }), "query.queue"],
      [bulk.cancel({ state: "gone" as never }), "query.state"],
      [bulk.cancel({ que: "x" } as never), "que"],
      [bulk.cancel({ ids: ["7"] }), "query.ids"],
      [bulk.cancel({ createdFrom: 5 as never }), "query.createdFrom"],
      [bulk.cancel({ all: true }, { limit: 0 }), "options.limit"],
      [bulk.cancel({ all: true }, { onProgress: 1 as never }), "options.onProgress"],
      [bulk.cancel({ all: true }, { after: "x" }), "cursor"],
      [bulk.cancel({ all: true }, { keepDeadline: true } as never), "keepDeadline"],
      [bulk.retry({ all: true }, { keepDeadline: 1 as never }), "keepDeadline"],
      [bulk.prioritise({ all: true }, { priority: 101 }), "options.priority"],
      [engine.find({}, { limit: 0 }), "page.limit"],
      [deadLetters.list({ state: "active" } as never, { newestFirst: 1 as never }), "page.newestFirst"],
    ];
    for (const [promise, words] of refused) expect((await errorOf(promise)).message).toContain(words);
    expect(await deadLetters.deleteAll({}, { dryRun: true })).toMatchObject({ matched: 0 });
  });
});

/** An engine on whose store somebody claims jobs right before a commit. */
async function openWithClaims() {
  const claim = { count: 0 };
  const meddle = (store: Store): Store => ({
    ...store,
    async commit(units, options) {
      const limit = claim.count;
      claim.count = 0;
      if (limit > 0) {
        const more = { lease: 10_000, salt: 7, worker: "w", from: 0 };
        await store.jobs.claim({ queue: "default", limit, now: options.now, ...more });
      }
      return store.commit(units, options);
    },
  });
  const stage = await openStage({ store: (clock) => meddle(createMemoryStore({ clock })) });
  return { engine: stage.engine, claim };
}

/**
 * An engine on whose store one commit fails and takes effect later: after its caller has read the jobs again, and before
 * that caller writes the next time.
 */
async function openWithLateCommit() {
  const late: { isAwaited: boolean; commit: (() => Promise<unknown>) | undefined } = {
    isAwaited: false,
    commit: undefined,
  };
  let stage: Stage | undefined;
  const delay = (store: Store): Store => ({
    ...store,
    async commit(units, options) {
      if (late.isAwaited) {
        late.isAwaited = false;
        late.commit = () => store.commit(units, options);
        throw new CurfewError("store_failed", "commit: no answer");
      }
      const first = late.commit;
      if (first && units.some(({ job }) => job?.rev !== undefined)) {
        late.commit = undefined;
        await first();
        // The jobs run and fail again before the second commit reaches the store.
        await stage?.sleep(1_000);
      }
      return store.commit(units, options);
    },
  });
  stage = await openStage({ store: (clock) => delay(createMemoryStore({ clock })) });
  return { ...stage, late };
}
