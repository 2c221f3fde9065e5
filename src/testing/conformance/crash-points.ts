import assert from "node:assert/strict";
import type { JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Store } from "../../ports/store.ts";
import { failFirst, failRandomly, faultyStore } from "../faulty-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { claimRequest, found, idsOf, LEASE, POLICY, refused, type TestBed, times } from "./test-bed.ts";

const FAILED = { code: "store_failed" };

const enqueues: ConformanceCase[] = (["drop", "lose-reply"] as const).map((fault) => ({
  name: `enqueue, ${fault}: repeated, every job is there once`,
  async run(bed) {
    const store = faultyStore(bed.store, failFirst("jobs.enqueue", fault));
    const jobs = times(10, () => ({ ...bed.job(), hasNewId: false }));
    await assert.rejects(store.jobs.enqueue(jobs, { now: bed.now }), FAILED);
    const expected = fault === "drop" ? "created" : "exists";
    assert.deepEqual(
      await store.jobs.enqueue(jobs, { now: bed.now }),
      jobs.map(() => expected),
    );
    assert.deepEqual(idsOf(await bed.claim()), idsOf(jobs));
  },
}));

const claims: ConformanceCase[] = [
  {
    name: "claim, drop: the next claim gets the jobs, with nothing spent",
    async run(bed) {
      const store = faultyStore(bed.store, failFirst("jobs.claim", "drop"));
      const row = await bed.add();
      await assert.rejects(store.jobs.claim(claimRequest(bed)), FAILED);
      assert.deepEqual(await bed.load(row.id), row);
      assert.deepEqual(idsOf(await store.jobs.claim(claimRequest(bed))), [row.id]);
    },
  },
  {
    name: "claim, lose-reply: the lease runs out, the job is available again with an expired claim and is claimed once",
    async run(bed) {
      const store = faultyStore(bed.store, failFirst("jobs.claim", "lose-reply"));
      const { id } = await bed.add();
      await assert.rejects(store.jobs.claim(claimRequest(bed)), FAILED);
      assert.deepEqual(await store.jobs.claim(claimRequest(bed)), []);
      const claimed = found(await bed.load(id));
      const runsOutAt = bed.now + LEASE;
      assert.deepEqual((await bed.sweep(runsOutAt - 1)).jobs, []);
      const [due] = (await bed.sweep(runsOutAt)).jobs;
      const back = await bed.write(found(due), { type: "wake" }, { now: runsOutAt, outsider: true });
      assert.deepEqual([back.state, back.expiredClaims, back.attempt], ["available", 1, 0]);
      const [again] = await store.jobs.claim(claimRequest(bed, { now: runsOutAt }));
      assert(found(again).fence > claimed.fence);
      assert.deepEqual(await store.jobs.claim(claimRequest(bed)), []);
    },
  },
];

const commits: ConformanceCase[] = [
  {
    name: "commit, drop: repeated, it is written",
    async run(bed) {
      const store = faultyStore(bed.store, failFirst("commit", "drop"));
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const unit = bed.unit(running, { type: "succeed", signalled: false });
      await assert.rejects(store.commit([unit], { now: bed.now }), FAILED);
      assert.deepEqual(await bed.load(running.id), running);
      assert.deepEqual(await store.commit([unit], { now: bed.now }), [{ ok: true }]);
    },
  },
  {
    name: "commit, lose-reply: repeated, it recognises its own success and does nothing twice",
    async run(bed) {
      const store = faultyStore(bed.store, failFirst("commit", "lose-reply"));
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const effects = [{ enqueue: bed.job({ queue: "next" }) }, { event: "ended" }];
      const unit = bed.unit(running, { type: "succeed", signalled: false }, { effects });
      await assert.rejects(store.commit([unit], { now: bed.now }), FAILED);
      const { because, at } = refused((await store.commit([unit], { now: bed.now }))[0]);
      assert.equal(because, "lost");
      assert(at && at.fence === running.fence && isTerminal(at.state));
      assert.equal((await bed.store.inspect.depth("next")).available, 1);
      assert.deepEqual((await bed.store.inspect.events(null, 10)).events, ["ended"]);
    },
  },
];

const sweeps: ConformanceCase[] = [
  {
    name: "sweep, lose-reply: promoted jobs are available, and jobs that need a decision come again after the hold",
    async run(bed) {
      const store = faultyStore(bed.store, failFirst("jobs.sweep", "lose-reply"));
      const dueAt = bed.now + 1_000;
      const delayed = await bed.add({ dueAt });
      const expired = await bed.add({ waitAt: dueAt, queue: "other" });
      const sweepAt = (now: number) => store.jobs.sweep({ now, limit: 100, holdUntil: now + 5_000 });
      await assert.rejects(sweepAt(dueAt), FAILED);
      assert.deepEqual(idsOf(await bed.claim({ now: dueAt })), [delayed.id]);
      assert.deepEqual(idsOf((await sweepAt(dueAt)).jobs), []);
      assert.deepEqual(idsOf((await sweepAt(dueAt + 5_000)).jobs), [expired.id]);
    },
  },
];

const whole: ConformanceCase[] = [
  {
    name: "under random faults every job ends exactly once and none is lost",
    timeout: 60_000,
    async run(bed) {
      const store = faultyStore(bed.store, failRandomly(bed.random, { drop: 0.1, loseReply: 0.1 }));
      const jobs = times(200, () => ({ ...bed.job(), hasNewId: false }));
      await untilDone(() => store.jobs.enqueue(jobs, { now: bed.now }));
      let { now } = bed;
      while ((await bed.store.inspect.depth()).completed < jobs.length) {
        await drainOnce(bed, store, now);
        now += LEASE;
        await decideDue(bed, store, now);
      }
      const { events } = await bed.store.inspect.events(null, 1_000);
      assert.deepEqual(events.toSorted(), idsOf(jobs).toSorted());
    },
  },
  {
    name: "what was acknowledged is there after a reopen",
    skip: ({ durable }, { reopen }) =>
      durable === "none" || !reopen ? "the data is gone with the process" : undefined,
    async run(bed) {
      const waiting = await bed.add();
      await bed.add({ queue: "other" });
      const claimed = await bed.claimOne({ queue: "other" });
      await bed.effect({ put: ["kit", "record"], body: { a: 1 }, wakeAt: bed.now + 1 });
      await bed.store.close();
      const again = (await bed.opened.reopen?.()) as Store;
      try {
        assert.deepEqual(await again.jobs.load([waiting.id, claimed.id]), [waiting, claimed]);
        const [record] = await again.records.load([["kit", "record"]]);
        assert.deepEqual(record?.body, { a: 1 });
      } finally {
        await again.close();
      }
    },
  },
];

async function untilDone<Answer>(run: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if ((error as { code?: string }).code !== "store_failed") throw error;
    }
  }
}

/** A worker that repeats a settle until the store answers. The sweep finds what it missed. */
async function drainOnce(bed: TestBed, store: Store, now: number): Promise<void> {
  const rows = await store.jobs.claim(claimRequest(bed, { now, limit: 20 })).catch(() => []);
  for (const row of rows) await untilDone(() => settle(bed, store, row, now));
}

async function settle(bed: TestBed, store: Store, row: JobRow, now: number): Promise<void> {
  const start = bed.unit(row, { type: "start", policy: POLICY, upper: now }, { now });
  const started: JobRow = { ...row, ...start.job?.image, ...start.job?.documents, policy: POLICY };
  const unit = bed.unit(
    started,
    { type: "succeed", signalled: false },
    { now, effects: [{ event: row.id }] },
  );
  const [outcome] = await store.commit([unit], { now });
  if (outcome?.ok) return;
  const { at } = refused(outcome);
  assert(at && at.fence === row.fence && isTerminal(at.state), "a lease that has not expired is not lost");
}

async function decideDue(bed: TestBed, store: Store, now: number): Promise<void> {
  const { jobs } = await untilDone(() => store.jobs.sweep({ now, limit: 1_000, holdUntil: now + 1 }));
  for (const row of jobs) {
    const unit = bed.unit(row, { type: "wake" }, { now, outsider: true });
    await untilDone(() => store.commit([unit], { now }));
  }
}

export const crashPoints: ConformanceSection = {
  name: "crash points",
  cases: [...enqueues, ...claims, ...commits, ...sweeps, ...whole],
};
