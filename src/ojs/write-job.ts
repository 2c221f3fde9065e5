import { waitsForLimit } from "../core/job/decide/decision.ts";
import { checkpointOf } from "../core/job/documents/checkpoint.ts";
import { progressOf } from "../core/job/documents/job-progress.ts";
import { redactTexts, visibleRow } from "../core/job/documents/redaction.ts";
import { dueAtOf, type JobRow, type JobState } from "../core/job/job.ts";
import { isLate } from "../core/job/policy/near-miss.ts";
import { ruleOf } from "../core/job/policy/policy.ts";
import type { Json } from "../core/schema.ts";
import type { AdaptiveRule } from "../core/stats/adaptive-limit.ts";
import type { Instant } from "../core/time.ts";
import { checkpointFields } from "./checkpoint-fields.ts";
import { errorFields, instantText } from "./wire-fields.ts";
import { adaptiveFields } from "./write-enqueue.ts";

/** The milliseconds between the last failure and the retry that followed it. */
function retryDelayOf(row: JobRow): number | undefined {
  const last = row.errors?.at(-1);
  if (!last || row.attempt === 0) return undefined;
  const delay = dueAtOf(row.rank) - last.at;
  return delay >= 0 ? delay : undefined;
}

/**
 * Replies are put together as text: names of queues and types, ids, states, numbers and instants need no escaping, and
 * building objects only to write them out costs more than everything else about a small job.
 */
function text(name: string, value: string | undefined): string {
  return value === undefined ? "" : `,"${name}":"${value}"`;
}

function number(name: string, value: number | null | undefined): string {
  return value == null ? "" : `,"${name}":${value}`;
}

function instant(name: string, at: Instant | null): string {
  return at === null ? "" : `,"${name}":"${instantText(at)}"`;
}

interface Times {
  readonly scheduledAt: Instant | null;
  readonly nextAttemptAt: Instant | null;
  readonly completedAt: Instant | null;
  readonly cancelledAt: Instant | null;
  readonly discardedAt: Instant | null;
}

function timesOf(row: JobRow): Times {
  const { state, createdAt, startedAt, finishedAt } = row;
  const isWaiting = state === "scheduled" || state === "pending";
  const dueAt = dueAtOf(row.rank);
  return {
    scheduledAt: isWaiting && dueAt > createdAt ? dueAt : null,
    nextAttemptAt: state === "retryable" ? dueAt : null,
    cancelledAt: state === "cancelled" ? finishedAt : null,
    discardedAt: state === "discarded" ? finishedAt : null,
    // A job that ended without having run was not completed (SEMANTICS 4.5).
    completedAt: startedAt !== null && state !== "cancelled" ? finishedAt : null,
  };
}

function timesText(row: JobRow, fields: WireFields | undefined): string {
  const { scheduledAt, nextAttemptAt, completedAt, cancelledAt, discardedAt } = timesOf(row);
  const created = instantText(row.createdAt);
  const expiresAt = row.options?.expiresAt ?? null;
  return (
    `,"created_at":"${created}","enqueued_at":"${created}"` +
    // What the client wrote is given back as it wrote it.
    (fields?.expires_at === undefined ? instant("expires_at", expiresAt) : "") +
    (fields?.scheduled_at === undefined ? instant("scheduled_at", scheduledAt) : "") +
    instant("next_attempt_at", nextAttemptAt) +
    instant("started_at", row.startedAt) +
    instant("completed_at", completedAt) +
    instant("cancelled_at", cancelledAt) +
    instant("discarded_at", discardedAt)
  );
}

/** The limits of a job in milliseconds; never `timeout`, which a public client reads as milliseconds. */
function limitsText(row: JobRow): string {
  const { policy, options } = row;
  if (policy === null && options === null) return "";
  const said = options?.settings?.timeouts;
  return (
    number("timeout_ms", policy ? policy.attempt : said?.attempt) +
    number("total_timeout_ms", options?.total) +
    number("enqueue_ttl_ms", options?.wait) +
    number("grace_period_ms", policy ? policy.grace : said?.grace) +
    number("heartbeat_timeout_ms", policy ? policy.heartbeat : said?.heartbeat) +
    number("visibility_timeout_ms", policy?.visibility ?? options?.visibility) +
    text("timeout_mode", policy?.mode ?? said?.mode) +
    adaptiveText(policy ? policy.adaptive?.rule : ruleOf(options?.settings)) +
    text("retry_fit", policy?.retry.retryFit ?? options?.settings?.retry?.retryFit)
  );
}

/** `timeout_ms` is what was learned once the job has started, and the ceiling before. */
function adaptiveText(rule: AdaptiveRule | undefined): string {
  return rule === undefined ? "" : `,"timeout_adaptive":${JSON.stringify(adaptiveFields(rule))}`;
}

/** What attempts have left on a job so far. */
function tracesText(row: JobRow): string {
  const { errors, state, attempt } = row;
  const last = errors?.at(-1);
  const progress = state === "completed" ? 1 : progressOf(row)?.value;
  const checkpoint = checkpointOf(row);
  // Success and a manual retry clear the error; its history stays (SEMANTICS 4.6).
  const hasError = last && state !== "completed" && (attempt > 0 || state === "discarded");
  return (
    (hasError ? `,"error":${JSON.stringify(errorFields(last))}` : "") +
    (last ? `,"errors":${JSON.stringify(errors?.map(errorFields))}` : "") +
    number("retry_delay_ms", retryDelayOf(row)) +
    number("progress", progress) +
    (checkpoint ? `,"checkpoint":${JSON.stringify(checkpointFields(checkpoint))}` : "") +
    (row.deadLetter ? ',"dead_letter":true' : "")
  );
}

/** A job that waits for its limit alone is available to those who look: nobody has to do anything for it to run. */
function stateOf(row: JobRow): JobState {
  return waitsForLimit(row) ? "available" : row.state;
}

/** The limit that holds a job which is `available` on the wire. */
function heldText(row: JobRow): string {
  return waitsForLimit(row) ? `,"held_by":${JSON.stringify(row.limitKey)}` : "";
}

const DEFAULT_ATTEMPTS = 3;

function maxAttempts(row: JobRow): string {
  const known = row.policy?.retry.attempts ?? row.options?.settings?.retry?.attempts;
  // A definition may say something else: it is stored with the first start that does not end at once.
  return known === undefined
    ? `,"max_attempts":${DEFAULT_ATTEMPTS},"max_attempts_assumed":true`
    : `,"max_attempts":${known}`;
}

type WireFields = { readonly [name: string]: Json };

/**
 * A job as text, as people may see it. Its documents are JSON text already and are put in as they are: they come back as they were sent, and
 * nothing is parsed only to be written again.
 */
export function jobText(row: JobRow): string {
  return envelopeText(visibleRow(row));
}

function envelopeText(row: JobRow, more = ""): string {
  const { options } = row;
  const wire = options?.wire as { fields?: WireFields; spread?: true } | undefined;
  const fields = wire?.fields;
  const kept = fields ? JSON.stringify(fields).slice(1, -1) : "";
  return (
    // First, so that no field of a client counts instead of the job's own: the last of two equal names wins.
    `{${kept && `${kept},`}` +
    `"specversion":"1.0","id":"${row.id}","type":"${row.type}","queue":"${row.queue}","state":"${stateOf(row)}"` +
    `,"priority":${row.priority},"attempt":${row.attempt}${maxAttempts(row)}` +
    heldText(row) +
    (row.fairKey ? `,"fair_key":${JSON.stringify(row.fairKey)}` : "") +
    timesText(row, fields) +
    limitsText(row) +
    (row.attempt > 0 || row.errors || row.checkpoint !== null ? tracesText(row) : "") +
    (options?.redact ? `,"redacted":${JSON.stringify(redactTexts(options.redact))}` : "") +
    `,"meta":${options?.meta ? JSON.stringify(options.meta) : "{}"}` +
    (row.workflow === null ? "" : workflowText(row.workflow, options?.parentResults)) +
    more +
    `,"args":${wire?.spread ? row.payload : `[${row.payload}]`}` +
    `${row.result === null ? "" : `,"result":${row.result}`}}`
  );
}

/** A job whose documents were left out, because there are too many large ones in a reply: it says so. */
export function briefText(row: JobRow): string {
  const isSpread = (row.options?.wire as { spread?: true } | undefined)?.spread === true;
  return envelopeText({ ...row, payload: isSpread ? "[]" : "" }, ',"is_brief":true');
}

/** A job with everything that is redacted otherwise. The route that shows it writes an audit entry first. */
export function revealedText(row: JobRow): string {
  return envelopeText(row);
}

/** What a job of a workflow has beyond others; the results of the steps before it are text already. */
function workflowText(id: string, parentResults: string | undefined): string {
  return `,"workflow_id":"${id}"${parentResults === undefined ? "" : `,"parent_results":${parentResults}`}`;
}

/** A job as operators see it: the envelope itself, beside it what other clients look for, and once more as `job`. */
export function detailText(row: JobRow): string {
  const job = jobText(row);
  const more = row.errors?.length ? "" : ',"errors":[]';
  const deadlines = `,"total_at":${textOrNull(row.totalAt)},"late":${isLate(row)}`;
  return `${job.slice(0, -1)}${more}${deadlines},"metadata":{${timesText(row, undefined).slice(1)}},"job":${job}}`;
}

const textOrNull = (at: Instant | null) => (at === null ? "null" : `"${instantText(at)}"`);

/** The instants of a running attempt, for a worker whose clock is another: all of them beside the server's own time. */
export function deadlinesText(row: JobRow, now: Instant): string {
  return (
    `{"soft_at":${textOrNull(row.softAt)},"hard_at":${textOrNull(row.hardAt)},"total_at":${textOrNull(row.totalAt)}` +
    `,"stall_at":${textOrNull(row.stallAt)},"silence_ms":${row.heartbeat},"server_time":"${instantText(now)}"}`
  );
}

/** A job as it is handed to the worker that fetched it: nothing is redacted. */
export function fetchedText(row: JobRow, now: Instant): string {
  // Where a source named the heartbeat, only the handler's own signs of life count (SEMANTICS 3.6).
  const beats = row.policy?.sources.heartbeat === "built-in" ? "worker" : "handler";
  return envelopeText(row, `,"fence":${row.fence},"beats":"${beats}","deadlines":${deadlinesText(row, now)}`);
}

/** The beginning of a reply to ACK or NACK, which all known clients can read. The caller adds the rest and the brace. */
function settledHead(row: JobRow): string {
  const { nextAttemptAt, completedAt, cancelledAt, discardedAt } = timesOf(row);
  return (
    `{"acknowledged":true,"id":"${row.id}","job_id":"${row.id}","state":"${stateOf(row)}"` +
    `,"attempt":${row.attempt}${maxAttempts(row)}` +
    instant("next_attempt_at", nextAttemptAt) +
    instant("completed_at", completedAt) +
    instant("cancelled_at", cancelledAt) +
    instant("discarded_at", discardedAt) +
    number("retry_delay_ms", row.state === "retryable" ? retryDelayOf(row) : undefined)
  );
}

/** The answer to ACK and NACK. */
export function settledText(row: JobRow): string {
  return `${settledHead(row)},"job":${jobText(row)}}`;
}

/** The same for one of many: without the job, since a thousand jobs with their documents have no bound. */
export function settledBrief(row: JobRow): string {
  return `${settledHead(row)},"status":200}`;
}
