import { refuse, refuseUnknownKeys } from "../../core/errors.ts";
import { UUID } from "../../core/ids.ts";
import { visiblePayload } from "../../core/job/documents/redaction.ts";
import { JOB_STATES, type JobId, type JobRow, type JobState } from "../../core/job/job.ts";
import { isWanted, type ScanFilter } from "../../core/job/job-filter.ts";
import { nearMissOf } from "../../core/job/policy/near-miss.ts";
import { type InstantInput, parseInstant } from "../../core/time.ts";

/** Which jobs: all fields must match. `…From` is inclusive, `…Before` is exclusive. */
export interface JobQuery {
  readonly queue?: string;
  readonly type?: string;
  readonly state?: JobState;
  readonly deadLetter?: boolean;
  /** True: only jobs that have not ended. False: only ended ones. */
  readonly isLive?: boolean;
  /** `type` and `code` of the last error. No index has them, so each job is read. */
  readonly errorType?: string;
  readonly errorCode?: string;
  /** A part of the payload's JSON text. Each job is read for it. */
  readonly text?: string;
  /** The first characters of the id. Results come in the order of ids, which is that of creation. */
  readonly idPrefix?: string;
  /** Completed with more than 80 % of a limit used, or after the soft signal. Each job is read for it. */
  readonly nearMiss?: true;
  readonly createdFrom?: InstantInput;
  readonly createdBefore?: InstantInput;
  readonly finishedFrom?: InstantInput;
  readonly finishedBefore?: InstantInput;
  /** Only these jobs. */
  readonly ids?: readonly JobId[];
  /** Every job. Actions refuse an empty query without this. */
  readonly all?: true;
}

export interface ParsedQuery {
  readonly filter: ScanFilter;
  readonly errorType: string | undefined;
  readonly errorCode: string | undefined;
  readonly ids: readonly JobId[] | undefined;
  readonly idPrefix: string | undefined;
  readonly nearMiss: boolean;
  /** The query names nothing. */
  readonly isEmpty: boolean;
}

const TEXTS = ["queue", "type", "errorType", "errorCode", "text"] as const;
const FLAGS = ["deadLetter", "isLive"] as const;
const INSTANTS = ["createdFrom", "createdBefore", "finishedFrom", "finishedBefore"] as const;
const KEYS = [...TEXTS, ...FLAGS, ...INSTANTS, "state", "ids", "all", "idPrefix", "nearMiss"];
const TEXT_LIMIT = 512;
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
  const { state: queriedState, ids, all, errorType, errorCode, idPrefix, nearMiss, ...rest } = query;
  checkSearch(query, field);
  const state = queriedState ?? (nearMiss ? "completed" : undefined);
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
    idPrefix,
    nearMiss: nearMiss === true,
    isEmpty: all === undefined && Object.values(query).every((value) => value === undefined),
  };
}

function checkSearch({ text, idPrefix, nearMiss, state }: JobQuery, field: string): void {
  if (text !== undefined && (text.length > TEXT_LIMIT || text.includes("\0") || !text.isWellFormed()))
    throw refuse("invalid_option", `${field}.text`, text, `use up to ${TEXT_LIMIT} characters and no NUL`);
  if (idPrefix !== undefined && !isIdPrefix(idPrefix))
    throw refuse(
      "invalid_option",
      `${field}.idPrefix`,
      idPrefix,
      "use the beginning of a UUID in lower case",
    );
  if (nearMiss !== undefined && nearMiss !== true)
    throw refuse("invalid_option", `${field}.nearMiss`, nearMiss, "use true, or leave it out");
  if (nearMiss && state !== undefined && state !== "completed")
    throw refuse(
      "invalid_option",
      `${field}.state`,
      state,
      "leave it out: only completed jobs are near misses",
    );
}

const ZERO_ID = "00000000-0000-0000-0000-000000000000";

/** The lowest id with this prefix. */
export function firstIdOf(prefix: string): JobId {
  return prefix + ZERO_ID.slice(prefix.length);
}

/** Whether a text can be the beginning of a job's id. */
export function isIdPrefix(text: unknown): text is string {
  return (
    typeof text === "string" && text !== "" && text.length <= ZERO_ID.length && UUID.test(firstIdOf(text))
  );
}

/** Whether the query has filters that stores lack, so that this module must filter the rows. */
export function hasOwnFilter({ filter, errorType, errorCode, nearMiss }: ParsedQuery): boolean {
  return filter.text !== undefined || errorType !== undefined || errorCode !== undefined || nearMiss;
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

/** Whether people may see the text in the payload. */
function isTextVisible(row: JobRow, text: string): boolean {
  return row.options?.redact === undefined || visiblePayload(row).includes(text);
}

/** Whether a row matches the query, its last error included. */
export function matches(row: JobRow, query: ParsedQuery): boolean {
  const { filter, errorType, errorCode, idPrefix, nearMiss } = query;
  if (!isWanted(row, filter)) return false;
  if (filter.text !== undefined && !isTextVisible(row, filter.text)) return false;
  if (idPrefix !== undefined && !row.id.startsWith(idPrefix)) return false;
  if (nearMiss && nearMissOf(row) === null) return false;
  if (errorType === undefined && errorCode === undefined) return true;
  const error = row.errors?.at(-1);
  if (!error) return false;
  return (errorType ?? error.type) === error.type && (errorCode ?? error.code) === error.code;
}
