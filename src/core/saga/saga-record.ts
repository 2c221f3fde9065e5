import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { PendingTimeout } from "./saga.ts";

/** Where a reply goes: to whoever waits for it outside, or to a saga as one of its messages. */
export type ReplyAddress =
  | { readonly message: string }
  | { readonly message: string; readonly saga: string; readonly id: string; readonly as: string };

/**
 * What is kept of one saga. It says itself what is pending: a timeout that is not in this list is not handled, whatever
 * the timeout store may still hold of it. So a revoke, a handled timeout, a completed saga and one re-created under the
 * same id need no marks of their own, and no list of handled timeouts has to be bounded.
 */
export interface SagaRecord {
  readonly state: Json;
  /** The version of the definition that wrote the state. */
  readonly schema: number;
  /** Which life of the saga this is: another one for each start under the same id. */
  readonly generation: string;
  readonly startedAt: Instant;
  readonly changedAt: Instant;
  readonly completedAt: Instant | null;
  readonly pending: readonly PendingTimeout[];
  /** The last messages that were handled, the newest last. */
  readonly handled: readonly string[];
  /** Fields of the state that hold the correlation value. */
  readonly fixed: readonly string[];
  /** Whom a reply to the starter reaches; null for one that came without an address. */
  readonly starter: ReplyAddress | null;
}

/** The most timeouts one saga may have pending: the record names them all and is written with every step. */
export const PENDING_LIMIT = 1_000;

/**
 * How many handled messages a saga remembers. A message leaves the store with the commit that handles it, so it comes
 * again only if its sender sends it again under its id (after a lost reply), and that happens within moments. Twenty
 * ids are 800 bytes; more would be paid for with every step.
 */
export const HANDLED_LIMIT = 20;

/** The record as it is stored: short names and lists, since it is read and written with every step. */
export function encodeRecord(record: SagaRecord): Json {
  return {
    state: record.state,
    schema: record.schema,
    generation: record.generation,
    startedAt: record.startedAt,
    changedAt: record.changedAt,
    completedAt: record.completedAt,
    pending: record.pending.map(({ id, name, key }) => (key === null ? [id, name] : [id, name, key])),
    handled: record.handled,
    fixed: record.fixed,
    starter: record.starter as Json,
  };
}

export function decodeRecord(body: Json): SagaRecord {
  const stored = body as unknown as Omit<SagaRecord, "pending"> & {
    readonly pending: readonly [string, string, string?][];
  };
  return {
    ...stored,
    pending: stored.pending.map(([id, name, key]) => ({ id, name, key: key ?? null })),
  };
}
