import type { WebhookView } from "../../engine/webhooks/webhooks.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Reply, type Route, type RouteContext, routesOf } from "../route.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import { listedPage, pageRequestOf } from "../wire/pages.ts";
import { deletedReplySchema } from "../wire/replies.ts";
import { emptySchema } from "../wire/schemas.ts";
import * as wire from "../wire/webhooks.ts";

const route = routesOf({ tag: "webhooks", scope: "tenant" });
const PATH = "/ojs/v1/webhooks/subscriptions";
const LOG = "/ojs/v1/webhooks/deliveries";
const UNKNOWN = "There is no such subscription";

/** URLs of endpoints often have a token in them, so reading needs the right of an operator too. */
const right = "operate";

function webhookBody(view: WebhookView) {
  const subscription = wire.webhookFields(view);
  return { ...subscription, subscription, ...wire.webhookWarnings(view) };
}

async function load(id: string | undefined, { engine }: RouteContext): Promise<WebhookView> {
  const view = id === undefined ? null : await engine.webhooks.get(id);
  if (!view) throw notFound("webhook", id ?? "");
  return view;
}

const create = route("POST", PATH, right, {
  summary: "Subscribe an endpoint to events from now on",
  reply: wire.webhookReply,
  body: wire.webhookSchema,
  replies: { 201: "The subscription; with its secret if the server made it, which no other reply has" },
  async run({ body, identity }, { engine }): Promise<Reply> {
    const { secret: given, url, events, ...rest } = body;
    const options = { ...wire.readWebhook(rest), url, events, ...(given != null && { secret: given }) };
    const { webhook, secret } = await engine.webhooks.as(byKey(identity)).create(options);
    const said = { ...webhookBody(webhook), ...(secret !== null && { secret }) };
    return json(201, said, { Location: `${PATH}/${webhook.id}` });
  },
});

const list = route("GET", PATH, right, {
  summary: "List subscriptions, the oldest first",
  reply: wire.webhooksReply,
  query: adminPageQuery,
  replies: { 200: "A page of subscriptions, without secrets" },
  async run({ query }, { engine }) {
    const { items: views, pagination } = await listedPage(query, {
      usual: 100,
      list: (after, limit) => engine.webhooks.list({ ...(after !== null && { after }), limit }),
      cursorOf: ({ id }) => id,
    });
    const items = views.map(wire.webhookFields);
    return json(200, { subscriptions: items, items, total: pagination.total, pagination });
  },
});

const get = route("GET", `${PATH}/:id`, right, {
  summary: "Look at a subscription, its counts and its circuit",
  reply: wire.webhookReply,
  replies: { 200: "The subscription, without its secret", 404: UNKNOWN },
  run: async ({ params }, context) => json(200, webhookBody(await load(params.id, context))),
});

/** The specification and the suite say PATCH, the official admin page PUT. Both change what is named. */
const changeBy = (method: "PATCH" | "PUT") =>
  route(method, `${PATH}/:id`, right, {
    summary: "Change the fields of a subscription that are named",
    reply: wire.webhookReply,
    body: wire.webhookChangeSchema,
    replies: { 200: "It is changed", 404: UNKNOWN },
    async run({ params, body, identity }, context) {
      const { id } = await load(params.id, context);
      const changed = await context.engine.webhooks.as(byKey(identity)).update(id, wire.readWebhook(body));
      return json(200, webhookBody(changed));
    },
  });

const remove = route("DELETE", `${PATH}/:id`, right, {
  summary: "Delete a subscription and cancel its deliveries",
  reply: deletedReplySchema,
  replies: { 200: "It is gone", 404: UNKNOWN },
  async run({ params, identity }, context) {
    const { id } = await load(params.id, context);
    await context.engine.webhooks.as(byKey(identity)).delete(id);
    return json(200, { deleted: true, id });
  },
});

const test = route("POST", `${PATH}/:id/test`, right, {
  summary: "Call the endpoint once with an event webhook.test",
  reply: wire.webhookTestReply,
  body: emptySchema,
  replies: { 200: "What came of it within 10 seconds", 404: UNKNOWN },
  async run({ params, identity }, context) {
    const { id } = await load(params.id, context);
    return json(200, wire.testFields(await context.engine.webhooks.as(byKey(identity)).test(id)));
  },
});

const rotate = route("POST", `${PATH}/:id/rotate-secret`, right, {
  summary: "Give a subscription a new secret; calls are signed with both for a while",
  reply: wire.rotationReply,
  body: wire.rotateSchema,
  replies: { 200: "Done; with the secret if the server made it", 404: UNKNOWN },
  async run({ params, body, identity }, context) {
    const { id } = await load(params.id, context);
    const { secret: given, overlap } = body ?? {};
    const options = { ...wire.readOverlap(overlap), ...(given != null && { secret: given }) };
    const { secret } = await context.engine.webhooks.as(byKey(identity)).rotate(id, options);
    return json(200, { id, rotated: true, ...(secret !== null && { secret, new_secret: secret }) });
  },
});

const deliveries = route("GET", LOG, right, {
  summary: "List deliveries, the newest first",
  reply: wire.deliveriesReply,
  query: wire.deliveriesQuery,
  replies: { 200: "A page; a short page may not be the last" },
  async run({ query }, { engine }) {
    const { perPage, cursor } = pageRequestOf(query, 50);
    const { subscription_id, status } = query;
    const found = await engine.webhooks.deliveries({
      after: cursor,
      limit: perPage,
      ...(subscription_id !== undefined && { subscription: subscription_id }),
      ...(status !== undefined && { state: status }),
    });
    const items = found.deliveries.map(wire.deliveryFields);
    const pagination = { per_page: perPage, has_more: found.cursor !== null, next_cursor: found.cursor };
    return json(200, { deliveries: items, items, pagination });
  },
});

const delivery = route("GET", `${LOG}/:id`, right, {
  summary: "Look at a delivery and all its calls",
  reply: wire.deliveryReply,
  replies: { 200: "The delivery", 404: "There is no such delivery, or its retention is over" },
  async run({ params }, { engine }) {
    const view = await engine.webhooks.delivery(params.id ?? "");
    if (!view) throw notFound("delivery", params.id ?? "");
    const fields = wire.deliveryFields(view);
    return json(200, { ...fields, delivery: fields });
  },
});

const redeliverBy = (verb: "retry" | "redeliver") =>
  route("POST", `${LOG}/:id/${verb}`, right, {
    summary: "Send a delivery again, whether it is dead, waits or was delivered",
    reply: wire.deliveryReply,
    body: emptySchema,
    replies: {
      200: "The delivery that is made",
      404: "There is no such delivery",
      409: "It is being called",
    },
    async run({ params, identity }, { engine }) {
      const fields = wire.deliveryFields(
        await engine.webhooks.as(byKey(identity)).redeliver(params.id ?? ""),
      );
      return json(200, { ...fields, delivery: fields });
    },
  });

export const webhookRoutes: readonly Route[] = [
  create,
  list,
  get,
  changeBy("PATCH"),
  changeBy("PUT"),
  remove,
  test,
  rotate,
  deliveries,
  delivery,
  redeliverBy("retry"),
  redeliverBy("redeliver"),
];
