import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";
import type { RecordKey } from "./stored-names.ts";

/** A versioned document that may have a time to wake up: workers, pauses, queues, sagas, crons, limits. */
export interface RecordRow {
  readonly key: RecordKey;
  /**
   * Grows with each `put`, by any amount. A version is never used again, even after the record is deleted and put
   * again. So the version at which a record was created identifies it among all records of its key.
   */
  readonly version: number;
  readonly wakeAt: Instant | null;
  readonly body: Json;
}

export interface RecordStore {
  load(keys: readonly RecordKey[]): Promise<(RecordRow | null)[]>;
  /**
   * Records of a kind in the order of their keys, after a cursor. Null: after all names of tenants (`TENANT_MARK`).
   * With `desc`, from the last key down to the first, and the cursor null stands behind the last key. The names of
   * tenants are left out, unless the cursor is one of them. Both orders cost the same.
   */
  list(kind: string, after: string | null, limit: number, order?: ListOrder): Promise<RecordRow[]>;
}

/** Default `asc`. */
export type ListOrder = "asc" | "desc";
