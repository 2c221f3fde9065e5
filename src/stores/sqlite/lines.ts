import { dueAtOf, type JobId, nextPriorityRank, type Rank } from "../../core/job/job.ts";
import { namesOf } from "../../core/tenant/tenant-name.ts";
import type { Instant } from "../../core/time.ts";
import {
  type FairLine,
  type HeldSlots,
  HOLDERS_SHOWN,
  type Inspector,
  type Line,
  type ReadyJob,
  type ShareRow,
  startsOf,
} from "../../ports/store.ts";
import { checkLimit } from "../check-batch.ts";
import { decodeJob, STATE_CODES } from "../sql/row-codec.ts";
import type { Connection } from "./connection.ts";
import { AHEAD_IN_KEY, NEXT_SHARE, SHARE_USE } from "./fair-statements.ts";
import {
  ACTIVE_UP_TO,
  AHEAD_AT_LIMIT,
  AHEAD_IN_QUEUE,
  HOLDERS_OF_LIMIT,
  HOLDERS_OF_QUEUE,
  NEXT_READY,
  NEXT_READY_QUEUE,
  STARTS_UP_TO,
  USE_UP_TO,
} from "./limit-statements.ts";
import type { Session } from "./session.ts";

/** Queries about waiting jobs. */
export function createLines(
  connection: Connection,
): Pick<Inspector, "ahead" | "shares" | "slots" | "readyQueues" | "oldestReady"> {
  return {
    async ahead(line, before, most) {
      checkLimit(most);
      return connection.read((session) => ahead(session, line, before, most));
    },
    async shares(queue, limit, most) {
      checkLimit(limit);
      checkLimit(most);
      return connection.read((session) => shares(session, queue, limit, most));
    },
    async slots(line, most) {
      checkLimit(most);
      return connection.read((session) => heldSlots(session, line, most));
    },
    async readyQueues(after, limit) {
      checkLimit(limit);
      return connection.read((session) => readyQueues(session, after, limit));
    },
    async oldestReady(limit, tenant) {
      checkLimit(limit);
      return connection.read((session) => oldestReady(session, limit, namesOf(tenant)));
    },
  };
}

function ahead(
  session: Session,
  line: Line | FairLine,
  { rank, id }: { readonly rank: Rank; readonly id: JobId },
  most: number,
): number {
  if ("fairKey" in line)
    return session.get(AHEAD_IN_KEY, [line.queue, rank, line.fairKey, rank, id, most])?.[0] as number;
  const [statement, name] =
    "limitKey" in line ? [AHEAD_AT_LIMIT, line.limitKey] : [AHEAD_IN_QUEUE, line.queue];
  return session.get(statement, [name, rank, id, most])?.[0] as number;
}

/** Each key costs two reads of the index, and one entry for each job that is counted. */
function shares(session: Session, queue: string, limit: number, most: number): ShareRow[] {
  const found: ShareRow[] = [];
  for (let last: readonly unknown[] = [-1, ""]; found.length < limit; ) {
    const next = session.get(NEXT_SHARE, [queue, ...last]);
    if (!next) break;
    last = next;
    const [waiting, rank] = session.get(SHARE_USE, [queue, ...next, most]) as [number, Rank];
    found.push({ key: next[1] as string, rank, waiting });
  }
  return found;
}

function heldSlots(session: Session, line: Line, most: number): HeldSlots {
  if ("queue" in line) {
    const [active, unstarted] = session.get(ACTIVE_UP_TO, [line.queue, most]) as [number, number];
    const use = { available: 0, active, unstarted, retryable: 0, starts: 0 };
    const jobs = session.all(HOLDERS_OF_QUEUE, [line.queue, HOLDERS_SHOWN]).map(decodeJob);
    return { ...use, nextAt: null, jobs };
  }
  const { limitKey } = line;
  const used = (state: "available" | "active" | "retryable") =>
    session.get(USE_UP_TO, [limitKey, STATE_CODES[state], most]) as [number, number];
  const { from, to } = startsOf(limitKey);
  const [starts, nextAt] = session.get(STARTS_UP_TO, [from, to, most]) as [number, Instant | null];
  const [active, unstarted] = used("active");
  return {
    available: used("available")[0],
    active,
    unstarted,
    retryable: used("retryable")[0],
    starts,
    nextAt,
    jobs: session.all(HOLDERS_OF_LIMIT, [limitKey, HOLDERS_SHOWN]).map(decodeJob),
  };
}

/** Each name costs one read of the index, whatever the number of jobs. */
function readyQueues(session: Session, after: string | null, limit: number): string[] {
  const names: string[] = [];
  for (let last = after ?? namesOf(undefined).from; names.length < limit; ) {
    const name = session.get(NEXT_READY_QUEUE, [last])?.[0] as string | null;
    if (name === null) break;
    names.push(name);
    last = name;
  }
  return names;
}

/** Jumps from one priority of a queue to the next: the first job of each is the one that became due first. */
function oldestReady(session: Session, limit: number, { from, to }: ReturnType<typeof namesOf>): ReadyJob[] {
  const oldest = new Map<string, ReadyJob>();
  for (let [queue, rank] = [from, 0]; ; ) {
    const row = session.get(NEXT_READY, [queue, rank]) as [string, JobId, Rank, Instant] | undefined;
    if (!row || row[0] >= to) break;
    const job = { queue: row[0], id: row[1], rank: row[2], createdAt: row[3] };
    const known = oldest.get(job.queue);
    if (!known && oldest.size === limit) break;
    if (!known || dueAtOf(job.rank) < dueAtOf(known.rank)) oldest.set(job.queue, job);
    [queue, rank] = [job.queue, nextPriorityRank(job.rank)];
  }
  return [...oldest.values()];
}
