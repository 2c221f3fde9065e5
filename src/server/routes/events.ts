import { isEventCursor, type KeptEvent } from "../../engine/remote/event-journal.ts";
import { HttpError } from "../errors.ts";
import { json, type Route, route } from "../route.ts";
import { eventFields } from "../wire/event.ts";
import { eventsReplySchema } from "../wire/replies.ts";
import { eventsQuery } from "../wire/schemas.ts";

function listOf(text: string | undefined): ReadonlySet<string> | null {
  if (text === undefined || text === "") return null;
  return new Set(text.split(",").map((part) => part.trim()));
}

const list = route({
  method: "GET",
  path: "/ojs/v1/events",
  right: "read",
  tag: "events",
  summary: "Read what happened: after a cursor, or the newest where none is given",
  reply: eventsReplySchema,
  query: eventsQuery,
  replies: { 200: "Events in their order, and the cursor to go on from" },
  async run({ query }, { service }) {
    const after = query.after ?? query.cursor ?? null;
    if (after !== null && !isEventCursor(after))
      throw new HttpError(
        400,
        "invalid_request",
        "after: it is no cursor of ours; leave it out to begin anew",
      );
    const types = listOf(query.types);
    const queues = listOf(query.queues);
    const job = query.job_id;
    const fits = (event: KeptEvent) =>
      (types === null || types.has(event.name)) &&
      (queues === null || queues.has(event.queue)) &&
      (job === undefined || event.job === job);
    const { limit = 100 } = query;
    const page =
      after === null
        ? await service.events.readLatest(limit, fits)
        : await service.events.read(after, limit, fits);
    const events = page.events.map(eventFields);
    return json(200, {
      events,
      items: events,
      cursor: page.cursor,
      has_more: page.hasMore,
      pagination: { has_more: page.hasMore, next_cursor: page.cursor },
    });
  },
});

export const eventRoutes: readonly Route[] = [list];
