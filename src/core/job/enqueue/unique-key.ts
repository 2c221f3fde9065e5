import { canonicalJson } from "../../canonical-json.ts";
import { checkFlag, refuse, refuseUnknownKeys } from "../../errors.ts";
import { keysOf } from "../../option-keys.ts";
import type { Json } from "../../schema.ts";
import { type Duration, parseDuration } from "../../time.ts";
import { JOB_STATES, type JobState, type Pace } from "../job.ts";
import { isTerminal } from "../lifecycle.ts";

/** What to do with an enqueue whose key is taken. */
export type OnConflict = "ignore" | "reject" | "replace" | "replace-except-schedule";

/** A path in the payload: `"customer.id"`, or a list of names if a name contains a dot. */
export type PayloadPath = string | readonly (string | number)[];

/** Which jobs count as the same, for how long, and what to do with a second one. The type always counts. */
export interface UniqueOptions {
  /** A key that you choose, instead of the payload. */
  readonly key?: string;
  /** The whole payload (true, the default), none of it, or these paths. */
  readonly payload?: boolean | readonly PayloadPath[];
  /** Whether jobs in different queues differ. Default false. */
  readonly queue?: boolean;
  /** The whole meta, none of it (the default), or these keys. */
  readonly meta?: boolean | readonly string[];
  /** How long after its creation a job blocks others, finished or not. Left out: while it is in one of the states. */
  readonly period?: Duration;
  /**
   * The states in which a job blocks others. Default: all that are not terminal; with a period also `completed`, so
   * that the period applies after the work is done.
   */
  readonly states?: readonly JobState[];
  /**
   * `ignore` (default) returns the existing job, marked `duplicate`. `reject` throws. `replace` cancels the existing
   * job and adds this one. `replace-except-schedule` does the same and keeps the start time of the existing one.
   */
  readonly onConflict?: OnConflict;
  /**
   * Last one wins after a quiet time: the job starts `quiet` after the last enqueue, and at most `most` after the first
   * one of the burst. Each enqueue replaces the job that waits.
   */
  readonly debounce?: { readonly quiet: Duration; readonly most?: Duration };
  /** At most one job is due per period: the first at once, and after the period the last of those that came meanwhile. */
  readonly throttle?: Duration;
}

/** The checked rule. */
export interface UniqueRule {
  readonly key: string | null;
  readonly payload: boolean | readonly (readonly string[])[];
  readonly queue: boolean;
  readonly meta: boolean | readonly string[];
  readonly period: number | null;
  readonly states: readonly JobState[];
  readonly onConflict: OnConflict;
  /** Left out for a rule without debounce and throttle. */
  readonly pace?: Pace;
}

const KEYS = keysOf<UniqueOptions>({
  key: true,
  payload: true,
  queue: true,
  meta: true,
  period: true,
  states: true,
  onConflict: true,
  debounce: true,
  throttle: true,
});
const CONFLICTS: readonly unknown[] = ["ignore", "reject", "replace", "replace-except-schedule"];
const LIVE: readonly JobState[] = JOB_STATES.filter((state) => !isTerminal(state));
/** The most paths or keys. Somebody who lists more has mistyped, or means the whole payload. */
const MOST_PATHS = 50;
const LONGEST_KEY = 1_000;
/** The most keys and values that a unique key covers: sorting more would block the event loop for too long. */
const MOST_PARTS = 20_000;

export function parseUnique(options: UniqueOptions, field: string): UniqueRule {
  refuseUnknownKeys(options, field, KEYS);
  const { key, payload, onConflict = "ignore" } = options;
  if (key !== undefined && (typeof key !== "string" || key === "" || key.length > LONGEST_KEY))
    throw refuse("invalid_option", `${field}.key`, key, `use a text of 1 to ${LONGEST_KEY} characters`);
  if (key !== undefined && payload !== undefined && payload !== false)
    throw refuse("invalid_option", `${field}.key`, key, "it replaces the payload: write one of the two");
  if (!CONFLICTS.includes(onConflict)) {
    const fix = 'write "ignore", "reject", "replace" or "replace-except-schedule"';
    throw refuse("invalid_option", `${field}.onConflict`, onConflict, fix);
  }
  const pace = parsePace(options, field);
  const period = options.period === undefined ? null : parseDuration(options.period, `${field}.period`);
  return {
    key: key ?? null,
    payload: parsePaths(payload ?? key === undefined, `${field}.payload`),
    queue: checkFlag(options.queue ?? false, `${field}.queue`),
    meta: parseKeys(options.meta ?? false, `${field}.meta`),
    period,
    states: parseStates(options.states, period, `${field}.states`),
    onConflict: pace ? "replace" : onConflict,
    ...(pace && { pace }),
  };
}

function parsePace(options: UniqueOptions, field: string): Pace | undefined {
  const { debounce, throttle } = options;
  if (debounce === undefined && throttle === undefined) return undefined;
  if (debounce !== undefined && throttle !== undefined)
    throw refuse("invalid_option", `${field}.throttle`, throttle, "write either debounce or throttle");
  const name = debounce === undefined ? "throttle" : "debounce";
  for (const other of ["period", "states", "onConflict"] as const)
    if (options[other] !== undefined)
      throw refuse(
        "invalid_option",
        `${field}.${other}`,
        options[other],
        `leave it out: ${name} says it all`,
      );
  if (options.key === undefined && options.payload === undefined) {
    const fix =
      'say which jobs are the same: payload: ["customer.id"], a key, or payload: false for all of the type';
    throw refuse("invalid_option", `${field}.payload`, undefined, fix);
  }
  if (debounce === undefined)
    return { kind: "throttle", period: parseDuration(throttle, `${field}.throttle`) };
  refuseUnknownKeys(debounce, `${field}.debounce`, ["quiet", "most"]);
  const quiet = parseDuration(debounce.quiet, `${field}.debounce.quiet`);
  const most = debounce.most === undefined ? null : parseDuration(debounce.most, `${field}.debounce.most`);
  if (most !== null && most < quiet)
    throw refuse("invalid_duration", `${field}.debounce.most`, debounce.most, "use at least quiet");
  return { kind: "debounce", quiet, most };
}

function parseKeys(value: unknown, field: string): boolean | readonly string[] {
  if (typeof value === "boolean") return value;
  return checkList(value, field, "list the keys of meta that count, or write true").map((key, index) => {
    if (typeof key === "string" && key !== "") return key;
    throw refuse("invalid_option", `${field}[${index}]`, key, "write the name of a key");
  });
}

function parsePaths(value: unknown, field: string): boolean | readonly (readonly string[])[] {
  if (typeof value === "boolean") return value;
  return checkList(value, field, "list the paths that count, or write true").map((path, index) => {
    const names = typeof path === "string" ? path.split(".") : path;
    const isPath =
      Array.isArray(names) &&
      names.length > 0 &&
      names.every((name) => (typeof name === "string" && name !== "") || Number.isInteger(name));
    if (isPath) return names.map(String);
    const fix = 'write a path such as "customer.id", or ["a.b", 0] where a name has a dot';
    throw refuse("invalid_option", `${field}[${index}]`, path, fix);
  });
}

function checkList(value: unknown, field: string, fix: string): readonly unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= MOST_PATHS) return value;
  throw refuse("invalid_option", field, value, `${fix}; at most ${MOST_PATHS}`);
}

function parseStates(value: unknown, period: number | null, field: string): readonly JobState[] {
  if (value === undefined) return period === null ? LIVE : [...LIVE, "completed"];
  const isList = Array.isArray(value) && value.length > 0;
  const strange = isList ? value.find((state) => !JOB_STATES.includes(state)) : value;
  if (strange !== undefined || !isList)
    throw refuse("invalid_option", field, strange, `use ${JOB_STATES.join(", ")}`);
  return JOB_STATES.filter((state) => value.includes(state));
}

/**
 * Whether a job blocks others exactly while it is live. Then the store keeps the key (`uniqueKey`), at the cost of an
 * index entry. Every other rule needs a record of what was enqueued under the key.
 */
export function isWhileAlive({ period, states, pace }: UniqueRule): boolean {
  return (
    pace === undefined &&
    period === null &&
    states.length === LIVE.length &&
    LIVE.every((state) => states.includes(state))
  );
}

export function replaces({ onConflict }: UniqueRule): boolean {
  return onConflict === "replace" || onConflict === "replace-except-schedule";
}

/** The unique key of a job. Equal exactly if the same fields are chosen and have the same values. */
export function uniqueKeyOf(
  rule: UniqueRule,
  job: {
    readonly type: string;
    readonly queue: string;
    readonly payload: string;
    readonly meta: Json | undefined;
  },
  hash: (text: string) => string,
): string {
  const { key, payload, queue, meta } = rule;
  const chosen = {
    type: job.type,
    ...(key !== null && { key }),
    ...(queue && { queue: job.queue }),
    ...(payload !== false && { payload: chosenOf(JSON.parse(job.payload), payload) }),
    ...(meta !== false && { meta: chosenOf(job.meta ?? {}, meta === true || meta.map((name) => [name])) }),
  };
  return hash(canonicalJson(chosen, "unique", MOST_PARTS));
}

/** A path that does not exist is left out. That differs from null. */
function chosenOf(document: Json, paths: true | readonly (readonly string[])[]): Json {
  if (paths === true) return document;
  return paths.flatMap((path) => {
    const value = valueAt(document, path);
    return value === undefined ? [] : [[path, value]];
  });
}

function valueAt(document: Json, path: readonly string[]): Json | undefined {
  let at: Json | undefined = document;
  for (const name of path) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as { readonly [key: string]: Json })[name];
  }
  return at;
}

/**
 * Refuses rules that a job inside another commit (of a saga, a timeout, a workflow) cannot have: no caller is there
 * to handle a conflict, and older jobs cannot be read first. There a live job holds its key, and a second one is
 * skipped.
 */
export function refuseDemanding(rule: UniqueRule): void {
  const fix =
    'here a job is added within another commit: use onConflict "ignore" without period and states, or unique: false';
  if (rule.pace) throw refuse("invalid_option", `unique.${rule.pace.kind}`, rule.pace, fix);
  if (!isWhileAlive(rule))
    throw refuse(
      "invalid_option",
      `unique.${rule.period === null ? "states" : "period"}`,
      rule.period ?? rule.states,
      fix,
    );
  if (rule.onConflict !== "ignore") throw refuse("invalid_option", "unique.onConflict", rule.onConflict, fix);
}

/** A rule as a user would have written it, for definitions and options that are sent. */
export function portableUnique(rule: UniqueRule): UniqueOptions {
  const { key, period, pace, states, onConflict, ...rest } = rule;
  return {
    ...rest,
    ...(key !== null && { key }),
    ...(period !== null && { period: `${period}ms` as const }),
    ...(pace ? portablePace(pace) : { states, onConflict }),
  };
}

function portablePace(pace: Pace): Pick<UniqueOptions, "debounce" | "throttle"> {
  if (pace.kind === "throttle") return { throttle: `${pace.period}ms` };
  const { quiet, most } = pace;
  return { debounce: { quiet: `${quiet}ms`, ...(most !== null && { most: `${most}ms` as const }) } };
}
