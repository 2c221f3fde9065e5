import assert from "node:assert/strict";
import { SETTINGS_CELL } from "../../core/home/cell.ts";
import { namesOf, tenantPrefix } from "../../core/tenant/tenant-name.ts";
import type { Effect, RecordKey, RecordRow, Unit } from "../../ports/store.ts";
import { depthOf, logOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { refused, type TestBed, times } from "./test-bed.ts";

const KEY: RecordKey = ["kit", "record"];

async function read(bed: TestBed, key: RecordKey = KEY): Promise<RecordRow | null> {
  return (await bed.store.records.load([key]))[0] ?? null;
}

async function mustRead(bed: TestBed): Promise<RecordRow> {
  const row = await read(bed);
  assert(row, "the record must be there");
  return row;
}

function put(key: RecordKey, body: RecordRow["body"], wakeAt: number | null = null): Effect {
  return { put: key, body, wakeAt };
}

const records: ConformanceCase[] = [
  {
    name: "each put gives a higher version, and the last body and wakeAt stay",
    async run(bed) {
      assert.equal(await read(bed), null);
      await bed.effect(put(KEY, { a: 1 }, bed.now + 5));
      const { version } = await mustRead(bed);
      assert(Number.isInteger(version) && version > 0, `${version} is not a version`);
      assert.deepEqual(await read(bed), { key: KEY, version, wakeAt: bed.now + 5, body: { a: 1 } });
      await bed.effect(put(KEY, [2]));
      const next = await mustRead(bed);
      assert(next.version > version, "a put must give a higher version");
      assert.deepEqual(next, { key: KEY, version: next.version, wakeAt: null, body: [2] });
      await bed.effect({ delete: KEY });
      assert.equal(await read(bed), null);
      assert.deepEqual(await bed.effect({ delete: KEY }), { ok: true });
    },
  },
  {
    name: "a version is never reused: a guard on a record fails for a later record of the same key",
    async run(bed) {
      const seen: number[] = [];
      for (let life = 0; life < 4; life++) {
        for (let puts = 0; puts < 4 - life; puts++) {
          await bed.effect(put(KEY, life));
          seen.push((await mustRead(bed)).version);
        }
        for (const version of seen.slice(0, -1)) {
          const [outcome] = await bed.commit({
            when: [{ record: KEY, version }],
            effects: [put(KEY, "old")],
          });
          assert.equal(refused(outcome).because, "conflict");
        }
        // Also in a call of many units, with other records put and deleted in between.
        await bed.commit({ effects: [put(["kit", "other"], 1)] }, { effects: [{ delete: KEY }] });
        await bed.effect({ delete: ["kit", "other"] });
      }
      assert.deepEqual(
        seen,
        [...new Set(seen)].sort((a, b) => a - b),
      );
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
    name: "a kind is listed from its last key down, before a cursor, without the names of tenants",
    async run(bed) {
      const keys = ["b", "a", "d", "c", "aa", "B", "10", "9"];
      const ofTenants = ["a", "b"].map((tenant) => `${tenantPrefix(tenant)}x`);
      await bed.effect(
        ...[...keys, ...ofTenants].map((key) => put(["kit", key], key)),
        put(["other", "b"], 1),
      );
      const down = async (before: string | null, limit: number) =>
        (await bed.store.records.list("kit", before, limit, "desc")).map(({ key }) => key[1]);
      assert.deepEqual(await down(null, 100), keys.toSorted().reverse());
      assert.deepEqual(await down(null, 2), ["d", "c"]);
      assert.deepEqual(await down("c", 3), ["b", "aa", "a"]);
      assert.deepEqual(await down("bb", 1), ["b"]);
      assert.deepEqual(await down("10", 2), []);
      assert.deepEqual(await down(namesOf("b").to, 1), [ofTenants[1]]);
      assert.deepEqual(await bed.store.records.list("none", null, 2, "desc"), []);
    },
  },
  {
    name: "a due record is swept at its instant, held, and returned again after the hold",
    async run(bed) {
      const wakeAt = bed.now + 1_000;
      await bed.effect(put(KEY, "body", wakeAt), put(["kit", "never"], 1));
      assert.deepEqual((await bed.sweep(wakeAt - 1)).records, []);
      const { version } = await mustRead(bed);
      const { records } = await bed.sweep(wakeAt);
      // A hold does not change the version. The decision is committed under the version that was returned.
      assert.deepEqual(records, [{ key: KEY, version, wakeAt: wakeAt + 5_000, body: "body" }]);
      assert.equal((await mustRead(bed)).version, version);
      assert.deepEqual((await bed.sweep(wakeAt)).records, []);
      assert.equal((await bed.sweep(wakeAt + 5_000)).records.length, 1);
      await bed.effect(put(KEY, "body"));
      assert.deepEqual((await bed.sweep(wakeAt + 60_000)).records, []);
    },
  },
];

const guards: ConformanceCase[] = [
  {
    name: "a guard passes for its version only, and 0 means that there is no such record",
    async run(bed) {
      const guarded = async (version: number) =>
        (await bed.commit({ when: [{ record: KEY, version }], effects: [put(KEY, version)] }))[0];
      assert.equal(refused(await guarded(1)).because, "conflict");
      assert.deepEqual(await guarded(0), { ok: true });
      const { version } = await mustRead(bed);
      assert.equal(refused(await guarded(0)).because, "conflict");
      assert.equal(refused(await guarded(version + 1)).because, "conflict");
      assert.deepEqual(await guarded(version), { ok: true });
      assert.equal(refused(await guarded(version)).because, "conflict");
      assert((await mustRead(bed)).version > version);
    },
  },
  {
    name: "a unit is all or nothing: after a conflict none of its effects happened",
    home: SETTINGS_CELL,
    async run(bed) {
      const row = await bed.add();
      const waiting = await bed.add({ needs: 1 });
      await bed.effect(put(KEY, 1));
      const { version } = await mustRead(bed);
      const unit = bed.unit(
        row,
        { type: "cancel" },
        {
          outsider: true,
          when: [
            { record: KEY, version },
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
      assert.equal((await depthOf(bed.store, "next")).available, 0);
      assert.equal((await read(bed))?.version, version);
      assert.equal(await read(bed, ["kit", "new"]), null);
      assert.deepEqual((await bed.store.inspect.events(null, 10)).events, []);
      assert.deepEqual(await logOf(bed.store, row.id), []);
    },
  },
  {
    name: "a refused unit does not stop the others: of 100, one is lost and one in conflict",
    home: SETTINGS_CELL,
    run: refusedAmongOthers,
  },
  {
    name: "a later unit of a call sees what an earlier one wrote",
    async run(bed) {
      const create: Unit = { when: [{ record: KEY, version: 0 }], effects: [put(KEY, "created")] };
      const row = await bed.add();
      const first = bed.unit(row, { type: "cancel" }, { outsider: true });
      const outcomes = await bed.commit(create, create, { effects: [{ delete: KEY }] }, create, first, first);
      assert.deepEqual(
        outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.because)),
        ["ok", "conflict", "ok", "ok", "ok", "lost"],
      );
      assert.equal((await read(bed))?.body, "created");
    },
  },
  {
    name: "an enqueue of a known id as an effect does nothing, and the unit is committed",
    async run(bed) {
      const row = await bed.add({ uniqueKey: "key" });
      const again = { ...bed.job(), id: row.id, hasNewId: false };
      const blocked = bed.job({ uniqueKey: "key" });
      assert.deepEqual(await bed.effect({ enqueue: again }, { enqueue: blocked }, put(KEY, 1)), { ok: true });
      assert.deepEqual(await bed.store.jobs.load([row.id, blocked.id]), [row, null]);
      assert.equal((await read(bed))?.body, 1);
    },
  },
];

async function refusedAmongOthers(bed: TestBed): Promise<void> {
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
  const { scheduled, active } = await depthOf(bed.store);
  assert.deepEqual([scheduled, active], [98, 2]);
  const { events } = await bed.store.inspect.events(null, 1_000);
  assert.deepEqual(
    events,
    times(100, (index) => index).filter((index) => index !== 17 && index !== 71),
  );
}

export const recording: ConformanceSection = { name: "records and guards", cases: [...records, ...guards] };
