import assert from "node:assert/strict";
import { IMAGE_INSTANTS } from "../../core/job/decide/check-image.ts";
import type { Effect } from "../../ports/store.ts";
import type { ConformanceCase, ConformanceSection } from "./kit.ts";
import { found, LEASE, type TestBed } from "./test-bed.ts";

/** What a store must refuse where it takes an instant: it could round them, and compare them differently from others. */
const NO_INSTANTS = [1_800_000_000_000.5, Number.NaN, Number.POSITIVE_INFINITY];

/** Calls with each value that is no instant, and expects an error that names the field. */
async function refuses(field: string, call: (at: number) => Promise<unknown>): Promise<void> {
  for (const at of NO_INSTANTS) {
    await assert.rejects(call(at), { code: "invalid_instant", field }, `${at} as ${field} must be refused`);
  }
}

async function refusesJobs(bed: TestBed): Promise<void> {
  const { store, now } = bed;
  const good = bed.job();
  for (const name of IMAGE_INSTANTS) {
    const bad = bed.job();
    await refuses(`image.${name}`, (at) =>
      store.jobs.enqueue([good, { ...bad, image: { ...bad.image, [name]: at } }], { now }),
    );
  }
  await refuses("createdAt", (createdAt) => store.jobs.enqueue([good, { ...bed.job(), createdAt }], { now }));
  await refuses("now", (at) => store.jobs.enqueue([good], { now: at }));
  assert.equal(await bed.load(good.id), null, "a refused call must write nothing");
}

async function refusesUnits(bed: TestBed): Promise<void> {
  const row = await bed.add();
  const { id, fence, rev } = row;
  const good = bed.job();
  const enqueue: Effect = { enqueue: good };
  const { image } = bed.unit(row, { type: "cancel" }, { outsider: true }).job ?? {};
  assert(image);
  for (const name of IMAGE_INSTANTS) {
    await refuses(`image.${name}`, (at) =>
      bed.commit({ effects: [enqueue] }, { job: { id, fence, rev, image: { ...image, [name]: at } } }),
    );
  }
  const limit = { concurrency: 1 } as const;
  const key = ["kit", "instant"] as const;
  await refuses("wakeAt", (wakeAt) => bed.effect(enqueue, { put: key, body: 1, wakeAt }));
  await refuses("at", (at) => bed.effect(enqueue, { spend: "key", by: "me", at, limit }));
  await refuses("dueAt", (dueAt) =>
    bed.effect(enqueue, { request: { id: bed.nextId(), destination: "kit", dueAt } }),
  );
  const { createdAt: _createdAt, ...rest } = bed.job();
  await refuses("createdAt", (createdAt) => bed.effect(enqueue, { enqueue: { ...rest, createdAt } }));
  await refuses("now", (now) => bed.store.commit([{ effects: [enqueue] }], { now }));
  assert.equal(await bed.load(good.id), null, "a refused call must write nothing");
  assert.equal(found(await bed.load(id)).rev, rev);
}

async function refusesRequests(bed: TestBed): Promise<void> {
  const { store, now } = bed;
  await bed.add();
  await refuses("now", (at) => bed.claim({ now: at }));
  await refuses("lease", (lease) => bed.claim({ lease }));
  const { id, fence, rev } = await bed.claimOne();
  const worker = { id: "worker-1", body: 1, wakeAt: now + LEASE };
  const jobs = [{ id, fence, rev }];
  await refuses("now", (at) => store.jobs.beat({ now: at, worker, jobs }));
  await refuses("worker.wakeAt", (wakeAt) => store.jobs.beat({ now, worker: { ...worker, wakeAt }, jobs }));
  await refuses("stallAt", (stallAt) =>
    store.jobs.beat({ now, worker, jobs: [{ id, fence, rev, stallAt }] }),
  );
  assert.deepEqual(await store.records.load([["worker", "worker-1"]]), [null]);
  await refuses("now", (at) => store.jobs.sweep({ now: at, limit: 1, holdUntil: now }));
  await refuses("holdUntil", (holdUntil) => store.jobs.sweep({ now, limit: 1, holdUntil }));
}

async function refusesTimeouts(bed: TestBed): Promise<void> {
  const { timeouts } = bed.store;
  const { now } = bed;
  const id = bed.nextId();
  const options = { now };
  await timeouts.insert([{ id, destination: "kit", dueAt: now }], options);
  await refuses("now", (at) => timeouts.claimDue({ now: at, leaseUntil: now + LEASE, owner: "me" }));
  await refuses("leaseUntil", (leaseUntil) => timeouts.claimDue({ now, leaseUntil, owner: "me" }));
  const [row] = await timeouts.claimDue({ now, leaseUntil: now + LEASE, owner: "me" });
  assert.equal(row?.id, id);
  await refuses("leaseUntil", (leaseUntil) => timeouts.extend([{ id, owner: "me", leaseUntil }], options));
  await refuses("dueAt", (dueAt) => timeouts.release([{ id, owner: "me", dueAt }], options));
  await refuses("to", (to) => timeouts.reschedule([{ id, from: now, to }], options));
  const [after] = await timeouts.load([id]);
  assert.deepEqual([after?.dueAt, after?.leaseUntil], [now, now + LEASE]);
}

const cases: ConformanceCase[] = [
  {
    name: "an enqueue refuses fractions of a millisecond, names the field, and writes nothing",
    run: refusesJobs,
  },
  {
    name: "a commit refuses fractions of a millisecond, names the field, and writes nothing",
    run: refusesUnits,
  },
  { name: "a claim, a beat and a sweep refuse fractions of a millisecond", run: refusesRequests },
  { name: "timeouts refuse fractions of a millisecond", run: refusesTimeouts },
];

export const instants: ConformanceSection = { name: "instants", cases };
