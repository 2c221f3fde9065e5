import { refuse, refuseUnknownKeys } from "../../errors.ts";
import { NO_FAIR_KEY } from "../../fair/fair-options.ts";
import { UUID } from "../../ids.ts";
import { keysOf } from "../../option-keys.ts";
import type { Json } from "../../schema.ts";
import { type Instant, parseInstant } from "../../time.ts";
import { waitsForLimit } from "../decide/decision.ts";
import { refuseInternalQueue } from "../internal-queue.ts";
import {
  dueAtOf,
  type ErrorRecord,
  type JobId,
  type JobOptions,
  type JobRow,
  type JobState,
  type JsonText,
  type Policy,
} from "../job.ts";
import { checkPriority, checkQueue, checkType } from "../job-definition.ts";
import { isTerminal } from "../lifecycle.ts";
import { checkErrors, checkOptions, checkPolicy } from "./document-checks.ts";

/**
 * The version of the format that `export` writes. Version 1 had camelCase names in files and on the wire, and `pending`
 * as the state of a job that only its limit holds. Version 2 had no debounce and throttle in unique keys. Imports read both.
 */
export const EXPORT_VERSION = 3;

/**
 * A job in an export: one line of JSON. Instants are texts of RFC 3339, durations are milliseconds. A field that is
 * left out is null, 0 or false. `payload`, `progress`, `checkpoint` and `result` are JSON as text, so that no number
 * in them changes. `options`, `policy` and `errors` are the documents as stores keep them.
 */
export interface JobLine {
  readonly kind: "job";
  readonly id: JobId;
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly state: Exclude<JobState, "active">;
  readonly createdAt: string;
  readonly dueAt: string;
  readonly attempt?: number;
  readonly returns?: number;
  readonly expiredClaims?: number;
  readonly needs?: number;
  readonly waitAt?: string;
  readonly totalAt?: string;
  readonly heartbeat?: number;
  readonly limitKey?: string;
  readonly fairKey?: string;
  readonly uniqueKey?: string;
  readonly startedAt?: string;
  readonly softAt?: string;
  readonly hardAt?: string;
  readonly finishedAt?: string;
  readonly pruneAt?: string;
  readonly deadLetter?: true;
  readonly payload: JsonText;
  readonly options?: JobOptions;
  readonly policy?: Policy;
  readonly errors?: readonly ErrorRecord[];
  readonly progress?: JsonText;
  readonly checkpoint?: JsonText;
  readonly result?: JsonText;
}

const KEYS = keysOf<Required<JobLine>>({
  kind: true,
  id: true,
  type: true,
  queue: true,
  priority: true,
  state: true,
  createdAt: true,
  dueAt: true,
  attempt: true,
  returns: true,
  expiredClaims: true,
  needs: true,
  waitAt: true,
  totalAt: true,
  heartbeat: true,
  limitKey: true,
  fairKey: true,
  uniqueKey: true,
  startedAt: true,
  softAt: true,
  hardAt: true,
  finishedAt: true,
  pruneAt: true,
  deadLetter: true,
  payload: true,
  options: true,
  policy: true,
  errors: true,
  progress: true,
  checkpoint: true,
  result: true,
});

/** Why a job is not exported: an attempt holds it, a workflow needs it, or an import has not completed it. */
export type LeftOut = "running" | "workflow" | "importing";

export function leftOutOf(row: JobRow): LeftOut | null {
  if (row.workflow !== null) return "workflow";
  if (row.options?.importing) return "importing";
  return row.state === "active" ? "running" : null;
}

const INSTANTS = ["waitAt", "totalAt", "startedAt", "softAt", "hardAt", "finishedAt", "pruneAt"] as const;
const COUNTS = ["attempt", "returns", "expiredClaims", "needs"] as const;
const TEXTS = ["progress", "checkpoint", "result"] as const;
const WHOLE = ["options", "policy", "errors", ...TEXTS] as const;

const isoText = (at: Instant) => new Date(at).toISOString();

/** The line of a job. The mark of a claim under the limit of its queue is left out: it belongs to the claim. */
export function lineOf(row: JobRow, uniqueKey: string | null): JobLine {
  const line: Record<string, unknown> = {
    kind: "job",
    id: row.id,
    type: row.type,
    queue: row.queue,
    priority: row.priority,
    // A job that only its limit holds is available to everybody outside, and asks for admission again after an import.
    state: waitsForLimit(row) ? "available" : row.state,
    createdAt: isoText(row.createdAt),
    dueAt: isoText(dueAtOf(row.rank)),
  };
  for (const name of COUNTS) if (row[name] !== 0) line[name] = row[name];
  for (const name of INSTANTS) {
    const at = row[name];
    if (at !== null) line[name] = isoText(at);
  }
  if (row.heartbeat !== null) line.heartbeat = row.heartbeat;
  if (row.limitKey !== null && row.options?.limit) line.limitKey = row.limitKey;
  if (row.fairKey !== null) line.fairKey = row.fairKey;
  if (uniqueKey !== null) line.uniqueKey = uniqueKey;
  if (row.deadLetter) line.deadLetter = true;
  line.payload = row.payload;
  for (const name of WHOLE) if (row[name] !== null) line[name] = row[name];
  return line as unknown as JobLine;
}

/** A line that was checked. */
export interface ParsedLine {
  readonly id: JobId;
  readonly uniqueKey: string | null;
  /** The job as it was. Fence, revision and holder belong to the old store. */
  readonly row: Omit<
    JobRow,
    "fence" | "rev" | "claimedAt" | "worker" | "workflow" | "wake" | "wakeAt" | "rank"
  >;
  readonly dueAt: Instant;
}

const STATES: readonly JobState[] = [
  "scheduled",
  "available",
  "pending",
  "retryable",
  "completed",
  "cancelled",
  "discarded",
];
const NAME_LIMIT = 512;
const MOST_COUNT = 1_000_000;

/** Checks a line of an export. Everything in it is hostile until then. */
export function parseLine(value: unknown, field: string, documentLimit: number): ParsedLine {
  refuseUnknownKeys(value, field, KEYS);
  const line = value as Record<string, unknown>;
  const at = (name: string) => `${field}.${name}`;
  const id = line.id as string;
  if (typeof id !== "string" || !UUID.test(id))
    throw refuse("invalid_option", at("id"), id, "use a lower-case UUID");
  const state = line.state as JobState;
  if (!STATES.includes(state))
    throw refuse("invalid_option", at("state"), state, `use one of ${STATES.join(", ")}`);
  const instants = Object.fromEntries(
    INSTANTS.map((name) => [name, line[name] === undefined ? null : parseInstant(line[name], at(name))]),
  ) as Record<(typeof INSTANTS)[number], Instant | null>;
  if (isTerminal(state) !== (instants.finishedAt !== null))
    throw refuse(
      "invalid_option",
      at("finishedAt"),
      line.finishedAt,
      "name it for ended jobs, and only for them",
    );
  const counts = Object.fromEntries(COUNTS.map((name) => [name, readCount(line[name], at(name))])) as Record<
    (typeof COUNTS)[number],
    number
  >;
  const texts = Object.fromEntries(
    TEXTS.map((name) => [
      name,
      line[name] === undefined ? null : readText(line[name], at(name), documentLimit),
    ]),
  ) as Record<(typeof TEXTS)[number], JsonText | null>;
  const options = line.options === undefined ? null : checkOptions(line.options, at("options"));
  const payload = readText(line.payload, at("payload"), documentLimit);
  if (options?.wire?.spread && !Array.isArray(JSON.parse(payload)))
    throw refuse("invalid_option", at("options.wire.spread"), true, "leave it out: the payload is no list");
  const { progress } = texts;
  if (progress !== null && typeof (JSON.parse(progress) as { value?: unknown } | null)?.value !== "number")
    throw refuse("invalid_option", at("progress"), progress, "write '{\"value\":0.5}'");
  refuseInternalQueue(String(line.queue), at("queue"));
  const limitKey = readName(line.limitKey, at("limitKey"));
  if ((limitKey === null) !== (options?.limit === undefined))
    throw refuse("invalid_option", at("limitKey"), limitKey, "name it with options.limit, and only then");
  return {
    id,
    uniqueKey: readName(line.uniqueKey, at("uniqueKey")),
    dueAt: parseInstant(line.dueAt, at("dueAt")),
    row: {
      id,
      type: checkType(line.type as string, at("type")),
      queue: checkQueue(line.queue as string, at("queue")),
      priority: checkPriority(line.priority as number, at("priority")),
      state,
      createdAt: parseInstant(line.createdAt, at("createdAt")),
      ...counts,
      ...instants,
      stallAt: null,
      heartbeat: line.heartbeat === undefined ? null : readCount(line.heartbeat, at("heartbeat"), 2 ** 45),
      deadLetter: readFlag(line.deadLetter, state, at("deadLetter")),
      limitKey,
      fairKey: line.fairKey === NO_FAIR_KEY ? NO_FAIR_KEY : readName(line.fairKey, at("fairKey")),
      payload,
      options,
      policy: line.policy === undefined ? null : checkPolicy(line.policy, at("policy")),
      errors: line.errors === undefined ? null : checkErrors(line.errors, at("errors")),
      ...texts,
    },
  };
}

function readFlag(value: unknown, state: JobState, field: string): boolean {
  if (value === undefined) return false;
  if (value !== true || state !== "discarded")
    throw refuse("invalid_option", field, value, "use true for a discarded job, or leave it out");
  return true;
}

function readCount(value: unknown, field: string, most = MOST_COUNT): number {
  if (value === undefined) return 0;
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > most)
    throw refuse("invalid_option", field, value, `use a whole number from 0 to ${most}`);
  return value as number;
}

function readName(value: unknown, field: string): string | null {
  if (value === undefined) return null;
  const isName = typeof value === "string" && value !== "" && value.length <= NAME_LIMIT && isStorable(value);
  if (!isName) throw refuse("invalid_option", field, value, `use a text of 1 to ${NAME_LIMIT} characters`);
  return value;
}

/** Not every database takes these characters. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

function readText(value: unknown, field: string, limit: number): JsonText {
  if (typeof value !== "string" || !isStorable(value))
    throw refuse("not_json", field, value, "use JSON as a text, in quotes");
  if (value.length > limit)
    throw refuse("too_large", field, `${value.length} characters`, `keep it under ${limit} bytes`);
  try {
    JSON.parse(value) as Json;
  } catch (error) {
    throw refuse("not_json", field, value, "use JSON as a text, in quotes", { cause: error });
  }
  return value;
}
