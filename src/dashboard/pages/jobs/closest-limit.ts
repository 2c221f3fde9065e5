import type { Job } from "../../../ojs/replies/wire-replies.ts";
import { durationText, limitText, percentText } from "../../ui/format.ts";
import type { DeadlineView, LimitName } from "../../ui/look.ts";

/** Beyond this share of a limit it is called near. */
const NEAR = 0.8;

const at = (text: string | undefined): number | undefined =>
  text === undefined ? undefined : Date.parse(text);

/** The limit that fires next; for an ended job the one that fired, else the one it used most. */
export function closestLimit(job: Job, now: number): DeadlineView | null {
  const end = at(job.discarded_at ?? job.cancelled_at ?? job.completed_at);
  if (end !== undefined) return endedView(job, end);
  // It is claimed, and its handler is not entered yet: until then the wait is what counts.
  const isEntered = job.state === "active" && job.started_at !== undefined;
  return isEntered ? runningView(job, now) : waitingView(job, now);
}

function runningView(job: Job, now: number): DeadlineView | null {
  const from = at(job.started_at) ?? now;
  const created = Date.parse(job.created_at);
  const soft = job.timeout_ms === undefined ? undefined : from + job.timeout_ms;
  const total = job.total_timeout_ms === undefined ? undefined : created + job.total_timeout_ms;
  if (soft !== undefined && soft <= now) {
    const kill = job.grace_period_ms === undefined ? undefined : soft + job.grace_period_ms;
    const over = kill === undefined ? 0.1 : ((now - soft) / Math.max(1, kill - soft)) * 0.22;
    const text =
      kill === undefined
        ? "signalled"
        : kill > now
          ? `signalled, killed in ${durationText(kill - now)}`
          : "past its kill";
    return { name: "attempt", used: 1 + over, look: "near", hasGrace: true, text, tone: "soft" };
  }
  if (total !== undefined && (soft === undefined || total < soft))
    return openView("total", created, total, now, job.grace_period_ms !== 0);
  return soft === undefined ? null : openView("attempt", from, soft, now, job.grace_period_ms !== 0);
}

function openView(
  name: "attempt" | "total" | "wait",
  from: number,
  to: number,
  now: number,
  hasGrace: boolean,
): DeadlineView {
  const used = (now - from) / Math.max(1, to - from);
  const isNear = used > NEAR;
  const left = durationText(Math.max(0, to - now));
  const text = name === "wait" ? `${left} to begin` : `${left} left of ${limitText(to - from)}`;
  const look = isNear ? "near" : name === "wait" ? "wait" : "run";
  return { name, used: Math.min(1, used), look, hasGrace, text, ...(isNear && { tone: "soft" as const }) };
}

function waitingView(job: Job, now: number): DeadlineView | null {
  const created = Date.parse(job.created_at);
  const due = at(job.scheduled_at ?? job.next_attempt_at);
  const expires =
    at(job.expires_at) ?? (job.enqueue_ttl_ms === undefined ? undefined : created + job.enqueue_ttl_ms);
  const total = job.total_timeout_ms === undefined ? undefined : created + job.total_timeout_ms;
  const isFirst = job.attempt === 0;
  if (job.state === "scheduled" && due !== undefined) {
    const used = expires === undefined ? 0 : Math.min(1, (now - created) / Math.max(1, expires - created));
    return {
      name: "wait",
      used,
      look: "wait",
      hasGrace: false,
      text: `starts in ${durationText(Math.max(0, due - now))}`,
    };
  }
  if (isFirst && expires !== undefined && (total === undefined || expires <= total))
    return openView("wait", created, expires, now, false);
  return total === undefined ? null : openView("total", created, total, now, false);
}

function endedView(job: Job, end: number): DeadlineView | null {
  const kind = job.error?.timeout_kind;
  const ran = durationText((job.error?.elapsed_seconds ?? 0) * 1_000);
  const over = (name: LimitName, used: number, text: string, hasGrace = false): DeadlineView => ({
    name,
    used,
    look: "over",
    hasGrace,
    text,
  });
  if (job.state !== "discarded") return usedView(job, end);
  switch (kind) {
    case "enqueue_ttl":
      return over("wait", 1.02, `not begun in ${limitText(job.enqueue_ttl_ms)}`);
    case "total":
      return over("total", 1.02, `over after ${limitText(job.total_timeout_ms)}`);
    case "stalled":
      return over("heartbeat", 1.1, `silent for ${limitText(job.heartbeat_timeout_ms)}`);
    case "execution":
      return job.error?.forced
        ? over("attempt", 1.22, `killed after ${ran}`, true)
        : over("attempt", 1.08, `stopped after ${ran}`, true);
    default:
      return usedView(job, end);
  }
}

/** A job that no limit ended: how much of the attempt, or of the whole, it used. */
function usedView(job: Job, end: number): DeadlineView | null {
  const from = at(job.started_at);
  const created = Date.parse(job.created_at);
  const ofAttempt =
    from !== undefined && job.timeout_ms !== undefined ? (end - from) / job.timeout_ms : undefined;
  const ofTotal = job.total_timeout_ms !== undefined ? (end - created) / job.total_timeout_ms : undefined;
  if (ofAttempt !== undefined && ofAttempt > 1 && job.state === "completed") {
    const late = durationText((ofAttempt - 1) * (job.timeout_ms ?? 0));
    return {
      name: "attempt",
      used: Math.min(1.2, ofAttempt),
      look: "late",
      hasGrace: true,
      text: `${late} late`,
    };
  }
  const isTotal = ofTotal !== undefined && (ofAttempt === undefined || ofTotal > ofAttempt);
  const used = isTotal ? ofTotal : ofAttempt;
  if (used === undefined) return null;
  const limit = isTotal ? job.total_timeout_ms : job.timeout_ms;
  return {
    name: isTotal ? "total" : "attempt",
    used: Math.min(1, used),
    look: used > NEAR && job.state === "completed" ? "near" : "ended",
    hasGrace: !isTotal,
    text: `${percentText(used)} of ${limitText(limit)} used`,
  };
}
