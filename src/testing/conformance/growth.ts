import assert from "node:assert/strict";
import { realSystem } from "../../engine/runtime/real-system.ts";
import type { Store, Unit } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { batches, claimRequest, type JobSketch, type TestBed, times } from "./test-bed.ts";

const MANY = 200_000;
const FEW = 2_000;
const CLAIMED = 200;
const ROUNDS = 9;

/**
 * What a call may cost on a large table, given its cost on a small one. It is generous, because it must hold on busy
 * machines: a plan that scans the table costs a hundred times more, which is what these cases look for.
 */
function allowed(small: number): number {
  return small * 20 + 10;
}

/** The lowest cost of some rounds: other programs only add to a cost, and one round without them is enough. */
async function lowestCost(run: () => Promise<unknown>): Promise<number> {
  const costs: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const from = realSystem.monotonic();
    await run();
    costs.push(realSystem.monotonic() - from);
  }
  return Math.min(...costs);
}

async function fill(bed: TestBed, count: number, sketch: JobSketch): Promise<void> {
  const handles = await bed.handles(2);
  const work = batches(times(count, () => bed.job(sketch))).values();
  const run = async (store: Store) => {
    for (const batch of work) await store.jobs.enqueue(batch, { now: bed.now });
  };
  await Promise.all(handles.map(run));
}

const cases: ConformanceCase[] = [
  {
    name: `claims and settles planned on an empty table stay fast when it holds ${MANY} jobs`,
    timeout: 180_000,
    async run(bed) {
      const claimAndRelease = async () => {
        const rows = await bed.store.jobs.claim(claimRequest(bed, { limit: CLAIMED }));
        const units = rows.map((row): Unit => bed.unit(row, { type: "release", delay: 3_600_000 }));
        await bed.store.commit(units, { now: bed.now });
        return rows.length;
      };
      for (let round = 0; round < 20; round++) assert.equal(await claimAndRelease(), 0);
      await fill(bed, FEW, {});
      const small = await lowestCost(claimAndRelease);
      await fill(bed, MANY, {});
      const large = await lowestCost(async () => assert.equal(await claimAndRelease(), CLAIMED));
      assert(large <= allowed(small), `${large} ms on a large table, ${small} ms on a small one`);
    },
  },
  {
    name: `a sweep and a claim do not notice ${MANY} jobs that are due later`,
    timeout: 180_000,
    async run(bed) {
      const idle = async () => {
        const { ready, jobs } = await bed.sweep(bed.now, 1_000);
        assert.deepEqual([ready.size, jobs.length], [0, 0]);
        assert.deepEqual(await bed.claim({ limit: CLAIMED }), []);
      };
      const later = bed.now + 3_600_000;
      await fill(bed, 1_000, { dueAt: later });
      const small = await lowestCost(idle);
      await fill(bed, MANY / 2, { dueAt: later });
      await fill(bed, MANY / 2, { dueAt: later, waitAt: later + 1, totalAt: later + 2 });
      const large = await lowestCost(idle);
      assert(large <= allowed(small), `${large} ms on a large table, ${small} ms on a small one`);
    },
  },
];

export const growth: ConformanceSection = { name: "growth", cases };
