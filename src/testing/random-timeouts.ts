import { type Random, randomInt } from "../core/random.ts";
import type { Instant } from "../core/time.ts";
import type { NewTimeout, SagaKey, TimeoutId } from "../core/timeout/timeout.ts";
import type { Effect, Guard, Store, Unit } from "../ports/store.ts";
import type { LeasedTimeout, TimeoutStore, Which } from "../ports/timeouts.ts";

/** What later operations on timeouts refer to. */
export interface TimeoutWorld {
  now: Instant;
  readonly timeoutIds: TimeoutId[];
  readonly owners: string[];
  nextId(): string;
}

function pick<Item>(random: Random, items: readonly Item[]): Item {
  return items[randomInt(random, items.length)] as Item;
}

const SAGAS: readonly SagaKey[] = [
  ["saga", "a"],
  ["saga", "b"],
];
const DESTINATIONS = ["mail", "bell"];
const KEYS = ["x", "y"];
const LEASE = 20_000;

function drawTimeout(random: Random, world: TimeoutWorld): NewTimeout {
  const isKnown = random() < 0.1 && world.timeoutIds.length > 0;
  const id = isKnown ? pick(random, world.timeoutIds) : `${randomInt(random, 3)} ${world.nextId()}`;
  if (!isKnown) world.timeoutIds.push(id);
  return {
    id,
    destination: pick(random, DESTINATIONS),
    dueAt: world.now + (random() < 0.5 ? 0 : randomInt(random, 5) * 1_000),
    ...(random() < 0.5 && { payload: JSON.stringify({ n: randomInt(random, 9) }) }),
    ...(random() < 0.2 && { headers: { trace: "t", raw: new Uint8Array([0, 255]) } }),
    ...(random() < 0.4 && { key: pick(random, KEYS) }),
    ...(random() < 0.4 && { saga: pick(random, SAGAS), generation: randomInt(random, 3) }),
    ...(random() < 0.1 && { wallClock: { at: "09:00", zone: "UTC" } }),
  };
}

function drawWhich(random: Random, world: TimeoutWorld): Which {
  return pick<() => Which>(random, [
    () => ({ id: drawId(random, world) }),
    () => ({ saga: pick(random, SAGAS) }),
    () => ({ saga: pick(random, SAGAS), key: pick(random, KEYS) }),
    () => ({ destination: pick(random, DESTINATIONS), key: pick(random, KEYS) }),
  ])();
}

function drawId(random: Random, { timeoutIds }: TimeoutWorld): TimeoutId {
  // Mostly recent ones, because old ones are gone.
  const from = Math.max(0, timeoutIds.length - 12);
  return timeoutIds[from + randomInt(random, timeoutIds.length - from)] ?? "nobody";
}

function drawLeased(random: Random, world: TimeoutWorld): LeasedTimeout[] {
  const owners = world.owners.slice(-4);
  return Array.from({ length: 1 + randomInt(random, 4) }, () => ({
    id: drawId(random, world),
    ...(random() < 0.85 && owners.length > 0 && { owner: pick(random, owners) }),
  }));
}

/** Effects on timeouts, to be drawn among others. */
export function drawTimeoutEffect(random: Random, world: TimeoutWorld): Effect {
  return pick<() => Effect>(random, [
    () => ({ request: drawTimeout(random, world) }),
    () => ({ revoke: drawWhich(random, world) }),
    () => ({ remove: drawId(random, world) }),
  ])();
}

export function drawTimeoutGuard(random: Random, world: TimeoutWorld): Guard {
  return { timeout: drawId(random, world), owner: world.owners.at(-1) ?? "nobody" };
}

/** A call to the timeout store. */
export function prepareTimeouts(random: Random, world: TimeoutWorld): (store: Store) => Promise<unknown> {
  const { now } = world;
  const call = pick<() => (timeouts: TimeoutStore) => Promise<unknown>>(random, [
    () => {
      const added = Array.from({ length: 1 + randomInt(random, 5) }, () => drawTimeout(random, world));
      return (timeouts) => timeouts.insert(added, { now });
    },
    () => {
      const owner = world.nextId();
      world.owners.push(owner);
      const limit = 1 + randomInt(random, 6);
      const leaseUntil = now + randomInt(random, LEASE);
      const destinations = DESTINATIONS.slice(randomInt(random, 2)).map((name) => ({
        name,
        limit: 1 + randomInt(random, 4),
      }));
      const request = { now, leaseUntil, owner, limit, ...(random() < 0.5 && { destinations }) };
      return (timeouts) => timeouts.claimDue(request);
    },
    () => {
      const leased = drawLeased(random, world);
      return (timeouts) => timeouts.remove(leased, { now });
    },
    () => prepareRelease(random, world),
    () => {
      const owner = world.owners.at(-1) ?? "nobody";
      const extended = [{ id: drawId(random, world), owner, leaseUntil: now + LEASE }];
      return (timeouts) => timeouts.extend(extended, { now });
    },
    () => prepareOperation(random, world),
  ])();
  return async (store) => ({
    answer: await call(store.timeouts),
    nextDueAt: await store.timeouts.nextDueAt(),
  });
}

function prepareRelease(random: Random, world: TimeoutWorld) {
  const { now } = world;
  const released = drawLeased(random, world).map((leased) => ({
    ...leased,
    ...(random() < 0.3 && { dueAt: now + randomInt(random, 5_000) }),
    ...(random() < 0.3 && { error: `error ${randomInt(random, 3)}` }),
    ...(random() < 0.2 && { isDead: true as const }),
  }));
  return (timeouts: TimeoutStore) => timeouts.release(released, { now });
}

function prepareOperation(random: Random, world: TimeoutWorld) {
  const { now } = world;
  return pick<() => (timeouts: TimeoutStore) => Promise<unknown>>(random, [
    () => (timeouts) => timeouts.reap({ now }),
    () => {
      const which = drawWhich(random, world);
      return (timeouts) => timeouts.cancel(which, { now });
    },
    () => {
      const ids = [drawId(random, world)];
      return (timeouts) => timeouts.requeue(ids, { now });
    },
    () => {
      const id = drawId(random, world);
      const to = now + randomInt(random, 3_000);
      return async (timeouts) => {
        const row = (await timeouts.list({}, null, 1_000)).find((each) => each.id === id);
        const from = row?.dueAt ?? now;
        return timeouts.reschedule([{ id, from, to }], { now });
      };
    },
  ])();
}

/** Many saga steps in one call, each on its own record and timeout, some of which have changed. */
export function prepareSteps(random: Random, world: TimeoutWorld): (store: Store) => Promise<unknown> {
  const { now } = world;
  const drawn = Array.from({ length: 2 + randomInt(random, 4) }, (_, index) => {
    const { key: _key, ...request } = drawTimeout(random, world);
    return {
      record: ["saga", pick(random, ["a", "b", `${index}`])] as const,
      pick: randomInt(random, 5),
      isStale: random() < 0.1,
      isRobbed: random() < 0.1,
      effects: [
        ...(random() < 0.6 ? [{ request }] : []),
        ...(random() < 0.4 ? [{ revoke: { id: drawId(random, world) } }] : []),
        ...(random() < 0.3 ? [{ event: index }] : []),
      ] satisfies Effect[],
      isDeleted: random() < 0.1,
    };
  });
  return async (store) => {
    const leased = (await store.timeouts.list({}, null, 1_000)).filter(({ owner }) => owner !== null);
    const records = await store.records.load(drawn.map(({ record }) => record));
    const units = drawn.map((each, index): Unit => {
      const { record, isStale, isRobbed, effects, isDeleted } = each;
      const timeout = leased[(each.pick + index) % Math.max(1, leased.length)];
      // A version that no store will ever reach.
      const version = isStale ? 1_000_000 : (records[index]?.version ?? 0);
      const owner = isRobbed ? "nobody" : (timeout?.owner ?? "nobody");
      const written: Effect = isDeleted ? { delete: record } : { put: record, body: index, wakeAt: null };
      return {
        when: [{ record, version }, ...(timeout ? [{ timeout: timeout.id, owner }] : [])],
        effects: [written, ...(timeout ? [{ remove: timeout.id }] : []), ...effects],
      };
    });
    return (await store.commit(units, { now })).map((outcome) => (outcome.ok ? outcome : outcome.because));
  };
}

/** Everything about timeouts that is visible from outside. */
export async function readTimeouts({ timeouts }: Store, now: Instant) {
  return {
    all: await timeouts.list({}, null, 1_000),
    ofSaga: await timeouts.list({ saga: ["saga", "a"], isDead: false }, null, 5),
    dead: await timeouts.list({ isDead: true, destination: "mail" }, null, 5),
    wallClock: await timeouts.list({ hasWallClock: true }, null, 5),
    nextDueAt: await timeouts.nextDueAt(),
    nextMailAt: await timeouts.nextDueAt(["mail", "nobody"]),
    counts: await timeouts.count({ now }),
  };
}
