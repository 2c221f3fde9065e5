import assert from "node:assert/strict";
import { SETTINGS_CELL } from "../../core/home/cell.ts";
import type { LeaseLoss, NewTimeout, TimeoutId } from "../../core/timeout/timeout.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import { CLAIM_BATCH, type TimeoutStore } from "../../ports/timeouts.ts";
import { idsOf, times } from "./test-bed.ts";
import { LEASE_LENGTH, type TimeoutBed, type TimeoutCase } from "./timeout-bed.ts";
import { CALENDAR_CASES } from "./timeout-calendar.ts";

/** Every rule of SEMANTICS 6 that a store enforces has a case. */

export const inserting: TimeoutCase[] = [
  {
    name: "insert: an empty, overlong or unstorable id, destination or key is refused, and nothing is stored",
    async run(bed) {
      const bad = ["", "a\0b", "\ud800", "x".repeat(513)];
      for (const text of bad) {
        for (const field of ["id", "destination", "key"] as const) {
          const timeout = { ...bed.timeout(), [field]: text };
          await assert.rejects(bed.timeouts.insert([bed.timeout(), timeout], { now: bed.now }), {
            code: "invalid_name",
            field: `timeout.${field}`,
          });
        }
      }
      for (const dueAt of [-1, 1.5, Number.NaN, 2 ** 45]) {
        const wrong = bed.timeouts.insert([bed.timeout({ dueAt })], { now: bed.now });
        await assert.rejects(wrong, { code: "invalid_instant" });
      }
      assert.deepEqual(await bed.all(), []);
    },
  },
  {
    name: "insert: a known id is refused and the first stays, also within one call",
    async run(bed) {
      const first = await bed.add({ payload: "1" });
      const again = { ...bed.timeout({ payload: "2" }), id: first.id };
      const [other, twin] = [bed.timeout({ payload: "3" }), bed.timeout({ payload: "4" })];
      const answers = await bed.timeouts.insert([again, other, { ...twin, id: other.id }], { now: bed.now });
      assert.deepEqual(answers, ["exists", "created", "exists"]);
      assert.deepEqual(
        (await bed.all()).map(({ payload }) => payload),
        ["1", "3"],
      );
    },
  },
  {
    name: "insert: every field comes back as it was given, and what was left out is null",
    async run(bed) {
      const full: NewTimeout = {
        id: "an id with ünïcode 🦉 and \"quotes\" \\ {braces}, 'and' %s",
        destination: "mail",
        dueAt: bed.now + 5,
        payload: '{"a":"\\u0000","b":[1.5,null]}',
        headers: { trace: "1", list: [1, { z: 1, a: 2 }], raw: new Uint8Array([0, 1, 255]), none: null },
        key: 'k"e\\y',
        saga: ["saga.order", 'id "1"'],
        wallClock: { at: "17:00", zone: "Europe/Berlin" },
      };
      const row = await bed.add(full);
      const fresh = { owner: null, leaseUntil: null, tries: 0, deadAt: null, error: null };
      assert.deepEqual(row, { ...full, ...fresh });
      const bare = await bed.add();
      const none = { payload: null, headers: null, key: null, saga: null, wallClock: null };
      assert.deepEqual(bare, { id: bare.id, destination: "kit", dueAt: bed.now, ...none, ...fresh });
    },
  },
  {
    name: "insert: what is stored is a copy, and so is what is returned",
    async run(bed) {
      const bytes = new Uint8Array([1, 2]);
      const list = [1];
      const { id } = await bed.add({ headers: { bytes, list } });
      bytes[0] = 9;
      list.push(2);
      const first = await bed.load(id);
      assert(first?.headers);
      assert.deepEqual(first.headers, { bytes: new Uint8Array([1, 2]), list: [1] });
      (first.headers.bytes as Uint8Array)[1] = 9;
      (first.headers.list as number[]).push(3);
      assert.deepEqual((await bed.load(id))?.headers, { bytes: new Uint8Array([1, 2]), list: [1] });
    },
  },
  {
    name: "insert: a key replaces the timeout that has it in the same destination or saga, and no other",
    run: keysReplace,
  },
];

async function keysReplace(bed: TimeoutBed): Promise<void> {
  const saga = ["saga", "1"] as const;
  const scopes: Partial<NewTimeout>[] = [
    { destination: "a" },
    { destination: "b" },
    { destination: "a", saga },
    { destination: "a", saga: ["saga", "2"] },
    { destination: "a", saga: ["other", "1"] },
  ];
  for (const scope of scopes) await bed.add({ ...scope, key: "key", payload: "1" });
  const claimed = await bed.claim();
  assert.equal(claimed.length, scopes.length);
  // If the scope is the saga, the destination does not matter.
  const second = await bed.add({ destination: "b", saga, key: "key", payload: "2" });
  const [leased] = claimed.filter((row) => row.saga?.[1] === "1" && row.saga[0] === "saga");
  assert(leased?.owner);
  const answers = await bed.timeouts.remove([{ id: leased.id, owner: leased.owner }], { now: bed.now });
  assert.deepEqual(answers, ["gone"], "the owner of what was replaced finds it gone");
  assert.equal((await bed.all()).length, scopes.length);
  assert.deepEqual([second.owner, second.tries, second.payload], [null, 0, "2"]);
  const twice = [bed.timeout({ key: "key", payload: "3" }), bed.timeout({ key: "key", payload: "4" })];
  await bed.addMany(twice);
  const left = (await bed.all()).filter(({ destination }) => destination === "kit");
  assert.deepEqual(
    left.map(({ payload }) => payload),
    ["4"],
  );
}

export const claiming: TimeoutCase[] = [
  {
    name: "claimDue: at the due instant and not before",
    async run(bed) {
      const dueAt = bed.now + 1_000;
      const { id } = await bed.add({ dueAt });
      assert.deepEqual(await bed.claim({ now: dueAt - 1 }), []);
      assert.deepEqual(idsOf(await bed.claim({ now: dueAt })), [id]);
    },
  },
  {
    name: "claimDue: in the order of due instant and id, the first ones first",
    home: SETTINGS_CELL,
    async run(bed) {
      // By the bytes of UTF-8, which differs from the order of UTF-16 for the last two.
      const ids = ["10", "9", "B", "a", "ä", "\uffee", "\u{1f989}"];
      const later = ids.map((id) => bed.timeout({ id, dueAt: bed.now }));
      const earlier = ids.map((id) => bed.timeout({ id: `${id}-early`, dueAt: bed.now - 5 }));
      await bed.addMany([...later.toReversed(), ...earlier.toReversed()]);
      const first = await bed.claim({ limit: 3 });
      assert.deepEqual(idsOf(first), idsOf(earlier.slice(0, 3)));
      assert.deepEqual(idsOf(await bed.claim()), [...idsOf(earlier.slice(3)), ...ids]);
    },
  },
  {
    name: `claimDue: without a limit it takes ${CLAIM_BATCH}`,
    async run(bed) {
      await bed.addMany(times(CLAIM_BATCH + 20, () => bed.timeout()));
      assert.equal((await bed.claim()).length, CLAIM_BATCH);
      assert.equal((await bed.claim()).length, bed.timeouts.leases ? 20 : CLAIM_BATCH);
    },
  },
  {
    name: "claimDue: for the named destinations, at most the limit of each, and no other is touched",
    home: SETTINGS_CELL,
    async run(bed) {
      const many = (destination: string, dueAt: number) =>
        times(5, () => bed.timeout({ destination, dueAt }));
      const [a, b, c] = [many("a", bed.now), many("b", bed.now - 5), many("c", bed.now - 9)];
      await bed.addMany([...a, ...b, ...c]);
      assert.equal(await bed.timeouts.nextDueAt(["a", "none"]), bed.now);
      assert.equal(await bed.timeouts.nextDueAt(["none"]), null);
      const destinations = [
        { name: "a", limit: 2 },
        { name: "b", limit: 3 },
        { name: "none", limit: 9 },
      ];
      const rows = await bed.claim({ destinations });
      assert.deepEqual(idsOf(rows), idsOf([...b.slice(0, 3), ...a.slice(0, 2)]));
      if (bed.timeouts.leases) {
        const few = await bed.claim({ destinations, limit: 1 });
        assert.deepEqual(idsOf(few), idsOf(b.slice(3, 4)));
        const over = await bed.claim({ destinations, now: bed.now + LEASE_LENGTH });
        assert.deepEqual(idsOf(over), idsOf([...b.slice(0, 3), ...a.slice(0, 2)]));
      }
      assert.deepEqual(await bed.claim({ destinations: [] }), []);
      const wrong = bed.claim({ destinations: [{ name: "a", limit: 0 }] });
      await assert.rejects(wrong, RangeError);
    },
  },
  {
    name: "claimDue: a limit of 0, a negative one, a fraction or NaN is a RangeError that names it, and nothing is leased",
    async run(bed) {
      await bed.add();
      for (const limit of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, BATCH_LIMIT + 1]) {
        await assert.rejects(bed.claim({ limit }), (error) => {
          assert(error instanceof RangeError);
          assert.match(error.message, /limit/);
          assert(error.message.includes(String(limit)));
          return true;
        });
      }
      assert.equal((await bed.claimOne()).tries, 0);
    },
  },
  {
    name: "claimDue: what one claim leases, no other gets before the lease expires, and then at once",
    leases: true,
    async run(bed) {
      await bed.add();
      const leased = await bed.claimOne();
      assert.equal(leased.leaseUntil, bed.now + LEASE_LENGTH);
      assert.deepEqual(await bed.claim({ now: leased.leaseUntil - 1 }), []);
      const again = await bed.claimOne({ now: leased.leaseUntil });
      assert.equal(again.id, leased.id);
      assert.notEqual(again.owner, leased.owner);
    },
  },
  {
    name: "claimDue: leased rows at the front neither block nor count",
    leases: true,
    async run(bed) {
      await bed.addMany(times(50, () => bed.timeout({ dueAt: bed.now - 10 })));
      await bed.claim({ limit: 50 });
      const free = times(5, () => bed.timeout());
      await bed.addMany(free);
      assert.deepEqual(idsOf(await bed.claim({ limit: 5 })), idsOf(free));
    },
  },
  {
    name: "claimDue: an expired lease is claimed in order among the free ones",
    leases: true,
    async run(bed) {
      const [a, b, c] = times(3, (index) => bed.timeout({ dueAt: bed.now + index }));
      assert(a && b && c);
      await bed.addMany([b]);
      await bed.claim({ now: b.dueAt, leaseUntil: bed.now + 100 });
      await bed.addMany([a, c]);
      assert.deepEqual(idsOf(await bed.claim({ now: bed.now + 100 })), idsOf([a, b, c]));
    },
  },
];

/** One timeout for each way in which a lease is lost. */
async function lostLeases(bed: TimeoutBed): Promise<{ id: TimeoutId; owner: string; loss: LeaseLoss }[]> {
  const { timeouts, now } = bed;
  const lost: { id: TimeoutId; owner: string; loss: LeaseLoss }[] = [];
  const leased = async (until = now + LEASE_LENGTH) => {
    await bed.add();
    return bed.claimOne({ leaseUntil: until });
  };
  const gone = await leased();
  await timeouts.remove([{ id: gone.id, owner: gone.owner }], { now });
  lost.push({ id: gone.id, owner: gone.owner, loss: "gone" });
  const stolen = await leased(now);
  const thief = await bed.claimOne();
  assert.equal(thief.id, stolen.id);
  lost.push({ id: stolen.id, owner: stolen.owner, loss: "stolen" });
  const unleased = await leased();
  await timeouts.release([{ id: unleased.id, dueAt: now + 1_000 }], { now });
  lost.push({ id: unleased.id, owner: unleased.owner, loss: "unleased" });
  // Inclusive: at `leaseUntil` the lease has expired, even if no other claim took the timeout.
  const expired = await leased(now);
  lost.push({ id: expired.id, owner: expired.owner, loss: "expired" });
  lost.push({ id: "nobody", owner: "anybody", loss: "gone" });
  return lost;
}

export const holding: TimeoutCase[] = [
  ...(["remove", "release", "extend"] as const).map(
    (call): TimeoutCase => ({
      name: `${call}: a caller without the lease gets gone, unleased, stolen or expired, and nothing changes`,
      leases: true,
      async run(bed) {
        const lost = await lostLeases(bed);
        const before = await bed.all();
        const answers = await bed.timeouts[call](
          lost.map(({ id, owner }) => ({ id, owner, leaseUntil: bed.now + 1, dueAt: 5, error: "no" })),
          { now: bed.now },
        );
        assert.deepEqual(
          answers,
          lost.map(({ loss }) => loss),
        );
        assert.deepEqual(await bed.all(), before);
      },
    }),
  ),
  {
    name: "remove: the owner removes it; without an owner anybody does, and an unknown id is no error",
    async run(bed) {
      const { timeouts, now } = bed;
      await bed.add();
      const { id, owner } = await bed.claimOne();
      assert.deepEqual(await timeouts.remove([{ id, owner }], { now }), ["ok"]);
      const free = await bed.add();
      const leased = await bed.claimOne();
      assert.equal(leased.id, free.id);
      const waiting = await bed.add({ dueAt: now + 5_000 });
      const answers = await timeouts.remove([{ id: leased.id }, { id: waiting.id }, { id: "nobody" }], {
        now,
      });
      assert.deepEqual(answers, ["ok", "ok", "ok"]);
      assert.deepEqual(await bed.all(), []);
    },
  },
  {
    name: "release: due again at once, or at the new time; only an error counts as a try",
    leases: true,
    async run(bed) {
      const { timeouts, now } = bed;
      await bed.add();
      const first = await bed.claimOne();
      await timeouts.release([{ id: first.id, owner: first.owner }], { now });
      const second = await bed.claimOne();
      assert.deepEqual([second.id, second.tries, second.error], [first.id, 0, null]);
      const { id, owner } = second;
      await timeouts.release([{ id, owner, dueAt: now + 500, error: "busy" }], { now });
      assert.deepEqual(await bed.claim({ now: now + 499 }), []);
      const third = await bed.claimOne({ now: now + 500 });
      assert.deepEqual([third.tries, third.error, third.dueAt], [1, "busy", now + 500]);
      assert.deepEqual(await timeouts.release([{ id }, { id: "nobody" }], { now }), ["ok", "ok"]);
      assert.equal((await bed.load(id))?.owner, null);
    },
  },
  {
    name: "release: a dead timeout is not claimed, is listed, and starts again once it is requeued",
    async run(bed) {
      const { timeouts, now } = bed;
      await bed.add();
      const { id, owner } = await bed.claimOne();
      await timeouts.release([{ id, owner, error: "no", isDead: true }], { now });
      assert.deepEqual(await bed.claim({ now: now + 10 * LEASE_LENGTH }), []);
      const [dead] = await timeouts.list({ isDead: true }, null, 10);
      assert.deepEqual([dead?.id, dead?.deadAt, dead?.tries, dead?.error], [id, now, 1, "no"]);
      assert.equal(await timeouts.nextDueAt(), null);
      const waiting = await bed.add({ dueAt: now + 9_000 });
      assert.equal(await timeouts.requeue([id, waiting.id, "nobody"], { now: now + 1 }), 1);
      const again = await bed.claimOne({ now: now + 1 });
      assert.deepEqual([again.id, again.tries, again.deadAt], [id, 0, null]);
      assert.equal((await bed.load(waiting.id))?.dueAt, now + 9_000);
    },
  },
  {
    name: "extend: the lease ends at the new time, not before",
    leases: true,
    async run(bed) {
      await bed.add();
      const { id, owner } = await bed.claimOne();
      const leaseUntil = bed.now + 2 * LEASE_LENGTH;
      assert.deepEqual(await bed.timeouts.extend([{ id, owner, leaseUntil }], { now: bed.now }), ["ok"]);
      assert.deepEqual(await bed.claim({ now: leaseUntil - 1 }), []);
      assert.equal((await bed.claimOne({ now: leaseUntil })).id, id);
    },
  },
  {
    name: "reap: frees every expired lease, returns how many, and leaves the others",
    leases: true,
    async run(bed) {
      const { timeouts, now } = bed;
      await bed.addMany(times(30, () => bed.timeout()));
      await bed.claim({ limit: 20, leaseUntil: now + 100 });
      await bed.claim({ limit: 10, leaseUntil: now + 101 });
      assert.equal(await timeouts.reap({ now: now + 99 }), 0);
      assert.equal(await timeouts.reap({ now: now + 100 }), 20);
      assert.equal(await timeouts.reap({ now: now + 100 }), 0);
      const rows = await bed.all();
      assert.equal(rows.filter(({ owner, leaseUntil }) => owner === null && leaseUntil === null).length, 20);
    },
  },
  {
    name: "a call answers per item, in order, and takes no more than a batch",
    async run(bed) {
      const { timeouts, now } = bed;
      await bed.addMany(times(3, () => bed.timeout()));
      const [a, b] = await bed.claim();
      assert(a?.owner && b);
      const leased = { id: a.id, owner: a.owner };
      const answers = await timeouts.remove([{ id: b.id, owner: "x" }, leased, leased], { now });
      assert.deepEqual(answers.slice(1), ["ok", "gone"]);
      assert.notEqual(answers[0], "ok");
      const many = times(BATCH_LIMIT + 1, () => leased);
      await assert.rejects(timeouts.remove(many, { now }), { code: "invalid_limit" });
      assert.deepEqual(await timeouts.remove([], { now }), []);
    },
  },
];

export const managing: TimeoutCase[] = [
  {
    name: "cancel: by id, by key or by saga, leased or not, and it returns how many of each",
    run: cancels,
  },
  {
    name: "cancel: what is not pending counts 0 and is no error",
    async run({ timeouts, now }) {
      const none = { pending: 0, leased: 0 };
      assert.deepEqual(await timeouts.cancel({ id: "nobody" }, { now }), none);
      assert.deepEqual(await timeouts.cancel({ saga: ["saga", "1"] }, { now }), none);
      assert.deepEqual(await timeouts.cancel({ saga: ["saga", "1"], key: "a" }, { now }), none);
      assert.deepEqual(await timeouts.cancel({ destination: "kit", key: "a" }, { now }), none);
    },
  },
  {
    name: "nextDueAt: the first due instant or end of a lease, and null when nothing is pending",
    async run(bed) {
      const { timeouts, now } = bed;
      assert.equal(await timeouts.nextDueAt(), null);
      await bed.add({ dueAt: now + 500 });
      await bed.add({ dueAt: now + 200 });
      assert.equal(await timeouts.nextDueAt(), now + 200);
      if (!timeouts.leases) return;
      const [leased] = await bed.claim({ now: now + 200, leaseUntil: now + 400 });
      assert(leased);
      assert.equal(await timeouts.nextDueAt(), now + 400);
      await timeouts.remove([{ id: leased.id }], { now });
      assert.equal(await timeouts.nextDueAt(), now + 500);
    },
  },
  {
    name: "list: in the order of ids, after a cursor, up to a limit, and by every filter",
    run: lists,
  },
  ...CALENDAR_CASES,
  {
    name: "count: pending, due, leased and dead",
    leases: true,
    async run(bed) {
      const { timeouts, now } = bed;
      await bed.addMany(times(5, () => bed.timeout()));
      await bed.addMany(times(4, () => bed.timeout({ dueAt: now + 1_000 })));
      const [dead] = await bed.claim({ limit: 2 });
      assert(dead);
      await timeouts.release([{ id: dead.id, isDead: true }], { now });
      assert.deepEqual(await timeouts.count({ now }), { pending: 7, due: 3, leased: 1, dead: 1 });
    },
  },
  {
    name: "reschedule: moves what is still due at that instant and not leased",
    async run(bed) {
      const { timeouts, now } = bed;
      const [free, moved] = [await bed.add({ dueAt: now + 100 }), await bed.add({ dueAt: now + 100 })];
      await bed.add();
      const leased = await bed.claimOne();
      const to = now + 50;
      const moves = [
        { id: free.id, from: now + 100, to },
        { id: moved.id, from: now + 99, to },
        { id: leased.id, from: leased.dueAt, to },
        { id: "nobody", from: 0, to },
      ];
      assert.equal(await timeouts.reschedule(moves, { now }), bed.timeouts.leases ? 1 : 2);
      assert.equal((await bed.load(free.id))?.dueAt, to);
      assert.equal((await bed.load(moved.id))?.dueAt, now + 100);
    },
  },
];

async function cancels(bed: TimeoutBed): Promise<void> {
  const { timeouts, now } = bed;
  const [one, two] = [["saga", "1"] as const, ["saga", "2"] as const];
  const byId = await bed.add({ dueAt: now + 1 });
  assert.deepEqual(await timeouts.cancel({ id: byId.id }, { now }), { pending: 1, leased: 0 });
  await bed.add({ key: "a", dueAt: now + 1 });
  await bed.add({ key: "a", saga: one, dueAt: now + 1 });
  await bed.add({ key: "b", saga: one });
  await bed.add({ saga: one, dueAt: now + 1 });
  const other = await bed.add({ key: "a", saga: two, dueAt: now + 1 });
  const leased = await bed.claimOne();
  assert.deepEqual(await timeouts.cancel({ destination: "kit", key: "a" }, { now }), {
    pending: 1,
    leased: 0,
  });
  assert.deepEqual(await timeouts.cancel({ saga: one, key: "a" }, { now }), { pending: 1, leased: 0 });
  assert.deepEqual(await timeouts.cancel({ saga: one }, { now }), { pending: 1, leased: 1 });
  const answers = await timeouts.remove([{ id: leased.id, owner: leased.owner }], { now });
  assert.deepEqual(answers, ["gone"], "the owner of a cancelled timeout finds it gone");
  assert.deepEqual(idsOf(await bed.all()), [other.id]);
}

async function lists(bed: TimeoutBed): Promise<void> {
  const { timeouts, now } = bed;
  const saga = ["saga", "1"] as const;
  const wallClock = { at: "09:00" };
  const sketches: Partial<NewTimeout>[] = [
    { id: "a", saga },
    { id: "b", destination: "mail", saga, wallClock },
    { id: "c", destination: "mail" },
    { id: "d", wallClock, dueAt: now + 1 },
    { id: "e", saga: ["saga", "2"] },
  ];
  for (const sketch of sketches.toReversed()) await bed.add(sketch);
  await timeouts.release([{ id: "a", isDead: true }], { now });
  const ids = async (...[filter, after = null, limit = 10]: Partial<Parameters<TimeoutStore["list"]>>) =>
    idsOf(await timeouts.list(filter ?? {}, after, limit)).join("");
  assert.equal(await ids(), "abcde");
  assert.equal(await ids({}, "b", 2), "cd");
  assert.equal(await ids({}, "e"), "");
  assert.equal(await ids({ destination: "mail" }), "bc");
  assert.equal(await ids({ saga }), "ab");
  assert.equal(await ids({ saga }, "a"), "b");
  assert.equal(await ids({ isDead: true }), "a");
  assert.equal(await ids({ isDead: false }), "bcde");
  assert.equal(await ids({ saga, isDead: false }), "b");
  assert.equal(await ids({ hasWallClock: true }), "bd");
  assert.equal(await ids({ hasWallClock: true, destination: "kit" }), "d");
  await assert.rejects(timeouts.list({}, null, 0), { code: "invalid_limit" });
}
