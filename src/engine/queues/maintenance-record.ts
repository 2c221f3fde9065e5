import type { Instant } from "../../core/time.ts";
import type { RecordKey, RecordRow } from "../../ports/store.ts";

/** The kind of the one record whose existence means that nothing is handed out. */
export const RECESS = "recess";
export const RECESS_KEY: RecordKey = [RECESS, "all"];

/** Recess as it stands, and as it is stored. */
export interface RecessView {
  readonly reason: string | null;
  readonly startedAt: Instant;
  /** When it ends by itself; null: when somebody ends it. */
  readonly endsAt: Instant | null;
  readonly estimatedEnd: Instant | null;
}

/** What its record says, as long as that holds. */
export function recessIn(record: RecordRow | null | undefined, now: Instant): RecessView | null {
  const view = (record?.body ?? null) as unknown as RecessView | null;
  return view && (view.endsAt === null || now < view.endsAt) ? view : null;
}
