import { refuse } from "../core/errors.ts";
import { UUID } from "../core/ids.ts";
import type { JobId, JobRow } from "../core/job/job.ts";
import type { ScanFilter } from "../core/job/job-filter.ts";
import { isTerminal } from "../core/job/lifecycle.ts";
import type { Instant } from "../core/time.ts";
import type { Scan } from "../ports/store.ts";

/** The position of a scan: after a job id, and for dead letters also after the instant at which the job ended. */
export interface ScanCursor {
  readonly id: JobId;
  readonly at: Instant | null;
}

/** A scan in the form that stores use. */
export interface ScanPath {
  readonly filter: ScanFilter;
  readonly after: ScanCursor | null;
  readonly newestFirst: boolean;
  /** Dead letters are scanned in the order in which they ended. */
  readonly byEnd: boolean;
  /** Whether live jobs can match, and whether finished ones can. */
  readonly live: boolean;
  readonly finished: boolean;
  readonly isBrief: boolean;
}

export function pathOf({ filter, after, newestFirst = false, isBrief = false }: Scan): ScanPath {
  const byEnd = filter.deadLetter === true;
  const isEnded = filter.state === undefined ? undefined : isTerminal(filter.state);
  const asksForEnd = filter.finishedFrom !== undefined || filter.finishedBefore !== undefined;
  return {
    filter,
    after: after === null ? null : parseCursor(after, byEnd),
    newestFirst,
    byEnd,
    isBrief,
    live: !byEnd && !asksForEnd && isEnded !== true && filter.isLive !== false,
    finished: isEnded !== false && filter.isLive !== true,
  };
}

const CURSOR = /^(\d{1,16})\.(.+)$/;

function parseCursor(cursor: string, byEnd: boolean): ScanCursor {
  const [, at, id = cursor] = (byEnd && CURSOR.exec(cursor)) || [];
  if (!UUID.test(id) || (byEnd && at === undefined)) {
    throw refuse("invalid_option", "cursor", cursor, "use the cursor that the previous page returned");
  }
  return { id, at: byEnd ? Number(at) : null };
}

export function cursorOf(position: ScanCursor): string {
  return position.at === null ? position.id : `${position.at}.${position.id}`;
}

export function scanCursorOf(row: Pick<JobRow, "id" | "finishedAt">, byEnd: boolean): ScanCursor {
  return { id: row.id, at: byEnd ? (row.finishedAt ?? 0) : null };
}
