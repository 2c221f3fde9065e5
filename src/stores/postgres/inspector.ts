import { UUID } from "../../core/ids.ts";
import { type JobState, noJobs } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import { BATCH_LIMIT, type EventPage, type Inspector, LIVE_LIMIT, LOG_LIMIT } from "../../ports/store.ts";
import type { System } from "../../ports/system.ts";
import { checkLimit } from "../limits.ts";
import { type EventRow, FIRST_ROWS, moreRows, PageBuilder, splitCursor } from "../sql/event-pack.ts";
import { decodeJob, type SqlRow, STATE_CODES, stateOf } from "../sql/row-codec.ts";
import { pathOf } from "../walk.ts";
import type { Runner } from "./connection.ts";
import { DEPTHS, GATES } from "./gate-statements.ts";
import { gateRow } from "./gates.ts";
import {
  COUNT_LIVE,
  DEPTH,
  HOLDERS,
  LATEST_EVENTS,
  LIST_JOBS,
  READ_EVENTS,
  READ_LINES,
  READ_LOGS,
} from "./inspect-statements.ts";
import { countJobs, walkJobs } from "./walking.ts";

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
    depths: () => depthsOf(runner),
    async holders(after, limit) {
      checkLimit(limit);
      const rows = await runner.run(HOLDERS, [after, limit]);
      return rows.map(([key, job]) => ({ key: key as string, job: job as string }));
    },
    async gates(after, limit) {
      checkLimit(limit);
      const gates = await runner.run(GATES, [after, limit]);
      return Promise.all(gates.map(([gate]) => gateRow(runner, gate as string)));
    },
    gate: (gate) => gateRow(runner, gate),
    async page(walk, limit) {
      checkLimit(limit, BATCH_LIMIT);
      return walkJobs(runner, pathOf(walk), limit);
    },
    count: async (walk) => countJobs(runner, pathOf(walk)),
    async live() {
      const rows = await runner.run(COUNT_LIVE, [LIVE_LIMIT]);
      return rows.map(([queue, type, code, count]) => ({
        queue: queue as string,
        type: type as string,
        state: stateOf(code),
        count: count as number,
      }));
    },
    async depth(queue) {
      const depth = noJobs();
      for (const [code, count] of await runner.run(DEPTH, [queue ?? null]))
        depth[stateOf(code)] += count as number;
      return depth;
    },
    async events(after, limit) {
      checkLimit(limit);
      return readEvents(runner, system, after, limit);
    },
    async latestEvents(limit) {
      checkLimit(limit);
      return readLatest(runner, limit);
    },
    async logs(id) {
      if (!UUID.test(id)) return [];
      const rows = await runner.run(READ_LOGS, [id, LOG_LIMIT]);
      return rows.map(([body]) => JSON.parse(body as string) as Json);
    },
    async logLines(id, after, limit) {
      checkLimit(limit, LOG_LIMIT);
      if (!UUID.test(id)) return [];
      const rows = await runner.run(READ_LINES, [id, after, limit, LOG_LIMIT]);
      return rows.map(([seq, body]) => ({ seq: Number(seq), line: JSON.parse(body as string) as Json }));
    },
  };
}

async function depthsOf(runner: Runner): Promise<Map<string, Record<JobState, number>>> {
  const depths = new Map<string, Record<JobState, number>>();
  for (const [queue, code, count] of await runner.run(DEPTHS)) {
    const depth = depths.get(queue as string) ?? noJobs();
    depth[stateOf(code)] += count as number;
    depths.set(queue as string, depth);
  }
  return new Map([...depths].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** How often, and how many milliseconds apart, a page is read again while other transactions hold its end back. */
const REREADS = 20;
const REREAD_DELAY = 5;

/** Only events whose place is final. Most transactions are short, so what they hold back is waited for a moment. */
async function readEvents(
  runner: Runner,
  system: Pick<System, "after">,
  after: string | null,
  limit: number,
): Promise<EventPage> {
  const builder = new PageBuilder(after, limit);
  const { place, skip } = splitCursor(after ?? "0.0");
  const [xid = "0", seq = "0"] = place.split(".");
  let from = [xid, skip > 0 ? String(BigInt(seq) - 1n) : seq];
  let rereads = 0;
  for (let most = FIRST_ROWS; ; ) {
    const rows = await runner.run(READ_EVENTS, [...from, most]);
    const final = rows.filter(isFinal);
    if (final.length < rows.length && rereads++ < REREADS) {
      await new Promise<void>((resolve) => void system.after(REREAD_DELAY, resolve, { keepAlive: true }));
      continue;
    }
    for (const row of final) builder.add(eventRowOf(row));
    if (builder.isFull || final.length < most) return builder.page();
    const last = final.at(-1) as SqlRow;
    from = [last[0] as string, last[1] as string];
    most = moreRows(most);
  }
}

async function readLatest(runner: Runner, limit: number): Promise<EventPage> {
  const builder = new PageBuilder(null, limit);
  let before: unknown[] = [null, null];
  for (let most = FIRST_ROWS; ; most = moreRows(most)) {
    const rows = await runner.run(LATEST_EVENTS, [...before, most]);
    for (const row of rows) if (isFinal(row)) builder.addBefore(eventRowOf(row));
    if (builder.isFull || rows.length < most) return builder.reversed();
    before = (rows.at(-1) as SqlRow).slice(0, 2);
  }
}

function isFinal(row: SqlRow): boolean {
  return row[3] === 1;
}

function eventRowOf([xid, seq, body]: SqlRow): EventRow {
  return { place: `${xid}.${seq}`, body: body as string };
}
