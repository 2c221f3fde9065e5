import { CurfewError } from "../../../src/core/errors.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import type { Store } from "../../../src/ports/store.ts";
import { createMemoryStore } from "../../../src/stores/memory/memory-store.ts";
import type { Violation } from "../checker.ts";
import { Dice, subSeed } from "../dice.ts";
import { MILD, type Place, startFleet, troubledNetwork } from "../fleet.ts";
import type { Machine } from "../machine.ts";
import type { Network } from "../network.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH, Scheduler } from "../scheduler.ts";
import { Trace } from "../trace.ts";
import { SagaChecker } from "./saga-checker.ts";
import { KEYS, Scripts, type SimSaga, simSaga } from "./sim-saga.ts";

export interface SagaSimOptions {
  readonly seed: number;
  /** A defect planted on purpose, to prove that the checker can see one. */
  readonly mutate?: (store: Store, dice: Dice) => Store;
  readonly isTraced?: boolean;
}

export interface SagaSimReport {
  readonly violations: readonly Violation[];
  readonly trace: Trace;
  readonly steps: number;
  readonly timeouts: number;
  readonly events: number;
}

const SAGAS = ["s0", "s1", "s2"];
const LEASE = "10s";
/** Ten tries of a message take nine minutes, and a timeout that it requested at last comes after them. */
const SETTLES_WITHIN = 40 * 60_000;
const SETTLE_STEP = 5_000;

/** One world of processes that host the same sagas, from its seed to its end. */
export async function simulateSagas(options: SagaSimOptions): Promise<SagaSimReport> {
  return new SagaWorld(options).run();
}

/** A place in which a process runs; whenever it dies, it is started again as a new process. */
interface SagaPlace extends Place {
  saga?: SimSaga | undefined;
}

class SagaWorld {
  readonly #scheduler = new Scheduler();
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #checker: SagaChecker;
  readonly #memory: Store;
  readonly #store: Store;
  readonly #network: Network;
  readonly #scripts: Scripts;
  readonly #places: SagaPlace[];
  readonly #retention: "0s" | "3s" | "1d";
  /** Half of the worlds record what happens in them. */
  readonly #events: "durable" | "off";
  #orders = 0;

  constructor({ seed, mutate, isTraced = false }: SagaSimOptions) {
    const scheduler = this.#scheduler;
    this.#events = seed % 2 === 0 ? "durable" : "off";
    this.#dice = new Dice(subSeed(seed, "sagas"));
    this.#trace = new Trace({ isKept: isTraced, now: () => scheduler.now - EPOCH });
    this.#checker = new SagaChecker(() => scheduler.now, this.#trace);
    this.#memory = createMemoryStore({ clock: () => Math.floor(scheduler.now) });
    const watched = this.#checker.watch(this.#memory);
    this.#store = mutate?.(watched, new Dice(subSeed(seed, "mutation"))) ?? watched;
    const world = { seed, dice: this.#dice, scheduler, trace: this.#trace };
    const { network, isTroubled } = troubledNetwork(world, MILD);
    this.#network = network;
    this.#scripts = new Scripts(new Dice(subSeed(seed, "scripts")));
    this.#retention = this.#dice.pick(["0s", "3s", "1d"] as const);
    const open = (place: Place, machine: Machine) => this.#open(place, machine);
    this.#places = startFleet({ ...world, downFor: [50, 4_000], open });
    if (isTroubled) this.#scheduleFaults();
  }

  async #open(place: SagaPlace, machine: Machine): Promise<void> {
    const store = this.#network.connect(machine, this.#store);
    try {
      const engine = await Engine.open({
        store,
        system: machine,
        logger: silentLogger,
        timeoutLease: LEASE,
        events: this.#events,
      });
      if (machine.isDead) return;
      place.saga = simSaga(machine, this.#checker, this.#retention);
      engine.host([place.saga]);
      place.engine = engine;
      this.#trace.add(machine.name, "is up");
    } catch (error) {
      if (!machine.isDead) machine.crash(`cannot start: ${(error as Error).message}`);
    }
  }

  #scheduleFaults(): void {
    const dice = this.#dice;
    const repeat = (times: number, run: (place: Place) => void) => {
      for (let nth = 0; nth < times; nth++) {
        const place = dice.pick(this.#places);
        this.#scheduler.after(dice.random() * 30_000, null, () => run(place));
      }
    };
    repeat(dice.int(4), ({ machine }) => machine.crash("kill -9"));
    repeat(dice.int(4), ({ machine }) => machine.pause(dice.between(200, 25_000), "SIGSTOP"));
    repeat(dice.int(2), ({ machine }) => machine.suspend(dice.between(300, 25_000)));
    repeat(dice.int(2), (place) => void this.#redeploy(place));
  }

  async #redeploy({ engine, machine }: Place): Promise<void> {
    if (!engine || machine.isDead) return;
    await engine.close({ drain: `${this.#dice.int(4) * 500}ms` });
    if (!machine.isDead) machine.crash("is replaced");
  }

  #schedule(): void {
    const dice = this.#dice;
    const operations = 30 + dice.int(40);
    for (let nth = 0; nth < operations; nth++) {
      const place = dice.pick(this.#places);
      this.#scheduler.after(dice.random() * 30_000, null, () => {
        const { engine, machine, saga } = place;
        if (!engine || !saga || machine.isDead) return;
        this.#scheduler.after(0, machine, () => void this.#operate(engine, machine, saga));
      });
    }
  }

  async #operate(engine: Engine, machine: Machine, saga: SimSaga): Promise<void> {
    const dice = this.#dice;
    const id = dice.pick(SAGAS);
    try {
      if (dice.chance(0.07)) await engine.saga(saga, id).revoke(dice.pick(KEYS));
      else if (dice.chance(0.04)) await engine.saga(saga, id).end();
      else await this.#send(engine, machine, saga, id);
    } catch (error) {
      const isExpected = error instanceof CurfewError && ["store_failed", "closed"].includes(error.code);
      if (!isExpected && !machine.isDead)
        this.#checker.report("calls fail only as documented", String((error as Error)?.stack ?? error));
    }
  }

  async #send(engine: Engine, machine: Machine, saga: SimSaga, id: string): Promise<void> {
    const script = this.#scripts.draw();
    const key = JSON.stringify(["sim", id]);
    const message = { saga: key, by: machine, order: this.#orders++, isAcknowledged: false };
    this.#checker.sent.set(script.n, message);
    await engine.send(saga, "act", { id, script });
    if (!machine.isDead) message.isAcknowledged = true;
  }

  async run(): Promise<SagaSimReport> {
    const scheduler = this.#scheduler;
    const isOver = () => this.#checker.violations.length > 0;
    this.#schedule();
    await scheduler.runUntil(isOver, EPOCH + 31_000);
    this.#network.rates = NO_FAULTS;
    const limit = scheduler.now + SETTLES_WITHIN;
    let left = ["the beginning"];
    while (left.length > 0 && scheduler.now < limit && !isOver()) {
      await scheduler.runUntil(isOver, scheduler.now + SETTLE_STEP);
      left = await this.#left();
    }
    if (!isOver()) {
      for (const what of left) this.#checker.report("everything settles", what);
      const { events } = await this.#memory.inspect.events(null, 100_000);
      if (this.#events === "durable") this.#checker.checkEvents(events);
      else if (events.length > 0)
        this.#checker.report("nothing is recorded unless asked for", `${events.length} events`);
    }
    const { violations, steps, requested } = this.#checker;
    return { violations, steps, trace: this.#trace, timeouts: requested.size, events: scheduler.happened };
  }

  async #left(): Promise<string[]> {
    const rows = await this.#memory.timeouts.list({ isDead: true }, null, 1_000);
    const dead = new Set(
      rows.map(({ payload }) => (JSON.parse(payload as string) as { script: { n: number } }).script.n),
    );
    return this.#checker.unsettled(dead);
  }
}
