import { refuse } from "../core/errors.ts";
import { preparePayload } from "../core/job/enqueue/envelope.ts";
import { type AnyDefinition, assertDefinition } from "../core/job/job-definition.ts";
import { portableDefinition, portableOptions } from "../core/job/transfer/portable.ts";
import { type Json, toJsonText } from "../core/schema.ts";
import type { TimeoutId } from "../core/timeout/timeout.ts";
import { encodeHeaders } from "../core/timeout/timeout-headers.ts";
import type { TimeoutsApi } from "../engine/curfew-api.ts";
import type { CallOptions, ClaimedTimeout } from "../engine/dispatch/timeout-api.ts";
import type { Timeout, TimeoutInput } from "../engine/dispatch/timeout-view.ts";
import { readTimeout } from "../ojs/timeout-fields.ts";
import type { Caller } from "./caller.ts";

/** Timeouts of one request. */
const BATCH = 500;

export function remoteTimeouts(caller: Caller): TimeoutsApi {
  const read = (sent: unknown) => readTimeout<Timeout>(sent);
  async function insertMany(inputs: readonly TimeoutInput[], { signal, ...rest }: CallOptions = {}) {
    refuseTx(rest);
    // The ids are made here, so a repeated request stores nothing twice.
    const sent = inputs.map((input) => ({
      ...input,
      id: input.id ?? caller.nextId(),
      ...(input.payload !== undefined && { payload: checkedPayload(input.payload, caller) }),
      ...(input.headers && { headers: encodeHeaders(input.headers) }),
    }));
    for (let from = 0; from < sent.length; from += BATCH)
      await caller.call("timeouts.insert", [sent.slice(from, from + BATCH)], {
        signal,
        onRepeated: ({ code }) => code === "known_id",
      });
    return sent.map(({ id }) => id);
  }
  return {
    insertMany,
    insert: async (input, options) => (await insertMany([input], options))[0] as TimeoutId,
    async enqueue(definition, payload, options) {
      assertDefinition(definition, "definition");
      refuseTx(options);
      const { dueAt, key, ...rest } = options;
      const text = await preparePayload(definition as AnyDefinition, payload, caller.documentLimit);
      const how = { ...portableOptions(rest), dueAt, ...(key !== undefined && { key }) };
      const job = portableDefinition(definition, payload);
      return caller.call("timeouts.enqueue", [job, JSON.parse(text), how]);
    },
    async get(id, { signal } = {}) {
      const found = await caller.call<object | null>("timeouts.get", [id], { signal });
      return found && read(found);
    },
    async calendar({ signal, ...page } = {}) {
      const found = await caller.call<{ timeouts: unknown[]; cursor: string | null }>(
        "timeouts.calendar",
        [page],
        { signal },
      );
      return { timeouts: found.timeouts.map(read), cursor: found.cursor };
    },
    async list(filter = {}, { signal, ...page } = {}) {
      return (await caller.call<unknown[]>("timeouts.list", [filter, page], { signal })).map(read);
    },
    cancel(which, { signal, ...rest } = {}) {
      refuseTx(rest);
      return caller.call("timeouts.cancel", [which], { signal });
    },
    revoke: (id) => caller.call("timeouts.revoke", [id]),
    reschedule: async (id, when) => read(await caller.call("timeouts.reschedule", [id, when])),
    revive: async (id) => read(await caller.call("timeouts.revive", [id])),
    requeue: (ids, { signal } = {}) => caller.call("timeouts.requeue", [ids], { signal }),
    nextDueAt: ({ signal } = {}) => caller.call("timeouts.nextDueAt", [], { signal }),
    count: ({ signal } = {}) => caller.call("timeouts.count", [], { signal }),
    async claimDue({ signal, ...how } = {}) {
      const leased = await caller.call<unknown[]>("timeouts.claimDue", [how], { signal });
      return leased.map((sent) => readTimeout<ClaimedTimeout>(sent));
    },
    remove: (id, owner, { signal } = {}) =>
      caller.call("timeouts.remove", [id, owner ?? null], { signal, about: id }),
    release: (id, owner, { signal, ...how } = {}) =>
      caller.call("timeouts.release", [id, owner ?? null, how], { signal, about: id }),
    extend: (id, owner, { signal, ...how } = {}) =>
      caller.call("timeouts.extend", [id, owner, how], { signal, about: id }),
    reap: ({ signal } = {}) => caller.call("timeouts.reap", [], { signal }),
  };
}

function checkedPayload(payload: Json, { documentLimit }: Caller): Json {
  return JSON.parse(toJsonText(payload, "timeout.payload", documentLimit)) as Json;
}

export function refuseTx(options: object): void {
  const { tx } = options as { readonly tx?: unknown };
  if (tx === undefined) return;
  const fix =
    "a transaction of yours cannot span a server: use openEngine on the same database, or leave it out";
  throw refuse("not_over_http", "options.tx", typeof tx, fix);
}
