import type { SagaEffect } from "../../core/saga/draft.ts";
import type { SagaEvent, StepOutcome } from "../../core/saga/step.ts";
import type { Instant } from "../../core/time.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import type { EngineEvent, EventBus } from "../bus.ts";
import type { SagaName } from "./addresses.ts";
import type { SagaEventDetail, SagaEventName } from "./events.ts";

export interface SagaCounts {
  readonly started: number;
  readonly handled: number;
  readonly completed: number;
  readonly failed: number;
  /** Timeouts that came for a saga that was over, and those revoked while under way; and messages that came twice. */
  readonly ignored: number;
  readonly notFound: number;
  /** Timeouts taken back by a handler. */
  readonly revoked: number;
  /** Timeouts that were pending when their saga completed. */
  readonly cancelled: number;
  /** Steps that were taken again because another one was faster. */
  readonly conflicts: number;
  /** Steps whose lease was gone when they were to be committed. */
  readonly lapsed: number;
}

/** Counts of this process since it started. */
export class SagaCounters {
  readonly #counts: { -readonly [Name in keyof SagaCounts]: number } = {
    started: 0,
    handled: 0,
    completed: 0,
    failed: 0,
    ignored: 0,
    notFound: 0,
    revoked: 0,
    cancelled: 0,
    conflicts: 0,
    lapsed: 0,
  };

  add(name: keyof SagaCounts, count = 1): void {
    this.#counts[name] += count;
  }

  snapshot(): SagaCounts {
    return { ...this.#counts };
  }
}

/** The part of an engine that hears of steps. */
interface Audience {
  readonly clock: { now(): Instant };
  readonly bus: Pick<EventBus, "emit" | "wants">;
  readonly sagaCounters: SagaCounters;
}

/** Counts a step that is over and tells of it; `revoked` is what the store says its revokes found. */
export function tellStep(
  audience: Audience,
  saga: SagaName,
  event: SagaEvent,
  outcome: StepOutcome,
  revoked: readonly Revoked[],
): void {
  const { sagaCounters } = audience;
  if (outcome.kind === "ignored") {
    sagaCounters.add("ignored");
    tell(audience, "saga.ignored", saga, event, { because: outcome.because });
    return;
  }
  if (outcome.kind === "not-found") {
    sagaCounters.add("notFound");
    tell(audience, "saga.not_found", saga, event);
    return;
  }
  const isCompleted = outcome.record.completedAt !== null;
  sagaCounters.add("handled");
  countRevokes(sagaCounters, outcome.effects, revoked);
  if (outcome.isStart) {
    sagaCounters.add("started");
    tell(audience, "saga.started", saga, event);
  }
  tell(audience, "saga.handled", saga, event);
  if (!isCompleted) return;
  sagaCounters.add("completed");
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
  audience.sagaCounters.add("failed");
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
