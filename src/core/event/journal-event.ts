import type { Json } from "../schema.ts";
import { eventId } from "./event-id.ts";
import { isStoredEvent, type StoredEvent } from "./stored-event.ts";

/** An event as it is read from the journal. */
export interface JournalEvent extends StoredEvent {
  /** `evt_` and a UUIDv7. Every read gives the same id. */
  readonly id: string;
  /** Pass it as `after` to continue after this event. */
  readonly cursor: string;
}

/** Which events to read. A field that is left out matches all. */
export interface EventFilter {
  /** Names of events. `job.*` matches all that begin with `job.`. */
  readonly types?: readonly string[];
  readonly queues?: readonly string[];
  /** The id of a job. */
  readonly job?: string;
  /** The type and the correlation value of a saga: its events alone. */
  readonly saga?: { readonly type: string; readonly id: string };
}

export function journalEvent(body: Json, cursor: string): JournalEvent | null {
  const event: unknown = body;
  if (!isStoredEvent(event)) return null;
  return { ...event, id: eventId(event.at, cursor), cursor };
}

export function fitsFilter(event: StoredEvent, { types, queues, job, saga }: EventFilter): boolean {
  if (job !== undefined && event.job !== job) return false;
  if (saga !== undefined && !isOfSaga(event, saga)) return false;
  if (queues && !(event.queue !== undefined && queues.includes(event.queue))) return false;
  return !types || types.some((type) => isOfType(event.name, type));
}

function isOfSaga({ name, data }: StoredEvent, { type, id }: NonNullable<EventFilter["saga"]>): boolean {
  return name.startsWith("saga.") && data?.saga === id && data.type === type;
}

/** Whether a name is the type, or begins with it if the type ends in `.*`. */
export function isOfType(name: string, type: string): boolean {
  return type.endsWith(".*") ? name.startsWith(type.slice(0, -1)) : name === type;
}

/** The most digits that every store can hold. PostgreSQL has three numbers once its journal was restored into another server. */
const CURSOR = /^\d{1,18}(\.\d{1,18}){0,2}(-\d{1,6})?$/;

/** Whether a text has the form of a cursor. No other text is passed to a store. */
export function isEventCursor(text: unknown): text is string {
  return typeof text === "string" && CURSOR.test(text);
}
