import type { Instant } from "../time.ts";
import type { JobRow, JobState } from "./job.ts";
import { isTerminal } from "./lifecycle.ts";

/** Which jobs to list. A field that is left out matches all. */
export interface JobFilter {
  readonly queue?: string;
  readonly type?: string;
  readonly state?: JobState;
  readonly deadLetter?: boolean;
  /** The key of a limit. Finished jobs do not match. */
  readonly limitKey?: string;
}

/** Which jobs to scan. `From` instants are included, `Before` instants are not. */
export interface ScanFilter extends Omit<JobFilter, "limitKey"> {
  /** Only live jobs, or only finished ones. */
  readonly isLive?: boolean;
  readonly createdFrom?: Instant;
  readonly createdBefore?: Instant;
  readonly finishedFrom?: Instant;
  readonly finishedBefore?: Instant;
}

export function isWanted(row: JobRow, filter: ScanFilter & JobFilter): boolean {
  const { queue, type, state, deadLetter, isLive, limitKey } = filter;
  if (queue !== undefined && row.queue !== queue) return false;
  if (type !== undefined && row.type !== type) return false;
  if (state !== undefined && row.state !== state) return false;
  if (deadLetter !== undefined && row.deadLetter !== deadLetter) return false;
  if (limitKey !== undefined && (row.limitKey !== limitKey || isTerminal(row.state))) return false;
  if (isLive !== undefined && isLive === isTerminal(row.state)) return false;
  return (
    isWithin(row.createdAt, filter.createdFrom, filter.createdBefore) &&
    isWithin(row.finishedAt, filter.finishedFrom, filter.finishedBefore)
  );
}

function isWithin(at: Instant | null, from: Instant | undefined, before: Instant | undefined): boolean {
  if (from === undefined && before === undefined) return true;
  if (at === null) return false;
  return (from === undefined || at >= from) && (before === undefined || at < before);
}
