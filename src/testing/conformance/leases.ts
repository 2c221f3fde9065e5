import assert from "node:assert/strict";
import type { JobRow } from "../../core/job/job.ts";
import { resolvePolicy } from "../../core/job/policy/policy.ts";
import type { BeatAnswer, BeatRequest } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, LEASE, type TestBed } from "./test-bed.ts";

type BeatJob = BeatRequest["jobs"][number];

function beat(bed: TestBed, ...jobs: BeatJob[]): Promise<BeatAnswer[]> {
  const worker = { id: "worker-1", body: { host: "here" }, wakeAt: bed.now + 60_000 };
  return bed.store.jobs.beat({ now: bed.now, worker, jobs });
}

function beatOf({ id, fence, rev }: JobRow): BeatJob {
  return { id, fence, rev };
}

const expiredClaims: ConformanceCase[] = [
  {
    name: "a claim that runs out before its start spends no attempt and adds an expired claim",
    async run(bed) {
      await bed.add();
      const claimed = await bed.claimOne();
      const runsOutAt = bed.now + LEASE;
      assert.deepEqual((await bed.sweep(runsOutAt - 1)).jobs, [], "a lease must not end early");
      const [due] = (await bed.sweep(runsOutAt)).jobs;
      assert.equal(due?.id, claimed.id);
      const back = await bed.write(found(due), { type: "wake" }, { now: runsOutAt, outsider: true });
      assert.deepEqual([back.state, back.expiredClaims, back.attempt], ["available", 1, 0]);
      assert(back.fence > claimed.fence);
      assert.equal((await bed.claimOne({ now: runsOutAt })).expiredClaims, 1);
    },
  },
  {
    name: "a short heartbeat cuts a claim, but not below what the worker asks for",
    async run(bed) {
      const most = { most: 10 };
      for (const request of [{}, most]) {
        for (const [shortest, lasts] of [
          [undefined, 3_000],
          [5_000, 5_000],
          [LEASE + 1, LEASE],
        ] as const) {
          await bed.add({ heartbeat: 3_000 });
          const claimed = await bed.claimOne({ ...request, ...(shortest && { shortest }) });
          assert.equal(claimed.stallAt, bed.now + lasts);
          assert.deepEqual(await bed.load(claimed.id), claimed);
        }
      }
    },
  },
  {
    name: "an attempt that started and fell silent is spent",
    async run(bed) {
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const silentAt = bed.now + (running.heartbeat ?? 0);
      const [due] = (await bed.sweep(silentAt)).jobs;
      const after = await bed.write(found(due), { type: "wake" }, { now: silentAt, outsider: true });
      assert.deepEqual([after.state, after.expiredClaims, after.attempt], ["retryable", 0, 1]);
      assert.equal(after.errors?.[0]?.type, "stalled");
      assert(after.fence > running.fence);
    },
  },
  {
    name: "a release returns a claim without spending an attempt, and it can be claimed at once",
    async run(bed) {
      await bed.add();
      const back = await bed.write(await bed.claimOne(), { type: "release" });
      assert.deepEqual([back.state, back.attempt, back.expiredClaims, back.returns], ["available", 0, 0, 0]);
      assert.equal((await bed.claimOne()).id, back.id);
    },
  },
];

/** An attempt whose own beats count, so that its row has a `stallAt`. */
async function startedWithBeats(bed: TestBed): Promise<JobRow> {
  await bed.add();
  const policy = resolvePolicy({ definition: { timeouts: { heartbeat: 20_000 } } });
  return bed.write(await bed.claimOne(), { type: "start", policy, upper: bed.now });
}

const beats: ConformanceCase[] = [
  {
    name: "a beat moves stallAt, and nothing else",
    async run(bed) {
      const running = await startedWithBeats(bed);
      const stallAt = bed.now + 33_333;
      assert.deepEqual(await beat(bed, { ...beatOf(running), stallAt }), ["ok"]);
      assert.deepEqual(await bed.load(running.id), { ...running, stallAt });
      assert.deepEqual(await beat(bed, beatOf(running)), ["ok"]);
      assert.deepEqual(await bed.load(running.id), { ...running, stallAt });
    },
  },
  {
    name: "a beat answers per job: ok, changed, lost with the current state, gone",
    async run(bed) {
      const running = await startedWithBeats(bed);
      const extended = await startedWithBeats(bed);
      await bed.write(extended, { type: "extend", attempt: 7_200_000 }, { outsider: true });
      const cancelled = await startedWithBeats(bed);
      await bed.write(cancelled, { type: "cancel" }, { outsider: true });
      const settled = await startedWithBeats(bed);
      await bed.write(settled, { type: "succeed", signalled: false });
      const released = await startedWithBeats(bed);
      await bed.write(released, { type: "release" });
      const unknown = { ...beatOf(running), id: bed.nextId() };
      const rows = [running, extended, cancelled, settled, released];
      assert.deepEqual(await beat(bed, ...rows.map(beatOf), unknown), [
        "ok",
        "changed",
        { lost: "cancelled" },
        { lost: "completed" },
        { lost: "available" },
        { lost: "gone" },
      ]);
    },
  },
  {
    name: "a beat of a wrong fence moves nothing, whatever else the call contains",
    async run(bed) {
      const running = await startedWithBeats(bed);
      const other = await startedWithBeats(bed);
      const wrong = { ...beatOf(running), fence: running.fence + 1, stallAt: bed.now + 1 };
      const right = { ...beatOf(other), stallAt: bed.now + 44_444 };
      assert.deepEqual(await beat(bed, wrong, right), [{ lost: "active" }, "ok"]);
      assert.deepEqual(await bed.load(running.id), running);
      assert.equal((await bed.load(other.id))?.stallAt, right.stallAt);
    },
  },
  {
    name: "a beat that names the first and the third of three jobs, one of them twice, leaves the second alone",
    async run(bed) {
      const [first, second, third] = [
        await startedWithBeats(bed),
        await startedWithBeats(bed),
        await startedWithBeats(bed),
      ];
      const stallAt = bed.now + 55_555;
      const beats = [first, first, third].map((row) => ({ ...beatOf(row), stallAt }));
      assert.deepEqual(await beat(bed, ...beats), ["ok", "ok", "ok"]);
      assert.deepEqual(await bed.load(first.id), { ...first, stallAt });
      assert.deepEqual(await bed.load(second.id), second);
      assert.deepEqual(await bed.load(third.id), { ...third, stallAt });
    },
  },
  {
    name: "a beat records events of the jobs whose stallAt it moved, in the order of the call, and of no others",
    async run(bed) {
      const [first, second, silent, wrong] = [
        await startedWithBeats(bed),
        await startedWithBeats(bed),
        await startedWithBeats(bed),
        await startedWithBeats(bed),
      ];
      const shared = { name: "beat" };
      const recorded = (row: JobRow, of: string) => ({
        ...beatOf(row),
        records: { event: shared, of: { of } },
      });
      const stallAt = bed.now + 33_333;
      await beat(
        bed,
        { ...recorded(second, "second"), stallAt },
        recorded(silent, "not moved"),
        { ...recorded(wrong, "another's"), fence: wrong.fence + 1, stallAt },
        { ...recorded(first, "first"), stallAt },
        { ...recorded(first, "unknown"), id: bed.nextId(), stallAt },
      );
      await beat(bed, { ...beatOf(first), stallAt });
      const { events } = await bed.store.inspect.events(null, 10);
      assert.deepEqual(events, [
        { name: "beat", of: "second" },
        { name: "beat", of: "first" },
      ]);
    },
  },
  {
    name: "a beat writes the worker's record, with or without jobs",
    async run(bed) {
      const read = async () => (await bed.store.records.load([["worker", "worker-1"]]))[0];
      assert.deepEqual(await beat(bed), []);
      const first = await read();
      await beat(bed);
      const record = await read();
      assert(first && record && record.version > first.version, "each beat must give a higher version");
      const { key, wakeAt, body } = record;
      assert.deepEqual([key, wakeAt, body], [["worker", "worker-1"], bed.now + 60_000, { host: "here" }]);
    },
  },
];

export const leases: ConformanceSection = {
  name: "expired claims, leases and beats",
  cases: [...expiredClaims, ...beats],
};
