import type { Timeout } from "../../engine/dispatch/timeout-view.ts";
import type { Engine } from "../../engine/engine.ts";
import { readInstant } from "../../ojs/wire-durations.ts";
import { notFound } from "../http/failures.ts";
import { byKey, json, type Route, routesOf } from "../route.ts";
import { rescheduleSchema, timeoutsQuery } from "../wire/admin-schemas.ts";
import { readBusinessTime } from "../wire/business-time.ts";
import { readParts } from "../wire/job-page.ts";
import { listedPage, pageRequestOf } from "../wire/pages.ts";
import { emptySchema } from "../wire/schemas.ts";
import { revokedReply, timeoutDetail, timeoutFields, timeoutReply, timeoutsReply } from "../wire/timeouts.ts";

const route = routesOf({ tag: "admin", scope: "tenant" });
const PATH = "/ojs/v1/admin/timeouts";
const MISSING = { 404: "There is no such timeout" };
const ID_LIMIT = 512;

interface Wanted {
  readonly destination?: string;
  readonly from?: number;
  readonly before?: number;
}

function withoutPayload(one: Timeout): Timeout {
  return { ...one, payload: null };
}

/** Dead timeouts come from an index, in the order of their ids. The filter looks at 5,000 of them at most. */
async function deadPage(engine: Engine, page: Parameters<typeof listedPage>[0], wanted: Wanted) {
  const { destination, from = 0, before = Number.POSITIVE_INFINITY } = wanted;
  const { items, pagination } = await listedPage<Timeout>(page, {
    async list(after, limit) {
      const read = async (from: string | null, count: number) => {
        const cursor = from === null ? {} : { after: from };
        const jobs = await engine.timeouts.list({ isDead: true }, { ...cursor, limit: count });
        return { jobs, cursor: jobs.length < count ? null : (jobs.at(-1)?.id ?? null) };
      };
      return (await readParts(read, after, limit, withoutPayload)).items;
    },
    cursorOf: ({ id }) => id,
    isWanted: (one) =>
      (destination === undefined || one.destination === destination) &&
      one.dueAt >= from &&
      one.dueAt < before,
  });
  const { per_page, has_more, next_cursor } = pagination;
  return { items: items.map(timeoutFields), pagination: { per_page, has_more, next_cursor } };
}

const list = route("GET", PATH, "read", {
  summary:
    "List timeouts that are stored, in the order in which they are due; with dead=true those that were given up",
  reply: timeoutsReply,
  query: timeoutsQuery,
  replies: { 200: "A page of timeouts; a short page of dead timeouts may not be the last" },
  async run({ query }, { engine }) {
    const { destination, dead, limit, per_page, cursor } = query;
    const now = engine.now();
    const from = query.from === undefined ? undefined : readInstant(query.from, now, "from");
    const before = query.to === undefined ? undefined : readInstant(query.to, now, "to");
    const page = { ...(limit && { limit }), ...(per_page && { per_page }), ...(cursor && { cursor }) };
    if (dead)
      return json(
        200,
        await deadPage(engine, page, {
          ...(destination !== undefined && { destination }),
          ...(from !== undefined && { from }),
          ...(before !== undefined && { before }),
        }),
      );
    const { perPage } = pageRequestOf(page);
    const read = async (after: string | null, count: number) => {
      const found = await engine.timeouts.calendar({
        ...(destination !== undefined && { destination }),
        ...(from !== undefined && { from: { epochMilliseconds: from } }),
        ...(before !== undefined && { before: { epochMilliseconds: before } }),
        after,
        limit: count,
      });
      return { jobs: found.timeouts, cursor: found.cursor };
    };
    const { items, cursor: next } = await readParts(read, cursor || null, perPage, timeoutFields);
    const pagination = { per_page: perPage, has_more: next !== null, next_cursor: next };
    return json(200, { items, pagination });
  },
});

/** The id of a timeout from the path: any text that a store can keep. */
function timeoutId(params: Readonly<Record<string, string>>): string {
  const id = params.id ?? "";
  if (id === "" || id.length > ID_LIMIT || id.includes("\0") || !id.isWellFormed())
    throw notFound("timeout", id);
  return id;
}

const get = route("GET", `${PATH}/:id`, "read", {
  summary: "Look at a timeout with its payload and headers",
  reply: timeoutReply,
  replies: { 200: "The timeout", ...MISSING },
  async run({ params }, { engine }) {
    const id = timeoutId(params);
    const found = await engine.timeouts.get(id);
    if (!found) throw notFound("timeout", id);
    return json(200, timeoutDetail(found));
  },
});

const revoke = route("POST", `${PATH}/:id/revoke`, "operate", {
  summary: "Revoke a timeout: it will not be delivered",
  reply: revokedReply,
  body: emptySchema,
  replies: { 200: "It is gone", ...MISSING, 409: "It changed during every try" },
  async run({ params, identity }, { engine }) {
    const id = timeoutId(params);
    const was = await engine.timeouts.revoke(id, byKey(identity));
    return json(200, { id, revoked: true, was });
  },
});

const reschedule = route("POST", `${PATH}/:id/reschedule`, "operate", {
  summary: "Move a pending timeout to another instant",
  reply: timeoutReply,
  body: rescheduleSchema,
  replies: { 200: "The timeout", ...MISSING, 409: "It is dead, leased, or a message of a saga" },
  async run({ params, body, identity }, { engine }) {
    const dueAt = body.when
      ? readBusinessTime(body.when)
      : { epochMilliseconds: readInstant(body.due_at as string, engine.now(), "due_at") };
    const moved = await engine.timeouts.reschedule(timeoutId(params), dueAt, byKey(identity));
    return json(200, timeoutDetail(moved));
  },
});

const requeue = route("POST", `${PATH}/:id/requeue`, "operate", {
  summary: "Try a dead timeout again, at once and with all its tries",
  reply: timeoutReply,
  body: emptySchema,
  replies: { 200: "The timeout", ...MISSING, 409: "It is not dead" },
  run: async ({ params, identity }, { engine }) =>
    json(200, timeoutDetail(await engine.timeouts.revive(timeoutId(params), byKey(identity)))),
});

export const adminTimeoutRoutes: readonly Route[] = [list, get, revoke, reschedule, requeue];
