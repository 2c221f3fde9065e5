import type { NewEvent } from "../../core/event/new-event.ts";
import type { SagaEffect } from "../../core/saga/saga-actions.ts";
import type { SagaEvent, StepOutcome } from "../../core/saga/step.ts";
import type { Instant } from "../../core/time.ts";
import type { Revoked } from "../../ports/timeouts.ts";
import type { EngineEvent, EventBus } from "../events/event-bus.ts";
import type { EventRecorder } from "../events/event-recorder.ts";
import { sagaData } from "../events/recording-rules.ts";
import type { SagaEventDetail, SagaEventName } from "../events/saga-events.ts";
import type { SagaCounters } from "../statistics/saga-counters.ts";
import type { SagaName } from "./saga-addresses.ts";

/** What announcing a step needs from its engine. */
interface AnnounceDeps {
  readonly clock: { now(): Instant };
  readonly bus: Pick<EventBus, "emit" | "wants">;
  readonly counters: { readonly sagas: SagaCounters };
}

/** Counts and announces a committed step. `revoked` is what the store's revokes found. */
export function announceStep(
  deps: AnnounceDeps,
  saga: SagaName,
  event: SagaEvent,
  outcome: StepOutcome,
  revoked: readonly Revoked[],
): void {
  const counters = deps.counters.sagas;
  const more = outcome.kind === "ignored" ? { because: outcome.because } : {};
  for (const name of namesOf(outcome)) {
    counters.add(COUNTERS[name]);
    announce(deps, name, saga, event, more);
  }
  if (outcome.kind === "stepped") countRevokes(counters, outcome.effects, revoked);
}

const COUNTERS = {
  "saga.started": "started",
  "saga.handled": "handled",
  "saga.completed": "completed",
  "saga.ignored": "ignored",
  "saga.not_found": "notFound",
  "saga.failed": "failed",
} as const satisfies Record<SagaEventName, string>;

/** The events of a step, for the unit that commits it; none while recording is off. */
export function stepEvents(
  recorder: EventRecorder,
  { type, id }: SagaName,
  event: SagaEvent,
  outcome: StepOutcome,
  at: Instant,
): readonly NewEvent[] {
  if (!recorder.isOn) return [];
  const data = sagaData(type, id, event);
  return namesOf(outcome).flatMap((name) => recorder.effects(name, { at, subject: id, data }));
}

function namesOf(outcome: StepOutcome): readonly SagaEventName[] {
  if (outcome.kind === "ignored") return ["saga.ignored"];
  if (outcome.kind === "not-found") return ["saga.not_found"];
  return [
    ...(outcome.isStart ? (["saga.started"] as const) : []),
    "saga.handled",
    ...(outcome.record.completedAt !== null ? (["saga.completed"] as const) : []),
  ];
}

/** Leased timeouts of a completed saga are not counted here: the process that holds one counts it as ignored. */
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

export function announceFailure(deps: AnnounceDeps, saga: SagaName, event: SagaEvent, error: unknown): void {
  deps.counters.sagas.add("failed");
  announce(deps, "saga.failed", saga, event, { error });
}

function announce(
  { bus, clock }: AnnounceDeps,
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
