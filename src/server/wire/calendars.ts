import { z } from "zod";
import { icsHolidays } from "../../core/calendar/ics.ts";
import { parseInstant } from "../../core/time.ts";
import type { WhenExplanation } from "../../core/timeout/when.ts";
import type { CalendarView, StoredCalendarInput } from "../../engine/calendars/calendars.ts";
import { instantText } from "../../ojs/wire-fields.ts";
import { adminPageQuery } from "./admin-schemas.ts";
import { businessTimeSchema } from "./business-time.ts";

const hours = z.string().max(11).meta({ description: 'Such as "09:00-17:00", in the zone of the calendar.' });
const day = z.looseObject({
  date: z.string().max(10),
  hours: hours.nullish().meta({ description: "Left out: closed all day." }),
  name: z.string().max(100).nullish(),
});

export const calendarSchema = z
  .looseObject({
    zone: z.string().max(255).meta({ description: "An IANA zone." }),
    week: z
      .partialRecord(z.enum(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]), hours)
      .refine((week) => Object.keys(week).length <= 7),
    days: z.array(day).max(2_000).nullish(),
    ics: z.string().max(1_000_000).nullish().meta({
      description: "An iCalendar text instead of days: each all-day event is a closed day.",
    }),
    years: z
      .number()
      .int()
      .min(1)
      .max(50)
      .nullish()
      .meta({ description: "With ics: how many years are read." }),
    until: z
      .string()
      .max(10)
      .nullish()
      .meta({ description: "The last day for which the days are complete." }),
  })
  .refine(({ days, ics }) => days == null || ics == null, {
    error: "send days or ics, not both",
    path: ["ics"],
  })
  .meta({ id: "CalendarRequest" });

export const explainWhenSchema = z
  .looseObject({ when: businessTimeSchema, now: z.string().max(64).nullish() })
  .meta({ id: "ExplainWhenRequest" });

export const calendarsQuery = adminPageQuery;

export function readCalendar(body: z.output<typeof calendarSchema>): StoredCalendarInput {
  const { zone, week, days, ics, years, until } = body;
  return {
    zone,
    week: Object.fromEntries(Object.entries(week).filter(([, open]) => open !== undefined)),
    ...(days != null && {
      days: days.map(({ date, hours: open, name }) => ({
        date,
        ...(open != null && { hours: open }),
        ...(name != null && { name }),
      })),
    }),
    ...(ics != null && { days: icsHolidays(ics) }),
    ...(years != null && { years }),
    ...(until != null && { until }),
  };
}

/** When the caller means; left out: now. */
export function readNow(now: string | null | undefined) {
  return now == null ? {} : { now: { epochMilliseconds: parseInstant(now, "now") } };
}

export function calendarFields({ name, zone, week, days, until }: CalendarView) {
  return { name, zone, week, days, until };
}

export function explainedFields({ dueAt, local, offset, zone, calendar, rule, text }: WhenExplanation) {
  return { at: instantText(dueAt), local, offset, zone, calendar, rule, text };
}

const calendar = z
  .looseObject({ name: z.string(), zone: z.string(), days: z.array(z.looseObject({})) })
  .meta({ id: "Calendar" });
export const calendarReply = z.looseObject({ calendar });
export const calendarsReply = z.looseObject({ items: z.array(calendar) });
export const explainedReply = z.looseObject({ at: z.string(), text: z.string() });
