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
import type { Runner } from "./connection.ts";
import type { HintBatch } from "./hints.ts";
import {
  CONFIRM,
  CONFIRM_DONE,
  DROP,
  DROP_DONE,
  FINISH,
  type JobStatement,
  NOTE,
  NOTE_DONE,
  REVIVE,
  WRITE,
  WRITE_DONE,
} from "./job-write-statements.ts";
import { LOCATE } from "./statements.ts";

export const OK: Outcome = { ok: true };

/** How a kind of write is done: one statement for live jobs, one for finished ones, and the arrays they take. */
interface Shape {
  readonly live: JobStatement;
  readonly done: JobStatement;
  readonly values: (writes: readonly JobWrite[]) => unknown[];
}

const FINISH_SHAPE: Shape = { live: FINISH, done: WRITE_DONE, values: imageValues };
const WRITE_SHAPE: Shape = { live: WRITE, done: REVIVE, values: imageValues };
const NOTE_SHAPE: Shape = { live: NOTE, done: NOTE_DONE, values: noteValues };
const DROP_SHAPE: Shape = { live: DROP, done: DROP_DONE, values: guardValues };
const CONFIRM_SHAPE: Shape = { live: CONFIRM, done: CONFIRM_DONE, values: guardValues };

function shapeOf(write: JobWrite): Shape {
  if (write.drop) return DROP_SHAPE;
  if (write.image) return isTerminal(write.image.state) ? FINISH_SHAPE : WRITE_SHAPE;
  return write.documents || write.nextFence !== undefined ? NOTE_SHAPE : CONFIRM_SHAPE;
}

/** Whether one statement writes them all, as long as they are live. */
export function areOneShape(writes: readonly JobWrite[]): boolean {
  const shape = shapeOf(writes[0] as JobWrite);
  return writes.every((write) => shapeOf(write) === shape);
}

/** What writes tell, by the id of the job: written in the statement that writes the job, and only if that matched. */
export interface Telling {
  readonly now: Instant;
  readonly events: ReadonlyMap<JobId, readonly NewEvent[]>;
}

/**
 * Writes jobs, each by the fence (and revision) it names: one statement for all writes of a shape. No two writes name
 * the same job. Answers in the order of the writes.
 */
export async function writeJobs(
  runner: Runner,
  writes: readonly JobWrite[],
  hints: HintBatch,
  telling?: Telling,
): Promise<Outcome[]> {
  const answers = new Map<string, Outcome>();
  await runShapes(runner, writes, "live", answers, hints, telling);
  if (answers.size < writes.length) {
    const missed = writes.filter(({ id }) => !answers.has(id));
    const finished = await classify(runner, missed, answers);
    if (finished.length > 0) await runShapes(runner, finished, "done", answers, hints, telling);
  }
  return writes.map(({ id }) => answers.get(id) as Outcome);
}

async function runShapes(
  runner: Runner,
  writes: readonly JobWrite[],
  table: "live" | "done",
  answers: Map<string, Outcome>,
  hints: HintBatch,
  telling: Telling | undefined,
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
      const told = telling && toldValues(group, telling);
      group.sort(byId);
      const statement = told ? shape[table].told : shape[table];
      const values = shape.values(group);
      const rows = await runner.run(statement, told ? [...values, ...told(group)] : values);
      const queues = new Map(rows.map((row) => [row[0] as string, row[1] as string | undefined]));
      for (const write of group) {
        if (!queues.has(write.id)) continue;
        answers.set(write.id, OK);
        addHints(hints, write, queues.get(write.id));
      }
    }),
  );
}

/** What `tell` takes: the events are packed in the order of the call, and laid beside the ids in the order of the statement. */
function toldValues(
  called: readonly JobWrite[],
  { now, events }: Telling,
): (group: readonly JobWrite[]) => unknown[] {
  const { heads, items } = packEvents(called.flatMap(({ id }) => events.get(id) ?? []));
  const told = new Map<JobId, { readonly items: string; readonly place: number }>();
  let next = 0;
  for (const [place, { id }] of called.entries()) {
    const count = events.get(id)?.length ?? 0;
    if (count > 0) told.set(id, { items: items.slice(next, next + count).join(","), place });
    next += count;
  }
  return (group) => [
    now,
    heads,
    jsonTexts(group, ({ id }) => told.get(id)?.items),
    numberArray(group, ({ id }) => told.get(id)?.place),
  ];
}

function byId(a: JobWrite, b: JobWrite): number {
  return a.id < b.id ? -1 : 1;
}

/** A fence that moved may have voided a running attempt; whoever holds it wants to know. */
function addHints(hints: HintBatch, write: JobWrite, queue: string | undefined): void {
  if (write.nextFence !== undefined || write.notifyHolder) hints.lost.push(write.id);
  if (write.drop || (write.image && isTerminal(write.image.state))) hints.settled.push(write.id);
  else if (write.image?.state === "available" && queue !== undefined) hints.ready.add(queue);
}

/** Says why writes matched no live job, and gives those that are meant for the finished job that is there. */
async function classify(
  runner: Runner,
  missed: readonly JobWrite[],
  answers: Map<string, Outcome>,
): Promise<JobWrite[]> {
  const rows = await runner.run(LOCATE, [idArray(missed.map(({ id }) => id))]);
  const places = new Map(rows.map((row) => [row[0] as string, placeOf(row)]));
  const finished: JobWrite[] = [];
  for (const write of missed) {
    const place = places.get(write.id);
    answers.set(write.id, refusalOf(write, place));
    const isMeant = place?.isDone && place.at.fence === write.fence && place.at.rev === write.rev;
    if (isMeant) finished.push(write);
  }
  return finished;
}

export interface LocatedJob {
  readonly at: NonNullable<Extract<Outcome, { ok: false }>["at"]>;
  readonly isDone: boolean;
}

/** Where a job stands, from a row of LOCATE. */
export function placeOf(row: SqlRow): LocatedJob {
  return {
    at: { state: stateOf(row[1]), fence: row[2] as number, rev: row[3] as number },
    isDone: row[4] === 1,
  };
}

function refusalOf(write: JobWrite, place: LocatedJob | undefined): Outcome {
  if (!place) return { ok: false, because: "gone", at: null };
  const { at, isDone } = place;
  // An attempt has nothing to say about a job that has ended; only an outsider, who names a revision, has.
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

function imageValues(writes: readonly JobWrite[]): unknown[] {
  const images = writes.map(({ image }) => image as NonNullable<JobWrite["image"]>);
  const state = agreed(images, ({ state }) => STATE_CODES[state]);
  const wake = agreed(images, ({ wake }) => WAKE_CODES[wake]);
  const attempt = agreed(images, ({ attempt }) => attempt);
  const returns = agreed(images, ({ returns }) => returns);
  const expired_claims = agreed(images, ({ expiredClaims: expired_claims }) => expired_claims);
  const heartbeat = agreed(images, ({ heartbeat }) => heartbeat);
  const deadLetter = agreed(images, ({ deadLetter }) => (deadLetter ? 1 : 0));
  const { texts, policy } = imageDocuments(writes);
  return [
    ...guardValues(writes),
    numberArray(writes, ({ nextFence }) => nextFence),
    state.array,
    wake.array,
    numberArray(images, ({ wakeAt }) => wakeAt),
    numberArray(images, ({ rank }) => rank),
    attempt.array,
    returns.array,
    expired_claims.array,
    numberArray(images, ({ waitAt }) => waitAt),
    numberArray(images, ({ totalAt }) => totalAt),
    numberArray(images, ({ startedAt }) => startedAt),
    numberArray(images, ({ softAt }) => softAt),
    numberArray(images, ({ hardAt }) => hardAt),
    numberArray(images, ({ stallAt }) => stallAt),
    heartbeat.array,
    numberArray(images, ({ finishedAt }) => finishedAt),
    numberArray(images, ({ pruneAt }) => pruneAt),
    deadLetter.array,
    ...texts,
    state.value,
    wake.value,
    attempt.value,
    returns.value,
    expired_claims.value,
    heartbeat.value,
    deadLetter.value,
    policy,
  ];
}

/** A number that all items agree on as a single value, else as an array. */
function agreed<Item>(
  items: readonly Item[],
  read: (item: Item) => number | null,
): { readonly array: string | null; readonly value: number | null } {
  const value = read(items[0] as Item);
  return items.every((item) => read(item) === value)
    ? { array: null, value }
    : { array: numberArray(items, read), value: null };
}

function documentValues(writes: readonly JobWrite[]): (string | null)[] {
  return DOCUMENT_COLUMNS.map((name) =>
    jsonTexts(writes, ({ documents }) => documentChange(documents, name)),
  );
}

/** As `documentValues`, but a policy that all writes agree on is taken out of them. */
function imageDocuments(writes: readonly JobWrite[]): { texts: (string | null)[]; policy: string | null } {
  const policy = documentChange(writes[0]?.documents, "policy");
  const isAgreed = writes.every(({ documents }) => documentChange(documents, "policy") === policy);
  if (!isAgreed) return { texts: documentValues(writes), policy: null };
  const texts = DOCUMENT_COLUMNS.map((name) =>
    name === "policy" ? null : jsonTexts(writes, ({ documents }) => documentChange(documents, name)),
  );
  return { texts, policy };
}
