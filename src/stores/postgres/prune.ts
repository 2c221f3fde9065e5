import type { Instant } from "../../core/time.ts";
import { idArray } from "./array-literal.ts";
import type { ConnectionGroup } from "./connection.ts";
import { FORGET_LOGS, PRUNE, PRUNE_EVENTS, type Statement } from "./statements.ts";

/** Whether there is a job and an event to delete. $1 now, $2 the instant before which events are deleted. */
const PRUNABLE: Statement = {
  name: "prunable",
  text: `
select (select 1 from curfew.done where prune_at <= $1::bigint order by prune_at limit 1),
       (select 1 from (select at from curfew.events order by epoch, xid, seq limit 1) o where o.at < $2::bigint)`,
};

/** Deletes what is over. If nothing is, as in a process at rest, it costs one statement. */
export async function prune(
  connections: ConnectionGroup,
  now: Instant,
  eventsBefore: Instant,
  limit: number,
): Promise<number> {
  const [job, event] = (await connections.run(PRUNABLE, [now, eventsBefore]))[0] ?? [];
  const jobs = job === null ? 0 : await pruneJobs(connections, now, limit);
  if (event === null) return jobs;
  return jobs + (await connections.run(PRUNE_EVENTS, [eventsBefore, limit])).length;
}

function pruneJobs(connections: ConnectionGroup, now: Instant, limit: number): Promise<number> {
  return connections.transaction(async (session) => {
    const pruned = await session.run(PRUNE, [now, limit]);
    if (pruned.length > 0) await session.run(FORGET_LOGS, [idArray(pruned.map(([id]) => id as string))]);
    return pruned.length;
  });
}
