import type { Looked, LookRequest } from "../../ports/look.ts";
import { checkLook } from "../check-batch.ts";
import { STATE_CODES } from "../sql/row-codec.ts";
import { numberArray, textArray } from "./array-literal.ts";
import type { ClaimFloors } from "./claim-floors.ts";
import type { Runner } from "./session.ts";
import { nextWake, type Statement } from "./statements.ts";
import { NEXT_DUE_OF } from "./timeout-statements.ts";
import type { WakeFloor } from "./wake-floor.ts";

/**
 * What a process at rest asks for. $1 destinations, $2 queues, $3 kinds and $4 keys of records, $5 from when on jobs may be due,
 * $6 starts and $7 ends of ranks beside the queues. Each part is a subquery with a
 * limit, so that it is a look into one index whatever the statistics say. Returns the next wake-ups, the next due
 * timeout, the positions of ready queues with the first rank, as `1@rank`, and the versions.
 */
const LOOK: Statement = { name: "look", text: lookText(`(${NEXT_DUE_OF.text})`) };

/** LOOK of a process that serves no destinations. A server prepares each part of a plan, whether it is used or not. */
const LOOK_AT_JOBS: Statement = { name: "look_at_jobs", text: lookText("$1::text") };

function lookText(nextDue: string): string {
  return `
select w.*, ${nextDue},
       array(select q.nth || '@' || q.rank
               from (select nth, name, (select j.rank from curfew.jobs j
                                         where j.queue = name and j.state = ${STATE_CODES.available} and j.rank >= low and j.rank < high
                                         order by j.queue, j.rank, j.id limit 1) as rank
                       from unnest($2::text[], $6::bigint[], $7::bigint[]) with ordinality as n(name, low, high, nth)) q
              where q.rank is not null
                and (select 1 from curfew.records p where p.kind = 'pause' and p.key = q.name limit 1) is null),
       array(select coalesce((select v.version from curfew.records v where v.kind = r.kind and v.key = r.key limit 1), 0)
               from unnest($3::text[], $4::text[]) with ordinality as r(kind, key, nth) order by r.nth)
  from (${nextWake(5)}) as w(decided, ready, records)`;
}

export async function look(
  runner: Runner,
  request: LookRequest,
  { floors, wakes }: { readonly floors: ClaimFloors; readonly wakes: WakeFloor },
): Promise<Looked> {
  checkLook(request);
  const { queues, destinations, records } = request;
  const looks = queues.map((queue) => ({ queue, ...floors.look(queue) }));
  const ranges = looks.flatMap(({ queue, starts, ends }) =>
    starts.map((start, nth) => ({ queue, start, end: ends[nth] as number })),
  );
  const wake = wakes.begin();
  const elapsed = floors.stopwatch();
  const [row = []] = await runner.run(destinations.length > 0 ? LOOK : LOOK_AT_JOBS, [
    textArray(destinations, (name) => name),
    textArray(ranges, ({ queue }) => queue),
    textArray(records, ([kind]) => kind),
    textArray(records, ([, key]) => key),
    wake.from,
    numberArray(ranges, ({ start }) => start),
    numberArray(ranges, ({ end }) => end),
  ]);
  wake.end();
  floors.looked(
    looks.filter(({ isFull }) => isFull).map(({ queue }) => queue),
    elapsed(),
  );
  const [decided, ready, due, nextDueAt, found, versions] = row;
  const instants = [decided, ready, due].filter((at) => at !== null) as number[];
  const waiting = itemsOf(found as string).map((item) => item.split("@").map(Number) as [number, number]);
  for (const [nth, rank] of waiting) floors.lower(ranges[nth - 1]?.queue as string, [rank]);
  return {
    nextWakeAt: instants.length === 0 ? null : Math.min(...instants),
    nextDueAt: nextDueAt as number | null,
    ready: [...new Set(waiting.map(([nth]) => ranges[nth - 1]?.queue as string))],
    versions: itemsOf(versions as string).map(Number),
  };
}

/** The items of an array as the server writes it: `{1,2}`. */
function itemsOf(text: string): string[] {
  return text === "{}" ? [] : text.slice(1, -1).split(",");
}
