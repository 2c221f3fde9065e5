import type { NewJob } from "../../src/core/job/enqueue/envelope.ts";
import type { JobId, JobRow } from "../../src/core/job/job.ts";
import type { BeatAnswer, ClaimRequest, JobWrite, Outcome, Store, Unit } from "../../src/ports/store.ts";
import type { HomeBeat, HomeStore } from "../../src/stores/homes/home-store.ts";
import type { Machine } from "./machine.ts";

/** Something the store did to one job, seen from outside: the row before and after, and who asked for it. */
export interface Change {
  readonly by: Machine;
  readonly call: "enqueue" | "claim" | "beat" | "sweep" | "commit" | "prune";
  readonly before: JobRow | null;
  /** What was written; for a job that is dropped or pruned, the row that it ended with. */
  readonly after: JobRow;
  /** The row is not in the store any more. */
  readonly isGone: boolean;
  readonly write: JobWrite | undefined;
}

/** Hears everything that happens in the store, at the moment at which it happens. */
export interface StoreObserver {
  changed(change: Change): void;
  /** All that a call has changed was told. */
  looked(): void;
  claimed(by: Machine, request: ClaimRequest, rows: readonly JobRow[]): void;
  beaten(by: Machine, request: HomeBeat, answers: readonly BeatAnswer[]): void;
  committed(by: Machine, units: readonly Unit[], outcomes: readonly Outcome[]): void;
}

/**
 * Looks at every row after every call that may write, and tells what has changed. It trusts no answer of the store
 * and no word of the engine: rows are replaced, never changed, so that a comparison of references finds every write.
 */
export class StoreWatch<Watched extends Store = Store> {
  readonly #store: Watched;
  readonly #observer: StoreObserver;
  /** The jobs that are there, and the last row of each at the same place: a look compares all of them. */
  #ids: JobId[] = [];
  #rows: JobRow[] = [];
  readonly #gone = new Set<JobId>();

  constructor(store: Watched, observer: StoreObserver) {
    this.#store = store;
    this.#observer = observer;
  }

  /** The store forgot its last writes. Returns the jobs that are not what they were, null for those that are gone. */
  async forgot(): Promise<Map<JobId, JobRow | null>> {
    const known = new Map(this.#ids.map((id, index) => [id, this.#rows[index] as JobRow]));
    const ids = [...known.keys(), ...this.#gone];
    const rows = ids.length === 0 ? [] : await this.#store.jobs.load(ids);
    const changed = new Map<JobId, JobRow | null>();
    for (const [index, id] of ids.entries()) {
      const [before, after] = [known.get(id) ?? null, rows[index] ?? null];
      // A job that came and went may have done so in the time that is forgotten.
      const isNew = before === null || JSON.stringify(before) !== JSON.stringify(after);
      if (isNew) changed.set(id, after);
      if (after) known.set(id, after);
      else known.delete(id);
    }
    this.#ids = [...known.keys()];
    this.#rows = [...known.values()];
    return changed;
  }

  /** The store as one process reaches it. */
  view(by: Machine): Watched {
    const store = this.#store;
    const jobs = store.jobs as HomeStore["jobs"];
    return {
      ...store,
      get inspect() {
        return store.inspect;
      },
      commit: (units, options) => this.#commit(by, units, () => store.commit(units, options)),
      jobs: {
        load: (ids, options) => jobs.load(ids, options),
        enqueue: async (newJobs, options) => {
          const answers = await jobs.enqueue(newJobs, options);
          await this.#compare(by, "enqueue", newJobs);
          return answers;
        },
        claim: async (request) => {
          const rows = await jobs.claim(request);
          this.#observer.claimed(by, request, rows);
          await this.#compare(by, "claim");
          return rows;
        },
        beat: async (request) => {
          const answers = await jobs.beat(request);
          this.#observer.beaten(by, request, answers);
          await this.#compare(by, "beat");
          return answers;
        },
        sweep: async (request) => {
          const swept = await jobs.sweep(request);
          await this.#compare(by, "sweep");
          return swept;
        },
        prune: async (request) => {
          const pruned = await jobs.prune(request);
          await this.#compare(by, "prune");
          return pruned;
        },
      },
    };
  }

  async #commit(by: Machine, units: readonly Unit[], run: () => Promise<Outcome[]>): Promise<Outcome[]> {
    const outcomes = await run();
    this.#observer.committed(by, units, outcomes);
    await this.#compare(by, "commit", [], units);
    return outcomes;
  }

  /** The calls of a run happen one at a time, so nothing can come between the call and this look. */
  async #compare(
    by: Machine,
    call: Change["call"],
    added: readonly NewJob[] = [],
    units: readonly Unit[] = [],
  ): Promise<void> {
    const fresh = added.length === 0 ? [] : this.#unknown(added);
    const ids = fresh.length === 0 ? this.#ids : [...this.#ids, ...fresh];
    const rows = await this.#store.jobs.load(ids);
    let isLess = false;
    for (let index = 0; index < ids.length; index++) {
      const after = rows[index] ?? null;
      const before = this.#rows[index] ?? null;
      if (after === before) continue;
      const id = ids[index] as JobId;
      const write = units.find((unit) => unit.job?.id === id)?.job;
      isLess ||= after === null;
      if (after === null) this.#gone.add(id);
      this.#observer.changed({
        by,
        call,
        before,
        after: after ?? lastRow(before as JobRow, write),
        isGone: after === null,
        write,
      });
    }
    // Else the rows belong to the ids as they are.
    const isSame = !isLess && fresh.length === 0;
    this.#ids = isSame ? this.#ids : ids.filter((_, index) => rows[index]);
    this.#rows = isSame ? (rows as JobRow[]) : rows.filter((row) => row !== null && row !== undefined);
    this.#observer.looked();
  }

  /** The new jobs of an enqueue that are not known yet. */
  #unknown(added: readonly NewJob[]): JobId[] {
    const known = new Set(this.#ids);
    return [...new Set(added.map(({ id }) => id))].filter((id) => !known.has(id));
  }
}

function lastRow(before: JobRow, write: JobWrite | undefined): JobRow {
  if (!write) return before;
  const { image, documents, nextFence } = write;
  return { ...before, ...image, ...documents, fence: nextFence ?? before.fence, rev: before.rev + 1 };
}
