import { briefRow } from "../../core/job/documents/brief-row.ts";
import { type JobRow, type JobState, noJobs, sumDepths } from "../../core/job/job.ts";
import { isWanted } from "../../core/job/job-filter.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import { namesOf } from "../../core/tenant/tenant-name.ts";
import {
  BATCH_LIMIT,
  type HeldSlots,
  HOLDERS_SHOWN,
  type Inspector,
  LIVE_LIMIT,
  type LimitRow,
  type Line,
  type LiveCount,
  LOG_LIMIT,
  SCAN_STEP,
  startsOf,
} from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { cursorOf, pathOf, type ScanPath } from "../scan-cursor.ts";
import { STATE_CODES, stateOf } from "../sql/row-codec.ts";
import type { Packed } from "./codec.ts";
import { readEvents, readLatest } from "./events.ts";
import { type Home, ITEMS_PER_CALL } from "./home.ts";
import { loadJobs } from "./job-store.ts";
import { FIRST } from "./record-store.ts";
import { readJobs } from "./row-codec.ts";

export function createInspector(home: Home): Inspector {
  return {
    ...createCounts(home),
    ...createLimits(home),
    ...createLines(home),
    async page(scan, limit) {
      home.assertOpen();
      checkLimit(limit, BATCH_LIMIT);
      const path = pathOf(scan);
      const jobs: JobRow[] = [];
      const cursor = await walk(
        home,
        path,
        (found) => limit - found,
        (rows) => jobs.push(...rows),
      );
      return { jobs, cursor };
    },
    async count(scan) {
      home.assertOpen();
      const path = pathOf(scan);
      // Which jobs have a text can only be said of whole rows: what is redacted must not be told.
      const needsRows = path.filter.text !== undefined;
      let count = 0;
      const add = (rows: readonly JobRow[], found: number) => {
        count += needsRows ? rows.length : found;
      };
      const cursor = await walk(home, path, () => (needsRows ? ITEMS_PER_CALL : 0), add);
      return { count, cursor };
    },
    async holders(after, limit) {
      home.assertOpen();
      checkLimit(limit);
      const from = after === null ? FIRST : `${after}\u0001`;
      const found = await listNames(home, "u", null, from, limit);
      return found.map((text) => {
        const at = text.lastIndexOf("\0");
        return { key: text.slice(0, at), job: text.slice(at + 1) };
      });
    },
    async uniqueKeys(ids) {
      home.assertOpen();
      checkBatch(ids, "ids");
      const found: (string | null)[] = [];
      for (let from = 0; from < ids.length; from += ITEMS_PER_CALL) {
        const reader = await home.call("uniqueKeys", ids.slice(from, from + ITEMS_PER_CALL));
        found.push(...(reader.read() as (string | null)[]));
      }
      return found;
    },
    async latestEvents(limit, before) {
      home.assertOpen();
      checkLimit(limit);
      return readLatest(home, limit, before);
    },
    async events(after, limit) {
      home.assertOpen();
      checkLimit(limit);
      return readEvents(home, after, limit);
    },
    async logLines(id, after, limit) {
      home.assertOpen();
      checkLimit(limit, LOG_LIMIT);
      const reader = await home.call("readLog", [id, after, limit]);
      const before = reader.read() as number;
      const lines = reader.read() as string[];
      return lines.map((line, index) => ({ seq: before + index + 1, line: JSON.parse(line) }));
    },
  };
}

/** What `wanted` in lua/inspect.ts takes. Texts may be long and odd: they are sent as bytes. */
function filterValues({ filter }: ScanPath): Packed {
  const flag = (value: boolean | undefined) => (value === undefined ? null : value ? 1 : 0);
  return [
    filter.queue,
    filter.type,
    filter.state && STATE_CODES[filter.state],
    flag(filter.deadLetter),
    flag(filter.isLive),
    filter.createdFrom,
    filter.createdBefore,
    filter.finishedFrom,
    filter.finishedBefore,
    filter.text,
  ];
}

/**
 * One step of a scan: a walk over ids, or over dead letters in the order in which they ended, in calls of a bounded number of
 * rows. Returns the cursor at which it stopped, or null at the end.
 */
async function walk(
  home: Home,
  path: ScanPath,
  most: (found: number) => number,
  add: (rows: readonly JobRow[], found: number) => void,
): Promise<string | null> {
  const { filter, newestFirst, byEnd } = path;
  const values = filterValues(path);
  let { after } = path;
  let found = 0;
  for (let left = SCAN_STEP; left > 0; ) {
    const wanted = most(found);
    const asked = Math.min(left, ITEMS_PER_CALL);
    const head = [byEnd ? "dl" : "i", filter.tenant ?? "", after?.id, after?.at ?? null, newestFirst];
    // A text is looked for in the payload, so only other scans may leave it in the server.
    const isBrief = path.isBrief && filter.text === undefined;
    const reader = await home.call("scan", [...head, asked, values, wanted, isBrief]);
    const [read, id, at, hasMore] = [reader.read(), reader.read(), reader.read(), reader.read()];
    const count = reader.read() as number;
    const rows = readJobs(reader).filter((row) => isWanted(row, filter));
    add(path.isBrief ? rows.map(briefRow) : rows, count);
    found += rows.length;
    if (id !== null) after = { id: id as string, at: byEnd ? (at as number) : null };
    if (hasMore !== true) return null;
    left -= read as number;
    if (wanted > 0 && most(found) <= 0) break;
  }
  return after && cursorOf(after);
}

/** Names of an index, in order. */
async function listNames(
  home: Home,
  key: string,
  after: string | null,
  from: string,
  limit: number,
  to: string | null = null,
): Promise<string[]> {
  const found: string[] = [];
  for (let cursor = after; found.length < limit; ) {
    const most = Math.min(limit - found.length, ITEMS_PER_CALL);
    const names = (await home.call("listNames", [key, cursor, from, to, most])).read() as string[];
    for (const name of names) found.push(name);
    if (names.length < most) break;
    cursor = names.at(-1) as string;
  }
  return found;
}

type QueueCounts = readonly [queue: string, type: string, state: JobState, count: number];

/** The counts of queues by state and type. */
async function* queueCounts(home: Home, queue: string | undefined, tenant: string | undefined) {
  const { from, to } = namesOf(tenant);
  for (let after: string | null = null; ; ) {
    const asked: Packed = queue === undefined ? [after, from, to, ITEMS_PER_CALL] : [queue];
    const answer = (await home.call("depths", asked)).read() as (string | string[])[];
    for (let at = 0; at < answer.length; at += 2) {
      const name = answer[at] as string;
      const fields = answer[at + 1] as string[];
      for (let field = 0; field < fields.length; field += 2) {
        const text = fields[field] as string;
        const counts: QueueCounts = [
          name,
          text.slice(1),
          stateOf(Number(text[0])),
          Number(fields[field + 1]),
        ];
        yield counts;
      }
      after = name;
    }
    if (queue !== undefined || answer.length < 2 * ITEMS_PER_CALL) return;
  }
}

function createCounts(
  home: Home,
): Pick<Inspector, "depths" | "live" | "used" | "readyQueues" | "oldestReady"> {
  const depths = async (queue?: string, tenant?: string) => {
    home.assertOpen();
    const found = new Map<string, Record<JobState, number>>();
    for await (const [name, , state, count] of queueCounts(home, queue, tenant)) {
      const depth = found.get(name) ?? noJobs();
      depth[state] += count;
      found.set(name, depth);
    }
    return found;
  };
  return {
    depths,
    async live(tenant) {
      home.assertOpen();
      const counts: LiveCount[] = [];
      for await (const [queue, type, state, count] of queueCounts(home, undefined, tenant)) {
        if (counts.length === LIVE_LIMIT) break;
        if (!isTerminal(state)) counts.push({ queue, type, state, count });
      }
      return counts;
    },
    async used(tenant, most) {
      checkLimit(most);
      const { active, ...rest } = sumDepths((await depths(undefined, tenant)).values());
      const waiting = rest.available + rest.pending + rest.scheduled + rest.retryable;
      return { active: Math.min(active, most), waiting: Math.min(waiting, most) };
    },
    async readyQueues(after, limit) {
      home.assertOpen();
      checkLimit(limit);
      return listNames(home, "qr", after ?? FIRST, FIRST, limit);
    },
    async oldestReady(limit, tenant) {
      home.assertOpen();
      checkLimit(limit);
      const { from, to } = namesOf(tenant);
      const queues = await listNames(home, "qr", null, from, limit, to);
      const found = [];
      for (let at = 0; at < queues.length; at += ITEMS_PER_CALL) {
        const names = queues.slice(at, at + ITEMS_PER_CALL);
        const jobs = (await home.call("oldest", names)).read() as ([string, number, number] | null)[];
        for (const [index, job] of jobs.entries()) {
          if (job) found.push({ queue: names[index] as string, id: job[0], rank: job[1], createdAt: job[2] });
        }
      }
      return found;
    },
  };
}

type LimitValues = [number, number, number, number, number, number, number | null];

async function limitRows(home: Home, keys: readonly string[]): Promise<LimitRow[]> {
  const asked = keys.flatMap((key) => [key, startsOf(key).from, startsOf(key).to]);
  const rows = (await home.call("limitRows", asked)).read() as LimitValues[];
  return rows.map(([waiting, available, active, unstarted, retryable, starts, nextAt], index) => {
    const key = keys[index] as string;
    return { key, waiting, available, active, unstarted, retryable, starts, nextAt };
  });
}

function createLimits(home: Home): Pick<Inspector, "limitKeys" | "limitKey" | "limitJobs"> {
  return {
    async limitKeys(after, limit) {
      home.assertOpen();
      checkLimit(limit);
      const keys = await listNames(home, "gk", after ?? FIRST, FIRST, limit);
      const found: LimitRow[] = [];
      for (let at = 0; at < keys.length; at += ITEMS_PER_CALL)
        found.push(...(await limitRows(home, keys.slice(at, at + ITEMS_PER_CALL))));
      return found;
    },
    async limitKey(key) {
      return (await limitRows(home, [key]))[0] as LimitRow;
    },
    async limitJobs(key, state, limit) {
      home.assertOpen();
      checkLimit(limit);
      return limitJobs(home, key, state, limit);
    },
  };
}

async function limitJobs(home: Home, key: string, state: JobState | null, limit: number): Promise<JobRow[]> {
  const code = state === null ? null : STATE_CODES[state];
  const ids = (await home.call("limitIds", [key, code, limit])).read() as string[];
  const rows = await loadJobs(home, ids);
  return rows.filter((row) => row !== null && (state === null || row.state === state)) as JobRow[];
}

/** The first active jobs of a queue with a limit. */
async function activeJobs(home: Home, queue: string, limit: number): Promise<JobRow[]> {
  const ids = await listNames(home, `gq:${queue}`, null, "", limit);
  const rows = await loadJobs(home, ids);
  return rows.filter((row) => row?.state === "active") as JobRow[];
}

/** Queries about waiting jobs. */
function createLines(home: Home): Pick<Inspector, "ahead" | "shares" | "slots"> {
  return {
    async ahead(line, { rank, id }, most) {
      home.assertOpen();
      checkLimit(most);
      const of =
        "limitKey" in line
          ? ["g", line.limitKey]
          : "fairKey" in line
            ? ["f", line.queue, line.fairKey]
            : ["q", line.queue];
      return Math.min((await home.call("ahead", [of, rank, id])).read() as number, most);
    },
    async shares(queue, limit, most) {
      home.assertOpen();
      checkLimit(limit);
      checkLimit(most);
      const rows = (await home.call("shares", [queue, limit])).read() as [string, number, number][];
      return rows.map(([key, rank, count]) => ({ key, rank, waiting: Math.min(count, most) }));
    },
    async slots(line, most) {
      home.assertOpen();
      checkLimit(most);
      return heldSlots(home, line, most);
    },
  };
}

async function heldSlots(home: Home, line: Line, most: number): Promise<HeldSlots> {
  if ("queue" in line) {
    const active = await activeJobs(home, line.queue, most);
    const unstarted = active.filter(({ startedAt }) => startedAt === null).length;
    const use = { available: 0, active: active.length, unstarted, retryable: 0, starts: 0 };
    return { ...use, nextAt: null, jobs: active.slice(0, HOLDERS_SHOWN) };
  }
  const [row] = (await limitRows(home, [line.limitKey])) as [LimitRow];
  return {
    available: Math.min(row.available, most),
    active: Math.min(row.active, most),
    unstarted: Math.min(row.unstarted, most),
    retryable: Math.min(row.retryable, most),
    starts: Math.min(row.starts, most),
    nextAt: row.nextAt,
    jobs: row.active === 0 ? [] : await limitJobs(home, line.limitKey, "active", HOLDERS_SHOWN),
  };
}
