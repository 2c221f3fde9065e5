import { NO_TURNS, turnsAfter } from "../../core/fair/turns.ts";
import { rowsWithin, sizeOfRow } from "../../core/job/documents/row-size.ts";
import { type JobRow, RANK_SPAN } from "../../core/job/job.ts";
import type { Instant } from "../../core/time.ts";
import {
  BATCH_LIMIT,
  type BeatAnswer,
  type ClaimRequest,
  type Enqueued,
  type JobStore,
  type LoadOptions,
  queueMark,
  type RecordRow,
  type SweepRequest,
  type Swept,
} from "../../ports/store.ts";
import { boundedQueues } from "../admissions.ts";
import { checkBatch, checkJobs, checkLimit } from "../check-batch.ts";
import { checkBeatInstants, checkClaimInstants, checkSweepInstants } from "../check-instants.ts";
import { type Answer, answerLater, type Question } from "../claim-questions.ts";
import { claimTurns } from "../claim-turns.ts";
import type { HomeBeat, HomeJobStore } from "../homes/home-store.ts";
import { batchesOf, noText, textOfJob } from "../sql/batches.ts";
import { stateOf } from "../sql/row-codec.ts";
import type { Packed, Reader } from "./codec.ts";
import { EventHeads } from "./event-heads.ts";
import { CALL_SIZE, type Home, ITEMS_PER_CALL } from "./home.ts";
import { readRecord } from "./record-store.ts";
import { NewJobs, readJob, readJobs } from "./row-codec.ts";

export function createJobStore(home: Home): HomeJobStore {
  return {
    enqueue: (jobs, options) => enqueue(home, jobs, options),
    async claim(request) {
      home.assertOpen();
      checkLimit(request.limit, BATCH_LIMIT);
      checkClaimInstants(request);
      return request.turns ? claimInTurns(home, request) : claim(home, request);
    },
    async beat(request) {
      home.assertOpen();
      checkBatch(request.jobs, "jobs");
      checkBeatInstants(request);
      return beat(home, request);
    },
    async sweep(request) {
      home.assertOpen();
      checkLimit(request.limit);
      checkSweepInstants(request);
      return sweep(home, request);
    },
    async load(ids, options) {
      home.assertOpen();
      checkBatch(ids, "ids");
      return loadJobs(home, ids, options);
    },
    async prune({ now, eventsBefore, limit }) {
      home.assertOpen();
      checkLimit(limit);
      let pruned = 0;
      for (let jobs = limit, events = limit; jobs > 0 || events > 0; ) {
        const asked = [Math.min(jobs, ITEMS_PER_CALL), Math.min(events, ITEMS_PER_CALL)] as const;
        const reader = await home.call("prune", [now, eventsBefore, ...asked]);
        const [gone, old] = [reader.read() as number, reader.read() as number];
        pruned += gone + old;
        jobs = gone < asked[0] ? 0 : jobs - gone;
        events = old < asked[1] ? 0 : events - old;
      }
      return pruned;
    },
  };
}

async function enqueue(
  home: Home,
  jobs: Parameters<JobStore["enqueue"]>[0],
  { now, bounds, onDepth }: Parameters<JobStore["enqueue"]>[1],
): Promise<Enqueued[]> {
  home.assertOpen();
  checkJobs(jobs, now);
  const bounded = bounds ? boundedQueues(jobs, bounds) : [];
  const limits = bounded.flatMap((queue): Packed[] => [queue, bounds?.get(queue) as number]);
  const answers: Enqueued[] = [];
  let depths: number[] = [];
  for (const batch of batchesOf(jobs, CALL_SIZE, textOfJob)) {
    const heads = new EventHeads();
    const encoder = new NewJobs(heads);
    const list = batch.map((job) => encoder.encode(job));
    const reader = await home.write("enqueue", [now, heads.text, list, limits]);
    for (const answer of reader.read() as (null | number | string)[]) answers.push(enqueuedOf(answer));
    depths = reader.read() as number[];
  }
  if (onDepth && jobs.length > 0)
    for (const [index, queue] of bounded.entries())
      onDepth(queue, Math.min(depths[index] as number, bounds?.get(queue) as number));
  return answers;
}

function enqueuedOf(answer: null | number | string): Enqueued {
  if (answer === null) return "created";
  if (typeof answer === "string") return { duplicate: answer };
  return answer === 1 ? "exists" : "full";
}

/** What all claims say, in the order of lua/jobs.ts. */
function claimValues(request: ClaimRequest, limit: number): Packed[] {
  const { queue, now, lease, shortest = 0, salt, worker, from, most } = request;
  const mark = most === undefined ? null : queueMark(queue);
  return [queue, Math.min(limit, ITEMS_PER_CALL), now, lease, shortest, salt, worker, from, most, mark];
}

async function claim(home: Home, request: ClaimRequest): Promise<JobRow[]> {
  const rows: JobRow[] = [];
  while (rows.length < request.limit) {
    const left = request.limit - rows.length;
    const reader = await home.call("claim", claimValues(request, left));
    const isCut = reader.read() === true;
    const found = readJobs(reader);
    for (const row of found) rows.push(row);
    if (!isCut && found.length < ITEMS_PER_CALL) break;
  }
  return rows;
}

/** In rounds: each is a claim of its own that goes on where the turns of the last one ended. */
async function claimInTurns(home: Home, request: ClaimRequest): Promise<JobRow[]> {
  const claimed: JobRow[] = [];
  const { turns, salt, limit } = request;
  for (let last = turns?.last ?? NO_TURNS; turns && claimed.length < limit; ) {
    const most = await roundSize(home, request, Math.min(limit - claimed.length, ITEMS_PER_CALL));
    if (most <= 0) break;
    const round: JobRow[] = [];
    const questions = claimTurns({ ...turns, last }, salt, most, round);
    const isCut = await answerLater(questions, (question) =>
      askFair(home, request, most - round.length, question),
    );
    for (const row of round) claimed.push(row);
    if (round.length === 0 || (round.length < most && !isCut)) break;
    last = turnsAfter(last, round, turns);
  }
  return claimed;
}

/** The turns of a round depend on its size, so a queue with a limit is asked for its room first. */
async function roundSize(home: Home, request: ClaimRequest, most: number): Promise<number> {
  if (request.most === undefined) return most;
  return (await home.call("room", claimValues(request, most))).read() as number;
}

async function askFair(home: Home, request: ClaimRequest, room: number, question: Question): Promise<Answer> {
  // A row is read with its payload, so passing over some costs as much as taking them from their keys.
  if ("inOrder" in question) return { rows: [], isCut: false };
  if (!("take" in question)) {
    const { keysFrom, after, isAgain, limit } = question;
    const reader = await home.call("fairKeysOf", [request.queue, keysFrom, after, isAgain, limit]);
    const priority = reader.read() as number | null;
    if (priority === null) return null;
    const keys = reader.read() as string[];
    return { rank: priority * RANK_SPAN, keys, hasKeyless: reader.read() === true };
  }
  const take = question.take.flatMap(({ key, count }): Packed[] => [key, count]);
  const priority = Math.floor(question.rank / RANK_SPAN);
  const reader = await home.call("take", [
    ...claimValues(request, room),
    take,
    priority,
    question.withKeyless,
  ]);
  return { isCut: reader.read() === true, rows: readJobs(reader) };
}

async function beat(home: Home, { now, worker, jobs }: HomeBeat): Promise<BeatAnswer[]> {
  const answers: BeatAnswer[] = [];
  const batches = jobs.length === 0 ? [[]] : batchesOf(jobs, CALL_SIZE, noText);
  for (const [index, batch] of batches.entries()) {
    const heads = new EventHeads();
    const list = batch.map(({ id, fence, rev, stallAt, records }): Packed => {
      const event = records && heads.item(records);
      return event ? [id, fence, rev, stallAt, ...event] : [id, fence, rev, stallAt];
    });
    const record =
      worker && index === 0 ? [worker.id, JSON.stringify(worker.body), worker.wakeAt] : [null, null, null];
    const reader = await home.call("beat", [now, ...record, heads.text, list]);
    for (const answer of reader.read() as (number | [number])[]) answers.push(beatOf(answer));
  }
  return answers;
}

function beatOf(answer: number | [number]): BeatAnswer {
  if (typeof answer === "number") return answer === 0 ? "ok" : "changed";
  return { lost: answer[0] === -1 ? "gone" : stateOf(answer[0]) };
}

/** Each kind in calls of a bounded number of rows, until nothing is due or the limit is reached. */
async function sweep(home: Home, { now, limit, holdUntil }: SweepRequest): Promise<Swept> {
  const ready = new Map<string, number>();
  const jobs: JobRow[] = [];
  const records: RecordRow[] = [];
  const left = { made: limit, held: limit, records: limit };
  let nextWakeAt: Instant | null = null;
  for (;;) {
    const asked = [left.made, left.held, left.records].map((most) => Math.min(most, ITEMS_PER_CALL));
    const reader = await home.call("sweep", [now, holdUntil, ...asked]);
    nextWakeAt = reader.read() as Instant | null;
    const [made, held, isCut] = reader.read() as [number, number, number];
    const queues = reader.read() as (string | number)[];
    for (let at = 0; at < queues.length; at += 2) {
      const queue = queues[at] as string;
      ready.set(queue, (ready.get(queue) ?? 0) + (queues[at + 1] as number));
    }
    const due = reader.read() as [string, string, number, number | null, string][];
    for (const [kind, ...values] of due) records.push(readRecord(kind, values));
    for (const row of readJobs(reader)) jobs.push(row);
    left.made = made < (asked[0] as number) ? 0 : left.made - made;
    // Jobs that the next call promotes may be due for a decision.
    const isLast = held < (asked[1] as number) && isCut === 0 && left.made === 0;
    left.held = isLast ? 0 : left.held - held;
    left.records = due.length < (asked[2] as number) ? 0 : left.records - due.length;
    if (left.made + left.held + left.records === 0) return { ready, jobs, records, nextWakeAt };
  }
}

/** One call reads a bounded number of bytes. */
export async function loadJobs(
  home: Home,
  ids: readonly string[],
  { isBrief = false, size = Number.POSITIVE_INFINITY }: LoadOptions = {},
): Promise<(JobRow | null)[]> {
  const rows: (JobRow | null)[] = [];
  for (let left = size; rows.length < ids.length && left > 0; ) {
    const asked = ids.slice(rows.length, rows.length + ITEMS_PER_CALL);
    const reader: Reader = await home.call("load", [asked, isBrief, Number.isFinite(left) ? left : null]);
    const read = reader.read() as number;
    for (let count = 0; count < read; count++) {
      const row = readJob(reader);
      rows.push(row);
      left -= row ? sizeOfRow(row) : 0;
    }
  }
  return size === Number.POSITIVE_INFINITY ? rows : rowsWithin(rows, size);
}
