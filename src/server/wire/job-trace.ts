import { z } from "zod";
import type { JournalEvent } from "../../core/event/journal-event.ts";
import { waitsForLimit } from "../../core/job/decide/decision.ts";
import { visibleRow } from "../../core/job/documents/redaction.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { JournalPage } from "../../engine/events/event-journal.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { instant } from "./replies.ts";

const STATUSES = ["ok", "error", "cancelled", "returned", "running"] as const;
type Status = (typeof STATUSES)[number];

const span = z.looseObject({
  name: z.string(),
  kind: z.enum(["PRODUCER", "CONSUMER"]),
  status: z.enum(STATUSES).meta({ description: "returned: given back or snoozed, so it is not spent." }),
  started_at: instant.nullable().meta({ description: "Null: the event of its start is no longer there." }),
  ended_at: instant.nullable(),
  duration_ms: z.number().nullable(),
  attempt: z.int().optional(),
  worker_id: z.string().optional(),
  error_code: z.string().optional(),
});

export const traceReply = z
  .looseObject({
    job_id: z.string(),
    trace_id: z.string().nullable().meta({ description: "From meta.traceparent." }),
    traceparent: z.string().nullable(),
    spans: z.array(span),
    events: z.array(z.looseObject({ type: z.string(), time: instant, attempt: z.int().optional() })),
    is_complete: z.boolean().meta({ description: "False: earlier events are not recorded, or no longer." }),
  })
  .meta({ id: "JobTrace" });

interface Span {
  readonly status: Status;
  readonly startedAt: Instant | null;
  readonly endedAt: Instant | null;
  readonly attempt?: number | undefined;
  readonly worker?: string | undefined;
  readonly code?: string | undefined;
}

/** Events that end an attempt. A timeout is followed by one of them. */
const ENDS: Readonly<Record<string, Status>> = {
  "job.completed": "ok",
  "job.failed": "error",
  "job.discarded": "error",
  "job.visibility_timeout": "error",
  "job.cancelled": "cancelled",
  "job.released": "returned",
  "job.snoozed": "returned",
};

function attemptsOf(events: readonly JournalEvent[]): Span[] {
  const spans: Span[] = [];
  for (const { name, at, attempt, worker, error } of events) {
    if (name === "job.started")
      spans.push({ status: "running", startedAt: at, endedAt: null, attempt, worker });
    const status = ENDS[name];
    const last = spans.at(-1);
    if (status !== undefined && last?.endedAt === null)
      spans[spans.length - 1] = { ...last, status, endedAt: at, code: error?.code };
  }
  return spans;
}

/** Attempts whose events were not recorded or are gone: their errors stay on the job. */
function attemptsOfErrors({ errors }: JobRow, known: readonly Span[]): Span[] {
  const seen = new Set(known.map(({ attempt }) => attempt));
  return (errors ?? [])
    .filter(({ attempt }) => attempt > 0 && !seen.has(attempt))
    .map(({ attempt, at, code }) => ({ status: "error", startedAt: null, endedAt: at, attempt, code }));
}

const at = (value: Instant | null) => (value === null ? null : instantText(value));

function spanFields(name: string, kind: "PRODUCER" | "CONSUMER", each: Span) {
  const { status, startedAt, endedAt, attempt, worker, code } = each;
  return {
    name,
    kind,
    status,
    started_at: at(startedAt),
    ended_at: at(endedAt),
    duration_ms: startedAt === null || endedAt === null ? null : endedAt - startedAt,
    ...(attempt !== undefined && { attempt }),
    ...(worker !== undefined && { worker_id: worker }),
    ...(code !== undefined && { error_code: code }),
  };
}

const BEGINNINGS: ReadonlySet<string> = new Set(["job.enqueued", "job.scheduled"]);
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The spans of a job by the names of the specification. Messages and payloads are not part of it. */
export function traceFields(row: JobRow, { events, isIncomplete }: JournalPage) {
  const parent = visibleRow(row).options?.meta?.traceparent;
  const [traceparent, traceId] = (typeof parent === "string" && TRACEPARENT.exec(parent)) || [null, null];
  const recorded = attemptsOf(events);
  const attempts = [...attemptsOfErrors(row, recorded), ...recorded];
  const { id, type, queue, state, attempt, createdAt } = row;
  const enqueue: Span = { status: "ok", startedAt: createdAt, endedAt: createdAt };
  return {
    job_id: id,
    type,
    queue,
    state: waitsForLimit(row) ? "available" : state,
    attempt,
    trace_id: traceId,
    traceparent,
    spans: [
      spanFields(`${queue} enqueue`, "PRODUCER", enqueue),
      ...attempts.map((each) => spanFields(`${queue} process`, "CONSUMER", each)),
    ],
    events: events.map(({ name, at, attempt }) => ({
      type: name,
      time: instantText(at),
      ...(attempt !== undefined && { attempt }),
    })),
    is_complete: !isIncomplete && BEGINNINGS.has(events[0]?.name ?? ""),
  };
}
