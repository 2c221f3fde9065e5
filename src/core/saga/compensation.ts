import type { Instant } from "../time.ts";
import type { SagaEffect } from "./saga-actions.ts";
import type { Compensation, SagaRecord } from "./saga-record.ts";

export function beginning(because: Compensation["because"], now: Instant): Compensation {
  return { startedAt: now, because, failed: null };
}

/**
 * The record of a saga that is being taken back, and what to store with it: it waits for the undo that was registered
 * last, and for nothing else. Without an undo it is complete (SEMANTICS 7.10).
 */
export function nextUndo(
  record: SagaRecord,
  effects: readonly SagaEffect[],
  now: Instant,
): { readonly record: SagaRecord; readonly effects: readonly SagaEffect[] } {
  const undo = record.undos?.at(-1);
  const isWaiting = undo !== undefined && record.pending.some(({ id }) => id === undo.id);
  const kept = effects.filter((effect) => !("request" in effect));
  // What this step requested is not stored yet, so there is nothing to revoke.
  const unstored = new Set(effects.flatMap((effect) => ("request" in effect ? [effect.request.id] : [])));
  const revokes = record.pending
    .filter(({ id }) => id !== undo?.id && !unstored.has(id))
    .map((revoke) => ({ revoke, isCancelled: true as const }));
  if (!undo) return { record: { ...record, pending: [], completedAt: now }, effects: [...kept, ...revokes] };
  const pending = { id: undo.id, name: undo.name, key: null };
  const request = {
    ...pending,
    dueAt: now,
    payload: JSON.stringify(undo.payload),
    wallClock: null,
    isUndo: true as const,
  };
  return {
    record: { ...record, pending: [pending] },
    effects: [...revokes, ...kept, ...(isWaiting ? [] : [{ request }])],
  };
}
