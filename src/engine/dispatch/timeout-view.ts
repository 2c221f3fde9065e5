import type { NamedCalendars } from "../../core/calendar/business-calendar.ts";
import { refuseUnknownKeys } from "../../core/errors.ts";
import type { Cell } from "../../core/home/cell.ts";
import { cellOfTimeoutKey } from "../../core/home/cell-of-row.ts";
import type { IdSource } from "../../core/ids.ts";
import { keysOf } from "../../core/option-keys.ts";
import { DOCUMENT_LIMIT, type Json, toJsonText } from "../../core/schema.ts";
import { refuseTenantMark } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import type { NewTimeout, Owner, SagaKey, TimeoutId, TimeoutRow } from "../../core/timeout/timeout.ts";
import type { TimeoutHeaders } from "../../core/timeout/timeout-headers.ts";
import { parseWhen, type When, wallClockOf } from "../../core/timeout/when.ts";

/** A timeout as a user writes it. */
export interface TimeoutInput {
  /** Default: a new id. */
  readonly id?: TimeoutId;
  readonly destination: string;
  /** An instant, a delay, or a time on a wall clock. */
  readonly dueAt: When;
  readonly payload?: Json;
  /** JSON or bytes by name, passed to the handler. */
  readonly headers?: TimeoutHeaders;
  /** Unique within the destination: a later timeout with the same key replaces an earlier one. */
  readonly key?: string;
}

/** A timeout as a user reads it. */
export interface Timeout {
  readonly id: TimeoutId;
  readonly destination: string;
  readonly dueAt: Instant;
  readonly payload: Json;
  readonly headers: TimeoutHeaders;
  readonly key: string | null;
  /** The saga that it belongs to. */
  readonly saga: SagaKey | null;
  readonly owner: Owner | null;
  readonly leaseUntil: Instant | null;
  /** How many deliveries have failed. */
  readonly tries: number;
  readonly deadAt: Instant | null;
  readonly error: string | null;
}

const KEYS = keysOf<TimeoutInput>({
  id: true,
  destination: true,
  dueAt: true,
  payload: true,
  headers: true,
  key: true,
});

/** Turns a user's timeout into a stored one; the store checks the names. */
export function newTimeout(
  input: TimeoutInput,
  now: Instant,
  nextId: IdSource,
  limit: number = DOCUMENT_LIMIT,
  calendars?: NamedCalendars,
): NewTimeout {
  refuseUnknownKeys(input, "timeout", KEYS);
  const { id, destination, payload, headers, key } = input;
  const when = parseWhen(input.dueAt, now, "timeout.dueAt", calendars);
  const wallClock = wallClockOf(when);
  return {
    id: id === undefined ? nextId(cellOfKey(nextId, destination, key)) : unmarked(id, "timeout.id"),
    destination: unmarked(destination, "timeout.destination"),
    dueAt: when.dueAt,
    ...(payload !== undefined && { payload: toJsonText(payload, "timeout.payload", limit) }),
    ...(headers !== undefined && { headers }),
    ...(key !== undefined && { key }),
    ...(wallClock !== undefined && { wallClock }),
  };
}

/** A timeout with a key is in the home of its key. */
function cellOfKey({ namePrefix }: IdSource, destination: string, key: string | undefined): Cell | undefined {
  if (namePrefix === undefined || key === undefined) return undefined;
  return cellOfTimeoutKey(namePrefix + destination, key);
}

/** The store refuses what is not a text. */
function unmarked(name: string, field: string): string {
  return typeof name === "string" ? refuseTenantMark(name, field) : name;
}

export function timeoutOf(row: TimeoutRow): Timeout {
  const { id, destination, dueAt, payload, headers, key, saga, owner, leaseUntil, tries, deadAt, error } =
    row;
  return {
    id,
    destination,
    dueAt,
    payload: payload === null ? null : (JSON.parse(payload) as Json),
    headers: headers ?? {},
    key,
    saga,
    owner,
    leaseUntil,
    tries,
    deadAt,
    error,
  };
}
