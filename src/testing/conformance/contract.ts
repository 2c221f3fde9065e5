import assert from "node:assert/strict";
import { claimedRow } from "../../core/job/decide/store-formulas.ts";
import { briefRow } from "../../core/job/documents/brief-row.ts";
import { type JobRow, rankOf } from "../../core/job/job.ts";
import { BATCH_LIMIT, pauseKey } from "../../ports/store.ts";
import { depthOf, jobsOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { claimRequest, found, idsOf, QUEUE_HOME, type TestBed, times } from "./test-bed.ts";

const enqueueing: ConformanceCase[] = [
  {
    name: "enqueue answers created, exists and duplicate, per job and in order",
    async run(bed) {
      const first = bed.job({ uniqueKey: "key" });
      const second = bed.job();
      const blocked = bed.job({ uniqueKey: "key" });
      const again = { ...second, hasNewId: false };
      const third = bed.job();
      const answers = await bed.store.jobs.enqueue([first, second], { now: bed.now });
      assert.deepEqual(answers, ["created", "created"]);
      assert.deepEqual(await bed.store.jobs.enqueue([blocked, again, third], { now: bed.now }), [
        { duplicate: first.id },
        "exists",
        "created",
      ]);
      assert.equal(await bed.load(blocked.id), null);
    },
  },
  {
    name: "a unique key taken in a batch refuses the later job of the same batch",
    async run(bed) {
      const [first, second] = [bed.job({ uniqueKey: "key" }), bed.job({ uniqueKey: "key" })];
      const answers = await bed.store.jobs.enqueue([first, second], { now: bed.now });
      assert.deepEqual(answers, ["created", { duplicate: first.id }]);
    },
  },
  {
    name: "a known id is answered exists, even after the job has ended",
    async run(bed) {
      const row = await bed.add();
      const ended = await bed.write(row, { type: "cancel" }, { outsider: true });
      const again = { ...bed.job(), id: row.id, hasNewId: false, payload: '{"other":1}' };
      assert.deepEqual(await bed.store.jobs.enqueue([again], { now: bed.now }), ["exists"]);
      assert.deepEqual(await bed.load(row.id), ended);
    },
  },
  {
    name: "a unique key is free again when its job has ended or was dropped",
    async run(bed) {
      const kept = await bed.add({ uniqueKey: "kept" });
      await bed.write(kept, { type: "cancel" }, { outsider: true });
      await bed.add({ uniqueKey: "kept" });
      const dropped = await bed.add({ uniqueKey: "dropped" });
      const { job } = bed.unit(dropped, { type: "cancel" }, { outsider: true });
      assert(job);
      assert.deepEqual(await bed.commit({ job: { ...job, drop: true } }), [{ ok: true }]);
      await bed.add({ uniqueKey: "dropped" });
    },
  },
  {
    name: "a revived job takes its unique key back, unless another job holds it",
    async run(bed) {
      const end = async (uniqueKey: string) => {
        const row = await bed.add({ uniqueKey, waitAt: bed.now });
        return bed.write(row, { type: "wake" }, { outsider: true });
      };
      const [free, taken] = [await end("free"), await end("taken")];
      const other = await bed.add({ uniqueKey: "taken" });
      for (const row of [free, taken]) await bed.write(row, { type: "retry" }, { outsider: true });
      const blocked = [bed.job({ uniqueKey: "free" }), bed.job({ uniqueKey: "taken" })];
      assert.deepEqual(await bed.store.jobs.enqueue(blocked, { now: bed.now }), [
        { duplicate: free.id },
        { duplicate: other.id },
      ]);
    },
  },
  {
    name: "an empty batch is allowed",
    async run(bed) {
      assert.deepEqual(await bed.store.jobs.enqueue([], { now: bed.now }), []);
      assert.deepEqual(await bed.store.commit([], { now: bed.now }), []);
      assert.deepEqual(await bed.store.jobs.load([]), []);
      assert.deepEqual(await bed.store.records.load([]), []);
    },
  },
  {
    name: "load answers in the order asked, with null for what is unknown",
    async run(bed) {
      const [first, second] = [await bed.add(), await bed.add()];
      const rows = await bed.store.jobs.load([second.id, bed.nextId(), first.id]);
      assert.deepEqual(rows, [second, null, first]);
    },
  },
  {
    name: "brief rows are the same without payload, checkpoint, result and the value of progress",
    async run(bed) {
      await bed.addMany([bed.job(), bed.job()]);
      const [live, ended] = (await Promise.all((await bed.claim()).map((row) => bed.start(row)))) as [
        JobRow,
        JobRow,
      ];
      const documents = { checkpoint: '{"a":1}', progress: '{"value":0.5,"note":"half"}' };
      const { id, fence } = live;
      assert.deepEqual(await bed.commit({ job: { id, fence, documents } }), [{ ok: true }]);
      await bed.write(ended, { type: "succeed", signalled: false, result: '"done"' });
      const ids = [live.id, bed.nextId(), ended.id];
      const whole = await bed.store.jobs.load(ids);
      assert.equal(whole[0]?.checkpoint, documents.checkpoint);
      assert.equal(whole[2]?.result, '"done"');
      assert.deepEqual(
        await bed.store.jobs.load(ids, { isBrief: true }),
        whole.map((row) => row && briefRow(row)),
      );
    },
  },
  {
    name: "a load of a size ends early with large rows, and reads small and brief ones at once",
    async run(bed) {
      const large = JSON.stringify("x".repeat(100_000));
      const jobs = times(8, (index) => bed.job(index < 6 ? { payload: large } : {}));
      await bed.addMany(jobs);
      const [ended] = await bed.claim({ limit: 1 });
      if (ended) await bed.write(ended, { type: "cancel" }, { outsider: true });
      const [one, ...others] = idsOf(jobs).toReversed() as [string, ...string[]];
      const ids = [one, bed.nextId(), ...others, bed.nextId()];
      const whole = await bed.store.jobs.load(ids);
      const parts: number[] = [];
      const rows: (JobRow | null)[] = [];
      while (rows.length < ids.length) {
        const part = await bed.store.jobs.load(ids.slice(rows.length), { size: 150_000 });
        assert(part.length > 0, "a load answers with one row at least");
        parts.push(part.filter((row) => row?.payload === large).length);
        rows.push(...part);
      }
      assert.deepEqual(rows, whole);
      assert(
        Math.max(...parts) <= 3,
        `a part of 150,000 characters had ${Math.max(...parts)} rows of 100,000`,
      );
      const [row] = await bed.store.jobs.load([ids[4] as string, ids[5] as string], { size: 1 });
      assert.deepEqual(row, whole[4]);
      const brief = await bed.store.jobs.load(ids, { size: 150_000, isBrief: true });
      assert.deepEqual(
        brief,
        whole.map((row) => row && briefRow(row)),
      );
    },
  },
];

const claiming: ConformanceCase[] = [
  {
    name: "a claim takes the best first: by priority, then by due time, then by id",
    home: QUEUE_HOME,
    async run(bed) {
      const { now } = bed;
      const sketches = [-100, 100, 0, 0, 7, -1].map((priority, index) => ({
        priority,
        dueAt: now - index * 1_000,
      }));
      const jobs = [...sketches, ...sketches].map((sketch) => bed.job(sketch));
      const shuffled = jobs.toSorted(() => bed.random() - 0.5);
      await bed.addMany(shuffled);
      const expected = jobs.toSorted((a, b) => a.image.rank - b.image.rank || (a.id < b.id ? -1 : 1));
      assert.deepEqual(idsOf(await bed.claim()), idsOf(expected));
    },
  },
  {
    name: "a job that was given another priority is claimed by its new rank, keeps it, and every read shows it",
    async run(bed) {
      const [first, second] = [await bed.add(), await bed.add({ priority: 5 })];
      const raised = await bed.write(first, { type: "prioritise", priority: 50 }, { outsider: true });
      assert.equal(raised.priority, 50);
      const [listed] = await jobsOf(bed.store);
      assert.equal(listed?.priority, 50);
      const claimed = await bed.claim({ limit: 2 });
      assert.deepEqual(
        claimed.map(({ id, priority }) => [id, priority]),
        [
          [first.id, 50],
          [second.id, 5],
        ],
      );
      const released = await bed.write(claimed[0] as JobRow, { type: "release" });
      assert.deepEqual([released.state, released.priority], ["available", 50]);
    },
  },
  {
    name: "jobs of one priority and instant come in the order of their ids, claim after claim",
    home: QUEUE_HOME,
    async run(bed) {
      const jobs = times(50, () => bed.job());
      await bed.addMany(jobs.toReversed());
      const claimed = [];
      for (let round = 0; round < 10; round++) claimed.push(...(await bed.claim({ limit: 5 })));
      assert.deepEqual(idsOf(claimed), idsOf(jobs));
      assert.deepEqual(await bed.claim(), []);
    },
  },
  {
    name: "a claim takes no more than its limit and only from its queue",
    async run(bed) {
      await bed.addMany(times(3, () => bed.job({ queue: "a" })));
      const others = times(3, () => bed.job({ queue: "b" }));
      await bed.addMany(others);
      assert.deepEqual(idsOf(await bed.claim({ queue: "b", limit: 2 })), idsOf(others.slice(0, 2)));
      assert.deepEqual(await bed.claim({ queue: "c" }), []);
      assert.equal((await bed.claim({ queue: "a" })).length, 3);
    },
  },
  {
    name: "a claim takes only available jobs",
    async run(bed) {
      await bed.add({ dueAt: bed.now + 1 });
      await bed.add({ needs: 1 });
      await bed.add({ limitKey: "key" });
      await bed.write(await bed.add(), { type: "cancel" }, { outsider: true });
      assert.deepEqual(await bed.claim({ now: bed.now + 60_000 }), []);
    },
  },
  {
    name: "a paused queue gives nothing, and everything after it is resumed",
    async run(bed) {
      const key = pauseKey("paused");
      await bed.addMany([bed.job({ queue: "paused" }), bed.job()]);
      assert.deepEqual(await bed.effect({ put: key, body: null, wakeAt: null }), { ok: true });
      assert.deepEqual(await bed.claim({ queue: "paused" }), []);
      assert.equal((await bed.claim()).length, 1);
      assert.deepEqual(await bed.effect({ delete: key }), { ok: true });
      assert.equal((await bed.claim({ queue: "paused" })).length, 1);
    },
  },
  {
    name: "a claim skips jobs below the rank it starts from, and takes them from 0",
    async run(bed) {
      const urgent = await bed.add({ priority: 10 });
      const plain = await bed.add({ priority: 0 });
      const from = rankOf(0, 0);
      assert.deepEqual(idsOf(await bed.claim({ from })), [plain.id]);
      assert.deepEqual(idsOf(await bed.claim({ from: 0 })), [urgent.id]);
    },
  },
  {
    name: "a claim writes what decide would, on every field",
    run: claimsAsDecided,
  },
];

async function claimsAsDecided(bed: TestBed): Promise<void> {
  const { now } = bed;
  await bed.addMany([
    bed.job(),
    bed.job({ heartbeat: 3_000 }),
    bed.job({ heartbeat: 60_000, waitAt: now + 1_000 }),
    bed.job({ totalAt: now + 2_000, waitAt: now + 9_000, priority: -5 }),
  ]);
  const request = claimRequest(bed, { now: now + 17, salt: 123_456, worker: "someone" });
  const before = await jobsOf(bed.store);
  const claimed = await bed.store.jobs.claim(request);
  assert.equal(claimed.length, before.length);
  for (const row of claimed) {
    const was = found(before.find(({ id }) => id === row.id));
    assert.deepEqual(row, claimedRow(was, request));
    assert.deepEqual(await bed.load(row.id), row);
  }
}

const limits: ConformanceCase[] = [
  {
    name: "a claim's limit is a whole number from 1 to 1,000",
    async run(bed) {
      await bed.add();
      for (const limit of [0, -1, 1.5, Number.NaN, BATCH_LIMIT + 1]) {
        await assert.rejects(bed.claim({ limit }), { code: "invalid_limit" }, `limit ${limit}`);
      }
      assert.equal((await bed.claim({ limit: BATCH_LIMIT })).length, 1);
    },
  },
  {
    name: "no call takes more than 1,000 items",
    async run(bed) {
      const { store, now } = bed;
      const jobs = times(BATCH_LIMIT + 1, () => bed.job());
      await assert.rejects(store.jobs.enqueue(jobs, { now }), { code: "invalid_limit" });
      assert.equal((await depthOf(store)).available, 0);
      const units = jobs.map(() => ({ effects: [{ event: 1 }] }));
      await assert.rejects(store.commit(units, { now }), { code: "invalid_limit" });
      assert.deepEqual((await store.inspect.events(null, 10)).events, []);
    },
  },
  {
    name: "a closed store refuses every call, and can be closed twice",
    async run({ store, now }) {
      await store.close();
      await store.close();
      const closed = { code: "closed" };
      await assert.rejects(store.clock(), closed);
      await assert.rejects(store.commit([], { now }), closed);
      await assert.rejects(store.jobs.enqueue([], { now }), closed);
      await assert.rejects(store.jobs.load([]), closed);
      await assert.rejects(store.jobs.sweep({ now, limit: 1, holdUntil: now }), closed);
      await assert.rejects(store.records.load([]), closed);
      await assert.rejects(depthOf(store), closed);
      await assert.rejects(
        store.listen(() => {}),
        closed,
      );
    },
  },
];

const relaxing: ConformanceCase[] = [
  {
    name: "a relaxed commit is guarded like any other, and visible at once to every reader",
    async run(bed) {
      await bed.add();
      const [row] = await bed.claim();
      const { id, fence } = found(row);
      const write = (progress: string, under: number) =>
        bed.store.commit([{ job: { id, fence: under, documents: { progress } } }], {
          now: bed.now,
          relaxed: true,
        });
      assert.deepEqual(await write("1", fence), [{ ok: true }]);
      assert.equal((await bed.load(id))?.progress, "1");
      const [lost] = await write("2", fence - 1);
      assert.deepEqual([lost?.ok, (await bed.load(id))?.progress], [false, "1"]);
    },
  },
];

export const contract: ConformanceSection = {
  name: "contract and order",
  cases: [...enqueueing, ...claiming, ...limits, ...relaxing],
};
