import { type By, parseBy } from "../../core/audit/audit-entry.ts";
import { CurfewError, refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { applied, decide } from "../../core/job/decide.ts";
import type { Rejection } from "../../core/job/decision.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Extension, JobEvent } from "../../core/job/job-events.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { parseTimeouts, type TimeoutOptions } from "../../core/job/policy.ts";
import type { Json } from "../../core/schema.ts";
import { formatDuration, type Instant } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";
import { wakesOthers } from "../commit/decision-effects.ts";
import { type Decided, outsidersUnit } from "../commit/decision-unit.ts";
import type { EngineContext } from "../context.ts";
import { auditEffects } from "../events/audit-log.ts";

const TRIES = 20;

/** Limits that `extend` may change. */
export type ExtendOptions = Pick<TimeoutOptions, "attempt" | "total" | "heartbeat">;

export interface RetryByHandOptions {
  /** Keeps the old `total` and `wait` instead of counting them from now. */
  readonly keepDeadline?: boolean;
}

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

/**
 * What somebody outside the worker does to a job: it is decided on the row as read and committed under its fence and
 * revision; if the row has moved on, it is read and decided again.
 */
export async function operate(parts: EngineContext, id: JobId, event: JobEvent, by?: By): Promise<JobRow> {
  const { store, clock, random, recorder } = parts;
  if (by) parseBy(by);
  for (let tries = 0; tries < TRIES; tries++) {
    const [row] = await store.jobs.load([id]);
    if (!row) throw new CurfewError("not_found", `${event.type}: there is no job ${id}`);
    const now = clock.now();
    const decision = decide(row, event, now, random);
    if (!decision.ok) throw refusal(row, event, decision.because);
    const { fence } = decision;
    const extras = {
      // A voided fence is told by itself; an extension leaves it, so the holder is told to look.
      notifyHolder: row.state === "active" && fence === undefined,
      effects: [...effectsOf(row, event, now), ...entryOf(parts, row, event, by, now)],
    };
    const unit = outsidersUnit(row, decision, extras, recorder.recorded(row, decision, now));
    const [outcome] = await store.commit([unit], { now });
    if (!outcome?.ok) continue;
    return announceDecision(parts, row, decision, now);
  }
  throw new CurfewError(
    "invalid_state",
    `${event.type}: job ${id} changed ${TRIES} times while it was being decided; try again`,
  );
}

/** A job with a limit that was kept from its limit needs nothing more once it is activated. */
function effectsOf(row: JobRow, event: JobEvent, now: Instant): readonly Effect[] {
  if (event.type === "extend") return [{ log: extensionLine(row, event, now), job: row.id }];
  if (event.type === "activate" && row.options?.limit && row.needs > 0) return [{ countdown: row.id }];
  return [];
}

/** What the audit keeps of an action on a job: the command and what it said. */
function entryOf(
  parts: EngineContext,
  row: JobRow,
  { type, ...said }: JobEvent,
  by: By | undefined,
  now: Instant,
): readonly Effect[] {
  const details = said as { readonly [key: string]: Json };
  const about = { job: row.id, queue: row.queue, ...(Object.keys(details).length > 0 && { details }) };
  return auditEffects(parts, by, `job.${type}`, about, now);
}

/** Tells everybody in this process what was committed on a job from outside, and gives the row as it stands. */
export function announceDecision(parts: EngineContext, row: JobRow, decision: Decided, now: Instant): JobRow {
  const { counters, bus, waiters } = parts;
  counters.record(row, decision.events, now);
  bus.announce(row, decision.events, now);
  const result = applied(row, decision);
  if (isTerminal(result.state)) waiters.settled(result);
  if (result.wakeAt !== null) parts.wakeSweepAt(result.wakeAt);
  if (wakesOthers(row, decision)) parts.wakeSweepAt(now);
  return result;
}

/** The job's own log says who moved its limits and when (SEMANTICS 5.3). */
function extensionLine(row: JobRow, event: Extension, at: Instant): Json {
  const { attempt, total, heartbeat } = event;
  const said = Object.entries({ attempt, total, heartbeat })
    .filter(([, limit]) => limit !== undefined)
    .map(([name, limit]) => `${name} ${limit === null ? "none" : formatDuration(limit as number)}`);
  return { at, attempt: row.attempt, message: `Extended: ${said.join(", ")}` };
}

function refusal(row: JobRow, event: JobEvent, because: Rejection): CurfewError {
  const why: Record<Rejection, string> = {
    invalid_state: `it is ${row.state}`,
    timing_out: "its time is already up",
    too_close: "its deadline is passing right now",
    lease_over: "its claim has run out",
    not_due: "it is not due yet",
    not_reached: `its turn in workflow ${row.workflow} has not come: cancel the workflow, or the step that runs`,
    in_workflow: `workflow ${row.workflow} counts on it and has not ended: cancel that, or wait for its end`,
  };
  return new CurfewError(
    "invalid_state",
    `${event.type}: job ${row.id} cannot be changed so: ${why[because]}`,
  );
}
