import { CurfewError } from "../../core/errors.ts";
import type { NewEvent } from "../../core/event/new-event.ts";
import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { Instant } from "../../core/time.ts";
import type { Enqueued } from "../../ports/store.ts";
import { batchesOf, textOfJob } from "../sql/batches.ts";
import { eventRow, packEvents } from "../sql/event-pack.ts";
import { alikeColumns, newOptionsText, STATE_CODES, WAKE_CODES } from "../sql/row-codec.ts";
import { idArray, jsonTexts, numberArray, textArray } from "./array-literal.ts";
import { type ConnectionGroup, STATEMENT, withRepeats } from "./connection.ts";
import type { HintBatch, HintChannel } from "./hints.ts";
import { type Bounded, enqueueBounded } from "./key-limits.ts";
import { type Runner, sqlState } from "./session.ts";
import {
  ADD_EVENTS,
  HOLDERS,
  INSERT,
  INSERT_ALIKE,
  INSERT_ALIKE_HINTED,
  INSERT_ALIKE_RECORDED,
  INSERT_RECORDED,
  LOCATE,
  TAKE_BACK,
} from "./statements.ts";
import { inWaves } from "./waves.ts";

const UNIQUE_VIOLATION = "23505";

/** Enqueues on the store's connections, one statement's worth at a time. */
export async function enqueueOn(
  connections: ConnectionGroup,
  jobs: readonly NewJob[],
  now: Instant,
  hints: HintBatch,
  channel: HintChannel,
): Promise<Enqueued[]> {
  if (jobs.length === 1 && (await enqueueHinted(connections, jobs, hints, channel))) return ["created"];
  const answers: Enqueued[] = [];
  for (const batch of batchesOf(jobs, STATEMENT, textOfJob)) {
    for (const answer of await enqueueBatch(connections, batch, now, hints)) answers.push(answer);
  }
  return answers;
}

/** Adds a plain job that is available at once, and sends its hint with the same commit. Returns false if it did neither. */
async function enqueueHinted(
  connections: ConnectionGroup,
  jobs: readonly NewJob[],
  hints: HintBatch,
  channel: HintChannel,
): Promise<boolean> {
  const { image, queue, records } = jobs[0] as NewJob;
  if (records || image.state !== "available" || !areAlike(jobs)) return false;
  const carried = channel.carry(queue, image.rank);
  if (!carried) return false;
  try {
    await connections.run(INSERT_ALIKE_HINTED, [...alikeValues(jobs), ...carried.values]);
  } catch (error) {
    if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    return false;
  } finally {
    carried.end();
  }
  hints.ready(queue, image.rank);
  hints.isSent = true;
  return true;
}

/** Jobs of one template use the cheapest statement, others the general one. */
async function enqueueBatch(
  connections: ConnectionGroup,
  jobs: readonly NewJob[],
  now: Instant,
  hints: HintBatch,
): Promise<Enqueued[]> {
  const isRecorded = jobs.some(({ records }) => records);
  if (areAlike(jobs)) {
    try {
      const values = alikeValues(jobs);
      if (isRecorded)
        await connections.run(INSERT_ALIKE_RECORDED, [...values, now, eventRow(eventsOf(jobs))]);
      else await connections.run(INSERT_ALIKE, values);
      addReady(jobs[0] as NewJob, hints);
      return jobs.map(() => "created");
    } catch (error) {
      // A generated id that is known: the caller repeats a call whose reply was lost.
      if (sqlState(error) !== UNIQUE_VIOLATION) throw error;
    }
  }
  // An id that the caller chose needs two statements, and other readers must not see what the second one deletes.
  const isOneStatement = jobs.every(({ hasNewId }) => hasNewId);
  return withRepeats(() =>
    isOneStatement
      ? enqueueWith(connections, jobs, hints, isRecorded ? now : undefined)
      : connections.transaction((session) => enqueueRecorded(session, jobs, now, hints)),
  );
}

function eventsOf(jobs: readonly NewJob[]): NewEvent[] {
  return jobs.flatMap(({ records }) => (records ? [records] : []));
}

/** Enqueues in a transaction that the caller ends, and records the events of the new jobs. */
export async function enqueueRecorded(
  session: Runner,
  jobs: readonly NewJob[],
  now: Instant,
  hints: HintBatch,
): Promise<Enqueued[]> {
  const answers = await enqueueWith(session, jobs, hints);
  const recorded = eventsOf(jobs.filter((_, index) => answers[index] === "created"));
  if (recorded.length > 0) await session.run(ADD_EVENTS, [now, eventRow(recorded)]);
  return answers;
}

/** Enqueues jobs with distinct ids. With `recordAt`, each statement also records their events. */
export async function enqueueWith(
  runner: Runner,
  jobs: readonly NewJob[],
  hints: HintBatch,
  recordAt?: Instant,
): Promise<Enqueued[]> {
  const answers: Enqueued[] = [];
  for (const batch of batchesOf(jobs, STATEMENT, textOfJob)) {
    const answered = await inWaves(
      batch,
      ({ id }) => id,
      (wave) => insert(runner, wave, hints, { tries: 0, recordAt }),
    );
    for (const answer of answered) answers.push(answer);
  }
  return answers;
}

/** Enqueues in a transaction, with bounded queues. */
export function enqueueWithin(
  session: Runner,
  jobs: readonly NewJob[],
  bounded: Bounded,
  hints: HintBatch,
): Promise<Enqueued[]> {
  return enqueueBounded(
    session,
    jobs,
    bounded,
    (some) => enqueueRecorded(session, some, bounded.now, hints),
    (some) => findBlockers(session, some),
  );
}

/** How often a job is tried again if the job that blocked it was gone before it could be named. */
const MOST_TRIES = 5;

async function insert(
  runner: Runner,
  jobs: readonly NewJob[],
  hints: HintBatch,
  { tries, recordAt }: { readonly tries: number; readonly recordAt: Instant | undefined },
): Promise<Enqueued[]> {
  const given = jobs.filter(({ hasNewId }) => !hasNewId).map(({ id }) => id);
  const values = insertValues(jobs, given);
  const rows =
    recordAt === undefined
      ? await runner.run(INSERT, values)
      : await runner.run(INSERT_RECORDED, [...values, recordAt, ...eventValues(jobs)]);
  const created = new Set(rows.map(([id]) => id as string));
  if (given.length > 0) {
    const taken = await runner.run(TAKE_BACK, [idArray(given.filter((id) => created.has(id)))]);
    for (const [id] of taken) created.delete(id as string);
  }
  for (const job of jobs) if (created.has(job.id)) addReady(job, hints);
  if (created.size === jobs.length) return jobs.map(() => "created");
  const blockers = await findBlockers(
    runner,
    jobs.filter(({ id }) => !created.has(id)),
  );
  const again = jobs.filter(({ id }) => !created.has(id) && !blockers.has(id));
  if (again.length > 0) {
    if (tries === MOST_TRIES) {
      throw new CurfewError(
        "store_failed",
        `enqueue: job ${again[0]?.id}: other jobs took and freed its unique key during every try; try again`,
      );
    }
    const answers = await insert(runner, again, hints, { tries: tries + 1, recordAt });
    for (const [index, { id }] of again.entries()) blockers.set(id, answers[index] as Enqueued);
  }
  return jobs.map(({ id }) => (created.has(id) ? "created" : (blockers.get(id) as Enqueued)));
}

/** Why jobs were not inserted: their ids are known, or live jobs hold their unique keys. */
async function findBlockers(runner: Runner, jobs: readonly NewJob[]): Promise<Map<string, Enqueued>> {
  const known = await runner.run(LOCATE, [idArray(jobs.map(({ id }) => id))]);
  const blockers = new Map<string, Enqueued>(known.map(([id]) => [id as string, "exists"]));
  const keys = textArray(jobs, ({ uniqueKey }) => uniqueKey);
  const holders = new Map(keys === null ? [] : ((await runner.run(HOLDERS, [keys])) as [string, string][]));
  for (const { id, uniqueKey } of jobs) {
    const holder = uniqueKey === undefined ? undefined : holders.get(uniqueKey);
    if (holder !== undefined && !blockers.has(id)) blockers.set(id, { duplicate: holder });
  }
  return blockers;
}

/** The parameters of `recordEvents` after the instant. */
function eventValues(jobs: readonly NewJob[]): unknown[] {
  const { shared, items } = packEvents(eventsOf(jobs));
  let next = 0;
  return [
    shared,
    jsonTexts(jobs, ({ records }) => (records ? items[next++] : null)),
    numberArray([...jobs.keys()], (index) => index),
  ];
}

function addReady(job: NewJob, hints: HintBatch): void {
  if (job.image.state === "available") hints.ready(job.queue, job.image.rank);
}

/** Whether all jobs come from one template and cannot collide with other jobs. */
function areAlike(jobs: readonly NewJob[]): boolean {
  const { image, options, queue, type, createdAt, fairKey } = jobs[0] as NewJob;
  if (
    image.attempt + image.returns + image.expiredClaims > 0 ||
    image.startedAt !== null ||
    image.stallAt !== null
  ) {
    return false;
  }
  return jobs.every(
    (job) =>
      job.hasNewId &&
      job.image === image &&
      job.options === options &&
      job.queue === queue &&
      job.type === type &&
      job.createdAt === createdAt &&
      job.fairKey === fairKey &&
      job.needs === undefined &&
      job.workflow === undefined &&
      job.limitKey === undefined &&
      job.uniqueKey === undefined,
  );
}

function alikeValues(jobs: readonly NewJob[]): unknown[] {
  return [
    idArray(jobs.map(({ id }) => id)),
    jsonTexts(jobs, ({ payload }) => payload),
    ...alikeColumns(jobs[0] as NewJob),
  ];
}

function insertValues(jobs: readonly NewJob[], given: readonly string[]): unknown[] {
  return [
    idArray(jobs.map(({ id }) => id)),
    textArray(jobs, ({ queue }) => queue),
    textArray(jobs, ({ type }) => type),
    numberArray(jobs, ({ priority }) => priority),
    numberArray(jobs, ({ createdAt }) => createdAt),
    numberArray(jobs, ({ needs }) => needs ?? 0),
    textArray(jobs, ({ workflow }) => workflow),
    textArray(jobs, ({ limitKey }) => limitKey),
    textArray(jobs, ({ uniqueKey }) => uniqueKey),
    jsonTexts(jobs, ({ payload }) => payload),
    jsonTexts(jobs, newOptionsText),
    numberArray(jobs, ({ image }) => STATE_CODES[image.state]),
    numberArray(jobs, ({ image }) => WAKE_CODES[image.wake]),
    numberArray(jobs, ({ image }) => image.wakeAt),
    numberArray(jobs, ({ image }) => image.rank),
    numberArray(jobs, ({ image }) => image.attempt),
    numberArray(jobs, ({ image }) => image.returns),
    numberArray(jobs, ({ image }) => image.expiredClaims),
    numberArray(jobs, ({ image }) => image.waitAt),
    numberArray(jobs, ({ image }) => image.totalAt),
    numberArray(jobs, ({ image }) => image.startedAt),
    numberArray(jobs, ({ image }) => image.softAt),
    numberArray(jobs, ({ image }) => image.hardAt),
    numberArray(jobs, ({ image }) => image.stallAt),
    numberArray(jobs, ({ image }) => image.heartbeat),
    numberArray(jobs, ({ fence }) => fence ?? 0),
    textArray(jobs, ({ fairKey }) => fairKey),
    idArray(given),
  ];
}
