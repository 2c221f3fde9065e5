import assert from "node:assert/strict";
import { availableRow, countedDownRow } from "../../core/job/decide/store-formulas.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Unit } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { batches, found, idsOf, refused, type TestBed, times } from "./test-bed.ts";

const countdowns: ConformanceCase[] = [
  {
    name: "2,000 countdowns of one step end at zero, and wake it only then",
    timeout: 120_000,
    async run(bed) {
      const step = await bed.add({ needs: 2_000 });
      const handles = await bed.handles(4);
      const units = times(1_999, (): Unit => ({ effects: [{ countdown: step.id }] }));
      const shares = batches(batches(units, 100), 5);
      await Promise.all(
        shares.map(async (share, index) => {
          for (const batch of share) await handles[index]?.commit(batch, { now: bed.now });
        }),
      );
      const waiting = found(await bed.load(step.id));
      assert.deepEqual(waiting, { ...step, needs: 1 });
      assert.deepEqual((await bed.sweep(bed.now + 60_000)).jobs, []);
      await bed.effect({ countdown: step.id });
      const woken = found(await bed.load(step.id));
      assert.deepEqual(woken, { ...step, needs: 0, wake: "decide", wakeAt: bed.now, rev: step.rev + 1 });
      const [due] = (await bed.sweep(bed.now)).jobs;
      const ready = await bed.write(found(due), { type: "wake" }, { outsider: true });
      assert.equal(ready.state, "available");
      assert.equal((await bed.claimOne()).id, step.id);
    },
  },
  {
    name: "an outsider that read a step before its last countdown is stale: the wake is not overwritten",
    async run(bed) {
      const read = await bed.add({ needs: 1 });
      await bed.effect({ countdown: read.id });
      const [outcome] = await bed.commit(
        bed.unit(read, { type: "extend", total: 60_000 }, { outsider: true }),
      );
      assert.equal(refused(outcome).because, "stale");
      assert.deepEqual(idsOf((await bed.sweep()).jobs), [read.id]);
    },
  },
  {
    name: "a countdown of a job that needs nothing, has ended or is unknown does nothing",
    async run(bed) {
      const plain = await bed.add();
      const ended = await bed.write(await bed.add({ needs: 1 }), { type: "cancel" }, { outsider: true });
      for (const id of [plain.id, ended.id, bed.nextId()]) {
        assert.deepEqual(await bed.effect({ countdown: id }), { ok: true });
      }
      assert.deepEqual(await bed.store.jobs.load([plain.id, ended.id]), [plain, ended]);
    },
  },
];

/** What the engine needs from a store to start and advance a workflow. */
const units: ConformanceCase[] = [
  {
    name: "a unit that adds 500 jobs with a record that must not exist adds all of them, or none",
    timeout: 60_000,
    async run(bed) {
      const record = ["workflow", "w"] as const;
      const make = () =>
        times(500, (nth) =>
          bed.job({ needs: nth % 3, workflow: "w", options: { step: { wakes: [bed.nextId()] } } }),
        );
      const unitOf = (jobs: readonly NewJob[]): Unit => ({
        when: [{ record, version: 0 }],
        effects: [
          { put: record, body: { state: "running" }, wakeAt: null },
          ...jobs.map((job) => ({ enqueue: job })),
        ],
      });
      const [first, second] = [make(), make()];
      assert.deepEqual(await bed.commit(unitOf(first)), [{ ok: true }]);
      assert.equal(refused((await bed.commit(unitOf(second)))[0]).because, "conflict");
      const rows = await bed.store.jobs.load(first.map(({ id }) => id));
      for (const [nth, row] of rows.entries()) {
        const { needs, workflow, options } = found(row ?? null);
        assert.deepEqual([needs, workflow, options], [nth % 3, "w", first[nth]?.options]);
      }
      const left = await bed.store.jobs.load(second.map(({ id }) => id));
      assert(
        left.every((row) => row === null),
        "a unit that was refused has added jobs",
      );
    },
  },
  {
    name: "the effects of a unit are applied in their order: it can count down what it adds",
    async run(bed) {
      const [first, second] = [bed.job({ needs: 1 }), bed.job({ needs: 2 })];
      await bed.effect(
        { enqueue: first },
        { countdown: first.id },
        { put: ["workflow", "w"], body: null, wakeAt: null },
        { enqueue: second },
        { countdown: second.id },
      );
      assert.equal(found(await bed.load(first.id)).needs, 0);
      assert.equal(found(await bed.load(second.id)).needs, 1);
      assert.deepEqual(idsOf((await bed.sweep()).jobs), [first.id]);
    },
  },
  { name: "a settle counts down in its commit, and one that is refused counts nothing", run: settles },
  {
    name: "a settle counts several down, and each as often as it is named",
    async run(bed) {
      const [one, two] = [await bed.add({ needs: 1 }), await bed.add({ needs: 3 })];
      const running = await bed.start(await claimPlain(bed));
      const effects = [one, two, two].map(({ id }) => ({ countdown: id }));
      await bed.commit({ ...bed.unit(running, { type: "succeed", signalled: false }), effects });
      assert.deepEqual(
        (await bed.store.jobs.load([one.id, two.id])).map((row) => row?.needs),
        [0, 1],
      );
    },
  },
  {
    name: "the results for many steps at once, half a million characters each, come back unchanged",
    timeout: 60_000,
    async run(bed) {
      const rows = await Promise.all(times(12, () => bed.add({ needs: 1 })));
      const parentResults = (nth: number) => `["${String(nth).repeat(250_000)}"]`;
      const written = rows.map(({ id, fence, rev }, nth): Unit => {
        const documents = { options: { parentResults: parentResults(nth) } };
        return { job: { id, fence, rev, documents } };
      });
      for (const outcome of await bed.commit(...written)) assert.deepEqual(outcome, { ok: true });
      for (const [nth, { id }] of rows.entries()) {
        const row = found(await bed.load(id));
        assert(row.options?.parentResults === parentResults(nth), `the results for step ${nth} are others`);
      }
    },
  },
];

/** A claimed job without dependencies. */
async function claimPlain(bed: TestBed): Promise<JobRow> {
  await bed.add();
  return bed.claimOne();
}

async function settles(bed: TestBed): Promise<void> {
  const next = await bed.add({ needs: 2 });
  const effects = [{ countdown: next.id }];
  const running = await bed.start(await claimPlain(bed));
  const success = { ...bed.unit(running, { type: "succeed", signalled: false }), effects };
  const stranger = { ...success, job: { ...success.job, id: running.id, fence: running.fence + 1 } };
  assert.equal(refused((await bed.commit(stranger))[0]).because, "lost");
  assert.equal(found(await bed.load(next.id)).needs, 2);
  assert.deepEqual(await bed.commit(success), [{ ok: true }]);
  assert.equal(found(await bed.load(next.id)).needs, 1);
  // Its reply was lost, so it is sent again.
  assert.equal(refused((await bed.commit(success))[0]).because, "lost");
  assert.equal(found(await bed.load(next.id)).needs, 1);
}

const limits: ConformanceCase[] = [
  {
    name: "a step with a limit is woken at its last need but one, and its limit does not admit it before the last",
    async run(bed) {
      const step = await bed.add({ limitKey: "key", needs: 3, options: { limit: {} } });
      await bed.effect({ countdown: step.id });
      const counted = countedDownRow(step, bed.now);
      assert.deepEqual(await bed.load(step.id), counted);
      await bed.effect({ countdown: step.id }, { admit: "key", count: 10, limit: { concurrency: 5 } });
      assert.deepEqual(await bed.load(step.id), countedDownRow(counted, bed.now));
      assert.deepEqual(idsOf((await bed.sweep()).jobs), [step.id]);
      await bed.effect({ countdown: step.id }, { admit: "key", count: 10, limit: { concurrency: 5 } });
      assert.equal(found(await bed.load(step.id)).state, "available");
      const other = await bed.add({ limitKey: "key", needs: 2, options: { limit: {} } });
      await bed.effect({ countdown: other.id }, { countdown: other.id });
      assert.equal(found(await bed.load(other.id)).rev, other.rev + 2);
    },
  },
  {
    name: "a scheduled job is counted down as well, so its limit can admit it when it is due",
    async run(bed) {
      const step = await bed.add({ limitKey: "key", needs: 1, options: { limit: {} } });
      const { image } = bed.job({ dueAt: bed.now + 60_000 });
      const write = { id: step.id, fence: step.fence, rev: step.rev, image };
      await bed.commit({ job: write, effects: [{ countdown: step.id }] });
      const row = found(await bed.load(step.id));
      assert.deepEqual([row.state, row.needs, row.wakeAt], ["scheduled", 0, bed.now]);
    },
  },
  {
    name: "a limit admits its best n, and what it admits can be claimed",
    async run(bed) {
      const urgent = bed.job({ limitKey: "key", priority: 5 });
      const [first, second, third] = times(3, () => bed.job({ limitKey: "key" }));
      const other = bed.job({ limitKey: "other" });
      assert(first && second && third);
      await bed.addMany([third, other, urgent, second, first]);
      assert.deepEqual(await bed.claim(), []);
      await bed.effect({ admit: "key", count: 2 });
      assert.deepEqual(idsOf(await bed.claim()), [urgent.id, first.id]);
      await bed.effect({ admit: "key", count: 100 });
      assert.deepEqual(idsOf(await bed.claim()), [second.id, third.id]);
      await bed.effect({ admit: "key", count: 1 }, { admit: "unknown", count: 1 });
      assert.deepEqual(await bed.claim(), []);
    },
  },
  { name: "an admission writes a job as a promotion does", run: admitsAsPromoted },
  {
    name: "a limit admits no job that still needs others, and none that has ended",
    async run(bed) {
      const pending = await bed.add({ limitKey: "key", needs: 1 });
      await bed.write(await bed.add({ limitKey: "key" }), { type: "cancel" }, { outsider: true });
      await bed.effect({ admit: "key", count: 10 });
      assert.deepEqual(await bed.claim(), []);
      assert.deepEqual(await bed.load(pending.id), pending);
      await bed.effect({ countdown: pending.id }, { admit: "key", count: 10 });
      assert.deepEqual(idsOf(await bed.claim()), [pending.id]);
    },
  },
];

async function admitsAsPromoted(bed: TestBed): Promise<void> {
  const row = await bed.add({ limitKey: "key", totalAt: bed.now + 5_000, waitAt: bed.now + 9_000 });
  await bed.effect({ admit: "key", count: 1 });
  assert.deepEqual(await bed.load(row.id), availableRow(row));
}

export const workflows: ConformanceSection = {
  name: "countdowns and limits",
  cases: [...countdowns, ...units, ...limits],
};
