import type { Instant } from "../../time.ts";
import type { JobRow } from "../job.ts";

/** From this share of a limit on, a job that completed came near to a timeout. */
export const NEAR_SHARE = 0.8;

/** Which limit a completed job nearly broke, and how much of it was used: 0.93 is 93 %. */
export interface NearMiss {
  readonly kind: "execution" | "total";
  readonly used: number;
  /** In milliseconds. */
  readonly limit: number;
  /** It completed after its soft signal, within the grace. */
  readonly late: boolean;
}

/** Whether a completed job came after its soft signal (SEMANTICS 3.4). */
export function isLate({ state, softAt, finishedAt }: JobRow): boolean {
  return state === "completed" && softAt !== null && finishedAt !== null && finishedAt >= softAt;
}

/** The limit that a completed job used most of, if that is more than 80 %, or if it was late; else null. */
export function nearMissOf(row: JobRow): NearMiss | null {
  const { state, startedAt, finishedAt } = row;
  if (state !== "completed" || startedAt === null || finishedAt === null) return null;
  const late = isLate(row);
  const most = mostUsed(row, startedAt, finishedAt);
  return most && (late || most.used > NEAR_SHARE) ? { ...most, late } : null;
}

/** Whether a run from one instant to another used more than 80 % of a limit. Every completed job is asked. */
export function isNear(row: LimitedRun, startedAt: Instant, finishedAt: Instant): boolean {
  const { softAt, totalAt } = row;
  const attempt = softAt === totalAt ? 0 : shareOf(startedAt, softAt, finishedAt);
  return attempt > NEAR_SHARE || shareOf(totalFrom(row), totalAt, finishedAt) > NEAR_SHARE;
}

type LimitedRun = Pick<JobRow, "softAt" | "totalAt" | "createdAt" | "options">;

function totalFrom({ options, createdAt }: LimitedRun): Instant {
  return options?.anchoredAt ?? createdAt;
}

function shareOf(from: Instant, until: Instant | null, at: Instant): number {
  return until === null || until <= from ? 0 : (at - from) / (until - from);
}

/** The limit that a run from one instant to another used most of; null without limits. */
function mostUsed(
  row: LimitedRun,
  startedAt: Instant,
  finishedAt: Instant,
): Pick<NearMiss, "kind" | "used" | "limit"> | null {
  const { softAt, totalAt } = row;
  // Where less than an attempt was left of the total, the total is what the attempt had to keep.
  const attempt = softAt === totalAt ? null : useOf("execution", startedAt, softAt, finishedAt);
  const total = useOf("total", totalFrom(row), totalAt, finishedAt);
  return attempt && total ? (attempt.used >= total.used ? attempt : total) : (attempt ?? total);
}

function useOf(kind: NearMiss["kind"], from: Instant, until: Instant | null, at: Instant) {
  if (until === null || until <= from) return null;
  return { kind, used: shareOf(from, until, at), limit: until - from };
}
