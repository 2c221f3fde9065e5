import type { CronMissed, CronOverlap } from "../../../src/core/cron/cron.ts";
import { parseSchedule } from "../../../src/core/cron/expression.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { defineJob, processor, type UniqueOptions } from "../../../src/index.ts";
import type { Store } from "../../../src/ports/store.ts";
import { type Place, ROUGH, scatter } from "../fleet.ts";
import { FleetWorld } from "../fleet-world.ts";
import type { Machine } from "../machine.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH } from "../scheduler.ts";
import type { WorldOptions, WorldReport } from "../world.ts";
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

interface PlannedCron extends CronLedger {
  readonly missed: CronMissed;
}

class CronWorld extends FleetWorld {
  readonly #checker: CronChecker;
  protected override readonly store: Store;
  readonly #crons: PlannedCron[];
  readonly #places: Place[];
  readonly #calmAt: number;

  constructor(options: WorldOptions) {
    super("crons", options, ROUGH);
    const { scheduler, trace, memory } = this.world;
    this.#checker = new CronChecker(memory, () => scheduler.now, trace);
    this.store = this.#checker.watch(this.world.mutated(memory));
    this.#calmAt = this.dice.between(20_000, 120_000);
    this.#crons = Array.from({ length: 1 + this.dice.int(4) }, (_, nth) => this.#planCron(nth));
    for (const cron of this.#crons) this.#checker.crons.set(cron.name, cron);
    for (const { type, unique } of uniqueJobs)
      this.#checker.uniques.set(type, {
        type,
        period: unique?.period ?? null,
        isReplaced: unique?.onConflict === "replace",
        jobs: [],
      });
    this.#places = this.startProcesses([20, 8_000], (engine, machine) => this.#work(engine, machine));
    this.#scheduleChaos();
  }

  #planCron(nth: number): PlannedCron {
    const dice = this.dice;
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
  async #work(engine: Engine, machine: Machine): Promise<void> {
    engine.work({
      queues: { default: { concurrency: 20 } },
      processors: [tick, ...uniqueJobs].map((job) => processor(job, () => this.#run(machine))),
    });
    for (const { name, schedule, overlap, missed } of this.#crons) {
      const { cron, zone } = schedule;
      await engine.crons.put(name, { cron, zone, overlap, missed, job: tick });
    }
  }

  async #run(machine: Machine): Promise<undefined> {
    const takes = this.dice.chance(0.2) ? this.dice.between(1_000, 12_000) : this.dice.between(1, 500);
    await new Promise<void>((resolve) => this.scheduler.after(takes, machine, resolve));
    return undefined;
  }

  #scheduleChaos(): void {
    const times = 60 + this.dice.int(60);
    this.operateOften(this.#places, this.#calmAt, times, (engine, machine) => this.#operate(engine, machine));
    if (!this.isTroubled) return;
    const repeat = (count: number, run: (place: Place) => void) =>
      scatter(this.world, this.#places, this.#calmAt, count, run);
    repeat(this.dice.int(8), ({ machine }) => machine.crash("kill -9"));
    repeat(this.dice.int(5), ({ machine }) => machine.pause(this.dice.between(200, 20_000), "SIGSTOP"));
    repeat(this.dice.int(4), ({ machine }) => machine.stepWall((this.dice.random() - 0.5) * 7_200_000));
  }

  async #operate(engine: Engine, machine: Machine): Promise<void> {
    try {
      if (this.dice.chance(0.7)) await this.#enqueue(engine, machine);
      else await this.#change(engine, machine);
    } catch (error) {
      this.trace.add(machine.name, `hears ${(error as Error).message}`);
    }
  }

  async #enqueue(engine: Engine, machine: Machine): Promise<void> {
    const job = this.dice.pick(uniqueJobs);
    const calls = Array.from({ length: 1 + this.dice.int(4) }, () => engine.enqueue(job, 1));
    for (const call of await Promise.allSettled(calls)) {
      if (call.status === "fulfilled" && !machine.isDead) await this.#checker.acknowledged(call.value.id);
    }
  }

  async #change(engine: Engine, machine: Machine): Promise<void> {
    const { name, isComplete } = this.dice.pick(this.#crons);
    const deed = isComplete ? "trigger" : this.dice.pick(["trigger", "pause", "resume", "update"] as const);
    this.trace.add(machine.name, `${deed} ${name}`);
    if (deed === "update") await engine.crons.update(name, { missed: this.dice.pick(["skip", "once"]) });
    else await engine.crons[deed](name);
  }

  async run(): Promise<CronSimReport> {
    const isBroken = () => this.#checker.violations.length > 0;
    await this.scheduler.runUntil(isBroken, EPOCH + this.#calmAt);
    this.network.rates = NO_FAULTS;
    await this.scheduler.runUntil(isBroken, this.scheduler.now + CALM_FOR);
    // What is due in the last moments may still be under way.
    if (!isBroken()) this.#checker.checkEnd(this.scheduler.now - 15_000);
    const { violations, fired, unique } = this.#checker;
    return { violations, trace: this.trace, fired, unique, events: this.scheduler.happened };
  }
}
