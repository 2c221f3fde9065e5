import type { Json } from "../../core/schema.ts";
import {
  compareIds,
  destinationScope,
  type NewTimeout,
  sagaScope,
  sagaText,
  scopeOf,
  type TimeoutRow,
} from "../../core/timeout/timeout.ts";
import { decodeHeaders, encodeHeaders } from "../../core/timeout/timeout-headers.ts";
import type { Which } from "../../ports/timeouts.ts";
import type { SqlRow } from "./row-codec.ts";

/** What a timeout is asked for with. */
const WANTED_COLUMNS = [
  "id",
  "destination",
  "due_at",
  "payload",
  "headers",
  "key",
  "saga",
  "generation",
  "wall_clock",
] as const;

/** The columns of a timeout, in the order in which `decodeTimeout` reads them. */
export const TIMEOUT_COLUMNS = [
  ...WANTED_COLUMNS,
  "owner",
  "lease_until",
  "tries",
  "dead_at",
  "error",
] as const;

/** The columns that an insert writes, in the order of `timeoutValues`. */
export const NEW_TIMEOUT_COLUMNS = [...WANTED_COLUMNS, "scope"] as const;

type Maybe<Value> = Value | null;

export function decodeTimeout(row: SqlRow): TimeoutRow {
  const [headers, saga, wallClock] = [row[4], row[6], row[8]] as Maybe<string>[];
  return {
    id: row[0] as string,
    destination: row[1] as string,
    dueAt: row[2] as number,
    payload: row[3] as Maybe<string>,
    headers: headers ? decodeHeaders(headers) : null,
    key: row[5] as Maybe<string>,
    saga: saga ? (JSON.parse(saga) as [string, string]) : null,
    generation: row[7] as Maybe<number>,
    wallClock: wallClock ? (JSON.parse(wallClock) as Json) : null,
    owner: row[9] as Maybe<string>,
    leaseUntil: row[10] as Maybe<number>,
    tries: row[11] as number,
    deadAt: row[12] as Maybe<number>,
    error: row[13] as Maybe<string>,
  };
}

type TimeoutValues = [
  id: string,
  destination: string,
  dueAt: number,
  payload: Maybe<string>,
  headers: Maybe<string>,
  key: Maybe<string>,
  saga: Maybe<string>,
  generation: Maybe<number>,
  wallClock: Maybe<string>,
  scope: Maybe<string>,
];

/** The scope is set only if there is a key. */
export function timeoutValues(timeout: NewTimeout): TimeoutValues {
  const { id, destination, dueAt, payload, headers, key, saga, generation, wallClock } = timeout;
  return [
    id,
    destination,
    dueAt,
    payload ?? null,
    headers ? encodeHeaders(headers) : null,
    key ?? null,
    saga ? sagaText(saga) : null,
    generation ?? null,
    wallClock === undefined ? null : JSON.stringify(wallClock),
    key === undefined ? null : scopeOf(timeout),
  ];
}

/** What to cancel: exactly one of id, saga, or scope and key. */
export function cancelValues(which: Which): {
  readonly id?: string;
  readonly saga?: string;
  readonly scoped?: readonly [scope: string, key: string];
} {
  if ("id" in which) return { id: which.id };
  if ("destination" in which) return { scoped: [destinationScope(which.destination), which.key] };
  if (which.key === undefined) return { saga: sagaText(which.saga) };
  return { scoped: [sagaScope(which.saga), which.key] };
}

/** The promised order of claims. Databases return updated rows in any order. */
export function byDue(a: TimeoutRow, b: TimeoutRow): number {
  return a.dueAt - b.dueAt || compareIds(a.id, b.id);
}
