import { z } from "zod";
import { createIdSource } from "../../src/core/ids.ts";
import { defineJob } from "../../src/core/job/job-definition.ts";
import { planOf, type SagaContext } from "../../src/core/saga/saga.ts";
import type { SagaEffect } from "../../src/core/saga/saga-actions.ts";
import { defineSaga } from "../../src/core/saga/saga-definition.ts";
import type { SagaRecord } from "../../src/core/saga/saga-record.ts";
import { runStep, type SagaEvent, type StepOutcome } from "../../src/core/saga/step.ts";

export const NOW = Date.parse("2030-01-01T00:00:00Z");
export const nextId = createIdSource(
  () => NOW,
  (bytes) => bytes.fill(0),
);
export const charge = defineJob({ type: "card.charge", payload: z.object({ cents: z.int() }) });
const Order = z.object({ orderId: z.string(), cents: z.int() });

export type State = { orderId: string; notes: string[] };
export type Act = (saga: SagaContext, state: State) => unknown;

/** A saga whose handlers do what the test tells them. */
export function sagaThat(act: Act, more: object = {}) {
  const handler = (state: State, _payload: unknown, saga: unknown) => act(saga as SagaContext, state);
  return defineSaga({
    type: "order",
    state: z.object({ orderId: z.string(), notes: z.array(z.string()) }),
    messages: { placed: Order, paid: z.object({ orderId: z.string() }) },
    timeouts: { late: z.object({ nth: z.int() }), asyncLate: slow(z.object({ nth: z.int() })), again: Order },
    correlate: { placed: (m) => m.orderId, paid: (m) => m.orderId },
    startedBy: "placed",
    start: (order, saga) =>
      (act(saga as unknown as SagaContext, { orderId: order.orderId, notes: [] }) as State) ?? {
        orderId: order.orderId,
        notes: [],
      },
    on: { paid: handler as never },
    onTimeout: { late: handler as never, asyncLate: handler as never, again: handler as never },
    ...more,
  });
}

/** The same schema, answering later. */
function slow<S extends z.ZodType>(schema: S): S {
  const standard = schema["~standard"];
  return {
    "~standard": { ...standard, validate: async (value: unknown) => standard.validate(value) },
  } as never;
}

type AnySaga = Parameters<typeof planOf>[0];

export async function run(
  saga: AnySaga,
  record: SagaRecord | null,
  event: Partial<SagaEvent>,
): Promise<StepOutcome> {
  const id = event.id ?? nextId();
  return runStep({
    plan: planOf(saga),
    id: "o-1",
    record,
    event: { kind: "message", payload: {}, sender: { message: id }, name: "paid", ...event, id },
    now: NOW,
    nextId,
    signal: new AbortController().signal,
    enqueue: { hash: (text) => text },
  });
}

export const placed: Partial<SagaEvent> = { name: "placed", payload: { orderId: "o-1", cents: 5 } };
export const paid: Partial<SagaEvent> = { name: "paid", payload: { orderId: "o-1" } };

export async function begun(saga: AnySaga = sagaThat(() => undefined)): Promise<SagaRecord> {
  const outcome = await run(saga, null, placed);
  if (outcome.kind !== "stepped") throw new Error(outcome.kind);
  return outcome.record;
}

/** Lets a begun saga handle `paid` with the act given. */
export async function act(body: Act, record?: SagaRecord, more: object = {}) {
  const outcome = await run(sagaThat(body, more), record ?? (await begun()), paid);
  if (outcome.kind !== "stepped") throw new Error(outcome.kind);
  return outcome;
}

export const requests = (effects: readonly SagaEffect[]) =>
  effects.flatMap((effect) => ("request" in effect ? [effect.request] : []));
export const revokes = (effects: readonly SagaEffect[]) =>
  effects.flatMap((effect) => ("revoke" in effect ? [effect.revoke] : []));

/** Asks for one timeout in an hour. */
export const ask: Act = (saga, state) => {
  saga.request("late", "1h", { nth: 1 });
  return state;
};

/** The timeout `late`, as it reaches a saga. */
export const fire = (id: string) =>
  ({ kind: "timeout", name: "late", id, payload: { nth: 1 }, sender: null }) as const;
