import { refuse } from "../../core/errors.ts";
import { cellOfId, cellOfName, type Home, homeOf } from "../../core/home/cell.ts";
import { dueAtOf, type JobRow, type JobState, sumDepths } from "../../core/job/job.ts";
import { earlier } from "../../core/time.ts";
import * as port from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../check-batch.ts";
import { cursorOf, pathOf, type ScanCursor, scanCursorOf } from "../scan-cursor.ts";
import { compareText, mergeSorted, perHome } from "./fan-out.ts";
import type { HomeStore } from "./home-store.ts";
import type { Journal } from "./journal.ts";

/** Queries over several homes. All of them are asked at once, and the answers are merged. */
export function createHomedInspector(homes: readonly HomeStore[], journal: Journal): port.Inspector {
  const ofLimit = (limitKey: string) => at(homeOf(cellOfName(limitKey), homes.length));
  const at = (home: Home) => (homes[home] as HomeStore).inspect;
  const each = <Answer>(ask: (inspect: port.Inspector) => Promise<Answer>) =>
    Promise.all(homes.map(({ inspect }) => ask(inspect)));
  const homeOfId = (id: string) => homeOf(cellOfId(id), homes.length);
  return {
    page: (scan, limit) => page(homes, scan, limit),
    count: (scan) => count(homes, scan),
    async depths(queue, tenant) {
      const found = (await each((inspect) => inspect.depths(queue, tenant))).flatMap((one) => [...one]);
      const byQueue = Map.groupBy(found, ([name]) => name);
      const names = [...byQueue.keys()].sort(compareText);
      return new Map(
        names.map((name) => [name, sumDepths((byQueue.get(name) ?? []).map(([, states]) => states))]),
      );
    },
    async holders(after, limit) {
      checkLimit(limit);
      const lists = await each((inspect) => inspect.holders(after, limit));
      return mergeSorted(lists, (a, b) => compareText(a.key, b.key), limit);
    },
    async uniqueKeys(ids) {
      checkBatch(ids, "ids");
      return perHome(ids, homeOfId, (home, own) => at(home).uniqueKeys(own));
    },
    async limitKeys(after, limit) {
      checkLimit(limit);
      const lists = await each((inspect) => inspect.limitKeys(after, limit));
      return mergeSorted(lists, (a, b) => compareText(a.key, b.key), limit, sumLimits);
    },
    limitKey: (limitKey) => ofLimit(limitKey).limitKey(limitKey),
    limitJobs: (limitKey, state, limit) => ofLimit(limitKey).limitJobs(limitKey, state, limit),
    async live(tenant) {
      return sumLive((await each((inspect) => inspect.live(tenant))).flat());
    },
    async used(tenant, most) {
      const found = await each((inspect) => inspect.used(tenant, most));
      const sum = (count: (use: (typeof found)[number]) => number) =>
        Math.min(
          most,
          found.map(count).reduce((a, b) => a + b, 0),
        );
      return { active: sum(({ active }) => active), waiting: sum(({ waiting }) => waiting) };
    },
    ...createHomedLines(homes),
    events: (after, limit) => {
      checkLimit(limit);
      return journal.events(after, limit);
    },
    latestEvents: (limit, before) => {
      checkLimit(limit);
      return journal.latestEvents(limit, before);
    },
    logLines: (id, after, limit) => at(homeOfId(id)).logLines(id, after, limit),
  };
}

/** Queries about waiting jobs. */
function createHomedLines(
  homes: readonly HomeStore[],
): Pick<port.Inspector, "ahead" | "slots" | "shares" | "readyQueues" | "oldestReady"> {
  const each = <Answer>(ask: (inspect: port.Inspector) => Promise<Answer>) =>
    Promise.all(homes.map(({ inspect }) => ask(inspect)));
  const ofLimit = (limitKey: string) =>
    (homes[homeOf(cellOfName(limitKey), homes.length)] as HomeStore).inspect;
  return {
    async ahead(line, before, most) {
      if ("limitKey" in line) return ofLimit(line.limitKey).ahead(line, before, most);
      const counts = await each((inspect) => inspect.ahead(line, before, most));
      return Math.min(
        most,
        counts.reduce((a, b) => a + b, 0),
      );
    },
    async slots(line, most) {
      if ("limitKey" in line) return ofLimit(line.limitKey).slots(line, most);
      return (await each((inspect) => inspect.slots(line, most))).reduce((a, b) => sumSlots(a, b, most));
    },
    async shares(queue, limit, most) {
      checkLimit(limit);
      const lists = await each((inspect) => inspect.shares(queue, limit, most));
      return sumShares(lists.flat(), most).slice(0, limit);
    },
    async readyQueues(after, limit) {
      checkLimit(limit);
      const lists = await each((inspect) => inspect.readyQueues(after, limit));
      return mergeSorted(lists, compareText, limit, (name) => name);
    },
    async oldestReady(limit, tenant) {
      checkLimit(limit);
      const lists = await each((inspect) => inspect.oldestReady(limit, tenant));
      return mergeSorted(lists, (a, b) => compareText(a.queue, b.queue), limit, olderOf);
    },
  };
}

/** All homes are scanned from the same position, and what lies beyond the position that one of them reached waits. */
async function page(homes: readonly HomeStore[], scan: port.Scan, limit: number): Promise<port.ScannedJobs> {
  checkLimit(limit, port.BATCH_LIMIT);
  const { byEnd, newestFirst } = pathOf(scan);
  const pages = await Promise.all(homes.map(({ inspect }) => inspect.page(scan, limit)));
  const compare = (a: ScanCursor, b: ScanCursor) =>
    ((a.at ?? 0) - (b.at ?? 0) || compareText(a.id, b.id)) * (newestFirst ? -1 : 1);
  const positionOf = (row: JobRow) => scanCursorOf(row, byEnd);
  const reached = pages
    .flatMap(({ cursor }) =>
      cursor === null ? [] : [pathOf({ ...scan, after: cursor }).after as ScanCursor],
    )
    .sort(compare)[0];
  const jobs = pages
    .flatMap((one) => one.jobs)
    .filter((row) => reached === undefined || compare(positionOf(row), reached) <= 0)
    .sort((a, b) => compare(positionOf(a), positionOf(b)));
  const last = jobs[limit - 1];
  if (last && (jobs.length > limit || reached !== undefined))
    return { jobs: jobs.slice(0, limit), cursor: cursorOf(positionOf(last)) };
  return { jobs, cursor: reached === undefined ? null : cursorOf(reached) };
}

const COUNT_CURSOR = /^(\d{1,4}):(.*)$/;

/** One home after the other: its number is in front of the cursor. */
async function count(homes: readonly HomeStore[], scan: port.Scan): Promise<port.ScannedCount> {
  const [, number = "0", inner = ""] = scan.after === null ? [] : (COUNT_CURSOR.exec(scan.after) ?? []);
  const home = Number(number);
  const store = homes[home];
  if (!store || (scan.after !== null && !COUNT_CURSOR.test(scan.after)))
    throw refuse("invalid_option", "cursor", scan.after, "use the cursor that the previous count returned");
  const found = await store.inspect.count({ ...scan, after: inner === "" ? null : inner });
  if (found.cursor !== null) return { count: found.count, cursor: `${home}:${found.cursor}` };
  return { count: found.count, cursor: home + 1 < homes.length ? `${home + 1}:` : null };
}

function sumLimits(a: port.LimitRow, b: port.LimitRow): port.LimitRow {
  return {
    key: a.key,
    waiting: a.waiting + b.waiting,
    available: a.available + b.available,
    active: a.active + b.active,
    unstarted: a.unstarted + b.unstarted,
    retryable: a.retryable + b.retryable,
    starts: a.starts + b.starts,
    nextAt: earlier(a.nextAt, b.nextAt),
  };
}

function sumSlots(a: port.HeldSlots, b: port.HeldSlots, most: number): port.HeldSlots {
  const sum = (x: number, y: number) => Math.min(most, x + y);
  return {
    available: sum(a.available, b.available),
    active: sum(a.active, b.active),
    unstarted: sum(a.unstarted, b.unstarted),
    retryable: sum(a.retryable, b.retryable),
    starts: sum(a.starts, b.starts),
    nextAt: earlier(a.nextAt, b.nextAt),
    jobs: [...a.jobs, ...b.jobs].slice(0, port.HOLDERS_SHOWN),
  };
}

function sumLive(counts: readonly port.LiveCount[]): port.LiveCount[] {
  const keyOf = ({ queue, type, state }: port.LiveCount) => JSON.stringify([queue, type, state]);
  const groups = [...Map.groupBy(counts, keyOf).values()];
  return groups.slice(0, port.LIVE_LIMIT).map((group) => {
    const { queue, type, state } = group[0] as { queue: string; type: string; state: JobState };
    return { queue, type, state, count: group.reduce((sum, one) => sum + one.count, 0) };
  });
}

/** The best priority first, then by key. A key has one row per priority. */
function sumShares(rows: readonly port.ShareRow[], most: number): port.ShareRow[] {
  const priorityOf = ({ rank }: port.ShareRow) => rank - dueAtOf(rank);
  const groups = [...Map.groupBy(rows, (row) => `${priorityOf(row)} ${row.key}`).values()];
  const summed = groups.map((group) => ({
    key: (group[0] as port.ShareRow).key,
    rank: Math.min(...group.map(({ rank }) => rank)),
    waiting: Math.min(
      most,
      group.reduce((sum, { waiting }) => sum + waiting, 0),
    ),
  }));
  return summed.sort((a, b) => priorityOf(a) - priorityOf(b) || compareText(a.key, b.key));
}

function olderOf(a: port.ReadyJob, b: port.ReadyJob): port.ReadyJob {
  return dueAtOf(b.rank) < dueAtOf(a.rank) ? b : a;
}
