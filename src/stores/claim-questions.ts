import type { Round } from "../core/fair/round.ts";
import type { JobRow, Rank } from "../core/job/job.ts";

/*
 * A claim from a fair queue, as questions to a store. All stores ask the same ones, so the rules are written
 * once. A generator, because some stores answer at once and others later.
 */

/** Which keys have available jobs in the best priority from `rank` on. */
export interface KeysQuestion {
  readonly keysFrom: Rank;
  /** The keys after this one come first, in order. Then the others, from the first key on. */
  readonly after: string;
  /** Whether `after` itself comes first. Otherwise it comes last. */
  readonly isAgain: boolean;
  readonly limit: number;
  /** Any order will do, if `after` is `NO_FAIR_KEY` and the answer has fewer than `limit` keys. */
  readonly inAnyOrder?: boolean;
}

/** Claims the best jobs of these keys, in one priority. */
export interface TakeQuestion {
  readonly take: readonly { readonly key: string; readonly count: number }[];
  /** The lowest rank of the priority. */
  readonly rank: Rank;
  /**
   * For `NO_FAIR_KEY`, take jobs that have no key at all, because one of them is the best job of the queue. They are
   * looked for only among the best jobs.
   */
  readonly withKeyless: boolean;
}

export interface KeysAnswer {
  /** The lowest rank of the priority. */
  readonly rank: Rank;
  readonly keys: readonly string[];
  /** The best job of this priority has no key at all: it was stored before its queue was fair. */
  readonly hasKeyless: boolean;
}

/**
 * Claims the best jobs of the round's priority in the order of arrival after its last one, if their keys may still give some (`Round.take`). Passes
 * over at most `mostPassed` others. The answer is null if the priority is not the best one that has jobs.
 */
export interface InOrderQuestion {
  readonly inOrder: number;
  readonly round: Round;
}

/** How many jobs of other keys a store passes over to claim this many in the order of arrival. */
export function mostPassed(wanted: number): number {
  return 16 + Math.ceil(wanted / 2);
}

export type Question = KeysQuestion | TakeQuestion | InOrderQuestion;

interface TakeAnswer {
  readonly rows: readonly JobRow[];
  /** The store stopped early, because the jobs were large. */
  readonly isCut: boolean;
  /** There are no more jobs in the order of arrival. */
  readonly isEnd?: boolean;
  /** The store passed over no more than it may, and goes on if it is asked again. */
  readonly isMore?: boolean;
}

export type Answer = KeysAnswer | null | TakeAnswer;

/** Answers all questions of a claim at once. */
export function answerNow(
  questions: Generator<Question, boolean, Answer>,
  answer: (question: Question) => Answer,
): boolean {
  let next = questions.next();
  while (!next.done) next = questions.next(answer(next.value));
  return next.value;
}

/** Answers the questions of a claim one after the other. */
export async function answerLater(
  questions: Generator<Question, boolean, Answer>,
  answer: (question: Question) => Promise<Answer>,
): Promise<boolean> {
  let next = questions.next();
  while (!next.done) next = questions.next(await answer(next.value));
  return next.value;
}
