import { type NewEvent, wholeEvent } from "../../core/event/new-event.ts";
import type { Json } from "../../core/schema.ts";
import type { EventPage } from "../../ports/store.ts";

/**
 * All events of one commit are one row, because a row each would cost more than the jobs they tell of. Its body is
 * `{"heads":[…],"items":[[0,{…}],[1],…]}`: what events share is written once, and each item names its head by number.
 */
export interface PackedEvents {
  /** The JSON text of the heads. */
  readonly heads: string;
  /** The JSON text of each event's item. */
  readonly items: readonly string[];
}

export function packEvents(events: readonly NewEvent[]): PackedEvents {
  const heads: string[] = [];
  const numbers = new Map<Json, number>();
  const items = events.map(({ event, of }) => {
    let number = numbers.get(event);
    if (number === undefined) {
      number = heads.length;
      numbers.set(event, number);
      heads.push(JSON.stringify(event));
    }
    return of === undefined ? `[${number}]` : `[${number},${JSON.stringify(of)}]`;
  });
  return { heads: `[${heads.join(",")}]`, items };
}

export function eventRow(events: readonly NewEvent[]): string {
  const { heads, items } = packEvents(events);
  return `{"heads":${heads},"items":[${items.join(",")}]}`;
}

/** The events of a row. One from before events were packed is an event by itself. */
function unpackEvents(body: string): readonly Json[] {
  const row = JSON.parse(body) as Json;
  if (typeof row !== "object" || row === null || !("items" in row)) return [row];
  const { heads, items } = row as unknown as { heads: Json[]; items: [number, NewEvent["of"]?][] };
  return items.map(([number, of]) => {
    const event = heads[number] as Json;
    return wholeEvent(of === undefined ? { event } : { event, of });
  });
}

/** A row of events, and its place in the order of the store. */
export interface EventRow {
  readonly place: string;
  readonly body: string;
}

/** Between the place of a row and how many of its events were read; a row that was read to its end needs no number. */
const PART = "-";

/** A cursor as the place of a row, and how many of the events at that place were read: none if all of them were. */
export function splitCursor(after: string): { readonly place: string; readonly skip: number } {
  const [place = "", skip = "0"] = after.split(PART);
  return { place, skip: Number(skip) };
}

/** Rows are read a few at a time, ever more: nobody knows how many events one holds. */
export const FIRST_ROWS = 8;
const MOST_ROWS = 128;

export function moreRows(rows: number): number {
  return Math.min(2 * rows, MOST_ROWS);
}

/** Gathers the events of rows until there are enough. */
export class PageBuilder {
  readonly #events: Json[] = [];
  readonly #cursors: string[] = [];
  readonly #after: string | null;
  readonly #limit: number;

  constructor(after: string | null, limit: number) {
    this.#after = after;
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#events.length >= this.#limit;
  }

  /** Adds a row that comes after those before it. */
  add({ place, body }: EventRow): void {
    const from = splitCursor(this.#after ?? "");
    const events = unpackEvents(body);
    for (let index = place === from.place ? from.skip : 0; index < events.length && !this.isFull; index++) {
      this.#events.push(events[index] as Json);
      this.#cursors.push(cursorOf(place, index, events.length));
    }
  }

  /** Adds a row that comes before those before it: for the newest events. */
  addBefore({ place, body }: EventRow): void {
    const events = unpackEvents(body);
    for (let index = events.length - 1; index >= 0 && !this.isFull; index--) {
      this.#events.push(events[index] as Json);
      this.#cursors.push(cursorOf(place, index, events.length));
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

  /** The page of rows that were given newest first. */
  reversed(isIncomplete = false): EventPage {
    this.#events.reverse();
    this.#cursors.reverse();
    return this.page(isIncomplete);
  }
}

function cursorOf(place: string, index: number, count: number): string {
  return index + 1 === count ? place : `${place}${PART}${index + 1}`;
}
