import { type JobId, type JobState, noJobs } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import { namesOf, tenantPrefix } from "../../core/tenant/tenant-name.ts";
import {
  BATCH_LIMIT,
  type Inspector,
  LIVE_LIMIT,
  type LimitRow,
  type LiveCount,
  LOG_LIMIT,
} from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { pathOf } from "../scan-cursor.ts";
import { type EventRow, FIRST_ROWS, moreRows, PageBuilder, splitCursor } from "../sql/event-pack.ts";
import { decodeJob, type SqlRow, STATE_CODES, stateOf } from "../sql/row-codec.ts";
import type { Connection } from "./connection.ts";
import { limitRow } from "./key-limits.ts";
import {
  ADMITTED_JOBS,
  COUNT_QUEUES,
  COUNT_QUEUES_DONE,
  LIMIT_JOBS,
  NEXT_LIMIT_KEY,
  WAITING_JOBS,
} from "./limit-statements.ts";
import { createLines } from "./lines.ts";
import { countJobs, scanJobs } from "./scan-jobs.ts";
import type { Session } from "./session.ts";
import {
  COUNT_LIVE,
  HOLDERS,
  LATEST_EVENTS,
  RANGE_END,
  RANGE_END_DONE,
  READ_EVENTS,
  READ_LINES,
  UNIQUE_KEYS,
} from "./statements.ts";
import {
  ACTIVE_OF,
  COUNT_LIVE_OF,
  COUNT_QUEUES_DONE_OF,
  COUNT_QUEUES_OF,
  TENANT_RANGE_END,
  TENANT_RANGE_END_DONE,
  WAITING_OF,
} from "./tenant-statements.ts";

/** The most rows that are read at once: reading a large table must not stop the engine, which shares the thread. */
const RANGE_ROWS = 2_000;
/** Sorts after every id. */
const LAST_ID = "\uffff";
/** Lists begin here if they are given no cursor. */
const FIRST = namesOf(undefined).from;

/** What the statements of a tenant take first. */
function prefixOf(tenant: string | undefined): readonly string[] {
  return tenant === undefined ? [] : [tenantPrefix(tenant)];
}

export function createInspector(connection: Connection): Inspector {
  return {
    async page(scan, limit) {
      checkLimit(limit, BATCH_LIMIT);
      const path = pathOf(scan);
      return connection.read((session) => scanJobs(session, path, limit));
    },
    async count(scan) {
      const path = pathOf(scan);
      return connection.read((session) => countJobs(session, path));
    },
    live: (tenant) => liveOf(connection, tenant),
    async used(tenant, most) {
      checkLimit(most);
      const values = [...prefixOf(tenant), most];
      return connection.read((session) => ({
        active: session.get(ACTIVE_OF, values)?.[0] as number,
        waiting: session.get(WAITING_OF, values)?.[0] as number,
      }));
    },
    ...createLines(connection),
    depths: (queue, tenant) => depthsOf(connection, queue, tenant),
    async holders(after, limit) {
      checkLimit(limit);
      const rows = await connection.read((session) => session.all(HOLDERS, [after ?? FIRST, limit]));
      return rows.map(([key, job]) => ({ key: key as string, job: job as string }));
    },
    uniqueKeys: (ids) => uniqueKeysOf(connection, ids),
    limitKeys: (after, limit) => {
      checkLimit(limit);
      return connection.read((session) => limitsAfter(session, after ?? FIRST, limit));
    },
    limitKey: (limitKey) => connection.read((session) => limitRow(session, limitKey)),
    async limitJobs(limitKey, state, limit) {
      checkLimit(limit);
      return connection.read((session) => limitJobs(session, limitKey, state, limit).map(decodeJob));
    },
    async events(after, limit) {
      checkLimit(limit);
      const builder = new PageBuilder(after, limit);
      const { position, skip } = splitCursor(after ?? "0");
      let seq = skip > 0 ? Number(position) - 1 : Number(position);
      for (let most = FIRST_ROWS; ; most = moreRows(most)) {
        const rows = await connection.read((session) => session.all(READ_EVENTS, [seq, most]));
        for (const row of rows) builder.add(eventRowOf(row));
        if (builder.isFull || rows.length < most) return builder.page();
        seq = rows.at(-1)?.[0] as number;
      }
    },
    async latestEvents(limit, cursor) {
      checkLimit(limit);
      const builder = new PageBuilder(null, limit, cursor);
      // The row of the cursor is read again: events of its commit may be before it.
      let before = cursor === undefined ? Number.MAX_SAFE_INTEGER : Number(splitCursor(cursor).position) + 1;
      for (let most = FIRST_ROWS; ; most = moreRows(most)) {
        const rows = await connection.read((session) => session.all(LATEST_EVENTS, [before, most]));
        for (const row of rows) builder.addBefore(eventRowOf(row));
        if (builder.isFull || rows.length < most) return builder.reversed();
        before = rows.at(-1)?.[0] as number;
      }
    },
    async logLines(id, after, limit) {
      checkLimit(limit, LOG_LIMIT);
      const rows = await connection.read((session) => session.all(READ_LINES, [id, after, limit]));
      return rows.map(([seq, body]) => ({ seq: seq as number, line: JSON.parse(body as string) as Json }));
    },
  };
}

async function liveOf(connection: Connection, tenant: string | undefined): Promise<LiveCount[]> {
  const counts = new Map<string, LiveCount>();
  const ours = prefixOf(tenant);
  const [rangeEnd, count] =
    tenant === undefined ? [RANGE_END, COUNT_LIVE] : [TENANT_RANGE_END, COUNT_LIVE_OF];
  await scanTable(connection, rangeEnd, ours, (session, from, to) => {
    for (const row of session.all(count, [...ours, from, to])) addCount(counts, row);
    return true;
  });
  return [...counts.values()];
}

async function uniqueKeysOf(connection: Connection, ids: readonly JobId[]): Promise<(string | null)[]> {
  checkBatch(ids, "ids");
  const list = JSON.stringify(ids);
  const rows = await connection.read((session) => session.all(UNIQUE_KEYS, [list, list]));
  const keys = new Map(rows as [string, string][]);
  return ids.map((id) => keys.get(id) ?? null);
}

function limitsAfter(session: Session, after: string, limit: number): LimitRow[] {
  const rows: LimitRow[] = [];
  for (let last = after; rows.length < limit; ) {
    const limitKey = session.get(NEXT_LIMIT_KEY, [last, last])?.[0] as string | null;
    if (limitKey === null) break;
    rows.push(limitRow(session, limitKey));
    last = limitKey;
  }
  return rows;
}

function eventRowOf([seq, body]: SqlRow): EventRow {
  return { position: String(seq), body: body as string };
}

/** Adds a row of COUNT_LIVE. A group beyond `LIVE_LIMIT` is skipped. */
function addCount(counts: Map<string, LiveCount>, [queue, type, code, count]: SqlRow): void {
  const key = JSON.stringify([queue, type, code]);
  const before = counts.get(key)?.count;
  if (before === undefined && counts.size >= LIVE_LIMIT) return;
  counts.set(key, {
    queue: queue as string,
    type: type as string,
    state: stateOf(code),
    count: (before ?? 0) + (count as number),
  });
}

/** The depths of all queues, or of one. A job that ends in between may be counted twice. */
async function depthsOf(
  connection: Connection,
  only?: string,
  tenant?: string,
): Promise<Map<string, Record<JobState, number>>> {
  const depths = new Map<string, Record<JobState, number>>();
  const ours = prefixOf(tenant);
  const tables =
    tenant === undefined
      ? ([
          [RANGE_END, COUNT_QUEUES],
          [RANGE_END_DONE, COUNT_QUEUES_DONE],
        ] as const)
      : ([
          [TENANT_RANGE_END, COUNT_QUEUES_OF],
          [TENANT_RANGE_END_DONE, COUNT_QUEUES_DONE_OF],
        ] as const);
  for (const [rangeEnd, count] of tables) {
    await scanTable(connection, rangeEnd, ours, (session, from, to) => {
      for (const [queue, code, jobs] of session.all(count, [...ours, from, to, only ?? null])) {
        const depth = depths.get(queue as string) ?? noJobs();
        depth[stateOf(code)] += jobs as number;
        depths.set(queue as string, depth);
      }
      return true;
    });
  }
  return new Map([...depths].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Reads a table, or what a tenant has of it, in the order of ids, one range at a time, until `look` returns false. */
async function scanTable(
  connection: Connection,
  rangeEnd: string,
  ours: readonly string[],
  look: (session: Session, from: JobId, to: JobId) => boolean,
): Promise<void> {
  for (let from = ""; ; ) {
    const { to, goesOn } = await connection.read((session) => {
      const end = session.get(rangeEnd, [...ours, from, RANGE_ROWS - 1])?.[0] as JobId | undefined;
      const wantsMore = look(session, from, end ?? LAST_ID);
      return { to: end, goesOn: wantsMore };
    });
    if (!goesOn || to === undefined) return;
    from = to;
  }
}

function limitJobs(session: Session, limitKey: string, state: JobState | null, limit: number) {
  if (state === null) return session.all(LIMIT_JOBS, [limitKey, limitKey, limit]);
  if (state === "pending") return session.all(WAITING_JOBS, [limitKey, limit]);
  return session.all(ADMITTED_JOBS, [limitKey, STATE_CODES[state], limit]);
}
