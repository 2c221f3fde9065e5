import assert from "node:assert/strict";
import { briefRow } from "../../core/job/documents/brief-row.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { SCAN_STEP, type Scan, type ScanFilter } from "../../ports/store.ts";
import { logOf } from "../read-store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { idsOf, QUEUE_HOME, type TestBed, times } from "./test-bed.ts";

const MOST_STEPS = 100;

/** Scans to the end. Returns the jobs and the number of steps. */
async function scanAll(bed: TestBed, scan: Omit<Scan, "after">, limit = 100) {
  const jobs: JobRow[] = [];
  let after: string | null = null;
  for (let steps = 1; steps <= MOST_STEPS; steps++) {
    const page = await bed.store.inspect.page({ ...scan, after }, limit);
    assert(page.jobs.length <= limit, "a step gives no more than its limit");
    jobs.push(...page.jobs);
    if (page.cursor === null) return { jobs, steps };
    after = page.cursor;
  }
  throw new assert.AssertionError({ message: "a scan must end" });
}

async function countAll(bed: TestBed, filter: ScanFilter): Promise<number> {
  let count = 0;
  let after: string | null = null;
  for (let steps = 0; steps < MOST_STEPS; steps++) {
    const step = await bed.store.inspect.count({ filter, after });
    count += step.count;
    if (step.cursor === null) return count;
    after = step.cursor;
  }
  throw new assert.AssertionError({ message: "a scan must end" });
}

/** Dead letters that ended at these instants, in the given order. */
async function deadLetters(bed: TestBed, ends: readonly number[], sketch = {}): Promise<JobId[]> {
  const ids: JobId[] = [];
  for (const at of ends) {
    const row = await bed.add({ totalAt: at, options: { onExhausted: "dead-letter" }, ...sketch });
    const unit = bed.unit(row, { type: "wake" }, { outsider: true, now: at });
    assert.deepEqual(await bed.store.commit([unit], { now: at }), [{ ok: true }]);
    ids.push(row.id);
  }
  return ids;
}

const scans: ConformanceCase[] = [
  {
    name: "a scan finds each job once, in both directions, live and finished in one order of ids",
    async run(bed) {
      const added = times(30, () => bed.job());
      await bed.addMany(added);
      for (const row of await bed.claim({ limit: 12 }))
        await bed.write(row, { type: "cancel" }, { outsider: true });
      const all = await bed.store.jobs.load(idsOf(added).sort());
      for (const limit of [1, 7, 30, 100]) {
        assert.deepEqual((await scanAll(bed, { filter: {} }, limit)).jobs, all);
        assert.deepEqual(
          (await scanAll(bed, { filter: {}, newestFirst: true }, limit)).jobs,
          all.toReversed(),
        );
      }
      assert.equal(await countAll(bed, {}), 30);
    },
  },
  {
    name: "a brief scan finds the same jobs by the same filter, as brief rows",
    async run(bed) {
      await bed.addMany(times(6, (index) => bed.job({ payload: `{"n":${index % 2}}` })));
      await deadLetters(bed, [bed.now + 5, bed.now + 9], { payload: '{"n":1}' });
      const filters: ScanFilter[] = [
        {},
        { isLive: true },
        { isLive: false },
        { deadLetter: true },
        { text: '"n":1' },
      ];
      for (const filter of filters)
        for (const newestFirst of [false, true]) {
          const whole = (await scanAll(bed, { filter, newestFirst }, 3)).jobs;
          const brief = (await scanAll(bed, { filter, newestFirst, isBrief: true }, 3)).jobs;
          assert(whole.length > 1);
          assert.deepEqual(brief, whole.map(briefRow));
        }
    },
  },
  {
    name: "a walk finds a text in payloads as they are written, live, finished and dead ones, and counts them",
    async run(bed) {
      const live = await bed.add({ payload: '{"to":"Ärger & Co","rate":"100%"}' });
      const [dead] = await deadLetters(bed, [bed.now + 5], { payload: '{"to":"Ärger"}' });
      await bed.add({ payload: '{"to":"ärger_"}' });
      const found = async (filter: ScanFilter) => idsOf((await scanAll(bed, { filter })).jobs);
      assert.deepEqual(await found({ text: "Ärger" }), [live.id, dead]);
      assert.deepEqual(await found({ text: "Ärger", isLive: true }), [live.id]);
      assert.deepEqual(await found({ text: "Ärger", deadLetter: true }), [dead]);
      assert.deepEqual(await found({ text: '"rate":"100%"' }), [live.id]);
      assert.deepEqual(await found({ text: "r_e" }), []);
      assert.deepEqual(await found({ text: "0%", queue: "elsewhere" }), []);
      assert.equal(await countAll(bed, { text: "Ärger" }), 2);
      assert.equal(await countAll(bed, { text: "Ärger", deadLetter: true }), 1);
    },
  },
  {
    name: "a scan applies its filter: queue, type, state, live or finished, created and finished within bounds",
    async run(bed) {
      const old = await bed.add({ queue: "a", type: "x", createdAt: bed.now - 1_000 });
      const young = await bed.add({ queue: "a", type: "y" });
      const other = await bed.add({ queue: "b", type: "x" });
      const ended = await bed.write(
        await bed.add({ queue: "b", type: "y" }),
        { type: "cancel" },
        { outsider: true },
      );
      const scanned = async (filter: ScanFilter, ...expected: JobRow[]) => {
        assert.deepEqual(idsOf((await scanAll(bed, { filter })).jobs), idsOf(expected).sort());
        assert.equal(await countAll(bed, filter), expected.length);
      };
      await scanned({ queue: "a" }, old, young);
      await scanned({ type: "x" }, old, other);
      await scanned({ queue: "b", type: "x" }, other);
      await scanned({ state: "available" }, old, young, other);
      await scanned({ state: "cancelled" }, ended);
      await scanned({ isLive: true }, old, young, other);
      await scanned({ isLive: false }, ended);
      await scanned({ deadLetter: false, isLive: false }, ended);
      await scanned({ createdBefore: bed.now }, old);
      await scanned({ createdFrom: bed.now }, young, other, ended);
      await scanned({ finishedFrom: bed.now }, ended);
      await scanned({ finishedBefore: bed.now });
      await scanned({ queue: "none" });
    },
  },
  {
    name: "a step reads a bounded number of jobs, and further steps find a rare match",
    home: QUEUE_HOME,
    timeout: 60_000,
    async run(bed) {
      const many = times(SCAN_STEP + 500, () => bed.job({ queue: "many" }));
      for (let from = 0; from < many.length; from += 1_000) await bed.addMany(many.slice(from, from + 1_000));
      const rare = await bed.add({ queue: "rare" });
      const first = await bed.store.inspect.page({ filter: { queue: "rare" }, after: null }, 10);
      assert.deepEqual(first.jobs, []);
      assert.notEqual(first.cursor, null, "there is more to look at");
      const { jobs, steps } = await scanAll(bed, { filter: { queue: "rare" } });
      assert.deepEqual(idsOf(jobs), [rare.id]);
      assert(steps >= 2, "it takes more than one step");
      assert.equal(await countAll(bed, { queue: "many" }), many.length);
      assert.equal(await countAll(bed, { queue: "rare" }), 1);
    },
  },
  {
    name: "a cursor that no scan returned is refused",
    async run(bed) {
      const refused = { code: "invalid_option" };
      for (const after of ["", "x", "'; drop table jobs", "1.2"]) {
        await assert.rejects(bed.store.inspect.page({ filter: {}, after }, 1), refused);
        await assert.rejects(bed.store.inspect.count({ filter: { deadLetter: true }, after }), refused);
      }
      await assert.rejects(bed.store.inspect.page({ filter: {}, after: null }, 0), { code: "invalid_limit" });
    },
  },
];

const letters: ConformanceCase[] = [
  {
    name: "dead letters come in the order in which they ended, newest first too, and within bounds of time",
    async run(bed) {
      const { now } = bed;
      const ids = await deadLetters(bed, [now + 30, now + 10, now + 20, now + 10]);
      await bed.write(await bed.add(), { type: "cancel" }, { outsider: true });
      await bed.add();
      const tied = [ids[1], ids[3]].sort();
      const inOrder = [...tied, ids[2], ids[0]];
      const filter = { deadLetter: true };
      for (const limit of [1, 3, 100]) {
        assert.deepEqual(idsOf((await scanAll(bed, { filter }, limit)).jobs), inOrder);
        const back = await scanAll(bed, { filter, newestFirst: true }, limit);
        assert.deepEqual(idsOf(back.jobs), inOrder.toReversed());
      }
      const within = { ...filter, finishedFrom: now + 11, finishedBefore: now + 30 };
      assert.deepEqual(idsOf((await scanAll(bed, { filter: within })).jobs), [ids[2]]);
      assert.equal(await countAll(bed, filter), 4);
      assert.equal(await countAll(bed, { ...filter, finishedBefore: now + 20 }), 2);
      assert.equal(await countAll(bed, { ...filter, queue: "none" }), 0);
    },
  },
  {
    name: "a dead letter that is revived or deleted is no longer scanned",
    async run(bed) {
      const [revived, deleted, left] = await deadLetters(bed, [bed.now, bed.now, bed.now]);
      const row = (await bed.load(revived as JobId)) as JobRow;
      await bed.write(row, { type: "retry" }, { outsider: true });
      const { id, fence, rev } = (await bed.load(deleted as JobId)) as JobRow;
      await bed.commit({ job: { id, fence, rev, drop: true } });
      const { jobs } = await scanAll(bed, { filter: { deadLetter: true } });
      assert.deepEqual(idsOf(jobs), [left]);
      assert.equal(await countAll(bed, { deadLetter: true }), 1);
    },
  },
  {
    name: "a dead letter with a pruneAt is pruned then",
    async run(bed) {
      const retention = { completed: 1, discarded: 1, cancelled: 1, deadLetter: 5_000 };
      const options = { onExhausted: "dead-letter" as const, retention };
      await deadLetters(bed, [bed.now], { options });
      const prune = (now: number) => bed.store.jobs.prune({ now, eventsBefore: 0, limit: 10 });
      assert.equal(await prune(bed.now + 4_999), 0);
      assert.equal(await countAll(bed, { deadLetter: true }), 1);
      assert.equal(await prune(bed.now + 5_000), 1);
      assert.equal(await countAll(bed, { deadLetter: true }), 0);
    },
  },
];

const counts: ConformanceCase[] = [
  {
    name: "unique keys that live jobs hold are listed in order, page by page, and no others",
    async run(bed) {
      await bed.add();
      const ended = await bed.add({ uniqueKey: "b" });
      for (const uniqueKey of ["d", "a", "c"]) await bed.add({ uniqueKey });
      await bed.write(ended, { type: "cancel" }, { outsider: true });
      const all = await bed.store.inspect.holders(null, 10);
      assert.deepEqual(
        all.map(({ key }) => key),
        ["a", "c", "d"],
      );
      const rows = await bed.store.jobs.load(all.map(({ job }) => job));
      assert.deepEqual(
        rows.map((row) => row?.state),
        ["available", "available", "available"],
      );
      assert.deepEqual(await bed.store.inspect.holders(null, 2), all.slice(0, 2));
      assert.deepEqual(await bed.store.inspect.holders("a", 2), all.slice(1));
      assert.deepEqual(await bed.store.inspect.holders("d", 2), []);
    },
  },
  {
    name: "a named job has its unique key, also after its end",
    async run(bed) {
      const plain = await bed.add();
      const ended = await bed.add({ uniqueKey: "b" });
      const live = await bed.add({ uniqueKey: "a" });
      await bed.write(ended, { type: "cancel" }, { outsider: true });
      const ids = [ended.id, "00000000-0000-7000-8000-00000000abcd", plain.id, live.id];
      assert.deepEqual(await bed.store.inspect.uniqueKeys(ids), ["b", null, null, "a"]);
      assert.deepEqual(await bed.store.inspect.uniqueKeys([]), []);
    },
  },
  {
    name: "live counts follow every change of state, by queue and type, and leave out what has ended",
    async run(bed) {
      const counted = async () =>
        (await bed.store.inspect.live())
          .map(({ queue, type, state, count }) => `${queue} ${type} ${state} ${count}`)
          .sort();
      assert.deepEqual(await counted(), []);
      await bed.addMany([
        ...times(3, () => bed.job({ queue: "a", type: "x" })),
        bed.job({ queue: "a", type: "y", dueAt: bed.now + 1_000 }),
        bed.job({ queue: "b", type: "x", needs: 1 }),
      ]);
      const waiting = ["a y scheduled 1", "b x pending 1"];
      assert.deepEqual(await counted(), ["a x available 3", ...waiting]);
      const row = await bed.claimOne({ queue: "a" });
      assert.deepEqual(await counted(), ["a x active 1", "a x available 2", ...waiting]);
      await bed.write(row, { type: "cancel" }, { outsider: true });
      assert.deepEqual(await counted(), ["a x available 2", ...waiting]);
    },
  },
];

const logs: ConformanceCase[] = [
  {
    name: "lines of a log are read page by page, and only the last ones are kept",
    timeout: 60_000,
    async run(bed) {
      const row = await bed.add();
      for (let from = 0; from < 1_100; from += 100)
        await bed.effect(...times(100, (line) => ({ log: from + line, job: row.id })));
      const read: unknown[] = [];
      for (let after = 0; ; ) {
        const page = await bed.store.inspect.logLines(row.id, after, 300);
        if (page.length === 0) break;
        for (const { seq, line } of page) {
          assert(seq > after, "numbers grow");
          after = seq;
          read.push(line);
        }
      }
      assert.deepEqual(
        read,
        times(1_000, (line) => line + 100),
      );
      assert.deepEqual(await logOf(bed.store, row.id), read);
      assert.deepEqual(await bed.store.inspect.logLines(bed.nextId(), 0, 10), []);
      await assert.rejects(bed.store.inspect.logLines(row.id, 0, 1_001), { code: "invalid_limit" });
    },
  },
];

export const scanning: ConformanceSection = {
  name: "scans and pages",
  cases: [...scans, ...letters, ...counts, ...logs],
};
