import type { Instant } from "../../../src/core/time.ts";
import type { Hint } from "../../../src/ports/store.ts";
import type { TimeoutStore } from "../../../src/ports/timeouts.ts";
import type { HomeJobStore, HomeStore } from "../../../src/stores/homes/home-store.ts";
import { createMemoryHome } from "../../../src/stores/memory/memory-store.ts";

/** A call that may write, with its arguments. The same calls in the same order give the same home again. */
interface Logged {
  readonly at: number;
  readonly least: number;
  readonly again: (store: HomeStore) => Promise<unknown>;
}

const JOB_WRITES = ["enqueue", "claim", "beat", "sweep", "prune"] as const;
const TIMEOUT_WRITES = [
  "insert",
  "claimDue",
  "remove",
  "release",
  "extend",
  "reap",
  "cancel",
  "requeue",
  "reschedule",
] as const;

type TimeoutCall = Exclude<keyof TimeoutStore, "leases">;

/**
 * One home of a simulated store. It can be away, and it can come back without what it did last, as a replica does that
 * becomes the master: then its calls up to that moment are made again in an empty home.
 */
export class SimHome {
  readonly number: number;
  /** Until when nobody reaches it, in true time. */
  awayUntil = 0;
  /** The home as processes reach it: it stays the same object when the home loses its last writes. */
  readonly store: HomeStore;
  readonly #now: () => number;
  readonly #clock: () => Instant;
  readonly #listeners = new Set<(hint: Hint) => void>();
  #memory: HomeStore;
  #log: Logged[] = [];
  /** The lowest revision that the home may give: above all that it gave before it forgot something. */
  #least = 0;
  readonly #repeatsRevisions: boolean;

  constructor(number: number, now: () => number, repeatsRevisions = false) {
    this.number = number;
    this.#repeatsRevisions = repeatsRevisions;
    this.#now = now;
    this.#clock = () => Math.floor(now());
    this.#memory = this.#open();
    this.store = this.#facade();
    void this.#hear();
  }

  get isAway(): boolean {
    return this.#now() < this.awayUntil;
  }

  /** Forgets what was written after this moment. */
  async forgetAfter(at: number): Promise<void> {
    this.#memory = this.#open();
    this.#log = this.#log.filter((logged) => logged.at <= at);
    for (const { again, least } of this.#log) {
      this.#least = least;
      await again(this.#memory).catch(() => {});
    }
    this.#least = this.#repeatsRevisions ? 0 : Math.ceil(this.#now() * 1_000);
    await this.#hear();
  }

  #open(): HomeStore {
    return createMemoryHome({ clock: this.#clock, least: () => this.#least });
  }

  async #hear(): Promise<void> {
    await this.#memory.listen((hint) => {
      for (const listener of this.#listeners) listener(hint);
    });
  }

  #write<Answer>(again: (store: HomeStore) => Promise<Answer>): Promise<Answer> {
    this.#log.push({ at: this.#now(), least: this.#least, again });
    return again(this.#memory);
  }

  #facade(): HomeStore {
    const { capabilities } = this.#memory;
    const home = this;
    return {
      capabilities,
      clock: () => this.#memory.clock(),
      look: (request) => this.#memory.look(request),
      commit: (units, options) => this.#write((store) => store.commit(units, options)),
      async listen(onHint) {
        home.#listeners.add(onHint);
        return { [Symbol.asyncDispose]: async () => void home.#listeners.delete(onHint) };
      },
      close: async () => {},
      records: {
        load: (keys) => this.#memory.records.load(keys),
        list: (kind, after, limit, order) => this.#memory.records.list(kind, after, limit, order),
      },
      jobs: this.#jobs(),
      timeouts: this.#timeouts(),
      get inspect() {
        return home.#memory.inspect;
      },
    };
  }

  #jobs(): HomeJobStore {
    const writes = JOB_WRITES.map((name) => [
      name,
      (...given: unknown[]) => {
        let isFirst = true;
        return this.#write((store) => {
          const call = store.jobs[name] as (...given: unknown[]) => Promise<unknown>;
          // What a call tells its caller on the way is told once.
          const answer = call(...(isFirst ? given : given.map(withoutCallbacks)));
          isFirst = false;
          return answer;
        });
      },
    ]);
    const load: HomeJobStore["load"] = (ids) => this.#memory.jobs.load(ids);
    return { ...Object.fromEntries(writes), load } as HomeJobStore;
  }

  #timeouts(): TimeoutStore {
    const { timeouts } = this.#memory;
    const names = Object.keys(timeouts).filter((name) => name !== "leases");
    const relays = names.map((name) => {
      const call = (store: HomeStore, given: unknown[]) =>
        (store.timeouts[name as TimeoutCall] as (...given: unknown[]) => Promise<unknown>)(...given);
      const isWrite = (TIMEOUT_WRITES as readonly string[]).includes(name);
      const relay = (...given: unknown[]) =>
        isWrite ? this.#write((store) => call(store, given)) : call(this.#memory, given);
      return [name, relay] as const;
    });
    return { ...Object.fromEntries(relays), leases: timeouts.leases } as TimeoutStore;
  }
}

function withoutCallbacks(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const { onDepth: _onDepth, ...rest } = given as { onDepth?: unknown };
  return rest;
}
