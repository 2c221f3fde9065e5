import { z } from "zod";
import type { JournalEvent } from "../../core/event/journal-event.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { eventFrame, eventLine } from "../live/event-lines.ts";
import { type Route, type RouteContext, route } from "../route.ts";
import { queueName } from "../wire/schemas.ts";
import { workerState } from "./admin-workers.ts";
import { STREAM_REPLIES } from "./event-stream.ts";
import { listOf } from "./events.ts";

/** The window of the throughput figures. */
const LATELY = "1m";
const MOST_QUEUES = 500;
const MOST_WORKERS = 200;

const rate = (count: number, span: number) => Math.round((count / Math.max(1, span)) * 100_000) / 100;

/** A snapshot of figures that are counted anyway, under the names that the public admin page reads. */
async function metrics({ engine, service }: RouteContext): Promise<string> {
  const now = engine.now();
  const [stats, workers, oldest] = await Promise.all([
    engine.stats({ since: LATELY, by: "queue" }),
    service.workers.list(),
    engine.queues.oldestWaits(),
  ]);
  const { completed, failed, enqueued } = stats.total;
  const span = stats.until - stats.since;
  const queues = stats.groups.slice(0, MOST_QUEUES).map(({ queue, depth }) => ({ queue, ...depth }));
  const active = workers.slice(0, MOST_WORKERS).map((worker) => ({
    id: worker.id,
    state: workerState(worker, now),
    activeJobs: worker.running,
    lastHeartbeatAt: instantText(worker.seenAt),
  }));
  const fields = {
    timestamp: instantText(now),
    queues,
    oldest_wait_ms:
      oldest.queues.length === 0 ? null : now - Math.min(...oldest.queues.map(({ since }) => since)),
    throughput: {
      processed_per_second: rate(completed + failed, span),
      failed_per_second: rate(failed, span),
      enqueued_per_second: rate(enqueued, span),
    },
    workers: { total: workers.length, active },
    error_rate: completed + failed === 0 ? 0 : (failed / (completed + failed)) * 100,
  };
  return eventFrame(fields, { name: "metrics" });
}

/** An event as one flat object. `type` is the job's type; the frame has the event's name. */
function frame(event: JournalEvent): string {
  const { name, at, cursor, job, type, queue, attempt, elapsed, error } = event;
  const fields = {
    event: name,
    timestamp: instantText(at),
    ...(job !== undefined && { job_id: job, type, job_type: type, attempt }),
    ...(queue !== undefined && { queue }),
    ...(elapsed !== undefined && { duration: elapsed, duration_ms: elapsed }),
    ...(error && { error: error.message }),
  };
  return eventFrame(fields, { name, id: cursor });
}

const statsQuery = z.looseObject({
  queue: queueName
    .optional()
    .meta({ description: "Only events of this queue; the figures are those of all." }),
  types: z.string().max(2_000).optional().meta({
    description: 'Only events of these types, such as "queue.*,worker.*"; "none" for the figures alone.',
  }),
});

const stream = route("GET", "/ojs/v1/admin/stats/stream", "read", {
  scope: "tenant",
  tag: "admin",
  summary: "Follow the counts of jobs, and their events",
  query: statsQuery,
  replies: {
    200: "Server-sent events: `metrics` every three seconds, and each event of a job, queue or worker",
    ...STREAM_REPLIES,
  },
  run: ({ query: { queue, types } }, context) =>
    eventLine(context.hub, {
      name: "stats",
      filter: {
        types: types === "none" ? [] : (listOf(types) ?? ["job.*", "queue.*", "worker.*"]),
        ...(queue !== undefined && { queues: [queue] }),
      },
      frame,
      snapshot: () => metrics(context),
    }),
});

export const statsStreamRoutes: readonly Route[] = [stream];
