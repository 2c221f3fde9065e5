import assert from "node:assert/strict";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import { realSystem } from "../../engine/runtime/real-system.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";
import { batches, idsOf, times } from "./test-bed.ts";
import { dueRequest, LEASE_LENGTH, type TimeoutBed, type TimeoutCase } from "./timeout-bed.ts";

const HANDLES = 6;

async function everywhere<Answer>(
  bed: TimeoutBed,
  run: (timeouts: TimeoutStore, index: number) => Promise<Answer>,
): Promise<Awaited<Answer>[]> {
  return Promise.all((await bed.handles(HANDLES)).map(run));
}

export const racing: TimeoutCase[] = [
  {
    name: `${HANDLES} claimers at once: every timeout is leased once, and all are found`,
    leases: true,
    timeout: 60_000,
    async run(bed) {
      const all = times(1_000, (index) => bed.timeout({ dueAt: bed.now - (index % 7) }));
      await bed.addMany(all);
      const claimed = await everywhere(bed, async (timeouts) => {
        const mine: TimeoutRow[] = [];
        for (let idle = 0; idle < 3; ) {
          const rows = await timeouts.claimDue(dueRequest(bed, { limit: 7 }));
          idle = rows.length === 0 ? idle + 1 : 0;
          mine.push(...rows);
          assert(mine.length <= all.length, "more was claimed than there is");
        }
        return mine;
      });
      assert.deepEqual(idsOf(claimed.flat()).toSorted(), idsOf(all).toSorted());
    },
  },
  {
    name: "expired leases, claimed by many at once, go to one owner each",
    leases: true,
    async run(bed) {
      for (let round = 0; round < 10; round++) {
        await bed.addMany(times(20, () => bed.timeout()));
        await bed.claim({ leaseUntil: bed.now + 10 });
        const claimed = await everywhere(bed, (timeouts) =>
          timeouts.claimDue(dueRequest(bed, { now: bed.now + 10 })),
        );
        const ids = idsOf(claimed.flat());
        assert.equal(new Set(ids).size, ids.length, "two claims lease the same timeout");
        assert.equal(ids.length, 20);
        await bed.timeouts.remove(
          ids.map((id) => ({ id })),
          { now: bed.now },
        );
      }
    },
  },
  {
    name: "the same id from many handles is inserted once, and the same key exists once",
    async run(bed) {
      for (let round = 0; round < 10; round++) {
        const timeout = bed.timeout();
        const answers = await everywhere(bed, (timeouts) => timeouts.insert([timeout], { now: bed.now }));
        assert.equal(answers.flat().filter((answer) => answer === "created").length, 1);
        await everywhere(bed, (timeouts) =>
          timeouts.insert([bed.timeout({ key: `key ${round}` })], { now: bed.now }),
        );
      }
      assert.equal((await bed.all()).length, 20);
    },
  },
  {
    name: "a cancel and the holder's remove race: exactly one of them gets the timeout",
    leases: true,
    timeout: 60_000,
    async run(bed) {
      const [one, other] = (await bed.handles(2)) as [TimeoutStore, TimeoutStore];
      for (let round = 0; round < 100; round++) {
        await bed.add();
        const { id, owner } = await bed.claimOne();
        const [revoked, [removed]] = await Promise.all([
          one.cancel({ id }, { now: bed.now }),
          other.remove([{ id, owner }], { now: bed.now }),
        ]);
        assert.equal(revoked.leased + (removed === "ok" ? 1 : 0), 1, `${revoked.leased} and ${removed}`);
      }
    },
  },
];

/** A timeout's life, with the time of a caller that passes `now`. It must not show whose clock was right. */
async function story(bed: TimeoutBed, now: Instant, destination: string): Promise<unknown[]> {
  const { timeouts } = bed;
  const id = `${destination}-timeout`;
  await timeouts.insert([bed.timeout({ id, destination, dueAt: now + 1_000 })], { now });
  const trace: unknown[] = [];
  const claim = async (at: Instant) => {
    const rows = await timeouts.claimDue(dueRequest(bed, { now: at, leaseUntil: at + LEASE_LENGTH }));
    const row = rows.find((each) => each.id === id);
    trace.push(row ? [row.dueAt - now, (row.leaseUntil ?? 0) - now] : null);
    return row?.owner ?? "nobody";
  };
  await claim(now + 999);
  const first = await claim(now + 1_000);
  await claim(now + 1_000 + LEASE_LENGTH - 1);
  trace.push(await timeouts.extend([{ id, owner: first, leaseUntil: now + 200_000 }], { now: now + 2_000 }));
  trace.push(await timeouts.remove([{ id, owner: first }], { now: now + 200_000 }));
  const second = await claim(now + 200_000);
  trace.push(await timeouts.release([{ id, owner: second, dueAt: now + 300_000 }], { now: now + 200_001 }));
  await claim(now + 299_999);
  const third = await claim(now + 300_000);
  trace.push(await timeouts.remove([{ id, owner: third }], { now: now + 300_001 }));
  return trace;
}

const SKEW = 600_000;

export const surviving: TimeoutCase[] = [
  {
    name: "only the time that is passed in counts: callers 10 minutes off see the same",
    leases: true,
    async run(bed) {
      const right = await story(bed, bed.now, "right");
      assert.deepEqual(await story(bed, bed.now - SKEW, "behind"), right);
      assert.deepEqual(await story(bed, bed.now + SKEW, "ahead"), right);
      assert.deepEqual(right.at(-1), ["ok"], "the story ends with the timeout removed");
    },
  },
  {
    name: "what was acknowledged is there after a reopen: inserted, leased, dead and cancelled ones",
    skip: ({ reopen }) => (reopen ? undefined : "the data is gone with the process"),
    async run(bed) {
      const { timeouts, now } = bed;
      const [dead, gone] = [await bed.add(), await bed.add()];
      await bed.add({ headers: { raw: new Uint8Array([7]) }, key: "key", saga: ["saga", "1"] });
      await timeouts.release([{ id: dead.id, error: "no", isDead: true }], { now });
      await timeouts.cancel({ id: gone.id }, { now });
      await bed.claim();
      const before = await bed.all();
      assert.equal(before.length, 2);
      await bed.opened.close();
      const again = await bed.opened.reopen?.();
      assert(again);
      try {
        assert.deepEqual(await again.timeouts.list({}, null, 10), before);
      } finally {
        await again.close();
      }
    },
  },
];

const MANY = 200_000;
const FEW = 2_000;
const ROUNDS = 5;

/**
 * The cost of a claim and the remove that follows it, with destinations and without, whichever is higher. Each is the
 * lowest of some rounds: other programs only add to a cost, and one round without them is enough.
 */
async function claimCost(bed: TimeoutBed): Promise<number> {
  const lowest = async (destinations?: readonly { name: string; limit: number }[]) => {
    const costs: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const from = realSystem.monotonic();
      const rows = await bed.claim(destinations ? { destinations } : {});
      const leased = rows.map(({ id, owner }) => ({ id, ...(owner !== null && { owner }) }));
      const answers = await bed.timeouts.remove(leased, { now: bed.now });
      const next = await bed.timeouts.nextDueAt(destinations?.map(({ name }) => name));
      costs.push(realSystem.monotonic() - from);
      assert(answers.length === 100 && answers.every((answer) => answer === "ok") && next !== null);
    }
    return Math.min(...costs);
  };
  return Math.max(await lowest([{ name: "kit", limit: 100 }]), await lowest());
}

async function fill(bed: TimeoutBed, count: number, dueAt: Instant): Promise<void> {
  const work = batches(times(count, () => bed.timeout({ dueAt }))).values();
  await Promise.all(
    (await bed.handles(2)).map(async (timeouts) => {
      for (const batch of work) await timeouts.insert(batch, { now: bed.now });
    }),
  );
}

export const growing: TimeoutCase[] = [
  {
    name: `a claim planned on an empty table does not notice ${MANY} pending timeouts, due or not`,
    timeout: 180_000,
    async run(bed) {
      const destinations = [{ name: "kit", limit: 100 }];
      for (let round = 0; round < 20; round++) {
        assert.deepEqual(await bed.claim(), []);
        assert.deepEqual(await bed.claim({ destinations }), []);
      }
      await fill(bed, FEW, bed.now);
      const small = await claimCost(bed);
      await fill(bed, MANY / 2, bed.now);
      await fill(bed, MANY / 2, bed.now + 3_600_000);
      const large = await claimCost(bed);
      // Generous, because it must hold on busy machines: a plan that scans the table costs a hundred times more.
      assert(large <= small * 20 + 10, `${large} ms on a large table, ${small} ms on a small one`);
    },
  },
];
