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
  status: z.enum(["alive", "completed"]),
  version: z.int().min(1),
  started_at: instant,
  changed_at: instant,
  completed_at: instant.nullable(),
  pending: z.array(pending).meta({ description: "Timeouts that the saga still counts on." }),
};

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
  const { type, id, version, startedAt, changedAt, completedAt } = saga;
  return {
    type,
    id,
    status: completedAt === null ? "alive" : "completed",
    version,
    started_at: instantText(startedAt),
    changed_at: instantText(changedAt),
    completed_at: completedAt === null ? null : instantText(completedAt),
    pending: saga.pending,
  };
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
    state: saga.state,
    schema: saga.schema,
    handled: saga.handled,
    timeouts: saga.timeouts.map(timeoutFields),
    messages: saga.messages.map(timeoutFields),
  };
}
