import type { JobDocuments, JobId, JobImage, JobState, Rank } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { JobWrite } from "../../ports/store.ts";
import { documentChange, type SqlRow, STATE_CODES, stateOf, WAKE_CODES } from "../sql/row-codec.ts";
import type { HintBatch } from "./hints.ts";
import { RowGroups, RowRuns, rangesOf } from "./row-runs.ts";
import type { Session } from "./session.ts";
import {
  ANY_LOG,
  byRange,
  DELETE,
  DELETE_DONE,
  FINISH,
  FORGET_LOGS,
  LOCATE,
  LOCATE_DONE,
  LOCATE_ROWS,
  NOTE,
  NOTE_DONE,
  REVIVE,
  WRITE,
  WRITE_DONE,
} from "./statements.ts";

/** A job's position, read in the transaction that writes it. */
export interface LocatedJob {
  readonly row: number;
  readonly state: JobState;
  readonly fence: number;
  readonly rev: number;
  readonly queue: string;
  /** The size of its payload, which SQLite writes again with every change of the row. */
  readonly text: number;
  readonly rank: Rank;
}

/** The positions of jobs, live or finished. Unknown ones are left out. */
export function locate(session: Session, ids: readonly JobId[]): Map<JobId, LocatedJob> {
  const jobs = new Map<JobId, LocatedJob>();
  if (ids.length === 0) return jobs;
  const rows = session.rows.take(ids);
  if (rows) findRows(session, ids, rows, jobs);
  for (const text of [LOCATE, LOCATE_DONE]) {
    if (jobs.size === ids.length) return jobs;
    const missing = jobs.size === 0 ? ids : ids.filter((id) => !jobs.has(id));
    add(jobs, session.all(text, [JSON.stringify(missing)]));
  }
  return jobs;
}

/** Reads jobs by the numbers that their rows had. What has another id by now is left out. */
function findRows(
  session: Session,
  ids: readonly JobId[],
  rows: readonly number[],
  jobs: Map<JobId, LocatedJob>,
): void {
  const ranges = rangesOf(rows);
  if (ranges) {
    const found = ranges.flatMap((range) => session.all(byRange(LOCATE_ROWS), range));
    const isSame = found.length === ids.length && found.every(([id], index) => id === ids[index]);
    if (isSame) {
      add(jobs, found);
      return;
    }
  }
  const wanted = new Set(ids);
  const found = session.all(LOCATE_ROWS, [JSON.stringify(rows)]);
  add(
    jobs,
    found.filter(([id]) => wanted.has(id as JobId)),
  );
}

function add(jobs: Map<JobId, LocatedJob>, found: readonly SqlRow[]): void {
  for (const [id, row, state, fence, rev, queue, size, rank] of found) {
    jobs.set(id as JobId, {
      row: row as number,
      state: stateOf(state),
      fence: fence as number,
      rev: rev as number,
      queue: queue as string,
      text: size as number,
      rank: rank as Rank,
    });
  }
}

/** A write whose guard passed, and the job to write. The job's state says which table it is in. */
export interface LocatedWrite {
  readonly located: LocatedJob;
  readonly write: JobWrite;
}

/** The statements of each kind of write, by the state before and after. */
const LIVE_TO_LIVE = [WRITE];
const LIVE_TO_DONE = [FINISH, DELETE];
const DONE_TO_LIVE = [REVIVE, DELETE_DONE];
const DONE_TO_DONE = [WRITE_DONE];
const LIVE_NOTE = [NOTE];
const DONE_NOTE = [NOTE_DONE];
const LIVE_DROP = [DELETE];
const DONE_DROP = [DELETE_DONE];

/** Writes jobs. No two writes name the same job. */
export function writeJobs(session: Session, writes: readonly LocatedWrite[], hints: HintBatch): void {
  // Two revived jobs may want the same unique key: the first one takes it, so these stay in their order.
  const isOrdered = writes.some(({ located }) => isTerminal(located.state));
  const runs = isOrdered ? new RowRuns(session) : new RowGroups(session);
  const dropped: JobId[] = [];
  let last: ImageValues | undefined;
  for (const { located, write } of isOrdered ? writes : inRowOrder(writes)) {
    const { image, documents, nextFence } = write;
    const wasDone = isTerminal(located.state);
    if (write.drop) {
      runs.add(wasDone ? DONE_DROP : LIVE_DROP, [], located.row);
      dropped.push(write.id);
    } else if (image) {
      const isDone = isTerminal(image.state);
      last = last && areAlike(last, write, located) ? last : valuesOf(write, image, located);
      const { values } = last;
      const [fromLive, fromDone] = isDone ? [LIVE_TO_DONE, DONE_TO_DONE] : [LIVE_TO_LIVE, DONE_TO_LIVE];
      runs.add(wasDone ? fromDone : fromLive, values, located.row);
      // The second revived job must see that the first has the key.
      if (wasDone && !isDone) runs.flush();
    } else if (documents || nextFence !== undefined) {
      const values = [nextFence ?? null, ...documentValues(documents)];
      runs.add(wasDone ? DONE_NOTE : LIVE_NOTE, values, located.row);
    }
  }
  for (const { located, write } of writes) addHints(hints, located, write);
  runs.flush();
  forgetLogs(session, dropped);
}

/**
 * Jobs that were enqueued together have equal values and rows without a gap. A fair queue, or handlers of different
 * length, end them in another order.
 */
function inRowOrder(writes: readonly LocatedWrite[]): readonly LocatedWrite[] {
  return writes.toSorted((a, b) => a.located.row - b.located.row);
}

/** What a statement takes for an image, and what that was made of. */
interface ImageValues {
  readonly write: JobWrite;
  readonly image: JobImage;
  readonly isRankKept: boolean;
  readonly values: unknown[];
}

const RANK_AT = 4;

/** A rank that stays is null, so that jobs of different ranks can share a statement. */
function valuesOf(write: JobWrite, image: JobImage, { rank }: LocatedJob): ImageValues {
  const isRankKept = image.rank === rank;
  const values = [write.nextFence ?? null, ...imageValues(image), ...documentValues(write.documents)];
  if (isRankKept) values[RANK_AT] = null;
  if (isTerminal(image.state)) values.push(image.finishedAt, image.pruneAt, image.deadLetter ? 1 : 0);
  return { write, image, isRankKept, values };
}

/** Whether a write has the values of the last one. Most have, and making them for each would cost more than the rest. */
function areAlike(
  { write, image: a, isRankKept }: ImageValues,
  next: JobWrite,
  { rank }: LocatedJob,
): boolean {
  const b = next.image as JobImage;
  return (
    write.nextFence === next.nextFence &&
    write.documents === next.documents &&
    a.state === b.state &&
    a.startedAt === b.startedAt &&
    a.finishedAt === b.finishedAt &&
    a.pruneAt === b.pruneAt &&
    a.wakeAt === b.wakeAt &&
    a.waitAt === b.waitAt &&
    a.totalAt === b.totalAt &&
    a.softAt === b.softAt &&
    a.hardAt === b.hardAt &&
    a.stallAt === b.stallAt &&
    a.heartbeat === b.heartbeat &&
    a.wake === b.wake &&
    a.attempt === b.attempt &&
    a.returns === b.returns &&
    a.expiredClaims === b.expiredClaims &&
    a.deadLetter === b.deadLetter &&
    isRankKept === (b.rank === rank) &&
    (isRankKept || a.rank === b.rank)
  );
}

/** Deletes the logs of deleted jobs. Most files have no logs; then it costs one read. */
export function forgetLogs(session: Session, ids: readonly JobId[]): void {
  if (ids.length > 0 && session.get(ANY_LOG)) session.run(FORGET_LOGS, [JSON.stringify(ids)]);
}

function addHints(
  hints: HintBatch,
  located: LocatedJob,
  { id, image, nextFence, notifyHolder }: JobWrite,
): void {
  const state = image?.state ?? located.state;
  const isVoided = (nextFence ?? located.fence) !== located.fence;
  if (located.state === "active" && (isVoided || notifyHolder)) hints.lost(id);
  if (isTerminal(state) && !isTerminal(located.state)) hints.settled(id);
  if (state === "available" && located.state !== "available") hints.ready(located.queue);
}

/** An image in the order in which statements take it. */
export function imageValues(image: JobImage): unknown[] {
  return [
    STATE_CODES[image.state],
    WAKE_CODES[image.wake],
    image.wakeAt,
    image.rank,
    image.attempt,
    image.returns,
    image.expiredClaims,
    image.waitAt,
    image.totalAt,
    image.startedAt,
    image.softAt,
    image.hardAt,
    image.stallAt,
    image.heartbeat,
  ];
}

function documentValues(documents: JobDocuments | undefined): (string | null)[] {
  return [
    documentChange(documents, "options"),
    documentChange(documents, "policy"),
    documentChange(documents, "errors"),
    documentChange(documents, "progress"),
    documentChange(documents, "checkpoint"),
    documentChange(documents, "result"),
  ];
}
