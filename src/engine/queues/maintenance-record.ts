import type { Instant } from "../../core/time.ts";
import type { RecordKey, RecordRow } from "../../ports/store.ts";

/** The kind of the one record whose existence means that nothing is handed out. */
export const MAINTENANCE = "maintenance";
export const MAINTENANCE_KEY: RecordKey = [MAINTENANCE, "all"];

/** Recess as it stands, and as it is stored. */
export interface MaintenanceView {
  readonly reason: string | null;
  readonly startedAt: Instant;
  /** When it ends by itself; null: when somebody ends it. */
  readonly endsAt: Instant | null;
  readonly estimatedEnd: Instant | null;
}

/** What its record says, as long as that holds. */
export function maintenanceIn(record: RecordRow | null | undefined, now: Instant): MaintenanceView | null {
  const view = (record?.body ?? null) as unknown as MaintenanceView | null;
  return view && (view.endsAt === null || now < view.endsAt) ? view : null;
}
