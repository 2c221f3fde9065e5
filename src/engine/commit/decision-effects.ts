import type { Decision } from "../../core/job/decision.ts";
import type { JobRow } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { Effect } from "../../ports/store.ts";

/** How many jobs one settle lets through at most; whatever is left goes with the next, or by the sweep. */
export const ADMITTED_AT_ONCE = 200;

type Decided = Extract<Decision, { ok: true }>;

/** What else is true once a decision on a job is committed, as effects of the same unit: undefined for a plain job. */
export function effectsOf(row: JobRow, decision: Decided): readonly Effect[] | undefined {
  if (row.workflow === null && row.limitKey === null) return undefined;
  const countdowns = countdownEffects(row, decision);
  if (row.limitKey === null) return countdowns;
  const effects = gateEffects(row, decision.image);
  return countdowns && effects ? [...countdowns, ...effects] : (countdowns ?? effects);
}

/** The end of a step counts down whoever waits for it in its workflow. */
function countdownEffects({ options, state }: JobRow, { image }: Decided): readonly Effect[] | undefined {
  const step = options?.step;
  if (step === undefined || !isTerminal(image.state) || isTerminal(state)) return undefined;
  return step.wakes.map((countdown) => ({ countdown }));
}

/** Whether a decision may have woken somebody else, so that a sweep has something to do right after its commit. */
export function wakesOthers(row: JobRow, { image }: Decided): boolean {
  return row.options !== null && row.options.step !== undefined && isTerminal(image.state);
}

/**
 * A start is remembered where it counts against a rate. A job that gives up its place, or comes to its limit, lets the
 * next ones through: so a place is free in the very commit that frees it, whoever decides that.
 */
export function gateEffects(
  row: JobRow,
  image: Pick<JobRow, "state" | "startedAt">,
): readonly Effect[] | undefined {
  const limitKey = row.limitKey as string;
  const limit = row.options?.limit;
  const effects: Effect[] = [];
  // One that was claimed under the limit of its queue only makes room for a claim.
  if (row.state === "active" && image.state !== "active") effects.push({ ready: row.queue });
  if (limit) {
    const startedAt = row.startedAt ?? (image.state === "active" ? image.startedAt : null);
    const isNews = row.startedAt === null || image.state !== "active";
    if (startedAt !== null && row.state === "active" && isNews)
      effects.push({ spend: limitKey, by: `${row.id} ${row.fence}`, at: startedAt, limit });
    const isFreed = isPlaceOf(row, row.state) && !isPlaceOf(row, image.state);
    // A job that leaves the limit may have been the only one that the sweep would look at.
    if (isFreed || image.state === "pending" || row.state === "pending") effects.push(admission(row));
  }
  return effects.length > 0 ? effects : undefined;
}

/** Whether a job in this state holds a place of its limit. */
function isPlaceOf({ options }: JobRow, state: JobRow["state"]): boolean {
  if (state === "retryable") return options?.limit?.strict === true;
  return state === "available" || state === "active";
}

/** Lets through whom the limit of a job's limit has room for. */
export function admission({ limitKey, options }: Pick<JobRow, "limitKey" | "options">): Effect {
  return { admit: limitKey as string, count: ADMITTED_AT_ONCE, limit: options?.limit ?? {} };
}

/** When a start that was just committed no longer counts against the rate of its job, and another may follow. */
export function startOverAt({ limitKey, options, startedAt }: JobRow): Instant | null {
  if (limitKey === null || startedAt === null) return null;
  const rate = options?.limit?.rate;
  return rate ? startedAt + rate.per : null;
}
