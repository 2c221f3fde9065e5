import { NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import type { Turns } from "../../core/fair/turns.ts";
import { type JobRow, nextPriorityRank, priorityRank, type Rank } from "../../core/job/job.ts";
import type { ClaimRequest } from "../../ports/store.ts";
import {
  type Answer,
  answerNow,
  type InOrderQuestion,
  type KeysAnswer,
  type KeysQuestion,
  mostPassed,
  type TakeQuestion,
} from "../claim-questions.ts";
import { claimTurns } from "../claim-turns.ts";
import { decodeFair, FAIR_LENGTH, keyInFair } from "../sql/claimed-row.ts";
import type { SqlRow } from "../sql/row-codec.ts";
import { BATCH } from "./connection.ts";
import {
  CLAIMABLE_AFTER,
  CLAIMABLE_KEYLESS,
  CLAIMABLE_OF_KEYS,
  HEAD,
  KEYS_AFTER,
  KEYS_FROM,
  KEYS_WITH_ROWS,
} from "./fair-statements.ts";
import { RowRuns } from "./row-runs.ts";
import type { Session } from "./session.ts";
import { CLAIM } from "./statements.ts";

const CLAIM_ROWS = [CLAIM];

interface FairClaim {
  readonly rows: JobRow[];
  /** The numbers of their rows, in the same order or not. */
  readonly numbers: number[];
  readonly isCut: boolean;
}

/** Claims from a fair queue, in a transaction. */
export function claimFair(session: Session, request: ClaimRequest, turns: Turns, limit: number): FairClaim {
  const rows: JobRow[] = [];
  const numbers: number[] = [];
  const isCut = answerNow(claimTurns(turns, request.salt, limit, rows), (question) => {
    if ("take" in question) return take(session, request, question, numbers);
    if ("inOrder" in question) return takeInOrder(session, request, question, numbers);
    return keys(session, request, question);
  });
  return { rows, numbers, isCut: isCut || rows.length === limit };
}

function keys(
  session: Session,
  { queue }: ClaimRequest,
  { keysFrom, after, isAgain, limit, inAnyOrder = false }: KeysQuestion,
): KeysAnswer | null {
  const head = session.get(HEAD, [queue, keysFrom]) as [number, number] | undefined;
  if (!head) return null;
  const rank = priorityRank(head[0]);
  const read = (text: string, key: string, most: number) =>
    session.all(text, [queue, rank, key, queue, rank, most]).map(([found]) => found as string);
  const hasKeyless = head[1] === 1;
  if (inAnyOrder && after === NO_FAIR_KEY) {
    const keys = byArrival(session, queue, rank, limit);
    if (keys.length < limit) return { rank, keys, hasKeyless };
  }
  const found = read(isAgain ? KEYS_FROM : KEYS_AFTER, after, limit);
  if (found.length < limit) {
    for (const key of read(KEYS_FROM, NO_FAIR_KEY, limit - found.length)) {
      if (key === found[0]) break;
      found.push(key);
    }
  }
  return { rank, keys: found, hasKeyless };
}

/**
 * The keys of a priority in the order of the rows of their first jobs: customers that enqueue one after the other have jobs on
 * neighbouring pages, and a commit writes each page that it changes.
 */
function byArrival(session: Session, queue: string, rank: Rank, limit: number): string[] {
  const found = session.all(KEYS_WITH_ROWS, [queue, rank, NO_FAIR_KEY, queue, rank, limit]);
  return found.sort(([, a], [, b]) => (a as number) - (b as number)).map(([key]) => key as string);
}

/** The first rank and id of all. */
const NO_ID = "";

function takeInOrder(
  session: Session,
  request: ClaimRequest,
  { inOrder, round }: InOrderQuestion,
  numbers: number[],
): Answer {
  const { queue, salt } = request;
  const head = session.get(HEAD, [queue, 0]) as [number, number] | undefined;
  if (!head || priorityRank(head[0]) !== round.rank) return null;
  const { rank, id } = round.last ?? { rank: round.rank, id: NO_ID };
  const most = inOrder + mostPassed(inOrder);
  const rows: JobRow[] = [];
  const found: number[] = [];
  let [text, read] = [0, 0];
  for (const columns of session.iterate(CLAIMABLE_AFTER, [
    salt,
    queue,
    rank,
    id,
    nextPriorityRank(rank),
    most,
  ])) {
    read += 1;
    if (!round.take(keyInFair(columns))) continue;
    const row = decodeFair(columns, request);
    rows.push(row);
    found.push(columns[FAIR_LENGTH] as number);
    text += row.payload.length;
    if (rows.length === inOrder || text >= BATCH.text) break;
  }
  write(session, request, rows, found, numbers);
  const isCut = text >= BATCH.text;
  return { rows, isCut, isEnd: !isCut && read < most && rows.length < inOrder };
}

/** How many of the best jobs of a queue to read for each job without a key that is wanted. */
const READ_FOR_KEYLESS = 4;

function take(
  session: Session,
  request: ClaimRequest,
  { take: wanted, rank, withKeyless }: TakeQuestion,
  numbers: number[],
): Answer {
  const { queue, salt } = request;
  const taken: { readonly row: JobRow; readonly number: number }[] = [];
  let text = 0;
  const read = (found: Iterable<SqlRow>) => {
    for (const columns of found) {
      const row = decodeFair(columns, request);
      taken.push({ row, number: columns[FAIR_LENGTH] as number });
      text += row.payload.length;
      if (text >= BATCH.text) break;
    }
  };
  const keyless = withKeyless ? wanted.find(({ key }) => key === NO_FAIR_KEY) : undefined;
  if (keyless) {
    const most = keyless.count * READ_FOR_KEYLESS;
    const values = [salt, queue, rank, nextPriorityRank(rank), most, keyless.count];
    read(session.iterate(CLAIMABLE_KEYLESS, values));
  }
  // Most keys give the same number of jobs, and running a statement costs about as much as reading a row.
  for (const [count, keys] of Map.groupBy(wanted, ({ count }) => count)) {
    if (text >= BATCH.text) break;
    const names = JSON.stringify(keys.filter((one) => one !== keyless).map(({ key }) => key));
    read(session.iterate(CLAIMABLE_OF_KEYS, [salt, names, queue, rank, count]));
  }
  // In the order of their numbers: those of jobs that were enqueued together have no gaps.
  const sorted = [...taken].sort((a, b) => a.number - b.number);
  write(
    session,
    request,
    sorted.map(({ row }) => row),
    sorted.map(({ number }) => number),
    numbers,
  );
  return { rows: taken.map(({ row }) => row), isCut: text >= BATCH.text };
}

function write(
  session: Session,
  { now, worker }: ClaimRequest,
  rows: readonly JobRow[],
  found: readonly number[],
  numbers: number[],
): void {
  const runs = new RowRuns(session);
  let values: readonly unknown[] = [];
  for (const [index, { id, fence, stallAt, wakeAt }] of rows.entries()) {
    session.rows.set(id, found[index] as number);
    if (fence !== values[0] || stallAt !== values[3] || wakeAt !== values[4])
      values = [fence, now, worker, stallAt, wakeAt];
    runs.add(CLAIM_ROWS, values, found[index] as number);
    numbers.push(found[index] as number);
  }
  runs.flush();
}
