import assert from "node:assert/strict";
import type { Effect, RecordKey, RecordRow, Unit } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { refused, type TestBed, times } from "./test-bed.ts";

const KEY: RecordKey = ["kit", "record"];

async function read(bed: TestBed, key: RecordKey = KEY): Promise<RecordRow | null> {
  return (await bed.store.records.load([key]))[0] ?? null;
}

function put(key: RecordKey, body: RecordRow["body"], wakeAt: number | null = null): Effect {
  return { put: key, body, wakeAt };
}

const records: ConformanceCase[] = [
  {
    name: "each put is a version more, and the last body and wakeAt are kept",
    async run(bed) {
      assert.equal(await read(bed), null);
      await bed.effect(put(KEY, { a: 1 }, bed.now + 5));
      assert.deepEqual(await read(bed), { key: KEY, version: 1, wakeAt: bed.now + 5, body: { a: 1 } });
      await bed.effect(put(KEY, [2]));
      assert.deepEqual(await read(bed), { key: KEY, version: 2, wakeAt: null, body: [2] });
      await bed.effect({ delete: KEY });
      assert.equal(await read(bed), null);
      assert.deepEqual(await bed.effect({ delete: KEY }), { ok: true });
    },
  },
  {
    name: "any JSON is a body, null included, and load answers in the order asked",
    async run(bed) {
      const bodies = [null, true, 0, "", [], {}];
      const keys = bodies.map((_, index): RecordKey => ["kit", `key ${index}`]);
      await bed.effect(...keys.map((key, index) => put(key, bodies[index] ?? null)));
      const rows = await bed.store.records.load([
        ...keys.toReversed(),
        ["kit", "unknown"],
        ["other", "key 0"],
      ]);
      assert.deepEqual(
        rows.map((row) => (row ? row.body : "none")),
        [...bodies.toReversed(), "none", "none"],
      );
    },
  },
  {
    name: "a kind is listed in the order of its keys, after a cursor and up to a limit",
    async run(bed) {
      const keys = ["b", "a", "d", "c", "aa", "B", "10", "9"];
      await bed.effect(...keys.map((key) => put(["kit", key], key)), put(["other", "b"], 1));
      const sorted = keys.toSorted();
      const all = await bed.store.records.list("kit", null, 100);
      assert.deepEqual(
        all.map(({ key }) => key[1]),
        sorted,
      );
      const page = await bed.store.records.list("kit", "aa", 2);
      assert.deepEqual(
        page.map(({ key }) => key[1]),
        ["b", "c"],
      );
      assert.deepEqual(await bed.store.records.list("kit", "d", 2), []);
      assert.deepEqual(await bed.store.records.list("none", null, 2), []);
    },
  },
  {
    name: "a due record is swept at its instant, held, and given again after the hold",
    async run(bed) {
      const wakeAt = bed.now + 1_000;
      await bed.effect(put(KEY, "body", wakeAt), put(["kit", "never"], 1));
      assert.deepEqual((await bed.sweep(wakeAt - 1)).records, []);
      const { records } = await bed.sweep(wakeAt);
      assert.deepEqual(records, [{ key: KEY, version: 1, wakeAt: wakeAt + 5_000, body: "body" }]);
      assert.deepEqual((await bed.sweep(wakeAt)).records, []);
      assert.equal((await bed.sweep(wakeAt + 5_000)).records.length, 1);
      await bed.effect(put(KEY, "body"));
      assert.deepEqual((await bed.sweep(wakeAt + 60_000)).records, []);
    },
  },
];

const guards: ConformanceCase[] = [
  {
    name: "a guard holds for its version only, and 0 means that there is no such record",
    async run(bed) {
      const guarded = async (version: number) =>
        (await bed.commit({ when: [{ record: KEY, version }], effects: [put(KEY, version)] }))[0];
      assert.equal(refused(await guarded(1)).because, "conflict");
      assert.deepEqual(await guarded(0), { ok: true });
      assert.equal(refused(await guarded(0)).because, "conflict");
      assert.equal(refused(await guarded(2)).because, "conflict");
      assert.deepEqual(await guarded(1), { ok: true });
      assert.equal((await read(bed))?.version, 2);
    },
  },
  {
    name: "a unit is all or nothing: after a conflict none of its effects happened",
    async run(bed) {
      const row = await bed.add();
      const waiting = await bed.add({ needs: 1 });
      await bed.effect(put(KEY, 1));
      const unit = bed.unit(
        row,
        { type: "cancel" },
        {
          outsider: true,
          when: [
            { record: KEY, version: 1 },
            { record: ["kit", "other"], version: 7 },
          ],
          effects: [
            { enqueue: bed.job({ queue: "next" }) },
            { countdown: waiting.id },
            put(KEY, 2),
            put(["kit", "new"], 1),
            { event: "never" },
            { log: "never", job: row.id },
          ],
        },
      );
      assert.equal(refused((await bed.commit(unit))[0]).because, "conflict");
      assert.deepEqual(await bed.store.jobs.load([row.id, waiting.id]), [row, waiting]);
      assert.equal((await bed.store.inspect.depth("next")).available, 0);
      assert.equal((await read(bed))?.version, 1);
      assert.equal(await read(bed, ["kit", "new"]), null);
      assert.deepEqual((await bed.store.inspect.events(null, 10)).events, []);
      assert.deepEqual(await bed.store.inspect.logs(row.id), []);
    },
  },
  {
    name: "units are independent: of 100, one lost and one in conflict hurt no other",
    run: independentUnits,
  },
  {
    name: "a later unit of a call sees what an earlier one wrote",
    async run(bed) {
      const increment = (version: number): Unit => ({
        when: [{ record: KEY, version }],
        effects: [put(KEY, version + 1)],
      });
      const outcomes = await bed.commit(increment(0), increment(1), increment(1), increment(2));
      assert.deepEqual(
        outcomes.map(({ ok }) => ok),
        [true, true, false, true],
      );
      assert.equal((await read(bed))?.body, 3);
    },
  },
  {
    name: "an enqueue of a known id as an effect does nothing, and the unit stands",
    async run(bed) {
      const row = await bed.add({ uniqueKey: "key" });
      const again = { ...bed.job(), id: row.id, fresh: false };
      const rival = bed.job({ uniqueKey: "key" });
      assert.deepEqual(await bed.effect({ enqueue: again }, { enqueue: rival }, put(KEY, 1)), { ok: true });
      assert.deepEqual(await bed.store.jobs.load([row.id, rival.id]), [row, null]);
      assert.equal((await read(bed))?.version, 1);
    },
  },
];

async function independentUnits(bed: TestBed): Promise<void> {
  await bed.addMany(times(100, () => bed.job()));
  const rows = await bed.claim();
  const units = rows.map((row, index): Unit => {
    const unit = bed.unit(row, { type: "release", delay: 60_000 }, { effects: [{ event: index }] });
    if (index === 17 && unit.job) return { ...unit, job: { ...unit.job, fence: row.fence + 1 } };
    return index === 71 ? { ...unit, when: [{ record: KEY, version: 1 }] } : unit;
  });
  const outcomes = await bed.store.commit(units, { now: bed.now });
  for (const [index, outcome] of outcomes.entries()) {
    if (index === 17) assert.equal(refused(outcome).because, "lost");
    else if (index === 71) assert.equal(refused(outcome).because, "conflict");
    else assert.deepEqual(outcome, { ok: true });
  }
  const { scheduled, active } = await bed.store.inspect.depth();
  assert.deepEqual([scheduled, active], [98, 2]);
  const { events } = await bed.store.inspect.events(null, 1_000);
  assert.deepEqual(
    events,
    times(100, (index) => index).filter((index) => index !== 17 && index !== 71),
  );
}

export const recording: ConformanceSection = { name: "records and guards", cases: [...records, ...guards] };
