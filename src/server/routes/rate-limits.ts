import { INTERNAL } from "../../core/job/internal-queue.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { limitReply, limitsReply } from "../wire/admin-replies.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import { isKnown, keyOf, limitChangeSchema, limitFields, readChange } from "../wire/limit.ts";
import { listedPage } from "../wire/pages.ts";

const route = routesOf({ tag: "rate limits", scope: "tenant" });
const PATH = "/ojs/v1/rate-limits";

const list = route("GET", PATH, "read", {
  summary: "List limits that have live jobs or an override, in the order of their keys",
  reply: limitsReply,
  query: adminPageQuery,
  replies: { 200: "A page of limits" },
  async run({ query }, { engine }) {
    if (query.cursor) keyOf(query.cursor, "cursor");
    const { items: views, pagination } = await listedPage(query, {
      list: (after, limit) => engine.limits.list({ ...(after !== null && { after }), limit }),
      cursorOf: ({ key }) => key,
      isWanted: ({ key }) => !key.startsWith(INTERNAL),
    });
    const items = views.map(limitFields);
    return json(200, { items, rate_limits: items, pagination });
  },
});

const get = route("GET", `${PATH}/:key`, "read", {
  summary: "Look at a limit: its values, its use, and the number of waiting jobs",
  reply: limitReply,
  replies: { 200: "The limit", 404: "No live job has it, and there is no override" },
  async run({ params }, { engine }) {
    const key = keyOf(params.key);
    const view = await engine.limits.get(key);
    if (!isKnown(view)) throw notFound("rate limit", key);
    const fields = limitFields(view);
    return json(200, { ...fields, rate_limit: fields });
  },
});

const putBy = (path: string) =>
  route("PUT", path, "operate", {
    summary: "Override the limit of a key, for every process and at once",
    reply: limitReply,
    body: limitChangeSchema,
    replies: { 200: "The limit" },
    async run({ params, body, identity }, { engine }) {
      const fields = limitFields(
        await engine.limits.put(keyOf(params.key), readChange(body), byKey(identity)),
      );
      return json(200, { ...fields, rate_limit: fields });
    },
  });

const removeBy = (path: string) =>
  route("DELETE", path, "operate", {
    summary: "Remove the override of a limit",
    reply: limitReply,
    replies: { 200: "The limit as the jobs say it" },
    async run({ params, identity }, { engine }) {
      const fields = limitFields(await engine.limits.delete(keyOf(params.key), byKey(identity)));
      return json(200, { ...fields, deleted: true, rate_limit: fields });
    },
  });

export const rateLimitRoutes: readonly Route[] = [
  list,
  get,
  putBy(`${PATH}/:key`),
  putBy(`${PATH}/:key/override`),
  removeBy(`${PATH}/:key`),
  removeBy(`${PATH}/:key/override`),
];
