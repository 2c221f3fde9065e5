import { waitsForLimit } from "../decide/decision.ts";
import type { JobRow } from "../job.ts";
import { type LimitFacts, MOST_AHEAD, type WhyFacts } from "./facts.ts";
import { act, counted, reason, roughly, WAIT, type WhyReason } from "./reason.ts";

type Full = "limit_full" | "limit_strict" | "rate_full";

/** Which part of a limit is used up; undefined while it has room. */
export function isLimitFull(facts: LimitFacts): Full | undefined {
  const { limit, slots, countedUpTo } = facts;
  const { rate } = limit;
  const held = slots.available + slots.active;
  if (limit.concurrency !== undefined) {
    const concurrency = Math.min(limit.concurrency, countedUpTo);
    if (held >= concurrency) return "limit_full";
    if (limit.strict && held + slots.retryable >= concurrency) return "limit_strict";
  }
  return rate && usedStarts(slots) >= Math.min(rate.limit, countedUpTo) ? "rate_full" : undefined;
}

function usedStarts(slots: LimitFacts["slots"]): number {
  return slots.available + slots.unstarted + slots.starts;
}

/** Why a job that waits for its limit has not been admitted. */
export function limitReasons(facts: WhyFacts, isBlocked: boolean): WhyReason[] {
  const { row, limit, now } = facts;
  if (!waitsForLimit(row) || limit === null) return [];
  const full = isLimitFull(limit);
  const key = row.limitKey as string;
  const reasons = [full ? fullReason(full, key, limit, now) : admitting(key)];
  // While nothing of the queue can start, neither those before it nor a higher limit matter.
  if (limit.ahead > 0 && !isBlocked) {
    const sentence = `${aheadText(limit.ahead)} wait${limit.ahead === 1 ? "s" : ""} for limit "${key}" before it.`;
    const who = { kind: "limit", id: key } as const;
    const action = act("raise-limit", `Call engine.limits.put("${key}", …) if there is room for more.`, key);
    reasons.push(reason("limit_ahead", sentence, { who, action }));
  }
  return reasons;
}

function admitting(key: string): WhyReason {
  const sentence = `Limit "${key}" has room, and the next commit or sweep admits it.`;
  return reason("limit_admitting", sentence, { who: { kind: "limit", id: key }, action: WAIT });
}

function fullReason(full: Full, key: string, facts: LimitFacts, now: number): WhyReason {
  const { limit, slots } = facts;
  const raise = act(
    "raise-limit",
    `Wait, or call engine.limits.put("${key}", …) to let more of them run.`,
    key,
  );
  const who = { kind: "limit", id: key } as const;
  if (full === "rate_full") {
    const more = `Wait, or call engine.limits.put("${key}", { rate: … }) to let more of them start.`;
    return rateReason(key, facts, { who, action: act("raise-limit", more, key) }, now);
  }
  if (full === "limit_strict") {
    const sentence = `Limit "${key}" is strict: a job that waits for its retry keeps the slot.`;
    return reason("limit_strict", sentence, { who, action: raise });
  }
  if (slots.jobs.length === 0 && facts.admitted.length > 0)
    return admittedReason(key, limit.concurrency as number, facts.admitted, raise);
  return heldReason("limit_full", `Limit "${key}"`, limit.concurrency as number, slots, who, raise, now);
}

/** The jobs that hold the slots do not run yet. */
function admittedReason(
  key: string,
  concurrency: number,
  admitted: readonly JobRow[],
  action: WhyReason["action"],
): WhyReason {
  const named = admitted.map(({ id, type }) => `job ${id} (${type})`).join(", ");
  const sentence = `Limit "${key}" allows ${counted(concurrency, "job")} at once, and jobs that were admitted before it hold all slots and wait for a worker: ${named}.`;
  const who = { kind: "job", id: (admitted[0] as JobRow).id } as const;
  return reason("limit_full", sentence, { who, action });
}

function rateReason(
  key: string,
  { limit, slots, countedUpTo }: LimitFacts,
  more: Pick<WhyReason, "who" | "action">,
  now: number,
): WhyReason {
  const { limit: most, per } = limit.rate as { limit: number; per: number };
  const used = most > countedUpTo ? `at least ${counted(countedUpTo, "start")} are used` : "all are used";
  // If more starts are used than the rate allows, which it did before it was lowered, the end of one frees no room.
  const until = usedStarts(slots) > most ? null : slots.nextAt;
  const next = until === null ? "" : ` The next start is allowed in ${roughly(until - now)}.`;
  const sentence = `Limit "${key}" allows ${counted(most, "start")} in ${roughly(per)}, and ${used}.${next}`;
  return reason("rate_full", sentence, { until, ...more });
}

/** Names a job that holds a slot, and when the first named one must have ended. */
export function heldReason(
  code: "limit_full" | "queue_slots_full",
  what: string,
  concurrency: number,
  slots: LimitFacts["slots"],
  place: NonNullable<WhyReason["who"]>,
  otherwise: WhyReason["action"],
  now: number,
): WhyReason {
  const allows = `${what} allows ${counted(concurrency, "job")} at once`;
  const holder = firstToEnd(slots.jobs);
  if (!holder) {
    const sentence = `${allows}, and jobs that were admitted before it hold all slots and wait for a worker.`;
    return reason(code, sentence, { who: place, action: otherwise });
  }
  const since = holder.startedAt ?? holder.claimedAt;
  const running = `job ${holder.id} (${holder.type}) ${since === null ? "holds a slot" : `has held a slot for ${roughly(now - since)}`}`;
  const until = endOf(holder);
  const end =
    until === null ? "nothing ends it by time" : `ends within ${roughly(until - now)} at the latest`;
  return reason(code, `${allows}, and all are taken: ${running} and ${end}.`, {
    since,
    until,
    who: { kind: "job", id: holder.id },
    action:
      until === null ? act("look-at-job", `Ask why job ${holder.id} has not ended.`, holder.id) : otherwise,
  });
}

function endOf(row: JobRow): number | null {
  return row.startedAt === null ? row.stallAt : row.hardAt;
}

function firstToEnd(jobs: readonly JobRow[]): JobRow | undefined {
  const endAt = (row: JobRow) => endOf(row) ?? Number.POSITIVE_INFINITY;
  return jobs.toSorted((a, b) => endAt(a) - endAt(b) || (a.id < b.id ? -1 : 1))[0];
}

export function aheadText(ahead: number): string {
  return ahead > MOST_AHEAD ? `More than ${counted(MOST_AHEAD, "job")}` : counted(ahead, "job");
}
