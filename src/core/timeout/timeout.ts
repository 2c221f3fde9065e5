import { CurfewError, refuse, refuseRange, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import type { Json } from "../schema.ts";
import { refuseTenantMark } from "../tenant/tenant-name.ts";
import { checkInstant, type Instant } from "../time.ts";
import { encodeHeaders, type TimeoutHeaders } from "./timeout-headers.ts";

export type TimeoutId = string;
/** The token of one claim. It proves the lease on what that claim took. */
export type Owner = string;
/** The record of the saga instance that a timeout belongs to. */
export type SagaKey = readonly [kind: string, key: string];

/** Something to deliver to a destination at an instant. */
export interface NewTimeout {
  readonly id: TimeoutId;
  readonly destination: string;
  readonly dueAt: Instant;
  /** JSON text. */
  readonly payload?: string;
  readonly headers?: TimeoutHeaders;
  /**
   * Unique within the saga, or else within the destination. A later timeout with the same key replaces an earlier
   * one.
   */
  readonly key?: string;
  readonly saga?: SagaKey;
  /** The local time, zone and policy that `dueAt` was resolved from. It is resolved again with newer zone data. */
  readonly wallClock?: Json;
}

/** A timeout as it is stored. Fields that were left out are null. */
export interface TimeoutRow {
  readonly id: TimeoutId;
  readonly destination: string;
  readonly dueAt: Instant;
  readonly payload: string | null;
  readonly headers: TimeoutHeaders | null;
  readonly key: string | null;
  readonly saga: SagaKey | null;
  readonly wallClock: Json | null;
  readonly owner: Owner | null;
  readonly leaseUntil: Instant | null;
  /** How often delivery has failed. */
  readonly tries: number;
  /** Since when it is no longer tried; null for a live one. */
  readonly deadAt: Instant | null;
  /** The last error. */
  readonly error: string | null;
}

/** Why an owner no longer holds a timeout. */
export type LeaseLoss = "gone" | "unleased" | "stolen" | "expired";

const LOSSES: Readonly<Record<LeaseLoss, string>> = {
  gone: "it was removed, revoked or replaced",
  unleased: "its lease was released or reaped",
  stolen: "another claim leased it",
  expired: "its lease has expired",
};

/** Thrown by `remove`, `release` and `extend` if the caller does not hold the lease. */
export class ConcurrencyError extends CurfewError {
  override readonly name = "ConcurrencyError";
  readonly id: TimeoutId;
  readonly owner: Owner;
  readonly reason: LeaseLoss;

  constructor(id: TimeoutId, owner: Owner, reason: LeaseLoss) {
    super("concurrency", `timeout ${id} is not leased by ${owner}: ${LOSSES[reason]}`);
    this.id = id;
    this.owner = owner;
    this.reason = reason;
  }
}

/**
 * Why the owner does not hold the row; null if it does. An expired lease is lost even if no other claim took the
 * timeout.
 */
export function leaseLoss(
  row: Pick<TimeoutRow, "owner" | "leaseUntil"> | undefined,
  owner: Owner,
  now: Instant,
): LeaseLoss | null {
  if (!row) return "gone";
  if (row.owner === null) return "unleased";
  if (row.owner !== owner) return "stolen";
  return (row.leaseUntil as Instant) <= now ? "expired" : null;
}

/** The scope within which a key is unique. */
export function scopeOf({ saga, destination }: Pick<NewTimeout, "saga" | "destination">): string {
  return saga ? sagaScope(saga) : destinationScope(destination);
}

export function sagaScope(saga: SagaKey): string {
  return `saga ${sagaText(saga)}`;
}

export function destinationScope(destination: string): string {
  return `destination ${destination}`;
}

/** A saga's key as one text, by which its timeouts are found. */
export function sagaText([kind, key]: SagaKey): string {
  return JSON.stringify([kind, key]);
}

/**
 * The order of ids in every store: by code points, which is the order of their UTF-8 bytes. JavaScript compares
 * UTF-16 units, which differs for characters beyond the first plane.
 */
export function compareIds(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [one, other] = [a.charCodeAt(index), b.charCodeAt(index)];
    if (one !== other) return weight(one) - weight(other);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all others. */
function weight(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}

const FIELDS = keysOf<NewTimeout>({
  id: true,
  destination: true,
  dueAt: true,
  payload: true,
  headers: true,
  key: true,
  saga: true,
  wallClock: true,
});

const TEXT_LIMIT = 512;

/** Refuses a timeout that a store could not store unchanged. */
export function checkTimeout(timeout: NewTimeout): void {
  refuseUnknownKeys(timeout, "timeout", FIELDS);
  checkStoredText(timeout.id, "timeout.id");
  checkStoredText(timeout.destination, "timeout.destination");
  if (timeout.key !== undefined) checkStoredText(timeout.key, "timeout.key");
  if (timeout.headers !== undefined) encodeHeaders(timeout.headers, "timeout.headers");
  checkInstant(timeout.dueAt, "timeout.dueAt");
}

/** A name from a caller: it must not look like the name of a tenant. */
export function checkText(value: unknown, field: string): string {
  return refuseTenantMark(checkStoredText(value, field), field);
}

/** A name that every store can store and compare. */
function checkStoredText(value: unknown, field: string): string {
  if (typeof value !== "string" || value === "") {
    throw refuse("invalid_name", field, value, "write a text that is not empty");
  }
  if (value.length > TEXT_LIMIT || value.includes("\0") || !value.isWellFormed()) {
    const fix = `use at most ${TEXT_LIMIT} characters, no NUL and no half of a character`;
    throw refuse("invalid_name", field, value, fix);
  }
  return value;
}

export function checkClaimLimit(limit: number, most: number, field = "limit"): void {
  if (Number.isInteger(limit) && limit >= 1 && limit <= most) return;
  throw refuseRange("invalid_limit", field, limit, `use a whole number from 1 to ${most}`);
}
