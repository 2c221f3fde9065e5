import { type JournalEvent, journalEvent } from "../../core/event/journal-event.ts";
import type { JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import type { EventPage, Inspector } from "../../ports/store.ts";

/** How far around an instant of the job: its events are committed a little later, by clocks that differ a little. */
export const MARGIN = 500;
/** Events that are read around the instants of a job, in pages of this many. */
const MOST_AROUND = 20_000;
const PAGE = 500;

type Read = Pick<Inspector, "events">;

/** Where the newest events begin, which were looked at already. */
interface Beginning {
  readonly cursor: string;
  readonly at: Instant;
}

/**
 * Older events of one job. The journal has no index by job, which would cost a write per event, but it is in the order of
 * time: a search by halves finds where an instant is. So events are read around each instant that the job itself remembers:
 * its creation, its starts as far as they are known, its errors and its end.
 */
export async function eventsAround(
  inspect: Read,
  row: JobRow,
  newest: Beginning,
): Promise<{ readonly events: JournalEvent[]; readonly scanned: number }> {
  const found = new Map<string, JournalEvent>();
  let scanned = 0;
  let reach: { readonly until: Instant; readonly cursor: string | null } | undefined;
  for (const at of instantsOf(row).filter((instant) => instant - MARGIN < newest.at)) {
    if (scanned >= MOST_AROUND) break;
    if (reach && at + MARGIN <= reach.until) continue;
    const isOn = reach !== undefined && at - MARGIN <= reach.until;
    const start = isOn && reach ? reach.cursor : await cursorAt(inspect, at - MARGIN, newest.cursor);
    const until = Math.min(at + MARGIN, newest.at);
    const read = await readUntil(inspect, start, until, MOST_AROUND - scanned);
    for (const event of read.events) if (event.job === row.id) found.set(event.cursor, event);
    scanned += read.events.length;
    reach = read;
  }
  return { events: [...found.values()], scanned };
}

/** The instants at which something happened to a job, as far as it remembers them, the oldest first. */
function instantsOf({ createdAt, startedAt, finishedAt, errors }: JobRow): Instant[] {
  const ends = (errors ?? []).flatMap(({ at, elapsed }) =>
    elapsed === undefined ? [at] : [at - elapsed, at],
  );
  const known = [createdAt, startedAt, finishedAt, ...ends].filter((at) => at !== null);
  return [...new Set(known)].sort((a, b) => a - b);
}

async function readUntil(inspect: Read, after: string | null, until: Instant, most: number) {
  const events: JournalEvent[] = [];
  let cursor = after;
  while (events.length < most) {
    const page = await inspect.events(cursor, PAGE);
    events.push(...eventsOf(page));
    cursor = page.cursor;
    const last = events.at(-1);
    if (page.events.length < PAGE || (last && last.at > until)) break;
  }
  return { events, cursor, until: Math.min(until, events.at(-1)?.at ?? until) };
}

/** A cursor shortly before the first event at or after an instant; null for the oldest one. */
async function cursorAt(inspect: Read, at: Instant, last: string): Promise<string | null> {
  const [oldest] = (await inspect.events(null, 1)).cursors;
  if (oldest === undefined) return null;
  const [low, high] = [partsOf(oldest), partsOf(last)];
  const place = low.findIndex((part, index) => part !== high[index]);
  // Cursors of another form, or of one commit: there is nothing to halve.
  if (place < 0 || low.length !== high.length) return null;
  const cursorOf = (part: bigint) =>
    [...low.slice(0, place), part, ...low.slice(place + 1).map(() => 0n)].join(".");
  let [before, after] = [low[place] as bigint, high[place] as bigint];
  while (after - before > 1n) {
    const middle = (before + after) / 2n;
    const [first] = eventsOf(await inspect.events(cursorOf(middle), 1));
    if (first && first.at < at) before = middle;
    else after = middle;
  }
  return before === low[place] ? null : cursorOf(before);
}

/** The numbers of a cursor, without the number of the event in its commit. */
function partsOf(cursor: string): bigint[] {
  return (cursor.split("-")[0] as string).split(".").map(BigInt);
}

/** The events of a stored page that this version knows. */
export function eventsOf({ events, cursors }: EventPage): JournalEvent[] {
  return events.flatMap((body, index) => journalEvent(body, cursors[index] as string) ?? []);
}
