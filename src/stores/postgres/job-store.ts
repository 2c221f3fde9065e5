import { UUID } from "../../core/ids.ts";
import type { NewJob } from "../../core/job/envelope.ts";
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
import { packEvents } from "../sql/event-pack.ts";
import { decodeClaimed, decodeJob, decodeRecord } from "../sql/row-codec.ts";
import { idArray, jsonTexts, numberArray } from "./array-literal.ts";
import { type ConnectionGroup, withRepeats } from "./connection.ts";
import type { Connections } from "./connections.ts";
import { enqueueOn, enqueueTold, enqueueWithin } from "./enqueue.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import { type Bounded, claimLimited } from "./key-limits.ts";
import {
  BEAT,
  BEAT_TOLD,
  CLAIM,
  FORGET_LOGS,
  HOLD_DUE_JOBS,
  HOLD_DUE_RECORDS,
  LOAD,
  NEXT_WAKE,
  PROMOTE,
  PRUNE,
  PRUNE_EVENTS,
} from "./statements.ts";
import type { Transactions } from "./transactions.ts";
import { type LocatedJob, placeOf } from "./write-jobs.ts";

export function createJobStore(
  lanes: Connections,
  channel: HintChannel,
  transactions: Transactions,
): JobStore {
  return {
    async enqueue(jobs, { now, tx, bounds, onDepth }) {
      checkJobs(jobs);
      if (bounds !== undefined) {
        const bounded = { now, bounds, ...(onDepth && { onDepth }) };
        return transactions.run(
          tx,
          (session, hints) => enqueueWithin(session, jobs, bounded, hints),
          (hints) => enqueueInTurn(lanes.enqueue, jobs, bounded, hints),
        );
      }
      return transactions.run(
        tx,
        (session, hints) => enqueueTold(session, jobs, now, hints),
        (hints) => enqueueOn(lanes.enqueue, jobs, now, hints),
      );
    },
    async claim(request) {
      checkLimit(request.limit, BATCH_LIMIT);
      return claim(lanes.relaxed, request);
    },
    async beat(request) {
      checkBatch(request.jobs, "jobs");
      return beat(lanes.write, request);
    },
    async sweep(request) {
      checkLimit(request.limit);
      return sweep(lanes.relaxed, request, (queues) => {
        const hints = new HintBatch();
        for (const queue of queues) hints.ready.add(queue);
        channel.tell(hints);
      });
    },
    async load(ids) {
      checkBatch(ids, "ids");
      return load(lanes.write, ids);
    },
    async prune({ now, eventsBefore, limit }) {
      checkLimit(limit);
      const jobs = await lanes.write.transaction(async (session) => {
        const pruned = await session.run(PRUNE, [now, limit]);
        if (pruned.length > 0) await session.run(FORGET_LOGS, [idArray(pruned.map(([id]) => id as string))]);
        return pruned.length;
      });
      return jobs + (await lanes.write.run(PRUNE_EVENTS, [eventsBefore, limit])).length;
    },
  };
}

/** A hint of what was undone and is repeated does no harm. */
async function enqueueInTurn(
  lanes: ConnectionGroup,
  jobs: readonly NewJob[],
  bounded: Bounded,
  hints: HintBatch,
): Promise<Enqueued[]> {
  return withRepeats(() => lanes.transaction((session) => enqueueWithin(session, jobs, bounded, hints)));
}

async function claim(lanes: ConnectionGroup, request: ClaimRequest): Promise<JobRow[]> {
  const { queue, now, limit, salt, from, worker, lease, most } = request;
  const rows =
    most === undefined
      ? await lanes.run(CLAIM, [queue, now, limit, salt, from, worker, lease])
      : await claimLimited(lanes, request, most);
  return rows.map((row) => decodeClaimed(row, request)).sort(byRank);
}

/** The promised order of claims: the server returns updated rows in any. */
function byRank(a: JobRow, b: JobRow): number {
  return a.rank - b.rank || (a.id < b.id ? -1 : 1);
}

async function beat(lanes: ConnectionGroup, { now, worker, jobs }: BeatRequest): Promise<BeatAnswer[]> {
  const known = jobs.filter(({ id }) => UUID.test(id));
  const values = [
    worker.id,
    JSON.stringify(worker.body),
    worker.wakeAt,
    idArray(known.map(({ id }) => id)),
    numberArray(known, ({ fence }) => fence),
    numberArray(known, ({ stallAt }) => stallAt),
  ];
  const isTelling = known.some(({ records }) => records);
  const rows = await withRepeats(() =>
    isTelling ? lanes.run(BEAT_TOLD, [...values, ...toldOf(known, now)]) : lanes.run(BEAT, values),
  );
  const places = new Map(rows.map((row) => [row[0] as JobId, placeOf(row)]));
  return jobs.map((job) => beatAnswer(job, places.get(job.id)));
}

/** What `tell` takes. */
function toldOf(jobs: BeatRequest["jobs"], now: Instant): unknown[] {
  const telling = jobs.flatMap(({ id, records }) => (records ? [{ id, records }] : []));
  const { heads, items } = packEvents(telling.map(({ records }) => records));
  const places = new Map(telling.map(({ id }, place) => [id, place]));
  const placeAt = ({ id }: { readonly id: JobId }) => places.get(id);
  return [now, heads, jsonTexts(jobs, (job) => items[placeAt(job) ?? -1]), numberArray(jobs, placeAt)];
}

function beatAnswer(job: BeatRequest["jobs"][number], place: LocatedJob | undefined): BeatAnswer {
  if (!place) return { lost: "gone" };
  const { state, fence, rev } = place.at;
  if (fence !== job.fence || state !== "active") return { lost: state };
  return rev === job.rev ? "ok" : "changed";
}

/**
 * Nothing due costs one statement: that is what most sweeps find. Jobs that became available are told of at once, since
 * what is left to do may take longer than their start.
 */
async function sweep(
  lanes: ConnectionGroup,
  { now, limit, holdUntil }: SweepRequest,
  onReady: (queues: Iterable<string>) => void,
): Promise<Swept> {
  const due = await nextWakes(lanes);
  const most = Math.min(limit, BATCH_LIMIT);
  const isDue = (at: number | null) => at !== null && at <= now;
  const promoted = isDue(due.ready) ? await withRepeats(() => lanes.run(PROMOTE, [now, most])) : [];
  const ready = new Map(promoted.map(([queue, count]) => [queue as string, count as number]));
  if (ready.size > 0) onReady(ready.keys());
  // What was promoted may have a deadline that is due as well; it is judged in the same sweep.
  const judges = isDue(due.judged) || promoted.some(([, , wakeAt]) => isDue(wakeAt as number | null));
  const [jobs, records] = await Promise.all([
    judges ? withRepeats(() => lanes.run(HOLD_DUE_JOBS, [now, most, holdUntil])) : [],
    isDue(due.records) ? withRepeats(() => lanes.run(HOLD_DUE_RECORDS, [now, most, holdUntil])) : [],
  ]);
  const isIdle = promoted.length + jobs.length + records.length === 0;
  const next = isIdle ? due : await nextWakes(lanes);
  return {
    ready,
    jobs: jobs.map(decodeJob),
    records: records.map(decodeRecord),
    nextWakeAt: earlier(earlier(next.ready, next.judged), next.records),
  };
}

interface NextWakes {
  readonly judged: Instant | null;
  readonly ready: Instant | null;
  readonly records: Instant | null;
}

async function nextWakes(lanes: ConnectionGroup): Promise<NextWakes> {
  const [judged, ready, records] = (await lanes.run(NEXT_WAKE))[0] as (number | null)[];
  return { judged: judged ?? null, ready: ready ?? null, records: records ?? null };
}

async function load(lanes: ConnectionGroup, ids: readonly JobId[]): Promise<(JobRow | null)[]> {
  const rows = await lanes.run(LOAD, [idArray(ids.filter((id) => UUID.test(id)))]);
  const jobs = new Map(rows.map((row) => [row[0] as JobId, decodeJob(row)]));
  return ids.map((id) => jobs.get(id) ?? null);
}
