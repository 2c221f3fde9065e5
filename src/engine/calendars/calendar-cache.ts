import type { BusinessCalendar, NamedCalendars } from "../../core/calendar/business-calendar.ts";
import type { Store } from "../../ports/store.ts";
import { recordKind } from "../commit/record-kind.ts";

export const CALENDARS = recordKind<BusinessCalendar>("calendar");
/** Every change of a calendar writes this record too, so that one small read finds out whether any has changed. */
export const CALENDAR_REVISION = recordKind<Record<string, never>>("calendars");
export const REVISION_NAME = "revision";
/** The most calendars of one store. */
export const MOST_CALENDARS = 200;

/** Caches the business calendars, which are records in the store, so that all processes resolve alike. */
export class CalendarCache implements NamedCalendars {
  readonly #store: Store;
  #known: ReadonlyMap<string, BusinessCalendar> = new Map();
  #revision = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  find(name: string): BusinessCalendar | undefined {
    return this.#known.get(name);
  }

  /** Reads all calendars again if one has changed since. */
  async refresh(): Promise<void> {
    const revision = (await CALENDAR_REVISION.load(this.#store, REVISION_NAME))?.version ?? 0;
    if (revision === this.#revision) return;
    const all = await CALENDARS.all(this.#store, MOST_CALENDARS);
    this.#known = new Map([...all].map(([name, { body }]) => [name, body]));
    this.#revision = revision;
  }
}
