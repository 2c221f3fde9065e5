import assert from "node:assert/strict";
import type { JobRow, JobState } from "../../core/job/job.ts";
import type { KeyLimit } from "../../core/limit/limit.ts";
import {
  type Effect,
  limitRecordKey,
  queueMark,
  START_KIND,
  type Store,
  startKey,
  type Unit,
} from "../../ports/store.ts";
import { depthOf, jobsOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { batches, claimRequest, found, idsOf, POLICY, QUEUE_HOME, type TestBed, times } from "./test-bed.ts";

const LIMIT_KEY = "key";

function admit(limit: KeyLimit, limitKey = LIMIT_KEY): Effect {
  return { admit: limitKey, count: 200, limit };
}

/** Jobs that wait for a limit, in the order in which it admits them. */
async function waiting(bed: TestBed, count: number, limit: KeyLimit = {}): Promise<string[]> {
  const jobs = times(count, () => bed.job({ limitKey: LIMIT_KEY, options: { limit } }));
  for (const batch of batches(jobs)) await bed.addMany(batch);
  return idsOf(jobs);
}

async function available(bed: TestBed): Promise<string[]> {
  return idsOf(await jobsOf(bed.store, { state: "available" }));
}

const start = (bed: TestBed) => ({ type: "start", policy: POLICY, upper: bed.now }) as const;

/** The end of a claimed job, with the effects on its limit. */
function completed(bed: TestBed, row: JobRow, effects: readonly Effect[]): Unit {
  const started: JobRow = { ...row, startedAt: bed.now, attempt: 1, policy: POLICY };
  return bed.unit(started, { type: "succeed", signalled: false }, { effects });
}

const slots: ConformanceCase[] = [
  {
    name: "a key under a limit admits as many as it has room for, and no more",
    async run(bed) {
      const ids = await waiting(bed, 5);
      await bed.effect(admit({ concurrency: 2 }));
      assert.deepEqual(await available(bed), ids.slice(0, 2));
      await bed.effect(admit({ concurrency: 2 }), admit({ concurrency: 2 }));
      const [first] = await bed.claim({ limit: 1 });
      await bed.start(found(first));
      await bed.effect(admit({ concurrency: 2 }));
      assert.deepEqual(await available(bed), ids.slice(1, 2));
      await bed.effect({ admit: LIMIT_KEY, count: 1, limit: { concurrency: 10 } });
      assert.deepEqual(await available(bed), ids.slice(1, 3));
    },
  },
  {
    name: "a slot is free in the unit that frees it",
    async run(bed) {
      const ids = await waiting(bed, 3);
      await bed.effect(admit({ concurrency: 1 }));
      const row = await bed.start(await bed.claimOne());
      const effects = [admit({ concurrency: 1 })];
      await bed.write(row, { type: "succeed", signalled: false }, { effects });
      assert.deepEqual(await available(bed), [ids[1]]);
      const stale = bed.unit(row, { type: "succeed", signalled: false }, { effects: [admit({})] });
      assert.equal((await bed.commit(stale))[0]?.ok, false);
      assert.deepEqual(await available(bed), [ids[1]], "a refused unit admits no job");
    },
  },
  {
    name: "200 jobs of one key that end in one call admit 200 others",
    async run(bed) {
      const limit = { concurrency: 200 };
      const ids = await waiting(bed, 450);
      await bed.effect(admit(limit));
      const rows = await bed.claim();
      assert.equal(rows.length, 200);
      const outcomes = await bed.commit(...rows.map((row) => completed(bed, row, [admit(limit)])));
      assert(outcomes.every(({ ok }) => ok));
      assert.deepEqual(await available(bed), ids.slice(200, 400));
    },
  },
  {
    name: "a job that waits for its retry holds its slot under a strict limit only",
    async run(bed) {
      const ids = await waiting(bed, 2);
      await bed.effect(admit({ concurrency: 1 }));
      const row = await bed.start(await bed.claimOne());
      const error = { type: "Error", code: "handler_error", message: "no" };
      await bed.write(row, { type: "fail", error, signalled: false });
      await bed.effect(admit({ concurrency: 1, strict: true }));
      assert.deepEqual(await available(bed), []);
      await bed.effect(admit({ concurrency: 1 }));
      assert.deepEqual(await available(bed), [ids[1]]);
    },
  },
  {
    name: "an override goes before what jobs say, for each part, until it is deleted",
    async run(bed) {
      const ids = await waiting(bed, 6);
      const put = (body: { concurrency?: number | null }): Effect => ({
        put: limitRecordKey(LIMIT_KEY),
        body,
        wakeAt: null,
      });
      await bed.effect(put({ concurrency: 2 }), admit({ concurrency: 5 }));
      assert.deepEqual(await available(bed), ids.slice(0, 2));
      await bed.effect({ delete: limitRecordKey(LIMIT_KEY) }, admit({ concurrency: 3 }));
      assert.deepEqual(await available(bed), ids.slice(0, 3));
      await bed.effect(put({ concurrency: null }), admit({ concurrency: 3 }));
      assert.deepEqual(await available(bed), ids);
    },
  },
];

const rates: ConformanceCase[] = [
  {
    name: "starts count from the admission on, and then while they are remembered",
    async run(bed) {
      const limit = { rate: { limit: 2, per: 1_000 } };
      const ids = await waiting(bed, 4);
      await bed.effect(admit(limit));
      assert.deepEqual(await available(bed), ids.slice(0, 2));
      const [first] = await bed.claim({ limit: 1 });
      const { id, fence } = found(first);
      await bed.effect(admit(limit));
      assert.deepEqual(await available(bed), [ids[1]], "a claim that has not started counts");
      const spend = { spend: LIMIT_KEY, by: `${id} ${fence}`, at: bed.now, limit };
      await bed.write(found(first), start(bed), { effects: [spend, admit(limit)] });
      assert.deepEqual(await available(bed), [ids[1]], "a start counts");
      const [record] = await bed.store.records.list(START_KIND, null, 10);
      assert.deepEqual(record?.body, { limitKey: LIMIT_KEY, limit });
      assert.equal(record?.wakeAt, bed.now + 1_000);
      assert.deepEqual((await bed.store.inspect.limitKey(LIMIT_KEY)).nextAt, bed.now + 1_000);
      await bed.effect({ delete: startKey(LIMIT_KEY, `${id} ${fence}`) }, admit(limit));
      assert.deepEqual(await available(bed), ids.slice(1, 3));
    },
  },
  {
    name: "a start is remembered once, not after its time, and not without a rate",
    async run(bed) {
      const limit = { rate: { limit: 5, per: 1_000 } };
      const count = async () => (await bed.store.inspect.limitKey(LIMIT_KEY)).starts;
      const spend = { spend: LIMIT_KEY, by: "a", at: bed.now, limit };
      await bed.effect(spend, spend);
      assert.equal(await count(), 1);
      await bed.effect(
        { ...spend, by: "b", at: bed.now - 1_000 },
        { ...spend, by: "c", limit: { concurrency: 1 } },
      );
      assert.equal(await count(), 1);
      await bed.effect(
        { ...spend, by: "d", at: bed.now - 999 },
        { ...spend, spend: "key 2" },
        { ...spend, spend: "ke" },
      );
      assert.equal(await count(), 2);
      await bed.effect(
        { put: limitRecordKey(LIMIT_KEY), body: { rate: null }, wakeAt: null },
        { ...spend, by: "e" },
      );
      assert.equal(await count(), 2);
      await bed.effect(
        { put: limitRecordKey(LIMIT_KEY), body: { rate: { limit: 1, per: 9_000 } }, wakeAt: null },
        { spend: LIMIT_KEY, by: "f", at: bed.now - 5_000, limit: {} },
      );
      assert.equal(await count(), 3);
    },
  },
];

const races: ConformanceCase[] = [
  {
    name: "4 handles run 600 jobs of one key: never more than the limit at once, and no job is left waiting",
    timeout: 120_000,
    async run(bed) {
      const limit = { concurrency: 7 };
      await waiting(bed, 600, limit);
      const handles = await bed.handles(4);
      await Promise.all(
        handles.map((store) => store.commit([{ effects: [admit(limit)] }], { now: bed.now })),
      );
      let left = 600;
      const work = async (store: Store) => {
        while (left > 0) {
          const rows = await store.jobs.claim(claimRequest(bed, { limit: 3 }));
          const use = await store.inspect.limitKey(LIMIT_KEY);
          assert(use.available + use.active <= 7, `${use.available} available and ${use.active} active`);
          assert(use.available + use.active > 0 || use.waiting === 0, "no job is admitted");
          const units = rows.map((row) => completed(bed, row, [admit(limit)]));
          const outcomes = units.length > 0 ? await store.commit(units, { now: bed.now }) : [];
          left -= outcomes.filter(({ ok }) => ok).length;
        }
      };
      await Promise.all(handles.map(work));
      assert.equal((await depthOf(bed.store)).completed, 600);
    },
  },
  {
    name: "jobs that are written during an admission are not skipped for good",
    timeout: 60_000,
    async run(bed) {
      const limit = { concurrency: 1 };
      const [one, other] = await bed.handles(2);
      for (let round = 0; round < 30; round++) {
        const job = bed.job({ limitKey: `key ${round}`, options: { limit } });
        await bed.addMany([job]);
        const row = found(await bed.load(job.id));
        const note = { job: { id: row.id, fence: row.fence, documents: { progress: "1" } } };
        const effects = [admit(limit, `key ${round}`)];
        await Promise.all([
          one?.commit([note], { now: bed.now }),
          other?.commit([{ effects }], { now: bed.now }),
        ]);
        assert.equal((await bed.load(job.id))?.state, "available");
      }
    },
  },
];

const queues: ConformanceCase[] = [
  {
    name: "a claim under the limit of a queue takes no more than it has room for, and marks what it takes",
    skip: ({ homes }) =>
      homes > 1 ? "a job with a limit cannot be in a queue with a concurrency on several homes" : undefined,
    async run(bed) {
      await bed.addMany(times(6, () => bed.job()));
      const own = await bed.add({ priority: 1, limitKey: LIMIT_KEY });
      await bed.effect({ admit: LIMIT_KEY, count: 1 });
      const rows = await bed.claim({ most: 3 });
      assert.deepEqual(
        rows.map(({ limitKey }) => limitKey),
        [LIMIT_KEY, queueMark("default"), queueMark("default")],
      );
      assert.equal(rows[0]?.id, own.id);
      for (const row of rows) assert.deepEqual(await bed.load(row.id), row);
      assert.deepEqual(await bed.claim({ most: 3 }), []);
      assert.equal((await bed.claim({ most: 4 })).length, 1);
      await bed.commit(completed(bed, found(rows[1]), []));
      assert.equal((await bed.claim({ most: 4 })).length, 1);
      assert.equal((await bed.claim({ most: 1, queue: "other" })).length, 0);
      assert.equal((await bed.claim()).length, 2, "without a limit it takes the rest");
    },
  },
  {
    name: "jobs that keep the slots of a queue are found by its mark, and a cancelled one frees its slot",
    home: QUEUE_HOME,
    async run(bed) {
      const mark = queueMark("default");
      await bed.addMany(times(2, () => bed.job()));
      const [claimed] = await bed.claim({ most: 1 });
      const listed = await bed.store.inspect.limitKeys(null, 10);
      assert.deepEqual(
        listed.map(({ key, active }) => ({ key, active })),
        [{ key: mark, active: 1 }],
      );
      const jobs = await bed.store.inspect.limitJobs(mark, "active", 10);
      assert.deepEqual(jobs, [claimed]);
      assert.deepEqual(await bed.claim({ most: 1 }), []);
      await bed.write(found(claimed), { type: "cancel" }, { outsider: true });
      assert.deepEqual(await bed.store.inspect.limitKeys(null, 10), []);
      assert.equal((await bed.claim({ most: 1 })).length, 1);
    },
  },
  {
    name: "8 handles claim under the limit of a queue: never more than the limit are active",
    home: QUEUE_HOME,
    timeout: 60_000,
    async run(bed) {
      await bed.addMany(times(200, () => bed.job()));
      const handles = await bed.handles(8);
      let left = 200;
      const work = async (store: Store) => {
        while (left > 0) {
          const rows = await store.jobs.claim(claimRequest(bed, { limit: 3, most: 5 }));
          const { active } = await depthOf(store);
          assert(active <= 5, `${active} are active`);
          const units = rows.map((row) => completed(bed, row, []));
          if (units.length > 0) await store.commit(units, { now: bed.now });
          left -= rows.length;
        }
      };
      await Promise.all(handles.map(work));
      assert.equal((await depthOf(bed.store)).completed, 200);
    },
  },
  {
    name: "a bounded queue takes in as many as may wait, in order, and recognises known jobs",
    home: QUEUE_HOME,
    async run(bed) {
      const depths: [string, number][] = [];
      const onDepth = (queue: string, count: number) => void depths.push([queue, count]);
      const options = { now: bed.now, bounds: new Map([["default", 3]]), onDepth };
      const first = bed.job();
      const jobs = [
        first,
        bed.job({ queue: "other", dueAt: bed.now + 1_000 }),
        bed.job({ queue: "other" }),
        bed.job({ limitKey: LIMIT_KEY }),
      ];
      const created = ["created", "created", "created", "created"];
      assert.deepEqual(await bed.store.jobs.enqueue(jobs, options), created);
      const more = [
        { ...first, hasNewId: false },
        bed.job({ uniqueKey: "key" }),
        bed.job(),
        { ...first, hasNewId: false },
      ];
      const again = bed.job({ uniqueKey: "key" });
      const answers = await bed.store.jobs.enqueue(
        [...more, again, bed.job({ queue: "other", dueAt: bed.now + 1 })],
        options,
      );
      const holder = { duplicate: more[1]?.id };
      assert.deepEqual(answers, ["exists", "created", "full", "exists", holder, "created"]);
      assert.deepEqual(depths, [
        ["default", 2],
        ["default", 3],
      ]);
      assert.equal(await bed.load(more[2]?.id as string), null);
      await bed.claimOne();
      assert.deepEqual(await bed.store.jobs.enqueue([bed.job(), bed.job()], options), ["created", "full"]);
    },
  },
  {
    name: "a bounded queue counts all that waits: available, pending, delayed and retried jobs, and no running one",
    home: QUEUE_HOME,
    async run(bed) {
      const depths: number[] = [];
      const options = {
        now: bed.now,
        bounds: new Map([["default", 4]]),
        onDepth: (_: string, count: number) => void depths.push(count),
      };
      const later = () => bed.job({ dueAt: bed.now + 60_000 });
      const jobs = [bed.job(), bed.job(), bed.job({ limitKey: LIMIT_KEY }), later(), later()];
      const created = times(4, () => "created");
      assert.deepEqual(await bed.store.jobs.enqueue(jobs, options), [...created, "full"]);
      // Two run, so there is room for two. When they wait for a retry they still count, and no other job fits.
      const rows = [await bed.start(await bed.claimOne()), await bed.start(await bed.claimOne())];
      assert.deepEqual(await bed.store.jobs.enqueue([later(), bed.job(), bed.job()], options), [
        "created",
        "created",
        "full",
      ]);
      for (const row of rows) {
        const back = await bed.write(row, {
          type: "fail",
          error: { type: "Error", code: "error", message: "no" },
          signalled: false,
        });
        assert.equal(back.state, "retryable");
      }
      assert.deepEqual(await bed.store.jobs.enqueue([bed.job(), later()], options), ["full", "full"]);
      assert.deepEqual(depths, [4, 4, 4]);
    },
  },
  {
    name: "8 producers fill a bounded queue to its bound, and not beyond",
    home: QUEUE_HOME,
    timeout: 60_000,
    async run(bed) {
      const handles = await bed.handles(8);
      const options = { now: bed.now, bounds: new Map([["default", 100]]) };
      const answers = await Promise.all(
        handles.map(async (store) => {
          const given = [];
          for (let round = 0; round < 5; round++)
            given.push(
              ...(await store.jobs.enqueue(
                times(7, () => bed.job()),
                options,
              )),
            );
          return given;
        }),
      );
      assert.equal(answers.flat().filter((answer) => answer === "created").length, 100);
      assert.equal((await depthOf(bed.store)).available, 100);
    },
  },
];

const looks: ConformanceCase[] = [
  {
    name: "limit keys, their jobs and the depth of all queues can be inspected",
    async run(bed) {
      const limit = { rate: { limit: 9, per: 500 } };
      const ids = await waiting(bed, 3);
      await bed.add({ limitKey: "another", queue: "b" });
      await bed.add({ limitKey: LIMIT_KEY, needs: 1 });
      await bed.effect({ admit: LIMIT_KEY, count: 2 }, { spend: LIMIT_KEY, by: "x", at: bed.now, limit });
      await bed.claimOne();
      const use = { available: 1, active: 1, unstarted: 1, retryable: 0 };
      const row = { key: LIMIT_KEY, waiting: 1, ...use, starts: 1, nextAt: bed.now + 500 };
      const nobody = { available: 0, active: 0, unstarted: 0, retryable: 0, starts: 0, nextAt: null };
      assert.deepEqual(await bed.store.inspect.limitKey(LIMIT_KEY), row);
      assert.deepEqual(await bed.store.inspect.limitKey("unknown"), {
        key: "unknown",
        waiting: 0,
        ...nobody,
      });
      const all = [{ key: "another", waiting: 1, ...nobody }, row];
      assert.deepEqual(await bed.store.inspect.limitKeys(null, 10), all);
      assert.deepEqual(await bed.store.inspect.limitKeys("another", 10), all.slice(1));
      assert.deepEqual(await bed.store.inspect.limitKeys(null, 1), all.slice(0, 1));
      const listed = await bed.store.inspect.limitJobs(LIMIT_KEY, "pending", 1);
      assert.deepEqual(idsOf(listed), [ids[2]]);
      const inState = async (state: JobState | null, most: number) =>
        idsOf(await bed.store.inspect.limitJobs(LIMIT_KEY, state, most));
      assert.deepEqual(await inState("active", 10), [ids[0]]);
      assert.deepEqual(await inState("available", 10), [ids[1]]);
      assert.deepEqual(await inState("retryable", 10), []);
      assert.deepEqual(await inState(null, 3), ids);
      assert.equal((await inState(null, 10)).length, 4);
      const depths = await bed.store.inspect.depths();
      assert.deepEqual([...depths.keys()], ["b", "default"]);
      assert.deepEqual(depths.get("default"), await depthOf(bed.store, "default"));
    },
  },
];

/** What limits need: admission under a limit, remembered starts, and queues with a limit or a bound. */
export const limits: ConformanceSection = {
  name: "limits",
  cases: [...slots, ...rates, ...races, ...queues, ...looks],
};
