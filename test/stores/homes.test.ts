import { describe, expect, it } from "vitest";
import { cellOfId, cellOfName, homeOf } from "../../src/core/home/cell.ts";
import { cellOfRecord } from "../../src/core/home/cell-of-row.ts";
import { createHomedIdSource } from "../../src/core/ids.ts";
import type { Effect, RecordKey, Store, Unit } from "../../src/ports/store.ts";
import type { HomeStore } from "../../src/stores/homes/home-store.ts";
import { createHomedStore } from "../../src/stores/homes/homed-store.ts";
import { createMemoryHome } from "../../src/stores/memory/memory-store.ts";
import { sketchJob } from "../../src/testing/conformance/test-bed.ts";

const NOW = 1_900_000_000_000;
const HOMES = 4;

/** A store whose homes can be cut off, with what each home was asked to commit. */
function openHomes() {
  const away = new Set<number>();
  const failing: ((home: number, unit: Unit) => boolean)[] = [];
  const committed: { home: number; unit: Unit }[] = [];
  const homes = Array.from({ length: HOMES }, (_, home): HomeStore => {
    const store = createMemoryHome({ clock: () => NOW });
    const here = async () => {
      if (away.has(home)) throw new Error(`home ${home} is away`);
    };
    return {
      ...store,
      jobs: {
        ...store.jobs,
        sweep: (request) => here().then(() => store.jobs.sweep(request)),
        claim: (request) => here().then(() => store.jobs.claim(request)),
      },
      timeouts: {
        ...store.timeouts,
        nextDueAt: (destinations) => here().then(() => store.timeouts.nextDueAt(destinations)),
        reap: (request) => here().then(() => store.timeouts.reap(request)),
      },
      look: (request) => here().then(() => store.look(request)),
      records: { ...store.records, load: (keys) => here().then(() => store.records.load(keys)) },
      async commit(units, options) {
        await here();
        if (units.some((unit) => failing.some((fails) => fails(home, unit)))) throw new Error("cut off");
        for (const unit of units) committed.push({ home, unit });
        return store.commit(units, options);
      },
    };
  });
  const nextId = createHomedIdSource(
    () => NOW,
    (bytes) => bytes.fill(7),
  );
  const store = createHomedStore(homes, { nextId });
  return { store, homes, away, failing, committed, nextId };
}

const homeOfRecord = (key: RecordKey) => homeOf(cellOfRecord(key), HOMES);
const cellIn = (home: number) => home * (4_096 / HOMES);
const sweepAt = (store: Store, now: number) => store.jobs.sweep({ now, limit: 100, holdUntil: now + 2_000 });

/** A saga's unit that enqueues a job in the home `target`. */
function step(nextId: (cell?: number) => string, target: number) {
  const job = sketchJob({ id: nextId(cellIn(target)) }, NOW, () => "");
  const key: RecordKey = ["saga", "order-1"];
  const effects: Effect[] = [{ put: key, body: 1, wakeAt: null }, { enqueue: job }];
  return { job, key, unit: { when: [{ record: key, version: 0 }], effects } };
}

const elsewhere = (key: RecordKey) => (homeOfRecord(key) + 1) % HOMES;

describe("a store with several homes (ADR 33)", () => {
  it("applies an effect of another home before the commit resolves, and leaves no message", async () => {
    const { store, homes, nextId, committed } = openHomes();
    const { job, key, unit } = step(nextId, elsewhere(["saga", "order-1"]));
    expect(await store.commit([unit], { now: NOW })).toEqual([{ ok: true }]);
    expect((await store.jobs.load([job.id]))[0]?.state).toBe("available");
    for (const home of homes) expect(await home.records.list("outbox", null, 10)).toEqual([]);
    const own = committed.find(({ unit: { effects } }) => effects?.some((effect) => "put" in effect));
    expect(own?.home).toBe(homeOfRecord(key));
  });

  it("delivers by the sweep what its sender could not, and once", async () => {
    const { store, away, nextId } = openHomes();
    const target = elsewhere(["saga", "order-1"]);
    const { job, unit } = step(nextId, target);
    away.add(target);
    expect(await store.commit([unit], { now: NOW })).toEqual([{ ok: true }]);
    await sweepAt(store, NOW + 1_000);
    away.delete(target);
    expect((await store.jobs.load([job.id]))[0]).toBeNull();
    await sweepAt(store, NOW + 3_000);
    await sweepAt(store, NOW + 6_000);
    expect((await store.jobs.load([job.id]))[0]?.state).toBe("available");
    expect((await store.inspect.depths("default")).get("default")?.available).toBe(1);
  });

  it("does not apply a message again whose job has run and is gone", async () => {
    const { store, failing, nextId, homes } = openHomes();
    const { job, unit } = step(nextId, elsewhere(["saga", "order-1"]));
    // The message is delivered, but its sender dies before it deletes it.
    const deletes = ({ effects }: Unit) =>
      effects?.some((effect) => "delete" in effect && effect.delete[0] === "outbox") ?? false;
    failing.push((_home, each) => deletes(each));
    await store.commit([unit], { now: NOW });
    failing.pop();
    await store.commit([{ job: { id: job.id, fence: 0, rev: 0, drop: true } }], { now: NOW });
    expect((await store.jobs.load([job.id]))[0]).toBeNull();
    await sweepAt(store, NOW + 1_000);
    expect((await store.jobs.load([job.id]))[0]).toBeNull();
    const left = await Promise.all(homes.map((home) => home.records.list("outbox", null, 10)));
    expect(left.flat()).toEqual([]);
    await sweepAt(store, NOW + 600_000);
    const marks = await Promise.all(homes.map((home) => home.records.list("delivered", null, 10)));
    expect(marks.flat()).toEqual([]);
  });

  it("refuses a unit that guards rows of two homes, and writes nothing of it", async () => {
    const { store, nextId } = openHomes();
    const key: RecordKey = ["saga", "order-1"];
    const job = sketchJob({ id: nextId(cellIn(elsewhere(key))) }, NOW, () => "");
    await store.jobs.enqueue([job], { now: NOW });
    const unit = { job: { id: job.id, fence: 0, rev: 0 }, when: [{ record: key, version: 0 }] };
    await expect(store.commit([unit], { now: NOW })).rejects.toThrow("another home");
  });

  it("pauses a queue in every home, also in one that was away, and resumes it in order", async () => {
    const { store, away, nextId } = openHomes();
    const jobs = Array.from({ length: HOMES }, (_, home) =>
      sketchJob({ id: nextId(cellIn(home)) }, NOW, () => ""),
    );
    await store.jobs.enqueue(jobs, { now: NOW });
    const claim = { queue: "default", limit: 10, now: NOW, lease: 1_000, salt: 1, worker: "w", from: 0 };
    away.add(2);
    await store.commit([{ effects: [{ put: ["pause", "default"], body: {}, wakeAt: null }] }], { now: NOW });
    expect(await store.jobs.claim(claim)).toEqual([]);
    away.delete(2);
    await sweepAt(store, NOW + 1_000);
    expect(await store.jobs.claim(claim)).toEqual([]);
    await store.commit([{ effects: [{ delete: ["pause", "default"] }] }], { now: NOW + 2_000 });
    await sweepAt(store, NOW + 10_000);
    expect(await store.jobs.claim(claim)).toHaveLength(HOMES);
  });

  it("claims, sweeps and reads events without a home that is away, and with it when it is back", async () => {
    const { store, away, nextId } = openHomes();
    const jobs = Array.from({ length: HOMES }, (_, home) =>
      sketchJob({ id: nextId(cellIn(home)) }, NOW, () => ""),
    );
    await store.jobs.enqueue(jobs, { now: NOW });
    const claim = { queue: "default", limit: 10, now: NOW, lease: 1_000, salt: 1, worker: "w", from: 0 };
    away.add(1);
    expect(await store.jobs.claim(claim)).toHaveLength(HOMES - 1);
    expect((await sweepAt(store, NOW)).nextWakeAt).not.toBeNull();
    away.delete(1);
    expect((await store.jobs.claim(claim)).map(({ id }) => homeOf(cellOfId(id), HOMES))).toEqual([1]);
  });

  it("looks for work and reaps without a home that is away, unless it has the records that are asked for", async () => {
    const { store, away, nextId } = openHomes();
    const timeouts = Array.from({ length: HOMES }, (_, home) => ({
      id: nextId(cellIn(home)),
      destination: "d",
      dueAt: NOW + 1_000 * (HOMES - home),
    }));
    await store.timeouts.insert(timeouts, { now: NOW });
    const request = { queues: ["default"], destinations: ["d"], records: [["queues", "all"] as const] };
    expect((await store.look(request)).nextDueAt).toBe(NOW + 1_000);
    away.add(HOMES - 1);
    expect((await store.look(request)).nextDueAt).toBe(NOW + 2_000);
    expect(await store.timeouts.nextDueAt(["d"])).toBe(NOW + 2_000);
    expect(await store.timeouts.reap({ now: NOW })).toBe(0);
    away.delete(HOMES - 1);
    expect((await store.look(request)).nextDueAt).toBe(NOW + 1_000);
    away.add(0);
    await expect(store.look(request)).rejects.toThrow();
    expect((await store.look({ ...request, records: [] })).nextDueAt).toBe(NOW + 1_000);
  });
});

describe("cells", () => {
  it("of names are spread evenly, and ids carry the cell that is asked for", () => {
    const counts = new Array<number>(16).fill(0);
    for (let nth = 0; nth < 16_000; nth++) {
      const home = homeOf(cellOfName(`customer-${nth}`), 16);
      counts[home] = (counts[home] ?? 0) + 1;
    }
    for (const count of counts) expect(Math.abs(count - 1_000)).toBeLessThan(200);
    const nextId = createHomedIdSource(
      () => NOW,
      (bytes) => bytes.fill(1),
    );
    const ids = [0, 1, 2_047, 4_095].map((cell) => nextId(cell));
    expect(ids.map(cellOfId)).toEqual([0, 1, 2_047, 4_095]);
    expect(ids).toEqual(ids.toSorted());
    expect(cellOfId("order-7~0a3")).toBe(0x0a3);
  });
});
