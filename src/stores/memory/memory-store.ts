import { CurfewError } from "../../core/errors.ts";
import { createHomedIdSource } from "../../core/ids.ts";
import { briefRow } from "../../core/job/documents/brief-row.ts";
import { rowsWithin } from "../../core/job/documents/row-size.ts";
import { type JobRow, sumDepths } from "../../core/job/job.ts";
import { namesOf } from "../../core/tenant/tenant-name.ts";
import { earlier, type Instant } from "../../core/time.ts";
import { reachOf } from "../../ports/capabilities.ts";
import type { Looked, LookRequest } from "../../ports/look.ts";
import {
  BATCH_LIMIT,
  type BeatAnswer,
  type BeatRequest,
  type HeldSlots,
  HOLDERS_SHOWN,
  type Inspector,
  LIVE_LIMIT,
  type LimitRow,
  type Line,
  LOG_LIMIT,
  pauseKey,
  type RecordStore,
  type Store,
  type SweepRequest,
  type Swept,
  type TenantUse,
} from "../../ports/store.ts";
import { boundedQueues } from "../admissions.ts";
import { checkBatch, checkJobs, checkLimit, checkLook, checkUnits } from "../check-batch.ts";
import { checkBeatInstants, checkClaimInstants, checkSweepInstants } from "../check-instants.ts";
import type { HomeJobStore, HomeStore } from "../homes/home-store.ts";
import { createHomedStore } from "../homes/homed-store.ts";
import { pathOf } from "../scan-cursor.ts";
import { commitUnit, enqueueJob, limitUse, startsBehind, type Tables } from "./commit.ts";
import { EventLog } from "./event-log.ts";
import { HintBatch, Listeners } from "./hints.ts";
import { JobTable } from "./job-table.ts";
import type { LeastRevision } from "./least-revision.ts";
import { RecordTable } from "./record-table.ts";
import { createTimeoutStore } from "./timeout-store.ts";
import { TimeoutTable } from "./timeout-table.ts";

/** Lists begin here if they are given no cursor. */
const FIRST = namesOf(undefined).from;

export interface MemoryStoreOptions {
  readonly clock: () => Instant;
  /** The number of homes. More than one is for tests of what a distributed store does (ADR 33). Default 1. */
  readonly homes?: number;
}

export interface MemoryHomeOptions {
  readonly clock: () => Instant;
  /** For tests of homes that lose their last writes. Default 0. */
  readonly least?: LeastRevision;
}

/** A store in the memory of this process, and the model for all other stores. */
export function createMemoryStore({ clock, homes = 1 }: MemoryStoreOptions): Store {
  if (homes === 1) return createMemoryHome({ clock });
  const all = Array.from({ length: homes }, () => createMemoryHome({ clock }));
  // The counter alone makes the ids unique: nobody else makes ids of messages in this store.
  return createHomedStore(all, { nextId: createHomedIdSource(clock, () => {}) });
}

/** Each call does all its work synchronously, so calls never interleave and each is atomic. */
export function createMemoryHome({ clock, least = () => 0 }: MemoryHomeOptions): HomeStore {
  const tables: Tables = {
    jobs: new JobTable(least),
    records: new RecordTable(least),
    timeouts: new TimeoutTable(),
    events: new EventLog(),
  };
  const listeners = new Listeners();
  let isClosed = false;
  const assertOpen = () => {
    if (isClosed) throw new CurfewError("closed", "The memory store is closed");
  };
  return {
    capabilities: {
      name: "memory",
      durable: "none",
      tx: false,
      hints: "push",
      inProcess: true,
      ...reachOf(1),
    },
    jobs: createJobStore(tables, listeners, assertOpen),
    records: createRecordStore(tables.records, assertOpen),
    timeouts: createTimeoutStore(tables.timeouts, listeners, assertOpen),
    inspect: createInspector(tables, assertOpen),
    async clock() {
      assertOpen();
      return clock();
    },
    async look(request) {
      assertOpen();
      checkLook(request);
      return look(tables, request);
    },
    async commit(units, { now }) {
      assertOpen();
      checkUnits(units, now);
      const hints = new HintBatch();
      const outcomes = units.map((unit) => commitUnit(tables, unit, now, hints));
      listeners.notify(hints);
      return outcomes;
    },
    async listen(onHint) {
      assertOpen();
      return listeners.add(onHint);
    },
    async close() {
      isClosed = true;
      listeners.clear();
    },
  };
}

function createJobStore(tables: Tables, listeners: Listeners, assertOpen: () => void): HomeJobStore {
  const { jobs, records, events } = tables;
  return {
    async enqueue(newJobs, { now, bounds, onDepth }) {
      assertOpen();
      checkJobs(newJobs, now);
      const hints = new HintBatch();
      const answers = newJobs.map((job) => {
        const bound = bounds?.get(job.queue);
        const isFull = bound !== undefined && jobs.waitingIn(job.queue) >= bound;
        return isFull ? (jobs.known(job) ?? "full") : enqueueJob(tables, job, now, hints);
      });
      if (bounds && onDepth)
        for (const queue of boundedQueues(newJobs, bounds))
          onDepth(queue, Math.min(jobs.waitingIn(queue), bounds.get(queue) as number));
      listeners.notify(hints);
      return answers;
    },
    async claim(request) {
      assertOpen();
      checkLimit(request.limit, BATCH_LIMIT);
      checkClaimInstants(request);
      return records.get(pauseKey(request.queue)) ? [] : jobs.claim(request);
    },
    async beat(request) {
      assertOpen();
      checkBatch(request.jobs, "jobs");
      checkBeatInstants(request);
      const { worker } = request;
      if (worker) records.put(["worker", worker.id], worker.body, worker.wakeAt);
      return request.jobs.map((beat) => beatJob(tables, beat, request.now));
    },
    async sweep(request) {
      assertOpen();
      checkLimit(request.limit);
      checkSweepInstants(request);
      return sweep(tables, request, listeners);
    },
    async load(ids, options) {
      assertOpen();
      checkBatch(ids, "ids");
      const rows = ids.map((id) => jobs.get(id)?.row ?? null);
      const shown = options?.isBrief ? rows.map((row) => row && briefRow(row)) : rows;
      return options?.size === undefined ? shown : rowsWithin(shown, options.size);
    },
    async prune({ now, eventsBefore, limit }) {
      assertOpen();
      checkLimit(limit);
      return jobs.prune(now, limit) + events.prune(eventsBefore, limit);
    },
  };
}

function createRecordStore(records: RecordTable, assertOpen: () => void): RecordStore {
  return {
    async load(keys) {
      assertOpen();
      checkBatch(keys, "keys");
      return keys.map((key) => records.get(key));
    },
    async list(kind, after, limit, order) {
      assertOpen();
      checkLimit(limit);
      return order === "desc"
        ? records.listBack(kind, after, limit)
        : records.list(kind, after ?? FIRST, limit);
    },
  };
}

function createInspector({ jobs, records, events }: Tables, assertOpen: () => void): Inspector {
  return {
    async depths(queue, tenant) {
      assertOpen();
      return jobs.depths(queue, tenant);
    },
    async holders(after, limit) {
      assertOpen();
      checkLimit(limit);
      return jobs.holders(after, limit);
    },
    async uniqueKeys(ids) {
      assertOpen();
      checkBatch(ids, "ids");
      return ids.map((id) => jobs.get(id)?.uniqueKey ?? null);
    },
    async limitKeys(after, limit) {
      assertOpen();
      checkLimit(limit);
      return jobs.limits.names(after ?? FIRST, limit).map((limitKey) => limitRow(jobs, records, limitKey));
    },
    async limitKey(limitKey) {
      assertOpen();
      return limitRow(jobs, records, limitKey);
    },
    async limitJobs(limitKey, state, limit) {
      assertOpen();
      checkLimit(limit);
      return jobs.ofLimit(limitKey, state, limit);
    },
    async page(scan, limit) {
      assertOpen();
      checkLimit(limit, BATCH_LIMIT);
      const found: JobRow[] = [];
      const cursor = jobs.step(pathOf(scan), (row) => found.push(row) < limit);
      return { jobs: scan.isBrief ? found.map(briefRow) : found, cursor };
    },
    async count(scan) {
      assertOpen();
      let count = 0;
      const cursor = jobs.step(pathOf(scan), () => ++count > 0);
      return { count, cursor };
    },
    async live(tenant) {
      assertOpen();
      return jobs.live(LIVE_LIMIT, tenant);
    },
    async used(tenant, most) {
      assertOpen();
      checkLimit(most);
      return tenantUse(jobs, tenant, most);
    },
    ...createLines(jobs, records, assertOpen),
    async latestEvents(limit, before) {
      assertOpen();
      checkLimit(limit);
      return events.readLatest(limit, before);
    },
    async events(after, limit) {
      assertOpen();
      checkLimit(limit);
      return events.read(after, limit);
    },
    async logLines(id, after, limit) {
      assertOpen();
      checkLimit(limit, LOG_LIMIT);
      return jobs.lines(id, after, limit);
    },
  };
}

function tenantUse(jobs: JobTable, tenant: string, most: number): TenantUse {
  const { active, ...waiting } = sumDepths(jobs.depths(undefined, tenant).values());
  const count = waiting.available + waiting.pending + waiting.scheduled + waiting.retryable;
  return { active: Math.min(active, most), waiting: Math.min(count, most) };
}

function limitRow(jobs: JobTable, records: RecordTable, limitKey: string): LimitRow {
  const { nextAt } = startsBehind(records, limitKey);
  const { waiting } = jobs.limits.count(limitKey);
  return { key: limitKey, waiting, ...limitUse(jobs, records, limitKey), nextAt };
}

/** Queries about waiting jobs. */
function createLines(
  jobs: JobTable,
  records: RecordTable,
  assertOpen: () => void,
): Pick<Inspector, "ahead" | "shares" | "slots" | "readyQueues" | "oldestReady"> {
  return {
    async ahead(line, before, most) {
      assertOpen();
      checkLimit(most);
      return jobs.ahead(line, before, most);
    },
    async shares(queue, limit, most) {
      assertOpen();
      checkLimit(limit);
      checkLimit(most);
      return jobs.shares(queue, limit, most);
    },
    async slots(line, most) {
      assertOpen();
      checkLimit(most);
      return heldSlots(jobs, records, line, most);
    },
    async readyQueues(after, limit) {
      assertOpen();
      checkLimit(limit);
      return jobs.readyQueues(after, limit);
    },
    async oldestReady(limit, tenant) {
      assertOpen();
      checkLimit(limit);
      return jobs.oldestReady(limit, tenant);
    },
  };
}

function heldSlots(jobs: JobTable, records: RecordTable, line: Line, most: number): HeldSlots {
  if ("queue" in line) {
    const active = jobs.holding(line, most);
    const unstarted = active.filter(({ startedAt }) => startedAt === null).length;
    const use = { available: 0, active: active.length, unstarted, retryable: 0, starts: 0 };
    return { ...use, nextAt: null, jobs: active.slice(0, HOLDERS_SHOWN) };
  }
  const { key: _key, waiting: _waiting, nextAt, ...use } = limitRow(jobs, records, line.limitKey);
  return {
    available: Math.min(use.available, most),
    active: Math.min(use.active, most),
    unstarted: Math.min(use.unstarted, most),
    retryable: Math.min(use.retryable, most),
    starts: Math.min(use.starts, most),
    nextAt,
    jobs: use.active === 0 ? [] : jobs.holding(line, HOLDERS_SHOWN),
  };
}

/** Moves only `stallAt`. A beat does not change the revision. `wakeAt` may stay earlier than needed. */
function beatJob({ jobs, events }: Tables, beat: BeatRequest["jobs"][number], now: Instant): BeatAnswer {
  const entry = jobs.get(beat.id);
  if (!entry) return { lost: "gone" };
  const { row } = entry;
  if (row.fence !== beat.fence || row.state !== "active") return { lost: row.state };
  if (beat.stallAt !== undefined) {
    jobs.amend(entry, { ...row, stallAt: beat.stallAt });
    if (beat.records) events.add(beat.records, now);
  }
  return row.rev === beat.rev ? "ok" : "changed";
}

/** `limit` applies to each of the three kinds, so that many of one kind do not delay the others. */
function look({ jobs, records, timeouts }: Tables, request: LookRequest): Looked {
  const { queues, destinations } = request;
  return {
    nextWakeAt: earlier(jobs.nextWakeAt, records.nextWakeAt),
    ready: queues.filter((queue) => jobs.hasReady(queue) && !records.get(pauseKey(queue))),
    nextDueAt: destinations.length === 0 ? null : timeouts.nextDueAt(destinations),
    versions: request.records.map((key) => records.get(key)?.version ?? 0),
  };
}

function sweep({ jobs, records }: Tables, request: SweepRequest, listeners: Listeners): Swept {
  const { now, limit, holdUntil } = request;
  const hints = new HintBatch();
  const ready = new Map<string, number>();
  for (const { row } of jobs.promote(now, limit)) {
    ready.set(row.queue, (ready.get(row.queue) ?? 0) + 1);
    hints.ready(row.queue);
  }
  listeners.notify(hints);
  return {
    ready,
    jobs: jobs.hold(now, limit, holdUntil),
    records: records.hold(now, limit, holdUntil),
    nextWakeAt: earlier(jobs.nextWakeAt, records.nextWakeAt),
  };
}
