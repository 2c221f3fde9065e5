import assert from "node:assert/strict";
import type { NewEvent } from "../../core/event/new-event.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { Json } from "../../core/schema.ts";
import type { Store } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { type JobSketch, refused, type TestBed, times } from "./test-bed.ts";

const HEAD = { name: "kit.enqueued", queue: 'a "queue"' };

/** A job that tells of itself. */
function tellingJob(bed: TestBed, sketch: JobSketch = {}): NewJob {
  const job = bed.job(sketch);
  return { ...job, records: { event: HEAD, of: { job: job.id } } };
}

function told({ id }: { readonly id: string }): Json {
  return { ...HEAD, job: id };
}

/** Everything that is told, read in small pages. */
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

/** A store may hold events back while transactions run that are older, those of others on the same server included. */
const MOST_LOOKS = 200;

async function assertTold({ store }: TestBed, expected: readonly Json[]): Promise<void> {
  let { events } = await readAll(store, 1_000);
  for (let looks = 1; looks < MOST_LOOKS && events.length < expected.length; looks++)
    ({ events } = await readAll(store, 1_000));
  assert.deepEqual(events, expected);
}

const units: ConformanceCase[] = [
  {
    name: "what events share and what each says of its own are read as one",
    async run(bed) {
      const shared = { name: "shared", list: [1, { a: null }], text: "}],\u001f'\\" };
      const own = (n: number): NewEvent => ({ event: shared, of: { n, name: n === 1 ? "own" : "shared" } });
      await bed.effect(own(0), { event: "alone" }, own(1), { event: shared }, { event: [1, [2]] }, own(2));
      await assertTold(bed, [
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
    name: "of a batch of verdicts only those tell that were written, each all it has to tell, in the order of the units",
    run: verdictsTell,
  },
  {
    name: "a page ends anywhere within a commit, and each event's cursor goes on behind it",
    async run(bed) {
      for (let commit = 0; commit < 30; commit++)
        await bed.effect(...times(1 + (commit % 7), (n) => ({ event: HEAD, of: { commit, n } })));
      const told = times(30, (commit) => times(1 + (commit % 7), (n) => ({ ...HEAD, commit, n }))).flat();
      await assertTold(bed, told);
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
    },
  },
];

/** Jobs end, are dropped, released and lost, in one call, in no order of their ids. */
async function verdictsTell(bed: TestBed): Promise<void> {
  const expected: Json[] = [];
  for (const isMixed of [false, true]) {
    await bed.addMany(times(40, () => bed.job({ queue: `mixed ${isMixed}` })));
    const rows = (await bed.claim({ queue: `mixed ${isMixed}` })).toSorted(() => bed.random() - 0.5);
    const all = rows.map((row, index) => {
      const events = times(index % 3, (n) => ({ event: HEAD, of: { job: row.id, n } }));
      const isLost = index % 5 === 0;
      if (!isLost) expected.push(...events.map(({ of }) => ({ ...HEAD, ...of })));
      const type = isMixed && index % 4 > 1 ? "release" : "cancel";
      const unit = bed.unit(row, { type }, { outsider: index % 2 === 0, effects: events });
      return isLost && unit.job ? { ...unit, job: { ...unit.job, fence: row.fence + 1 } } : unit;
    });
    const outcomes = await bed.store.commit(all, { now: bed.now });
    for (const [index, outcome] of outcomes.entries()) {
      if (index % 5 === 0) assert.equal(refused(outcome).because, "lost");
      else assert.deepEqual(outcome, { ok: true });
    }
    await assertTold(bed, expected);
  }
}

const enqueues: ConformanceCase[] = [
  {
    name: "jobs tell of themselves in the commit that adds them: alike ones, unlike ones and given ids",
    async run(bed) {
      const template = bed.job();
      const alike = times(20, () => ({ ...tellingJob(bed), image: template.image }));
      await bed.addMany(alike);
      const unlike = times(20, (n) => tellingJob(bed, { priority: n, ...(n % 2 && { dueAt: bed.now + n }) }));
      await bed.addMany(unlike);
      const given = times(5, () => tellingJob(bed, { id: bed.nextId() }));
      await bed.addMany(given);
      await bed.addMany([bed.job()]);
      await assertTold(bed, [...alike, ...unlike, ...given].map(told));
    },
  },
  {
    name: "a job that was not added tells nothing: a known id, a finished one, and a unique key that is held",
    async run(bed) {
      const first = tellingJob(bed, { uniqueKey: "key" });
      await bed.addMany([first]);
      const rival = tellingJob(bed, { uniqueKey: "key" });
      const again = { ...tellingJob(bed), id: first.id, hasNewId: false };
      const other = tellingJob(bed, { priority: 3 });
      const answers = await bed.store.jobs.enqueue([rival, again, other], { now: bed.now });
      assert.deepEqual(answers, [{ duplicate: first.id }, "exists", "created"]);
      // A call whose answer was lost comes again with the same ids, and as if they were new.
      await bed.store.jobs.enqueue([other], { now: bed.now });
      const row = await bed.claimOne();
      await bed.write(row, { type: "cancel" }, { outsider: true });
      await bed.store.jobs.enqueue([{ ...tellingJob(bed), id: row.id, hasNewId: false }], { now: bed.now });
      await assertTold(bed, [told(first), told(other)]);
    },
  },
  {
    name: "a job that a unit adds tells in the place of its effect, and only if the unit stands",
    async run(bed) {
      const row = await bed.add();
      const [next, held, never] = [tellingJob(bed), tellingJob(bed, { uniqueKey: "k" }), tellingJob(bed)];
      await bed.addMany([held]);
      const rival = tellingJob(bed, { uniqueKey: "k" });
      const effects = [
        { event: 1 },
        { enqueue: next },
        { enqueue: rival },
        { event: 2 },
        { log: 1, job: row.id },
      ];
      const unit = bed.unit(row, { type: "cancel" }, { outsider: true, effects });
      await bed.commit(unit, {
        when: [{ record: ["kit", "none"], version: 1 }],
        effects: [{ enqueue: never }],
      });
      await assertTold(bed, [told(held), 1, told(next), 2]);
    },
  },
];

export const telling: ConformanceSection = { name: "events", cases: [...units, ...enqueues] };
