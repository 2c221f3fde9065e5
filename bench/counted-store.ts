import type { Store } from "../src/ports/store.ts";
import { Session } from "../src/stores/sqlite/session.ts";
import { COMMIT } from "../src/stores/sqlite/statements.ts";

/** How often a store was called, by the name of the call. */
export type StoreCalls = Record<string, number>;

/** The same store, whose calls that move jobs are counted. */
export function countedStore(store: Store, calls: StoreCalls): Store {
  const counted =
    <Values extends readonly unknown[], Result>(name: string, call: (...values: Values) => Result) =>
    (...values: Values): Result => {
      calls[name] = (calls[name] ?? 0) + 1;
      return call(...values);
    };
  const { jobs } = store;
  return {
    ...store,
    commit: counted("commit", store.commit),
    jobs: {
      ...jobs,
      enqueue: counted("enqueue", jobs.enqueue),
      claim: counted("claim", jobs.claim),
      load: counted("load", jobs.load),
      sweep: counted("sweep", jobs.sweep),
    },
  };
}

/** Counts the transactions of all SQLite stores of this process as well: several calls may share one. */
export function countTransactions(calls: StoreCalls): void {
  const { run } = Session.prototype;
  Session.prototype.run = function (this: Session, text, values) {
    if (text === COMMIT) calls.transaction = (calls.transaction ?? 0) + 1;
    return run.call(this, text, values);
  };
}
