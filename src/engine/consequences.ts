import type { JobRow } from "../core/job/job.ts";
import { isTerminal } from "../core/job/lifecycle.ts";
import type { Decision } from "../core/job/verdict.ts";
import type { Effect } from "../ports/store.ts";

type Decided = Extract<Decision, { ok: true }>;

/**
 * What a decision on a job does to others, in the same commit: the end of a step counts down whoever waits for it in
 * its workflow. Undefined at once for a job that nobody waits for.
 */
export function consequencesOf(row: JobRow, decision: Decided): readonly Effect[] | undefined {
  const { options } = row;
  if (options === null) return undefined;
  const { step } = options;
  if (step === undefined || !isTerminal(decision.image.state) || isTerminal(row.state)) return undefined;
  return step.wakes.map((countdown) => ({ countdown }));
}

/** Whether a decision may have woken somebody else, so that a sweep has something to do right after its commit. */
export function wakesOthers(row: JobRow, { image }: Decided): boolean {
  return row.options !== null && row.options.step !== undefined && isTerminal(image.state);
}
