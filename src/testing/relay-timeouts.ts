import type { TimeoutStore } from "../ports/timeouts.ts";

export type TimeoutCall = `timeouts.${Exclude<keyof TimeoutStore, "leases">}`;

/** Runs a call, or makes it fail. */
type Send = <Answer>(call: TimeoutCall, request: unknown, run: () => Promise<Answer>) => Promise<Answer>;

/** A timeout store whose calls all go through one function. */
export function relayTimeouts(timeouts: TimeoutStore, send: Send): TimeoutStore {
  return {
    leases: timeouts.leases,
    insert: (added, options) => send("timeouts.insert", added, () => timeouts.insert(added, options)),
    claimDue: (request) => send("timeouts.claimDue", request, () => timeouts.claimDue(request)),
    remove: (leased, options) => send("timeouts.remove", leased, () => timeouts.remove(leased, options)),
    release: (released, options) =>
      send("timeouts.release", released, () => timeouts.release(released, options)),
    extend: (extended, options) =>
      send("timeouts.extend", extended, () => timeouts.extend(extended, options)),
    reap: (request) => send("timeouts.reap", request, () => timeouts.reap(request)),
    cancel: (which, options) => send("timeouts.cancel", which, () => timeouts.cancel(which, options)),
    requeue: (ids, options) => send("timeouts.requeue", ids, () => timeouts.requeue(ids, options)),
    reschedule: (moves, options) =>
      send("timeouts.reschedule", moves, () => timeouts.reschedule(moves, options)),
    list: (filter, after, limit) => send("timeouts.list", filter, () => timeouts.list(filter, after, limit)),
    nextDueAt: (destinations) =>
      send("timeouts.nextDueAt", destinations, () => timeouts.nextDueAt(destinations)),
    count: (request) => send("timeouts.count", request, () => timeouts.count(request)),
  };
}
