import { Cron } from "croner";
import { Temporal } from "temporal-polyfill";
import { refuse, refuseUnknownKeys } from "../errors.ts";
import { INSTANT_LIMIT, type Instant } from "../time.ts";

/** What to do with a time that a clock change skips: run it as much later, as much earlier, or not at all. */
export type CronGap = "later" | "earlier" | "skip";
/** Which of the two to take when a clock change makes a time happen twice. */
export type CronRepeat = "earlier" | "later" | "both";

/** What becomes of times that a change of the clocks skips or repeats; see `Schedule`. */
export interface ClockChangeOptions {
  readonly gap?: CronGap;
  readonly overlap?: CronRepeat;
}

export interface ScheduleOptions {
  /** Five fields, six with seconds in front, or `@hourly`, `@daily` and the like. */
  readonly cron: string;
  /** An IANA name such as `"Europe/Berlin"`. Default `"UTC"`. */
  readonly zone?: string;
  readonly clockChange?: ClockChangeOptions;
}

/** When a cron fires, as it is kept. */
export interface Schedule {
  /** As it was written. */
  readonly cron: string;
  readonly zone: string;
  readonly gap: CronGap;
  readonly overlap: CronRepeat;
}

const SHORTHANDS: Readonly<Record<string, string>> = {
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
  "@monthly": "0 0 1 * *",
  "@weekly": "0 0 * * 0",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@hourly": "0 * * * *",
};
const GAPS: readonly unknown[] = ["later", "earlier", "skip"];
const REPEATS: readonly unknown[] = ["earlier", "later", "both"];
const FIX =
  'write five fields ("0 3 * * MON-FRI"), six with seconds in front, or @hourly, @daily, @midnight, @weekly, @monthly, @yearly';

/**
 * Checks a schedule. A time of day that a clock change skips or repeats happens once, as wall-clock times do elsewhere
 * (SEMANTICS 7.8): later in a gap, the first of two. An expression that names every hour counts real time instead: every
 * ten minutes are ten minutes also in the night when the clocks change.
 */
export function parseSchedule(options: ScheduleOptions, field: string): Schedule {
  const { cron, clockChange = {} } = options;
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
    throw refuse("invalid_cron", `${field}cron`, cron, "no day of the calendar ever matches it");
  return { cron, zone: checkZone(options.zone ?? "UTC", `${field}zone`), gap, overlap };
}

const EVERY_HOUR = /^(\*|\*\/1|0-23)$/;

function expanded(cron: string): string {
  return SHORTHANDS[cron.trim().toLowerCase()] ?? cron.trim();
}

function hoursOf(cron: string): string {
  const fields = expanded(cron).split(/\s+/);
  return fields[fields.length === 6 ? 2 : 1] as string;
}

/** Croner counts in UTC here: what it calls UTC is the time on the wall, and the zone is applied by `instantAfter`. */
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

function checkZone(zone: unknown, field: string): string {
  const fix = 'use an IANA name such as "Europe/Berlin"';
  if (typeof zone !== "string" || !/^[A-Za-z]/.test(zone)) throw refuse("unknown_zone", field, zone, fix);
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId;
  } catch (cause) {
    throw refuse("unknown_zone", field, zone, `${fix}, or install newer zone data`, { cause });
  }
}

const SECOND = 1_000;
const DAY = 86_400_000;
/** No clock change skips or repeats more than a day. */
const MARGIN = DAY + 3_600_000;
/** So much more is looked at for clock changes than was asked for. */
const AHEAD = 2 * DAY;

/** A local time as the milliseconds that a clock in UTC would show. */
type Local = number;

/** A stretch of time between two clock changes; offsets in milliseconds. */
interface Segment {
  readonly from: Instant;
  readonly to: Instant;
  readonly offset: number;
}

/** The instants of a schedule. */
export class Instants {
  readonly #schedule: Schedule;
  readonly #pattern: Cron;
  #known: readonly Segment[] = [];

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
    this.#pattern = patternOf(schedule.cron, "cron");
  }

  /** The first instant after this one; null if there is none any more. */
  after(instant: Instant): Instant | null {
    let at = instant;
    for (;;) {
      const offset = this.#offsetAt(at);
      const local = this.#match(at + offset);
      if (local === null || local - offset >= INSTANT_LIMIT) return null;
      if (this.#schedule.zone === "UTC") return local;
      // Nothing happens between here and two days before the match, so the clock changes there do not matter.
      if (local - offset - at > 4 * DAY) {
        at = local - offset - 2 * DAY;
        continue;
      }
      const segments = this.#segments(at - MARGIN, local - offset + MARGIN);
      if (segments.length === 1) return local - offset;
      const found = this.#firstIn(segments, at);
      if (found !== null) return found;
      // The match fell into a gap or was one of two, and is left out: the search goes on behind it.
      at = local - offset + 3_600_000;
    }
  }

  /** The last instant up to this one that comes after another; null if there is none. What lies between is not counted. */
  lastUpTo(instant: Instant, after: Instant): Instant | null {
    const isBefore = (at: Instant | null) => at !== null && at <= instant;
    const first = this.after(after);
    if (first === null || first > instant) return null;
    if (!isBefore(this.after(first))) return first;
    let [low, high] = [first, instant];
    // `low` has an instant behind it, `high` has none.
    for (let step = SECOND; instant - step > low; step *= 4) {
      if (isBefore(this.after(instant - step))) {
        low = instant - step;
        break;
      }
      high = instant - step;
    }
    // Instants are whole seconds, so there is one of them at most within a second.
    while (high - low > SECOND) {
      const middle = Math.floor((low + high) / 2);
      if (isBefore(this.after(middle))) low = middle;
      else high = middle;
    }
    return this.after(low);
  }

  #match(local: Local): Local | null {
    return this.#pattern.nextRun(new Date(local))?.getTime() ?? null;
  }

  /** A match in (after, before), both local. */
  #matchIn(after: Local, before: Local): Local | null {
    const found = after + 1 < before ? this.#match(after) : null;
    return found !== null && found < before ? found : null;
  }

  /** The earliest instant after `at`: on the clock of each stretch, and moved out of the gaps beside it. */
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
    // Where the clock was set back, the first hours of this stretch are the second time of the same hours.
    const isRepeat = overlap === "earlier" && before !== undefined && before.offset > offset;
    const first = isRepeat ? from + before.offset : from + offset;
    const isRepeated = overlap === "later" && behind !== undefined && behind.offset < offset;
    const end = isRepeated ? to + behind.offset : to + offset;
    const found = this.#matchIn(Math.max(first - 1, at + offset), end);
    return found === null ? null : found - offset;
  }

  /** `later`: what the change at the beginning of this stretch skipped comes as much later as the clock was set on. */
  #outOfGapBefore({ from, offset }: Segment, before: Segment | undefined, at: Instant): Instant | null {
    if (this.#schedule.gap !== "later" || !before || before.offset >= offset) return null;
    const found = this.#matchIn(Math.max(from, at + 1) + before.offset - 1, from + offset);
    return found === null ? null : found - before.offset;
  }

  /** `earlier`: what the change at the end of this stretch will skip comes as much earlier. */
  #outOfGapBehind({ to, offset }: Segment, behind: Segment | undefined, at: Instant): Instant | null {
    if (this.#schedule.gap !== "earlier" || !behind || behind.offset <= offset) return null;
    const found = this.#matchIn(Math.max(to + offset - 1, at + behind.offset), to + behind.offset);
    return found === null ? null : found - behind.offset;
  }

  /** The stretches of [from, to), or of more: what was found once serves for the instants around it as well. */
  #segments(from: Instant, to: Instant): readonly Segment[] {
    const [first, last] = [this.#known[0], this.#known.at(-1)];
    const isKnown = first !== undefined && last !== undefined && first.from <= from && to <= last.to;
    if (!isKnown) this.#known = this.#findSegments(from, to + AHEAD);
    return this.#known;
  }

  /** Found by looking once a day: two changes within a day are seen as one. */
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

  /** The first instant of (low, high] with another offset than this. */
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

const MOST_KEPT = 500;
const kept = new Map<string, Instants>();

/** The instants of a schedule, made once: an expression is dearer to read than to ask. */
export function instantsOf(schedule: Schedule): Instants {
  const key = `${schedule.cron}\n${schedule.zone} ${schedule.gap} ${schedule.overlap}`;
  const known = kept.get(key);
  if (known) return known;
  if (kept.size >= MOST_KEPT) kept.clear();
  const instants = new Instants(schedule);
  kept.set(key, instants);
  return instants;
}

/** An instant with what the clock on the wall shows then, for people. */
export interface CronInstant {
  readonly at: Instant;
  readonly local: string;
  readonly offset: string;
}

/** The next instants of a schedule. */
export function preview(schedule: Schedule, from: Instant, count: number): CronInstant[] {
  const instants = instantsOf(schedule);
  const found: CronInstant[] = [];
  for (let at = instants.after(from); at !== null && found.length < count; at = instants.after(at)) {
    const zoned = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(schedule.zone);
    found.push({ at, local: zoned.toPlainDateTime().toString(), offset: zoned.offset });
  }
  return found;
}
