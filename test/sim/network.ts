import { CurfewError } from "../../src/core/errors.ts";
import type { Hint, Store, Unit } from "../../src/ports/store.ts";
import type { HomeStore } from "../../src/stores/homes/home-store.ts";
import type { StoreCall } from "../../src/testing/faulty-store.ts";
import { relayTimeouts } from "../../src/testing/relay-timeouts.ts";
import type { Dice } from "./dice.ts";
import type { Machine } from "./machine.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Trace } from "./trace.ts";

/** How often things go wrong between a process and the store, as chances per call. */
export interface FaultRates {
  readonly drop: number;
  readonly loseReply: number;
  readonly slow: number;
  /** The process dies right before or right after it sends. */
  readonly crash: number;
  readonly loseHint: number;
}

/** When a call was sent, when the store did it, and when the answer arrived. */
export interface Times {
  readonly sentAt: number;
  readonly doneAt: number;
  readonly heardAt: number;
}

/** Hears answers as they reach a process. */
export interface ReplyObserver {
  heard(by: Machine, call: StoreCall, request: unknown, answer: unknown, times: Times): void;
}

type Fate = "arrives" | "dropped" | "unanswered" | "refused" | "not heard";

const LONGEST_DELAY = 13_000;
/** When a client gives up on a node that does not answer. */
const ANSWER_WITHIN = 6_000;

interface Sent<Answer> {
  readonly machine: Machine;
  readonly call: StoreCall;
  readonly request: unknown;
  readonly run: () => Promise<Answer>;
  readonly isAway: boolean;
}

/** The way between the processes and the store: it takes time, loses requests and replies, and knows when to stop that. */
export class Network {
  rates: FaultRates;
  /** When a call of a process last went wrong or took long; the checker expects nothing on time right after it. */
  readonly troubledAt = new Map<Machine, number>();
  /** How often a process sent writes to jobs while others of it were under way. */
  commitsBeside = 0;
  readonly #commits = new Map<Machine, number>();
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #observer: ReplyObserver;
  readonly #distanceOf: (machine: Machine) => number;

  constructor(options: {
    rates: FaultRates;
    scheduler: Scheduler;
    dice: Dice;
    trace: Trace;
    observer: ReplyObserver;
    /** Milliseconds that every message between this process and the store takes on top. */
    distanceOf?: (machine: Machine) => number;
  }) {
    this.rates = options.rates;
    this.#scheduler = options.scheduler;
    this.#dice = options.dice;
    this.#trace = options.trace;
    this.#observer = options.observer;
    this.#distanceOf = options.distanceOf ?? (() => 0);
  }

  /** The store as it is reached over this network from one process. `isAway`: nobody reaches it now. */
  connect(machine: Machine, store: HomeStore, isAway: () => boolean): HomeStore;
  connect(machine: Machine, store: Store): Store;
  connect(machine: Machine, store: Store, isAway = () => false): Store {
    const { jobs, records, timeouts } = store;
    const send = <Request, Answer>(
      call: StoreCall,
      request: Request,
      run: () => Promise<Answer>,
    ): Promise<Answer> => this.#send({ machine, call, request, run, isAway: isAway() });
    return {
      // Calls go over this network, so the engine has to treat the store as one outside of its process.
      capabilities: { ...store.capabilities, inProcess: false },
      clock: () => send("clock", null, () => store.clock()),
      look: (request) => send("look", request, () => store.look(request)),
      commit: (units, options) =>
        this.#counted(machine, units, () => send("commit", units, () => store.commit(units, options))),
      listen: (onHint) =>
        send("listen", null, () => store.listen((hint) => this.#hint(machine, hint, onHint))),
      // The store outlives the processes that use it.
      close: async () => {},
      jobs: {
        enqueue: (newJobs, options) => send("jobs.enqueue", newJobs, () => jobs.enqueue(newJobs, options)),
        claim: (request) => send("jobs.claim", request, () => jobs.claim(request)),
        beat: (request) => send("jobs.beat", request, () => jobs.beat(request)),
        sweep: (request) => send("jobs.sweep", request, () => jobs.sweep(request)),
        load: (ids, options) => send("jobs.load", ids, () => jobs.load(ids, options)),
        prune: (request) => send("jobs.prune", request, () => jobs.prune(request)),
      },
      records: {
        load: (keys) => send("records.load", keys, () => records.load(keys)),
        list: (kind, after, limit, order) =>
          send("records.list", kind, () => records.list(kind, after, limit, order)),
      },
      timeouts: relayTimeouts(timeouts, send),
      get inspect() {
        return store.inspect;
      },
    };
  }

  #send<Answer>({ machine, call, request, run, isAway }: Sent<Answer>): Promise<Answer> {
    const crash = machine.isDead ? "already" : this.#crash(machine);
    const arrives = crash !== "already" && crash !== "before";
    return new Promise((resolve, reject) => {
      if (!arrives) return;
      const sentAt = this.#scheduler.now;
      const fate = this.#fate(isAway);
      const fail = (why: string) => reject(new CurfewError("store_failed", `${call}: ${why}`));
      if (fate !== "arrives") this.#trouble(machine, call, fate);
      if (fate === "dropped" || fate === "refused" || fate === "not heard") {
        const after = fate === "not heard" ? ANSWER_WITHIN : this.#latency(machine, call);
        this.#troubled(machine, this.#scheduler.now + after);
        this.#scheduler.after(after, machine, () => fail(fate));
        return;
      }
      this.#scheduler.after(this.#latency(machine, call), null, () => {
        // What a dying process had sent may still arrive, or be lost with its connection.
        if (machine.isDead && this.#dice.chance(0.5)) return;
        const doneAt = this.#scheduler.now;
        const reply = (deliver: () => void) =>
          this.#scheduler.after(this.#latency(machine, call), machine, deliver);
        run().then(
          (answer) =>
            reply(() => {
              if (fate === "unanswered") return fail("done, but the reply was lost");
              const times = { sentAt, doneAt, heardAt: this.#scheduler.now };
              this.#observer.heard(machine, call, request, answer, times);
              resolve(answer);
            }),
          (error) => reply(() => reject(error)),
        );
      });
    });
  }

  /** Counts the commits of a worker's writes that are under way at the same time. */
  async #counted<Answer>(
    machine: Machine,
    units: readonly Unit[],
    commit: () => Promise<Answer>,
  ): Promise<Answer> {
    if (!units.every(({ job }) => job && job.step === undefined)) return commit();
    const others = this.#commits.get(machine) ?? 0;
    if (others > 0) this.commitsBeside += 1;
    this.#commits.set(machine, others + 1);
    try {
      return await commit();
    } finally {
      this.#commits.set(machine, (this.#commits.get(machine) ?? 1) - 1);
    }
  }

  #crash(machine: Machine): "before" | "after" | "no" {
    if (!this.#dice.chance(this.rates.crash)) return "no";
    const when = this.#dice.chance(0.5) ? "before" : "after";
    machine.crash(`${when} it sends to the store`);
    return when;
  }

  #fate(isAway: boolean): Fate {
    const { drop, loseReply } = this.rates;
    if (isAway) return this.#dice.chance(0.5) ? "refused" : "not heard";
    const draw = this.#dice.random();
    return draw < drop ? "dropped" : draw < drop + loseReply ? "unanswered" : "arrives";
  }

  #trouble(machine: Machine, call: StoreCall, what: string): void {
    this.#troubled(machine, this.#scheduler.now);
    this.#trace.add(machine.name, `${call} ${what}`);
  }

  #latency(machine: Machine, call: StoreCall): number {
    const distance = this.#distanceOf(machine);
    if (!this.#dice.chance(this.rates.slow)) return distance + 0.1 + this.#dice.random() * 1.5;
    const delay = this.#dice.between(20, LONGEST_DELAY);
    this.#trouble(machine, call, `slow by ${delay} ms`);
    // It is in trouble for as long as the message travels, not only when it sets out.
    this.#troubled(machine, this.#scheduler.now + delay);
    return distance + delay;
  }

  /** A message that still travels is not forgotten over a later one that was lost at once. */
  #troubled(machine: Machine, at: number): void {
    this.troubledAt.set(machine, Math.max(at, this.troubledAt.get(machine) ?? 0));
  }

  #hint(machine: Machine, hint: Hint, onHint: (hint: Hint) => void): void {
    if (this.#dice.chance(this.rates.loseHint)) return;
    const times = this.#dice.chance(this.rates.loseHint) ? 2 : 1;
    for (let copy = 0; copy < times; copy++)
      this.#scheduler.after(this.#distanceOf(machine) + this.#dice.random() * 3, machine, () => onHint(hint));
  }
}
