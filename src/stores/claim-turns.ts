import { type FairWeights, fairKeyOf, NO_FAIR_KEY, weightOf } from "../core/fair/fair-options.ts";
import { hasTurn, inTurns, shareOut, type Turn, type Turns, turnAfter } from "../core/fair/turns.ts";
import { type JobRow, nextPriorityRank, type Rank } from "../core/job/job.ts";
import { BATCH_LIMIT } from "../ports/store.ts";
import type { Answer, KeysAnswer, KeysQuestion, Question, TakeQuestion } from "./claim-questions.ts";
import { claimRounds } from "./claim-rounds.ts";

/**
 * Adds at most `limit` claimed jobs to `claimed`, in the order of their turns. What was claimed before an error is in
 * `claimed` too. Returns whether a store stopped early.
 */
export function* claimTurns(
  turns: Turns,
  salt: number,
  limit: number,
  claimed: JobRow[],
): Generator<Question, boolean, Answer> {
  const isCut = turns.rounds ? yield* claimRounds(turns, turns.rounds, limit, claimed) : null;
  if (isCut !== null) return isCut;
  const lasts = new Map(turns.last);
  /** The priority that the next answer is expected to be about: its turns are asked for. */
  let expected = [...lasts.keys()].at(-1);
  /** Keys that gave nothing since the last job was claimed: other claimers hold all of their jobs. */
  const empty = new Set<string>();
  /** The fewest jobs that a key is expected to give. */
  let least = turns.least ?? 1;
  for (let from: Rank = 0; claimed.length < limit; ) {
    const room = limit - claimed.length;
    const last = (expected !== undefined && lasts.get(expected)) || null;
    const ask = keysQuestion(turns, last, from, 1 + Math.ceil((room - 1) / least));
    const found = (yield ask) as KeysAnswer | null;
    if (found === null) return false;
    const isExpected = found.rank === expected || (last === null && !lasts.has(found.rank));
    expected = found.rank;
    if (!isExpected) continue;
    const listed = keysInTurn(found, ask, last === null ? salt : 0);
    const keys = (empty.size === 0 ? listed : listed.filter((key) => !empty.has(key))).slice(0, room);
    const taken = last !== null && ask.isAgain && keys[0] === last.key ? last.taken : 0;
    const before = claimed.length;
    // Keys that the answer does not have come after these, and before these have another turn.
    const hasMoreKeys = listed.length >= ask.limit;
    if (yield* takeShares(turns, found, keys, taken, { limit, isOnce: hasMoreKeys }, claimed)) return true;
    if (claimed.length > before) {
      lasts.set(found.rank, turnAfter(last, claimed.slice(before), turns) as Turn);
      empty.clear();
      least = 1;
    } else if (keys.length > 0 && hasMoreKeys) {
      // There may be more keys than one answer has: go on after the last one.
      for (const key of keys) empty.add(key);
      lasts.set(found.rank, { key: keys.at(-1) as string, taken: Number.MAX_SAFE_INTEGER });
    } else from = nextPriorityRank(found.rank);
  }
  return false;
}

/** The first key may have one job left in its turn; all others give at least the smallest weight, if they have as many. */
function keysQuestion(turns: Turns, last: Turn | null, keysFrom: Rank, limit: number): KeysQuestion {
  if (last === null) return { keysFrom, after: NO_FAIR_KEY, isAgain: true, limit: BATCH_LIMIT };
  return { keysFrom, after: last.key, isAgain: hasTurn(last, turns), limit };
}

/** The order of turns. Jobs that have no key at all count as those of `NO_FAIR_KEY`, which comes first by name. */
function keysInTurn(
  { keys, hasKeyless }: KeysAnswer,
  { after, isAgain }: KeysQuestion,
  salt: number,
): readonly string[] {
  if (!hasKeyless && salt === 0) return keys;
  const all = [...keys];
  if (hasKeyless && !all.includes(NO_FAIR_KEY)) {
    const isWrapped = (key: string, index: number) =>
      key < after || (key === after && !(isAgain && index === 0));
    const wrapped = after === NO_FAIR_KEY && isAgain ? 0 : all.findIndex(isWrapped);
    all.splice(wrapped === -1 ? all.length : wrapped, 0, NO_FAIR_KEY);
  }
  // A claimer that had no turn yet begins anywhere: otherwise the first key would gain from every new claimer.
  const start = salt % Math.max(1, all.length);
  return [...all.slice(start), ...all.slice(0, start)];
}

/** Takes from the keys in turn until there is no more room, or no more jobs, or once. Returns whether a store stopped early. */
function* takeShares(
  weights: FairWeights,
  { rank, hasKeyless }: KeysAnswer,
  keys: readonly string[],
  alreadyTaken: number,
  { limit, isOnce }: { readonly limit: number; readonly isOnce: boolean },
  claimed: JobRow[],
): Generator<TakeQuestion, boolean, Answer> {
  let taken = alreadyTaken;
  for (let left = keys; left.length > 0 && claimed.length < limit; ) {
    const ofKeys = left.map((key) => weightOf(weights, key));
    const shares = shareOut(ofKeys, limit - claimed.length, taken);
    const take: { readonly key: string; readonly count: number }[] = [];
    for (const [index, key] of left.entries()) {
      const count = shares[index] as number;
      if (count > 0) take.push({ key, count });
    }
    const answer = (yield { take, rank, withKeyless: hasKeyless }) as Exclude<Answer, KeysAnswer | null>;
    const byKey = Map.groupBy(answer.rows, fairKeyOf);
    const jobs = left.map((key) => byKey.get(key) ?? []);
    const ordered = inTurns(jobs, ofKeys, taken);
    for (const row of ordered) claimed.push(row);
    if (answer.isCut) return true;
    if (isOnce || claimed.length >= limit) return false;
    const start: Turn = { key: left[0] as string, taken };
    const last = turnAfter(start, ordered, weights) as Turn;
    // A key that gave less than its share has no more. The next turn is that of the key after the last one.
    const hasMore = (index: number) => (jobs[index] as readonly JobRow[]).length >= (shares[index] as number);
    const lastAt = left.indexOf(last.key);
    const isAgain = hasTurn(last, weights) && hasMore(lastAt);
    const at = lastAt + (isAgain ? 0 : 1);
    taken = isAgain ? last.taken : 0;
    const more = left.map((key, index) => (hasMore(index) ? key : undefined));
    left = [...more.slice(at), ...more.slice(0, at)].filter((key) => key !== undefined);
  }
  return false;
}
