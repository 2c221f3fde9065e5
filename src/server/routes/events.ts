import { isEventCursor } from "../../core/event/journal-event.ts";
import { readTypes, wireEvents } from "../../ojs/wire-events.ts";
import { HttpError } from "../http-error.ts";
import { json, type Route, route } from "../route.ts";
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

const list = route({
  method: "GET",
  path: "/ojs/v1/events",
  right: "read",
  tag: "events",
  summary: "Read events after a cursor, or the newest ones",
  reply: eventsReplySchema,
  query: eventsQuery,
  replies: { 200: "Events in their order, and the next cursor" },
  async run({ query }, { engine }) {
    const after = query.after ?? query.cursor ?? null;
    if (after !== null && !isEventCursor(after))
      throw new HttpError(
        400,
        "invalid_request",
        "after: not a cursor of this server; leave it out to start over",
      );
    const asked = listOf(query.types ?? query.type);
    const types = readTypes(asked);
    const queues = listOf(query.queues ?? query.queue);
    const wanted = {
      limit: query.limit ?? query.per_page ?? 100,
      ...(types && { types }),
      ...(queues && { queues }),
      ...(query.job_id !== undefined && { job: query.job_id }),
    };
    const { journal } = engine;
    const page = after === null ? await journal.latest(wanted) : await journal.read({ ...wanted, after });
    const events = page.events.flatMap((event) => wireEvents(event, asked));
    const hasMore = page.hasMore || page.isIncomplete;
    return json(200, {
      events,
      items: events,
      cursor: page.cursor,
      has_more: hasMore,
      pagination: { has_more: hasMore, next_cursor: page.cursor },
    });
  },
});

const MOST_OF_ONE = 1_000;

/** The state of the job after an event. */
const STATES: Readonly<Record<string, string>> = {
  "job.enqueued": "available",
  "job.scheduled": "scheduled",
  "job.started": "active",
  "job.completed": "completed",
  "job.retrying": "retryable",
  "job.discarded": "discarded",
  "job.cancelled": "cancelled",
};

const history = route({
  method: "GET",
  path: "/ojs/v1/events/:id/history",
  right: "read",
  tag: "events",
  summary: "The events of one job, among the newest 5,000 events",
  reply: eventsReplySchema,
  replies: { 200: "Its events in their order", 404: "There is no such job" },
  async run({ params }, context) {
    const { id } = await loadJob(params.id ?? "", context);
    const page = await context.engine.journal.latest({ job: id, limit: MOST_OF_ONE });
    const events = page.events.flatMap((event) => {
      const state = STATES[event.name];
      return wireEvents(event).map((fields) => ({ ...fields, ...(state !== undefined && { state }) }));
    });
    const hasMore = page.hasMore || page.isIncomplete;
    return json(200, { job_id: id, events, items: events, cursor: page.cursor, has_more: hasMore });
  },
});

export const eventRoutes: readonly Route[] = [list, history];
