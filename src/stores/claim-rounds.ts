import { NO_FAIR_KEY } from "../core/fair/fair-options.ts";
import type { Round, Rounds } from "../core/fair/round.ts";
import type { Turns } from "../core/fair/turns.ts";
import type { JobRow } from "../core/job/job.ts";
import type { Answer, KeysAnswer, Question, TakeQuestion } from "./claim-questions.ts";

/**
 * A claim from a busy fair queue, as questions to a store. The keys of a round are read once, and its jobs are taken in the
 * order of arrival as long as most of those are of keys that may still give some. What is left of the round is then taken from each key.
 * Adds at most `limit` jobs to `claimed`. Returns whether a store stopped early, or null if a new round gave nothing, because other
 * claimers hold all jobs of its keys.
 */
export function* claimRounds(
  turns: Turns,
  rounds: Rounds,
  limit: number,
  claimed: JobRow[],
): Generator<Question, boolean | null, Answer> {
  let round = rounds.current;
  // A better priority goes before the rest of the round.
  if (round?.isScanned && !(yield* isBest(round))) round = undefined;
  for (let chosenAt = -1; claimed.length < limit; ) {
    if (!round || round.isOver) {
      if (chosenAt === claimed.length) return null;
      chosenAt = claimed.length;
      const best: Round | null = yield* bestRound(turns, rounds, round);
      if (best === null) return false;
      round = best;
    }
    const room = limit - claimed.length;
    const question: Question = round.isScanned ? ofKeys(round, room) : { inOrder: room, round };
    const answer = (yield question) as Exclude<Answer, KeysAnswer>;
    if (answer === null) {
      round = undefined;
      continue;
    }
    for (const row of answer.rows) claimed.push(row);
    if ("take" in question) round.tookOfKeys(question.take, answer.rows);
    else if (answer.isEnd) round.end();
    else round.tookInOrder(answer.rows, !answer.isCut && !answer.isMore && answer.rows.length < room);
    if (answer.isCut) return true;
  }
  return false;
}

function* isBest({ rank }: Round): Generator<Question, boolean, Answer> {
  const best = (yield { keysFrom: 0, after: NO_FAIR_KEY, isAgain: true, limit: 1 }) as KeysAnswer | null;
  return best?.rank === rank;
}

/** The round of the best priority. Begins it unless it is under way. Null: no job is available. */
function* bestRound(
  turns: Turns,
  rounds: Rounds,
  last: Round | undefined,
): Generator<Question, Round | null, Answer> {
  const limit = rounds.limits.mostKeys;
  for (let expected = last; ; ) {
    const after = expected?.lastKey ?? NO_FAIR_KEY;
    const ask = { keysFrom: 0, after, isAgain: false, limit, inAnyOrder: true };
    const found = (yield ask) as KeysAnswer | null;
    if (found === null) return null;
    expected = rounds.of(found.rank);
    if (!expected.isOver) return expected;
    if (expected.lastKey !== after) continue;
    const isListed = !found.hasKeyless || found.keys.includes(NO_FAIR_KEY);
    const keys = isListed ? found.keys : [NO_FAIR_KEY, ...found.keys];
    expected.begin({ ...found, keys }, turns, rounds.most, found.keys.length >= limit);
    return expected;
  }
}

/** What is left of the round, from as few keys as possible. */
function ofKeys({ left, rank, hasKeyless }: Round, room: number): TakeQuestion {
  const take: { readonly key: string; readonly count: number }[] = [];
  let open = room;
  for (const [key, most] of left) {
    const count = Math.min(most, open);
    take.push({ key, count });
    open -= count;
    if (open === 0) break;
  }
  return { take, rank, withKeyless: hasKeyless };
}
