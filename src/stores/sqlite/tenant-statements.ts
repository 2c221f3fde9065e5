import { STATE_CODES } from "../sql/row-codec.ts";
import { OF_TENANT } from "./scan-statements.ts";

const ACTIVE = STATE_CODES.active;

/* Counts of one tenant. The first value of each is what its names begin with. */

/** Takes the id after which a range starts, and its length less one. Returns the last id, if the range is that long. */
const rangeEnd = (table: string) =>
  `select id from ${table} indexed by ${table}_tenant where ${OF_TENANT} and id > ? order by id limit 1 offset ?`;

/** Takes the id after which a range starts, and its last id. */
const inRange = (table: string) =>
  `${table} indexed by ${table}_tenant where ${OF_TENANT} and id > ? and id <= ?`;

export const TENANT_RANGE_END = rangeEnd("curfew_jobs");
export const TENANT_RANGE_END_DONE = rangeEnd("curfew_done");

/** Live jobs of a range by queue, type and state. */
export const COUNT_LIVE_OF = `
select queue, type, state, count(*) from ${inRange("curfew_jobs")} group by queue, type, state`;

/** Jobs of a range by queue and state. Takes a queue too, or null for all. */
export const COUNT_QUEUES_OF = `
select queue, state, count(*) from ${inRange("curfew_jobs")} and queue = coalesce(?, queue) group by queue, state`;
export const COUNT_QUEUES_DONE_OF = `
select queue, state, count(*) from ${inRange("curfew_done")} and queue = coalesce(?, queue) group by queue, state`;

/** Active jobs, up to a bound. */
export const ACTIVE_OF = `
select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_tenant_active
                       where state = ${ACTIVE} and ${OF_TENANT} limit ?)`;
/** Live jobs that are not active, up to a bound. */
export const WAITING_OF = `
select count(*) from (select 1 from curfew_jobs indexed by curfew_jobs_tenant
                       where ${OF_TENANT} and state <> ${ACTIVE} limit ?)`;
