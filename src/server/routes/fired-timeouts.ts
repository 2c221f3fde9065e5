import { show } from "../../core/errors.ts";
import { type EventFilter, isEventCursor, type JournalEvent } from "../../core/event/journal-event.ts";
import { TIMEOUT_EVENTS } from "../../core/event/stored-event.ts";
import type { Engine } from "../../engine/engine.ts";
import type { LatestPage } from "../../engine/events/event-journal.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { refusedField } from "../http/http-error.ts";
import { json, type Route, route } from "../route.ts";
import { firedTimeoutsReply } from "../wire/admin-replies.ts";
import { firedTimeoutsQuery } from "../wire/admin-schemas.ts";
import { pageRequestOf } from "../wire/pages.ts";

const MOST = 1_000;
/** Events that a look further back reads. The newest page reads 5,000, since open tabs repeat it. */
const MOST_SCANNED = 50_000;

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

const list = route("GET", "/ojs/v1/admin/timeouts-fired", "read", {
  scope: "tenant",
  tag: "admin",
  summary: "Timeouts of jobs that fired: the newest, or after a cursor in the order of their commits",
  isShared: true,
  reply: firedTimeoutsReply,
  query: firedTimeoutsQuery,
  replies: {
    200: "A page out of the recorded events: the newest first among the last 5,000 events, or before a cursor among 50,000; or after a cursor, the oldest first, out of 10,000",
  },
  async run({ query }, { engine }) {
    const { kind, mode, queue, type } = query;
    const { page, perPage, cursor } = pageRequestOf(query);
    const before = query.before ?? null;
    for (const [field, text] of Object.entries({ cursor, before }))
      if (text !== null && !isEventCursor(text))
        throw refusedField(field, `${show(text)} is not a cursor of this server; leave it out to start over`);
    const isWanted = (event: JournalEvent) =>
      (kind === undefined || kindOf(event) === kind) &&
      (mode === undefined || event.mode === mode) &&
      (type === undefined || event.type === type);
    const filter = { types: TIMEOUT_EVENTS, ...(queue !== undefined && { queues: [queue] }) };
    const search = { journal: engine.journal, filter, isWanted, perPage };
    const found =
      cursor !== null
        ? await firedAfter(search, cursor)
        : before !== null
          ? await firedBefore(search, before)
          : await newestFired(search, page);
    const { events, pagination, ...fields } = found;
    return json(200, {
      items: events.map(fieldsOf),
      is_recording: engine.journal.isOn,
      ...fields,
      pagination: { per_page: perPage, ...pagination },
    });
  },
});

interface Search {
  readonly journal: Engine["journal"];
  readonly filter: EventFilter;
  readonly isWanted: (event: JournalEvent) => boolean;
  readonly perPage: number;
}

const instantOf = (at: number | null) => (at === null ? null : instantText(at));

/** A page of those among the newest events, the newest first. */
async function newestFired({ journal, filter, isWanted, perPage }: Search, page: number) {
  const { scanned, before, from, cursor, ...read } = await journal.latest({ ...filter, limit: MOST });
  const fitting = read.events.filter(isWanted).reverse();
  const hasMore = fitting.length > page * perPage;
  return {
    events: fitting.slice((page - 1) * perPage, page * perPage),
    scanned,
    is_complete: before === null && !hasMore,
    searched_from: instantOf(from),
    before: hasMore ? null : before,
    pagination: {
      total: fitting.length,
      total_is_exact: before === null,
      page,
      has_more: hasMore,
      next_cursor: cursor,
    },
  };
}

/** Those before a cursor, the newest first: until there is a page of them, or enough events were read for one request. */
async function firedBefore({ journal, filter, isWanted, perPage }: Search, start: string) {
  const events: JournalEvent[] = [];
  let [before, from, scanned]: [string | null, number | null, number] = [start, null, 0];
  while (before !== null && events.length < perPage && scanned < MOST_SCANNED) {
    const page: LatestPage = await journal.latest({ ...filter, limit: MOST, before });
    events.push(...page.events.filter(isWanted).reverse());
    scanned += Math.max(page.scanned, 1);
    from = page.from ?? from;
    before = page.before;
  }
  const shown = events.slice(0, perPage);
  const last = shown.at(-1);
  if (events.length > perPage && last) [before, from] = [last.cursor, last.at];
  return {
    events: shown,
    scanned,
    is_complete: before === null,
    searched_from: instantOf(from),
    before,
    pagination: { has_more: false, next_cursor: null },
  };
}

/** Those after a cursor, the oldest first. */
async function firedAfter({ journal, filter, isWanted, perPage }: Search, after: string) {
  const page = await journal.read({ ...filter, limit: perPage, after });
  const hasMore = page.hasMore || page.isIncomplete;
  return {
    events: page.events.filter(isWanted),
    scanned: page.scanned,
    is_complete: !hasMore,
    pagination: { has_more: hasMore, next_cursor: page.cursor },
  };
}

export const firedTimeoutRoutes: readonly Route[] = [list];
