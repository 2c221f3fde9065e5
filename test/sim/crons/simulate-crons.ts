import { parseSchedule } from "../../../src/core/cron/expression.ts";
import { Engine } from "../../../src/engine/engine.ts";
import {
  type CronMissed,
  type CronOverlap,
  defineJob,
  processor,
  type UniqueOptions,
} from "../../../src/index.ts";
import { silentLogger } from "../../../src/ports/log.ts";
import type { Store } from "../../../src/ports/store.ts";
import type { Dice } from "../dice.ts";
import { type Place, ROUGH, scatter, startFleet, troubledNetwork } from "../fleet.ts";
import type { Machine } from "../machine.ts";
import type { Network } from "../network.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH, type Scheduler } from "../scheduler.ts";
import type { Trace } from "../trace.ts";
import { createWorld, type World, type WorldOptions, type WorldReport } from "../world.ts";
import { CronChecker, type CronLedger } from "./cron-checker.ts";

export interface CronSimReport extends WorldReport {
  readonly fired: number;
  readonly unique: number;
}

const CALM_FOR = 90_000;
const EXPRESSIONS = ["* * * * * *", "*/2 * * * * *", "*/5 * * * * *", "10,15,40 * * * * *", "* * * * *"];
const tick = defineJob({ type: "sim.tick" });
const UNIQUE: Record<string, UniqueOptions> = {
  "sim.alive": {},
  "sim.replaced": { onConflict: "replace" },
  "sim.period": { period: "7s" },
  "sim.replaced-in-period": { period: "7s", onConflict: "replace" },
};
const uniqueJobs = Object.entries(UNIQUE).map(([type, unique]) => defineJob({ type, unique }));

/** One world of processes that fire the same crons and enqueue the same unique jobs, from its seed to its end. */
export function simulateCrons(options: WorldOptions): Promise<CronSimReport> {
  return new CronWorld(options).run();
}

/** A place in which a process runs; whenever it dies, it is started again as a new process. */
interface PlannedCron extends CronLedger {
  readonly missed: CronMissed;
}

class CronWorld {
  readonly #world: World;
  readonly #scheduler: Scheduler;
  readonly #dice: Dice;
  readonly #trace: Trace;
  readonly #checker: CronChecker;
  readonly #store: Store;
  readonly #network: Network;
  readonly #crons: PlannedCron[];
  readonly #places: Place[];
  readonly #calmAt: number;

  constructor(options: WorldOptions) {
    const world = createWorld("crons", options);
    const { scheduler, memory } = world;
    this.#world = world;
    this.#scheduler = scheduler;
    this.#dice = world.dice;
    this.#trace = world.trace;
    this.#checker = new CronChecker(memory, () => scheduler.now, this.#trace);
    this.#store = this.#checker.watch(world.mutated(memory));
    const { network, isTroubled } = troubledNetwork(world, ROUGH);
    this.#network = network;
    this.#calmAt = this.#dice.between(20_000, 120_000);
    this.#crons = Array.from({ length: 1 + this.#dice.int(4) }, (_, nth) => this.#planCron(nth));
    for (const cron of this.#crons) this.#checker.crons.set(cron.name, cron);
    for (const { type, unique } of uniqueJobs)
      this.#checker.uniques.set(type, {
        type,
        period: unique?.period ?? null,
        isReplaced: unique?.onConflict === "replace",
        jobs: [],
      });
    const open = (place: Place, machine: Machine) => this.#open(place, machine);
    this.#places = startFleet({ ...world, downFor: [20, 8_000], open });
    this.#scheduleChaos(isTroubled);
  }

  #planCron(nth: number): PlannedCron {
    const dice = this.#dice;
    const isComplete = dice.chance(0.5);
    const cron = dice.pick(EXPRESSIONS);
    const schedule = parseSchedule({ cron, zone: dice.pick(["UTC", "Europe/Berlin"]) }, "");
    const all = { all: cron.startsWith("* * * * * *") ? "15m" : "30m" } as const;
    return {
      name: `cron ${nth}`,
      schedule,
      overlap: isComplete ? "allow" : dice.pick<CronOverlap>(["allow", "skip", "cancel-previous"]),
      missed: isComplete ? all : dice.pick<CronMissed>(["skip", "once", all]),
      isComplete,
      knownAt: undefined,
      fired: new Map(),
      last: undefined,
    };
  }

  /** As deployed processes do, each puts all the crons when it starts. */
  async #open(place: Place, machine: Machine): Promise<void> {
    const store = this.#network.connect(machine, this.#store);
    try {
      const engine = await Engine.open({ store, system: machine, logger: silentLogger });
      if (machine.isDead) return;
      engine.work({
        queues: { default: { concurrency: 20 } },
        processors: [tick, ...uniqueJobs].map((job) => processor(job, () => this.#run(machine))),
      });
      place.engine = engine;
      for (const { name, schedule, overlap, missed } of this.#crons) {
        const { cron, zone } = schedule;
        await engine.crons.put(name, { cron, zone, overlap, missed, job: tick });
      }
    } catch (error) {
      // As a supervisor does: a process that cannot start is started again.
      if (!machine.isDead) machine.crash(`cannot start: ${(error as Error).message}`);
    }
  }

  async #run(machine: Machine): Promise<undefined> {
    const takes = this.#dice.chance(0.2) ? this.#dice.between(1_000, 12_000) : this.#dice.between(1, 500);
    await new Promise<void>((resolve) => this.#scheduler.after(takes, machine, resolve));
    return undefined;
  }

  #scheduleChaos(isTroubled: boolean): void {
    const repeat = (times: number, run: (place: Place) => void) =>
      scatter(this.#world, this.#places, this.#calmAt, times, run);
    repeat(60 + this.#dice.int(60), ({ engine, machine }) => {
      if (engine && !machine.isDead)
        this.#scheduler.after(0, machine, () => void this.#operate(engine, machine));
    });
    if (!isTroubled) return;
    repeat(this.#dice.int(8), ({ machine }) => machine.crash("kill -9"));
    repeat(this.#dice.int(5), ({ machine }) => machine.pause(this.#dice.between(200, 20_000), "SIGSTOP"));
    repeat(this.#dice.int(4), ({ machine }) => machine.stepWall((this.#dice.random() - 0.5) * 7_200_000));
  }

  async #operate(engine: Engine, machine: Machine): Promise<void> {
    try {
      if (this.#dice.chance(0.7)) await this.#enqueue(engine, machine);
      else await this.#change(engine, machine);
    } catch (error) {
      this.#trace.add(machine.name, `hears ${(error as Error).message}`);
    }
  }

  async #enqueue(engine: Engine, machine: Machine): Promise<void> {
    const job = this.#dice.pick(uniqueJobs);
    const calls = Array.from({ length: 1 + this.#dice.int(4) }, () => engine.enqueue(job, 1));
    for (const call of await Promise.allSettled(calls)) {
      if (call.status === "fulfilled" && !machine.isDead) await this.#checker.acknowledged(call.value.id);
    }
  }

  async #change(engine: Engine, machine: Machine): Promise<void> {
    const { name, isComplete } = this.#dice.pick(this.#crons);
    const deed = isComplete ? "trigger" : this.#dice.pick(["trigger", "pause", "resume", "update"] as const);
    this.#trace.add(machine.name, `${deed} ${name}`);
    if (deed === "update") await engine.crons.update(name, { missed: this.#dice.pick(["skip", "once"]) });
    else await engine.crons[deed](name);
  }

  async run(): Promise<CronSimReport> {
    const isBroken = () => this.#checker.violations.length > 0;
    await this.#scheduler.runUntil(isBroken, EPOCH + this.#calmAt);
    this.#network.rates = NO_FAULTS;
    await this.#scheduler.runUntil(isBroken, this.#scheduler.now + CALM_FOR);
    // What is due in the last moments may still be under way.
    if (!isBroken()) this.#checker.checkEnd(this.#scheduler.now - 15_000);
    const { violations, fired, unique } = this.#checker;
    return { violations, trace: this.#trace, fired, unique, events: this.#scheduler.happened };
  }
}
