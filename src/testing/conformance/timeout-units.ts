import assert from "node:assert/strict";
import { cellOfRecord } from "../../core/home/cell-of-row.ts";
import type { TimeoutId, TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Effect, Outcome, RecordKey, Store, Unit } from "../../ports/store.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import { failFirst, faultyStore } from "../faulty-store.ts";
import { depthOf } from "../read-store.ts";
import { heard, skipWithoutHints } from "./hinting.ts";
import { type ConformanceCase, type ConformanceSection, inOneHome } from "./kit.ts";
import { idsOf, refused, type TestBed, times } from "./test-bed.ts";

/** What sagas need (SEMANTICS 7.3 and 7.4): timeouts and records in one unit. */

const KEY: RecordKey = ["saga", "1"];

async function hold(bed: TestBed, id: TimeoutId, leaseUntil = bed.now + 60_000): Promise<string> {
  await bed.store.timeouts.insert([{ id, destination: "kit", dueAt: bed.now }], { now: bed.now });
  const owner = bed.nextId();
  const rows = await bed.store.timeouts.claimDue({ now: bed.now, leaseUntil, owner });
  assert.deepEqual(idsOf(rows), [id]);
  return owner;
}

function list(bed: TestBed): Promise<TimeoutRow[]> {
  return bed.store.timeouts.list({}, null, 1_000);
}

/** The version of the record; 0 if there is none. */
async function versionOf(bed: TestBed): Promise<number> {
  return (await bed.store.records.load([KEY]))[0]?.version ?? 0;
}

/** What the handler of a timeout commits: the new state, and the removal of the timeout. */
function handled(id: TimeoutId, owner: string, version: number): Unit {
  return {
    when: [
      { record: KEY, version },
      { timeout: id, owner },
    ],
    effects: [{ put: KEY, body: { handled: id }, wakeAt: null }, { remove: id }],
  };
}

function revokedOf(outcome: Outcome | undefined): readonly Revoked[] | undefined {
  assert(outcome?.ok, "the unit must be committed");
  return outcome.revoked;
}

const guards: ConformanceCase[] = [
  {
    name: "a leased timeout is removed with the record's new version; repeated, nothing happens",
    async run(bed) {
      const owner = await hold(bed, "t");
      assert.deepEqual(await bed.commit(handled("t", owner, 0)), [{ ok: true }]);
      assert.deepEqual(await list(bed), []);
      const version = await versionOf(bed);
      assert(version > 0);
      assert.equal(refused((await bed.commit(handled("t", owner, version)))[0]).because, "lapsed");
      assert.equal(await versionOf(bed), version);
    },
  },
  {
    name: "a timeout that is stolen, released, expired or gone refuses the whole unit",
    async run(bed) {
      const { timeouts } = bed.store;
      const refuses = async (id: TimeoutId, owner: string) => {
        const before = await list(bed);
        assert.equal(refused((await bed.commit(handled(id, owner, 0)))[0]).because, "lapsed");
        assert.deepEqual(await list(bed), before);
        assert.equal((await bed.store.records.load([KEY]))[0], null);
        await timeouts.remove([{ id }], { now: bed.now });
      };
      await refuses("expired", await hold(bed, "expired", bed.now));
      const robbed = await hold(bed, "stolen", bed.now);
      await timeouts.claimDue({ now: bed.now, leaseUntil: bed.now + 5_000, owner: "thief" });
      await refuses("stolen", robbed);
      const released = await hold(bed, "released");
      await timeouts.release([{ id: "released" }], { now: bed.now });
      await refuses("released", released);
      const revoked = await hold(bed, "revoked");
      await timeouts.cancel({ id: "revoked" }, { now: bed.now });
      await refuses("revoked", revoked);
    },
  },
  {
    name: "a unit for an idle timeout happens only if it has no owner, is due then and is dead as named",
    async run(bed) {
      const { timeouts } = bed.store;
      const dueAt = bed.now;
      await hold(bed, "held");
      await timeouts.insert([{ id: "idle", destination: "kit", dueAt }], { now: bed.now });
      const change = async (idle: TimeoutId, due: number, isDead: boolean) => {
        const effects: Effect[] = [{ put: KEY, body: idle, wakeAt: null }, { remove: idle }];
        const [outcome] = await bed.commit({ when: [{ idle, dueAt: due, isDead }], effects });
        return outcome?.ok || outcome?.because;
      };
      assert.equal(await change("held", dueAt, false), "lapsed");
      assert.equal(await change("nobody", dueAt, false), "lapsed");
      assert.equal(await change("idle", dueAt + 1, false), "lapsed");
      assert.equal(await change("idle", dueAt, true), "lapsed");
      assert.equal(await versionOf(bed), 0);
      await timeouts.release([{ id: "idle", isDead: true }], { now: bed.now });
      assert.equal(await change("idle", dueAt, false), "lapsed");
      assert.equal(await change("idle", dueAt, true), true);
      assert.deepEqual(idsOf(await list(bed)), ["held"]);
    },
  },
  {
    name: "an idle timeout is stored anew under its id and key in one unit, with another instant",
    async run(bed) {
      const { timeouts } = bed.store;
      const { now } = bed;
      const keyed = { id: "t", destination: "kit", dueAt: now, payload: "1", key: "k", saga: KEY };
      await timeouts.insert([keyed], { now });
      await timeouts.release([{ id: "t", error: "no", isDead: true }], { now });
      const unit: Unit = {
        when: [{ idle: "t", dueAt: now, isDead: true }],
        effects: [{ remove: "t" }, { request: { ...keyed, dueAt: now + 9 } }],
      };
      assert.deepEqual(await bed.commit(unit), [{ ok: true }]);
      const [row] = await list(bed);
      assert.deepEqual(
        [row?.dueAt, row?.key, row?.payload, row?.tries, row?.deadAt],
        [now + 9, "k", "1", 0, null],
      );
      assert.equal(refused((await bed.commit(unit))[0]).because, "lapsed");
      assert.deepEqual(idsOf(await list(bed)), ["t"]);
    },
  },
  {
    name: "a conflict on the record leaves the timeout with its holder",
    async run(bed) {
      const owner = await hold(bed, "t");
      assert.equal(refused((await bed.commit(handled("t", owner, 3)))[0]).because, "conflict");
      assert.equal(await versionOf(bed), 0);
      assert.deepEqual(await bed.commit(handled("t", owner, 0)), [{ ok: true }]);
    },
  },
  {
    name: "a lost reply: repeated, the unit finds the timeout gone and does nothing twice",
    async run(bed) {
      const store = faultyStore(bed.store, failFirst("commit", "lose-reply"));
      const owner = await hold(bed, "t");
      const unit = handled("t", owner, 0);
      await assert.rejects(store.commit([unit], { now: bed.now }), { code: "store_failed" });
      const version = await versionOf(bed);
      assert(version > 0);
      assert.equal(refused((await store.commit([unit], { now: bed.now }))[0]).ok, false);
      assert.equal(await versionOf(bed), version);
    },
  },
];

const effects: ConformanceCase[] = [
  {
    name: "requests and revokes happen with the unit, and the outcome counts each revoke",
    async run(bed) {
      const request = (id: string, key?: string): Effect => ({
        request: { id, destination: "kit", dueAt: bed.now + 5_000, saga: KEY, ...(key && { key }) },
      });
      const first = await bed.effect(request("a", "key"), request("b"), request("c"));
      assert.equal(revokedOf(first), undefined);
      const second = await bed.effect(
        { revoke: { saga: KEY, key: "key" } },
        { revoke: { id: "nobody" } },
        request("d", "key"),
        request("e", "key"),
        request("b"),
      );
      assert.deepEqual(revokedOf(second), [
        { pending: 1, leased: 0 },
        { pending: 0, leased: 0 },
      ]);
      assert.deepEqual(idsOf(await list(bed)), ["b", "c", "e"]);
      const [revoked] = revokedOf(await bed.effect({ revoke: { saga: KEY } })) ?? [];
      assert.deepEqual(revoked, { pending: 3, leased: 0 });
    },
  },
  {
    name: "a refused unit requests, revokes and removes nothing",
    async run(bed) {
      await bed.store.timeouts.insert(
        times(2, (index) => ({ id: `t${index}`, destination: "kit", dueAt: bed.now, saga: KEY })),
        { now: bed.now },
      );
      const before = await list(bed);
      const unit: Unit = {
        when: [{ record: KEY, version: 7 }],
        effects: [
          { revoke: { saga: KEY } },
          { remove: "t0" },
          { request: { id: "new", destination: "kit", dueAt: bed.now } },
        ],
      };
      assert.equal(refused((await bed.commit(unit))[0]).because, "conflict");
      assert.deepEqual(await list(bed), before);
    },
  },
  {
    name: "a timeout that is revoked under a lease counts as leased, and its owner commits nothing",
    async run(bed) {
      const owner = await hold(bed, "t");
      assert.deepEqual(revokedOf(await bed.effect({ revoke: { id: "t" } })), [{ pending: 0, leased: 1 }]);
      assert.equal(refused((await bed.commit(handled("t", owner, 0)))[0]).because, "lapsed");
    },
  },
  {
    name: "a revoke and the handler race: exactly one of them counts",
    timeout: 60_000,
    run: revokeRaces,
  },
  {
    name: "an insert, a release and a request send a hint when the first timeout is due",
    skip: skipWithoutHints,
    async run(bed) {
      const { timeouts } = bed.store;
      const dueAt = bed.now + 1_000;
      const timeout = { id: "a", destination: "kit", dueAt };
      await heard(bed, { timeouts: dueAt }, () => timeouts.insert([timeout], { now: bed.now }));
      await heard(bed, { timeouts: dueAt + 1 }, () =>
        bed.effect({ request: { ...timeout, id: "b", dueAt: dueAt + 1 } }),
      );
      await heard(bed, { timeouts: dueAt + 2 }, () =>
        timeouts.release([{ id: "a", dueAt: dueAt + 2 }], { now: bed.now }),
      );
    },
  },
];

/**
 * Twenty sagas at once, as a busy engine commits them. Every fourth has changed, and every fifth has lost its lease.
 */
async function manySteps(bed: TestBed): Promise<void> {
  const { timeouts } = bed.store;
  const names = times(20, (index) => `s${String(index).padStart(2, "0")}`);
  const at = { destination: "kit", dueAt: bed.now };
  await timeouts.insert(
    names.map((id) => ({ id, ...at })),
    { now: bed.now },
  );
  const owner = bed.nextId();
  await timeouts.claimDue({ now: bed.now, leaseUntil: bed.now + 60_000, owner });
  const later = { destination: "kit", dueAt: bed.now + 5_000 };
  await timeouts.insert(
    names.map((id) => ({ id: `${id} old`, ...later, saga: ["saga", id] as const, key: "key" })),
    { now: bed.now },
  );
  const units = names.map((id, index): Unit => {
    const saga: RecordKey = ["saga", id];
    return {
      when: [
        { record: saga, version: index % 4 === 3 ? 5 : 0 },
        { timeout: id, owner: index % 5 === 4 ? "nobody" : owner },
      ],
      effects: [
        { put: saga, body: index, wakeAt: null },
        { remove: id },
        { request: { id: `${id} new`, ...later, saga, key: "key" } },
        { revoke: { id: `${id} gone` } },
        { enqueue: bed.job({ queue: "steps" }) },
        { event: id },
      ],
    };
  });
  const outcomes = await bed.store.commit(units, { now: bed.now });
  const isDone = (index: number) => index % 4 !== 3 && index % 5 !== 4;
  for (const [index, outcome] of outcomes.entries()) {
    if (isDone(index)) assert.deepEqual(outcome, { ok: true, revoked: [{ pending: 0, leased: 0 }] });
    else assert.equal(refused(outcome).because, index % 4 === 3 ? "conflict" : "lapsed");
  }
  const left = names.flatMap((id, index) => (isDone(index) ? [`${id} new`] : [id, `${id} old`]));
  assert.deepEqual(idsOf(await list(bed)), left);
  const done = names.filter((_, index) => isDone(index));
  const records = await bed.store.records.list("saga", null, 100);
  assert.deepEqual(
    records.map(({ key }) => key[1]),
    done,
  );
  assert.equal((await depthOf(bed.store, "steps")).available, done.length);
  const { events } = await bed.store.inspect.events(null, 100);
  // The order of the units is kept within a home.
  const isOrdered = bed.store.capabilities.order === "store";
  assert.deepEqual(isOrdered ? events : events.toSorted(), done);
}

async function revokeRaces(bed: TestBed): Promise<void> {
  const [one, other] = (await bed.handles(2)) as [Store, Store];
  for (let round = 0; round < 100; round++) {
    const id = `t${round}`;
    const owner = await hold(bed, id);
    const fire: Unit = {
      when: [{ timeout: id, owner }],
      effects: [{ remove: id }, { put: ["fired", id], body: 1, wakeAt: null }],
    };
    const calls = [
      () => one.commit([fire], { now: bed.now }),
      () => other.commit([{ effects: [{ revoke: { id } }] }], { now: bed.now }),
    ];
    // Each goes first in half of the rounds.
    const isTurned = round % 2 === 1;
    const answers = await Promise.all((isTurned ? calls.toReversed() : calls).map((call) => call()));
    const [[fired], [revoke]] = (isTurned ? answers.toReversed() : answers) as [Outcome[], Outcome[]];
    const [revoked] = revokedOf(revoke) ?? [];
    assert.notEqual(fired?.ok, revoked?.leased === 1, "fired and revoked, or neither");
    const [record] = await bed.store.records.load([["fired", id]]);
    assert.equal(record !== null, fired?.ok);
  }
}

const sagas: ConformanceCase = {
  name: "steps of many sagas in one call: each is all or nothing, and none stops another",
  run: manySteps,
};

export const timeoutUnits: ConformanceSection = {
  name: "timeouts in units",
  cases: [...inOneHome(cellOfRecord(KEY), [...guards, ...effects]), sagas],
};
