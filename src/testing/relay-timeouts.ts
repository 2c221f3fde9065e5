import type { TimeoutStore } from "../ports/timeouts.ts";

export type TimeoutCall = `timeouts.${Exclude<keyof TimeoutStore, "leases">}`;

/** Carries a call to the store, or lets it go wrong on the way. */
type Send = <Answer>(call: TimeoutCall, request: unknown, run: () => Promise<Answer>) => Promise<Answer>;

/** A timeout store whose calls all go through one function. */
export function relayTimeouts(timeouts: TimeoutStore, send: Send): TimeoutStore {
  return {
    leases: timeouts.leases,
    insert: (added, options) => send("timeouts.insert", added, () => timeouts.insert(added, options)),
    claimDue: (request) => send("timeouts.claimDue", request, () => timeouts.claimDue(request)),
    remove: (held, options) => send("timeouts.remove", held, () => timeouts.remove(held, options)),
    release: (held, options) => send("timeouts.release", held, () => timeouts.release(held, options)),
    extend: (held, options) => send("timeouts.extend", held, () => timeouts.extend(held, options)),
    reap: (request) => send("timeouts.reap", request, () => timeouts.reap(request)),
    cancel: (which, options) => send("timeouts.cancel", which, () => timeouts.cancel(which, options)),
    requeue: (ids, options) => send("timeouts.requeue", ids, () => timeouts.requeue(ids, options)),
    reschedule: (moves, options) =>
      send("timeouts.reschedule", moves, () => timeouts.reschedule(moves, options)),
    load: (ids) => send("timeouts.load", ids, () => timeouts.load(ids)),
    calendar: (request) => send("timeouts.calendar", request, () => timeouts.calendar(request)),
    list: (filter, after, limit) => send("timeouts.list", filter, () => timeouts.list(filter, after, limit)),
    nextDueAt: (destinations) =>
      send("timeouts.nextDueAt", destinations, () => timeouts.nextDueAt(destinations)),
    count: (request) => send("timeouts.count", request, () => timeouts.count(request)),
  };
}
