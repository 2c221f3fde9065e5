import { type NewEvent, wholeEvent } from "../../core/event/new-event.ts";
import type { Json } from "../../core/schema.ts";
import type { EventPage } from "../../ports/store.ts";

/**
 * All events of one commit in one row: a row each would cost more than their jobs. The body is
 * `{"heads":[…],"items":[[0,{…}],[1],…]}`. An object that events share is written once, and each item names it by
 * its index.
 */
export interface PackedEvents {
  /** The JSON text of the list of shared objects. */
  readonly shared: string;
  /** The JSON text of each event's item. */
  readonly items: readonly string[];
}

export function packEvents(events: readonly NewEvent[]): PackedEvents {
  const shared: string[] = [];
  const numbers = new Map<Json, number>();
  const items = events.map(({ event, of }) => {
    let number = numbers.get(event);
    if (number === undefined) {
      number = shared.length;
      numbers.set(event, number);
      shared.push(JSON.stringify(event));
    }
    return of === undefined ? `[${number}]` : `[${number},${JSON.stringify(of)}]`;
  });
  return { shared: `[${shared.join(",")}]`, items };
}

export function eventRow(events: readonly NewEvent[]): string {
  const { shared, items } = packEvents(events);
  return `{"heads":${shared},"items":[${items.join(",")}]}`;
}

/** The events of a row. A row from before events were packed is one event. */
function unpackEvents(body: string): readonly Json[] {
  const row = JSON.parse(body) as Json;
  if (typeof row !== "object" || row === null || !("items" in row)) return [row];
  const { heads: shared, items } = row as unknown as { heads: Json[]; items: [number, NewEvent["of"]?][] };
  return items.map(([number, of]) => {
    const event = shared[number] as Json;
    return wholeEvent(of === undefined ? { event } : { event, of });
  });
}

/** A row of events, and its position in the store. */
export interface EventRow {
  readonly position: string;
  readonly body: string;
}

/**
 * Separates the position of a row from the number of its events that were read. A row that was read to its end has no
 * number.
 */
const PART = "-";

/** The row position in a cursor, and how many events of that row were read; 0 if all of them were. */
export function splitCursor(after: string): { readonly position: string; readonly skip: number } {
  const [position = "", skip = "0"] = after.split(PART);
  return { position, skip: Number(skip) };
}

/** Rows are read a few at a time, then more: the number of events in a row is unknown. */
export const FIRST_ROWS = 8;
const MOST_ROWS = 128;

export function moreRows(rows: number): number {
  return Math.min(2 * rows, MOST_ROWS);
}

/** Collects the events of rows until the page is full. */
export class PageBuilder {
  readonly #events: Json[] = [];
  readonly #cursors: string[] = [];
  readonly #after: string | null;
  readonly #limit: number;
  readonly #before: string | undefined;

  /** `before` is for rows in reverse order: the event with this cursor and those after it are left out. */
  constructor(after: string | null, limit: number, before?: string) {
    this.#after = after;
    this.#limit = limit;
    this.#before = before;
  }

  get isFull(): boolean {
    return this.#events.length >= this.#limit;
  }

  /** Adds the next row in the order of the store. */
  add({ position, body }: EventRow): void {
    const from = splitCursor(this.#after ?? "");
    const events = unpackEvents(body);
    for (
      let index = position === from.position ? from.skip : 0;
      index < events.length && !this.isFull;
      index++
    ) {
      this.#events.push(events[index] as Json);
      this.#cursors.push(cursorOf(position, index, events.length));
    }
  }

  /** Adds the next row in reverse order, for the newest events. */
  addBefore({ position, body }: EventRow): void {
    const events = unpackEvents(body);
    const { position: last, skip } = splitCursor(this.#before ?? "");
    const count = position === last ? (skip || events.length) - 1 : events.length;
    for (let index = count - 1; index >= 0 && !this.isFull; index--) {
      this.#events.push(events[index] as Json);
      this.#cursors.push(cursorOf(position, index, events.length));
    }
  }

  page(isIncomplete = false): EventPage {
    const cursor = this.#cursors.at(-1) ?? this.#after;
    return {
      events: this.#events,
      cursors: this.#cursors,
      cursor,
      ...(isIncomplete && { isIncomplete }),
    };
  }

  /** The page of rows that were added in reverse order. */
  reversed(isIncomplete = false): EventPage {
    this.#events.reverse();
    this.#cursors.reverse();
    return this.page(isIncomplete);
  }
}

function cursorOf(position: string, index: number, count: number): string {
  return index + 1 === count ? position : `${position}${PART}${index + 1}`;
}
