import { Cron } from "croner";
import { Temporal } from "temporal-polyfill";
import { findCalendar, type NamedCalendars } from "../calendar/business-calendar.ts";
import { refuse, refuseUnknownKeys } from "../errors.ts";
import { type Duration, formatDuration, INSTANT_LIMIT, type Instant, parseDuration } from "../time.ts";
import { checkZone } from "../timeout/wall-clock.ts";
import { CRON_SHORTHANDS } from "./shorthands.ts";

/**
 * What to do with a time that a clock change skips: run it later or earlier by the length of the change, or not at
 * all.
 */
export type CronGap = "later" | "earlier" | "skip";
/** Which one to run if a clock change makes a time occur twice. */
export type CronRepeat = "earlier" | "later" | "both";

/** What to do with an instant on a closed day: leave it out, or run on the working day after or before it. */
export type CronClosed = "skip" | "next" | "previous";

/** What to do with times that a clock change skips or repeats; see `parseSchedule` for the defaults. */
export interface ClockChangeOptions {
  readonly gap?: CronGap;
  readonly overlap?: CronRepeat;
}

export interface ScheduleOptions {
  /** Five fields, six with seconds in front, or a shorthand such as `@hourly`, `@daily` or `@every 5m`. */
  readonly cron?: string;
  /**
   * Instead of `cron`: one instant per period, in whole seconds. The instants are whole periods since 1970 in UTC, so
   * that all processes agree: `"15m"` fires on the quarter hour, `"1d"` at midnight UTC.
   */
  readonly every?: Duration;
  /** An IANA name such as `"Europe/Berlin"`. Default `"UTC"`. */
  readonly zone?: string;
  readonly clockChange?: ClockChangeOptions;
  /** A stored business calendar: the cron fires on its working days, in its zone. */
  readonly calendar?: string;
  /** Only with `calendar`. Default `"skip"`. `"next"` and `"previous"` need a cron that fires once a day. */
  readonly closed?: CronClosed;
}

/** When a cron fires, as the store has it. */
export interface Schedule {
  /** As the user wrote it. */
  readonly cron: string;
  readonly zone: string;
  readonly gap: CronGap;
  readonly overlap: CronRepeat;
  readonly calendar?: string;
  readonly closed?: CronClosed;
}

/** Gives instants in their order. */
export interface InstantSource {
  after(instant: Instant): Instant | null;
  lastUpTo(instant: Instant, after: Instant): Instant | null;
}

const GAPS: readonly unknown[] = ["later", "earlier", "skip"];
const REPEATS: readonly unknown[] = ["earlier", "later", "both"];
const CLOSED: readonly unknown[] = ["skip", "next", "previous"];
const FIX =
  'write five fields ("0 3 * * MON-FRI"), six with seconds in front, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @every 5m';

/**
 * Checks a schedule. By default, a time of day that a clock change skips or repeats occurs once, as other wall-clock
 * times do (SEMANTICS 7.8): later in a gap, the first of two. An expression that names every hour counts real time
 * instead: every ten minutes stays every ten minutes on the night of a clock change.
 */
export function parseSchedule(options: ScheduleOptions, field: string, calendars?: NamedCalendars): Schedule {
  if (options.every !== undefined) return everySchedule(options, field);
  const { cron = "", clockChange = {} } = options;
  if (EVERY.test(cron)) {
    const { cron: _cron, ...rest } = options;
    return everySchedule({ ...rest, every: cron.replace(EVERY, "$1") as Duration }, field, "cron");
  }
  const pattern = patternOf(cron, `${field}cron`);
  refuseUnknownKeys(clockChange, `${field}clockChange`, ["gap", "overlap"]);
  const isEveryHour = EVERY_HOUR.test(hoursOf(cron));
  const { gap = isEveryHour ? "skip" : "later", overlap = isEveryHour ? "both" : "earlier" } = clockChange;
  if (!GAPS.includes(gap))
    throw refuse("invalid_option", `${field}clockChange.gap`, gap, 'write "later", "earlier" or "skip"');
  if (!REPEATS.includes(overlap))
    throw refuse(
      "invalid_option",
      `${field}clockChange.overlap`,
      overlap,
      'write "earlier", "later" or "both"',
    );
  if (pattern.nextRun(new Date(0)) === null)
    throw refuse(
      "invalid_cron",
      `${field}cron`,
      cron,
      "it never matches a date: correct the day or the month",
    );
  const days = parseCalendarOf(options, field, calendars);
  const zone = days?.zone ?? checkZone(options.zone ?? "UTC", `${field}zone`);
  return { cron, zone, gap, overlap, ...(days && { calendar: days.calendar, closed: days.closed }) };
}

/** The calendar of a schedule. The cron is in its zone, so that a day means the same for both. */
function parseCalendarOf(
  { cron = "", zone, calendar, closed }: ScheduleOptions,
  field: string,
  calendars: NamedCalendars | undefined,
): { readonly calendar: string; readonly closed: CronClosed; readonly zone: string } | null {
  if (calendar === undefined) {
    if (closed === undefined) return null;
    throw refuse(
      "invalid_option",
      `${field}closed`,
      closed,
      "name the calendar that says which days are closed",
    );
  }
  const found = findCalendar(calendars, calendar, `${field}calendar`);
  if (zone !== undefined && zone !== found.zone) {
    const fix = `leave it out: a cron with a calendar is in the calendar's zone, ${found.zone}`;
    throw refuse("invalid_option", `${field}zone`, zone, fix);
  }
  const chosen = closed ?? "skip";
  if (!CLOSED.includes(chosen))
    throw refuse("invalid_option", `${field}closed`, closed, 'write "skip", "next" or "previous"');
  if (chosen !== "skip" && !ONCE_A_DAY.test(expanded(cron))) {
    const fix = 'it needs a cron with one time of day, such as "0 9 25 * *"; others use "skip"';
    throw refuse("invalid_option", `${field}closed`, closed, fix);
  }
  return { calendar, closed: chosen, zone: found.zone };
}

/** Five or six fields whose seconds, minutes and hours are single numbers. */
const ONCE_A_DAY = /^(\d{1,2}\s+)?\d{1,2}\s+\d{1,2}(\s+\S+){3}$/;

/** A schedule by its period. It is stored as the shorthand that other cron programs use. */
function everySchedule(options: ScheduleOptions, field: string, name: "every" | "cron" = "every"): Schedule {
  const { every, zone, clockChange, cron, calendar, closed } = options;
  const period = parseDuration(every, `${field}${name}`);
  if (period % SECOND !== 0) throw refuse("invalid_cron", `${field}${name}`, every, "use whole seconds");
  for (const [other, value] of Object.entries({
    cron,
    clockChange,
    calendar,
    closed,
    ...(zone !== "UTC" && { zone }),
  }))
    if (value !== undefined)
      throw refuse(
        "invalid_option",
        `${field}${other}`,
        value,
        "leave it out: a period counts real time in UTC",
      );
  return { cron: `@every ${formatDuration(period)}`, zone: "UTC", gap: "skip", overlap: "both" };
}

/** As forgiving as the other shorthands: they may have spaces around them and capitals. */
const EVERY = /^\s*@every\s+(\S+)\s*$/i;

/** The period of a schedule in milliseconds; null if it is a cron expression. */
function periodOf(cron: string): number | null {
  return EVERY.test(cron) ? parseDuration(cron.replace(EVERY, "$1"), "cron") : null;
}

const EVERY_HOUR = /^(\*|\*\/1|0-23)$/;

function expanded(cron: string): string {
  return CRON_SHORTHANDS[cron.trim().toLowerCase()] ?? cron.trim();
}

function hoursOf(cron: string): string {
  const fields = expanded(cron).split(/\s+/);
  return fields[fields.length === 6 ? 2 : 1] as string;
}

/** Croner computes in UTC here. What it calls UTC is local time. `Instants` applies the zone. */
function patternOf(cron: string, field: string): Cron {
  if (typeof cron !== "string" || cron.length > 255) throw refuse("invalid_cron", field, cron, FIX);
  const text = expanded(cron);
  if (text.startsWith("@")) throw refuse("invalid_cron", field, cron, FIX);
  try {
    return new Cron(text, { utcOffset: 0, mode: "5-or-6-parts", paused: true });
  } catch (error) {
    const why = (error as Error).message.replace(/^CronPattern: /, "");
    throw refuse("invalid_cron", field, cron, `${FIX} (${why})`, { cause: error });
  }
}

const SECOND = 1_000;
const DAY = 86_400_000;
/** No clock change skips or repeats more than a day. */
const MARGIN = DAY + 3_600_000;
/** How far beyond the requested range clock changes are searched, so that the next request finds them cached. */
const AHEAD = 2 * DAY;

/** A local time, as the milliseconds of a UTC clock that shows the same time. */
type Local = number;

/** The time between two clock changes. The offset is in milliseconds. */
interface Segment {
  readonly from: Instant;
  readonly to: Instant;
  readonly offset: number;
}

/** The last instant in (after, instant]; null if there is none. It does not visit the instants in between. */
export function lastInstant(
  source: Pick<InstantSource, "after">,
  instant: Instant,
  after: Instant,
): Instant | null {
  const isBefore = (at: Instant | null) => at !== null && at <= instant;
  const first = source.after(after);
  if (first === null || first > instant) return null;
  if (!isBefore(source.after(first))) return first;
  let [low, high] = [first, instant];
  // Invariant: an instant follows `low`, up to `instant`. None follows `high`.
  for (let step = SECOND; instant - step > low; step *= 4) {
    if (isBefore(source.after(instant - step))) {
      low = instant - step;
      break;
    }
    high = instant - step;
  }
  // Instants are whole seconds, so a second contains at most one.
  while (high - low > SECOND) {
    const middle = Math.floor((low + high) / 2);
    if (isBefore(source.after(middle))) low = middle;
    else high = middle;
  }
  return source.after(low);
}

/** Computes the instants of a schedule. */
export class Instants implements InstantSource {
  readonly #schedule: Schedule;
  readonly #pattern: Cron | undefined;
  readonly #period: number | null;
  #known: readonly Segment[] = [];

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
    this.#period = periodOf(schedule.cron);
    this.#pattern = this.#period === null ? patternOf(schedule.cron, "cron") : undefined;
  }

  /** The first instant after this one; null if there is none. */
  after(instant: Instant): Instant | null {
    let at = instant;
    for (;;) {
      const offset = this.#offsetAt(at);
      const local = this.#match(at + offset);
      if (local === null || local - offset >= INSTANT_LIMIT) return null;
      if (this.#schedule.zone === "UTC") return local;
      // There is no match between here and two days before `local`, so clock changes in between do not matter.
      if (local - offset - at > 4 * DAY) {
        at = local - offset - 2 * DAY;
        continue;
      }
      const segments = this.#segments(at - MARGIN, local - offset + MARGIN);
      if (segments.length === 1) return local - offset;
      const found = this.#firstIn(segments, at);
      if (found !== null) return found;
      // The clock change left out this match: it fell into a gap or was the other of two. Search on after it.
      at = local - offset + 3_600_000;
    }
  }

  lastUpTo(instant: Instant, after: Instant): Instant | null {
    return lastInstant(this, instant, after);
  }

  /** The next local time that the expression names, before the zone is applied. */
  localAfter(local: Local): Local | null {
    return this.#match(local);
  }

  #match(local: Local): Local | null {
    if (this.#period !== null) return (Math.floor(local / this.#period) + 1) * this.#period;
    return this.#pattern?.nextRun(new Date(local))?.getTime() ?? null;
  }

  /** A match in (after, before), both local. */
  #matchIn(after: Local, before: Local): Local | null {
    const found = after + 1 < before ? this.#match(after) : null;
    return found !== null && found < before ? found : null;
  }

  /**
   * The earliest instant after `at`: a match on the clock of a segment, or one that is moved out of a gap next to it.
   */
  #firstIn(segments: readonly Segment[], at: Instant): Instant | null {
    for (const [index, segment] of segments.entries()) {
      if (segment.to <= at) continue;
      const found = [
        this.#onTheClock(segment, segments[index - 1], segments[index + 1], at),
        this.#outOfGapBefore(segment, segments[index - 1], at),
        this.#outOfGapBehind(segment, segments[index + 1], at),
      ].filter((instant) => instant !== null);
      if (found.length > 0) return Math.min(...found);
    }
    return null;
  }

  #onTheClock(
    { from, to, offset }: Segment,
    before: Segment | undefined,
    behind: Segment | undefined,
    at: Instant,
  ): Instant | null {
    const { overlap } = this.#schedule;
    // The clock was set back: the first local times of this segment already occurred in the one before.
    const isRepeat = overlap === "earlier" && before !== undefined && before.offset > offset;
    const first = isRepeat ? from + before.offset : from + offset;
    const isRepeated = overlap === "later" && behind !== undefined && behind.offset < offset;
    const end = isRepeated ? to + behind.offset : to + offset;
    const found = this.#matchIn(Math.max(first - 1, at + offset), end);
    return found === null ? null : found - offset;
  }

  /** `later`: runs what the change at the start of this segment skipped, later by the length of the change. */
  #outOfGapBefore({ from, offset }: Segment, before: Segment | undefined, at: Instant): Instant | null {
    if (this.#schedule.gap !== "later" || !before || before.offset >= offset) return null;
    const found = this.#matchIn(Math.max(from, at + 1) + before.offset - 1, from + offset);
    return found === null ? null : found - before.offset;
  }

  /** `earlier`: runs what the change at the end of this segment will skip, earlier by the length of the change. */
  #outOfGapBehind({ to, offset }: Segment, behind: Segment | undefined, at: Instant): Instant | null {
    if (this.#schedule.gap !== "earlier" || !behind || behind.offset <= offset) return null;
    const found = this.#matchIn(Math.max(to + offset - 1, at + behind.offset), to + behind.offset);
    return found === null ? null : found - behind.offset;
  }

  /** The segments of [from, to), or of a longer range if one is cached. */
  #segments(from: Instant, to: Instant): readonly Segment[] {
    const [first, last] = [this.#known[0], this.#known.at(-1)];
    const isKnown = first !== undefined && last !== undefined && first.from <= from && to <= last.to;
    if (!isKnown) this.#known = this.#findSegments(from, to + AHEAD);
    return this.#known;
  }

  /** Reads the offset once a day, so two changes within a day look like one. */
  #findSegments(from: Instant, to: Instant): Segment[] {
    const segments: Segment[] = [];
    let [start, offset] = [from, this.#readOffset(from)];
    for (let at = from; at < to; ) {
      const next = Math.min(at + DAY, to);
      const nextOffset = this.#readOffset(next);
      if (nextOffset !== offset) {
        const change = this.#changeIn(at, next, offset);
        segments.push({ from: start, to: change, offset });
        [start, offset] = [change, nextOffset];
      }
      at = next;
    }
    return [...segments, { from: start, to, offset }];
  }

  /** The first instant of (from, to] whose offset differs. */
  #changeIn(from: Instant, to: Instant, offset: number): Instant {
    let [low, high] = [from, to];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#readOffset(middle) === offset) low = middle;
      else high = middle;
    }
    return high;
  }

  #offsetAt(at: Instant): number {
    if (this.#schedule.zone === "UTC") return 0;
    const known = this.#known.find(({ from, to }) => from <= at && at < to);
    return known ? known.offset : this.#readOffset(at);
  }

  #readOffset(at: Instant): number {
    const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(this.#schedule.zone);
    return zoned.offsetNanoseconds / 1e6;
  }
}

const MOST_CACHED = 500;
const cached = new Map<string, Instants>();

/** The instants of the expression, from a cache: parsing an expression costs more than evaluating it. */
export function scheduleInstants(schedule: Schedule): Instants {
  const key = `${schedule.cron}\n${schedule.zone} ${schedule.gap} ${schedule.overlap}`;
  const known = cached.get(key);
  if (known) return known;
  if (cached.size >= MOST_CACHED) cached.clear();
  const instants = new Instants(schedule);
  cached.set(key, instants);
  return instants;
}
