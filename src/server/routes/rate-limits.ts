import { notFound } from "../failures.ts";
import { byKey, json, type Route, route } from "../route.ts";
import { limitReply, limitsReply } from "../wire/admin-replies.ts";
import { adminPageQuery } from "../wire/admin-schemas.ts";
import { isKnown, keyOf, limitChangeSchema, limitFields, readChange } from "../wire/limit.ts";
import { placeOf } from "../wire/pages.ts";

const TAG = "rate limits";
const PATH = "/ojs/v1/rate-limits";

const list = route({
  method: "GET",
  path: PATH,
  right: "read",
  tag: TAG,
  summary: "List limits that have live jobs or an override, in the order of their keys",
  reply: limitsReply,
  query: adminPageQuery,
  replies: { 200: "A page of limits" },
  async run({ query }, { engine }) {
    const { perPage, cursor, page } = placeOf(query);
    // Pages by number are read from the start; keys are few, and a cursor reads on from anywhere.
    const skipped = cursor === null ? (page - 1) * perPage : 0;
    const after = cursor === null ? {} : { after: keyOf(cursor, "cursor") };
    const limit = Math.min(skipped + perPage + 1, MOST);
    const views = (await engine.limits.list({ ...after, limit })).slice(skipped);
    const items = views.slice(0, perPage).map(limitFields);
    const hasMore = views.length > perPage;
    return json(200, {
      items,
      rate_limits: items,
      pagination: {
        total: skipped + views.length,
        total_is_exact: !hasMore && cursor === null,
        page,
        per_page: perPage,
        has_more: hasMore,
        next_cursor: hasMore ? (items.at(-1)?.key ?? null) : null,
      },
    });
  },
});

const MOST = 1_000;

const get = route({
  method: "GET",
  path: `${PATH}/:key`,
  right: "read",
  tag: TAG,
  summary: "Look at a limit: what holds, how much of it is used, and how many wait",
  reply: limitReply,
  replies: { 200: "The limit", 404: "No live job has it, and nobody put one" },
  async run({ params }, { engine }) {
    const key = keyOf(params.key);
    const view = await engine.limits.get(key);
    if (!isKnown(view)) throw notFound("rate limit", key);
    const fields = limitFields(view);
    return json(200, { ...fields, rate_limit: fields });
  },
});

const putBy = (path: string) =>
  route({
    method: "PUT",
    path,
    right: "operate",
    tag: TAG,
    summary: "Overrule what the jobs of a key say, for every process and at once",
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
  route({
    method: "DELETE",
    path,
    right: "operate",
    tag: TAG,
    summary: "Leave a limit to its jobs again",
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
