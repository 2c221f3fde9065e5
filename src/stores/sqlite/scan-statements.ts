import { briefColumns } from "../sql/row-codec.ts";
import { DONE, LIVE } from "./statements.ts";

/** The statements of scans for one direction. Filters that are left out are null, or bounds beyond all values. */
interface ScanStatements {
  /**
   * Takes the id after which a range starts, and its length less one. Returns the last id of the range, if it is that
   * long.
   */
  readonly endOfJobs: string;
  readonly endOfDone: string;
  /**
   * Takes the ids between which a range lies, and MATCHING. `list` takes a limit and returns jobs, `count` returns a
   * number.
   */
  readonly listJobs: string;
  readonly countJobs: string;
  /** The same with MATCHING_DONE. */
  readonly listDone: string;
  readonly countDone: string;
  /** Dead letters. A position is an instant and an id. `endOfDead` takes the bounds of `finished_at` first. */
  readonly endOfDead: string;
  readonly listDead: string;
  readonly countDead: string;
}

/** Takes queue, type and state (each null for any), the bounds of `created_at`, and a text of the payload twice (or null): jobs with redacted fields are always found. */
const MATCHING = `queue = coalesce(?, queue) and type = coalesce(?, type) and state = coalesce(?, state)
 and created_at >= ? and created_at < ? and (? is null or instr(payload, ?) > 0 or instr(options, '"redact":') > 0)`;

/** Takes what MATCHING does, dead_letter (null for any), and the bounds of `finished_at`. */
const MATCHING_DONE = `${MATCHING} and dead_letter = coalesce(?, dead_letter)
 and coalesce(finished_at, 0) >= ? and coalesce(finished_at, 0) < ?`;

/** Rows of one tenant, by an index that has the rows of tenants alone. Takes what their names begin with. */
export const OF_TENANT = `substr(queue, 1, instr(substr(queue, 2), char(1)) + 1) = ? and queue < char(2)`;
/** Rows of no tenant. */
const NO_TENANT = "queue >= char(2)";

/** Each statement of a tenant takes what its names begin with, first. */
function statements(
  after: ">" | "<",
  until: "<=" | ">=",
  order: "asc" | "desc",
  isTenants: boolean,
  show: (columns: string) => string = (columns) => columns,
): ScanStatements {
  const by = (table: string) => (isTenants ? `${table} indexed by ${table}_tenant` : table);
  const ours = isTenants ? `${OF_TENANT} and ` : "";
  // A range has rows of tenants too, which are left out: a step must not read more rows to find others.
  const others = isTenants ? "" : ` and ${NO_TENANT}`;
  const end = (table: string) =>
    `select id from ${by(table)} where ${ours}id ${after} ? order by id ${order} limit 1 offset ?`;
  const range = `where ${ours}id ${after} ? and id ${until} ?${others}`;
  const byId = `order by id ${order} limit ?`;
  const deadIndex = isTenants ? "curfew_done_tenant_dead" : "curfew_done_dead";
  const dead = `from curfew_done indexed by ${deadIndex} where ${ours}dead_letter = 1`;
  const deadRange = `${dead} and (finished_at, id) ${after} (?, ?) and (finished_at, id) ${until} (?, ?)`;
  const byEnd = `order by finished_at ${order}, id ${order}`;
  return {
    endOfJobs: end("curfew_jobs"),
    endOfDone: end("curfew_done"),
    listJobs: `select ${show(LIVE)} from ${by("curfew_jobs")} ${range} and ${MATCHING} ${byId}`,
    countJobs: `select count(*) from ${by("curfew_jobs")} ${range} and ${MATCHING}`,
    listDone: `select ${show(DONE)} from ${by("curfew_done")} ${range} and ${MATCHING_DONE} ${byId}`,
    countDone: `select count(*) from ${by("curfew_done")} ${range} and ${MATCHING_DONE}`,
    endOfDead: `select finished_at, id ${dead} and finished_at >= ? and finished_at < ?
 and (finished_at, id) ${after} (?, ?) ${byEnd} limit 1 offset ?`,
    listDead: `select ${show(DONE)} ${deadRange}${others} and ${MATCHING_DONE} ${byEnd} limit ?`,
    countDead: `select count(*) ${deadRange}${others} and ${MATCHING_DONE}`,
  };
}

/** The statements of whole rows and of brief ones, by direction. */
const both = (isTenants: boolean, show?: (columns: string) => string) => ({
  forwards: statements(">", "<=", "asc", isTenants, show),
  backwards: statements("<", ">=", "desc", isTenants, show),
});

export const SCANS = { whole: both(false), brief: both(false, briefColumns) };
export const TENANT_SCANS = { whole: both(true), brief: both(true, briefColumns) };
