import assert from "node:assert/strict";
import type { JobRow } from "../../core/job/job.ts";
import { nextFence } from "../../core/job/job.ts";
import type { Unit } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, LEASE, POLICY, refused, type TestBed } from "./test-bed.ts";

/** A job that was taken from a silent holder and given to another. Writes of the first one must be lost. */
async function reclaimed(bed: TestBed): Promise<{ zombie: JobRow; holder: JobRow }> {
  await bed.add();
  const zombie = await bed.start(await bed.claimOne());
  const later = bed.now + LEASE * 100;
  await bed.write(zombie, { type: "wake" }, { now: later, outsider: true });
  await bed.sweep(later + 3_600_000);
  const holder = await bed.claimOne({ worker: "worker-2", now: later });
  assert.equal(holder.id, zombie.id);
  return { zombie, holder: await bed.start(holder) };
}

type ZombieWrite = readonly [name: string, unit: (bed: TestBed, zombie: JobRow) => Unit];

const ZOMBIE_WRITES: readonly ZombieWrite[] = [
  ["a settle", (bed, zombie) => bed.unit(zombie, { type: "succeed", signalled: false, result: "1" })],
  ["a settle that drops", (_bed, { id, fence }) => ({ job: { id, fence, drop: true } })],
  ["a release", (bed, zombie) => bed.unit(zombie, { type: "release" })],
  ["progress", (_bed, { id, fence }) => ({ job: { id, fence, documents: { progress: '"90 %"' } } })],
  ["a checkpoint", (_bed, { id, fence }) => ({ job: { id, fence, documents: { checkpoint: "[1]" } } })],
  ["a log line", (_bed, { id, fence }) => ({ job: { id, fence }, effects: [{ log: "late", job: id }] })],
  [
    "an effect",
    (bed, { id, fence }) => ({
      job: { id, fence },
      effects: [
        { put: ["kit", "late"], body: 1, wakeAt: null },
        { enqueue: bed.job({ queue: "late" }) },
        { event: "late" },
      ],
    }),
  ],
];

const zombies = ZOMBIE_WRITES.map(
  ([name, unitOf]): ConformanceCase => ({
    name: `${name} of a holder that was taken over is lost and changes nothing`,
    async run(bed) {
      const { zombie, holder } = await reclaimed(bed);
      const outcome = refused((await bed.commit(unitOf(bed, zombie)))[0]);
      assert.deepEqual(outcome, {
        ok: false,
        because: "lost",
        at: { state: "active", fence: holder.fence, rev: holder.rev },
      });
      assert.deepEqual(await bed.load(holder.id), holder);
      assert.deepEqual(await bed.store.inspect.logs(holder.id), []);
      assert.deepEqual(await bed.store.records.load([["kit", "late"]]), [null]);
      assert.equal((await bed.store.inspect.depth("late")).available, 0);
      assert.deepEqual((await bed.store.inspect.events(null, 10)).events, []);
    },
  }),
);

const zombieBeat: ConformanceCase = {
  name: "a beat of a holder that was taken over is lost and moves nothing",
  async run(bed) {
    const { zombie, holder } = await reclaimed(bed);
    const { id, fence, rev } = zombie;
    const answers = await bed.store.jobs.beat({
      now: bed.now,
      worker: { id: "worker-1", body: null, wakeAt: bed.now + 60_000 },
      jobs: [{ id, fence, rev, stallAt: bed.now + 1 }],
    });
    assert.deepEqual(answers, [{ lost: "active" }]);
    assert.deepEqual(await bed.load(holder.id), holder);
  },
};

const fences: ConformanceCase[] = [
  {
    name: "each claim grows the fence by one step of its counter and carries its salt",
    async run(bed) {
      await bed.add();
      let fence = 0;
      for (const salt of [0, 2 ** 21 - 1, 7, 1_048_576]) {
        const row = await bed.claimOne({ salt });
        assert.equal(row.fence, nextFence(fence, salt));
        assert(row.fence > fence);
        fence = row.fence;
        await bed.write(row, { type: "release" });
      }
    },
  },
  {
    name: "a claim that was rolled back shares its counter with the next one, and is lost by its salt",
    async run(bed) {
      await bed.add();
      const holder = await bed.claimOne({ salt: 1_000 });
      const { id } = holder;
      const rolledBack = { ...holder, fence: nextFence(0, 2_000) };
      const [outcome] = await bed.commit({ job: { id, fence: rolledBack.fence, drop: true } });
      assert.equal(refused(outcome).because, "lost");
      assert.deepEqual(await bed.load(id), holder);
    },
  },
  {
    name: "an outsider's verdict voids the attempt at once",
    async run(bed) {
      const row = await bed.add();
      const running = await bed.start(await bed.claimOne());
      const cancelled = await bed.write(running, { type: "cancel" }, { outsider: true });
      assert.equal(cancelled.state, "cancelled");
      assert(cancelled.fence > running.fence);
      const [outcome] = await bed.commit(bed.unit(running, { type: "succeed", signalled: false }));
      const { fence, rev } = cancelled;
      assert.deepEqual(outcome, { ok: false, because: "lost", at: { state: "cancelled", fence, rev } });
      assert.deepEqual(await bed.load(row.id), cancelled);
    },
  },
  {
    name: "a settle repeated after a lost reply gets enough to recognise its own success",
    async run(bed) {
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const unit = bed.unit(running, { type: "succeed", signalled: false, result: '{"n":1}' });
      assert.deepEqual(await bed.commit(unit), [{ ok: true }]);
      const settled = found(await bed.load(running.id));
      const { because, at } = refused((await bed.commit(unit))[0]);
      assert.equal(because, "lost");
      assert.deepEqual(at, { state: "completed", fence: running.fence, rev: running.rev + 1 });
      assert.deepEqual(await bed.load(running.id), settled);
    },
  },
  {
    name: "a drop deletes at once, and its repetition finds the job gone",
    async run(bed) {
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      const { job } = bed.unit(running, { type: "succeed", signalled: false });
      assert(job);
      const unit = { job: { ...job, drop: true as const } };
      assert.deepEqual(await bed.commit(unit), [{ ok: true }]);
      assert.equal(await bed.load(running.id), null);
      assert.deepEqual(await bed.commit(unit), [{ ok: false, because: "gone", at: null }]);
    },
  },
  {
    name: "a job enqueued again under the id of one that was dropped has its own fence, and old writes are lost",
    async run(bed) {
      const first = bed.job({ id: bed.job().id, fence: 17 });
      const again = { ...first, fence: 4_711 };
      await bed.addMany([first]);
      const before = found(await bed.load(first.id));
      const late = bed.unit(before, { type: "cancel" }, { outsider: true });
      const { id, fence, rev } = before;
      await bed.commit({ job: { id, fence, rev, drop: true } });
      await bed.addMany([again]);
      const [outcome] = await bed.commit(late);
      assert.equal(outcome?.ok === false && outcome.because, "lost");
      assert.equal(found(await bed.load(id)).fence, 4_711);
    },
  },
  {
    name: "a write to an unknown job is answered gone, without a position",
    async run(bed) {
      const unit = { job: { id: bed.nextId(), fence: 0 }, effects: [{ event: "never" }] };
      assert.deepEqual(await bed.commit(unit), [{ ok: false, because: "gone", at: null }]);
      assert.deepEqual((await bed.store.inspect.events(null, 10)).events, []);
    },
  },
];

const revisions: ConformanceCase[] = [
  {
    name: "every image increases the revision by one, documents alone do not",
    async run(bed) {
      const created = await bed.add();
      const claimed = await bed.claimOne();
      assert.equal(claimed.rev, created.rev + 1);
      const started = await bed.start(claimed);
      assert.equal(started.rev, claimed.rev + 1);
      const { id, fence } = started;
      assert.deepEqual(await bed.commit({ job: { id, fence, documents: { progress: "1" } } }), [
        { ok: true },
      ]);
      assert.deepEqual(await bed.load(id), { ...started, progress: "1" });
    },
  },
  {
    name: "an outsider that read an older row is stale and changes nothing",
    async run(bed) {
      const read = await bed.add();
      const moved = await bed.write(read, { type: "extend", total: 60_000 }, { outsider: true });
      const [outcome] = await bed.commit(bed.unit(read, { type: "cancel" }, { outsider: true }));
      const { state, fence, rev } = moved;
      assert.deepEqual(outcome, { ok: false, because: "stale", at: { state, fence, rev } });
      assert.deepEqual(await bed.load(read.id), moved);
      const documents = { checkpoint: "1" };
      const [note] = await bed.commit({ job: { id: read.id, fence, rev: read.rev, documents } });
      assert.equal(refused(note).because, "stale");
      assert.deepEqual(await bed.load(read.id), moved);
    },
  },
  {
    name: "a success that names no revision is written even after an extension",
    async run(bed) {
      await bed.add();
      const running = await bed.start(await bed.claimOne());
      await bed.write(running, { type: "extend", attempt: 7_200_000 }, { outsider: true });
      const settled = await bed.write(running, { type: "succeed", signalled: false });
      assert.equal(settled.state, "completed");
      assert.equal(settled.rev, running.rev + 2);
    },
  },
  {
    name: "documents that are not named stay, and null clears one",
    async run(bed) {
      const { id, fence } = await bed.add({ options: { meta: { a: 1 } } });
      const write = async (documents: NonNullable<Unit["job"]>["documents"] & object) =>
        assert.deepEqual(await bed.commit({ job: { id, fence, documents } }), [{ ok: true }]);
      await write({ progress: "1", checkpoint: "2", result: "3", policy: POLICY, errors: [] });
      await write({ progress: null, result: '"new"' });
      const row = found(await bed.load(id));
      assert.equal(row.progress, null);
      assert.equal(row.checkpoint, "2");
      assert.equal(row.result, '"new"');
      assert.deepEqual(row.policy, POLICY);
      assert.deepEqual(row.errors, []);
      assert.deepEqual(row.options, { meta: { a: 1 } });
      await write({ options: null, policy: null, errors: null, checkpoint: null, result: null });
      const { options, policy, errors, checkpoint, result } = found(await bed.load(id));
      assert.deepEqual([options, policy, errors, checkpoint, result], [null, null, null, null, null]);
    },
  },
  { name: "a manual retry revives a finished job, and only with its revision", run: revives },
];

async function revives(bed: TestBed): Promise<void> {
  await bed.add();
  const running = await bed.start(await bed.claimOne());
  const error = { type: "Error", code: "handler_error", message: "no" };
  const dead = await bed.write(running, { type: "fail", error, signalled: false, final: true });
  assert.equal(dead.state, "discarded");
  const retry = bed.unit(dead, { type: "retry" }, { outsider: true });
  const { rev: _rev, ...withoutRevision } = retry.job as NonNullable<Unit["job"]>;
  assert.equal(refused((await bed.commit({ job: withoutRevision }))[0]).because, "lost");
  assert.deepEqual(await bed.commit(retry), [{ ok: true }]);
  const revived = found(await bed.load(dead.id));
  assert.equal(revived.state, "available");
  assert.equal(revived.finishedAt, null);
  assert.deepEqual(revived.errors, dead.errors);
  const again = await bed.claimOne();
  assert.equal(again.id, dead.id);
  assert(again.fence > revived.fence && revived.fence > running.fence);
  assert.equal(refused((await bed.commit(retry))[0]).because, "lost");
}

export const fencing: ConformanceSection = {
  name: "fencing",
  cases: [...fences, ...zombies, zombieBeat, ...revisions],
};
