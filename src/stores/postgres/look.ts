import type { Looked, LookRequest } from "../../ports/look.ts";
import { checkLook } from "../check-batch.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import { textArray } from "./array-literal.ts";
import type { Runner } from "./session.ts";
import { NEXT_WAKE, type Statement } from "./statements.ts";
import { NEXT_DUE_OF } from "./timeout-statements.ts";

/**
 * What a process at rest asks for. $1 destinations, $2 queues, $3 kinds and $4 keys of records. Each part is a subquery with a
 * limit, so that it is a look into one index whatever the statistics say. Returns the next wake-ups, the next due
 * timeout, the positions of ready queues, and the versions.
 */
const LOOK: Statement = {
  name: "look",
  text: `
select w.*, case when cardinality($1::text[]) > 0 then (${NEXT_DUE_OF.text}) end,
       array(select q.nth from unnest($2::text[]) with ordinality as q(name, nth)
              where (select 1 from curfew.jobs j where j.queue = q.name and j.state = ${STATE_CODES.available}
                      order by j.queue, j.rank, j.id limit 1) is not null
                and (select 1 from curfew.records p where p.kind = 'pause' and p.key = q.name limit 1) is null),
       array(select coalesce((select v.version from curfew.records v where v.kind = r.kind and v.key = r.key limit 1), 0)
               from unnest($3::text[], $4::text[]) with ordinality as r(kind, key, nth) order by r.nth)
  from (${NEXT_WAKE.text}) as w(decided, ready, records)`,
};

export async function look(runner: Runner, request: LookRequest): Promise<Looked> {
  checkLook(request);
  const { queues, destinations, records } = request;
  const [row = []] = await runner.run(LOOK, [
    textArray(destinations, (name) => name),
    textArray(queues, (name) => name),
    textArray(records, ([kind]) => kind),
    textArray(records, ([, key]) => key),
  ]);
  const [decided, ready, due, nextDueAt, positions, versions] = row;
  const wakes = [decided, ready, due].filter((at) => at !== null) as number[];
  return {
    nextWakeAt: wakes.length === 0 ? null : Math.min(...wakes),
    nextDueAt: nextDueAt as number | null,
    ready: numbersOf(positions as string).map((nth) => queues[nth - 1] as string),
    versions: numbersOf(versions as string),
  };
}

/** The numbers of an array as the server writes it: `{1,2}`. */
function numbersOf(text: string): number[] {
  return text === "{}" ? [] : text.slice(1, -1).split(",").map(Number);
}
