import { JOB_STATES, type JobId, type JobRow, type JobState } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import type { GateRow, Inspector, JobFilter } from "../../ports/store.ts";
import { checkLimit } from "../limits.ts";
import { decodeJob, STATE_CODES, stateOf } from "../sql/row-codec.ts";
import type { Connection } from "./connection.ts";
import { COUNT_QUEUES, COUNT_QUEUES_DONE, NEXT_GATE } from "./gate-statements.ts";
import { gateRow } from "./gates.ts";
import type { Session } from "./session.ts";
import {
  COUNT_DONE,
  COUNT_JOBS,
  LATEST_EVENTS,
  LIST_DONE,
  LIST_GATED,
  LIST_JOBS,
  READ_EVENTS,
  READ_LOG,
  STRETCH_END,
  STRETCH_END_DONE,
} from "./statements.ts";

/** Rows that are looked at in one go: a look at a large table must not stop the engine that shares the thread. */
const STRETCH = 2_000;
/** Comes after every id. */
const LAST_ID = "\uffff";

export function createInspector(connection: Connection): Inspector {
  return {
    async jobs(filter, after, limit) {
      checkLimit(limit);
      return listJobs(connection, filter, after ?? "", limit);
    },
    /** Not the state of one moment: a job that ends while the tables are walked may be counted in both. */
    async depth(queue) {
      const depth = noJobs();
      const tables = [
        [STRETCH_END, COUNT_JOBS],
        [STRETCH_END_DONE, COUNT_DONE],
      ] as const;
      for (const [stretchEnd, count] of tables) {
        await walk(connection, stretchEnd, "", (session, from, to) => {
          for (const [code, jobs] of session.all(count, [from, to, queue ?? null])) {
            depth[stateOf(code)] += jobs as number;
          }
          return true;
        });
      }
      return depth;
    },
    depths: () => depthsOf(connection),
    gates: (after, limit) => {
      checkLimit(limit);
      return connection.read((session) => {
        const rows: GateRow[] = [];
        for (let last = after ?? ""; rows.length < limit; ) {
          const gate = session.get(NEXT_GATE, [last, last])?.[0] as string | null;
          if (gate === null) break;
          rows.push(gateRow(session, gate));
          last = gate;
        }
        return rows;
      });
    },
    gate: (gate) => connection.read((session) => gateRow(session, gate)),
    async events(after, limit) {
      checkLimit(limit);
      const rows = await connection.read((session) => session.all(READ_EVENTS, [Number(after ?? 0), limit]));
      return {
        events: rows.map(([, body]) => JSON.parse(body as string) as Json),
        cursor: rows.length === 0 ? after : String(rows.at(-1)?.[0]),
      };
    },
    async latestEvents(limit) {
      checkLimit(limit);
      const rows = await connection.read((session) => session.all(LATEST_EVENTS, [limit]));
      return {
        events: rows.map(([, body]) => JSON.parse(body as string) as Json).reverse(),
        cursor: rows.length === 0 ? null : String(rows[0]?.[0]),
      };
    },
    async logs(id) {
      const rows = await connection.read((session) => session.all(READ_LOG, [id]));
      return rows.map(([body]) => JSON.parse(body as string) as Json);
    },
  };
}

/** By queue; not the state of one moment either. */
async function depthsOf(connection: Connection): Promise<Map<string, Record<JobState, number>>> {
  const depths = new Map<string, Record<JobState, number>>();
  const tables = [
    [STRETCH_END, COUNT_QUEUES],
    [STRETCH_END_DONE, COUNT_QUEUES_DONE],
  ] as const;
  for (const [stretchEnd, count] of tables) {
    await walk(connection, stretchEnd, "", (session, from, to) => {
      for (const [queue, code, jobs] of session.all(count, [from, to])) {
        const depth = depths.get(queue as string) ?? noJobs();
        depth[stateOf(code)] += jobs as number;
        depths.set(queue as string, depth);
      }
      return true;
    });
  }
  return new Map([...depths].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function noJobs(): Record<JobState, number> {
  return Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>;
}

/** Walks a table in the order of ids, a stretch at a time, until `look` says that it has seen enough. */
async function walk(
  connection: Connection,
  stretchEnd: string,
  after: JobId,
  look: (session: Session, from: JobId, to: JobId) => boolean,
): Promise<void> {
  for (let from = after; ; ) {
    const { to, goesOn } = await connection.read((session) => {
      const end = session.get(stretchEnd, [from, STRETCH - 1])?.[0] as JobId | undefined;
      const wantsMore = look(session, from, end ?? LAST_ID);
      return { to: end, goesOn: wantsMore };
    });
    if (!goesOn || to === undefined) return;
    from = to;
  }
}

async function listJobs(
  connection: Connection,
  { queue, type, state, deadLetter, gate }: JobFilter,
  after: JobId,
  limit: number,
): Promise<JobRow[]> {
  const filter = [queue ?? null, type ?? null, state === undefined ? null : STATE_CODES[state]];
  if (gate !== undefined) {
    if (deadLetter) return [];
    const rows = await connection.read((session) => session.all(LIST_GATED, [gate, after, ...filter, limit]));
    return rows.map(decodeJob);
  }
  const found = new Map<JobId, JobRow>();
  const collect = (stretchEnd: string, list: string, more: readonly unknown[]) => {
    let left = limit;
    return walk(connection, stretchEnd, after, (session, from, to) => {
      const rows = session.all(list, [from, to, ...filter, ...more, left]);
      for (const row of rows) found.set(row[0] as JobId, decodeJob(row));
      left -= rows.length;
      return left > 0;
    });
  };
  // Finished jobs come second: one that ends meanwhile is seen twice, and shown as it is by then.
  if (!deadLetter) await collect(STRETCH_END, LIST_JOBS, []);
  await collect(STRETCH_END_DONE, LIST_DONE, [deadLetter === undefined ? null : Number(deadLetter)]);
  return [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit);
}
