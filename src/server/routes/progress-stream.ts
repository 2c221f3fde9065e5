import type { JournalEvent } from "../../core/event/journal-event.ts";
import type { JobRow, JobState } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { instantText, noteFields } from "../../ojs/wire-fields.ts";
import { type Beginning, eventFrame, eventLine } from "../live/event-lines.ts";
import { type Route, route } from "../route.ts";
import { STREAM_REPLIES } from "./event-stream.ts";
import { loadJob } from "./job-actions.ts";
import { progressFields } from "./notes.ts";

/** The final events, by the names in the specification of progress. */
const ENDS: Readonly<Record<string, readonly [state: JobState, name: string]>> = {
  "job.completed": ["completed", "completed"],
  "job.discarded": ["discarded", "failed"],
  "job.cancelled": ["cancelled", "cancelled"],
};

/** The specification names the event, but the public admin page reads only events without a name: both are sent. */
function progressText(fields: object, id?: string): string {
  return eventFrame(fields) + eventFrame(fields, { name: "progress", ...(id !== undefined && { id }) });
}

function frame(event: JournalEvent): string {
  const { name, at, job, cursor, progress } = event;
  const end = ENDS[name];
  if (!end) {
    const note = noteFields(progress?.note);
    const value = progress?.value ?? null;
    return progressText(
      { job_id: job, state: "active", progress: value, ...note, updated_at: instantText(at) },
      cursor,
    );
  }
  const [state, kind] = end;
  const isDone = state === "completed";
  const fields = { job_id: job, state, ...(isDone && { progress: 1 }), updated_at: instantText(at) };
  return (isDone ? eventFrame(fields) : "") + eventFrame(fields, { name: kind, id: cursor });
}

/** The progress of the job when a reader connects. */
function beginning(row: JobRow): Beginning {
  const fields = { job_id: row.id, state: row.state, ...progressFields(row) };
  if (!isTerminal(row.state)) return { text: progressText(fields), isLast: false };
  const kind = Object.values(ENDS).find(([state]) => state === row.state)?.[1] as string;
  return { text: eventFrame(fields) + eventFrame(fields, { name: kind, id: "0" }), isLast: true };
}

const progressStream = route("GET", "/ojs/v1/jobs/:id/progress/stream", "read", {
  scope: "tenant",
  tag: "events",
  summary: "Follow the progress of one job to its end",
  replies: {
    200: "Server-sent events `progress`, then `completed`, `failed` or `cancelled`, and the end of the line",
    204: "The job has ended, and this reader has seen its end",
    404: "There is no such job",
    ...STREAM_REPLIES,
  },
  async run({ params, header }, context) {
    const row = await loadJob(params.id ?? "", context);
    // Browsers reconnect until they get a 204.
    if (isTerminal(row.state) && header("last-event-id") !== null) return { status: 204, text: null };
    const feed = {
      name: "progress",
      filter: { job: row.id, types: ["job.progress", ...Object.keys(ENDS)] },
      frame,
      isLast: ({ name }: JournalEvent) => name in ENDS,
    };
    return eventLine(context.hub, feed, { begin: async () => beginning(await loadJob(row.id, context)) });
  },
});

export const progressStreamRoutes: readonly Route[] = [progressStream];
