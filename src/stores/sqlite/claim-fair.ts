import { NO_FAIR_KEY } from "../../core/fair/fair-options.ts";
import type { Turns } from "../../core/fair/turns.ts";
import { type JobRow, nextPriorityRank, priorityRank } from "../../core/job/job.ts";
import type { ClaimRequest } from "../../ports/store.ts";
import {
  type Answer,
  answerNow,
  claimTurns,
  type KeysAnswer,
  type KeysQuestion,
  type TakeQuestion,
} from "../claim-turns.ts";
import { CLAIMED_COLUMNS, decodeClaimed, type SqlRow } from "../sql/row-codec.ts";
import { BATCH } from "./connection.ts";
import { CLAIMABLE_KEYLESS, CLAIMABLE_OF_KEY, HEAD, KEY_AFTER, KEY_FROM } from "./fair-statements.ts";
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
  const isCut = answerNow(claimTurns(turns, request.salt, limit, rows), (question) =>
    "take" in question ? take(session, request, question, numbers) : keys(session, request, question),
  );
  return { rows, numbers, isCut: isCut || rows.length === limit };
}

function keys(
  session: Session,
  { queue }: ClaimRequest,
  { keysFrom, after, isAgain, limit }: KeysQuestion,
): KeysAnswer | null {
  const head = session.get(HEAD, [queue, keysFrom]) as [number, number] | undefined;
  if (!head) return null;
  const rank = priorityRank(head[0]);
  const found: string[] = [];
  const next = (text: string, key: string) =>
    session.get(text, [queue, rank, key])?.[0] as string | undefined;
  for (let key = next(isAgain ? KEY_FROM : KEY_AFTER, after); key !== undefined && found.length < limit; ) {
    found.push(key);
    key = next(KEY_AFTER, key);
  }
  const first = found[0];
  for (let key = next(KEY_FROM, ""); key !== undefined && key !== first && found.length < limit; ) {
    found.push(key);
    key = next(KEY_AFTER, key);
  }
  return { rank, keys: found, hasKeyless: head[1] === 1 };
}

/** How many of the best jobs of a queue to read for each job without a key that is wanted. */
const READ_FOR_KEYLESS = 4;

function take(
  session: Session,
  request: ClaimRequest,
  { take: wanted, rank, withKeyless }: TakeQuestion,
  numbers: number[],
): Answer {
  const { queue, salt, now, worker } = request;
  const taken: { readonly row: JobRow; readonly number: number }[] = [];
  let text = 0;
  const read = (found: Iterable<SqlRow>) => {
    for (const columns of found) {
      const row = decodeClaimed(columns, request);
      taken.push({ row, number: columns[CLAIMED_COLUMNS.length] as number });
      text += row.payload.length;
      if (text >= BATCH.text) break;
    }
  };
  for (const { key, count } of wanted) {
    if (key === NO_FAIR_KEY && withKeyless) {
      const most = count * READ_FOR_KEYLESS;
      read(session.iterate(CLAIMABLE_KEYLESS, [salt, queue, rank, nextPriorityRank(rank), most, count]));
    } else read(session.iterate(CLAIMABLE_OF_KEY, [salt, queue, rank, key, count]));
    if (text >= BATCH.text) break;
  }
  const runs = new RowRuns(session);
  // In the order of their numbers: those of jobs that were enqueued together have no gaps.
  for (const { row, number } of [...taken].sort((a, b) => a.number - b.number)) {
    runs.add(CLAIM_ROWS, [row.fence, now, worker, row.stallAt, row.wakeAt], number);
    numbers.push(number);
  }
  runs.flush();
  return { rows: taken.map(({ row }) => row), isCut: text >= BATCH.text };
}
