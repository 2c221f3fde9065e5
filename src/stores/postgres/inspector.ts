import { UUID } from "../../core/ids.ts";
import { JOB_STATES, type JobState } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { Inspector } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import { checkLimit } from "../limits.ts";
import { decodeJob, type SqlRow, STATE_CODES, stateOf } from "../sql/row-codec.ts";
import type { Runner } from "./connection.ts";
import { DEPTHS, GATES } from "./gate-statements.ts";
import { gateRow } from "./gates.ts";
import { DEPTH, LIST_JOBS, READ_EVENTS, READ_LOGS } from "./inspect-statements.ts";
import type { Statement } from "./statements.ts";

/** Only the last lines of a log are shown: a handler that logs in a loop must not fill whoever looks at it. */
const LOG_LIMIT = 1_000;

export function createInspector(runner: Runner, system: Pick<System, "after">): Inspector {
  return {
    async jobs({ queue, type, state, deadLetter, gate }, after, limit) {
      checkLimit(limit);
      const rows = await runner.run(LIST_JOBS, [
        queue ?? null,
        type ?? null,
        state === undefined ? null : STATE_CODES[state],
        deadLetter === undefined ? null : Number(deadLetter),
        after,
        limit,
        gate ?? null,
      ]);
      return rows.map(decodeJob);
    },
    async depths() {
      const depths = new Map<string, Record<JobState, number>>();
      for (const [queue, code, count] of await runner.run(DEPTHS)) {
        const depth = depths.get(queue as string) ?? noJobs();
        depth[stateOf(code)] += count as number;
        depths.set(queue as string, depth);
      }
      return new Map([...depths].sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    async gates(after, limit) {
      checkLimit(limit);
      const gates = await runner.run(GATES, [after, limit]);
      return Promise.all(gates.map(([gate]) => gateRow(runner, gate as string)));
    },
    gate: (gate) => gateRow(runner, gate),
    async depth(queue) {
      const depth = noJobs();
      for (const [code, count] of await runner.run(DEPTH, [queue ?? null]))
        depth[stateOf(code)] += count as number;
      return depth;
    },
    async events(after, limit) {
      checkLimit(limit);
      const rows = await readEvents(runner, system, after, limit);
      const last = rows.at(-1);
      return {
        events: rows.map((row) => JSON.parse(row[2] as string) as Json),
        cursor: last ? `${last[0]}.${last[1]}` : after,
      };
    },
    async latestEvents(limit) {
      checkLimit(limit);
      const rows = (await runner.run(LATEST_EVENTS, [limit])).reverse().filter((row) => row[3] === 1);
      const last = rows.at(-1);
      return {
        events: rows.map((row) => JSON.parse(row[2] as string) as Json),
        cursor: last ? `${last[0]}.${last[1]}` : null,
      };
    },
    async logs(id) {
      if (!UUID.test(id)) return [];
      const rows = await runner.run(READ_LOGS, [id, LOG_LIMIT]);
      return rows.map(([body]) => JSON.parse(body as string) as Json);
    },
  };
}

function noJobs(): Record<JobState, number> {
  return Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>;
}

/** The newest events, newest first, with what READ_EVENTS gives. $1 how many. */
const LATEST_EVENTS: Statement = {
  text: `
select e.xid::text, e.seq::text, e.body, (e.xid < pg_snapshot_xmin(pg_current_snapshot()))::int from curfew.events e
 order by e.xid desc, e.seq desc limit $1::bigint`,
};

/** How often, and how many milliseconds apart, a page is read again while other transactions hold its end back. */
const REREADS = 10;
const REREAD_DELAY = 5;

/** Only events whose place is final. Most transactions are short, so what they hold back is waited for a moment. */
async function readEvents(
  runner: Runner,
  system: Pick<System, "after">,
  after: string | null,
  limit: number,
): Promise<SqlRow[]> {
  const [xid, seq] = (after ?? "0.0").split(".");
  for (let rereads = 0; ; rereads++) {
    const rows = await runner.run(READ_EVENTS, [xid, seq, limit]);
    const final = rows.filter((row) => row[3] === 1);
    if (final.length === rows.length || rereads === REREADS) return final;
    await new Promise<void>((resolve) => void system.after(REREAD_DELAY, resolve, { keepAlive: true }));
  }
}
