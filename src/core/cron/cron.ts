import type { NamedCalendars } from "../calendar/business-calendar.ts";
import { canonicalJson } from "../canonical-json.ts";
import { refuse, refuseUnknownKeys } from "../errors.ts";
import type { JobId, JobOptions } from "../job/job.ts";
import type { PortableDefinition, PortableOptions } from "../job/transfer/portable.ts";
import { keysOf } from "../option-keys.ts";
import type { Json } from "../schema.ts";
import { type Duration, type Instant, parseDuration } from "../time.ts";
import { type InstantSource, parseSchedule, type Schedule, type ScheduleOptions } from "./expression.ts";
import { instantsOf } from "./instants-of.ts";

/** What to do if a cron is due while its last job has not ended. */
export type CronOverlap = "allow" | "skip" | "cancel-previous";

/**
 * What to do with instants at which no engine ran: run none of them, run once for all of them, or run each that lies
 * within `all` of now.
 */
export type CronMissed = "skip" | "once" | { readonly all: Duration };

export interface CronOptions extends ScheduleOptions {
  /** Default `"allow"`. */
  readonly overlap?: CronOverlap;
  /** Default `"once"`. */
  readonly missed?: CronMissed;
}

/** The job of a cron as data. Any engine can enqueue it, with or without its definition. */
export interface CronJob {
  readonly definition: PortableDefinition;
  readonly options: PortableOptions;
  readonly payload: string;
  readonly visibility?: number;
  readonly wire?: NonNullable<JobOptions["wire"]>;
}

/** The checked options of a cron. */
export interface CronRule {
  readonly schedule: Schedule;
  readonly overlap: CronOverlap;
  /**
   * A number runs each missed instant that is at most this old, in milliseconds. `once` and `skip` look only at the
   * last one.
   */
  readonly missed: "skip" | "once" | number;
}

/** What happened at one instant, or at several that were skipped for the same reason. */
export interface CronRun {
  /** The instant of the run; of several, the last. */
  readonly for: Instant;
  readonly at: Instant;
  readonly job?: JobId;
  readonly manual?: true;
  /** The job that was cancelled to make room for this run. */
  readonly cancelled?: JobId;
  readonly skipped?: CronSkip;
  /** How many instants were skipped. 100 means 100 or more. */
  readonly count?: number;
}

/** `failed`: the job could not be built from the stored cron; the log says why. */
export type CronSkip = "overlap" | "missed" | "failed";

/** A cron as the store has it. */
export interface CronBody {
  readonly rule: CronRule;
  readonly job: CronJob;
  readonly createdAt: Instant;
  readonly updatedAt: Instant;
  readonly pausedAt: Instant | null;
  /** The next instant to act on. It only grows, so no instant is acted on twice. */
  readonly nextAt: Instant | null;
  /** The last instant that was acted on. A pause or a new schedule does not bring it back. */
  readonly actedUpTo: Instant | null;
  /** The last job. `overlap` checks whether it has ended. */
  readonly lastJob: JobId | null;
  /** The last runs, newest first. */
  readonly runs: readonly CronRun[];
}

export const CRON_KEYS = keysOf<CronOptions>({
  cron: true,
  every: true,
  zone: true,
  clockChange: true,
  calendar: true,
  closed: true,
  overlap: true,
  missed: true,
});
const OVERLAPS: readonly unknown[] = ["allow", "skip", "cancel-previous"];
const MOST_RUNS = 50;
/** The most jobs that one commit enqueues for missed instants. */
const MOST_AT_ONCE = 100;
const MOST_MISSED = 1_000;
/** Skipped instants are counted up to this number. */
const MOST_COUNTED = 100;
/** An instant that is older than this, in milliseconds, counts as missed. */
const ON_TIME = 60_000;

/** `calendars` are the stored business calendars; a schedule may name one. */
export function parseCron(
  options: CronOptions,
  now: Instant,
  field: string,
  calendars?: NamedCalendars,
): CronRule {
  const { overlap = "allow", missed = "once" } = options;
  const schedule = parseSchedule(options, field, calendars);
  if (schedule.calendar !== undefined && instantsOf(schedule, calendars).after(now) === null) {
    const fix = `it names no working day of ${schedule.calendar} within ten years: correct it, or use closed "next"`;
    throw refuse("invalid_cron", `${field}cron`, schedule.cron, fix);
  }
  if (!OVERLAPS.includes(overlap)) {
    const fix = 'write "allow", "skip" or "cancel-previous"';
    throw refuse("invalid_option", `${field}overlap`, overlap, fix);
  }
  return { schedule, overlap, missed: parseMissed(missed, schedule, now, `${field}missed`, calendars) };
}

function parseMissed(
  missed: CronMissed,
  schedule: Schedule,
  now: Instant,
  field: string,
  calendars: NamedCalendars | undefined,
): CronRule["missed"] {
  if (missed === "skip" || missed === "once") return missed;
  if (typeof missed !== "object" || missed === null)
    throw refuse("invalid_option", field, missed, 'write "skip", "once" or { all: "1d" }');
  refuseUnknownKeys(missed, field, ["all"]);
  const within = parseDuration(missed.all, `${field}.all`);
  const count = countedUpTo(instantsOf(schedule, calendars), now, now + within, MOST_MISSED + 1);
  if (count <= MOST_MISSED) return within;
  const fix = `it spans more than ${MOST_MISSED} instants of ${schedule.cron}: shorten it, or write "once"`;
  throw refuse("invalid_option", `${field}.all`, missed.all, fix);
}

/** Counts the instants in (after, upTo], up to `most`. */
function countedUpTo(instants: InstantSource, after: Instant, upTo: Instant, most: number): number {
  let count = 0;
  for (let at = instants.after(after); at !== null && at <= upTo && count < most; at = instants.after(at))
    count += 1;
  return count;
}

export function newCron(rule: CronRule, job: CronJob, now: Instant, calendars?: NamedCalendars): CronBody {
  const nextAt = instantsOf(rule.schedule, calendars).after(now);
  return {
    rule,
    job,
    createdAt: now,
    updatedAt: now,
    pausedAt: null,
    nextAt,
    actedUpTo: null,
    lastJob: null,
    runs: [],
  };
}

/**
 * A cron with new settings; null if nothing changes. Its history and its pause stay. If the schedule is the same, a
 * due instant stays too, so a deployment at three o'clock does not lose the run of three o'clock.
 */
export function changedCron(
  body: CronBody,
  rule: CronRule,
  job: CronJob,
  now: Instant,
  calendars?: NamedCalendars,
): CronBody | null {
  const isSame = (a: object, b: object) => canonicalJson(plain(a)) === canonicalJson(plain(b));
  if (isSame(body.rule, rule) && isSame(body.job, job)) return null;
  const keepsTime = isSame(body.rule.schedule, rule.schedule);
  const nextAt =
    keepsTime || body.pausedAt !== null ? body.nextAt : nextOf(body, rule.schedule, now, calendars);
  return { ...body, rule, job, updatedAt: now, nextAt };
}

function plain(value: object): Json {
  return JSON.parse(JSON.stringify(value)) as Json;
}

/** Skips the instants of the pause. They do not count as missed. */
export function resumedCron(body: CronBody, now: Instant, calendars?: NamedCalendars): CronBody {
  return { ...body, pausedAt: null, nextAt: nextOf(body, body.rule.schedule, now, calendars) };
}

/** Looks after `actedUpTo` too: an engine whose clock lags must not repeat an instant that another engine acted on. */
function nextOf(
  { actedUpTo }: CronBody,
  schedule: Schedule,
  now: Instant,
  calendars: NamedCalendars | undefined,
): Instant | null {
  return instantsOf(schedule, calendars).after(Math.max(now, actedUpTo ?? 0));
}

/** What a due cron does. */
export interface Firing {
  /** The instants for which a job is enqueued. */
  readonly instants: readonly Instant[];
  readonly isPreviousCancelled: boolean;
  readonly skipped: readonly CronRun[];
  readonly nextAt: Instant | null;
  readonly actedUpTo: Instant | null;
}

const NOTHING = { instants: [], isPreviousCancelled: false, skipped: [] };

/** Decides what to do about the instants that are due. `isLastLive`: the last job of the cron has not ended. */
export function fire(body: CronBody, isLastLive: boolean, now: Instant, calendars?: NamedCalendars): Firing {
  const instants = instantsOf(body.rule.schedule, calendars);
  // Newer zone data, or a changed calendar, may give another instant than the stored one.
  const first = body.nextAt === null || body.pausedAt !== null ? null : instants.after(body.nextAt - 1);
  const last = first === null || first > now ? null : instants.lastUpTo(now, first - 1);
  if (first === null || last === null) return { ...NOTHING, nextAt: first, actedUpTo: body.actedUpTo };
  const wanted = wantedOf(body.rule, instants, first, last, now);
  const { rest } = wanted;
  const nextAt = rest ?? instants.after(last);
  const actedUpTo = rest === undefined ? last : (wanted.instants.at(-1) as Instant);
  const skipped: CronRun[] = [];
  const begin = wanted.instants[0];
  const isAllMissed = begin === undefined;
  const missed =
    begin === first ? 0 : countedUpTo(instants, first - 1, isAllMissed ? last : begin - 1, MOST_COUNTED);
  if (missed > 0) {
    const until = isAllMissed ? last : (instants.lastUpTo(begin - 1, first - 1) as Instant);
    skipped.push({ for: until, at: now, skipped: "missed", count: missed });
  }
  return {
    ...withoutOverlaps(body.rule.overlap, wanted.instants, isLastLive, now, skipped),
    nextAt,
    actedUpTo,
  };
}

/** The due instants that `missed` lets run. `rest` is the instant at which the next commit continues. */
function wantedOf(
  { missed }: CronRule,
  instants: InstantSource,
  first: Instant,
  last: Instant,
  now: Instant,
): { instants: Instant[]; rest?: Instant } {
  if (missed === "once") return { instants: [last] };
  if (missed === "skip") return { instants: now - last <= ON_TIME ? [last] : [] };
  const wanted: Instant[] = [];
  let at = instants.after(Math.max(first - 1, now - missed - 1));
  for (; at !== null && at <= last && wanted.length < MOST_AT_ONCE; at = instants.after(at)) wanted.push(at);
  return { instants: wanted, ...(at !== null && at <= last && { rest: at }) };
}

/** Applies `overlap`: unless runs may overlap, only the last of several due runs is useful. */
function withoutOverlaps(
  overlap: CronOverlap,
  wanted: readonly Instant[],
  isLastLive: boolean,
  now: Instant,
  skipped: CronRun[],
): Omit<Firing, "nextAt" | "actedUpTo"> {
  const isBlocked = overlap === "skip" && isLastLive;
  const run = overlap === "allow" ? wanted : isBlocked ? [] : wanted.slice(-1);
  const left = wanted.length - run.length;
  const until = isBlocked ? wanted.at(-1) : wanted.at(-2);
  if (left > 0) skipped.push({ for: until as Instant, at: now, skipped: "overlap", count: left });
  const isPreviousCancelled = overlap === "cancel-previous" && isLastLive && run.length > 0;
  return { instants: run, isPreviousCancelled, skipped };
}

/** The run history with newer runs in front. */
export function withRuns(body: CronBody, newer: readonly CronRun[]): readonly CronRun[] {
  return [...newer.toReversed(), ...body.runs].slice(0, MOST_RUNS);
}

/**
 * A cron under newer zone data or a changed calendar; null if its next instant stays. An instant that is already due
 * stays as it is: `fire` looks at it again.
 */
export function resolvedCron(body: CronBody, now: Instant, calendars?: NamedCalendars): CronBody | null {
  const { rule, nextAt, pausedAt } = body;
  const { zone, calendar } = rule.schedule;
  if (pausedAt !== null || (nextAt !== null && nextAt <= now)) return null;
  if (calendar === undefined && (nextAt === null || zone === "UTC")) return null;
  const resolved = nextOf(body, rule.schedule, now, calendars);
  return resolved === nextAt ? null : { ...body, nextAt: resolved };
}
