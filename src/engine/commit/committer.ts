import type { Outcome, Unit } from "../../ports/store.ts";
import { Batcher } from "../runtime/batcher.ts";

type Commit = (units: readonly Unit[]) => Promise<Outcome[]>;

/** Calls at once: a store has at least two connections to write on. */
const CONCURRENCY = 2;
const BATCH = 64;

/**
 * Commits single units of deliveries that run at once. Units that arrive during a call share the next one. It is no
 * CommitQueue, because a delivery that fails must go back to the dispatcher instead of being tried here.
 */
export class Committer {
  readonly #units: Batcher<Unit, Outcome>;

  constructor(commit: Commit) {
    this.#units = new Batcher({
      call: (units) => commit(units).catch((error) => isolate(commit, units, error)),
      count: () => BATCH,
      concurrency: CONCURRENCY,
    });
  }

  commit(unit: Unit): Promise<Outcome> {
    return this.#units.add(unit);
  }
}

/** Sends the units of a failed call one by one: one bad unit must not fail the others. */
async function isolate(commit: Commit, units: readonly Unit[], error: unknown): Promise<Promise<Outcome>[]> {
  if (units.length === 1) throw error;
  const answers: Promise<Outcome>[] = [];
  for (const unit of units) {
    const answer = commit([unit]).then(([outcome]) => outcome as Outcome);
    answers.push(answer);
    await answer.catch(() => {});
  }
  return answers;
}
