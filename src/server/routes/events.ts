import { toCloudEvent } from "../../core/event/cloud-event.ts";
import { isEventCursor } from "../../core/event/journal-event.ts";
import { HttpError } from "../errors.ts";
import { json, type Route, route } from "../route.ts";
import { eventsReplySchema } from "../wire/replies.ts";
import { eventsQuery } from "../wire/schemas.ts";

export function listOf(text: string | undefined): readonly string[] | undefined {
  const parts = text
    ?.split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return parts?.length ? parts : undefined;
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
  async run({ query }, { engine }) {
    const after = query.after ?? query.cursor ?? null;
    if (after !== null && !isEventCursor(after))
      throw new HttpError(
        400,
        "invalid_request",
        "after: it is no cursor of ours; leave it out to begin anew",
      );
    const { types, queues } = { types: listOf(query.types), queues: listOf(query.queues) };
    const wanted = {
      limit: query.limit ?? 100,
      ...(types && { types }),
      ...(queues && { queues }),
      ...(query.job_id !== undefined && { job: query.job_id }),
    };
    const { journal } = engine;
    const page = after === null ? await journal.latest(wanted) : await journal.read({ ...wanted, after });
    const events = page.events.map((event) => toCloudEvent(event));
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
