import assert from "node:assert/strict";
import type { LookRequest } from "../../ports/look.ts";
import { pauseKey } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { type TestBed, times } from "./test-bed.ts";

const look = (bed: TestBed, request: Partial<LookRequest>) =>
  bed.store.look({ queues: [], destinations: [], records: [], ...request });

const cases: ConformanceCase[] = [
  {
    name: "a look at nothing finds nothing",
    async run(bed) {
      const looked = await look(bed, {
        queues: ["empty"],
        destinations: ["mail"],
        records: [["queue", "x"]],
      });
      assert.deepEqual(looked, { nextWakeAt: null, ready: [], nextDueAt: null, versions: [0] });
    },
  },
  {
    name: "a look names the queues with an available job, and not those that are paused, delayed or claimed",
    async run(bed) {
      const names = ["a", "b", 'odd "name", {with} \\marks', "paused", "later", "claimed"];
      for (const queue of names)
        await bed.add({ queue, ...(queue === "later" && { dueAt: bed.now + 1_000 }) });
      await bed.claim({ queue: "claimed" });
      await bed.effect({ put: pauseKey("paused"), body: null, wakeAt: null });
      const { ready } = await look(bed, { queues: ["none", ...names, "b"] });
      assert.deepEqual(new Set(ready), new Set(names.slice(0, 3)));
      assert.deepEqual((await look(bed, {})).ready, []);
    },
  },
  {
    name: "a look says when a sweep is due, for jobs and for records, and hands nothing out",
    async run(bed) {
      await bed.add({ dueAt: bed.now + 3_000 });
      assert.equal((await look(bed, {})).nextWakeAt, bed.now + 3_000);
      await bed.add({ waitAt: bed.now + 2_000 });
      assert.equal((await look(bed, {})).nextWakeAt, bed.now + 2_000);
      await bed.effect({ put: ["cron", "x"], body: null, wakeAt: bed.now + 1_000 });
      assert.equal((await look(bed, {})).nextWakeAt, bed.now + 1_000);
      assert.equal((await bed.sweep(bed.now + 3_000)).jobs.length, 1);
    },
  },
  {
    name: "a look says when the first timeout of its destinations is due",
    async run(bed) {
      const insert = (id: string, destination: string, dueAt: number) =>
        bed.effect({ request: { id, destination, dueAt, payload: "null" } });
      await insert("1", "mail", bed.now + 3_000);
      await insert("2", "mail", bed.now + 2_000);
      await insert("3", "other", bed.now + 1_000);
      const nextDueAt = async (...destinations: string[]) => (await look(bed, { destinations })).nextDueAt;
      assert.equal(await nextDueAt("mail"), bed.now + 2_000);
      assert.equal(await nextDueAt("mail", "other"), bed.now + 1_000);
      assert.equal(await nextDueAt("none"), null);
      assert.equal(await nextDueAt(), null);
    },
  },
  {
    name: "a look gives the versions of records in the order in which they were asked for",
    async run(bed) {
      const keys = (["b", "a", "c"] as const).map((key) => ["setting", key] as const);
      await bed.effect(...keys.slice(0, 2).map((put) => ({ put, body: { n: 1 }, wakeAt: null })));
      const versions = async () => (await look(bed, { records: keys })).versions;
      const rows = await bed.store.records.load(keys);
      assert.deepEqual(
        await versions(),
        rows.map((row) => row?.version ?? 0),
      );
      const before = await versions();
      await bed.effect({ put: ["setting", "b"], body: { n: 2 }, wakeAt: null });
      const after = await versions();
      assert((after[0] as number) > (before[0] as number));
      assert.deepEqual(after.slice(1), before.slice(1));
      await bed.effect({ delete: ["setting", "b"] });
      assert.equal((await versions())[0], 0);
    },
  },
  {
    name: "a look at 1,000 queues is one call, and more are refused",
    async run(bed) {
      await bed.addMany(times(1_000, (nth) => bed.job({ queue: `queue-${nth}` })));
      const queues = times(1_000, (nth) => `queue-${nth}`);
      assert.equal((await look(bed, { queues })).ready.length, 1_000);
      await assert.rejects(look(bed, { queues: [...queues, "more"] }), { code: "invalid_limit" });
    },
  },
];

export const looking: ConformanceSection = { name: "looking", cases };
