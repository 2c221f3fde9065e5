import { turnsAfter } from "../../core/fair/turns.ts";
import { sizeOfRow } from "../../core/job/documents/row-size.ts";
import type { JobId, JobRow } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import {
  BATCH_LIMIT,
  type BeatAnswer,
  type BeatRequest,
  type ClaimRequest,
  type JobStore,
  type LoadOptions,
  queueMark,
  type RecordRow,
  type SweepRequest,
  type Swept,
} from "../../ports/store.ts";
import { checkBatch, checkJobs, checkLimit } from "../check-batch.ts";
import { checkBeatInstants, checkClaimInstants, checkSweepInstants } from "../check-instants.ts";
import { noText, textOfJob } from "../sql/batches.ts";
import { CLAIMED_LENGTH, decodeClaimed } from "../sql/claimed-row.ts";
import { decodeJob, decodeRecord } from "../sql/row-codec.ts";
import { claimFair } from "./claim-fair.ts";
import { putRecord } from "./commit.ts";
import { BATCH, type Connection } from "./connection.ts";
import { enqueueBounded, enqueueJobs } from "./enqueue.ts";
import type { HintBatch } from "./hints.ts";
import { ACTIVE_IN, MARK } from "./limit-statements.ts";
import { RowRuns } from "./row-runs.ts";
import type { Session } from "./session.ts";
import {
  BEAT,
  CLAIM,
  CLAIMABLE,
  HOLD_DUE_JOBS,
  HOLD_DUE_RECORDS,
  LOAD,
  LOAD_BRIEF,
  NEXT_WAKE,
  PAUSED,
  PEEK,
  PROMOTABLE,
  PROMOTE,
  PRUNABLE,
  PRUNE,
  PRUNE_EVENTS,
  UNDECIDED,
} from "./statements.ts";
import type { Transactions } from "./transactions.ts";
import { forgetLogs, locate } from "./write-jobs.ts";

const CLAIM_ROWS = [CLAIM];
const BEAT_ROWS = [BEAT];

/**
 * Enqueues are on disk when they are acknowledged. A power cut may undo claims, beats, sweeps and prunes. It also
 * ends every worker on this machine, so the work is simply done again.
 */
export function createJobStore(connection: Connection, transactions: Transactions): JobStore {
  return {
    async enqueue(jobs, { now, tx, bounds, onDepth }) {
      checkJobs(jobs, now);
      const options = { now, tx, whole: true };
      if (bounds === undefined) return transactions.run(jobs, textOfJob, options, enqueueJobs);
      return transactions.run(jobs, textOfJob, options, (session, batch, hints) =>
        enqueueBounded(session, batch, { bounds, ...(onDepth && { onDepth }) }, hints),
      );
    },
    async claim(request) {
      checkLimit(request.limit, BATCH_LIMIT);
      checkClaimInstants(request);
      return claim(connection, request);
    },
    async beat(request) {
      checkBatch(request.jobs, "jobs");
      checkBeatInstants(request);
      return beat(connection, transactions, request);
    },
    async sweep(request) {
      checkLimit(request.limit);
      checkSweepInstants(request);
      return sweep(connection, transactions, request);
    },
    async load(ids, options) {
      connection.assertOpen();
      checkBatch(ids, "ids");
      return load(connection, ids, options);
    },
    async prune({ now, eventsBefore, limit }) {
      checkLimit(limit);
      const jobs = await inRounds(limit, (most) => pruneJobs(connection, now, most));
      const events = await inRounds(limit, (most) => pruneEvents(connection, eventsBefore, most));
      return jobs + events;
    },
  };
}

/** What one round did, and whether it found more than one round takes. */
interface Round {
  readonly done: number;
  readonly isCut: boolean;
}

/** Repeats bounded work until it has done `limit`, or finds nothing more. Returns how much it did. */
async function inRounds(limit: number, work: (most: number) => Promise<Round>): Promise<number> {
  for (let done = 0; ; ) {
    const round = await work(Math.min(limit - done, BATCH.items));
    done += round.done;
    if (!round.isCut || done === limit) return done;
  }
}

/** The first rows of a statement that returns rowid and size, as many as one transaction takes. */
function pick(session: Session, text: string, now: Instant, most: number) {
  const rows: number[] = [];
  let size = 0;
  for (const row of session.iterate(text, [now, most])) {
    rows.push(row[0] as number);
    size += row[1] as number;
    if (size >= BATCH.text) break;
  }
  return { rows: JSON.stringify(rows), done: rows.length, isCut: rows.length === most || size >= BATCH.text };
}

/**
 * Checks for an empty queue without the write lock, so that idle workers do not block busy ones. A claim of more than
 * a transaction's worth uses several transactions.
 */
async function claim(connection: Connection, request: ClaimRequest): Promise<JobRow[]> {
  const { queue, limit, turns } = request;
  const from = turns ? 0 : request.from;
  const claimed: JobRow[] = [];
  for (;;) {
    const left = limit - claimed.length;
    const { rows, isCut } = await connection
      .writeIf(
        (session) => session.get(PEEK, [queue, from]) !== undefined,
        (session) => claimBest(session, afterTurns(request, claimed), left),
      )
      .then((round) => round ?? NOTHING)
      .catch((error: unknown) => {
        // The caller already owns what was claimed before. If this threw, it would never learn of it.
        if (claimed.length === 0) throw error;
        return NOTHING;
      });
    const isFirst = claimed.length === 0;
    for (const row of rows) claimed.push(row);
    // Better jobs may have arrived between two rounds.
    if (!isCut || claimed.length === limit) return isFirst || turns ? claimed : claimed.sort(byRank);
  }
}

/** The next round of a claim from a fair queue goes on with the next turn. */
function afterTurns(request: ClaimRequest, claimed: readonly JobRow[]): ClaimRequest {
  const { turns } = request;
  if (!turns || turns.rounds || claimed.length === 0) return request;
  return { ...request, turns: { ...turns, last: turnsAfter(turns.last, claimed, turns) } };
}

function byRank(a: JobRow, b: JobRow): number {
  return a.rank - b.rank || (a.id < b.id ? -1 : 1);
}

interface ClaimRound {
  readonly rows: JobRow[];
  /** There may be more than one transaction takes. */
  readonly isCut: boolean;
}

const NOTHING: ClaimRound = { rows: [], isCut: false };

/**
 * What `decide` makes of a claim, without a decision per job (`claimedRow`, core/job/decide/store-formulas.ts). The conformance kit checks that both are equal.
 */
function claimBest(session: Session, request: ClaimRequest, limit: number): ClaimRound {
  const { queue, from, now, salt, worker } = request;
  if (session.get(PAUSED, [queue])) return NOTHING;
  // A transaction writes each page once. In rounds nearly every job changes a page of the index of keys.
  const items = request.turns?.rounds ? BATCH_LIMIT : BATCH.items;
  const most = Math.min(limit, items, roomIn(session, request));
  if (most <= 0) return NOTHING;
  if (request.turns) {
    const claimed = claimFair(session, request, request.turns, most);
    return {
      rows: request.most === undefined ? claimed.rows : marked(session, queue, claimed.rows, claimed.numbers),
      isCut: claimed.isCut,
    };
  }
  const rows: JobRow[] = [];
  const numbers: number[] = [];
  let text = 0;
  for (const columns of session.iterate(CLAIMABLE, [salt, queue, from, most])) {
    const row = decodeClaimed(columns, request);
    rows.push(row);
    numbers.push(columns[CLAIMED_LENGTH] as number);
    text += row.payload.length;
    if (text >= BATCH.text) break;
  }
  const runs = new RowRuns(session);
  let values: readonly unknown[] = [];
  for (const [index, { id, fence, stallAt, wakeAt }] of rows.entries()) {
    if (fence !== values[0] || stallAt !== values[3] || wakeAt !== values[4])
      values = [fence, now, worker, stallAt, wakeAt];
    runs.add(CLAIM_ROWS, values, numbers[index] as number);
    session.rows.set(id, numbers[index] as number);
  }
  runs.flush();
  const isCut = rows.length === most || text >= BATCH.text;
  return { rows: request.most === undefined ? rows : marked(session, queue, rows, numbers), isCut };
}

/** How many jobs a claim may take from a queue with a concurrency limit. */
function roomIn(session: Session, { queue, most }: ClaimRequest): number {
  if (most === undefined) return Number.POSITIVE_INFINITY;
  return most - (session.get(ACTIVE_IN, [queue])?.[0] as number);
}

/** Marks jobs that were claimed under the limit of their queue, so that they are counted. */
function marked(session: Session, queue: string, rows: JobRow[], numbers: readonly number[]): JobRow[] {
  const limitKey = queueMark(queue);
  session.run(MARK, [limitKey, JSON.stringify(numbers)]);
  return rows.map((row) => (row.limitKey === null ? { ...row, limitKey } : row));
}

/** Reads one transaction's worth at a time. The size of the rows decides how much that is. */
async function load(
  connection: Connection,
  ids: readonly JobId[],
  { isBrief = false, size: most = Number.POSITIVE_INFINITY }: LoadOptions = {},
): Promise<(JobRow | null)[]> {
  const loaded: (JobRow | null)[] = [];
  const statement = isBrief ? LOAD_BRIEF : LOAD;
  for (let left = most; loaded.length < ids.length && left > 0; ) {
    const { rows, size } = await connection.read((session) =>
      loadSome(session, statement, ids, loaded.length, left),
    );
    for (const row of rows) loaded.push(row);
    left -= size;
  }
  return loaded;
}

function loadSome(
  session: Session,
  statement: string,
  ids: readonly JobId[],
  from: number,
  room: number,
): { readonly rows: (JobRow | null)[]; readonly size: number } {
  const rows: (JobRow | null)[] = [];
  const most = Math.min(ids.length - from, BATCH.items);
  let [text, size] = [0, 0];
  while (rows.length < most && text < BATCH.text && size < room) {
    const id = ids[from + rows.length];
    const columns = session.get(statement, [id, id]);
    const row = columns ? decodeJob(columns) : null;
    rows.push(row);
    text += row?.payload.length ?? 0;
    size += row ? sizeOfRow(row) : 0;
  }
  return { rows, size };
}

async function beat(
  connection: Connection,
  transactions: Transactions,
  { now, worker, jobs }: BeatRequest,
): Promise<BeatAnswer[]> {
  await connection.write((session) => putRecord(session, ["worker", worker.id], worker.body, worker.wakeAt));
  return connection.inBatches(jobs, noText, (batch) =>
    transactions.commit(now, (session, hints) => beatJobs(session, batch, hints)),
  );
}

/** Moves only `stallAt`. A beat does not change the revision. `wakeAt` may stay earlier than needed. */
function beatJobs(session: Session, beats: BeatRequest["jobs"], hints: HintBatch): BeatAnswer[] {
  const jobs = locate(
    session,
    beats.map(({ id }) => id),
  );
  const runs = new RowRuns(session);
  const answers = beats.map(({ id, fence, rev, stallAt, records }): BeatAnswer => {
    const located = jobs.get(id);
    if (!located) return { lost: "gone" };
    if (located.fence !== fence || located.state !== "active") return { lost: located.state };
    if (stallAt !== undefined) {
      runs.add(BEAT_ROWS, [stallAt], located.row);
      if (records) hints.event(records);
    }
    return located.rev === rev ? "ok" : "changed";
  });
  runs.flush();
  return answers;
}

/**
 * If nothing is due, as in most sweeps, it costs one read. `limit` applies to each of the three kinds, so that many
 * of one kind do not delay the others.
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
    const { queues, ...round } = await transactions.commit(now, (session, hints) =>
      promote(session, hints, now, most),
    );
    for (const queue of queues) ready.set(queue, (ready.get(queue) ?? 0) + 1);
    return round;
  });
  await inRounds(limit, async (most) => {
    const { due, ...round } = await connection.write((session) => {
      const { rows, ...picked } = pick(session, UNDECIDED, now, most);
      return { due: session.all(HOLD_DUE_JOBS, [holdUntil, rows]), ...picked };
    });
    for (const row of due) jobs.push(decodeJob(row));
    return round;
  });
  await inRounds(limit, async (most) => {
    const rows = await connection.write((session) => session.all(HOLD_DUE_RECORDS, [holdUntil, now, most]));
    for (const row of rows) records.push(decodeRecord(row));
    return { done: rows.length, isCut: rows.length === most };
  });
  return { ready, jobs, records, nextWakeAt: await nextWakeAt() };
}

function promote(
  session: Session,
  hints: HintBatch,
  now: Instant,
  most: number,
): Round & { readonly queues: string[] } {
  const { rows, ...round } = pick(session, PROMOTABLE, now, most);
  const queues = session.all(PROMOTE, [rows]).map(([queue]) => queue as string);
  for (const queue of queues) hints.ready(queue);
  return { queues, ...round };
}

function pruneJobs(connection: Connection, now: Instant, most: number): Promise<Round> {
  return connection.write((session) => {
    const { rows, ...round } = pick(session, PRUNABLE, now, most);
    forgetLogs(
      session,
      session.all(PRUNE, [rows]).map(([id]) => id as JobId),
    );
    return round;
  });
}

async function pruneEvents(connection: Connection, before: Instant, most: number): Promise<Round> {
  const done = await connection.write((session) => session.run(PRUNE_EVENTS, [most, before]));
  return { done, isCut: done === most };
}
