import { canonicalJson } from "../canonical-json.ts";
import { refuse, refuseUnknownKeys } from "../errors.ts";
import { keysOf } from "../option-keys.ts";
import type { Json } from "../schema.ts";
import { type Duration, parseDuration } from "../time.ts";
import { JOB_STATES, type JobState } from "./job.ts";
import { isTerminal } from "./lifecycle.ts";

/** What becomes of an enqueue whose key is taken. */
export type OnConflict = "ignore" | "reject" | "replace" | "replace-except-schedule";

/** A place in the payload: `"customer.id"`, or a list of names where a name itself has a dot. */
export type PayloadPath = string | readonly (string | number)[];

/** Which jobs are the same one, for how long, and what to do about a second one. The type always counts. */
export interface UniqueOptions {
  /** A key of your own in the place of the payload. */
  readonly key?: string;
  /** The whole payload (true, the default), none of it, or these places in it. */
  readonly payload?: boolean | readonly PayloadPath[];
  /** Whether jobs in different queues differ. Default false. */
  readonly queue?: boolean;
  /** The whole meta, none of it (the default), or these keys of it. */
  readonly meta?: boolean | readonly string[];
  /** How long after its creation a job blocks others, finished or not. Left out: while it is in one of the states. */
  readonly period?: Duration;
  /**
   * The states in which a job blocks others. Default: all that are not terminal; with a period `completed` as well, so
   * that the period holds also after the work is done.
   */
  readonly states?: readonly JobState[];
  /**
   * `ignore` (default) gives the old job, marked `duplicate`; `reject` throws; `replace` cancels the old one and adds
   * this; `replace-except-schedule` does so too, and keeps the time at which the old one was to start.
   */
  readonly onConflict?: OnConflict;
}

/** What was said about uniqueness, checked. */
export interface UniqueRule {
  readonly key: string | null;
  readonly payload: boolean | readonly (readonly string[])[];
  readonly queue: boolean;
  readonly meta: boolean | readonly string[];
  readonly period: number | null;
  readonly states: readonly JobState[];
  readonly onConflict: OnConflict;
}

const KEYS = keysOf<UniqueOptions>({
  key: true,
  payload: true,
  queue: true,
  meta: true,
  period: true,
  states: true,
  onConflict: true,
});
const CONFLICTS: readonly unknown[] = ["ignore", "reject", "replace", "replace-except-schedule"];
const LIVE: readonly JobState[] = JOB_STATES.filter((state) => !isTerminal(state));
/** More places or keys than that are a typing error, or the whole payload is meant. */
const MOST_PLACES = 50;
const LONGEST_KEY = 1_000;

export function parseUnique(options: UniqueOptions, field: string): UniqueRule {
  refuseUnknownKeys(options, field, KEYS);
  const { key, payload, onConflict = "ignore" } = options;
  if (key !== undefined && (typeof key !== "string" || key === "" || key.length > LONGEST_KEY))
    throw refuse("invalid_option", `${field}.key`, key, `use a text of 1 to ${LONGEST_KEY} characters`);
  if (key !== undefined && payload !== undefined && payload !== false)
    throw refuse("invalid_option", `${field}.key`, key, "it stands for the payload: write one of the two");
  if (!CONFLICTS.includes(onConflict)) {
    const fix = 'write "ignore", "reject", "replace" or "replace-except-schedule"';
    throw refuse("invalid_option", `${field}.onConflict`, onConflict, fix);
  }
  const period = options.period === undefined ? null : parseDuration(options.period, `${field}.period`);
  return {
    key: key ?? null,
    payload: parsePaths(payload ?? key === undefined, `${field}.payload`),
    queue: checkFlag(options.queue ?? false, `${field}.queue`),
    meta: parseKeys(options.meta ?? false, `${field}.meta`),
    period,
    states: parseStates(options.states, period, `${field}.states`),
    onConflict,
  };
}

function checkFlag(value: unknown, field: string): boolean {
  if (typeof value === "boolean") return value;
  throw refuse("invalid_option", field, value, "write true or false");
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
  return checkList(value, field, "list the places that count, or write true").map((path, index) => {
    const names = typeof path === "string" ? path.split(".") : path;
    const isPath =
      Array.isArray(names) &&
      names.length > 0 &&
      names.every((name) => (typeof name === "string" && name !== "") || Number.isInteger(name));
    if (isPath) return names.map(String);
    const fix = 'write a place such as "customer.id", or ["a.b", 0] where a name has a dot';
    throw refuse("invalid_option", `${field}[${index}]`, path, fix);
  });
}

function checkList(value: unknown, field: string, fix: string): readonly unknown[] {
  if (Array.isArray(value) && value.length > 0 && value.length <= MOST_PLACES) return value;
  throw refuse("invalid_option", field, value, `${fix}; at most ${MOST_PLACES}`);
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
 * Whether a job blocks exactly while it lives. Then the store itself keeps the key (`uniqueKey`), at the cost of an index
 * entry; every other rule needs a record of what was enqueued under the key.
 */
export function isWhileAlive({ period, states }: UniqueRule): boolean {
  return period === null && states.length === LIVE.length && LIVE.every((state) => states.includes(state));
}

export function replaces({ onConflict }: UniqueRule): boolean {
  return onConflict === "replace" || onConflict === "replace-except-schedule";
}

/** The key under which a job is unique: the same for the same choice of fields with the same values, and for no other. */
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
  return hash(canonicalJson(chosen));
}

/** A place that is not there is left out, which is not the same as null. */
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
 * Where a job is added as a part of another commit (by a saga, a timeout, a workflow), nobody can answer a conflict or
 * look at older jobs first: there a job that lives can hold its key, and a second one is left out, and that is all.
 */
export function refuseDemanding(rule: UniqueRule, field = "unique"): void {
  const fix =
    'here a job is added within another commit: use onConflict "ignore" without period and states, or unique: false';
  if (!isWhileAlive(rule))
    throw refuse(
      "invalid_option",
      `${field}.${rule.period === null ? "states" : "period"}`,
      rule.period ?? rule.states,
      fix,
    );
  if (rule.onConflict !== "ignore")
    throw refuse("invalid_option", `${field}.onConflict`, rule.onConflict, fix);
}

/** A rule as a user would have written it, for definitions and options that travel. */
export function portableUnique(rule: UniqueRule): UniqueOptions {
  const { key, period, ...rest } = rule;
  return {
    ...rest,
    ...(key !== null && { key }),
    ...(period !== null && { period: `${period}ms` as const }),
  };
}
