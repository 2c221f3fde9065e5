import type { NewJob } from "../../core/job/enqueue/envelope.ts";
import type { JobImage } from "../../core/job/job.ts";
import type { EnqueueCallOptions, Enqueued } from "../../ports/store.ts";
import { alikeColumns, newOptionsText } from "../sql/row-codec.ts";
import type { HintBatch } from "./hints.ts";
import { WAITING_IN } from "./limit-statements.ts";
import type { Session } from "./session.ts";
import { isTaken } from "./sqlite-errors.ts";
import { HOLDER, INSERT, INSERT_ALIKE, INSERT_KEYED, IS_DONE } from "./statements.ts";
import { imageValues, locate } from "./write-jobs.ts";

/** Enqueues jobs in order. Adjacent jobs of one template are inserted in one statement. */
export function enqueueJobs(session: Session, jobs: readonly NewJob[], hints: HintBatch): Enqueued[] {
  const answers: Enqueued[] = [];
  for (let start = 0; start < jobs.length; ) {
    const end = endOfRun(jobs, start);
    const run = jobs.slice(start, end);
    if (isPlain(run[0] as NewJob) && insertAlike(session, run)) {
      addReady(run[0] as NewJob, hints);
      for (const { records } of run) {
        if (records) hints.event(records);
        answers.push("created");
      }
    } else for (const job of run) answers.push(enqueueJob(session, job, hints));
    start = end;
  }
  return answers;
}

type Bounded = Pick<EnqueueCallOptions, "onDepth"> & { readonly bounds: ReadonlyMap<string, number> };

/** Enqueues jobs, some of them into bounded queues. */
export function enqueueBounded(
  session: Session,
  jobs: readonly NewJob[],
  { bounds, onDepth }: Bounded,
  hints: HintBatch,
): Enqueued[] {
  const rooms = new Map<string, number>();
  const answers = jobs.map((job) => {
    const { queue } = job;
    const bound = bounds.get(queue);
    if (bound === undefined) return enqueueJob(session, job, hints);
    const room = rooms.get(queue) ?? Math.max(0, bound - waitingIn(session, queue, bound));
    const answer = room > 0 ? enqueueJob(session, job, hints) : (knownAs(session, job) ?? "full");
    rooms.set(queue, answer === "created" ? room - 1 : room);
    return answer;
  });
  for (const [queue, room] of rooms) onDepth?.(queue, (bounds.get(queue) as number) - room);
  return answers;
}

function waitingIn(session: Session, queue: string, most: number): number {
  return session.get(WAITING_IN, [queue, most, queue, most, queue, most])?.[0] as number;
}

/** What would prevent a job from being inserted, if anything. */
function knownAs(session: Session, job: NewJob): Enqueued | undefined {
  if (session.get(IS_DONE, [job.id]) || locate(session, [job.id]).size > 0) return "exists";
  const holder = job.uniqueKey === undefined ? undefined : session.get(HOLDER, [job.uniqueKey]);
  return holder && { duplicate: holder[0] as string };
}

/** The end of the run of jobs from `start` that can be inserted together. */
function endOfRun(jobs: readonly NewJob[], start: number): number {
  const first = jobs[start] as NewJob;
  let end = start + 1;
  if (!isPlain(first)) return end;
  const options = newOptionsText(first);
  while (end < jobs.length && areAlike(first, jobs[end] as NewJob, options)) end += 1;
  return end;
}

/** Above this size, binding a payload is cheaper than reading it from a JSON object. */
const LARGE_PAYLOAD = 4_096;

/** A job that cannot collide with another, and that has no values besides those of INSERT_ALIKE. */
function isPlain({ hasNewId, image, payload, needs, workflow, limitKey, uniqueKey }: NewJob): boolean {
  return (
    hasNewId &&
    payload.length <= LARGE_PAYLOAD &&
    needs === undefined &&
    workflow === undefined &&
    limitKey === undefined &&
    uniqueKey === undefined &&
    isUnstarted(image)
  );
}

function isUnstarted({
  attempt,
  returns,
  expiredClaims: expired_claims,
  startedAt,
  softAt,
  hardAt,
  stallAt,
}: JobImage): boolean {
  return attempt + returns + expired_claims === 0 && (startedAt ?? softAt ?? hardAt ?? stallAt) === null;
}

/** Jobs that were enqueued one by one have separate options objects, which are mostly equal. */
function areAlike(a: NewJob, b: NewJob, optionsOfA: string | null): boolean {
  return (
    isPlain(b) &&
    a.queue === b.queue &&
    a.type === b.type &&
    a.priority === b.priority &&
    a.createdAt === b.createdAt &&
    (a.fairKey === b.fairKey || (areKeyed(a, b) && isUuid(a) && isUuid(b))) &&
    (a.image === b.image || areAlikeImages(a.image, b.image)) &&
    (a.options === b.options || optionsOfA === newOptionsText(b))
  );
}

/** Whether both have a fair key. */
function areKeyed({ fairKey: a }: NewJob, { fairKey: b }: NewJob): boolean {
  return a !== undefined && b !== undefined;
}

const UUID_LENGTH = 36;

/** The engine's ids are UUIDs. INSERT_KEYED tells an id from the key after it by its length. */
function isUuid({ id }: NewJob): boolean {
  return id.length === UUID_LENGTH;
}

function areAlikeImages(a: JobImage, b: JobImage): boolean {
  return (
    a.rank === b.rank &&
    a.state === b.state &&
    a.wake === b.wake &&
    a.wakeAt === b.wakeAt &&
    a.waitAt === b.waitAt &&
    a.totalAt === b.totalAt &&
    a.heartbeat === b.heartbeat
  );
}

/** Written by hand: a JavaScript object would merge two equal ids, which the store has to refuse. */
function payloadsBy(nameOf: (job: NewJob) => string, jobs: readonly NewJob[]): string {
  let text = "";
  for (const job of jobs) {
    if (text !== "") text += ",";
    text += `${JSON.stringify(nameOf(job))}:${JSON.stringify(job.payload)}`;
  }
  return `{${text}}`;
}

/** Returns false, with nothing inserted, if an id is known: the caller repeats a call whose reply was lost. */
function insertAlike(session: Session, jobs: readonly NewJob[]): boolean {
  const columns = alikeColumns(jobs[0] as NewJob);
  const isOneKey = jobs.every(({ fairKey }) => fairKey === jobs[0]?.fairKey);
  try {
    if (isOneKey) session.run(INSERT_ALIKE, [...columns, payloadsBy(({ id }) => id, jobs)]);
    else {
      const values = [...columns.slice(0, -1), UUID_LENGTH, UUID_LENGTH + 1];
      session.run(INSERT_KEYED, [...values, payloadsBy(({ id, fairKey }) => id + fairKey, jobs)]);
    }
    return true;
  } catch (error) {
    if (isTaken(error)) return false;
    throw error;
  }
}

export function enqueueJob(session: Session, job: NewJob, hints: HintBatch): Enqueued {
  // A generated id is unknown. An id that a caller chose may belong to a finished job.
  if (!job.hasNewId && session.get(IS_DONE, [job.id])) return "exists";
  if (session.run(INSERT, insertValues(job)) === 0) return blockerOf(session, job);
  addReady(job, hints);
  if (job.records) hints.event(job.records);
  return "created";
}

function addReady(job: NewJob, hints: HintBatch): void {
  if (job.image.state === "available") hints.ready(job.queue);
}

/** Why a job was not inserted: its id is known, or a live job holds its unique key. */
function blockerOf(session: Session, job: NewJob): Enqueued {
  if (locate(session, [job.id]).size > 0) return "exists";
  const holder = session.get(HOLDER, [job.uniqueKey]);
  return { duplicate: holder?.[0] as string };
}

function insertValues(job: NewJob): unknown[] {
  return [
    job.id,
    job.fence ?? 0,
    job.queue,
    job.type,
    job.priority,
    job.createdAt,
    job.needs ?? 0,
    job.workflow ?? null,
    job.limitKey ?? null,
    job.fairKey ?? null,
    job.uniqueKey ?? null,
    job.payload,
    newOptionsText(job),
    ...imageValues(job.image),
  ];
}
