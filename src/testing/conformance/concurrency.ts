import assert from "node:assert/strict";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Outcome, Store } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { batches, claimRequest, found, idsOf, POLICY, type TestBed, times } from "./test-bed.ts";

const HANDLES = 8;
const ROUNDS = 300;

const claims: ConformanceCase[] = [
  {
    name: "8 claimers take 2,000 jobs, each job once and none missed",
    timeout: 60_000,
    async run(bed) {
      const jobs = times(2_000, () => bed.job());
      for (const batch of batches(jobs)) await bed.addMany(batch);
      const handles = await bed.handles(HANDLES);
      const claimed = (await Promise.all(handles.map((store) => claimAll(bed, store)))).flat();
      assert.deepEqual(idsOf(claimed).sort(), idsOf(jobs).sort());
      assert.equal((await bed.store.inspect.depth()).active, jobs.length);
    },
  },
  {
    name: "jobs enqueued while others claim are all found",
    timeout: 60_000,
    async run(bed) {
      const [producer, ...claimers] = await bed.handles(5);
      const jobs = times(2_000, () => bed.job());
      const claimed: JobId[] = [];
      let isDone = false;
      const claimer = async (store: Store) => {
        while (!isDone || (await store.inspect.depth()).available > 0) {
          claimed.push(...idsOf(await store.jobs.claim(claimRequest(bed, { limit: 50 }))));
        }
      };
      const produce = async () => {
        for (const batch of batches(jobs, 20)) await producer?.jobs.enqueue(batch, { now: bed.now });
        isDone = true;
      };
      await Promise.all([produce(), ...claimers.map(claimer)]);
      assert.deepEqual(claimed.sort(), idsOf(jobs).sort());
    },
  },
];

/** A store may give less than it has while others claim, so the loop ends only when the queue is empty. */
async function claimAll(bed: TestBed, store: Store): Promise<JobRow[]> {
  const claimed: JobRow[] = [];
  do claimed.push(...(await store.jobs.claim(claimRequest(bed, { limit: 17 }))));
  while ((await store.inspect.depth()).available > 0);
  return claimed;
}

async function startMany(bed: TestBed, count: number): Promise<JobRow[]> {
  await bed.addMany(times(count, () => bed.job()));
  const claimed = await bed.claim({ limit: count });
  await bed.commit(...claimed.map((row) => bed.unit(row, { type: "start", policy: POLICY, upper: bed.now })));
  return (await bed.store.jobs.load(idsOf(claimed))).map(found);
}

const races: ConformanceCase[] = [
  {
    name: `cancel races a verdict ${ROUNDS} times: exactly one wins, and the job shows which`,
    timeout: 60_000,
    async run(bed) {
      const [worker, outsider] = (await bed.handles(2)) as [Store, Store];
      for (const [round, row] of (await startMany(bed, ROUNDS)).entries()) {
        const cancel = bed.unit(row, { type: "cancel" }, { outsider: true });
        const verdict =
          round % 2 === 0
            ? { unit: bed.unit(row, { type: "succeed", signalled: false }), leadsTo: "completed" }
            : { unit: bed.unit(row, { type: "release", delay: 60_000 }), leadsTo: "scheduled" };
        const race = [
          { store: worker, ...verdict },
          { store: outsider, unit: cancel, leadsTo: "cancelled" },
        ];
        if (bed.random() < 0.5) race.reverse();
        const { now } = bed;
        const outcomes = await Promise.all(race.map(({ store, unit }) => store.commit([unit], { now })));
        const winners = race.filter((_, index) => outcomes[index]?.[0]?.ok);
        assert.equal(winners.length, 1, "exactly one write must win");
        assert.equal(found(await bed.load(row.id)).state, winners[0]?.leadsTo);
      }
    },
  },
  {
    name: "the same settle from many handles counts once",
    async run(bed) {
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const unit = bed.unit(
        running,
        { type: "succeed", signalled: false },
        { effects: [{ event: "settled" }] },
      );
      const outcomes = await everywhere(bed, (store) => store.commit([unit], { now: bed.now }));
      assert.equal(outcomes.flat().filter(({ ok }) => ok).length, 1);
      assert.deepEqual((await bed.store.inspect.events(null, 10)).events, ["settled"]);
    },
  },
  {
    name: "the same id from many handles is created once",
    async run(bed) {
      for (let round = 0; round < 20; round++) {
        const job = { ...bed.job(), hasNewId: false };
        const answers = await everywhere(bed, (store) => store.jobs.enqueue([job], { now: bed.now }));
        assert.deepEqual(answers.flat().sort(), ["created", ...times(HANDLES - 1, () => "exists")]);
      }
    },
  },
  {
    name: "the same unique key from many handles is taken once",
    async run(bed) {
      for (let round = 0; round < 20; round++) {
        const answers = await everywhere(bed, (store) =>
          store.jobs.enqueue([bed.job({ uniqueKey: `key ${round}` })], { now: bed.now }),
        );
        const created = answers.flat().filter((answer) => answer === "created");
        assert.equal(created.length, 1);
        const holders = answers.flat().filter((answer) => typeof answer === "object");
        assert.equal(holders.length, HANDLES - 1);
        assert.equal(new Set(holders.map(({ duplicate }) => duplicate)).size, 1);
      }
    },
  },
  {
    name: "sweeps from many handles promote and hand out each job once",
    async run(bed) {
      const dueAt = bed.now + 1_000;
      await bed.addMany(times(200, () => bed.job({ dueAt })));
      await bed.addMany(times(200, () => bed.job({ waitAt: dueAt })));
      const sweeps = await everywhere(bed, (store) =>
        store.jobs.sweep({ now: dueAt, limit: 1_000, holdUntil: dueAt + 5_000 }),
      );
      const promoted = sweeps.reduce((sum, { ready }) => sum + (ready.get("default") ?? 0), 0);
      assert.equal(promoted, 200);
      const returned = sweeps.flatMap(({ jobs }) => idsOf(jobs));
      assert.equal(returned.length, 200);
      assert.equal(new Set(returned).size, 200);
    },
  },
  { name: "a record guarded by its version loses no increment", timeout: 60_000, run: incrementsRecord },
];

async function incrementsRecord(bed: TestBed): Promise<void> {
  const key = ["kit", "counter"] as const;
  const increments = 25;
  const increment = async (store: Store): Promise<Outcome> => {
    const [record] = await store.records.load([key]);
    const body = ((record?.body as number | undefined) ?? 0) + 1;
    const when = [{ record: key, version: record?.version ?? 0 }];
    const [outcome] = await store.commit([{ when, effects: [{ put: key, body, wakeAt: null }] }], {
      now: bed.now,
    });
    return outcome as Outcome;
  };
  await everywhere(bed, async (store) => {
    for (let done = 0; done < increments; ) {
      const outcome = await increment(store);
      if (outcome.ok) done += 1;
      else assert.equal(outcome.because, "conflict");
    }
  });
  const [record] = await bed.store.records.load([key]);
  assert.equal(record?.body, HANDLES * increments);
}

async function everywhere<Answer>(
  bed: TestBed,
  run: (store: Store) => Promise<Answer>,
): Promise<Awaited<Answer>[]> {
  return Promise.all((await bed.handles(HANDLES)).map(run));
}

export const concurrency: ConformanceSection = { name: "concurrency", cases: [...claims, ...races] };
