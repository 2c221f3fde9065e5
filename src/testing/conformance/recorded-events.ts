import assert from "node:assert/strict";
import type { NewEvent } from "../../core/event/new-event.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { Json } from "../../core/schema.ts";
import type { Store } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { type JobSketch, QUEUE_HOME, refused, type TestBed, times } from "./test-bed.ts";

const SHARED = { name: "kit.enqueued", queue: 'a "queue"' };

/** A job whose enqueue records an event. */
function recordedJob(bed: TestBed, sketch: JobSketch = {}): NewJob {
  const job = bed.job(sketch);
  return { ...job, records: { event: SHARED, of: { job: job.id } } };
}

function eventOf({ id }: { readonly id: string }): Json {
  return { ...SHARED, job: id };
}

/** All recorded events, read in small pages. */
async function readAll(store: Store, limit: number): Promise<{ events: Json[]; cursors: string[] }> {
  const events: Json[] = [];
  const cursors: string[] = [];
  for (let cursor: string | null = null; ; ) {
    const page = await store.inspect.events(cursor, limit);
    if (page.events.length === 0) return { events, cursors };
    assert.equal(page.events.length, page.cursors.length, "each event must have a cursor");
    events.push(...page.events);
    cursors.push(...page.cursors);
    assert.equal(page.cursor, cursors.at(-1));
    cursor = page.cursor;
  }
}

/** A store may hold back events while older transactions run, also those of other users of the server. */
const MOST_LOOKS = 200;

async function assertRecorded({ store }: TestBed, expected: readonly Json[]): Promise<void> {
  let { events } = await readAll(store, 1_000);
  for (let looks = 1; looks < MOST_LOOKS && events.length < expected.length; looks++)
    ({ events } = await readAll(store, 1_000));
  assert.deepEqual(events, expected);
}

const units: ConformanceCase[] = [
  {
    name: "shared and own fields of an event are read as one",
    async run(bed) {
      const shared = { name: "shared", list: [1, { a: null }], text: "}],\u001f'\\" };
      const own = (n: number): NewEvent => ({ event: shared, of: { n, name: n === 1 ? "own" : "shared" } });
      await bed.effect(own(0), { event: "alone" }, own(1), { event: shared }, { event: [1, [2]] }, own(2));
      await assertRecorded(bed, [
        { ...shared, n: 0 },
        "alone",
        { ...shared, n: 1, name: "own" },
        shared,
        [1, [2]],
        { ...shared, n: 2 },
      ]);
    },
  },
  {
    name: "of a batch of verdicts, only written ones record events, all of them in the order of the units",
    home: QUEUE_HOME,
    run: verdictsRecord,
  },
  {
    name: "a page ends anywhere within a commit, and each event's cursor continues after it",
    async run(bed) {
      for (let commit = 0; commit < 30; commit++)
        await bed.effect(...times(1 + (commit % 7), (n) => ({ event: SHARED, of: { commit, n } })));
      const expected = times(30, (commit) =>
        times(1 + (commit % 7), (n) => ({ ...SHARED, commit, n })),
      ).flat();
      await assertRecorded(bed, expected);
      const all = await readAll(bed.store, 1_000);
      assert.equal(new Set(all.cursors).size, all.events.length, "no two events may have the same cursor");
      for (const limit of [1, 2, 5, 64]) assert.deepEqual(await readAll(bed.store, limit), all);
      for (const index of [0, 1, 3, 40, all.events.length - 1]) {
        const { events } = await bed.store.inspect.events(all.cursors[index] as string, 9);
        assert.deepEqual(events, all.events.slice(index + 1, index + 10));
      }
      for (const limit of [1, 3, 50, 500]) {
        const latest = await bed.store.inspect.latestEvents(limit);
        assert.deepEqual(latest.events, all.events.slice(-limit));
        assert.deepEqual(latest.cursors, all.cursors.slice(-limit));
        assert.equal(latest.cursor, all.cursors.at(-1));
      }
      for (const index of [0, 1, 2, 3, 4, 40, all.events.length - 1]) {
        const older = await bed.store.inspect.latestEvents(9, all.cursors[index]);
        assert.deepEqual(older.events, all.events.slice(Math.max(0, index - 9), index));
        assert.deepEqual(older.cursors, all.cursors.slice(Math.max(0, index - 9), index));
      }
    },
  },
];

/** Jobs end, are dropped, released and lost in one call, in random order. */
async function verdictsRecord(bed: TestBed): Promise<void> {
  const expected: Json[] = [];
  for (const isMixed of [false, true]) {
    await bed.addMany(times(40, () => bed.job({ queue: `mixed ${isMixed}` })));
    const rows = (await bed.claim({ queue: `mixed ${isMixed}` })).toSorted(() => bed.random() - 0.5);
    const all = rows.map((row, index) => {
      const events = times(index % 3, (n) => ({ event: SHARED, of: { job: row.id, n } }));
      const isLost = index % 5 === 0;
      if (!isLost) expected.push(...events.map(({ of }) => ({ ...SHARED, ...of })));
      const type = isMixed && index % 4 > 1 ? "release" : "cancel";
      const unit = bed.unit(row, { type }, { outsider: index % 2 === 0, effects: events });
      return isLost && unit.job ? { ...unit, job: { ...unit.job, fence: row.fence + 1 } } : unit;
    });
    const outcomes = await bed.store.commit(all, { now: bed.now });
    for (const [index, outcome] of outcomes.entries()) {
      if (index % 5 === 0) assert.equal(refused(outcome).because, "lost");
      else assert.deepEqual(outcome, { ok: true });
    }
    await assertRecorded(bed, expected);
  }
}

const enqueues: ConformanceCase[] = [
  {
    name: "jobs record their events in the commit that adds them: alike ones, unlike ones and given ids",
    home: QUEUE_HOME,
    async run(bed) {
      const template = bed.job();
      const alike = times(20, () => ({ ...recordedJob(bed), image: template.image }));
      await bed.addMany(alike);
      const unlike = times(20, (n) =>
        recordedJob(bed, { priority: n, ...(n % 2 && { dueAt: bed.now + n }) }),
      );
      await bed.addMany(unlike);
      const given = times(5, () => recordedJob(bed, { id: bed.nextId() }));
      await bed.addMany(given);
      await bed.addMany([bed.job()]);
      await assertRecorded(bed, [...alike, ...unlike, ...given].map(eventOf));
    },
  },
  {
    name: "a job that was not added records nothing: a known id, a finished one, and a unique key that is taken",
    async run(bed) {
      const first = recordedJob(bed, { uniqueKey: "key" });
      await bed.addMany([first]);
      const blocked = recordedJob(bed, { uniqueKey: "key" });
      const again = { ...recordedJob(bed), id: first.id, hasNewId: false };
      const other = recordedJob(bed, { priority: 3 });
      const answers = await bed.store.jobs.enqueue([blocked, again, other], { now: bed.now });
      assert.deepEqual(answers, [{ duplicate: first.id }, "exists", "created"]);
      // A call whose reply was lost comes again with the same ids, as if they were new.
      await bed.store.jobs.enqueue([other], { now: bed.now });
      const row = await bed.claimOne();
      await bed.write(row, { type: "cancel" }, { outsider: true });
      await bed.store.jobs.enqueue([{ ...recordedJob(bed), id: row.id, hasNewId: false }], { now: bed.now });
      await assertRecorded(bed, [eventOf(first), eventOf(other)]);
    },
  },
  {
    name: "a job that a unit adds records its event in the order of the effects, and only if the unit is committed",
    home: QUEUE_HOME,
    async run(bed) {
      const row = await bed.add();
      const [next, holder, never] = [
        recordedJob(bed),
        recordedJob(bed, { uniqueKey: "k" }),
        recordedJob(bed),
      ];
      await bed.addMany([holder]);
      const blocked = recordedJob(bed, { uniqueKey: "k" });
      const effects = [
        { event: 1 },
        { enqueue: next },
        { enqueue: blocked },
        { event: 2 },
        { log: 1, job: row.id },
      ];
      const unit = bed.unit(row, { type: "cancel" }, { outsider: true, effects });
      await bed.commit(unit, {
        when: [{ record: ["kit", "none"], version: 1 }],
        effects: [{ enqueue: never }],
      });
      await assertRecorded(bed, [eventOf(holder), 1, eventOf(next), 2]);
    },
  },
];

export const recordedEvents: ConformanceSection = { name: "events", cases: [...units, ...enqueues] };
