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
  readonly #rows = new Map<JobId, JobRow>();
  readonly #gone = new Set<JobId>();

  constructor(store: Watched, observer: StoreObserver) {
    this.#store = store;
    this.#observer = observer;
  }

  rows(): Iterable<JobRow> {
    return this.#rows.values();
  }

  row(id: JobId): JobRow | undefined {
    return this.#rows.get(id);
  }

  /** The store forgot its last writes. Returns the jobs that are not what they were, null for those that are gone. */
  async forgot(): Promise<Map<JobId, JobRow | null>> {
    const ids = [...this.#rows.keys(), ...this.#gone];
    const rows = ids.length === 0 ? [] : await this.#store.jobs.load(ids);
    const changed = new Map<JobId, JobRow | null>();
    for (const [index, id] of ids.entries()) {
      const [before, after] = [this.#rows.get(id) ?? null, rows[index] ?? null];
      // A job that came and went may have done so in the time that is forgotten.
      const isNew = before === null || JSON.stringify(before) !== JSON.stringify(after);
      if (isNew) changed.set(id, after);
      if (after) this.#rows.set(id, after);
      else this.#rows.delete(id);
    }
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
    const ids = [...this.#rows.keys()];
    for (const { id } of added) if (!this.#rows.has(id)) ids.push(id);
    const rows = await this.#store.jobs.load(ids);
    for (const [index, id] of ids.entries()) {
      const after = rows[index] ?? null;
      const before = this.#rows.get(id) ?? null;
      if (after === before) continue;
      const write = units.find((unit) => unit.job?.id === id)?.job;
      if (after) this.#rows.set(id, after);
      else {
        this.#rows.delete(id);
        this.#gone.add(id);
      }
      this.#observer.changed({
        by,
        call,
        before,
        after: after ?? lastRow(before as JobRow, write),
        isGone: after === null,
        write,
      });
    }
    this.#observer.looked();
  }
}

function lastRow(before: JobRow, write: JobWrite | undefined): JobRow {
  if (!write) return before;
  const { image, documents, nextFence } = write;
  return { ...before, ...image, ...documents, fence: nextFence ?? before.fence, rev: before.rev + 1 };
}
