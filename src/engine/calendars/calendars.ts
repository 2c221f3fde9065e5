import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import {
  type BusinessCalendar,
  type CalendarDay,
  type CalendarInput,
  type HolidayProvider,
  parseCalendar,
} from "../../core/calendar/business-calendar.ts";
import { dayIn } from "../../core/calendar/calendar-date.ts";
import { CurfewError, checkCount, checkName, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import type { InstantInput } from "../../core/time.ts";
import { explainWhen, type When, type WhenExplanation } from "../../core/timeout/when.ts";
import { BATCH_LIMIT, type RecordRow } from "../../ports/store.ts";
import { changeRecord, commitUnits } from "../commit/commit.ts";
import type { EngineContext } from "../context.ts";
import { cronsOfCalendar } from "../crons/resolve-crons.ts";
import { auditEffects } from "../events/audit-log.ts";
import { CALENDAR_REVISION, CALENDARS, MOST_CALENDARS, REVISION_NAME } from "./calendar-cache.ts";
import { resolveStored } from "./resolve-again.ts";

/** A calendar whose special days may come from a provider. */
export interface StoredCalendarInput extends Omit<CalendarInput, "days"> {
  readonly days?: readonly CalendarDay[] | HolidayProvider;
  /** With a provider: how many years it is asked for, the current one included. Default 3, at most 50. */
  readonly years?: number;
}

export interface CalendarView extends BusinessCalendar {
  readonly name: string;
}

const YEARS = 3;
const MOST_YEARS = 50;
/**
 * Another process may use the old calendar until it reads the settings again, every 5 s. What it stored meanwhile is
 * resolved again after this time.
 */
const SETTLED_AFTER = 15_000;
/** A fixed zone reads the current year of the store's clock; the calendar's own zone is not known yet. */
const UTC = "UTC";

/** Business calendars: records of the store, so all processes resolve alike (SEMANTICS 12). */
export class Calendars {
  readonly #context: EngineContext;
  readonly #by: By | undefined;

  constructor(context: EngineContext, by?: By) {
    this.#context = context;
    this.#by = by;
  }

  /** The same calendars; each change writes an audit entry for this operator. */
  as(by: By): Calendars {
    return new Calendars(this.#context, parseBy(by));
  }

  /**
   * Stores a calendar or changes it, and resolves anew what was computed with the old one: pending timeouts, and the
   * next instants of crons. `moved` says how many of them have another instant now.
   */
  async put(name: string, input: StoredCalendarInput): Promise<CalendarView & { readonly moved: number }> {
    this.#context.assertOpen();
    checkName(name);
    const calendar = parseCalendar(await this.#withDays(input), this.#today(UTC), "calendar");
    await this.#refuseMany(name);
    await changeRecord(this.#context, "put", CALENDARS, name, (before, now) => {
      if (before && before.zone !== calendar.zone) {
        const fix = `the stored calendar is in ${before.zone}, and its crons are too: use another name`;
        throw refuse("invalid_calendar", "calendar.zone", calendar.zone, fix);
      }
      const details = { calendar: name, days: calendar.days.length };
      const entry = auditEffects(this.#context, this.#by, "calendar.put", { details }, now);
      const effects = [CALENDAR_REVISION.put(REVISION_NAME, {}, null), ...entry];
      return { body: calendar, wakeAt: now + SETTLED_AFTER, effects };
    });
    this.#context.wakeSweepAt(this.#context.clock.now() + SETTLED_AFTER);
    await this.#context.calendars.refresh();
    const { moved } = await resolveStored(this.#context, name);
    return { name, ...calendar, moved };
  }

  async get(name: string): Promise<CalendarView | null> {
    const record = await CALENDARS.load(this.#context.store, checkName(name));
    return record && { name, ...record.body };
  }

  /** Calendars by name; `after` is the last name of the page before. */
  async list(page: { readonly after?: string; readonly limit?: number } = {}): Promise<CalendarView[]> {
    refuseUnknownKeys(page, "page", ["after", "limit"]);
    const { after = null, limit = 100 } = page;
    checkCount(limit, "page.limit", BATCH_LIMIT);
    const records = await CALENDARS.list(this.#context.store, after, limit);
    return records.map(({ name, body }) => ({ name, ...body }));
  }

  /** Deletes a calendar; false if there is none. Pending timeouts keep their instants. Refused while a cron names it. */
  async delete(name: string): Promise<boolean> {
    this.#context.assertOpen();
    checkName(name);
    const [cron] = await cronsOfCalendar(this.#context, name);
    if (cron !== undefined) {
      const message = `delete: the calendar ${JSON.stringify(name)} is used by the cron ${JSON.stringify(cron)}; change or delete the cron first`;
      throw new CurfewError("invalid_state", message, { field: "name" });
    }
    const deleted = await changeRecord(this.#context, "delete", CALENDARS, name, (body, now) => {
      if (!body) return null;
      const entry = auditEffects(
        this.#context,
        this.#by,
        "calendar.delete",
        { details: { calendar: name } },
        now,
      );
      return { body: null, effects: [CALENDAR_REVISION.put(REVISION_NAME, {}, null), ...entry] };
    });
    await this.#context.calendars.refresh();
    return deleted !== null;
  }

  /** What a `when` means by the stored calendars, now or at another moment. Nothing is stored. */
  async explain(when: When, options: { readonly now?: InstantInput } = {}): Promise<WhenExplanation> {
    refuseUnknownKeys(options, "options", ["now"]);
    const { calendars, clock } = this.#context;
    await calendars.refresh();
    return explainWhen(when, { now: options.now ?? { epochMilliseconds: clock.now() }, calendars });
  }

  async #withDays(input: StoredCalendarInput): Promise<CalendarInput> {
    const { days, years, ...rest } = input;
    if (days === undefined || Array.isArray(days)) {
      if (years !== undefined)
        throw refuse(
          "invalid_option",
          "calendar.years",
          years,
          "it says how far a provider is asked; leave it out",
        );
      return { ...rest, ...(days !== undefined && { days }) };
    }
    const provider = days as HolidayProvider;
    if (typeof provider?.days !== "function")
      throw refuse(
        "invalid_calendar",
        "calendar.days",
        days,
        "pass a list of days, or a provider with days()",
      );
    checkCount(years ?? YEARS, "calendar.years", MOST_YEARS);
    const year = new Date(this.#today(UTC) * 86_400_000).getUTCFullYear();
    const span = { from: `${year}-01-01`, to: `${year + (years ?? YEARS) - 1}-12-31` };
    return { ...rest, days: await provider.days(span), until: rest.until ?? span.to };
  }

  async #refuseMany(name: string): Promise<void> {
    const known = await CALENDARS.all(this.#context.store, MOST_CALENDARS);
    if (known.has(name) || known.size < MOST_CALENDARS) return;
    throw refuse(
      "invalid_limit",
      "calendars",
      known.size,
      `a store holds at most ${MOST_CALENDARS}: delete one`,
    );
  }

  #today(zone: string): number {
    return dayIn(zone, this.#context.clock.now());
  }
}

/** Resolves once more what processes with an older copy of a calendar may have stored after the change. */
export async function settleCalendars(
  context: Pick<EngineContext, "store" | "clock" | "calendars">,
  records: readonly RecordRow[],
): Promise<void> {
  await context.calendars.refresh();
  for (const record of records) {
    const { name, version, body } = CALENDARS.read(record);
    await resolveStored(context, name);
    const unit = { when: [CALENDARS.guard(name, version)], effects: [CALENDARS.put(name, body, null)] };
    await commitUnits(context, [unit]);
  }
}
