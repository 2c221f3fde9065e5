import type { Run } from "./runs.ts";

/** Old attempts that are drawn as one bar. */
export interface Fold {
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly from: number;
  readonly to: number;
}

/** With more attempts than this, the marks of one cover those of the next. */
const MOST_RUNS = 8;
/** These stay as they are: the last ones are what somebody looks for. */
const NEWEST = 5;

/** Which attempts are drawn one by one, and which older ones as one bar. */
export function foldRuns(runs: readonly Run[]): {
  readonly fold: Fold | null;
  readonly shown: readonly Run[];
} {
  if (runs.length <= MOST_RUNS) return { fold: null, shown: runs };
  const old = runs.slice(0, -NEWEST);
  const shown = runs.slice(-NEWEST);
  const [first, last] = [old[0] as Run, old.at(-1) as Run];
  const to = last.to ?? (shown[0] as Run).from;
  return {
    fold: { first: first.attempt, last: last.attempt, count: old.length, from: first.from, to },
    shown,
  };
}
