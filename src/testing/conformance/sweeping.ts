import assert from "node:assert/strict";
import { availableRow } from "../../core/job/decide/store-formulas.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, idsOf, times } from "./test-bed.ts";

const promotion: ConformanceCase[] = [
  {
    name: "delayed jobs become available in one set, counted by queue, at their instant and not before",
    async run(bed) {
      const dueAt = bed.now + 1_000;
      const plain = await bed.add({ dueAt });
      const limited = await bed.add({ dueAt, waitAt: dueAt + 500, totalAt: dueAt + 900, queue: "other" });
      await bed.addMany(times(5, () => bed.job({ dueAt, queue: "other" })));
      const early = await bed.sweep(dueAt - 1);
      assert.deepEqual([early.ready.size, early.jobs, early.nextWakeAt], [0, [], dueAt]);
      const swept = await bed.sweep(dueAt);
      assert.deepEqual(
        new Map(swept.ready),
        new Map([
          ["default", 1],
          ["other", 6],
        ]),
      );
      assert.deepEqual(swept.jobs, []);
      assert.deepEqual(await bed.load(plain.id), availableRow(plain));
      assert.deepEqual(await bed.load(limited.id), availableRow(limited));
      assert.equal(swept.nextWakeAt, dueAt + 500);
    },
  },
  {
    name: "a retry becomes available when its backoff is over",
    async run(bed) {
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const error = { type: "Error", code: "handler_error", message: "no" };
      const waiting = await bed.write(running, { type: "fail", error, signalled: false });
      assert.deepEqual([waiting.state, waiting.wake], ["retryable", "ready"]);
      const { ready } = await bed.sweep(found(waiting).wakeAt ?? 0);
      assert.deepEqual([...ready], [["default", 1]]);
      const again = await bed.claimOne();
      assert.deepEqual([again.id, again.attempt], [running.id, 1]);
    },
  },
  {
    name: "a sweep promotes and returns at most its limit, and says that more is due",
    async run(bed) {
      const dueAt = bed.now + 1_000;
      await bed.addMany(times(7, () => bed.job({ dueAt })));
      await bed.addMany(times(7, () => bed.job({ waitAt: dueAt, queue: "other" })));
      const returned = new Set<string>();
      let promoted = 0;
      let rounds = 0;
      for (; promoted + returned.size < 14 && rounds < 14; rounds++) {
        const swept = await bed.sweep(dueAt, 3);
        const ready = swept.ready.get("default") ?? 0;
        assert(ready <= 3 && swept.jobs.length <= 3);
        promoted += ready;
        for (const { id } of swept.jobs) returned.add(id);
        if (promoted + returned.size < 14) assert(swept.nextWakeAt !== null && swept.nextWakeAt <= dueAt);
      }
      assert.deepEqual([promoted, returned.size], [7, 7]);
      assert(rounds >= 3);
    },
  },
];

const deciding: ConformanceCase[] = [
  {
    name: "a job that needs a decision is returned once, and again after the hold",
    async run(bed) {
      const waitAt = bed.now + 1_000;
      const row = await bed.add({ waitAt });
      const first = await bed.sweep(waitAt);
      assert.deepEqual(first.jobs, [{ ...row, wakeAt: waitAt + 5_000 }]);
      assert.equal(first.nextWakeAt, waitAt + 5_000);
      assert.deepEqual((await bed.sweep(waitAt + 4_999)).jobs, []);
      const second = await bed.sweep(waitAt + 5_000);
      assert.deepEqual(idsOf(second.jobs), [row.id]);
      const ended = await bed.write(
        found(second.jobs[0]),
        { type: "wake" },
        { now: waitAt + 5_000, outsider: true },
      );
      assert.equal(ended.state, "discarded");
      assert.deepEqual((await bed.sweep(waitAt + 60_000)).jobs, []);
    },
  },
  {
    name: "a job that a sweep holds can still be claimed and settled",
    async run(bed) {
      const totalAt = bed.now + 60_000;
      const row = await bed.add({ totalAt });
      assert.deepEqual(idsOf((await bed.sweep(totalAt)).jobs), [row.id]);
      const running = await bed.start(await bed.claimOne());
      assert.equal((await bed.write(running, { type: "succeed", signalled: false })).state, "completed");
    },
  },
  {
    name: "nextWakeAt is the smallest of jobs and records, and null when nothing is pending",
    async run(bed) {
      await bed.add();
      assert.equal((await bed.sweep()).nextWakeAt, null);
      await bed.add({ dueAt: bed.now + 3_000 });
      assert.equal((await bed.sweep()).nextWakeAt, bed.now + 3_000);
      await bed.effect({ put: ["kit", "a"], body: 1, wakeAt: bed.now + 2_000 });
      assert.equal((await bed.sweep()).nextWakeAt, bed.now + 2_000);
      await bed.add({ totalAt: bed.now + 1_000 });
      assert.equal((await bed.sweep()).nextWakeAt, bed.now + 1_000);
      await bed.effect({ delete: ["kit", "a"] });
      assert.equal((await bed.sweep(bed.now + 1_000)).nextWakeAt, bed.now + 3_000);
    },
  },
  {
    name: "a finished job is never swept",
    async run(bed) {
      const dueAt = bed.now + 1_000;
      for (const sketch of [{ dueAt }, { waitAt: dueAt }, { totalAt: dueAt }]) {
        await bed.write(await bed.add(sketch), { type: "cancel" }, { outsider: true });
      }
      const { ready, jobs, nextWakeAt } = await bed.sweep(dueAt + 1);
      assert.deepEqual([ready.size, jobs, nextWakeAt], [0, [], null]);
    },
  },
];

export const sweeping: ConformanceSection = { name: "sweeping", cases: [...promotion, ...deciding] };
