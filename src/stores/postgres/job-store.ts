import { UUID } from "../../core/ids.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import {
  BATCH_LIMIT,
  type BeatAnswer,
  type BeatRequest,
  type ClaimRequest,
  type Enqueued,
  type JobStore,
  type SweepRequest,
  type Swept,
} from "../../ports/store.ts";
import { checkBatch, checkJobs, checkLimit } from "../check-batch.ts";
import { checkBeatInstants, checkClaimInstants, checkSweepInstants } from "../check-instants.ts";
import { decodeClaimed } from "../sql/claimed-row.ts";
import { packEvents } from "../sql/event-pack.ts";
import { decodeJob, decodeRecord, type SqlRow } from "../sql/row-codec.ts";
import { idArray, jsonTexts, numberArray } from "./array-literal.ts";
import { byRank, claimFair } from "./claim-fair.ts";
import type { RankRanges } from "./claim-floors.ts";
import { type ConnectionGroup, withRepeats } from "./connection.ts";
import type { Connections } from "./connections.ts";
import { enqueueOn, enqueueRecorded, enqueueWithin } from "./enqueue.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import { type Bounded, claimLimited } from "./key-limits.ts";
import {
  FOUND_COLUMN,
  LOAD,
  LOAD_BRIEF,
  LOAD_BRIEF_WITHIN,
  LOAD_WITHIN,
  PLACE_COLUMN,
} from "./load-statements.ts";
import { prune } from "./prune.ts";
import {
  BEAT,
  BEAT_RECORDED,
  CLAIM,
  HOLD_DUE_JOBS,
  HOLD_DUE_RECORDS,
  NEXT_WAKE,
  PROMOTE,
  type Statement,
} from "./statements.ts";
import type { Transactions } from "./transactions.ts";
import { type LocatedJob, locatedJob } from "./write-jobs.ts";

export function createJobStore(
  connections: Connections,
  channel: HintChannel,
  transactions: Transactions,
): JobStore {
  return {
    async enqueue(jobs, { now, tx, bounds, onDepth }) {
      checkJobs(jobs, now);
      if (bounds !== undefined) {
        const bounded = { now, bounds, ...(onDepth && { onDepth }) };
        return transactions.run(
          tx,
          (session, hints) => enqueueWithin(session, jobs, bounded, hints),
          (hints) => enqueueInTransaction(connections.enqueue, jobs, bounded, hints),
        );
      }
      return transactions.run(
        tx,
        (session, hints) => enqueueRecorded(session, jobs, now, hints),
        (hints) => enqueueOn(connections.enqueue, jobs, now, hints, channel),
      );
    },
    async claim(request) {
      checkLimit(request.limit, BATCH_LIMIT);
      checkClaimInstants(request);
      return claim(connections.relaxed, channel, request);
    },
    async beat(request) {
      checkBatch(request.jobs, "jobs");
      checkBeatInstants(request);
      return beat(connections.write, request);
    },
    async sweep(request) {
      checkLimit(request.limit);
      checkSweepInstants(request);
      return sweep(connections.relaxed, request, channel);
    },
    async load(ids, options) {
      checkBatch(ids, "ids");
      const { isBrief = false, size } = options ?? {};
      if (size !== undefined && ids.length > 1)
        return loadWithin(connections.write, ids, isBrief ? LOAD_BRIEF_WITHIN : LOAD_WITHIN, size);
      return load(connections.write, ids, isBrief ? LOAD_BRIEF : LOAD);
    },
    async prune({ now, eventsBefore, limit }) {
      checkLimit(limit);
      return prune(connections.write, now, eventsBefore, limit);
    },
  };
}

/** A repeated hint of undone work does no harm. */
async function enqueueInTransaction(
  connections: ConnectionGroup,
  jobs: readonly NewJob[],
  bounded: Bounded,
  hints: HintBatch,
): Promise<Enqueued[]> {
  return withRepeats(() =>
    connections.transaction((session) => enqueueWithin(session, jobs, bounded, hints)),
  );
}

async function claim(
  connections: ConnectionGroup,
  channel: HintChannel,
  request: ClaimRequest,
): Promise<JobRow[]> {
  const { queue, from, most, turns } = request;
  if (turns) return claimFair(connections, request, turns);
  if (channel.floors.wantsLook(queue)) channel.lookAt(queue);
  const underWay = channel.floors.begin(queue, from);
  try {
    const rows = await (most === undefined
      ? connections.run(CLAIM, claimValues(request, underWay))
      : claimLimited(connections, request, most, underWay));
    const claimed = rows.map((row) => decodeClaimed(row, request)).sort(byRank);
    // A paused queue, and one without room, give no job although there are some.
    const isAll = most === undefined && rows.length > 0 && rows.length < request.limit;
    underWay.end(
      claimed.map(({ rank }) => rank),
      isAll,
    );
    return claimed;
  } catch (error) {
    underWay.fail();
    throw error;
  }
}

function claimValues(request: ClaimRequest, { starts, ends }: RankRanges): unknown[] {
  const { queue, now, limit, salt, worker, lease, shortest = 0 } = request;
  const [from, to] = [starts, ends].map((ranks) => numberArray(ranks, (rank) => rank));
  return [queue, now, limit, salt, from, worker, lease, shortest, to];
}

async function beat(connections: ConnectionGroup, { now, worker, jobs }: BeatRequest): Promise<BeatAnswer[]> {
  const known = jobs.filter(({ id }) => UUID.test(id));
  const values = [
    worker.id,
    JSON.stringify(worker.body),
    worker.wakeAt,
    idArray(known.map(({ id }) => id)),
    numberArray(known, ({ fence }) => fence),
    numberArray(known, ({ stallAt }) => stallAt),
  ];
  const isRecorded = known.some(({ records }) => records);
  const rows = await withRepeats(() =>
    isRecorded
      ? connections.run(BEAT_RECORDED, [...values, ...eventValues(known, now)])
      : connections.run(BEAT, values),
  );
  const located = new Map(rows.map((row) => [row[0] as JobId, locatedJob(row)]));
  return jobs.map((job) => beatAnswer(job, located.get(job.id)));
}

/** The parameters of `recordEvents`. */
function eventValues(jobs: BeatRequest["jobs"], now: Instant): unknown[] {
  const recorded = jobs.flatMap(({ id, records }) => (records ? [{ id, records }] : []));
  const { shared, items } = packEvents(recorded.map(({ records }) => records));
  const indexes = new Map(recorded.map(({ id }, index) => [id, index]));
  const indexOf = ({ id }: { readonly id: JobId }) => indexes.get(id);
  return [now, shared, jsonTexts(jobs, (job) => items[indexOf(job) ?? -1]), numberArray(jobs, indexOf)];
}

function beatAnswer(job: BeatRequest["jobs"][number], located: LocatedJob | undefined): BeatAnswer {
  if (!located) return { lost: "gone" };
  const { state, fence, rev } = located.at;
  if (fence !== job.fence || state !== "active") return { lost: state };
  return rev === job.rev ? "ok" : "changed";
}

/**
 * If nothing is due, as in most sweeps, it costs one statement. Hints for promoted jobs are sent at once, because the
 * rest of the sweep may take longer than their start.
 */
async function sweep(
  connections: ConnectionGroup,
  { now, limit, holdUntil }: SweepRequest,
  channel: HintChannel,
): Promise<Swept> {
  const wake = channel.wakes.begin(now);
  const due = await nextWakes(connections, wake.from);
  wake.end();
  const most = Math.min(limit, BATCH_LIMIT);
  const isDue = (at: number | null) => at !== null && at <= now;
  const promoted = isDue(due.ready)
    ? await withRepeats(() => connections.run(PROMOTE, [now, most, wake.from]))
    : [];
  const ready = noteReady(promoted, channel);
  // A promoted job may also have a deadline that is due. The same sweep returns it for a decision.
  const needsDecisions =
    isDue(due.decided) || promoted.some(([, , wakeAt]) => isDue(wakeAt as number | null));
  const holding = [now, most, holdUntil, wake.from];
  const [jobs, records] = await Promise.all([
    needsDecisions ? withRepeats(() => connections.run(HOLD_DUE_JOBS, holding)) : [],
    isDue(due.records) ? withRepeats(() => connections.run(HOLD_DUE_RECORDS, holding.slice(0, 3))) : [],
  ]);
  const isIdle = promoted.length + jobs.length + records.length === 0;
  const next = isIdle ? due : await nextWakes(connections, wake.from);
  if (!isDue(next.ready) && !isDue(next.decided)) channel.wakes.clear(now);
  return {
    ready,
    jobs: jobs.map(decodeJob),
    records: records.map(decodeRecord),
    nextWakeAt: earlier(earlier(next.ready, next.decided), next.records),
  };
}

/** Sends hints for promoted jobs. Returns how many there are, by queue. */
function noteReady(promoted: readonly SqlRow[], channel: HintChannel): Map<string, number> {
  const ready = new Map<string, number>();
  const hints = new HintBatch();
  for (const [queue, count, , rank] of promoted as [string, number, unknown, number][]) {
    ready.set(queue, (ready.get(queue) ?? 0) + count);
    hints.ready(queue, rank);
  }
  if (ready.size > 0) channel.notify(hints);
  return ready;
}

interface NextWakes {
  readonly decided: Instant | null;
  readonly ready: Instant | null;
  readonly records: Instant | null;
}

async function nextWakes(connections: ConnectionGroup, from: Instant): Promise<NextWakes> {
  const [decided, ready, records] = (await connections.run(NEXT_WAKE, [from]))[0] as (number | null)[];
  return { decided: decided ?? null, ready: ready ?? null, records: records ?? null };
}

async function load(
  connections: ConnectionGroup,
  ids: readonly JobId[],
  statement: Statement,
): Promise<(JobRow | null)[]> {
  const rows = await connections.run(statement, [idArray(ids.filter((id) => UUID.test(id)))]);
  const jobs = new Map(rows.map((row) => [row[0] as JobId, decodeJob(row)]));
  return ids.map((id) => jobs.get(id) ?? null);
}

/** One statement, in which the server adds up the sizes. The answer ends with the last row that it sent. */
async function loadWithin(
  connections: ConnectionGroup,
  ids: readonly JobId[],
  statement: Statement,
  size: number,
): Promise<(JobRow | null)[]> {
  const asked = [...ids.keys()].filter((index) => UUID.test(ids[index] as JobId));
  const rows = await connections.run(statement, [idArray(asked.map((index) => ids[index] as JobId)), size]);
  const jobs = new Map(rows.map((row) => [row[0] as JobId, decodeJob(row)]));
  const isCut = rows.length < Number(rows[0]?.[FOUND_COLUMN] ?? 0);
  const last = isCut ? Math.max(...rows.map((row) => Number(row[PLACE_COLUMN]))) : 0;
  const read = isCut ? ids.slice(0, (asked[last - 1] as number) + 1) : ids;
  return read.map((id) => jobs.get(id) ?? null);
}
