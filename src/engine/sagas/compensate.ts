import type { By } from "../../core/audit/audit-entry.ts";
import { beginning, nextUndo } from "../../core/saga/compensation.ts";
import type { Compensation, SagaRecord } from "../../core/saga/saga-record.ts";
import type { SagaEvent } from "../../core/saga/step.ts";
import { textOf } from "../../core/user-values.ts";
import type { Effect } from "../../ports/store.ts";
import { changeRecord } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";
import { SAGAS, type SagaName, sagaName, timeoutRow } from "./saga-addresses.ts";
import { writeOf } from "./write-record.ts";

/** The built-in retention of a completed saga, for callers without its definition. */
const RETENTION = 24 * 3_600_000;
const ERROR_LIMIT = 2_000;

/**
 * Begins to take a saga back, or goes on after an undo that was given up (SEMANTICS 7.10). It needs no definition.
 * Returns null if there is no live saga, and `running` if its compensation is under way.
 */
export async function compensate(
  context: EngineContext,
  saga: SagaName,
  because: Compensation["because"],
  { retention = RETENTION, by }: { readonly retention?: number; readonly by?: By | undefined } = {},
): Promise<"begun" | "resumed" | "running" | null> {
  let answer: "begun" | "resumed" | "running" | null = null;
  await changeRecord(context, "compensate", SAGAS, sagaName(saga), (record, now) => {
    answer = null;
    if (record?.completedAt !== null) return null;
    answer = record.compensation ? (record.compensation.failed ? "resumed" : "running") : "begun";
    if (answer === "running") return null;
    const compensation = { ...(record.compensation ?? beginning(because, now)), failed: null };
    // A dead undo is stored anew: then it has its tries again.
    const pending = answer === "resumed" ? [] : record.pending;
    const revoked = answer === "resumed" ? record.pending.map(({ id }) => ({ revoke: { id } })) : [];
    const next = nextUndo({ ...record, pending, compensation, changedAt: now }, [], now);
    const effects = next.effects.flatMap((effect): Effect[] => {
      if ("request" in effect) return [{ request: timeoutRow(effect.request, saga) }];
      return "revoke" in effect ? [{ revoke: { id: effect.revoke.id } }] : [];
    });
    const details = { saga: saga.type, id: saga.id, answer };
    const audited = auditEffects(context, by, "saga.compensate", { details }, now);
    return { ...writeOf({ retention }, next.record), effects: [...revoked, ...effects, ...audited] };
  });
  return answer;
}

/** Notes in the record that an undo was given up, so that lists show it. The undo itself is dead and can be tried again. */
export async function noteFailedUndo(
  context: Pick<EngineContext, "store" | "clock">,
  saga: SagaName,
  { id }: SagaEvent,
  error: unknown,
): Promise<void> {
  await changeRecord(context, "compensate", SAGAS, sagaName(saga), (record, now) => {
    if (!record?.compensation || record.completedAt !== null || !isNext(record, id)) return null;
    const failed = { undo: id, error: textOf(error).slice(0, ERROR_LIMIT), at: now };
    return { body: { ...record, compensation: { ...record.compensation, failed } } };
  });
}

function isNext(record: SagaRecord, undo: string): boolean {
  return record.undos?.at(-1)?.id === undo;
}
