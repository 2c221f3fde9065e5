import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { JOB_STATES, type JobId, type JobRow, type JobState } from "../../core/job/job.ts";
import { isWanted, type ScanFilter } from "../../core/job/job-filter.ts";
import { type InstantInput, parseInstant } from "../../core/time.ts";

/** Which jobs are meant; everything that is named must hold. Instants: from the one on, and before the other. */
export interface JobQuery {
  readonly queue?: string;
  readonly type?: string;
  readonly state?: JobState;
  readonly deadLetter?: boolean;
  /** Only jobs that have not ended, or only those that have. */
  readonly isLive?: boolean;
  /** `type` and `code` of the last error. They lie inside a document, so jobs are looked at one by one for them. */
  readonly errorType?: string;
  readonly errorCode?: string;
  readonly createdFrom?: InstantInput;
  readonly createdBefore?: InstantInput;
  readonly finishedFrom?: InstantInput;
  readonly finishedBefore?: InstantInput;
  /** These jobs and no others. */
  readonly ids?: readonly JobId[];
  /** Every job is meant: an action refuses a query that says nothing, unless it says this. */
  readonly all?: true;
}

/** A query that was checked. */
export interface ParsedQuery {
  readonly filter: ScanFilter;
  readonly errorType: string | undefined;
  readonly errorCode: string | undefined;
  readonly ids: readonly JobId[] | undefined;
  /** Nothing was named. */
  readonly isEmpty: boolean;
}

const TEXTS = ["queue", "type", "errorType", "errorCode"] as const;
const FLAGS = ["deadLetter", "isLive"] as const;
const INSTANTS = ["createdFrom", "createdBefore", "finishedFrom", "finishedBefore"] as const;
const KEYS = [...TEXTS, ...FLAGS, ...INSTANTS, "state", "ids", "all"];
const MOST_IDS = 10_000;

export function parseQuery(query: JobQuery, field: string): ParsedQuery {
  refuseUnknownKeys(query, field, KEYS);
  for (const name of TEXTS) {
    const value = query[name];
    if (value !== undefined && (typeof value !== "string" || value === ""))
      throw refuse("invalid_option", `${field}.${name}`, value, "name one, or leave it out for all");
  }
  for (const name of FLAGS) {
    const value = query[name];
    if (value !== undefined && typeof value !== "boolean")
      throw refuse("invalid_option", `${field}.${name}`, value, "use true, false, or leave it out for both");
  }
  const { state, ids, all, errorType, errorCode, ...rest } = query;
  if (state !== undefined && !JOB_STATES.includes(state))
    throw refuse("invalid_option", `${field}.state`, state, `use one of ${JOB_STATES.join(", ")}`);
  if (all !== undefined && all !== true)
    throw refuse("invalid_option", `${field}.all`, all, "use true, or leave it out");
  const filter: Record<string, unknown> = { ...rest, ...(state !== undefined && { state }) };
  for (const name of INSTANTS) {
    const value = query[name];
    if (value !== undefined) filter[name] = parseInstant(value, `${field}.${name}`);
  }
  return {
    filter: filter as ScanFilter,
    errorType,
    errorCode,
    ids: ids === undefined ? undefined : parseIds(ids, `${field}.ids`),
    isEmpty: all === undefined && Object.values(query).every((value) => value === undefined),
  };
}

function parseIds(ids: readonly JobId[], field: string): readonly JobId[] {
  if (!Array.isArray(ids)) throw refuse("invalid_option", field, ids, "list the ids of jobs");
  if (ids.length > MOST_IDS)
    throw refuse("invalid_option", field, `${ids.length} ids`, `name at most ${MOST_IDS} at a time`);
  for (const id of ids)
    if (!UUID.test(id))
      throw refuse("invalid_option", field, id, "use the id of a job, a UUID in lower case");
  return [...new Set(ids)];
}

/** Whether a job is one that was meant, its last error included. */
export function isMeant(row: JobRow, { filter, errorType, errorCode }: ParsedQuery): boolean {
  if (!isWanted(row, filter)) return false;
  if (errorType === undefined && errorCode === undefined) return true;
  const error = row.errors?.at(-1);
  if (!error) return false;
  return (errorType ?? error.type) === error.type && (errorCode ?? error.code) === error.code;
}
