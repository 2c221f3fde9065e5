import { UUID } from "../../core/ids.ts";
import { type JobState, noJobs } from "../../core/job/job.ts";
import type { Json } from "../../core/schema.ts";
import { namesOf } from "../../core/tenant/tenant-name.ts";
import { BATCH_LIMIT, type EventPage, type Inspector, LIVE_LIMIT, LOG_LIMIT } from "../../ports/store.ts";
import { rest, type System } from "../../ports/system.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { pathOf } from "../scan-cursor.ts";
import { type EventRow, FIRST_ROWS, moreRows, PageBuilder, splitCursor } from "../sql/event-pack.ts";
import { decodeJob, type SqlRow, STATE_CODES, stateOf } from "../sql/row-codec.ts";
import { idArray } from "./array-literal.ts";
import {
  COUNT_LIVE,
  COUNT_LIVE_OF,
  DEPTHS,
  DEPTHS_OF,
  EVENT_HORIZON,
  HOLDERS,
  LATEST_EVENTS,
  READ_EVENTS,
  READ_LINES,
  TENANT_USE,
  UNIQUE_KEYS,
} from "./inspect-statements.ts";
import { limitRow } from "./key-limits.ts";
import { LIMIT_JOBS, LIMIT_KEYS } from "./limit-statements.ts";
import { createLines } from "./lines.ts";
import { countJobs, scanJobs } from "./scan-jobs.ts";
import type { Runner } from "./session.ts";

/** Lists begin here if they are given no cursor. */
const FIRST = namesOf(undefined).from;

export function createInspector(runner: Runner, system: Pick<System, "after">): Inspector {
  return {
    depths: (queue, tenant) => depthsOf(runner, queue, tenant),
    async holders(after, limit) {
      checkLimit(limit);
      const rows = await runner.run(HOLDERS, [after ?? FIRST, limit]);
      return rows.map(([key, job]) => ({ key: key as string, job: job as string }));
    },
    async uniqueKeys(ids) {
      checkBatch(ids, "ids");
      if (ids.length === 0) return [];
      const keys = new Map((await runner.run(UNIQUE_KEYS, [idArray(ids)])) as [string, string][]);
      return ids.map((id) => keys.get(id) ?? null);
    },
    async limitKeys(after, limit) {
      checkLimit(limit);
      const limits = await runner.run(LIMIT_KEYS, [after ?? FIRST, limit]);
      return Promise.all(limits.map(([limitKey]) => limitRow(runner, limitKey as string)));
    },
    limitKey: (limitKey) => limitRow(runner, limitKey),
    async limitJobs(limitKey, state, limit) {
      checkLimit(limit);
      const rows = await runner.run(LIMIT_JOBS, [limitKey, state && STATE_CODES[state], limit]);
      return rows.map(decodeJob);
    },
    async page(scan, limit) {
      checkLimit(limit, BATCH_LIMIT);
      return scanJobs(runner, pathOf(scan), limit);
    },
    count: async (scan) => countJobs(runner, pathOf(scan)),
    async used(tenant, most) {
      checkLimit(most);
      const [row] = await runner.run(TENANT_USE, [tenant, most]);
      const [active, waiting] = row as readonly number[] as [number, number];
      return { active, waiting };
    },
    async live(tenant) {
      const rows =
        tenant === undefined
          ? await runner.run(COUNT_LIVE, [LIVE_LIMIT])
          : await runner.run(COUNT_LIVE_OF, [LIVE_LIMIT, tenant]);
      return rows.map(([queue, type, code, count]) => ({
        queue: queue as string,
        type: type as string,
        state: stateOf(code),
        count: count as number,
      }));
    },
    ...createLines(runner),
    async events(after, limit) {
      checkLimit(limit);
      return readEvents(runner, system, after, limit);
    },
    async latestEvents(limit, before) {
      checkLimit(limit);
      return readLatest(runner, limit, before);
    },
    async logLines(id, after, limit) {
      checkLimit(limit, LOG_LIMIT);
      if (!UUID.test(id)) return [];
      const rows = await runner.run(READ_LINES, [id, after, limit, LOG_LIMIT]);
      return rows.map(([seq, body]) => ({ seq: Number(seq), line: JSON.parse(body as string) as Json }));
    },
  };
}

async function depthsOf(
  runner: Runner,
  only?: string,
  tenant?: string,
): Promise<Map<string, Record<JobState, number>>> {
  const depths = new Map<string, Record<JobState, number>>();
  const counted =
    tenant === undefined
      ? await runner.run(DEPTHS, [only ?? null])
      : await runner.run(DEPTHS_OF, [only ?? null, tenant]);
  for (const [queue, code, count] of counted) {
    const depth = depths.get(queue as string) ?? noJobs();
    depth[stateOf(code)] += count as number;
    depths.set(queue as string, depth);
  }
  return new Map([...depths].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * Milliseconds before each further look at events without a final position. Most transactions end within a few of
 * them. The caller decides whether to wait longer.
 */
const LOOK_AGAIN = [2, 5, 10, 20, 40];

/**
 * Reads only events with a final position. If an event that was committed before the call has none yet, it looks
 * again shortly. It does not wait for newer events: a busy server always has some without a final position.
 */
async function readEvents(
  runner: Runner,
  system: Pick<System, "after">,
  after: string | null,
  limit: number,
): Promise<EventPage> {
  const builder = new PageBuilder(after, limit);
  const { position, skip } = splitCursor(after ?? "0.0");
  const [epoch, xid, seq] = partsOf(position);
  let from: unknown[] = [epoch, xid, skip > 0 ? String(BigInt(seq) - 1n) : seq];
  let looks = 0;
  let horizon = "0";
  let committedLater: bigint | undefined;
  for (let most = FIRST_ROWS; ; ) {
    const rows = await runner.run(READ_EVENTS, [...from, most, horizon]);
    committedLater ??= rows[0] && BigInt(rows[0][5] as string);
    const open = rows.find((row) => !isFinal(row));
    const isIncomplete = open !== undefined && BigInt(open[1] as string) < (committedLater ?? 0n);
    if (isIncomplete && looks < LOOK_AGAIN.length) {
      const delay = LOOK_AGAIN[looks++] as number;
      await rest(system, delay);
      horizon = await readHorizon(runner);
      continue;
    }
    const final = rows.filter(isFinal);
    for (const row of final) builder.add(eventRowOf(row));
    if (builder.isFull) return builder.page();
    if (final.length < most) return builder.page(isIncomplete);
    from = (final.at(-1) as SqlRow).slice(0, 3);
    most = moreRows(most);
  }
}

/** How often the newest events are read while some have no final position. It does not wait in between. */
const LATEST_LOOKS = 3;

/** The newest events with a final position. */
async function readLatest(runner: Runner, limit: number, before?: string): Promise<EventPage> {
  let page = await latestBelow(runner, limit, "0", before);
  for (let looks = 1; looks < LATEST_LOOKS && page.isIncomplete; looks++)
    page = await latestBelow(runner, limit, await readHorizon(runner), before);
  return page;
}

async function latestBelow(
  runner: Runner,
  limit: number,
  horizon: string,
  cursor?: string,
): Promise<EventPage> {
  const builder = new PageBuilder(null, limit, cursor);
  let before: unknown[] = cursor === undefined ? [null, null, null] : justAfter(cursor);
  let isIncomplete = false;
  for (let most = FIRST_ROWS; ; most = moreRows(most)) {
    const rows = await runner.run(LATEST_EVENTS, [...before, most, horizon]);
    for (const row of rows) {
      if (isFinal(row)) builder.addBefore(eventRowOf(row));
      else isIncomplete = true;
    }
    if (builder.isFull || rows.length < most) return builder.reversed(isIncomplete);
    before = (rows.at(-1) as SqlRow).slice(0, 3);
  }
}

/** A position between the row of this cursor and the next one. Events of its commit may be before the cursor. */
function justAfter(cursor: string): [epoch: string, xid: string, seq: string] {
  const [epoch, xid, seq] = partsOf(splitCursor(cursor).position);
  return [epoch, xid, String(BigInt(seq) + 1n)];
}

async function readHorizon(runner: Runner): Promise<string> {
  const [row] = await runner.run(EVENT_HORIZON);
  return (row?.[0] as string | undefined) ?? "0";
}

function isFinal(row: SqlRow): boolean {
  return row[4] === 1;
}

/** Epoch 0 is not written, so that cursors from before there were epochs still hold. */
function eventRowOf([epoch, xid, seq, body]: SqlRow): EventRow {
  return { position: epoch === 0 ? `${xid}.${seq}` : `${epoch}.${xid}.${seq}`, body: body as string };
}

/** The epoch, xid and seq of a position. */
function partsOf(position: string): [epoch: string, xid: string, seq: string] {
  const parts = position.split(".");
  const [epoch = "0", xid = "0", seq = "0"] = parts.length > 2 ? parts : ["0", ...parts];
  return [epoch, xid, seq];
}
