import { type JobId, type JobRow, nextFence } from "../../core/job/job.ts";
import { earlier, type Instant } from "../../core/time.ts";
import {
  BATCH_LIMIT,
  type BeatAnswer,
  type BeatRequest,
  type ClaimRequest,
  type JobStore,
  type RecordRow,
  type SweepRequest,
  type Swept,
} from "../../ports/store.ts";
import { checkBatch, checkLimit } from "../sql/limits.ts";
import { decodeJob, decodeRecord } from "../sql/row-codec.ts";
import { putRecord } from "./commit.ts";
import { BATCH, type Connection } from "./connection.ts";
import { enqueueJobs } from "./enqueue.ts";
import { RowRuns } from "./row-runs.ts";
import type { Session } from "./session.ts";
import {
  BEAT,
  CLAIM,
  CLAIMABLE,
  HOLD_DUE_JOBS,
  HOLD_DUE_RECORDS,
  LOAD,
  NEXT_WAKE,
  PAUSED,
  PEEK,
  PROMOTE,
  PRUNE,
  PRUNE_EVENTS,
} from "./statements.ts";
import type { Transactions } from "./transactions.ts";
import { forgetLogs, locate } from "./write-jobs.ts";

const CLAIM_ROWS = [CLAIM];
const BEAT_ROWS = [BEAT];

/**
 * Enqueues are on the disk when they are acknowledged. Claims, beats, sweeps and prunes may be taken back by a power
 * cut, which ends every worker on this machine with them: what they did is then simply done again.
 */
export function createJobStore(connection: Connection, transactions: Transactions): JobStore {
  return {
    async enqueue(jobs, { tx }) {
      checkBatch(jobs, "jobs");
      return transactions.run(jobs, tx, enqueueJobs);
    },
    async claim(request) {
      checkLimit(request.limit, BATCH_LIMIT);
      return claim(connection, request);
    },
    async beat(request) {
      checkBatch(request.jobs, "jobs");
      return beat(connection, request);
    },
    async sweep(request) {
      checkLimit(request.limit);
      return sweep(connection, transactions, request);
    },
    async load(ids) {
      connection.assertOpen();
      checkBatch(ids, "ids");
      return connection.inBatches(ids, (batch) =>
        connection.read((session) =>
          batch.map((id) => {
            const row = session.get(LOAD, [id, id]);
            return row ? decodeJob(row) : null;
          }),
        ),
      );
    },
    async prune({ now, eventsBefore, limit }) {
      checkLimit(limit);
      const jobs = await inRounds(limit, (most) => pruneJobs(connection, now, most));
      const events = await inRounds(limit, (most) =>
        connection.write((session) => session.run(PRUNE_EVENTS, [most, eventsBefore])),
      );
      return jobs + events;
    },
  };
}

/** Repeats bounded work until it has done as much as it may, or finds nothing more to do. Gives how much it did. */
async function inRounds(limit: number, work: (most: number) => Promise<number>): Promise<number> {
  for (let done = 0; ; ) {
    const most = Math.min(limit - done, BATCH);
    const more = await work(most);
    done += more;
    if (more < most || done === limit) return done;
  }
}

/** An empty queue is seen without asking for the right to write, so that idle workers do not hold up busy ones. */
async function claim(connection: Connection, request: ClaimRequest): Promise<JobRow[]> {
  const { queue, from } = request;
  if (!(await connection.read((session) => session.get(PEEK, [queue, from])))) return [];
  // In one transaction: of a claim that fails half-way nobody would hold the first half.
  return connection.write((session) => claimBest(session, request));
}

/** What `decide` makes of a claim, without a decision per job: the conformance kit holds the two equal. */
function claimBest(session: Session, request: ClaimRequest): JobRow[] {
  const { queue, from, limit, now, lease, salt, worker } = request;
  if (session.get(PAUSED, [queue])) return [];
  const runs = new RowRuns(session);
  const claimed = session.all(CLAIMABLE, [queue, from, limit]).map((columns): JobRow => {
    const row = decodeJob(columns);
    const fence = nextFence(row.fence, salt);
    const stallAt = now + Math.min(row.heartbeat ?? lease, lease);
    const wakeAt = earlier(stallAt, earlier(row.waitAt, row.totalAt));
    runs.add(CLAIM_ROWS, [fence, now, worker, stallAt, wakeAt], columns.at(-1) as number);
    const claim = { state: "active", wake: "judge", rev: row.rev + 1, claimedAt: now } as const;
    return Object.assign(row, claim, { fence, worker, stallAt, wakeAt });
  });
  runs.flush();
  return claimed;
}

async function beat(connection: Connection, { worker, jobs }: BeatRequest): Promise<BeatAnswer[]> {
  await connection.write((session) => putRecord(session, ["worker", worker.id], worker.body, worker.wakeAt));
  return connection.inBatches(jobs, (batch) => connection.write((session) => beatJobs(session, batch)));
}

/** Moves `stallAt` and nothing else: a beat is no revision, and `wakeAt` may be earlier than what it stands for. */
function beatJobs(session: Session, beats: BeatRequest["jobs"]): BeatAnswer[] {
  const places = locate(
    session,
    beats.map(({ id }) => id),
  );
  const runs = new RowRuns(session);
  const answers = beats.map(({ id, fence, rev, stallAt }): BeatAnswer => {
    const place = places.get(id);
    if (!place) return { lost: "gone" };
    if (place.fence !== fence || place.state !== "active") return { lost: place.state };
    if (stallAt !== undefined) runs.add(BEAT_ROWS, [stallAt], place.row);
    return place.rev === rev ? "ok" : "changed";
  });
  runs.flush();
  return answers;
}

/**
 * Nothing due costs one read: that is what most sweeps find. `limit` holds for each of the three kinds of what is due,
 * so that a flood of one cannot starve the others.
 */
async function sweep(
  connection: Connection,
  transactions: Transactions,
  { now, limit, holdUntil }: SweepRequest,
): Promise<Swept> {
  const nextWakeAt = () => connection.read((session) => session.get(NEXT_WAKE)?.[0] as Instant | null);
  const ready = new Map<string, number>();
  const jobs: JobRow[] = [];
  const records: RecordRow[] = [];
  const next = await nextWakeAt();
  if (next === null || next > now) return { ready, jobs, records, nextWakeAt: next };
  await inRounds(limit, async (most) => {
    const queues = await transactions.commit((session, hints) =>
      session.all(PROMOTE, [now, most]).map(([queue]) => {
        hints.ready(queue as string);
        return queue as string;
      }),
    );
    for (const queue of queues) ready.set(queue, (ready.get(queue) ?? 0) + 1);
    return queues.length;
  });
  await inRounds(limit, async (most) => {
    const rows = await connection.write((session) => session.all(HOLD_DUE_JOBS, [holdUntil, now, most]));
    for (const row of rows) jobs.push(decodeJob(row));
    return rows.length;
  });
  await inRounds(limit, async (most) => {
    const rows = await connection.write((session) => session.all(HOLD_DUE_RECORDS, [holdUntil, now, most]));
    for (const row of rows) records.push(decodeRecord(row));
    return rows.length;
  });
  return { ready, jobs, records, nextWakeAt: await nextWakeAt() };
}

function pruneJobs(connection: Connection, now: Instant, most: number): Promise<number> {
  return connection.write((session) => {
    const ids = session.all(PRUNE, [now, most]).map(([id]) => id as JobId);
    forgetLogs(session, ids);
    return ids.length;
  });
}
