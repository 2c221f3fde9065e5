import { CurfewError } from "../core/errors.ts";
import type { Random } from "../core/random.ts";
import type { Store } from "../ports/store.ts";
import { relayTimeouts, type TimeoutCall } from "./relay-timeouts.ts";

/** The calls of a store that can be made to fail. */
export type StoreCall =
  | "clock"
  | "look"
  | "commit"
  | "listen"
  | "jobs.enqueue"
  | "jobs.claim"
  | "jobs.beat"
  | "jobs.sweep"
  | "jobs.load"
  | "jobs.prune"
  | "records.load"
  | "records.list"
  | TimeoutCall
  | "inspect.page"
  | "inspect.count"
  | "inspect.live"
  | "inspect.used"
  | "inspect.depths"
  | "inspect.holders"
  | "inspect.uniqueKeys"
  | "inspect.limitKeys"
  | "inspect.limitKey"
  | "inspect.limitJobs"
  | "inspect.ahead"
  | "inspect.shares"
  | "inspect.slots"
  | "inspect.readyQueues"
  | "inspect.oldestReady"
  | "inspect.events"
  | "inspect.latestEvents"
  | "inspect.logLines";

/**
 * `drop`: the call fails and nothing was done. `lose-reply`: it was done and fails anyway. `delay`: it waits, then is
 * done.
 */
export type Fault = "drop" | "lose-reply" | { readonly delay: () => Promise<void> };

/** Decides how a call fails. `nth` counts the calls of that name from 1. Undefined: it does not fail. */
export type FaultPlan = (call: StoreCall, nth: number) => Fault | undefined;

/** The first `times` calls of a name fail in the same way. */
export function failFirst(call: StoreCall, fault: Fault, times = 1): FaultPlan {
  return (name, nth) => (name === call && nth <= times ? fault : undefined);
}

/** Each call fails with these probabilities. The same random numbers give the same faults. */
export function failRandomly(
  random: Random,
  chances: { readonly drop: number; readonly loseReply: number },
): FaultPlan {
  return () => {
    const draw = random();
    if (draw < chances.drop) return "drop";
    return draw < chances.drop + chances.loseReply ? "lose-reply" : undefined;
  };
}

/** A store that fails on purpose, as a network or a crashing server does: before the work or after it. */
export function faultyStore(store: Store, plan: FaultPlan): Store {
  const counts = new Map<StoreCall, number>();
  const through = async <Answer>(call: StoreCall, run: () => Promise<Answer>): Promise<Answer> => {
    const nth = (counts.get(call) ?? 0) + 1;
    counts.set(call, nth);
    const fault = plan(call, nth);
    if (fault === "drop") throw new CurfewError("store_failed", `${call}: dropped before the store saw it`);
    if (typeof fault === "object") await fault.delay();
    const answer = await run();
    if (fault === "lose-reply")
      throw new CurfewError("store_failed", `${call}: done, but the reply was lost`);
    return answer;
  };
  const { jobs, records, timeouts, inspect } = store;
  return {
    capabilities: store.capabilities,
    clock: () => through("clock", () => store.clock()),
    look: (request) => through("look", () => store.look(request)),
    commit: (units, options) => through("commit", () => store.commit(units, options)),
    listen: (onHint) => through("listen", () => store.listen(onHint)),
    close: () => store.close(),
    jobs: {
      enqueue: (newJobs, options) => through("jobs.enqueue", () => jobs.enqueue(newJobs, options)),
      claim: (request) => through("jobs.claim", () => jobs.claim(request)),
      beat: (request) => through("jobs.beat", () => jobs.beat(request)),
      sweep: (request) => through("jobs.sweep", () => jobs.sweep(request)),
      load: (ids, options) => through("jobs.load", () => jobs.load(ids, options)),
      prune: (request) => through("jobs.prune", () => jobs.prune(request)),
    },
    records: {
      load: (keys) => through("records.load", () => records.load(keys)),
      list: (kind, after, limit, order) =>
        through("records.list", () => records.list(kind, after, limit, order)),
    },
    timeouts: relayTimeouts(timeouts, (call, _request, run) => through(call, run)),
    inspect: {
      page: (scan, limit) => through("inspect.page", () => inspect.page(scan, limit)),
      count: (scan) => through("inspect.count", () => inspect.count(scan)),
      live: (tenant) => through("inspect.live", () => inspect.live(tenant)),
      used: (tenant, most) => through("inspect.used", () => inspect.used(tenant, most)),
      depths: (queue, tenant) => through("inspect.depths", () => inspect.depths(queue, tenant)),
      holders: (after, limit) => through("inspect.holders", () => inspect.holders(after, limit)),
      uniqueKeys: (ids) => through("inspect.uniqueKeys", () => inspect.uniqueKeys(ids)),
      limitKeys: (after, limit) => through("inspect.limitKeys", () => inspect.limitKeys(after, limit)),
      limitKey: (limitKey) => through("inspect.limitKey", () => inspect.limitKey(limitKey)),
      limitJobs: (limitKey, state, limit) =>
        through("inspect.limitJobs", () => inspect.limitJobs(limitKey, state, limit)),
      ahead: (line, before, most) => through("inspect.ahead", () => inspect.ahead(line, before, most)),
      slots: (line, most) => through("inspect.slots", () => inspect.slots(line, most)),
      shares: (queue, limit, most) => through("inspect.shares", () => inspect.shares(queue, limit, most)),
      readyQueues: (after, limit) => through("inspect.readyQueues", () => inspect.readyQueues(after, limit)),
      oldestReady: (limit, tenant) =>
        through("inspect.oldestReady", () => inspect.oldestReady(limit, tenant)),
      events: (after, limit) => through("inspect.events", () => inspect.events(after, limit)),
      latestEvents: (limit, before) =>
        through("inspect.latestEvents", () => inspect.latestEvents(limit, before)),
      logLines: (id, after, limit) => through("inspect.logLines", () => inspect.logLines(id, after, limit)),
    },
  };
}
