import { z } from "zod";
import type { CalendarInput } from "../../core/calendar/business-calendar.ts";
import type { InstantInput } from "../../core/time.ts";
import type { When } from "../../core/timeout/when.ts";
import { call, json, options, text } from "./call.ts";

const name = z.tuple([text]);

export const calendarCalls = {
  "calendars.put": call(
    "Add or change a business calendar",
    z.tuple([text, options<CalendarInput>()]),
    ({ engine, by }, calendar, input) => engine.calendars.as(by).put(calendar, input),
  ),
  "calendars.delete": call("Delete a business calendar", name, ({ engine, by }, calendar) =>
    engine.calendars.as(by).delete(calendar),
  ),
  "calendars.get": call("Load a business calendar", name, ({ engine }, calendar) =>
    engine.calendars.get(calendar),
  ),
  "calendars.list": call(
    "List business calendars",
    z.tuple([options<{ after?: string; limit?: number }>().optional()]),
    ({ engine }, page) => engine.calendars.list(page),
  ),
  "calendars.explain": call(
    "Say which instant a wish such as three working days comes to",
    z.tuple([json, options<{ now?: InstantInput }>().optional()]),
    ({ engine }, when, how) => engine.calendars.explain(when as When, how),
  ),
};
