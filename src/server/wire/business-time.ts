import { z } from "zod";
import type { When } from "../../core/timeout/when.ts";

/** A time by a calendar, on the wire. */
export const businessTimeSchema = z
  .strictObject({
    calendar: z.string().min(1).max(255),
    working_days: z.number().int().optional(),
    at: z.string().max(8).optional(),
    cut_off: z.string().max(8).optional(),
    date: z.string().max(10).optional(),
  })
  .meta({ id: "BusinessTime" });

export function readBusinessTime(said: z.output<typeof businessTimeSchema>): When {
  const { calendar, working_days, at, cut_off, date } = said;
  return {
    calendar,
    ...(working_days !== undefined && { workingDays: working_days }),
    ...(at !== undefined && { at }),
    ...(cut_off !== undefined && { cutOff: cut_off }),
    ...(date !== undefined && { date }),
  };
}
