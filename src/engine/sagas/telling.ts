import type { SagaEffect } from "../../core/saga/draft.ts";
import type { SagaEvent, StepOutcome } from "../../core/saga/step.ts";
import type { Instant } from "../../core/time.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import type { EngineEvent, EventBus } from "../bus.ts";
import type { SagaName } from "./addresses.ts";
import type { SagaEventDetail, SagaEventName } from "./events.ts";
import type { SagaCounters } from "./saga-counters.ts";

/** The part of an engine that hears of steps. */
interface Audience {
  readonly clock: { now(): Instant };
  readonly bus: Pick<EventBus, "emit" | "wants">;
  readonly counters: { readonly sagas: SagaCounters };
}

/** Counts a step that is over and tells of it; `revoked` is what the store says its revokes found. */
export function tellStep(
  audience: Audience,
  saga: SagaName,
  event: SagaEvent,
  outcome: StepOutcome,
  revoked: readonly Revoked[],
): void {
  const counters = audience.counters.sagas;
  if (outcome.kind === "ignored") {
    counters.add("ignored");
    tell(audience, "saga.ignored", saga, event, { because: outcome.because });
    return;
  }
  if (outcome.kind === "not-found") {
    counters.add("notFound");
    tell(audience, "saga.not_found", saga, event);
    return;
  }
  const isCompleted = outcome.record.completedAt !== null;
  counters.add("handled");
  countRevokes(counters, outcome.effects, revoked);
  if (outcome.isStart) {
    counters.add("started");
    tell(audience, "saga.started", saga, event);
  }
  tell(audience, "saga.handled", saga, event);
  if (!isCompleted) return;
  counters.add("completed");
  tell(audience, "saga.completed", saga, event);
}

/** Of what a completed saga cancels, the process that holds it counts what was leased: it finds it gone and ignores it. */
function countRevokes(
  counters: SagaCounters,
  effects: readonly SagaEffect[],
  revoked: readonly Revoked[],
): void {
  const revokes = effects.filter((effect) => "revoke" in effect);
  for (const [index, { isCancelled }] of revokes.entries()) {
    const { pending, leased } = revoked[index] ?? { pending: 0, leased: 0 };
    if (isCancelled) counters.add("cancelled", pending);
    else counters.add("revoked", pending + leased);
  }
}

export function tellFailure(audience: Audience, saga: SagaName, event: SagaEvent, error: unknown): void {
  audience.counters.sagas.add("failed");
  tell(audience, "saga.failed", saga, event, { error });
}

function tell(
  { bus, clock }: Audience,
  name: SagaEventName,
  { type, id }: SagaName,
  { kind, name: eventName, id: eventId }: SagaEvent,
  more: Pick<SagaEventDetail, "because" | "error"> = {},
): void {
  if (!bus.wants(name)) return;
  const detail = {
    name,
    at: clock.now(),
    type,
    saga: id,
    event: { kind, name: eventName, id: eventId },
    ...more,
  };
  bus.emit(detail as EngineEvent);
}
