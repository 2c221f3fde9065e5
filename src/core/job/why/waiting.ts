import { changedByText } from "../../audit/audit-entry.ts";
import { formatDuration } from "../../time.ts";
import { isStepReady } from "../decide/decision.ts";
import { isBookkeeping } from "../decide/step-rules.ts";
import { sealedWith } from "../documents/sealed.ts";
import { dueAtOf, type JobRow } from "../job.ts";
import type { WhyFacts } from "./facts.ts";
import { isLimitFull, limitReasons } from "./limits.ts";
import { lineReasons } from "./line.ts";
import { act, counted, reason, roughly, WAIT, type WhyReason } from "./reason.ts";
import { workerReasons } from "./workers.ts";

/** A living sweep acts within this time. If something is due for longer, no engine is running. */
const SWEPT_WITHIN = 5_000;
/** The longest delay with which a worker releases a job that it cannot run: that of a sandbox that does not load. */
const LONGEST_GIVEN_BACK = 6 * 60_000;

const START_ENGINE = act(
  "start-engine",
  "Start any process that opens this store: every engine sweeps. If one runs, look for store errors in its log.",
);

/** Why a waiting job has not started. The first reason is the one to act on. */
export function whyWaiting(facts: WhyFacts): WhyReason[] {
  const { row } = facts;
  const blockers = [...queueReasons(facts), ...workerReasons(facts)];
  const later = laterReasons(facts, blockers.length > 0);
  const isPutOff = later.some(({ code }) => code === "given_back");
  return [
    ...expiryReasons(facts),
    ...workflowReasons(facts),
    ...holdReasons(row),
    // A worker that cannot run a job releases it for a few seconds. That is why it waits, not its due time.
    ...(isPutOff ? [...blockers, ...later] : [...later, ...blockers]),
    ...limitReasons(facts, blockers.length > 0),
    ...lineReasons(facts, blockers.length > 0),
    ...endReasons(facts),
  ];
}

/** How long ago something was due, and what to do if that is too long. */
function overdue(now: number, at: number) {
  const isLate = now - at > SWEPT_WITHIN;
  const text = isLate
    ? `No engine has swept for ${roughly(now - at)}: no process that opens this store seems to run.`
    : "An engine does this within about a second.";
  return { text, action: isLate ? START_ENGINE : WAIT };
}

function expiryReasons({ row, now }: WhyFacts): WhyReason[] {
  const endsAt = Math.min(row.waitAt ?? Number.POSITIVE_INFINITY, row.totalAt ?? Number.POSITIVE_INFINITY);
  if (endsAt > now) return [];
  const { text, action } = overdue(now, endsAt);
  const field = endsAt === row.totalAt ? "total" : "wait";
  const sentence = `Its ${field} ran out ${roughly(now - endsAt)} ago, so it will be discarded. ${text}`;
  return [reason("expired_unswept", sentence, { since: endsAt, action })];
}

function workflowReasons({ row, now, workflow }: WhyFacts): WhyReason[] {
  if (!row.options?.step?.waitsFor || workflow === null) return [];
  const { id, record, before } = workflow;
  const who = { kind: "workflow", id } as const;
  const look = act("look-at-workflow", `Look at workflow ${id}.`, id);
  if (isBookkeeping(row)) {
    const sentence = `It is a bookkeeping job of workflow ${id}: no worker runs it, and it ends by itself.`;
    return [reason("workflow_bookkeeping", sentence, { who, action: look })];
  }
  const since = record?.startedAt ?? row.createdAt;
  if (record === null || record.phase === "starting") {
    const sentence = `Workflow ${id} is still being stored; its first steps start when that is done.`;
    return [reason("workflow_starting", sentence, { since, who, action: WAIT })];
  }
  if (record.state !== "running") {
    const sentence = `Workflow ${id} is ${record.state}, so this step is cancelled without being run.`;
    return [reason("workflow_ended", sentence, { since: record.endedAt, who, action: look })];
  }
  if (isStepReady(row)) {
    const { text, action } = overdue(now, row.wakeAt ?? now);
    return [reason("workflow_ready", `All steps before it have ended. ${text}`, { who, action })];
  }
  return [stepBefore(row, id, before)];
}

function stepBefore(row: JobRow, workflow: string, before: readonly JobRow[]): WhyReason {
  const [first] = before;
  const left = counted(row.needs, "step");
  if (!first) {
    const sentence = `${left} before it in workflow ${workflow} must end first.`;
    const action = act("look-at-workflow", `Look at workflow ${workflow}.`, workflow);
    return reason("workflow_step_before", sentence, { who: { kind: "workflow", id: workflow }, action });
  }
  const others = before.length > 1 ? `, and ${counted(before.length - 1, "more step")}` : "";
  const sentence = `Step ${first.type} (job ${first.id}) before it in workflow ${workflow} is ${first.state}${others}.`;
  return reason("workflow_step_before", sentence, {
    who: { kind: "job", id: first.id },
    action: act("look-at-job", `Ask why job ${first.id} has not ended.`, first.id),
  });
}

function holdReasons(row: JobRow): WhyReason[] {
  const { state, options, needs, id } = row;
  const isHeld =
    state === "pending" && !options?.step?.waitsFor && (needs > 0 || options?.limit === undefined);
  if (!isHeld) return [];
  const sentence = "It was enqueued as pending and waits until somebody activates it.";
  const action = act("activate", `Call engine.activate("${id}").`, id);
  return [reason("on_hold", sentence, { since: row.createdAt, action })];
}

/** Reasons of time: the job is not due, or was delayed. */
function laterReasons(facts: WhyFacts, isBlocked: boolean): WhyReason[] {
  const { row, now } = facts;
  if (row.state !== "scheduled" && row.state !== "retryable") return [];
  const until = dueAtOf(row.rank);
  if (until <= now) {
    const { text, action } = overdue(now, until);
    const sentence = `It has been due for ${roughly(now - until)} and must be moved to its queue. ${text}`;
    return [reason("due_unswept", sentence, { since: until, action })];
  }
  const left = roughly(until - now);
  // Under a strict limit a job that was given back unrun is retryable too.
  if (row.state === "retryable" && row.attempt > 0) return [backoff(row, until, left)];
  const limit = facts.limit;
  const after = row.options?.limit?.onLimit;
  const isRescheduled = typeof after === "object" && until - now <= after.after && limit !== null;
  if (isRescheduled && isLimitFull(limit)) {
    const sentence = `Its limit "${row.limitKey}" was reached, and it tries again in ${left}.`;
    const who = { kind: "limit", id: row.limitKey as string } as const;
    return [reason("limit_rescheduled", sentence, { until, who, action: WAIT })];
  }
  const { pace } = row.options ?? {};
  if (row.claimedAt === null && pace) {
    const sentence =
      pace.kind === "debounce"
        ? `It is debounced: it starts in ${left}, unless another job with its key comes before.`
        : `It is throttled: a job with its key was due less than ${formatDuration(pace.period)} before it, so it starts in ${left}.`;
    const code = pace.kind === "debounce" ? "debounced" : "throttled";
    return [reason(code, sentence, { until, since: row.createdAt, action: WAIT })];
  }
  if (row.claimedAt === null) {
    const text = `Nothing needs to be done; to run it now, call engine.job("${row.id}").runNow().`;
    const action = act("wait", text);
    return [reason("due_later", `It is set to start in ${left}.`, { until, since: row.createdAt, action })];
  }
  const key = row.attempt === 0 ? sealedWith(row.payload) : undefined;
  if (key !== undefined) {
    const sentence = `Its worker has no key "${key}" for its payload and gave it back, or its handler put it off; it comes again in ${left}.`;
    const text = `Make sure that its workers have the key "${key}" in encryption.keys: their log names it if they do not.`;
    const action = act("change-code", text, row.type);
    return [reason("given_back", sentence, { since: row.claimedAt, until, action })];
  }
  const isGivenBack = row.returns === 0 || (isBlocked && until - row.claimedAt <= LONGEST_GIVEN_BACK);
  if (isGivenBack && until - now <= LONGEST_GIVEN_BACK) {
    const worker = row.worker === null ? "A worker" : `Worker ${row.worker}`;
    const sentence = `${worker} claimed it and gave it back without running it; it comes again in ${left}.`;
    const who = row.worker === null ? null : ({ kind: "worker", id: row.worker } as const);
    return [reason("given_back", sentence, { since: row.claimedAt, until, who, action: WAIT })];
  }
  const sentence = `Its handler put it off; it comes again in ${left}.`;
  return [reason("snoozed", sentence, { since: row.claimedAt, until, action: WAIT })];
}

function backoff(row: JobRow, until: number, left: string): WhyReason {
  const error = row.errors?.at(-1);
  const attempts = row.policy?.retry.attempts;
  const failed = `Attempt ${row.attempt}${attempts === undefined ? "" : ` of ${attempts}`} failed`;
  const cause = error ? `: ${error.message}` : "";
  return reason("backoff", `${failed}${cause.replace(/\.$/, "")}. The next one starts in ${left}.`, {
    since: error?.at ?? null,
    until,
    action: act("wait", "Nothing needs to be done, unless the error is one that no retry can mend."),
  });
}

function queueReasons({ row, now, pausedAt, pausedBy, maintenance }: WhyFacts): WhyReason[] {
  const reasons: WhyReason[] = [];
  if (maintenance) {
    const why = maintenance.reason === null ? "" : ` (${maintenance.reason})`;
    const sentence = `The system has been in maintenance for ${roughly(now - maintenance.startedAt)}${why}${changedByText(maintenance.by)}: no queue hands out jobs.`;
    const action = act("end-maintenance", "Call engine.maintenance.end() when the work is done.");
    reasons.push(
      reason("maintenance", sentence, { since: maintenance.startedAt, until: maintenance.endsAt, action }),
    );
  }
  if (pausedAt !== null) {
    const sentence = `Queue "${row.queue}" has been paused for ${roughly(now - pausedAt)}${changedByText(pausedBy)}.`;
    const action = act("resume-queue", `Call engine.queues.resume("${row.queue}").`, row.queue);
    const who = { kind: "queue", id: row.queue } as const;
    reasons.push(reason("queue_paused", sentence, { since: pausedAt, who, action }));
  }
  return reasons;
}

/** Not why it waits, but how long it may wait. */
function endReasons({ row, now }: WhyFacts): WhyReason[] {
  const reasons: WhyReason[] = [];
  const { waitAt, totalAt, id } = row;
  const isWait = waitAt !== null && (totalAt === null || waitAt <= totalAt);
  const until = isWait ? waitAt : totalAt;
  if (until === null || until <= now) return reasons;
  const what = isWait ? "has not started" : "has not ended";
  const sentence = `It is discarded if it ${what} within ${roughly(until - now)} (${isWait ? "wait" : "total"}).`;
  const action = isWait
    ? act("cancel", "If it must still run after that, enqueue it again with a longer wait.", id)
    : act("extend", `Call engine.extend("${id}", { total }) if that is too soon.`, id);
  reasons.push(reason("ends_at", sentence, { until, action }));
  return reasons;
}
