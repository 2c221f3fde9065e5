import assert from "node:assert/strict";
import { nextFence } from "../../core/job/job.ts";
import type { Unit } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { batches, found, idsOf, refused, type TestBed, times } from "./test-bed.ts";

const countdowns: ConformanceCase[] = [
  {
    name: "10,000 countdowns of one step end at zero, and wake it then and not before",
    timeout: 120_000,
    async run(bed) {
      const step = await bed.add({ needs: 10_000 });
      const handles = await bed.handles(4);
      const units = times(9_999, (): Unit => ({ effects: [{ countdown: step.id }] }));
      const lanes = batches(batches(units, 500), 5);
      await Promise.all(
        lanes.map(async (lane, index) => {
          for (const batch of lane) await handles[index]?.commit(batch, { now: bed.now });
        }),
      );
      const waiting = found(await bed.load(step.id));
      assert.deepEqual(waiting, { ...step, needs: 1 });
      assert.deepEqual((await bed.sweep(bed.now + 60_000)).jobs, []);
      await bed.effect({ countdown: step.id });
      const woken = found(await bed.load(step.id));
      assert.deepEqual(woken, { ...step, needs: 0, wake: "judge", wakeAt: bed.now, rev: step.rev + 1 });
      const [due] = (await bed.sweep(bed.now)).jobs;
      const ready = await bed.write(found(due), { type: "wake" }, { outsider: true });
      assert.equal(ready.state, "available");
      assert.equal((await bed.claimOne()).id, step.id);
    },
  },
  {
    name: "an outsider who read a step before its last countdown is stale: the wake is not written over",
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

const stops: ConformanceCase[] = [
  {
    name: "a stop ends a live job whatever its fence, and voids its attempt",
    async run(bed) {
      const waiting = await bed.add({ needs: 1, queue: "other" });
      await bed.add();
      const held = await bed.start(await bed.claimOne());
      for (const row of [waiting, held]) {
        const image = bed.unit(row, { type: "cancel" }).job?.image;
        assert(image);
        const fence = nextFence(row.fence, 99);
        assert.deepEqual(await bed.effect({ stop: row.id, image, nextFence: fence }), { ok: true });
        const stopped = { ...row, ...image, fence, rev: row.rev + 1 };
        assert.deepEqual(await bed.load(row.id), stopped);
        // A second stop finds a job that has ended, and leaves it as it is.
        await bed.effect({ stop: row.id, image, nextFence: nextFence(fence, 1) });
        assert.deepEqual(await bed.load(row.id), stopped);
      }
      const late = bed.unit(held, { type: "succeed", signalled: false });
      assert.equal(refused((await bed.commit(late))[0]).because, "lost");
      assert.deepEqual((await bed.sweep(bed.now + 3_600_000)).jobs, []);
    },
  },
  {
    name: "a stop of an unknown job does nothing",
    async run(bed) {
      const { image } = bed.job();
      assert.deepEqual(await bed.effect({ stop: bed.nextId(), image, nextFence: 1 }), { ok: true });
    },
  },
];

const gates: ConformanceCase[] = [
  {
    name: "a gate admits its best n, and what it admits can be claimed",
    async run(bed) {
      const urgent = bed.job({ gate: "gate", priority: 5 });
      const [first, second, third] = times(3, () => bed.job({ gate: "gate" }));
      const other = bed.job({ gate: "other gate" });
      assert(first && second && third);
      await bed.addMany([third, other, urgent, second, first]);
      assert.deepEqual(await bed.claim(), []);
      await bed.effect({ admit: "gate", count: 2 });
      assert.deepEqual(idsOf(await bed.claim()), [urgent.id, first.id]);
      await bed.effect({ admit: "gate", count: 100 });
      assert.deepEqual(idsOf(await bed.claim()), [second.id, third.id]);
      await bed.effect({ admit: "gate", count: 1 }, { admit: "unknown", count: 1 });
      assert.deepEqual(await bed.claim(), []);
    },
  },
  { name: "an admitted job is written like a promoted one", run: admitsAsPromoted },
  {
    name: "a gate admits no job that still needs others, and none that has ended",
    async run(bed) {
      const held = await bed.add({ gate: "gate", needs: 1 });
      await bed.write(await bed.add({ gate: "gate" }), { type: "cancel" }, { outsider: true });
      await bed.effect({ admit: "gate", count: 10 });
      assert.deepEqual(await bed.claim(), []);
      assert.deepEqual(await bed.load(held.id), held);
      await bed.effect({ countdown: held.id }, { admit: "gate", count: 10 });
      assert.deepEqual(idsOf(await bed.claim()), [held.id]);
    },
  },
];

async function admitsAsPromoted(bed: TestBed): Promise<void> {
  const row = await bed.add({ gate: "gate", totalAt: bed.now + 5_000, waitAt: bed.now + 9_000 });
  await bed.effect({ admit: "gate", count: 1 });
  const admitted = { state: "available", wake: "judge", wakeAt: bed.now + 5_000, rev: row.rev + 1 } as const;
  assert.deepEqual(await bed.load(row.id), { ...row, ...admitted });
}

export const workflows: ConformanceSection = {
  name: "countdowns, stops and gates",
  cases: [...countdowns, ...stops, ...gates],
};
