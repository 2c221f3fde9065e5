import type { Instant } from "../../core/time.ts";
import {
  type NewTimeout,
  type SagaKey,
  sagaText,
  scopeOf,
  type TimeoutRow,
} from "../../core/timeout/timeout.ts";
import { decodeHeaders, encodeHeaders } from "../../core/timeout/timeout-headers.ts";

/** `free` and `leased` are live. A word of its own lets one index serve each. */
export type TimeoutState = "free" | "leased" | "dead";

/** A timeout as MongoDB has it. `_id` is the server's: a document is replaced as a whole when its key is used again. */
export interface TimeoutDocument {
  readonly id: string;
  readonly state: TimeoutState;
  readonly destination: string;
  readonly dueAt: Instant;
  readonly payload: string | null;
  /** Headers and wall clock as text: BSON would not give every JSON value back as it was. */
  readonly headers: string | null;
  readonly wallClock: string | null;
  /** Only with a key, so that the unique index holds these documents alone. */
  readonly key?: string;
  readonly scope?: string;
  readonly saga: SagaKey | null;
  readonly sagaText: string | null;
  readonly owner: string | null;
  readonly leaseUntil: Instant | null;
  readonly tries: number;
  readonly deadAt: Instant | null;
  readonly error: string | null;
}

export function documentOf(timeout: NewTimeout): TimeoutDocument {
  const { id, destination, dueAt, payload, headers, key, saga, wallClock } = timeout;
  return {
    id,
    state: "free",
    destination,
    dueAt,
    payload: payload ?? null,
    headers: headers ? encodeHeaders(headers) : null,
    wallClock: wallClock === undefined ? null : JSON.stringify(wallClock),
    ...(key !== undefined && { key, scope: scopeOf(timeout) }),
    saga: saga ? [saga[0], saga[1]] : null,
    sagaText: saga ? sagaText(saga) : null,
    owner: null,
    leaseUntil: null,
    tries: 0,
    deadAt: null,
    error: null,
  };
}

export function rowOf(found: object): TimeoutRow {
  const document = found as TimeoutDocument;
  const { id, destination, payload, headers, wallClock, key, saga, owner, error } = document;
  const instant = (at: Instant | null) => (at === null ? null : Number(at));
  return {
    id,
    destination,
    dueAt: Number(document.dueAt),
    payload,
    headers: headers === null ? null : decodeHeaders(headers),
    key: key ?? null,
    saga: saga ? [saga[0], saga[1]] : null,
    wallClock: wallClock === null ? null : JSON.parse(wallClock),
    owner,
    leaseUntil: instant(document.leaseUntil),
    tries: Number(document.tries),
    deadAt: instant(document.deadAt),
    error,
  };
}

/** Made at opening. The names are part of the store: another version finds them. */
export const INDEXES: readonly object[] = [
  { key: { id: 1 }, name: "curfew_id", unique: true },
  {
    key: { scope: 1, key: 1 },
    name: "curfew_key",
    unique: true,
    partialFilterExpression: { key: { $exists: true } },
  },
  { key: { state: 1, dueAt: 1, id: 1 }, name: "curfew_due" },
  { key: { destination: 1, state: 1, dueAt: 1, id: 1 }, name: "curfew_destination" },
  { key: { state: 1, leaseUntil: 1 }, name: "curfew_leases" },
  { key: { sagaText: 1 }, name: "curfew_saga" },
  { key: { owner: 1 }, name: "curfew_owner" },
];
