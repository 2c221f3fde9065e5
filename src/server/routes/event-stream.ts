import { z } from "zod";
import { show } from "../../core/errors.ts";
import { type EventFilter, isEventCursor } from "../../core/event/journal-event.ts";
import { readTypes, wireEvents } from "../../ojs/wire-events.ts";
import { HttpError, refusedField } from "../http/http-error.ts";
import type { Feed } from "../live/event-hub.ts";
import { eventFrame, eventLine } from "../live/event-lines.ts";
import { type Reply, type Route, type RouteCall, type RouteContext, route } from "../route.ts";
import { listOf } from "./events.ts";

const streamQuery = z.looseObject({
  channel: z.string().max(300).optional().meta({ description: '"job:<id>", "queue:<name>" or "all".' }),
  types: z.string().max(2_000).optional().meta({
    description:
      "Names, with commas. `job.*`: all of jobs. `job.state_changed` is sent only to readers that name it.",
  }),
  queues: z.string().max(10_000).optional(),
  queue: z.string().max(128).optional(),
  job_id: z.string().max(128).optional(),
  after: z.string().max(128).optional().meta({ description: "As the header Last-Event-ID." }),
});

/** The path says which job or which queue. */
const jobStreamQuery = streamQuery.omit({ channel: true, job_id: true });
const queueStreamQuery = streamQuery.omit({ channel: true, queue: true, queues: true });

type StreamCall = RouteCall<undefined, z.output<typeof streamQuery>>;

export const STREAM_REPLIES = { 503: "Too many event streams are open" };

function filterOf({ channel = "all", types, queues, queue, job_id }: StreamCall["query"]): EventFilter {
  const [kind, name] = channel.split(/:(.*)/s);
  if (!(kind === "all" || ((kind === "job" || kind === "queue") && name)))
    throw refusedField("channel", `${show(channel)} is not valid; use "job:<id>", "queue:<name>" or "all"`);
  const given = queues ?? queue;
  const other =
    kind === "queue" && given !== undefined ? "queue" : kind === "job" && job_id ? "job_id" : null;
  if (other !== null)
    throw refusedField("channel", `${show(channel)} contradicts ${other}; send one of them`);
  const job = kind === "job" ? name : job_id;
  const inQueues = kind === "queue" ? [name as string] : listOf(given);
  const ofTypes = listOf(types);
  return {
    ...(job !== undefined && { job }),
    ...(inQueues && { queues: inQueues }),
    ...(ofTypes && { types: ofTypes }),
  };
}

/** Readers with the same filter share one text. A type may have two names. */
function feedOf(filter: EventFilter): Feed {
  const asked = filter.types;
  const types = readTypes(asked);
  return {
    name: `events ${asked ?? ""}`,
    filter: { ...filter, ...(types && { types }) },
    frame: (event) =>
      wireEvents(event, asked)
        .map((fields) => eventFrame(fields, { id: event.cursor, name: fields.type }))
        .join(""),
  };
}

function stream(filter: EventFilter, { query, header }: StreamCall, { hub }: RouteContext): Reply {
  const after = header("last-event-id") ?? query.after;
  if (after != null && !isEventCursor(after))
    throw new HttpError(400, "invalid_request", "Last-Event-ID: not an id of this server; leave it out");
  return eventLine(hub, feedOf(filter), { after: after ?? undefined });
}

const streamBy = (
  path: string,
  summary: string,
  asked: z.ZodType,
  filter: (call: StreamCall) => EventFilter,
) =>
  route("GET", path, "read", {
    scope: "tenant",
    tag: "events",
    summary,
    query: asked,
    replies: {
      200: "Server-sent events, one for each event, with its cursor as the id",
      ...STREAM_REPLIES,
    },
    run: (call, context) => stream(filter(call as StreamCall), call as StreamCall, context),
  });

export const eventStreamRoutes: readonly Route[] = [
  streamBy("/ojs/v1/events/stream", "Follow all events", streamQuery, ({ query }) => filterOf(query)),
  streamBy("/ojs/v1/jobs/:id/events", "Follow one job", jobStreamQuery, ({ params, query }) =>
    filterOf({ ...query, channel: `job:${params.id}` }),
  ),
  streamBy("/ojs/v1/queues/:queue/events", "Follow one queue", queueStreamQuery, ({ params, query }) =>
    filterOf({ ...query, channel: `queue:${params.queue}` }),
  ),
];
