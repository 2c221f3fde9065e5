import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { sagasQuery } from "../wire/admin-schemas.ts";
import { readParts } from "../wire/job-page.ts";
import { pageRequestOf } from "../wire/pages.ts";
import { compensateReply, sagaDetail, sagaFields, sagaReply, sagasReply } from "../wire/sagas.ts";
import { emptySchema } from "../wire/schemas.ts";

const route = routesOf({ tag: "admin", scope: "tenant" });
const PATH = "/ojs/v1/admin/sagas";
const NAME_LIMIT = 512;

const list = route("GET", PATH, "read", {
  summary: "List sagas by type and id, the last first, alive and completed",
  reply: sagasReply,
  query: sagasQuery,
  replies: { 200: "A page of sagas" },
  async run({ query }, { engine }) {
    const { type, limit, per_page, cursor, order = "desc" } = query;
    const { perPage } = pageRequestOf({ ...(limit && { limit }), ...(per_page && { per_page }) });
    const read = async (after: string | null, count: number) => {
      const named = type === undefined ? {} : { type };
      const found = await engine.sagaRecords.list({ ...named, after, limit: count, order });
      return { jobs: found.sagas, cursor: found.cursor };
    };
    const { items, cursor: next } = await readParts(read, cursor || null, perPage, sagaFields);
    const pagination = { per_page: perPage, has_more: next !== null, next_cursor: next };
    return json(200, { items, pagination });
  },
});

const get = route("GET", `${PATH}/:type/:id`, "read", {
  summary: "Look at a saga: its state, and the timeouts and messages that wait for it",
  reply: sagaReply,
  replies: { 200: "The saga", 404: "There is no such saga" },
  async run({ params }, { engine }) {
    const { type = "", id = "" } = params;
    const found = isName(type) && isName(id) ? await engine.sagaRecords.get(type, id) : null;
    if (!found) throw notFound("saga", `${type} ${id}`);
    return json(200, sagaDetail(found));
  },
});

const compensate = route("POST", `${PATH}/:type/:id/compensate`, "operate", {
  summary: "Take a saga back: run its undos, or go on after one that failed for good",
  reply: compensateReply,
  body: emptySchema,
  replies: { 200: "It is being taken back", 404: "There is no such saga that is alive" },
  async run({ params, identity }, { engine }) {
    const { type = "", id = "" } = params;
    const known = isName(type) && isName(id);
    const answer = known ? await engine.sagaRecords.handle(type, id).compensate(byKey(identity)) : null;
    if (answer === null) throw notFound("saga", `${type} ${id}`);
    return json(200, { type, id, answer });
  },
});

function isName(text: string): boolean {
  return text !== "" && text.length <= NAME_LIMIT && !text.includes("\0") && text.isWellFormed();
}

export const adminSagaRoutes: readonly Route[] = [list, get, compensate];
