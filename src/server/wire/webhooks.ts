import { z } from "zod";
import { isOfType } from "../../core/event/journal-event.ts";
import { type Duration, parseDuration } from "../../core/time.ts";
import { MOST_BATCHED, type WebhookOptions } from "../../core/webhook/subscription.ts";
import { RECORDED } from "../../engine/events/recording-rules.ts";
import { DELIVERY_STATES, type DeliveryView } from "../../engine/webhooks/delivery-log.ts";
import type { WebhookTest, WebhookView } from "../../engine/webhooks/webhooks.ts";
import { isoDuration, readIsoDuration } from "../../ojs/wire-durations.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { adminPageQuery } from "./admin-schemas.ts";
import { iso, jobType, queueName } from "./schemas.ts";

const events = z.array(z.string().max(100)).min(1).max(50);
const url = z.string().min(1).max(2_048);
const secret = z
  .string()
  .max(256)
  .meta({ description: "16 to 256 visible ASCII characters. It is never sent back." });

/** A filter that stands elsewhere would send the events of all queues to the endpoint. */
const misplaced = z
  .undefined({
    error: 'write it in filter, such as {"filter": {"queues": ["mail"], "job_types": ["mail.send"]}}',
  })
  .optional();

const fields = {
  queue: misplaced,
  queues: misplaced,
  type: misplaced,
  types: misplaced,
  job_types: misplaced,
  filters: misplaced,
  filter: z
    .strictObject({
      queues: z.array(queueName).max(100).nullish(),
      job_types: z.array(jobType).max(100).nullish(),
    })
    .nullish()
    .meta({ description: "Only events of these queues and of jobs of these types. Null: all." }),
  active: z.boolean().nullish(),
  ordered: z.boolean().nullish().meta({ description: "The events of one job are sent one after the other." }),
  batch: z
    .looseObject({ max_events: z.int().min(1).max(MOST_BATCHED), max_wait: iso.nullish() })
    .nullish()
    .meta({ description: "Events that share a call, whose body is then a list. Null: one each." }),
  timeout: z
    .number()
    .min(1)
    .max(60)
    .nullish()
    .meta({ description: "Seconds that a call may take. Default 30." }),
  retry: z
    .looseObject({
      max_attempts: z.int().min(1).max(20).nullish(),
      delays: z.array(iso).min(1).max(20).nullish(),
    })
    .nullish()
    .meta({ description: "Calls of one delivery, and the delays between them. Null: 8 within 41 hours." }),
  metadata: z.record(z.string(), z.any()).nullish(),
  headers: z
    .record(z.string(), z.string())
    .nullish()
    .meta({ description: "Headers of each call. Their values are never sent back. Null: none." }),
};

export const webhookSchema = z
  .looseObject({ url, events, secret: secret.nullish(), ...fields })
  .meta({ id: "WebhookRequest" });

export const webhookChangeSchema = z
  .looseObject({
    url: url.nullish(),
    events: events.nullish(),
    ...fields,
    secret: z.undefined({ error: "a secret is changed with POST …/rotate-secret" }).optional(),
  })
  .meta({ id: "WebhookChange" });

export const rotateSchema = z
  .looseObject({
    secret: secret.nullish(),
    overlap: iso.nullish().meta({ description: "How long calls are signed with both secrets. Default P1D." }),
  })
  .nullish()
  .meta({ id: "WebhookRotation" });

export const deliveriesQuery = adminPageQuery.pick({ limit: true, per_page: true, cursor: true }).extend({
  subscription_id: z.string().max(128).optional(),
  status: z.enum(DELIVERY_STATES).optional(),
});

type Change = z.output<typeof webhookChangeSchema>;

const milliseconds = (text: string): Duration => ({ milliseconds: readIsoDuration(text) as number });

/** The options that were sent. `filter`, `batch` and `retry` are replaced as a whole; null is their default. */
export function readWebhook(body: Change): WebhookOptions {
  const { filter, batch, retry, timeout, active, ordered, metadata, headers } = body;
  return {
    ...(body.url != null && { url: body.url }),
    ...(body.events != null && { events: body.events }),
    ...(filter !== undefined && { queues: filter?.queues ?? null, types: filter?.job_types ?? null }),
    ...(active != null && { active }),
    ...(ordered != null && { ordered }),
    ...(timeout != null && { timeout: { milliseconds: Math.round(timeout * 1_000) } }),
    ...(metadata !== undefined && { metadata }),
    ...(headers !== undefined && { headers }),
    ...(batch !== undefined && {
      batch: batch && {
        size: batch.max_events,
        ...(batch.max_wait != null && { within: milliseconds(batch.max_wait) }),
      },
    }),
    ...(retry !== undefined && {
      retry: retry && {
        ...(retry.max_attempts != null && { attempts: retry.max_attempts }),
        ...(retry.delays != null && { delays: retry.delays.map(milliseconds) }),
      },
    }),
  };
}

export function readOverlap(text: string | null | undefined): { overlap?: Duration } {
  return text == null ? {} : { overlap: milliseconds(text) };
}

const KNOWN = Object.keys(RECORDED);

/** What a subscription asks for and will never get. */
export function webhookWarnings({ events: names }: Pick<WebhookView, "events">): {
  warnings?: readonly object[];
} {
  const never = names.filter((name) => name !== "*" && !KNOWN.some((known) => isOfType(known, name)));
  if (never.length === 0) return {};
  return {
    warnings: never.map((name) => ({
      field: "events",
      message: `events: this server records no event ${name}`,
    })),
  };
}

const lengthOf = (duration: Duration) => parseDuration(duration, "duration", { zero: true });
const isoOf = (duration: Duration) => isoDuration(lengthOf(duration));
const atOrNull = (at: number | null) => (at === null ? null : instantText(at));

/** As it was sent, so that a client can send it back. */
export function webhookFields(view: WebhookView) {
  const { queues, types, batch, retry, circuit } = view;
  return {
    id: view.id,
    url: view.url,
    events: view.events,
    ...((queues ?? types) && { filter: { ...(queues && { queues }), ...(types && { job_types: types }) } }),
    active: view.active,
    ordered: view.ordered,
    batch: batch.size === 1 ? null : { max_events: batch.size, max_wait: isoOf(batch.within) },
    timeout: lengthOf(view.timeout) / 1_000,
    retry: { max_attempts: retry.attempts, delays: retry.delays.map(isoOf) },
    metadata: view.metadata,
    header_names: view.headerNames,
    created_at: instantText(view.createdAt),
    updated_at: instantText(view.updatedAt),
    circuit: { state: circuit.state, until: atOrNull(circuit.until) },
    success_count: view.delivered,
    failure_count: view.failed + view.dead,
    dead_count: view.dead,
    last_delivery_at: atOrNull(view.deliveredAt),
    last_failure_at: atOrNull(view.failedAt),
    last_error: view.lastError,
  };
}

export function testFields({ ok, status, elapsed, text, error }: WebhookTest) {
  return {
    success: ok,
    status_code: status,
    status,
    response_time_ms: Math.round(elapsed),
    response_body: text,
    error,
  };
}

export function deliveryFields(view: DeliveryView) {
  const { answer } = view;
  return {
    id: view.id,
    subscription_id: view.subscription,
    status: view.state,
    event_types: [...new Set(view.events.map(({ name }) => name))],
    events: view.events.map(({ id, name, job }) => ({ id, type: name, job_id: job })),
    attempts: view.attempts,
    created_at: instantText(view.createdAt),
    completed_at: atOrNull(view.endedAt),
    next_attempt_at: atOrNull(view.nextAt),
    response: answer && {
      status_code: answer.status,
      response_time_ms: answer.elapsed,
      response_body: answer.text,
    },
    errors: view.errors.map(({ at, attempt, code, message }) => ({
      occurred_at: instantText(at),
      attempt,
      code,
      message,
    })),
    redelivery_of: view.repeats,
  };
}

const subscription = z
  .looseObject({
    id: z.string(),
    url: z.string(),
    events: z.array(z.string()),
    active: z.boolean(),
    created_at: z.string(),
    circuit: z.looseObject({ state: z.enum(["closed", "open", "half-open"]), until: z.string().nullable() }),
    success_count: z.number(),
    failure_count: z.number(),
  })
  .meta({ id: "WebhookSubscription" });

const delivery = z
  .looseObject({
    id: z.string(),
    subscription_id: z.string(),
    status: z.enum(DELIVERY_STATES),
    event_types: z.array(z.string()),
    attempts: z.number(),
    created_at: z.string(),
    completed_at: z.string().nullable(),
    next_attempt_at: z.string().nullable(),
    redelivery_of: z.string().nullable(),
  })
  .meta({ id: "WebhookDelivery" });

const page = z.looseObject({ has_more: z.boolean(), next_cursor: z.string().nullable() });

export const webhookReply = z.looseObject({ subscription });
export const webhooksReply = z.looseObject({ subscriptions: z.array(subscription), pagination: page });
export const deliveryReply = z.looseObject({ delivery });
export const deliveriesReply = z.looseObject({ deliveries: z.array(delivery), pagination: page });
export const webhookTestReply = z.looseObject({
  success: z.boolean(),
  status_code: z.number().nullable(),
  response_time_ms: z.number(),
  response_body: z.string(),
  error: z.string().nullable(),
});
export const rotationReply = z.looseObject({ id: z.string() });
