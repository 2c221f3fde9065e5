import type { NewEvent } from "../../core/event/new-event.ts";
import type { JobId } from "../../core/job/job.ts";
import { isTerminal } from "../../core/job/lifecycle.ts";
import type { Instant } from "../../core/time.ts";
import type { JobWrite, Outcome } from "../../ports/store.ts";
import { packEvents } from "../sql/event-pack.ts";
import {
  DOCUMENT_COLUMNS,
  documentChange,
  type SqlRow,
  STATE_CODES,
  stateOf,
  WAKE_CODES,
} from "../sql/row-codec.ts";
import { idArray, jsonTexts, numberArray } from "./array-literal.ts";
import type { HintBatch } from "./hints.ts";
import {
  ALWAYS_VARIED,
  CONFIRM,
  CONFIRM_DONE,
  DISTANCES,
  DROP,
  DROP_DONE,
  FINISH,
  formOf,
  type ImageStatement,
  type JobStatement,
  NOTE,
  NOTE_DONE,
  REVIVE,
  type Varied,
  WRITE,
  WRITE_COLUMNS,
  WRITE_DONE,
} from "./job-write-statements.ts";
import type { Runner } from "./session.ts";
import { LOCATE } from "./statements.ts";

export const OK: Outcome = { ok: true };

/** The statement of a set of writes for live jobs, the one for finished jobs, and what both take. */
interface WriteCall {
  readonly live: JobStatement;
  readonly done: JobStatement;
  readonly values: unknown[];
}

/** One kind of write. */
type Shape = (writes: readonly JobWrite[]) => WriteCall;

const FINISH_SHAPE: Shape = (writes) => imageCall(writes, FINISH, WRITE_DONE);
const WRITE_SHAPE: Shape = (writes) => imageCall(writes, WRITE, REVIVE);
const NOTE_SHAPE: Shape = (writes) => ({ live: NOTE, done: NOTE_DONE, values: noteValues(writes) });
const DROP_SHAPE: Shape = (writes) => ({ live: DROP, done: DROP_DONE, values: guardValues(writes) });
const CONFIRM_SHAPE: Shape = (writes) => ({ live: CONFIRM, done: CONFIRM_DONE, values: guardValues(writes) });

function shapeOf(write: JobWrite): Shape {
  if (write.drop) return DROP_SHAPE;
  if (write.image) return isTerminal(write.image.state) ? FINISH_SHAPE : WRITE_SHAPE;
  return write.documents || write.nextFence !== undefined ? NOTE_SHAPE : CONFIRM_SHAPE;
}

/** Whether one statement writes them all, if they are live. */
export function areOneShape(writes: readonly JobWrite[]): boolean {
  const shape = shapeOf(writes[0] as JobWrite);
  return writes.every((write) => shapeOf(write) === shape);
}

/**
 * The events of writes by job id. The statement that writes a job also records its events, but only if the job
 * matched.
 */
export interface Recording {
  readonly now: Instant;
  readonly events: ReadonlyMap<JobId, readonly NewEvent[]>;
}

/**
 * Writes jobs under the fence (and revision) that each names: one statement for all writes of a shape. No two writes
 * name the same job. Answers in the order of the writes.
 */
export async function writeJobs(
  runner: Runner,
  writes: readonly JobWrite[],
  hints: HintBatch,
  recording?: Recording,
): Promise<Outcome[]> {
  const answers = new Map<string, Outcome>();
  await runShapes(runner, writes, "live", answers, hints, recording);
  if (answers.size < writes.length) {
    const missed = writes.filter(({ id }) => !answers.has(id));
    const finished = await classify(runner, missed, answers);
    if (finished.length > 0) await runShapes(runner, finished, "done", answers, hints, recording);
  }
  return writes.map(({ id }) => answers.get(id) as Outcome);
}

async function runShapes(
  runner: Runner,
  writes: readonly JobWrite[],
  table: "live" | "done",
  answers: Map<string, Outcome>,
  hints: HintBatch,
  recording: Recording | undefined,
): Promise<void> {
  const groups = new Map<Shape, JobWrite[]>();
  for (const write of writes) {
    const shape = shapeOf(write);
    const group = groups.get(shape);
    if (group) group.push(write);
    else groups.set(shape, [write]);
  }
  await Promise.all(
    Array.from(groups, async ([shape, group]) => {
      // In the order of ids, so that two commits with the same jobs wait for each other instead of deadlocking.
      const recorded = recording && eventValues(group, recording);
      group.sort(byId);
      const { values, ...call } = shape(group);
      const statement = recorded ? call[table].recorded : call[table];
      const rows = await runner.run(statement, recorded ? [...values, ...recorded(group)] : values);
      const queues = new Map<string, string | undefined>();
      for (let index = 0; index < rows.length; index++) {
        const [id, queue] = rows[index] as [string, string | undefined];
        queues.set(id, queue);
      }
      for (let index = 0; index < group.length; index++) {
        const write = group[index] as JobWrite;
        if (!queues.has(write.id)) continue;
        answers.set(write.id, OK);
        addHints(hints, write, queues.get(write.id));
      }
    }),
  );
}

/**
 * The parameters of `recordEvents`. The events are packed in the order of the call, and matched with the ids in the
 * order of the statement.
 */
function eventValues(
  called: readonly JobWrite[],
  { now, events }: Recording,
): (group: readonly JobWrite[]) => unknown[] {
  const { shared, items } = packEvents(called.flatMap(({ id }) => events.get(id) ?? []));
  const packed = new Map<JobId, { readonly items: string; readonly position: number }>();
  let next = 0;
  for (const [position, { id }] of called.entries()) {
    const count = events.get(id)?.length ?? 0;
    if (count > 0) packed.set(id, { items: items.slice(next, next + count).join(","), position });
    next += count;
  }
  return (group) => [
    now,
    shared,
    jsonTexts(group, ({ id }) => packed.get(id)?.items),
    numberArray(group, ({ id }) => packed.get(id)?.position),
  ];
}

function byId(a: JobWrite, b: JobWrite): number {
  return a.id < b.id ? -1 : 1;
}

/** A new fence may have voided a running attempt, so its holder gets a hint. */
function addHints(hints: HintBatch, write: JobWrite, queue: string | undefined): void {
  if (write.nextFence !== undefined || write.notifyHolder) hints.lost.push(write.id);
  if (write.drop || (write.image && isTerminal(write.image.state))) hints.settled.push(write.id);
  else if (write.image?.state === "available" && queue !== undefined) hints.ready(queue, write.image.rank);
}

/** Answers why writes matched no live job. Returns the writes that match a finished job instead. */
async function classify(
  runner: Runner,
  missed: readonly JobWrite[],
  answers: Map<string, Outcome>,
): Promise<JobWrite[]> {
  const rows = await runner.run(LOCATE, [idArray(missed.map(({ id }) => id))]);
  const jobs = new Map(rows.map((row) => [row[0] as string, locatedJob(row)]));
  const finished: JobWrite[] = [];
  for (const write of missed) {
    const located = jobs.get(write.id);
    answers.set(write.id, refusalOf(write, located));
    const isMeant = located?.isDone && located.at.fence === write.fence && located.at.rev === write.rev;
    if (isMeant) finished.push(write);
  }
  return finished;
}

export interface LocatedJob {
  readonly at: NonNullable<Extract<Outcome, { ok: false }>["at"]>;
  readonly isDone: boolean;
}

/** A row of LOCATE. */
export function locatedJob(row: SqlRow): LocatedJob {
  return {
    at: { state: stateOf(row[1]), fence: row[2] as number, rev: row[3] as number },
    isDone: row[4] === 1,
  };
}

function refusalOf(write: JobWrite, located: LocatedJob | undefined): Outcome {
  if (!located) return { ok: false, because: "gone", at: null };
  const { at, isDone } = located;
  // An attempt cannot change a job that has ended. Only a write that names a revision can.
  const isLost = at.fence !== write.fence || (write.rev === undefined && isDone);
  return { ok: false, because: isLost ? "lost" : "stale", at };
}

function guardValues(writes: readonly JobWrite[]): unknown[] {
  return [
    idArray(writes.map(({ id }) => id)),
    numberArray(writes, ({ fence }) => fence),
    numberArray(writes, ({ rev }) => rev),
  ];
}

function noteValues(writes: readonly JobWrite[]): unknown[] {
  return [
    ...guardValues(writes),
    numberArray(writes, ({ nextFence }) => nextFence),
    ...documentValues(writes),
  ];
}

/** What each write says of a column of `WRITE_COLUMNS`. */
const COLUMN_READERS: { readonly [Name in keyof typeof WRITE_COLUMNS]: ColumnReader } = {
  fence: ({ fence }) => fence,
  rev: ({ rev }) => rev,
  step: ({ step = 1 }) => step,
  next_fence: ({ nextFence }) => nextFence,
  state: ({ image }) => STATE_CODES[image.state],
  wake: ({ image }) => WAKE_CODES[image.wake],
  wake_at: ({ image }) => image.wakeAt,
  rank: ({ image }) => image.rank,
  attempt: ({ image }) => image.attempt,
  returns: ({ image }) => image.returns,
  expired_claims: ({ image }) => image.expiredClaims,
  wait_at: ({ image }) => image.waitAt,
  total_at: ({ image }) => image.totalAt,
  started_at: ({ image }) => image.startedAt,
  soft_at: ({ image }) => image.softAt,
  hard_at: ({ image }) => image.hardAt,
  stall_at: ({ image }) => image.stallAt,
  heartbeat: ({ image }) => image.heartbeat,
  finished_at: ({ image }) => image.finishedAt,
  prune_at: ({ image }) => image.pruneAt,
  dead_letter: ({ image }) => (image.deadLetter ? 1 : 0),
  options: ({ documents }) => documentChange(documents, "options"),
  policy: ({ documents }) => documentChange(documents, "policy"),
  errors: ({ documents }) => documentChange(documents, "errors"),
  progress: ({ documents }) => documentChange(documents, "progress"),
  checkpoint: ({ documents }) => documentChange(documents, "checkpoint"),
  result: ({ documents }) => documentChange(documents, "result"),
};

type ColumnReader = (write: ImageWrite) => number | string | null | undefined;

type ImageWrite = JobWrite & { readonly image: NonNullable<JobWrite["image"]> };

const COLUMN_NAMES = Object.keys(WRITE_COLUMNS) as (keyof typeof WRITE_COLUMNS)[];
const READERS = COLUMN_NAMES.map((name) => COLUMN_READERS[name]);

/** A column on which all writes agree is a single value. Most are. */
function imageCall(writes: readonly JobWrite[], live: ImageStatement, done: ImageStatement): WriteCall {
  const images = writes as readonly ImageWrite[];
  const distances = new Map<string, number>();
  const form = formOf(images.length > 1 ? variedIn(images, distances) : 0);
  const values: unknown[] = [idArray(writes.map(({ id }) => id))];
  for (let nth = 0; nth < READERS.length; nth++) {
    const [name, read] = [COLUMN_NAMES[nth] as keyof typeof WRITE_COLUMNS, READERS[nth] as ColumnReader];
    if ((form & (1 << nth)) === 0) values.push(distances.get(name) ?? read(images[0] as ImageWrite) ?? null);
    else if (WRITE_COLUMNS[name] === "text")
      values.push(jsonTexts(images, read as (write: ImageWrite) => string | null | undefined));
    else values.push(numberArray(images, read as (write: ImageWrite) => number | null | undefined));
  }
  return { live: live(form), done: done(form), values };
}

/** Which columns vary in these writes. Notes the distances that all of them agree on. */
function variedIn(images: readonly ImageWrite[], distances: Map<string, number>): Varied {
  let varied: Varied = ALWAYS_VARIED;
  for (const { column, from, bit } of DISTANCES) {
    const distance = distanceOf(images, COLUMN_READERS[column], COLUMN_READERS[from]);
    if (distance === null) continue;
    distances.set(column, distance);
    varied |= bit;
  }
  for (let nth = 0; nth < READERS.length; nth++)
    if (!distances.has(COLUMN_NAMES[nth] as string) && differ(images, READERS[nth] as ColumnReader))
      varied |= 1 << nth;
  return varied;
}

/** How far a column is from another one in all writes; null if they do not agree. */
function distanceOf(writes: readonly ImageWrite[], read: ColumnReader, from: ColumnReader): number | null {
  let first: number | null = null;
  for (let index = 0; index < writes.length; index++) {
    const write = writes[index] as ImageWrite;
    const [value, origin] = [read(write), from(write)];
    if (typeof value !== "number" || typeof origin !== "number") return null;
    if (index === 0) first = value - origin;
    else if (value - origin !== first) return null;
  }
  return first;
}

function differ(writes: readonly ImageWrite[], read: ColumnReader): boolean {
  const first = read(writes[0] as ImageWrite) ?? null;
  for (let index = 1; index < writes.length; index++)
    if ((read(writes[index] as ImageWrite) ?? null) !== first) return true;
  return false;
}

function documentValues(writes: readonly JobWrite[]): (string | null)[] {
  return DOCUMENT_COLUMNS.map((name) =>
    jsonTexts(writes, ({ documents }) => documentChange(documents, name)),
  );
}
