import { z } from "zod";
import { type EventFilter, isEventCursor } from "../../core/event/journal-event.ts";
import { HttpError } from "../errors.ts";
import { type Reply, type Route, type RouteCall, type RouteContext, route } from "../route.ts";
import { listOf } from "./events.ts";

const streamQuery = z.looseObject({
  channel: z.string().max(300).optional().meta({ description: '"job:<id>", "queue:<name>" or "all".' }),
  types: z.string().max(2_000).optional(),
  queues: z.string().max(10_000).optional(),
  job_id: z.string().max(128).optional(),
  after: z.string().max(128).optional().meta({ description: "As the header Last-Event-ID." }),
});

type StreamCall = RouteCall<undefined, z.output<typeof streamQuery>>;

/** So many bytes may wait for a reader; one that leaves more unread is let go, and comes back where it was. */
const MOST_UNREAD = 2_000_000;
const HELLO = new TextEncoder().encode("retry: 2000\n: connected\n\n");
const HEADERS = {
  "Content-Type": "text/event-stream",
  "Cache-Control": "no-cache, no-transform",
  "X-Accel-Buffering": "no",
};

function filterOf({ channel = "all", types, queues, job_id }: StreamCall["query"]): EventFilter {
  const [kind, name] = channel.split(/:(.*)/s);
  if (!(kind === "all" || ((kind === "job" || kind === "queue") && name)))
    throw new HttpError(400, "invalid_request", 'channel: use "job:<id>", "queue:<name>" or "all"');
  const job = kind === "job" ? name : job_id;
  const inQueues = kind === "queue" ? [name as string] : listOf(queues);
  const ofTypes = listOf(types);
  return {
    ...(job !== undefined && { job }),
    ...(inQueues && { queues: inQueues }),
    ...(ofTypes && { types: ofTypes }),
  };
}

function stream(filter: EventFilter, { query, header }: StreamCall, { hub }: RouteContext): Reply {
  const after = header("last-event-id") ?? query.after;
  if (after != null && !isEventCursor(after))
    throw new HttpError(400, "invalid_request", "Last-Event-ID: it is no id of ours; leave it out");
  if (hub.isFull)
    throw new HttpError(503, "backend_error", "Too many read along, or the server closes; try again later", {
      retryable: true,
      headers: { "Retry-After": "5" },
    });
  let leave = () => {};
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(HELLO);
        let isOver = false;
        const reader = {
          push(bytes: Uint8Array) {
            if (isOver || (controller.desiredSize ?? 0) < 0) return false;
            controller.enqueue(bytes);
            return true;
          },
          end() {
            if (!isOver) controller.close();
            isOver = true;
          },
        };
        const off = hub.subscribe(filter, after ?? undefined, reader);
        leave = () => {
          isOver = true;
          off();
        };
      },
      cancel: () => leave(),
    },
    { highWaterMark: MOST_UNREAD, size: (chunk) => chunk.byteLength },
  );
  return { status: 200, text: null, body, headers: HEADERS };
}

const streamBy = (path: string, summary: string, filter: (call: StreamCall) => EventFilter) =>
  route({
    method: "GET",
    path,
    right: "read",
    tag: "events",
    summary,
    query: streamQuery,
    replies: {
      200: "Server-sent events, one for each event, with its cursor as the id",
      503: "Too many read along",
    },
    run: (call, context) => stream(filter(call as StreamCall), call as StreamCall, context),
  });

export const eventStreamRoutes: readonly Route[] = [
  streamBy("/ojs/v1/events/stream", "Follow what happens", ({ query }) => filterOf(query)),
  streamBy("/ojs/v1/jobs/:id/events", "Follow one job", ({ params, query }) =>
    filterOf({ ...query, channel: `job:${params.id}` }),
  ),
  streamBy("/ojs/v1/jobs/:id/progress/stream", "Follow the progress of one job", ({ params }) =>
    filterOf({
      channel: `job:${params.id}`,
      types: "job.progress,job.completed,job.discarded,job.cancelled",
    }),
  ),
  streamBy("/ojs/v1/queues/:queue/events", "Follow one queue", ({ params, query }) =>
    filterOf({ ...query, channel: `queue:${params.queue}` }),
  ),
];
