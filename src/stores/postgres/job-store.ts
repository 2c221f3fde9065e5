import { UUID } from "../../core/ids.ts";
import type { NewJob } from "../../core/job/envelope.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import { TENANT_MARK } from "../../core/tenant/tenant-name.ts";
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
import { packEvents } from "../sql/event-pack.ts";
import { decodeClaimed, decodeJob, decodeRecord } from "../sql/row-codec.ts";
import { idArray, jsonTexts, numberArray } from "./array-literal.ts";
import { byRank, claimFair } from "./claim-fair.ts";
import { CLAIM, CLAIM_COUNTED, FILE_CLAIMS, TIDY_CLAIMS } from "./claim-statements.ts";
import { type ConnectionGroup, withRepeats } from "./connection.ts";
import type { Connections } from "./connections.ts";
import { enqueueOn, enqueueRecorded, enqueueWithin } from "./enqueue.ts";
import { HintBatch, type HintChannel } from "./hints.ts";
import { type Bounded, claimLimited } from "./key-limits.ts";
import { prune } from "./prune.ts";
import {
  BEAT,
  BEAT_RECORDED,
  HOLD_DUE_JOBS,
  HOLD_DUE_RECORDS,
  LOAD,
  NEXT_WAKE,
  PROMOTE,
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
        (hints) => enqueueOn(connections.enqueue, jobs, now, hints),
      );
    },
    async claim(request) {
      checkLimit(request.limit, BATCH_LIMIT);
      checkClaimInstants(request);
      return claim(connections.relaxed, request);
    },
    async beat(request) {
      checkBatch(request.jobs, "jobs");
      checkBeatInstants(request);
      return beat(connections.write, request);
    },
    async sweep(request) {
      checkLimit(request.limit);
      checkSweepInstants(request);
      return sweep(connections.relaxed, request, (queues) => {
        const hints = new HintBatch();
        for (const queue of queues) hints.ready.add(queue);
        channel.notify(hints);
      });
    },
    async load(ids) {
      checkBatch(ids, "ids");
      return load(connections.write, ids);
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

async function claim(connections: ConnectionGroup, request: ClaimRequest): Promise<JobRow[]> {
  const { queue, now, limit, salt, from, worker, lease, shortest = 0, most, turns } = request;
  if (turns) return claimFair(connections, request, turns);
  const rows =
    most === undefined
      ? await connections.run(queue.startsWith(TENANT_MARK) ? CLAIM_COUNTED : CLAIM, [
          queue,
          now,
          limit,
          salt,
          from,
          worker,
          lease,
          shortest,
        ])
      : await claimLimited(connections, request, most);
  return rows.map((row) => decodeClaimed(row, request)).sort(byRank);
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

/** The most claims of which one sweep looks for what is left. Each may have a thousand jobs. */
const CLAIMS_AT_ONCE = 50;
/** The most times that a sweep checks CLAIMS_AT_ONCE claims. After that, the next sweep may find nothing. */
const MOST_TIDIED = 20;
/** Claims that end within this time are filed together, so that the sweep need not run for each of them. */
const FILED_EARLY = 1_000;

/**
 * If nothing is due, as in most sweeps, it costs one statement. Hints for promoted jobs are sent at once, because the
 * rest of the sweep may take longer than their start.
 */
async function sweep(
  connections: ConnectionGroup,
  { now, limit, holdUntil }: SweepRequest,
  onReady: (queues: Iterable<string>) => void,
): Promise<Swept> {
  const due = await nextWakes(connections);
  const most = Math.min(limit, BATCH_LIMIT);
  const isDue = (at: number | null) => at !== null && at <= now;
  const promoted = isDue(due.ready) ? await withRepeats(() => connections.run(PROMOTE, [now, most])) : [];
  const ready = new Map(promoted.map(([queue, count]) => [queue as string, count as number]));
  if (ready.size > 0) onReady(ready.keys());
  // A promoted job may also have a deadline that is due. The same sweep returns it for a decision.
  const needsDecisions =
    isDue(due.decided) || promoted.some(([, , wakeAt]) => isDue(wakeAt as number | null));
  const filed = isDue(due.claims)
    ? await withRepeats(() => connections.run(FILE_CLAIMS, [now + FILED_EARLY, CLAIMS_AT_ONCE]))
    : [];
  const [jobs, records] = await Promise.all([
    needsDecisions || filed.length > 0
      ? withRepeats(() => connections.run(HOLD_DUE_JOBS, [now, most, holdUntil]))
      : [],
    isDue(due.records) ? withRepeats(() => connections.run(HOLD_DUE_RECORDS, [now, most, holdUntil])) : [],
  ]);
  const isIdle = promoted.length + filed.length + jobs.length + records.length === 0;
  const next = await exactWakes(connections, isIdle ? due : await nextWakes(connections));
  return {
    ready,
    jobs: jobs.map(decodeJob),
    records: records.map(decodeRecord),
    nextWakeAt: earlier(earlier(next.ready, next.decided), earlier(next.records, next.claims)),
  };
}

interface NextWakes {
  readonly decided: Instant | null;
  readonly ready: Instant | null;
  readonly records: Instant | null;
  readonly claims: Instant | null;
}

/** Claims may be settled before they end. If one is to wake the next sweep, checks that something of it is left. */
async function exactWakes(connections: ConnectionGroup, found: NextWakes): Promise<NextWakes> {
  let next = found;
  for (let tidied = 0; tidied < MOST_TIDIED && isFirst(next); tidied++) {
    const [row] = await withRepeats(() => connections.run(TIDY_CLAIMS, [CLAIMS_AT_ONCE]));
    if (row?.[0] === 0) break;
    next = await nextWakes(connections);
  }
  return next;
}

function isFirst({ decided, ready, records, claims }: NextWakes): boolean {
  const others = earlier(earlier(ready, decided), records);
  return claims !== null && (others === null || claims < others);
}

async function nextWakes(connections: ConnectionGroup): Promise<NextWakes> {
  const [next = []] = (await connections.run(NEXT_WAKE)) as (number | null)[][];
  const [decided = null, ready = null, records = null, claims = null] = next;
  return { decided, ready, records, claims };
}

async function load(connections: ConnectionGroup, ids: readonly JobId[]): Promise<(JobRow | null)[]> {
  const rows = await connections.run(LOAD, [idArray(ids.filter((id) => UUID.test(id)))]);
  const jobs = new Map(rows.map((row) => [row[0] as JobId, decodeJob(row)]));
  return ids.map((id) => jobs.get(id) ?? null);
}
