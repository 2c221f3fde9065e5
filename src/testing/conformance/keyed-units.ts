import assert from "node:assert/strict";
import { cellOfRecord } from "../../core/home/cell-of-row.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { Outcome, RecordKey, Store, Unit } from "../../ports/store.ts";
import { depthOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, type TestBed, times } from "./test-bed.ts";

const HANDLES = 6;
const ROUNDS = 25;
const KEY: RecordKey = ["cron", "nightly"];

/** What a cron commits when it fires: its job and its record, under the record's version. */
function firing(job: NewJob, version: number, wakeAt: number): Unit {
  return {
    when: [{ record: KEY, version }],
    effects: [{ enqueue: job }, { put: KEY, body: { last: job.id }, wakeAt }],
  };
}

async function versionOf(store: Store): Promise<number> {
  const [record] = await store.records.load([KEY]);
  return record?.version ?? 0;
}

const cases: ConformanceCase[] = [
  {
    name: "if many processes fire a cron for one instant, one adds its job, even for a new record",
    timeout: 60_000,
    async run(bed) {
      const handles = await bed.handles(HANDLES);
      for (let round = 1; round <= ROUNDS; round++) {
        const version = await versionOf(bed.store);
        const jobs = handles.map(() => bed.job());
        const outcomes = await Promise.all(
          handles.map((store, index) =>
            commitOne(bed, store, firing(jobs[index] as NewJob, version, bed.now)),
          ),
        );
        const winners = jobs.filter((_, index) => outcomes[index]?.ok);
        assert.equal(winners.length, 1, "one of them wins");
        for (const outcome of outcomes) assert(outcome.ok || outcome.because === "conflict");
        assert.equal((await depthOf(bed.store)).available, round, "what was refused added nothing");
        const [record] = await bed.store.records.load([KEY]);
        assert.deepEqual(record?.body, { last: winners[0]?.id }, "the record is that of the winner");
      }
    },
  },
  {
    name: "a due record is returned once until its hold ends, and its put says when it is due again",
    async run(bed) {
      await bed.effect({ put: KEY, body: {}, wakeAt: bed.now });
      const [due] = (await bed.sweep()).records;
      assert.deepEqual(due?.key, KEY);
      assert.deepEqual((await bed.sweep()).records, []);
      const unit = firing(bed.job(), due?.version as number, bed.now + 60_000);
      assert.deepEqual(await bed.commit(unit), [{ ok: true }], "a hold does not change the version");
      assert.deepEqual((await bed.sweep(bed.now + 59_999)).records, []);
      assert.equal((await bed.sweep(bed.now + 60_000)).records.length, 1);
    },
  },
  {
    name: "a unit that ends a job frees its unique key for the job that it adds",
    async run(bed) {
      const old = await bed.add({ uniqueKey: "key" });
      const made = bed.job({ uniqueKey: "key" });
      const unit = bed.unit(old, { type: "cancel" }, { outsider: true });
      assert.deepEqual(await bed.commit({ ...unit, effects: [{ enqueue: made }] }), [{ ok: true }]);
      assert.equal(found(await bed.load(old.id)).state, "cancelled");
      assert.equal(found(await bed.load(made.id)).state, "available");
      const blocked = bed.job({ uniqueKey: "key" });
      assert.deepEqual(await bed.store.jobs.enqueue([blocked], { now: bed.now }), [{ duplicate: made.id }]);
    },
  },
  {
    name: "if many processes replace the job of a unique key, one does, and concurrent enqueues never make two",
    timeout: 60_000,
    async run(bed) {
      const handles = await bed.handles(HANDLES);
      for (let round = 0; round < ROUNDS; round++) {
        const uniqueKey = `key ${round}`;
        const old = await bed.add({ uniqueKey });
        const outcomes = await Promise.all(
          handles.map(async (store, index): Promise<boolean> => {
            const job = bed.job({ uniqueKey });
            if (index % 2 === 1) {
              const [answer] = await store.jobs.enqueue([job], { now: bed.now });
              return answer === "created";
            }
            const unit = bed.unit(old, { type: "cancel" }, { outsider: true });
            return (await commitOne(bed, store, { ...unit, effects: [{ enqueue: job }] })).ok;
          }),
        );
        assert.equal(outcomes.filter(Boolean).length, 1, "one job replaced the old one");
        const { available } = await depthOf(bed.store);
        assert.equal(available, round + 1, "one job lives under each key");
      }
    },
  },
  {
    name: "if many processes end a waiting job, add its successor and put the record of a key, one does all of it",
    home: cellOfRecord(KEY),
    timeout: 60_000,
    async run(bed) {
      const handles = await bed.handles(HANDLES);
      for (let round = 0; round < ROUNDS; round++) {
        const old = await bed.add();
        await bed.effect({ put: KEY, body: "old", wakeAt: null });
        const version = await versionOf(bed.store);
        const made = handles.map(() => bed.job());
        const outcomes = await Promise.all(
          handles.map((store, index) => {
            const job = made[index] as (typeof made)[number];
            const unit = bed.unit(old, { type: "cancel", replacedBy: job.id }, { outsider: true });
            const effects = [{ enqueue: job }, { put: KEY, body: job.id, wakeAt: null }];
            return commitOne(bed, store, { ...unit, when: [{ record: KEY, version }], effects });
          }),
        );
        assert.equal(outcomes.filter(({ ok }) => ok).length, 1, "one process did it");
        const winner = made[outcomes.findIndex(({ ok }) => ok)]?.id;
        assert.equal((await bed.store.records.load([KEY]))[0]?.body, winner);
        for (const { id } of made) assert.equal((await bed.load(id)) !== null, id === winner);
      }
    },
  },
  {
    name: "a unit that ends a job under the version of a record does neither if the record has changed",
    async run(bed) {
      const old = await bed.add();
      await bed.effect({ put: KEY, body: 1, wakeAt: null });
      const version = await versionOf(bed.store);
      await bed.effect({ put: KEY, body: 2, wakeAt: null });
      const unit = {
        ...bed.unit(old, { type: "cancel" }, { outsider: true }),
        when: [{ record: KEY, version }],
      };
      const made = times(2, () => bed.job());
      const effects = [...made.map((job) => ({ enqueue: job })), { put: KEY, body: 3, wakeAt: null }];
      const [refused] = await bed.commit({ ...unit, effects });
      assert(refused && !refused.ok && refused.because === "conflict");
      assert.equal(found(await bed.load(old.id)).state, "available");
      for (const { id } of made) assert.equal(await bed.load(id), null);
      assert.equal((await bed.store.records.load([KEY]))[0]?.body, 2);
    },
  },
];

async function commitOne(bed: TestBed, store: Store, unit: Unit): Promise<Outcome> {
  const [outcome] = await store.commit([unit], { now: bed.now });
  return outcome as Outcome;
}

/** What crons and unique jobs need: units that add jobs under the version of a record, or in place of another job. */
export const keyedUnits: ConformanceSection = { name: "keyed units", cases };
