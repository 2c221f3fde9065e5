import { createHomedIdSource } from "../../../src/core/ids.ts";
import type { JobId, JobRow } from "../../../src/core/job/job.ts";
import type { BeatAnswer, BeatRequest, Store } from "../../../src/ports/store.ts";
import type { HomeStore } from "../../../src/stores/homes/home-store.ts";
import { createHomedStore } from "../../../src/stores/homes/homed-store.ts";
import type { Dice } from "../dice.ts";
import type { Machine } from "../machine.ts";
import type { Network, Times } from "../network.ts";
import type { Scheduler } from "../scheduler.ts";
import type { Trace } from "../trace.ts";
import { type StoreObserver, StoreWatch } from "../watched-store.ts";
import { HomeRules } from "./home-rules.ts";
import { SimHome } from "./sim-home.ts";

/** A defect of homes, planted on purpose. */
export interface HomeMutation {
  /** Changes one home. */
  readonly home?: (store: HomeStore, dice: Dice) => HomeStore;
  /** Changes the homes as the router of a process has them. */
  readonly route?: (homes: readonly HomeStore[]) => readonly HomeStore[];
  /** Changes the store that an engine gets. */
  readonly routed?: (store: Store) => Store;
  /** Homes that forgot something give revisions and versions again. */
  readonly repeatsRevisions?: boolean;
}

/** Hears of beats that all homes have answered. */
interface BeatObserver {
  heardFromAll(
    by: Machine,
    request: BeatRequest,
    answers: readonly BeatAnswer[],
    times: Pick<Times, "sentAt" | "heardAt">,
  ): void;
}

interface HomesOptions {
  readonly count: number;
  readonly scheduler: Scheduler;
  readonly network: Network;
  readonly trace: Trace;
  readonly dice: Dice;
  readonly mutation?: HomeMutation | undefined;
  report(rule: string, says: string): void;
  /** Sees every change of a job. Left out: jobs are not watched. */
  readonly observer?: StoreObserver & BeatObserver;
  /** A home forgot what happened to these jobs: they are as they were before, or gone. */
  forgot?(home: number, changed: ReadonlyMap<JobId, JobRow | null>): void;
}

/** What a home that comes back may have forgotten, in milliseconds. */
const FORGOTTEN = 1_000;
const DELIVERED_WITHIN = 5_000;
const LONGEST_AWAY = 30_000;

/**
 * The homes of a simulated store. Each process has a router of its own over all of them, and every call to a home goes
 * over the network on its own: a process may die, and a home may be away, between any two of them.
 */
export class SimHomes {
  readonly rules: HomeRules;
  /** The whole store without a network, for the simulator itself. */
  readonly store: Store;
  readonly #options: HomesOptions;
  readonly #homes: readonly SimHome[];
  readonly stores: readonly HomeStore[];
  readonly #watches: readonly StoreWatch<HomeStore>[];

  constructor(options: HomesOptions) {
    const { count, scheduler, report, mutation, dice, observer } = options;
    const now = () => scheduler.now;
    this.#options = options;
    this.rules = new HomeRules(count, now, report);
    this.#homes = Array.from(
      { length: count },
      (_, home) => new SimHome(home, now, mutation?.repeatsRevisions),
    );
    this.stores = this.#homes.map(({ store, number }) =>
      this.rules.watch(number, mutation?.home?.(store, dice) ?? store),
    );
    this.#watches = observer ? this.stores.map((store) => new StoreWatch(store, observer)) : [];
    this.store = createHomedStore(this.stores, { nextId: this.#ids(() => {}) });
  }

  /** The homes as one process reaches them. */
  connect(machine: Machine): Store {
    const { network, mutation } = this.#options;
    const reached = this.#homes.map((home, number) => {
      const store = this.#watches[number]?.view(machine) ?? (this.stores[number] as HomeStore);
      return network.connect(machine, store, () => home.isAway);
    });
    const homes = mutation?.route?.(reached) ?? reached;
    const store = this.#observed(machine, createHomedStore(homes, { nextId: this.#ids(machine.fill) }));
    return mutation?.routed?.(store) ?? store;
  }

  /** The network sees the answer of each home. The engine hears nothing before the slowest home has answered a beat. */
  #observed(machine: Machine, store: Store): Store {
    const { observer, scheduler } = this.#options;
    if (!observer) return store;
    const beat: Store["jobs"]["beat"] = (request) => {
      const sentAt = scheduler.now;
      const answers = store.jobs.beat(request);
      answers.then(
        (all) => observer.heardFromAll(machine, request, all, { sentAt, heardAt: scheduler.now }),
        () => {},
      );
      // The same promise, so that the engine goes on after the observer, and in the same turn as without one.
      return answers;
    };
    return { ...store, jobs: { ...store.jobs, beat } };
  }

  /** Some homes are away for up to half a minute, until `calmAt` at the latest, and half of them forget their last second. */
  scheduleFaults(calmAt: number, mayForget = true): void {
    const { scheduler, dice } = this.#options;
    for (let times = 1 + dice.int(3); times > 0; times--) {
      const home = dice.pick(this.#homes);
      // Not before all processes may know the settings, which are written at the beginning.
      const goesAt = 2 * FORGOTTEN + dice.random() * (calmAt - 2 * FORGOTTEN);
      const lasts = Math.min(dice.between(500, LONGEST_AWAY), calmAt - goesAt);
      const forgets = mayForget && dice.chance(0.5);
      scheduler.after(goesAt, null, () => this.#leave(home, lasts, forgets));
    }
  }

  /** A process that was closed may have left messages, which the next sweep delivers. */
  async checkEnd(): Promise<void> {
    const now = Math.floor(this.#options.scheduler.now) + DELIVERED_WITHIN;
    await this.store.jobs.sweep({ now, limit: 500, holdUntil: now + DELIVERED_WITHIN });
    await this.rules.checkEnd(this.stores);
  }

  #leave(home: SimHome, lasts: number, forgets: boolean): void {
    const { scheduler, trace } = this.#options;
    const leftAt = scheduler.now;
    home.awayUntil = Math.max(home.awayUntil, leftAt + lasts);
    trace.add(`home ${home.number}`, `is away for ${Math.round(lasts)} ms`);
    if (forgets) scheduler.after(lasts, null, () => void this.#forget(home, leftAt - FORGOTTEN));
  }

  async #forget(home: SimHome, after: number): Promise<void> {
    const { trace, forgot } = this.#options;
    trace.add(`home ${home.number}`, "comes back without its last second");
    await home.forgetAfter(after);
    await this.rules.forgot(home.number, after, home.store);
    forgot?.(home.number, (await this.#watches[home.number]?.forgot()) ?? new Map());
  }

  #ids(fill: (bytes: Uint8Array) => void) {
    const { scheduler } = this.#options;
    return createHomedIdSource(() => Math.floor(scheduler.now), fill);
  }
}
