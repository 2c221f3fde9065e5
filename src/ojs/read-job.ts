import { show } from "../core/errors.ts";
import { isObject } from "../core/is-object.ts";
import { parseRedact } from "../core/job/documents/redaction.ts";
import type { ErrorRecord, JobId, JobRow, JobState, Policy, TimeoutKind } from "../core/job/job.ts";
import { JOB_STATES } from "../core/job/job.ts";
import { BUILT_IN_RETENTION } from "../core/job/policy/policy.ts";
import { BUILT_IN_RETRY } from "../core/job/policy/retry.ts";
import type { Json } from "../core/schema.ts";
import type { Instant } from "../core/time.ts";

/** A job as a server shows it. */
interface JobSnapshot {
  readonly id: JobId;
  readonly type: string;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly payload: Json;
  readonly meta: { readonly [key: string]: Json };
  readonly result: Json | undefined;
  /** The attempts that failed, oldest first. */
  readonly errors: readonly ErrorRecord[];
  /** 0 to 1, as the handler last reported it. */
  readonly progress: number | undefined;
  readonly createdAt: Instant;
  /** When it is to start, for a job that waits for that. */
  readonly dueAt: Instant | undefined;
  readonly startedAt: Instant | undefined;
  readonly finishedAt: Instant | undefined;
  readonly deadLetter: boolean;
}

type Fields = { readonly [name: string]: unknown };

/** A reply that does not say what it must. It is the server's fault, or that of something in between. */
class WireError extends Error {
  override readonly name = "WireError";

  constructor(field: string, value: unknown) {
    super(`${field}: ${show(value)} is not what a server of Open Job Spec answers here`);
  }
}

export function object(value: unknown, field: string): Fields {
  if (isObject(value)) return value;
  throw new WireError(field, value);
}

export function list(value: unknown, field: string): readonly unknown[] {
  if (!Array.isArray(value)) throw new WireError(field, value);
  return value;
}

function text(value: unknown, field: string): string {
  if (typeof value !== "string") throw new WireError(field, value);
  return value;
}

function number(value: unknown, field: string): number {
  if (typeof value !== "number") throw new WireError(field, value);
  return value;
}

/** An instant that may be left out or null. */
function instant(value: unknown, field: string): Instant | null {
  if (value === undefined || value === null) return null;
  const at = Date.parse(text(value, field));
  if (Number.isNaN(at)) throw new WireError(field, value);
  return at;
}

function known<Value>(value: unknown): Value | undefined {
  return value === null ? undefined : (value as Value | undefined);
}

/** More arguments than one were never a payload of ours; they are handed over as the list they are. */
function payloadOf(job: Fields): Json {
  const args = list(job.args, "job.args") as readonly Json[];
  return args.length === 1 ? (args[0] as Json) : args;
}

function readSnapshot(value: unknown): JobSnapshot {
  const job = object(value, "job");
  const state = text(job.state, "job.state") as JobState;
  if (!JOB_STATES.includes(state)) throw new WireError("job.state", state);
  const dueAt = instant(job.next_attempt_at ?? job.scheduled_at, "job.scheduled_at");
  const finishedAt = instant(job.completed_at ?? job.discarded_at ?? job.cancelled_at, "job.completed_at");
  return {
    id: text(job.id, "job.id"),
    type: text(job.type, "job.type"),
    queue: text(job.queue, "job.queue"),
    state,
    priority: known<number>(job.priority) ?? 0,
    attempt: known<number>(job.attempt) ?? 0,
    maxAttempts: known<number>(job.max_attempts) ?? BUILT_IN_RETRY.attempts,
    payload: payloadOf(job),
    meta: (known<Fields>(job.meta) ?? {}) as { [key: string]: Json },
    result: job.result as Json | undefined,
    errors: list(job.errors ?? [], "job.errors").map(readError),
    progress: known<number>(job.progress),
    createdAt: instant(job.created_at, "job.created_at") ?? 0,
    dueAt: dueAt ?? undefined,
    startedAt: instant(job.started_at, "job.started_at") ?? undefined,
    finishedAt: finishedAt ?? undefined,
    deadLetter: job.dead_letter === true,
  };
}

function readError(value: unknown): ErrorRecord {
  const error = object(value, "job.errors[]");
  const { limit_seconds: limit, elapsed_seconds: elapsed, cause, backtrace } = error;
  return {
    type: String(error.type ?? error.code),
    code: String(error.code ?? error.type),
    message: String(error.message ?? ""),
    attempt: known<number>(error.attempt) ?? 0,
    at: instant(error.occurred_at, "job.errors[].occurred_at") ?? 0,
    ...(typeof error.timeout_kind === "string" && { kind: error.timeout_kind as TimeoutKind }),
    ...(typeof limit === "number" && { limit: Math.round(limit * 1_000) }),
    ...(typeof elapsed === "number" && { elapsed: Math.round(elapsed * 1_000) }),
    ...(error.predicted === true && { predicted: true as const }),
    ...(error.forced === true && { forced: true as const }),
    ...(error.details !== undefined && { details: error.details as Json }),
    ...(typeof cause === "object" && cause !== null && { cause: cause as NonNullable<ErrorRecord["cause"]> }),
    ...(Array.isArray(backtrace) && { stack: backtrace.join("\n") }),
  };
}

/** The instants of a running attempt by the server's clock, and what time it was there. */
export interface Deadlines {
  readonly softAt: Instant | null;
  readonly hardAt: Instant | null;
  readonly totalAt: Instant | null;
  readonly stallAt: Instant | null;
  /** The longest silence that is allowed; undefined where the server does not say. */
  readonly silence: number | null | undefined;
  readonly serverTime: Instant;
}

export function readDeadlines(value: unknown): Deadlines {
  const fields = object(value, "deadlines");
  const serverTime = readServerTime(fields.server_time);
  return {
    softAt: instant(fields.soft_at, "deadlines.soft_at"),
    hardAt: instant(fields.hard_at, "deadlines.hard_at"),
    totalAt: instant(fields.total_at, "deadlines.total_at"),
    stallAt: instant(fields.stall_at, "deadlines.stall_at"),
    silence: fields.silence_ms as number | null | undefined,
    serverTime,
  };
}

/** What time it was at the server when it answered. */
export function readServerTime(value: unknown): Instant {
  const at = instant(value, "server_time");
  if (at === null) throw new WireError("server_time", value);
  return at;
}

/** A fetched job: the row that its attempt works on, and what time it was at the server. */
export interface FetchedJob {
  readonly row: JobRow;
  readonly serverTime: Instant;
}

export function readFetched(value: unknown): FetchedJob {
  const job = object(value, "job");
  const deadlines = readDeadlines(job.deadlines);
  const { softAt, hardAt, totalAt, stallAt, serverTime } = deadlines;
  const startedAt = instant(job.started_at, "job.started_at") ?? serverTime;
  const silence = deadlines.silence ?? (stallAt === null ? null : stallAt - startedAt);
  const snapshot = readSnapshot({ ...job, errors: [] });
  const beats = job.beats === "handler" ? "handler" : "worker";
  const total = known<number>(job.total_timeout_ms);
  const checkpoint = known<{ state?: Json }>(job.checkpoint)?.state;
  const row: JobRow = {
    ...IDLE,
    id: snapshot.id,
    type: snapshot.type,
    queue: snapshot.queue,
    priority: snapshot.priority,
    attempt: snapshot.attempt,
    fence: number(job.fence, "job.fence"),
    createdAt: snapshot.createdAt,
    startedAt,
    softAt,
    hardAt,
    totalAt,
    // Where nobody named a heartbeat the worker beats by itself, and no silence of the handler is judged (SEMANTICS 3.6).
    stallAt: beats === "handler" ? stallAt : null,
    heartbeat: silence,
    payload: JSON.stringify(snapshot.payload),
    checkpoint: checkpoint === undefined ? null : JSON.stringify(checkpoint),
    options: {
      meta: snapshot.meta,
      ...(total !== undefined && { total }),
      ...(Array.isArray(job.redacted) && { redact: parseRedact(job.redacted, "job.redacted") }),
      ...(Array.isArray(job.parent_results) && { parentResults: JSON.stringify(job.parent_results) }),
    },
    policy: policyOf(job, snapshot, beats, silence),
  };
  return { row, serverTime };
}

/** What a row has that says nothing about a fetched job: the server keeps it. */
const IDLE = {
  state: "active",
  wake: "decide",
  wakeAt: null,
  rank: 0,
  returns: 0,
  expiredClaims: 0,
  waitAt: null,
  finishedAt: null,
  pruneAt: null,
  deadLetter: false,
  rev: 0,
  claimedAt: null,
  worker: null,
  needs: 0,
  workflow: null,
  limitKey: null,
  fairKey: null,
  errors: null,
  progress: null,
  result: null,
} as const;

/** As much of the policy as an attempt needs; the server alone decides about retries and retention. */
function policyOf(
  job: Fields,
  snapshot: JobSnapshot,
  beats: Policy["beats"],
  heartbeat: number | null,
): Policy {
  return {
    attempt: known<number>(job.timeout_ms) ?? null,
    grace: known<number>(job.grace_period_ms) ?? null,
    heartbeat,
    mode: job.timeout_mode === "discard" ? "discard" : "fail",
    retry: { ...BUILT_IN_RETRY, attempts: snapshot.maxAttempts },
    retention: BUILT_IN_RETENTION,
    beats,
    hears: true,
    sources: SOURCES,
  };
}

const SOURCES: Policy["sources"] = {
  attempt: "enqueue",
  grace: "enqueue",
  heartbeat: "enqueue",
  mode: "enqueue",
  attempts: "enqueue",
  backoff: "enqueue",
  except: "enqueue",
  retryFit: "enqueue",
  onStall: "enqueue",
  onExhausted: "enqueue",
  retention: "enqueue",
};
