import type { Json } from "../schema.ts";
import type { Instant } from "../time.ts";
import type { PendingTimeout, RegisteredUndo } from "./saga.ts";

/** Where a reply goes: to a caller outside, or to a saga as one of its messages. */
export type ReplyAddress =
  | { readonly message: string }
  | { readonly message: string; readonly saga: string; readonly id: string; readonly as: string };

/** A saga that is being taken back, or was. */
export interface Compensation {
  readonly startedAt: Instant;
  /** `handler`: it called `compensate`. `failure`: an event was given up for good. `operator`: somebody asked for it. */
  readonly because: "handler" | "failure" | "operator";
  /** The undo that was given up after its last try; null while none is. An operator lets it go on. */
  readonly failed: { readonly undo: string; readonly error: string; readonly at: Instant } | null;
}

/**
 * The stored state of one saga. Its list of pending timeouts decides: a timeout that is not in it is not handled,
 * even if the timeout store still has it. So a revoke, a handled timeout, a completed saga and one that is re-created
 * under the same id need no further marks, and no list of handled timeouts has to be bounded.
 */
export interface SagaRecord {
  readonly state: Json;
  /** The version of the definition that wrote the state. */
  readonly schema: number;
  /** Identifies this start of the saga. Each start under the same id has another. */
  readonly generation: string;
  readonly startedAt: Instant;
  readonly changedAt: Instant;
  readonly completedAt: Instant | null;
  readonly pending: readonly PendingTimeout[];
  /** The last handled messages, newest last. */
  readonly handled: readonly string[];
  /** Fields of the state that contain the correlation value. */
  readonly fixed: readonly string[];
  /** Where a reply to the starter goes; null if the starting message had no address. */
  readonly starter: ReplyAddress | null;
  /** How to take back the steps so far, the newest last. Left out if there is none. */
  readonly undos?: readonly RegisteredUndo[];
  readonly compensation?: Compensation;
}

/** The most undos of one saga. The record has them all and is written with every step. */
export const UNDO_LIMIT = 100;

/** The most pending timeouts of one saga. The record lists them all and is written with every step. */
export const PENDING_LIMIT = 1_000;

/**
 * How many handled messages a saga remembers. A message leaves the store with the commit that handles it, so it comes
 * again only if its sender repeats it under its id after a lost reply, which happens soon. Twenty ids are 800 bytes;
 * more would cost on every step.
 */
export const HANDLED_LIMIT = 20;

/** The stored form: short lists, because it is read and written with every step. */
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
    ...(record.undos && { undos: record.undos as unknown as Json }),
    ...(record.compensation && { compensation: record.compensation as unknown as Json }),
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
