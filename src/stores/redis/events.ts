import type { EventPage } from "../../ports/store.ts";
import { type EventRow, FIRST_ROWS, moreRows, PageBuilder, splitCursor } from "../sql/event-pack.ts";
import { type Home, ITEMS_PER_CALL } from "./home.ts";

/*
 * A row of events is an entry of a stream, and its id consists of the server's time and a number. A cursor has a dot between
 * them, because a dash separates the number of events that were read of a row.
 */

const positionOf = (id: string): string => id.replace("-", ".");
/** A third number is one of another store: no server would take it. */
const idOf = (position: string): string => {
  const [time, number = "0"] = position.split(".");
  return `${time}-${number}`;
};

async function readRows(
  home: Home,
  from: string | null,
  count: number,
  isNewest: boolean,
): Promise<EventRow[]> {
  const answer = (await home.call("readEvents", [from, count, isNewest])).read() as string[];
  const rows: EventRow[] = [];
  for (let at = 0; at < answer.length; at += 2)
    rows.push({ position: positionOf(answer[at] as string), body: answer[at + 1] as string });
  return rows;
}

export async function readEvents(home: Home, after: string | null, limit: number): Promise<EventPage> {
  const page = new PageBuilder(after, limit);
  const { position, skip } = splitCursor(after ?? "0");
  // A row that was read in part comes again.
  let from = `${skip > 0 ? "" : "("}${idOf(position)}`;
  for (let count = FIRST_ROWS; !page.isFull; count = Math.min(moreRows(count), ITEMS_PER_CALL)) {
    const rows = await readRows(home, from, count, false);
    for (const row of rows) page.add(row);
    if (rows.length < count) break;
    from = `(${idOf((rows.at(-1) as EventRow).position)}`;
  }
  return page.page();
}

export async function readLatest(home: Home, limit: number, before?: string): Promise<EventPage> {
  const page = new PageBuilder(null, limit, before);
  // The row of the cursor is read again: events of its commit may be before it.
  let from: string | null = before === undefined ? null : idOf(splitCursor(before).position);
  for (let count = FIRST_ROWS; !page.isFull; count = Math.min(moreRows(count), ITEMS_PER_CALL)) {
    const rows: EventRow[] = await readRows(home, from, count, true);
    for (const row of rows) page.addBefore(row);
    if (rows.length < count) break;
    from = `(${idOf((rows.at(-1) as EventRow).position)}`;
  }
  return page.reversed();
}
