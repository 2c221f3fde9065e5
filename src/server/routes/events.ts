import { show } from "../../core/errors.ts";
import { type EventFilter, isEventCursor, type JournalEvent } from "../../core/event/journal-event.ts";
import type { Engine } from "../../engine/engine.ts";
import type { LatestPage } from "../../engine/events/event-journal.ts";
import { readInstant } from "../../ojs/wire-durations.ts";
import { readTypes, stateAfter, wireEvents } from "../../ojs/wire-events.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { HttpError, refusedField } from "../http/http-error.ts";
import { json, type Reply, type Route, reply, route } from "../route.ts";
import { traceFields, traceReply } from "../wire/job-trace.ts";
import { eventsReplySchema } from "../wire/replies.ts";
import { eventsQuery } from "../wire/schemas.ts";
import { loadJob } from "./job-actions.ts";

export function listOf(text: string | undefined): readonly string[] | undefined {
  const parts = text
    ?.split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return parts?.length ? parts : undefined;
}

/** Characters of events in one reply, which holds them twice. */
const PAGE_SIZE = 2_000_000;
const STEP = 100;

type EventJournal = Engine["journal"];

interface Events {
  readonly texts: readonly string[];
  readonly cursor: string | null;
  readonly hasMore: boolean;
  /** How far back the newest events were looked for. Left out after a cursor. */
  readonly reach?: Pick<LatestPage, "before" | "from" | "scanned">;
}

type Wanted = EventFilter;

/** Events after a cursor, until there are `limit` of them or they fill a page. */
async function eventsAfter(
  journal: EventJournal,
  wanted: Wanted,
  { after, limit, show }: { readonly after: string; readonly limit: number; readonly show: Show },
): Promise<Events> {
  const texts: string[] = [];
  let [cursor, size, count]: [string | null, number, number] = [after, 0, 0];
  for (;;) {
    const page = await journal.read({ ...wanted, after: cursor, limit: Math.min(STEP, limit - count) });
    for (const text of page.events.flatMap(show)) {
      size += text.length;
      texts.push(text);
    }
    count += page.events.length;
    cursor = page.cursor ?? cursor;
    if (!page.hasMore || page.isIncomplete || count >= limit || size >= PAGE_SIZE)
      return { texts, cursor, hasMore: page.hasMore || page.isIncomplete };
  }
}

/** The newest events that fill a page at most. */
async function newestEvents(
  journal: EventJournal,
  wanted: Wanted,
  { before, limit, show }: { readonly before: string | null; readonly limit: number; readonly show: Show },
): Promise<Events> {
  return fitted(await journal.latest({ ...wanted, before, limit }), show);
}

/** As many of the newest events as a reply holds. */
function fitted(page: LatestPage, show: Show): Events {
  const texts: string[] = [];
  let size = 0;
  let reach: Events["reach"] = page;
  let oldest = page.events.at(-1);
  for (const event of page.events.toReversed()) {
    const shown = show(event);
    for (const text of shown) size += text.length;
    if (size > PAGE_SIZE && texts.length > 0) {
      // The rest of the page comes with the next one.
      reach = { ...page, before: oldest?.cursor ?? null, from: oldest?.at ?? null };
      break;
    }
    texts.unshift(...shown);
    oldest = event;
  }
  return { texts, cursor: page.cursor, hasMore: page.hasMore || page.isIncomplete, reach };
}

type Show = (event: JournalEvent) => string[];

const list = route("GET", "/ojs/v1/events", "read", {
  scope: "tenant",
  tag: "events",
  summary: "Read events after a cursor, or the newest ones",
  isShared: true,
  reply: eventsReplySchema,
  query: eventsQuery,
  replies: { 200: "Events in their order, and the next cursor" },
  async run({ query }, { engine }) {
    const after = cursorIn(query.after ?? query.cursor, "after");
    const before = cursorIn(query.before, "before");
    if (after !== null && before !== null)
      throw new HttpError(400, "invalid_request", "before: contradicts after; send one of them");
    const asked = listOf(query.types ?? query.type);
    const types = readTypes(asked);
    const queues = listOf(query.queues ?? query.queue);
    const limit = query.limit ?? query.per_page ?? 100;
    const wanted = {
      ...(types && { types }),
      ...(queues && { queues }),
      ...(query.job_id !== undefined && { job: query.job_id }),
      ...sagaIn(query),
    };
    const { journal } = engine;
    const since = query.since === undefined ? 0 : readInstant(query.since, engine.now(), "since");
    const show: Show = (event) =>
      event.at < since ? [] : wireEvents(event, asked).map((fields) => JSON.stringify(fields));
    const page =
      after === null
        ? await newestEvents(journal, wanted, { before, limit, show })
        : await eventsAfter(journal, wanted, { after, limit, show });
    const { cursor, hasMore } = page;
    const pagination = { has_more: hasMore, next_cursor: cursor };
    return eventsReply(page, { cursor, has_more: hasMore, ...searchedFields(page), pagination });
  },
});

/** How far back the newest events were looked for. */
function searchedFields({ reach }: Events) {
  if (!reach) return undefined;
  const { scanned, from, before } = reach;
  return { scanned, searched_from: from === null ? null : instantText(from), before };
}

function cursorIn(text: string | undefined, field: string): string | null {
  if (text === undefined || isEventCursor(text)) return text ?? null;
  throw refusedField(field, `${show(text)} is not a cursor of this server; leave it out to start over`);
}

function sagaIn({
  saga_type: type,
  saga_id: id,
}: {
  readonly saga_type?: string | undefined;
  readonly saga_id?: string | undefined;
}) {
  if (type === undefined && id === undefined) return {};
  if (type !== undefined && id !== undefined) return { saga: { type, id } };
  const missing = type === undefined ? "saga_type" : "saga_id";
  throw refusedField(missing, "missing; send saga_type and saga_id, or neither");
}

function eventsReply({ texts }: Events, fields: object): Reply {
  const events = `[${texts.join(",")}]`;
  return reply(200, `{"events":${events},"items":${events},${JSON.stringify(fields).slice(1)}`);
}

const history = route("GET", "/ojs/v1/events/:id/history", "read", {
  scope: "tenant",
  tag: "events",
  summary: "The events of one job",
  reply: eventsReplySchema,
  replies: {
    200: "Its events in their order. `before` is null if its whole life was searched; else all events since `searched_from`, and older ones around the instants that the job remembers",
    404: "There is no such job",
  },
  async run({ params }, context) {
    const row = await loadJob(params.id ?? "", context);
    const show: Show = (event) => {
      const state = stateAfter(event.name);
      return wireEvents(event).map((fields) =>
        JSON.stringify({ ...fields, ...(state !== undefined && { state }) }),
      );
    };
    const page = fitted(await context.engine.journal.ofJob(row), show);
    return eventsReply(page, {
      job_id: row.id,
      cursor: page.cursor,
      has_more: page.hasMore,
      ...searchedFields(page),
    });
  },
});

const trace = route("GET", "/ojs/v1/admin/jobs/:id/trace", "read", {
  scope: "tenant",
  tag: "admin",
  summary: "The spans of one job: its enqueue and its attempts, from its events and its errors",
  reply: traceReply,
  replies: { 200: "Its spans and events in their order", 404: "There is no such job" },
  async run({ params }, context) {
    const row = await loadJob(params.id ?? "", context);
    return json(200, traceFields(row, await context.engine.journal.ofJob(row)));
  },
});

export const eventRoutes: readonly Route[] = [list, history, trace];
