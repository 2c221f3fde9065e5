import { refuse } from "../../errors.ts";
import {
  type Duration,
  earlier,
  formatDuration,
  type Instant,
  type InstantInput,
  parseDuration,
  parseInstant,
} from "../../time.ts";
import type { JobId, JobOptions } from "../job.ts";
import { resolveBudgets, type SettingsBySource, saysAnything } from "../policy/policy.ts";

/** The options of an enqueue that say when its job may start. */
interface Start {
  readonly delay?: Duration;
  readonly at?: InstantInput;
}

interface Budgets {
  readonly expiresAt?: InstantInput;
  readonly detach?: boolean;
}

/** When a job is enqueued, from when its durations count, and by which job. */
interface Origin {
  readonly now: Instant;
  readonly anchor?: Instant;
  readonly parent?: { readonly id: JobId; readonly totalAt: Instant | null } | undefined;
}

/** When a job that is enqueued now is due. A delay counts from the anchor. */
export function startOf(said: Start, now: Instant, anchor: Instant = now): Instant {
  if (said.delay !== undefined && said.at !== undefined) {
    throw refuse("invalid_option", "options.at", said.at, "write either delay or at, not both");
  }
  if (said.delay !== undefined) {
    const delay = parseDuration(said.delay, "options.delay", { zero: true });
    return delay === 0 ? now : anchor + delay;
  }
  return said.at === undefined ? now : Math.max(now, parseInstant(said.at, "options.at"));
}

const NO_BUDGETS = { waitAt: null, totalAt: null, stored: {} };

export type StoredBudgets = Pick<
  JobOptions,
  "wait" | "waitFrom" | "total" | "totalFrom" | "anchoredAt" | "expiresAt" | "inheritedFrom"
>;

/**
 * Turns `wait` and `total` into instants, which stay fixed (SEMANTICS 2). An inherited deadline shortens the total
 * and never refuses the job (4.7).
 */
export function fixBudgets(
  said: Budgets,
  settings: SettingsBySource,
  { now, anchor = now, parent }: Origin,
  dueAt: Instant,
): { waitAt: Instant | null; totalAt: Instant | null; stored: StoredBudgets } {
  if (said.expiresAt === undefined && !parent && !saysAnything(settings, "timeouts")) return NO_BUDGETS;
  const { wait, total } = resolveBudgets(settings);
  const expiresAt = said.expiresAt === undefined ? null : parseInstant(said.expiresAt, "options.expiresAt");
  const waitAt = earlier(wait.value === null ? null : anchor + wait.value, expiresAt);
  const ownTotalAt = total.value === null ? null : anchor + total.value;
  refuseNeverRuns(waitAt, dueAt, anchor, waitAt === expiresAt ? "expiresAt" : "timeouts.wait");
  refuseNeverRuns(ownTotalAt, dueAt, anchor, "timeouts.total");
  const inherited =
    said.detach || parent === undefined || parent.totalAt === null || dueAt >= parent.totalAt
      ? null
      : parent.totalAt;
  const isCut = inherited !== null && (ownTotalAt === null || inherited < ownTotalAt);
  return {
    waitAt,
    totalAt: isCut ? inherited : ownTotalAt,
    stored: {
      ...(wait.value !== null && { wait: wait.value, waitFrom: wait.source }),
      ...(total.value !== null && { total: total.value, totalFrom: total.source }),
      ...(total.value !== null && anchor !== now && { anchoredAt: anchor }),
      ...(expiresAt !== null && { expiresAt }),
      ...(isCut && parent && { inheritedFrom: parent.id }),
    },
  };
}

function refuseNeverRuns(endsAt: Instant | null, dueAt: Instant, now: Instant, field: string): void {
  if (endsAt === null || endsAt > dueAt) return;
  const start =
    dueAt > now ? `options.delay/at starts it ${formatDuration(dueAt - now)} from now` : "it starts now";
  throw refuse(
    "never_runs",
    field,
    // Show `expiresAt` as an instant: nobody wrote a duration for it.
    field === "expiresAt" ? new Date(endsAt).toISOString() : formatDuration(endsAt - now),
    `${start}: lengthen ${field} or start it earlier`,
  );
}
