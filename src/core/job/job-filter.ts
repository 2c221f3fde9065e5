import type { Instant } from "../time.ts";
import type { JobRow, JobState } from "./job.ts";
import { isTerminal } from "./lifecycle.ts";

/** Which jobs to scan. A field that is left out matches all. `From` instants are included, `Before` instants are not. */
export interface ScanFilter {
  /** Jobs of this tenant. Left out: jobs of no tenant. There is an index for it: jobs of others cost nothing. */
  readonly tenant?: string;
  readonly queue?: string;
  readonly type?: string;
  readonly state?: JobState;
  readonly deadLetter?: boolean;
  /**
   * Contained in the JSON text of the payload, as it stands. Every job that a step looks at is read. A job with
   * `options.redact` is found too, whatever its payload says: the engine looks for the text in what people may see of it,
   * and a store that decided this by the real payload would tell what is in it.
   */
  readonly text?: string;
  /** Only live jobs, or only finished ones. */
  readonly isLive?: boolean;
  readonly createdFrom?: Instant;
  readonly createdBefore?: Instant;
  readonly finishedFrom?: Instant;
  readonly finishedBefore?: Instant;
}

/** Whether a job is what a scan looks for. */
export function isWanted(row: JobRow, filter: ScanFilter): boolean {
  const { queue, type, state, deadLetter, isLive } = filter;
  if (queue !== undefined && row.queue !== queue) return false;
  if (type !== undefined && row.type !== type) return false;
  if (state !== undefined && row.state !== state) return false;
  if (deadLetter !== undefined && row.deadLetter !== deadLetter) return false;
  if (isLive !== undefined && isLive === isTerminal(row.state)) return false;
  if (filter.text !== undefined && !row.options?.redact && !row.payload.includes(filter.text)) return false;
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
