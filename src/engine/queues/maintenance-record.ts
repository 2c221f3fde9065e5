import type { ChangedBy } from "../../core/audit/audit-entry.ts";
import type { Instant } from "../../core/time.ts";
import { recordKind, type StoredRecord } from "../commit/record-kind.ts";

export interface MaintenanceView {
  readonly reason: string | null;
  readonly startedAt: Instant;
  /** When it ends by itself; null: an operator must end it. */
  readonly endsAt: Instant | null;
  readonly estimatedEnd: Instant | null;
  /** Who began it or changed its options last; missing if an older curfew wrote it. */
  readonly by?: ChangedBy;
}

/** While its one record exists, no queue hands out jobs. */
export const MAINTENANCE = recordKind<MaintenanceView>("maintenance");
export const MAINTENANCE_NAME = "all";

/** The maintenance that is in force at `now`, or null. */
export function maintenanceIn(
  record: StoredRecord<MaintenanceView> | null,
  now: Instant,
): MaintenanceView | null {
  const view = record?.body ?? null;
  return view && (view.endsAt === null || now < view.endsAt) ? view : null;
}
