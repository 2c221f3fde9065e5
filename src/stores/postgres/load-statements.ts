import { ROW_SIZE } from "../../core/job/documents/row-size.ts";
import { briefColumns, END_COLUMNS, JOB_COLUMNS } from "../sql/row-codec.ts";
import { DONE, LIVE, type Statement } from "./statements.ts";

/** Whole jobs, live or finished, unordered. $1 ids. */
export const LOAD: Statement = {
  name: "load",
  text: `
select ${LIVE} from curfew.jobs where id = any($1::uuid[])
union all
select ${DONE} from curfew.done where id = any($1::uuid[])`,
};

/** The same without large documents, which the server then does not even read. */
export const LOAD_BRIEF: Statement = {
  name: "load_brief",
  text: `
select ${briefColumns(LIVE)} from curfew.jobs where id = any($1::uuid[])
union all
select ${briefColumns(DONE)} from curfew.done where id = any($1::uuid[])`,
};

/** Where rows of LOAD_WITHIN have the place of their id in the list, and how many jobs of the list there are. */
export const PLACE_COLUMN = JOB_COLUMNS.length + END_COLUMNS.length;
export const FOUND_COLUMN = PLACE_COLUMN + 1;

/**
 * The first jobs of a list, in its order: up to the one with which they have $2 bytes. $1 ids. The size of a document is
 * known without reading it.
 */
function loadWithin(
  name: string,
  show: (columns: string) => string,
  documents: readonly string[],
): Statement {
  const size = documents.map((column) => `coalesce(octet_length(${column}), 0)`).join(" + ");
  const of = (table: string, columns: string) => `
select ${show(columns)}, place, ${ROW_SIZE} + ${size} as size
  from unnest($1::uuid[]) with ordinality as asked(job, place) join curfew.${table} on id = job
 where id = any($1::uuid[])`;
  return {
    name,
    text: `
select ${DONE}, place, found from (
  select ${DONE}, place, size, count(*) over () as found,
         sum(size) over (order by place rows unbounded preceding) as total
    from (${of("jobs", LIVE)} union all ${of("done", DONE)}) as jobs(${DONE}, place, size)) as summed
 where total - size < $2::bigint`,
  };
}

export const LOAD_WITHIN = loadWithin("load_within", (columns) => columns, [
  "payload",
  "options",
  "progress",
  "checkpoint",
  "result",
]);
export const LOAD_BRIEF_WITHIN = loadWithin("load_brief_within", briefColumns, ["options"]);
