import type { JobDocuments, JobId, JobImage, JobState } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { JobWrite } from "../../ports/store.ts";
import { documentChange, STATE_CODES, stateOf, WAKE_CODES } from "../sql/row-codec.ts";
import type { HintBatch } from "./hints.ts";
import { RowRuns } from "./row-runs.ts";
import type { Session } from "./session.ts";
import {
  ANY_LOG,
  DELETE,
  DELETE_DONE,
  FINISH,
  FORGET_LOGS,
  LOCATE,
  LOCATE_DONE,
  NOTE,
  NOTE_DONE,
  REVIVE,
  WRITE,
  WRITE_DONE,
} from "./statements.ts";

/** Where a job stands, as read in the transaction that writes it. */
export interface LocatedJob {
  readonly row: number;
  readonly state: JobState;
  readonly fence: number;
  readonly rev: number;
  readonly queue: string;
  /** The size of its payload, which SQLite writes again with every change of the row. */
  readonly text: number;
}

/** Where jobs stand, live or finished; unknown ones are left out. */
export function locate(session: Session, ids: readonly JobId[]): Map<JobId, LocatedJob> {
  const places = new Map<JobId, LocatedJob>();
  if (ids.length > 0) find(session, LOCATE, ids, places);
  if (places.size < ids.length) {
    const missing = ids.filter((id) => !places.has(id));
    find(session, LOCATE_DONE, missing, places);
  }
  return places;
}

function find(session: Session, text: string, ids: readonly JobId[], places: Map<JobId, LocatedJob>): void {
  for (const [id, row, state, fence, rev, queue, size] of session.all(text, [JSON.stringify(ids)])) {
    places.set(id as JobId, {
      row: row as number,
      state: stateOf(state),
      fence: fence as number,
      rev: rev as number,
      queue: queue as string,
      text: size as number,
    });
  }
}

/** A write whose guard holds, and where it goes. A job's state tells in which table it lies. */
export interface PlacedWrite {
  readonly place: LocatedJob;
  readonly write: JobWrite;
}

/** The statements of each kind of write, by what the job was and what it becomes. */
const LIVE_TO_LIVE = [WRITE];
const LIVE_TO_DONE = [FINISH, DELETE];
const DONE_TO_LIVE = [REVIVE, DELETE_DONE];
const DONE_TO_DONE = [WRITE_DONE];
const LIVE_NOTE = [NOTE];
const DONE_NOTE = [NOTE_DONE];
const LIVE_DROP = [DELETE];
const DONE_DROP = [DELETE_DONE];

/** Writes jobs, no two of them the same. */
export function writeJobs(session: Session, writes: readonly PlacedWrite[], hints: HintBatch): void {
  const runs = new RowRuns(session);
  const dropped: JobId[] = [];
  for (const { place, write } of writes) {
    const { image, documents, nextFence } = write;
    const wasDone = isTerminal(place.state);
    if (write.drop) {
      runs.add(wasDone ? DONE_DROP : LIVE_DROP, [], place.row);
      dropped.push(write.id);
    } else if (image) {
      const isDone = isTerminal(image.state);
      const values = [nextFence ?? null, ...imageValues(image), ...documentValues(documents)];
      if (isDone) values.push(image.finishedAt, image.pruneAt, image.deadLetter ? 1 : 0);
      const [fromLive, fromDone] = isDone ? [LIVE_TO_DONE, DONE_TO_DONE] : [LIVE_TO_LIVE, DONE_TO_LIVE];
      runs.add(wasDone ? fromDone : fromLive, values, place.row);
      // Two revived jobs may want the same unique key: the second must see that the first has it.
      if (wasDone && !isDone) runs.flush();
    } else if (documents || nextFence !== undefined) {
      const values = [nextFence ?? null, ...documentValues(documents)];
      runs.add(wasDone ? DONE_NOTE : LIVE_NOTE, values, place.row);
    }
    addHints(hints, place, write);
  }
  runs.flush();
  forgetLogs(session, dropped);
}

/** Logs go with their jobs. Most files hold none, and then one look is all it costs. */
export function forgetLogs(session: Session, ids: readonly JobId[]): void {
  if (ids.length > 0 && session.get(ANY_LOG)) session.run(FORGET_LOGS, [JSON.stringify(ids)]);
}

function addHints(
  hints: HintBatch,
  place: LocatedJob,
  { id, image, nextFence, notifyHolder: tell }: JobWrite,
): void {
  const state = image?.state ?? place.state;
  const isVoided = (nextFence ?? place.fence) !== place.fence;
  if (place.state === "active" && (isVoided || tell)) hints.lost(id);
  if (isTerminal(state) && !isTerminal(place.state)) hints.settled(id);
  if (state === "available" && place.state !== "available") hints.ready(place.queue);
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
