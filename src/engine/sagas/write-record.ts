import type { SagaPlan } from "../../core/saga/saga.ts";
import type { SagaRecord } from "../../core/saga/saga-record.ts";
import type { Instant } from "../../core/time.ts";

const SHORTEST_RETENTION = 60_000;

/**
 * A completed saga is stored for its retention, so that a repeated message is recognised. The minimum is a minute,
 * without the state if the retention is 0: a sender whose reply was lost repeats the message soon.
 */
export function writeOf(
  { retention }: Pick<SagaPlan, "retention">,
  record: SagaRecord,
): { readonly body: SagaRecord; readonly wakeAt: Instant | null } {
  const { completedAt } = record;
  if (completedAt === null) return { body: record, wakeAt: null };
  const body = retention === 0 ? { ...record, state: null } : record;
  return { body, wakeAt: completedAt + Math.max(retention, SHORTEST_RETENTION) };
}
