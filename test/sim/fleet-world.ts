import { Engine } from "../../src/engine/engine.ts";
import type { EngineOptions } from "../../src/engine/engine-options.ts";
import { silentLogger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import type { Dice } from "./dice.ts";
import { type Place, scatter, startFleet, troubledNetwork } from "./fleet.ts";
import type { Machine } from "./machine.ts";
import type { FaultRates, Network } from "./network.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Trace } from "./trace.ts";
import { createWorld, type World, type WorldOptions } from "./world.ts";

type Start<At extends Place> = (engine: Engine, machine: Machine, place: At) => void | Promise<void>;

/** A world of processes that share a store over a network with faults. */
export abstract class FleetWorld {
  protected readonly world: World;
  protected readonly scheduler: Scheduler;
  protected readonly dice: Dice;
  protected readonly trace: Trace;
  protected readonly memory: Store;
  protected readonly network: Network;
  /** False in worlds without faults. */
  protected readonly isTroubled: boolean;
  /** The store behind the network, which the checker watches. */
  protected abstract readonly store: Store;

  constructor(name: string, options: WorldOptions, worst: FaultRates) {
    this.world = createWorld(name, options);
    const { scheduler, dice, trace, memory } = this.world;
    this.scheduler = scheduler;
    this.dice = dice;
    this.trace = trace;
    this.memory = memory;
    const { network, isTroubled } = troubledNetwork(this.world, worst);
    this.network = network;
    this.isTroubled = isTroubled;
  }

  /** The store as one process reaches it. */
  protected connect(machine: Machine): Store {
    return this.network.connect(machine, this.store);
  }

  /** Starts the processes. Each opens an engine, and `start` gives it its work. */
  protected startProcesses<At extends Place>(
    downFor: readonly [least: number, most: number],
    start: Start<At>,
    options: Partial<EngineOptions> = {},
  ): At[] {
    const open = (place: Place, machine: Machine) => this.#open(place as At, machine, start, options);
    return startFleet({ ...this.world, downFor, open }) as At[];
  }

  async #open<At extends Place>(
    place: At,
    machine: Machine,
    start: Start<At>,
    options: Partial<EngineOptions>,
  ): Promise<void> {
    const store = this.connect(machine);
    try {
      const engine = await Engine.open({ store, system: machine, logger: silentLogger, ...options });
      if (machine.isDead) return;
      place.engine = engine;
      await start(engine, machine, place);
    } catch (error) {
      // As a supervisor does: a process that cannot start is started again.
      if (!machine.isDead) machine.crash(`cannot start: ${(error as Error).message}`);
    }
  }

  /** Calls `operate` this many times, each in a random live process at a random moment of the span. */
  protected operateOften<At extends Place>(
    places: readonly At[],
    span: number,
    times: number,
    operate: (engine: Engine, machine: Machine, place: At) => Promise<void>,
  ): void {
    scatter(this.world, places, span, times, (place) => {
      const { engine, machine } = place;
      if (engine && !machine.isDead)
        this.scheduler.after(0, machine, () => void operate(engine, machine, place as At));
    });
  }
}
