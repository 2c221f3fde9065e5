import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { readBusinessTime } from "../wire/business-time.ts";
import * as wire from "../wire/calendars.ts";
import { listedPage } from "../wire/pages.ts";

const route = routesOf({ tag: "calendars", scope: "tenant" });
const PATH = "/ojs/v1/admin/calendars";
const MISSING = { 404: "There is no calendar of this name" };

const list = route("GET", PATH, "read", {
  summary: "List business calendars in the order of their names",
  reply: wire.calendarsReply,
  query: wire.calendarsQuery,
  replies: { 200: "A page of calendars" },
  async run({ query }, { engine }) {
    const { items, pagination } = await listedPage(query, {
      list: (after, limit) => engine.calendars.list({ ...(after !== null && { after }), limit }),
      cursorOf: ({ name }) => name,
    });
    return json(200, { items: items.map(wire.calendarFields), pagination });
  },
});

const get = route("GET", `${PATH}/:name`, "read", {
  summary: "Look at a business calendar",
  reply: wire.calendarReply,
  replies: { 200: "The calendar", ...MISSING },
  async run({ params }, { engine }) {
    const name = params.name as string;
    const view = await engine.calendars.get(name);
    if (!view) throw notFound("calendar", name);
    return json(200, { calendar: wire.calendarFields(view) });
  },
});

const put = route("PUT", `${PATH}/:name`, "operate", {
  summary: "Store a business calendar; pending timeouts and crons that use it are resolved anew",
  reply: wire.calendarReply,
  body: wire.calendarSchema,
  replies: { 200: "The calendar, and how many timeouts and crons have another instant now" },
  async run({ params, body, identity }, { engine }) {
    const view = await engine.calendars
      .as(byKey(identity))
      .put(params.name as string, wire.readCalendar(body));
    return json(200, { calendar: wire.calendarFields(view), moved: view.moved });
  },
});

const remove = route("DELETE", `${PATH}/:name`, "operate", {
  summary: "Delete a business calendar; pending timeouts keep their instants",
  reply: wire.calendarReply,
  replies: { 200: "It is gone", ...MISSING, 409: "A cron uses it" },
  async run({ params, identity }, { engine }) {
    const name = params.name as string;
    const view = await engine.calendars.get(name);
    if (!view || !(await engine.calendars.as(byKey(identity)).delete(name))) throw notFound("calendar", name);
    return json(200, { deleted: true, calendar: wire.calendarFields(view) });
  },
});

const explain = route("POST", "/ojs/v1/admin/when", "read", {
  summary: "Say which instant a time by a business calendar means, and why; nothing is stored",
  reply: wire.explainedReply,
  body: wire.explainWhenSchema,
  replies: { 200: "The instant in UTC and in the zone, with a sentence" },
  async run({ body }, { engine }) {
    const found = await engine.calendars.explain(readBusinessTime(body.when), wire.readNow(body.now));
    return json(200, wire.explainedFields(found));
  },
});

export const calendarRoutes: readonly Route[] = [list, get, put, remove, explain];
