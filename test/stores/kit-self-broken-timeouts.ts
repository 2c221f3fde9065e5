import type { NewTimeout, TimeoutRow } from "../../src/core/timeout/timeout.ts";
import type { Store } from "../../src/ports/store.ts";
import type { TimeoutStore } from "../../src/ports/timeouts.ts";
import type { Broken } from "./kit-self-broken.ts";

const CLAIMS = "timeouts: insert and claim";
const LEASES = "timeouts: leases";
const LOOKS = "timeouts: cancel, list and inspect";
const RACES = "timeouts: races, crashes and growth";
const UNITS = "timeouts in units";

/** A claim as the store should do it, and something done with its answer. */
function claimThen({ timeouts }: Store, after: (rows: TimeoutRow[]) => TimeoutRow[]): Partial<TimeoutStore> {
  return { claimDue: async (request) => after(await timeouts.claimDue(request)) };
}

const FOREVER = Number.MAX_SAFE_INTEGER;

export const BROKEN_TIMEOUT_STORES = {
  "claims timeouts early": {
    change: ({ timeouts }) => ({
      timeouts: { claimDue: (request) => timeouts.claimDue({ ...request, now: request.now + 1 }) },
    }),
    foundBy: [
      [CLAIMS, "at the due instant and not before"],
      [CLAIMS, "before the lease expires"],
    ],
  },
  "claims timeouts without order": {
    change: (store) => ({ timeouts: claimThen(store, (rows) => rows.toReversed()) }),
    foundBy: [
      [CLAIMS, "in the order of due"],
      [CLAIMS, "in order among"],
    ],
  },
  "claims what others hold": {
    change: ({ timeouts }) => ({
      timeouts: {
        async claimDue(request) {
          await timeouts.reap({ now: FOREVER });
          return timeouts.claimDue(request);
        },
      },
    }),
    foundBy: [
      [CLAIMS, "before the lease expires"],
      [CLAIMS, "neither block nor count"],
      [RACES, "claimers at once"],
    ],
  },
  "counts leased rows into the limit": {
    change: ({ timeouts }) => ({
      timeouts: {
        async claimDue(request) {
          const { leased } = await timeouts.count({ now: request.now });
          const limit = (request.limit ?? 100) - leased;
          return limit < 1 && leased > 0 ? [] : timeouts.claimDue({ ...request, limit });
        },
      },
    }),
    foundBy: [[CLAIMS, "neither block nor count"]],
  },
  "gives an expired lease to nobody": {
    change: ({ timeouts }) => ({
      timeouts: {
        claimDue: async (request) =>
          (await timeouts.claimDue(request)).filter(({ tries, id }) => tries >= 0 && !seen(timeouts, id)),
      },
    }),
    foundBy: [[CLAIMS, "and then at once"]],
  },
  "gives a timeout to two claimers": {
    change(store) {
      let claims = 0;
      let given: TimeoutRow[] = [];
      return {
        timeouts: claimThen(store, (rows) => {
          claims += 1;
          if (claims % 5 === 0) return [...rows, ...given.slice(0, 1)];
          if (rows.length > 0) given = rows;
          return rows;
        }),
      };
    },
    foundBy: [[RACES, "claimers at once"]],
  },
  "claims for all destinations": {
    change: ({ timeouts }) => ({
      timeouts: { claimDue: ({ destinations: _, ...request }) => timeouts.claimDue(request) },
    }),
    foundBy: [[CLAIMS, "for the named destinations"]],
  },
  "takes any limit": {
    change: ({ timeouts }) => ({
      timeouts: {
        claimDue: ({ limit = 100, ...request }) =>
          timeouts.claimDue({ ...request, limit: limit >= 1 && limit <= 1_000 ? Math.floor(limit) : 1 }),
      },
    }),
    foundBy: [[CLAIMS, "RangeError"]],
  },
  "has another batch": {
    change: ({ timeouts }) => ({
      timeouts: { claimDue: (request) => timeouts.claimDue({ limit: 1_000, ...request }) },
    }),
    foundBy: [[CLAIMS, "without a limit"]],
  },
  "goes by its own clock for timeouts": {
    change: (store) => ({
      timeouts: {
        claimDue: async (request) => store.timeouts.claimDue({ ...request, now: await store.clock() }),
      },
    }),
    foundBy: [
      [RACES, "10 minutes off"],
      [CLAIMS, "at the due instant"],
    ],
  },
  "lets anybody remove": {
    change: ({ timeouts }) => ({
      timeouts: {
        remove: (held, options) =>
          timeouts.remove(
            held.map(({ id }) => ({ id })),
            options,
          ),
      },
    }),
    foundBy: [
      [LEASES, "remove: a caller without the lease"],
      [RACES, "exactly one"],
      [CLAIMS, "or saga, and no other"],
    ],
  },
  "lets anybody release and extend": {
    change: ({ timeouts }) => ({
      timeouts: {
        release: (held, options) =>
          timeouts.release(
            held.map(({ owner: _owner, ...rest }) => rest),
            options,
          ),
        extend: async (held) => held.map(() => "ok"),
      },
    }),
    foundBy: [
      [LEASES, "release: a caller without the lease"],
      [LEASES, "extend: a caller without the lease"],
      [LEASES, "the lease ends at the new time"],
    ],
  },
  "honours leases that are over": {
    change: ({ timeouts }) => ({
      timeouts: {
        remove: (held) => timeouts.remove(held, { now: 0 }),
        release: (held) => timeouts.release(held, { now: 0 }),
        extend: (held) => timeouts.extend(held, { now: 0 }),
      },
    }),
    foundBy: [
      [LEASES, "a caller without the lease"],
      [RACES, "10 minutes off"],
    ],
  },
  "counts every release as a try": {
    change: ({ timeouts }) => ({
      timeouts: {
        release: (held, options) =>
          timeouts.release(
            held.map((one) => ({ error: "released", ...one })),
            options,
          ),
      },
    }),
    foundBy: [[LEASES, "only an error counts"]],
  },
  "tries the dead again": {
    change: ({ timeouts }) => ({
      timeouts: {
        release: (held, options) =>
          timeouts.release(
            held.map(({ isDead: _isDead, ...one }) => one),
            options,
          ),
      },
    }),
    foundBy: [
      [LEASES, "a dead timeout is not claimed"],
      [LOOKS, "by every filter"],
    ],
  },
  "reaps leases that run": {
    change: ({ timeouts }) => ({ timeouts: { reap: () => timeouts.reap({ now: FOREVER }) } }),
    foundBy: [[LEASES, "leaves the others"]],
  },
  "accepts a known id": {
    change: ({ timeouts }) => ({
      timeouts: {
        async insert(added, options) {
          for (const { id } of added) await timeouts.remove([{ id }], options);
          await timeouts.insert(added, options);
          return added.map(() => "created" as const);
        },
      },
    }),
    foundBy: [
      [CLAIMS, "a known id is refused"],
      [RACES, "inserted once"],
    ],
  },
  "checks nothing on insert": {
    change: ({ timeouts }) => ({
      timeouts: {
        insert: (added, options) => timeouts.insert(added, options).catch(() => added.map(() => "created")),
      },
    }),
    foundBy: [[CLAIMS, "is refused, and nothing is stored"]],
  },
  "keeps no copy": {
    change({ timeouts }) {
      const given = new Map<string, NewTimeout["headers"]>();
      return {
        timeouts: {
          insert(added, options) {
            for (const { id, headers } of added) given.set(id, headers);
            return timeouts.insert(added, options);
          },
          list: async (...request) =>
            (await timeouts.list(...request)).map((row) => ({ ...row, headers: given.get(row.id) ?? null })),
        },
      };
    },
    foundBy: [[CLAIMS, "is a copy"]],
  },
  "forgets keys": {
    change: ({ timeouts }) => ({
      timeouts: {
        insert: (added, options) =>
          timeouts.insert(
            added.map(({ key: _key, ...rest }) => rest),
            options,
          ),
      },
    }),
    foundBy: [
      [CLAIMS, "or saga, and no other"],
      [RACES, "the same key exists once"],
      [LOOKS, "by id, by key or by saga"],
    ],
  },
  "spares what is held from a cancel": {
    change: ({ timeouts }) => ({
      timeouts: {
        async cancel(which, options) {
          if ("saga" in which) {
            const rows = await timeouts.list({ saga: which.saga }, null, 100);
            if (rows.some(({ owner }) => owner !== null)) return { pending: rows.length - 1, leased: 0 };
          }
          return timeouts.cancel(which, options);
        },
      },
    }),
    foundBy: [[LOOKS, "by id, by key or by saga"]],
  },
  "moves what is held": {
    change: ({ timeouts }) => ({
      timeouts: {
        async reschedule(moves, options) {
          for (const { id, to } of moves) await timeouts.release([{ id, dueAt: to }], options);
          return moves.length;
        },
      },
    }),
    foundBy: [[LOOKS, "not leased"]],
  },
  "leaves leased timeouts out of the calendar": {
    change: ({ timeouts }) => ({
      timeouts: {
        calendar: async (request) => (await timeouts.calendar(request)).filter(({ owner }) => owner === null),
      },
    }),
    foundBy: [[LOOKS, "what is not dead, leased or not"]],
  },
  "overlooks leases in nextDueAt": {
    change: ({ timeouts }) => ({
      timeouts: {
        async nextDueAt() {
          const rows = await timeouts.list({ isDead: false }, null, 1_000);
          const dues = rows.filter(({ owner }) => owner === null).map(({ dueAt }) => dueAt);
          return dues.length === 0 ? null : Math.min(...dues);
        },
      },
    }),
    foundBy: [[LOOKS, "end of a lease"]],
  },
  "walks over all timeouts to claim some": {
    change: ({ timeouts }) => ({
      timeouts: {
        async claimDue(request) {
          const all = await timeouts.list({}, null, 1_000_000);
          // As a planner does that flips to walking the table once it is large.
          const walks = all.length > 10_000 ? 6 : 0;
          for (let walk = 0; walk < walks; walk++)
            all.sort((a, b) => (walk % 2 ? a.dueAt - b.dueAt : b.dueAt - a.dueAt) || (a.id < b.id ? -1 : 1));
          return timeouts.claimDue(request);
        },
      },
    }),
    foundBy: [[RACES, "does not notice"]],
  },
  "ignores the guard of a timeout": {
    change: (store) => ({
      commit: (units, options) =>
        store.commit(
          units.map((unit) => ({ ...unit, when: unit.when?.filter((guard) => "record" in guard) ?? [] })),
          options,
        ),
    }),
    foundBy: [
      [UNITS, "repeated, nothing happens"],
      [UNITS, "refuses the whole unit"],
      [UNITS, "its owner commits nothing"],
      [UNITS, "exactly one of them counts"],
    ],
  },
  "revokes in a refused unit": {
    change: (store) => ({
      async commit(units, options) {
        const outcomes = await store.commit(units, options);
        for (const unit of units.filter((_, index) => !outcomes[index]?.ok)) {
          const effects = (unit.effects ?? []).filter((effect) => "revoke" in effect || "remove" in effect);
          await store.commit([{ effects }], options);
        }
        return outcomes;
      },
    }),
    foundBy: [
      [UNITS, "a refused unit"],
      [UNITS, "leaves the timeout with its holder"],
    ],
  },
  "forgets to count revokes": {
    change: (store) => ({
      commit: async (units, options) =>
        (await store.commit(units, options)).map((outcome) => (outcome.ok ? { ok: true } : outcome)),
    }),
    foundBy: [
      [UNITS, "counts each revoke"],
      [UNITS, "counts as leased"],
    ],
  },
} satisfies Record<string, Broken>;

const seenBefore = new WeakMap<TimeoutStore, Set<string>>();

/** Whether a store has given a timeout out before. */
function seen(timeouts: TimeoutStore, id: string): boolean {
  const ids = seenBefore.get(timeouts) ?? new Set();
  seenBefore.set(timeouts, ids);
  const isKnown = ids.has(id);
  ids.add(id);
  return isKnown;
}
