import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { decide } from "../../core/job/decide/decide.ts";
import type { Rejection } from "../../core/job/decide/decision.ts";
import type { Extension, JobEvent } from "../../core/job/decide/job-events.ts";
import { JOB_STATES, type JobId, type JobRow } from "../../core/job/job.ts";
import { ALLOWED } from "../../core/job/lifecycle.ts";
import { parseTimeouts, type TimeoutOptions } from "../../core/job/policy/policy.ts";
import type { Json } from "../../core/schema.ts";
import { formatDuration, type Instant } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";
import { commitDecision, commitUnits } from "../commit/commit.ts";
import { removalOf } from "../commit/unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";

/** Limits that `extend` may change. */
export type ExtendOptions = Pick<TimeoutOptions, "attempt" | "total" | "heartbeat">;

export function parseExtension(options: ExtendOptions): Extension {
  refuseUnknownKeys(options, "extend", ["attempt", "total", "heartbeat"]);
  const { attempt, total, heartbeat } = parseTimeouts(options, "extend");
  if (attempt === undefined && total === undefined && heartbeat === undefined) {
    throw refuse("invalid_option", "extend", options, "name at least one of attempt, total and heartbeat");
  }
  return {
    ...(attempt !== undefined && { attempt }),
    ...(total !== undefined && { total }),
    ...(heartbeat !== undefined && { heartbeat }),
  };
}

export function unknownJob(call: string, id: JobId): CurfewError {
  const text = `${call}: there is no job ${id}; the id is wrong, or the job ended and its retention is over`;
  return new CurfewError("not_found", text);
}

/** Applies an operator's event to a job. Decides on the row as it was read, and again if the row changed. */
export async function operate(context: EngineContext, id: JobId, event: JobEvent, by?: By): Promise<JobRow> {
  if (by) parseBy(by);
  const row = await commitDecision(context, event.type, id, (row, now) => {
    if (!row) throw unknownJob(event.type, id);
    const decision = decide(row, event, now, context.random);
    if (!decision.ok) throw refusal(row, event, decision.because);
    // A new fence notifies the holder. An extension keeps the fence, so notify the holder explicitly.
    const notifyHolder = row.state === "active" && decision.fence === undefined;
    const effects = [...effectsOf(row, event, now), ...entryOf(context, row, event, by, now)];
    return { row, decision, at: now, by: "outsider", notifyHolder, effects };
  });
  return row as JobRow;
}

/** Deletes an ended job; false if it changed after it was read. */
export async function removeJob(context: EngineContext, row: JobRow, by?: By): Promise<boolean> {
  const about = { job: row.id, queue: row.queue };
  const entry = auditEffects(context, by && parseBy(by), "job.delete", about, context.clock.now());
  const [outcome] = await commitUnits(context, [removalOf(row, entry)]);
  return outcome?.ok ?? false;
}

/** Logs an extension, and lets the limit of an activated job admit it: its last dependency is counted down. */
function effectsOf(row: JobRow, event: JobEvent, now: Instant): readonly Effect[] {
  if (event.type === "extend") return [{ log: extensionLine(row, event, now), job: row.id }];
  if (event.type === "activate" && row.options?.limit && row.needs > 0) return [{ countdown: row.id }];
  return [];
}

/** The audit entry of an action on a job: the command and its options. */
function entryOf(
  context: EngineContext,
  row: JobRow,
  { type, ...options }: JobEvent,
  by: By | undefined,
  now: Instant,
): readonly Effect[] {
  const details = options as { readonly [key: string]: Json };
  const about = { job: row.id, queue: row.queue, ...(Object.keys(details).length > 0 && { details }) };
  return auditEffects(context, by, `job.${type}`, about, now);
}

/** The line in the job's log that says which limits changed, and when (SEMANTICS 5.3). */
function extensionLine(row: JobRow, event: Extension, at: Instant): Json {
  const { attempt, total, heartbeat } = event;
  const changes = Object.entries({ attempt, total, heartbeat })
    .filter(([, limit]) => limit !== undefined)
    .map(([name, limit]) => `${name} ${limit === null ? "none" : formatDuration(limit as number)}`);
  return { at, attempt: row.attempt, message: `Extended: ${changes.join(", ")}` };
}

/** Which end of a waiting job comes before its new time, and what to do: `extend` moves `total`, and nothing moves `wait`. */
function endBefore({ waitAt, totalAt }: JobRow, event: JobEvent): string {
  const dueAt = event.type === "reschedule" ? event.dueAt : Number.POSITIVE_INFINITY;
  const isWait = waitAt !== null && dueAt >= waitAt;
  const endsAt = new Date((isWait ? waitAt : totalAt) ?? 0).toISOString();
  return isWait
    ? `${endsAt}, where its wait ends, so it could never run; name an earlier time, or cancel it and enqueue it with a longer wait`
    : `${endsAt}, where its total ends, so it could never run; name an earlier time, or extend its total first`;
}

function refusal(row: JobRow, event: JobEvent, because: Rejection): CurfewError {
  const states = JOB_STATES.filter((state) => ALLOWED[state][event.type].length > 0).join(", ");
  const why: Record<Rejection, string> = {
    invalid_state: `is ${row.state}; ${event.type} works only on jobs that are ${states.replace(/, (?=\w+$)/, " or ")}`,
    timing_out: "has timed out; wait for its verdict",
    too_close: "is at its deadline; try again",
    lease_over: "has lost its claim; try again",
    not_due: "is not due yet; wait until it is",
    past_deadline: `would be due at or after ${endBefore(row, event)}`,
    not_reached: `waits for other steps of workflow ${row.workflow}; cancel the workflow, or the step that runs`,
    waits_for_limit: `is held by its limit "${row.limitKey}"; call engine.limits.put("${row.limitKey}", …) to let more of them run`,
    admitted: `was admitted by its limit "${row.limitKey}" and runs next; cancel it, or let it run`,
    in_workflow: `belongs to workflow ${row.workflow}, which has not ended; cancel the workflow, or wait for its end`,
  };
  return new CurfewError("invalid_state", `${event.type}: job ${row.id} ${why[because]}`);
}
