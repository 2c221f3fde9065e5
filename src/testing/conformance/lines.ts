import assert from "node:assert/strict";
import type { KeyLimit } from "../../core/limit/limit.ts";
import { type Effect, HOLDERS_SHOWN } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, idsOf, type TestBed, times } from "./test-bed.ts";

const LIMIT_KEY = "line";
const NO_USE = { available: 0, active: 0, unstarted: 0, retryable: 0, starts: 0, nextAt: null, jobs: [] };

function admit(limit: KeyLimit): Effect {
  return { admit: LIMIT_KEY, count: 200, limit };
}

async function wait(bed: TestBed, count: number): Promise<void> {
  await bed.addMany(times(count, () => bed.job({ limitKey: LIMIT_KEY, options: { limit: {} } })));
}

const places: ConformanceCase[] = [
  {
    name: "ahead counts available jobs of the queue by rank and id, up to its bound",
    async run(bed) {
      const rows = [await bed.add(), await bed.add(), await bed.add()];
      const urgent = await bed.add({ priority: 5 });
      await bed.add({ queue: "other" });
      await bed.add({ dueAt: bed.now + 1_000 });
      const line = { queue: "default" };
      const ahead = bed.store.inspect.ahead;
      const counts = await Promise.all(rows.map((row) => ahead(line, row, 10)));
      assert.deepEqual(counts, [1, 2, 3]);
      assert.equal(await ahead(line, urgent, 10), 0);
      assert.equal(await ahead(line, found(rows[2]), 2), 2);
      await bed.claim({ limit: 2 });
      assert.equal(await ahead(line, found(rows[2]), 10), 1);
      assert.equal(await ahead({ queue: "unknown" }, urgent, 10), 0);
    },
  },
  {
    name: "ahead counts jobs that wait only for a limit",
    async run(bed) {
      await bed.add({ limitKey: LIMIT_KEY, needs: 2, options: { limit: {} } });
      await wait(bed, 4);
      const last = await bed.add({ limitKey: LIMIT_KEY, options: { limit: {} } });
      assert.equal(await bed.store.inspect.ahead({ limitKey: LIMIT_KEY }, last, 10), 4);
      assert.equal(await bed.store.inspect.ahead({ limitKey: LIMIT_KEY }, last, 3), 3);
      await bed.effect(admit({ concurrency: 1 }));
      assert.equal(await bed.store.inspect.ahead({ limitKey: LIMIT_KEY }, last, 10), 3);
    },
  },
];

const holders: ConformanceCase[] = [
  {
    name: "slots counts what uses a limit up to a bound, and names some holders",
    async run(bed) {
      const { slots } = bed.store.inspect;
      assert.deepEqual(await slots({ limitKey: LIMIT_KEY }, 10), NO_USE);
      await wait(bed, 12);
      await bed.effect(admit({ concurrency: 10 }));
      const claimed = await bed.claim({ limit: 8 });
      await bed.start(found(claimed[0]));
      const use = await slots({ limitKey: LIMIT_KEY }, 100);
      const { jobs, ...counts } = use;
      assert.deepEqual(counts, {
        available: 2,
        active: 8,
        unstarted: 7,
        retryable: 0,
        starts: 0,
        nextAt: null,
      });
      assert.equal(jobs.length, HOLDERS_SHOWN);
      for (const { id, state } of jobs) {
        assert.equal(state, "active");
        assert(idsOf(claimed).includes(id));
      }
      const few = await slots({ limitKey: LIMIT_KEY }, 3);
      assert.deepEqual([few.available, few.active], [2, 3]);
    },
  },
  {
    name: "slots counts remembered starts, and says when the first no longer counts",
    async run(bed) {
      const limit = { rate: { limit: 5, per: 60_000 } };
      const spend = (by: string, at: number): Effect => ({ spend: LIMIT_KEY, by, at, limit });
      await bed.effect(spend("a", bed.now), spend("b", bed.now + 10));
      const { starts, nextAt } = await bed.store.inspect.slots({ limitKey: LIMIT_KEY }, 100);
      assert.deepEqual({ starts, nextAt }, { starts: 2, nextAt: bed.now + 60_000 });
    },
  },
  {
    name: "slots counts a retry that keeps its slot, and active jobs of a queue with a concurrency",
    skip: ({ homes }) =>
      homes > 1 ? "a job with a limit cannot be in a queue with a concurrency on several homes" : undefined,
    async run(bed) {
      await wait(bed, 1);
      await bed.effect(admit({ concurrency: 1 }));
      const row = await bed.start(await bed.claimOne());
      const error = { type: "Error", code: "handler_error", message: "no" };
      await bed.write(row, { type: "fail", error, signalled: false });
      assert.equal((await bed.store.inspect.slots({ limitKey: LIMIT_KEY }, 10)).retryable, 1);
      await bed.addMany(times(3, () => bed.job({ queue: "narrow" })));
      assert.deepEqual(await bed.store.inspect.slots({ queue: "narrow" }, 10), NO_USE);
      const [first] = await bed.claim({ queue: "narrow", limit: 2, most: 1 });
      const { jobs, ...use } = await bed.store.inspect.slots({ queue: "narrow" }, 10);
      assert.deepEqual(idsOf(jobs), [first?.id]);
      assert.deepEqual([use.active, use.unstarted], [1, 1]);
    },
  },
  {
    name: "queues with available jobs are named in order, page by page",
    async run(bed) {
      const { readyQueues } = bed.store.inspect;
      assert.deepEqual(await readyQueues(null, 10), []);
      for (const queue of ["b", "a", "c", "b"]) await bed.add({ queue });
      await bed.add({ queue: "later", dueAt: bed.now + 1_000 });
      assert.deepEqual(await readyQueues(null, 10), ["a", "b", "c"]);
      assert.deepEqual(await readyQueues(null, 2), ["a", "b"]);
      assert.deepEqual(await readyQueues("b", 2), ["c"]);
      await bed.claim({ queue: "a" });
      assert.deepEqual(await readyQueues(null, 10), ["b", "c"]);
    },
  },
  {
    name: "the oldest available job of a queue is the one that became due first, whatever its priority",
    async run(bed) {
      const { oldestReady } = bed.store.inspect;
      assert.deepEqual(await oldestReady(10), []);
      const urgent = await bed.add({ queue: "a", priority: 5, dueAt: bed.now - 1_000 });
      const usual = await bed.add({ queue: "a", dueAt: bed.now - 3_000 });
      await bed.add({ queue: "a", dueAt: bed.now - 2_000 });
      const low = await bed.add({ queue: "b", priority: -5 });
      await bed.add({ queue: "later", dueAt: bed.now + 1_000 });
      const last = await bed.add({ queue: "c", priority: 100 });
      const fields = ({ queue, id, rank, createdAt }: typeof low) => ({ queue, id, rank, createdAt });
      assert.deepEqual(await oldestReady(10), [fields(usual), fields(low), fields(last)]);
      assert.deepEqual(await oldestReady(2), [fields(usual), fields(low)]);
      const [claimed] = await bed.claim({ queue: "a", limit: 1 });
      assert.equal(claimed?.id, urgent.id);
      assert.deepEqual(idsOf(await oldestReady(1)), [usual.id]);
    },
  },
];

/** Queries about one waiting job, at a cost that does not grow with the number of jobs. */
export const lines: ConformanceSection = {
  name: "positions in line",
  cases: [...places, ...holders],
};
