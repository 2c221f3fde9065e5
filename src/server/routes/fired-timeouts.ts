import type { JournalEvent } from "../../core/event/journal-event.ts";
import { isEventCursor } from "../../core/event/journal-event.ts";
import { TIMEOUT_EVENTS } from "../../core/event/stored-event.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { HttpError } from "../http-error.ts";
import { json, type Route, route } from "../route.ts";
import { firedTimeoutsReply } from "../wire/admin-replies.ts";
import { firedTimeoutsQuery } from "../wire/admin-schemas.ts";
import { placeOf } from "../wire/pages.ts";

/** The most events that a read of the newest ones looks at. */
const NEWEST = 5_000;
const MOST = 1_000;

function kindOf({ name, error }: JournalEvent): string | null {
  return name === "job.visibility_timeout" ? "visibility" : (error?.kind ?? null);
}

function fieldsOf(event: JournalEvent) {
  const { id, at, name, job, type, queue, attempt, elapsed, error, mode } = event;
  return {
    id,
    at: instantText(at),
    event: name,
    kind: kindOf(event),
    mode: mode ?? null,
    job_id: job ?? "",
    type: type ?? null,
    queue: queue ?? null,
    attempt: attempt ?? null,
    limit_ms: error?.limit ?? null,
    elapsed_ms: error?.elapsed ?? elapsed ?? null,
    forced: error?.forced === true,
  };
}

const list = route({
  method: "GET",
  path: "/ojs/v1/admin/timeouts-fired",
  right: "read",
  scope: "tenant",
  tag: "admin",
  summary: "Timeouts of jobs that fired: the newest, or after a cursor in the order of their commits",
  isShared: true,
  reply: firedTimeoutsReply,
  query: firedTimeoutsQuery,
  replies: {
    200: "A page out of the recorded events: the newest first among the last 5,000 events, or after a cursor, the oldest first, out of 10,000",
  },
  async run({ query }, { engine }) {
    const { kind, mode, queue, type } = query;
    const { page: number, perPage, cursor } = placeOf(query);
    if (cursor !== null && !isEventCursor(cursor))
      throw new HttpError(
        400,
        "invalid_request",
        "cursor: not a cursor of this server; leave it out to start over",
      );
    const isWanted = (event: JournalEvent) =>
      (kind === undefined || kindOf(event) === kind) &&
      (mode === undefined || event.mode === mode) &&
      (type === undefined || event.type === type);
    const { journal } = engine;
    const isNewest = cursor === null;
    const wanted = {
      types: TIMEOUT_EVENTS,
      ...(queue !== undefined && { queues: [queue] }),
      limit: isNewest ? MOST : perPage,
    };
    const page = isNewest ? await journal.latest(wanted) : await journal.read({ ...wanted, after: cursor });
    const fitting = page.events.filter(isWanted);
    const events = isNewest ? fitting.reverse().slice((number - 1) * perPage, number * perPage) : fitting;
    const hasMore = isNewest ? fitting.length > number * perPage : page.hasMore || page.isIncomplete;
    return json(200, {
      items: events.map(fieldsOf),
      is_recording: journal.isOn,
      scanned: page.scanned,
      is_complete: isNewest ? page.scanned < NEWEST && !hasMore : !page.hasMore && !page.isIncomplete,
      pagination: {
        ...(isNewest && { total: fitting.length, total_is_exact: page.scanned < NEWEST, page: number }),
        per_page: perPage,
        has_more: hasMore,
        next_cursor: page.cursor,
      },
    });
  },
});

export const firedTimeoutRoutes: readonly Route[] = [list];
