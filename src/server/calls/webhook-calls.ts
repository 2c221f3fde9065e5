import { z } from "zod";
import type { WebhookOptions } from "../../core/webhook/subscription.ts";
import type { DeliveriesOptions } from "../../engine/webhooks/delivery-log.ts";
import type { NewWebhook, RotateOptions } from "../../engine/webhooks/webhooks.ts";
import { call, options, text } from "./call.ts";

const id = z.tuple([text]);

export const webhookCalls = {
  "webhooks.create": call(
    "Create a webhook subscription",
    z.tuple([options<NewWebhook>()]),
    ({ engine, by }, webhook) => engine.webhooks.as(by).create(webhook),
  ),
  "webhooks.update": call(
    "Change a webhook subscription",
    z.tuple([text, options<WebhookOptions>()]),
    ({ engine, by }, webhook, changes) => engine.webhooks.as(by).update(webhook, changes),
  ),
  "webhooks.delete": call(
    "Delete a webhook subscription and cancel its deliveries",
    id,
    ({ engine, by }, webhook) => engine.webhooks.as(by).delete(webhook),
  ),
  "webhooks.get": call("Load a webhook subscription", id, ({ engine }, webhook) =>
    engine.webhooks.get(webhook),
  ),
  "webhooks.list": call(
    "List webhook subscriptions",
    z.tuple([options<{ after?: string; limit?: number }>().optional()]),
    ({ engine }, page) => engine.webhooks.list(page),
  ),
  "webhooks.rotate": call(
    "Give a webhook subscription a new secret",
    z.tuple([text, options<RotateOptions>().optional()]),
    ({ engine, by }, webhook, how) => engine.webhooks.as(by).rotate(webhook, how),
  ),
  "webhooks.test": call("Send a test event to an endpoint", id, ({ engine, by }, webhook) =>
    engine.webhooks.as(by).test(webhook),
  ),
  "webhooks.deliveries": call(
    "List deliveries, the newest first",
    z.tuple([options<DeliveriesOptions>().optional()]),
    ({ engine }, asked) => engine.webhooks.deliveries(asked),
  ),
  "webhooks.delivery": call("Load a delivery", id, ({ engine }, delivery) =>
    engine.webhooks.delivery(delivery),
  ),
  "webhooks.redeliver": call("Send a delivery again", id, ({ engine, by }, delivery) =>
    engine.webhooks.as(by).redeliver(delivery),
  ),
};
