import { z } from "zod";
import type { SagaView } from "../../engine/sagas/saga-handle.ts";
import type { SagaDetail } from "../../engine/sagas/saga-records.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { pagination } from "./admin-replies.ts";
import { instant } from "./replies.ts";
import { timeout, timeoutFields } from "./timeouts.ts";

const pending = z.looseObject({ id: z.string(), name: z.string(), key: z.string().nullable() });

const sagaFieldSchemas = {
  type: z.string(),
  id: z.string(),
  status: z.enum(["alive", "completed", "compensating", "compensation_failed", "compensated"]),
  version: z.int().min(1),
  started_at: instant,
  changed_at: instant,
  completed_at: instant.nullable(),
  pending: z.array(pending).meta({ description: "Timeouts that the saga still counts on." }),
  undos: z
    .array(z.looseObject({ id: z.string(), name: z.string() }))
    .meta({ description: "How its steps would be taken back, the newest last." }),
  compensation: z
    .looseObject({
      started_at: instant,
      because: z.enum(["handler", "failure", "operator"]),
      failed: z.looseObject({ undo: z.string(), error: z.string(), at: instant }).nullable(),
    })
    .nullable(),
};

export const compensateReply = z
  .looseObject({ type: z.string(), id: z.string(), answer: z.enum(["begun", "resumed", "running"]) })
  .meta({ id: "SagaCompensated" });

export const sagasReply = z
  .looseObject({ items: z.array(z.looseObject(sagaFieldSchemas).meta({ id: "Saga" })), pagination })
  .meta({ id: "Sagas" });

export const sagaReply = z
  .looseObject({
    ...sagaFieldSchemas,
    state: z.any(),
    schema: z.int(),
    handled: z.array(z.string()).meta({ description: "Ids of the last messages handled, the newest last." }),
    timeouts: z.array(timeout),
    messages: z.array(timeout),
  })
  .meta({ id: "SagaDetail" });

/** A saga in a list: without its state, which may be large. */
export function sagaFields(saga: SagaView) {
  const { type, id, version, startedAt, changedAt, completedAt, undos, compensation } = saga;
  return {
    type,
    id,
    status: statusOf(saga),
    version,
    started_at: instantText(startedAt),
    changed_at: instantText(changedAt),
    completed_at: completedAt === null ? null : instantText(completedAt),
    pending: saga.pending,
    undos: undos.map(({ id: undo, name }) => ({ id: undo, name })),
    compensation: compensation && {
      started_at: instantText(compensation.startedAt),
      because: compensation.because,
      failed: compensation.failed && { ...compensation.failed, at: instantText(compensation.failed.at) },
    },
  };
}

function statusOf({ completedAt, compensation }: SagaView) {
  if (!compensation) return completedAt === null ? "alive" : "completed";
  if (completedAt !== null) return "compensated";
  return compensation.failed ? "compensation_failed" : "compensating";
}

/** One saga, flat and as `saga`. Each pending timeout has its due time. */
export function sagaDetail(saga: SagaDetail) {
  const fields = detailFields(saga);
  return { ...fields, saga: fields };
}

function detailFields(saga: SagaDetail) {
  const dueAt = new Map(saga.timeouts.map((one) => [one.id, instantText(one.dueAt)]));
  return {
    ...sagaFields(saga),
    pending: saga.pending.map((one) => ({ ...one, due_at: dueAt.get(one.id) ?? null })),
    undos: saga.undos,
    state: saga.state,
    schema: saga.schema,
    handled: saga.handled,
    timeouts: saga.timeouts.map(timeoutFields),
    messages: saga.messages.map(timeoutFields),
  };
}
