import type { Json } from "../schema.ts";
import { eventId } from "./event-id.ts";
import { isKeptEvent, type StoredEvent } from "./stored-event.ts";

/** An event as it is read from the stream. */
export interface JournalEvent extends StoredEvent {
  /** `evt_` and a UUIDv7. It is the same whenever the event is read. */
  readonly id: string;
  /** Reading goes on behind this event with `after: cursor`. */
  readonly cursor: string;
}

/** What is wanted of the stream; what is left out does not matter. */
export interface EventFilter {
  /** Names of events; `job.*` stands for all that begin so. */
  readonly types?: readonly string[];
  readonly queues?: readonly string[];
  /** The id of a job. */
  readonly job?: string;
}

export function journalEvent(body: Json, cursor: string): JournalEvent | null {
  const event: unknown = body;
  if (!isKeptEvent(event)) return null;
  return { ...event, id: eventId(event.at, cursor), cursor };
}

export function fitsFilter(event: StoredEvent, { types, queues, job }: EventFilter): boolean {
  if (job !== undefined && event.job !== job) return false;
  if (queues && !(event.queue !== undefined && queues.includes(event.queue))) return false;
  return !types || types.some((type) => isOfType(event.name, type));
}

function isOfType(name: string, type: string): boolean {
  return type.endsWith(".*") ? name.startsWith(type.slice(0, -1)) : name === type;
}

/** As many digits as every store can count to. */
const CURSOR = /^\d{1,18}(\.\d{1,18})?(-\d{1,6})?$/;

/** Whether a text can be a cursor: a store is never asked with anything else. */
export function isEventCursor(text: unknown): text is string {
  return typeof text === "string" && CURSOR.test(text);
}
