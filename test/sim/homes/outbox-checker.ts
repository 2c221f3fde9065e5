import type { Effect, Outcome, Unit } from "../../../src/ports/store.ts";
import type { HomeStore } from "../../../src/stores/homes/home-store.ts";
import { WorldChecker } from "../world-checker.ts";

const ONCE = "what a step owes comes once";
const HOLD = "limits and unique keys hold";

/** A unit that commits a step of the giving saga names what it owes in the saga's state. */
interface Given {
  readonly state?: { readonly given?: readonly number[] };
}

/**
 * Watches a world in which the steps of sagas owe things to other homes: jobs and messages, each with a number of its own.
 * It looks at what the homes store, and at what handlers do.
 */
export class OutboxChecker extends WorldChecker {
  /** The numbers that committed steps owe. */
  readonly owed = new Set<number>();
  /** Numbers whose coming a home may have forgotten. */
  readonly excused = new Set<number>();
  readonly #created = new Map<number, number>();
  readonly #done = new Set<number>();

  get done(): number {
    return this.#done.size;
  }

  /** A handler of the job or message of this number has come to its end. */
  didDo(n: number): void {
    this.#done.add(n);
  }

  /** A home that is looked at before and after each of its commits. */
  watch(store: HomeStore): HomeStore {
    return {
      ...store,
      get inspect() {
        return store.inspect;
      },
      commit: async (units, options) => {
        const outcomes: Outcome[] = [];
        // One at a time: a unit is atomic, a batch is not.
        for (const unit of units) {
          const fresh = await this.#freshOf(store, unit.effects ?? []);
          const [outcome] = await store.commit([unit], options);
          outcomes.push(outcome as Outcome);
          if (outcome?.ok) this.#committed(unit, fresh);
        }
        return outcomes;
      },
    };
  }

  /** The numbers of jobs that this unit would create. */
  async #freshOf(store: HomeStore, effects: readonly Effect[]): Promise<number[]> {
    const jobs = effects.flatMap((effect) => ("enqueue" in effect ? [effect.enqueue] : []));
    if (jobs.length === 0) return [];
    const rows = await store.jobs.load(jobs.map(({ id }) => id));
    return jobs.flatMap(({ payload, uniqueKey }, index) =>
      rows[index] || uniqueKey !== undefined ? [] : [(JSON.parse(payload) as { n: number }).n],
    );
  }

  #committed(unit: Unit, fresh: readonly number[]): void {
    for (const effect of unit.effects ?? []) {
      if (!("put" in effect) || effect.put[0] !== "saga") continue;
      for (const n of (effect.body as Given).state?.given ?? []) this.owed.add(n);
    }
    for (const n of fresh) {
      const times = (this.#created.get(n) ?? 0) + 1;
      this.#created.set(n, times);
      if (times > 1 && !this.excused.has(n)) this.report(ONCE, `job ${n} was stored ${times} times`);
    }
  }

  /** A home forgot its last writes. Whatever is owed by now may have been in them. */
  forgot(): void {
    for (const n of [...this.owed, ...this.#created.keys()]) this.excused.add(n);
  }

  /** No key is in two homes, and no limit has more jobs than places. */
  async look(homes: readonly HomeStore[], concurrency: number): Promise<void> {
    const holders = new Map<string, number>();
    const limits = new Map<string, number>();
    for (const [home, { inspect }] of homes.entries()) {
      for (const { key } of await inspect.holders(null, 500)) this.#once(holders, key, home, "unique key");
      for (const { key, active, available } of await inspect.limitKeys(null, 500)) {
        this.#once(limits, key, home, "limit");
        if (active + available > concurrency)
          this.report(HOLD, `${active + available} jobs have places of ${key}, which has ${concurrency}`);
      }
    }
  }

  #once(homes: Map<string, number>, key: string, home: number, what: string): void {
    const other = homes.get(key);
    if (other !== undefined)
      this.report(HOLD, `the ${what} ${key} has jobs in the homes ${other} and ${home}`);
    homes.set(key, home);
  }

  left(): string[] {
    return [...this.owed]
      .filter((n) => !this.#done.has(n) && !this.excused.has(n))
      .map((n) => `${n} is owed and has not come`);
  }
}
