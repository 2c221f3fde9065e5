import { Temporal } from "temporal-polyfill";
import { type BusinessCalendar, hoursOn, LOOK_AHEAD, nextOpen } from "../calendar/business-calendar.ts";
import { type DayNumber, dayIn, dayText, localAt } from "../calendar/calendar-date.ts";
import type { Instant } from "../time.ts";
import { resolveBent } from "../timeout/wall-clock.ts";
import { type InstantSource, type Instants, lastInstant, type Schedule } from "./expression.ts";

/* Tests: test/engine/calendars/working-instants.test.ts. */

const DAY = 86_400_000;
const HOUR = 3_600_000;
/** A clock that is set back at midnight repeats the end of the day before. No zone sets it back by more than this. */
const LONGEST_REPEAT = 3 * HOUR;

/** The instants of a schedule on the working days of a calendar (SEMANTICS 12.4). */
export class WorkingInstants implements InstantSource {
  readonly #all: Instants;
  readonly #schedule: Schedule;
  readonly #calendar: BusinessCalendar;

  constructor(all: Instants, schedule: Schedule, calendar: BusinessCalendar) {
    this.#all = all;
    this.#schedule = schedule;
    this.#calendar = calendar;
  }

  /** The first instant after this one; null if there is none within ten years. */
  after(instant: Instant): Instant | null {
    return this.#schedule.closed === "skip" ? this.#onWorkingDays(instant) : this.#moved(instant);
  }

  lastUpTo(instant: Instant, after: Instant): Instant | null {
    return lastInstant(this, instant, after);
  }

  /** `skip`: leaves out what falls on a closed day. A run of closed days costs one step, not one per instant. */
  #onWorkingDays(instant: Instant): Instant | null {
    const { zone } = this.#schedule;
    const limit = instant + LOOK_AHEAD * DAY;
    for (let at = this.#all.after(instant); at !== null && at <= limit; ) {
      const day = dayIn(zone, at);
      if (hoursOn(this.#calendar, day) !== null) return at;
      const isNearMidnight = at - startOf(day, zone) < LONGEST_REPEAT;
      if (isNearMidnight && hoursOn(this.#calendar, day - 1) !== null) {
        at = this.#all.after(at);
        continue;
      }
      const next = nextOpen(this.#calendar, day + 1);
      if (next === null) return null;
      at = this.#all.after(Math.max(at, startOf(next, zone) - 1));
    }
    return null;
  }

  /** `next` and `previous`: what falls on a closed day runs on a working day beside it, at the same time of day. */
  #moved(instant: Instant): Instant | null {
    const { zone, closed } = this.#schedule;
    const step = closed === "next" ? 1 : -1;
    const today = dayIn(zone, instant);
    // Days that move forward to today or later begin after the working day before. Two days allow for clock changes.
    const first = step === 1 ? (nextOpen(this.#calendar, today - 2, -1) ?? today - 2) : today - 2;
    let local = this.#all.localAfter(first * DAY - 1);
    let resolved: DayNumber | null = null;
    while (local !== null && local <= (today + LOOK_AHEAD) * DAY) {
      const named = Math.floor(local / DAY);
      const day = nextOpen(this.#calendar, named, step);
      if (day === null) return null;
      // To resolve a local time costs most. A day before yesterday is over, and the closed days before one share its instant.
      if (day >= today - 1 && day !== resolved) {
        const found = this.#at(day, (local - named * DAY) / 1_000).find((at) => at > instant);
        if (found !== undefined) return found;
        resolved = day;
      }
      local = this.#all.localAfter(local);
    }
    return null;
  }

  /** The instants of one local time: none or one in a gap, two if the clock repeats it and both run. */
  #at(day: DayNumber, seconds: number): readonly Instant[] {
    const { zone, gap, overlap } = this.#schedule;
    const local = localAt(day, seconds);
    const early = resolveBent({ local, zone, gap: "earlier", overlap: "earlier" });
    if (early.rule === "exact") return [early.at];
    const late = resolveBent({ local, zone, gap: "later", overlap: "later" });
    if (early.rule === "overlap-earlier")
      return overlap === "both" ? [early.at, late.at] : [overlap === "later" ? late.at : early.at];
    return gap === "skip" ? [] : [gap === "earlier" ? early.at : late.at];
  }
}

function startOf(day: DayNumber, zone: string): Instant {
  return Temporal.PlainDate.from(dayText(day)).toZonedDateTime(zone).epochMilliseconds;
}
