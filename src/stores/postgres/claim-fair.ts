import { fairKeyOf, NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import type { Turns } from "../../core/fair/turns.ts";
import { type JobRow, nextPriorityRank, priorityRank } from "../../core/job/job.ts";
import { type ClaimRequest, queueMark } from "../../ports/store.ts";
import {
  type Answer,
  answerLater,
  type InOrderQuestion,
  type KeysAnswer,
  type KeysQuestion,
  mostPassed,
  type TakeQuestion,
} from "../claim-questions.ts";
import { claimTurns } from "../claim-turns.ts";
import { decodeFair, FAIR_LENGTH } from "../sql/claimed-row.ts";
import { numberArray, textArray } from "./array-literal.ts";
import type { ConnectionGroup } from "./connection.ts";
import {
  ACTIVE_IN,
  FAIR_KEYS,
  TAKE_FAIR,
  TAKE_FAIR_MARKED,
  TAKE_IN_ORDER,
  TAKE_IN_ORDER_MARKED,
} from "./fair-statements.ts";
import { TAKE_ADVISORY_LOCK } from "./limit-statements.ts";
import type { Runner } from "./session.ts";

/** Claims from a fair queue. Claims of a queue with a concurrency limit run one after the other. */
export async function claimFair(
  connections: ConnectionGroup,
  request: ClaimRequest,
  turns: Turns,
): Promise<JobRow[]> {
  const { queue, limit, most } = request;
  const claimed: JobRow[] = [];
  if (most === undefined) {
    // The caller already owns what earlier statements claimed. If this threw, it would never learn of it.
    await claimWith(connections, request, turns, limit, claimed).catch((error: unknown) => {
      if (claimed.length === 0) throw error;
    });
    return claimed;
  }
  return connections.transaction(async (session) => {
    claimed.length = 0;
    await session.run(TAKE_ADVISORY_LOCK, [`claim ${queue}`]);
    const [active] = await session.run(ACTIVE_IN, [queue]);
    const room = Math.min(limit, most - (active?.[0] as number));
    if (room > 0) await claimWith(session, request, turns, room, claimed);
    return claimed;
  });
}

async function claimWith(
  runner: Runner,
  request: ClaimRequest,
  turns: Turns,
  limit: number,
  claimed: JobRow[],
): Promise<void> {
  await answerLater(claimTurns(turns, request.salt, limit, claimed), (question) => {
    if ("take" in question) return take(runner, request, question);
    if ("inOrder" in question) return takeInOrder(runner, request, question);
    return keys(runner, request, question);
  });
}

async function keys(
  runner: Runner,
  { queue }: ClaimRequest,
  { keysFrom, after, isAgain, limit }: KeysQuestion,
): Promise<KeysAnswer | null> {
  const rows = await runner.run(FAIR_KEYS, [queue, keysFrom, after, isAgain, limit]);
  const [head] = rows;
  if (!head) return null;
  return {
    rank: priorityRank(head[0] as number),
    keys: rows.flatMap(([, , key]) => (key === null ? [] : [key as string])),
    hasKeyless: head[1] === 1,
  };
}

async function take(
  runner: Runner,
  request: ClaimRequest,
  { take: wanted, rank, withKeyless }: TakeQuestion,
): Promise<Answer> {
  const { queue, now, salt, worker, lease, shortest = 0, most } = request;
  const keyed = withKeyless ? wanted.filter(({ key }) => key !== NO_FAIR_KEY) : wanted;
  const keyless = withKeyless ? (wanted.find(({ key }) => key === NO_FAIR_KEY)?.count ?? 0) : 0;
  const rows = await runner.run(most === undefined ? TAKE_FAIR : TAKE_FAIR_MARKED, [
    queue,
    now,
    keyless,
    salt,
    rank,
    worker,
    lease,
    shortest,
    textArray(keyed, ({ key }) => key),
    numberArray(keyed, ({ count }) => count),
    nextPriorityRank(rank),
    ...(most === undefined ? [] : [queueMark(queue)]),
  ]);
  // The server returns updated rows in any order.
  return { rows: rows.map((row) => decodeFair(row, request)).sort(byRank), isCut: false };
}

/** The first of all ids. */
const NO_ID = "00000000-0000-0000-0000-000000000000";

async function takeInOrder(
  runner: Runner,
  request: ClaimRequest,
  { inOrder, round }: InOrderQuestion,
): Promise<Answer> {
  const { queue, now, salt, worker, lease, shortest = 0, most } = request;
  const { rank, id } = round.last ?? { rank: round.rank, id: NO_ID };
  const left = [...round.left];
  // All that are read are locked. Until some have to be passed over, no more are read than are wanted.
  const { hasPassed } = round;
  const toRead = inOrder + (hasPassed ? mostPassed(inOrder) : 0);
  const found = await runner.run(most === undefined ? TAKE_IN_ORDER : TAKE_IN_ORDER_MARKED, [
    queue,
    now,
    inOrder,
    salt,
    rank,
    worker,
    lease,
    shortest,
    textArray(left, ([key]) => key),
    numberArray(left, ([, count]) => count),
    nextPriorityRank(rank),
    id,
    round.rank,
    toRead,
    ...(most === undefined ? [] : [queueMark(queue)]),
  ]);
  const [first] = found;
  if (!first) {
    // Jobs of keys that have given their part look the same as a better priority.
    const best = await keys(runner, request, { keysFrom: 0, after: NO_FAIR_KEY, isAgain: true, limit: 1 });
    round.hasPassed = true;
    return best?.rank === round.rank ? { rows: [], isCut: false, isMore: !hasPassed } : null;
  }
  const rows = found.map((row) => decodeFair(row, request)).sort(byRank);
  for (const row of rows) round.take(fairKeyOf(row));
  const read = first[FAIR_LENGTH] as number;
  if (rows.length === inOrder) return { rows, isCut: false };
  round.hasPassed = true;
  return { rows, isCut: false, isEnd: read < toRead, isMore: !hasPassed };
}

/** The order within a key. */
export function byRank(a: JobRow, b: JobRow): number {
  return a.rank - b.rank || (a.id < b.id ? -1 : 1);
}
