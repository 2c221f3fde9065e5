import type { Engine } from "../../../src/engine/engine.ts";
import type { Store } from "../../../src/ports/store.ts";
import { type Place, ROUGH, scatter } from "../fleet.ts";
import { FleetWorld } from "../fleet-world.ts";
import type { Machine } from "../machine.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH } from "../scheduler.ts";
import type { WorldOptions, WorldReport } from "../world.ts";
import { TimeoutChecker } from "./timeout-checker.ts";

export interface TimeoutSimReport extends WorldReport {
  readonly handled: number;
}

const LEASE = 8_000;
/** Ten tries take nine minutes. */
const SETTLES_WITHIN = 30 * 60_000;
const SETTLE_STEP = 5_000;

/** One world of processes that dispatch from the same store, from its seed to its end. */
export function simulateTimeouts(options: WorldOptions): Promise<TimeoutSimReport> {
  return new TimeoutWorld(options).run();
}

class TimeoutWorld extends FleetWorld {
  readonly #checker: TimeoutChecker;
  protected override readonly store: Store;
  readonly #places: Place[];
  readonly #calmAt: number;
  #made = 0;
  readonly #keys = new Map<string, string>();

  constructor(world: WorldOptions) {
    super("timeouts", world, ROUGH);
    const { scheduler, trace, memory } = this.world;
    this.#checker = new TimeoutChecker(() => scheduler.now, trace);
    this.store = this.#checker.watch(this.world.mutated(memory));
    this.#calmAt = this.dice.between(5_000, 60_000);
    const options = { timeoutLease: `${LEASE}ms` } as const;
    this.#places = this.startProcesses(
      [20, 3_000],
      (engine, machine) => this.#serve(engine, machine),
      options,
    );
    this.#scheduleChaos();
  }

  #serve(engine: Engine, machine: Machine): void {
    const concurrency = 1 + this.dice.int(8);
    for (const destination of ["mail", "bell"]) {
      engine.timeouts.serve(
        destination,
        ({ id, dueAt }, { signal }) => this.#handle(machine, id, dueAt, signal),
        { concurrency },
      );
    }
  }

  /** Takes some time, at times longer than its lease, and fails now and then, or for ever. */
  async #handle(machine: Machine, id: string, dueAt: number, signal: AbortSignal): Promise<void> {
    this.#checker.entered(id, dueAt);
    const dice = this.dice;
    const takes = dice.chance(0.05) ? dice.between(1_000, 3 * LEASE) : dice.between(1, 300);
    await new Promise<void>((resolve) => this.scheduler.after(takes, machine, resolve));
    const isFailed = id.endsWith("bad") || dice.chance(0.1) || (signal.aborted && dice.chance(0.5));
    this.#checker.ended(id, isFailed);
    if (isFailed) throw new Error(`cannot handle ${id}`);
  }

  #scheduleChaos(): void {
    const times = 40 + this.dice.int(80);
    this.operateOften(this.#places, this.#calmAt, times, (engine, machine) => this.#operate(engine, machine));
    if (!this.isTroubled) return;
    const repeat = (count: number, run: (place: Place) => void) =>
      scatter(this.world, this.#places, this.#calmAt, count, run);
    repeat(this.dice.int(6), ({ machine }) => machine.crash("kill -9"));
    repeat(this.dice.int(4), ({ machine }) => machine.pause(this.dice.between(200, 3 * LEASE), "SIGSTOP"));
    repeat(this.dice.int(3), ({ machine }) => machine.stepWall((this.dice.random() - 0.5) * 7_200_000));
    repeat(this.dice.int(3), (place) => {
      this.scheduler.after(0, place.machine, () => void this.#redeploy(place));
    });
  }

  async #redeploy(place: Place): Promise<void> {
    const { engine, machine } = place;
    place.engine = undefined;
    await engine?.close({ drain: `${this.dice.int(4) * 500}ms` });
    if (!machine.isDead && place.machine === machine) machine.crash("is replaced");
  }

  async #operate(engine: Engine, machine: Machine): Promise<void> {
    try {
      if (this.#made > 0 && this.dice.chance(0.25)) await this.#cancel(engine, machine);
      else await this.#insert(engine, machine);
    } catch (error) {
      this.trace.add(machine.name, `hears ${(error as Error).message}`);
    }
  }

  async #insert(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.dice;
    const id = `t${this.#made++}${dice.chance(0.03) ? "bad" : ""}`;
    const destination = dice.pick(["mail", "bell"]);
    const key = dice.chance(0.2) ? dice.pick(["x", "y"]) : undefined;
    const scoped = `${destination} ${key}`;
    if (key !== undefined) {
      const replaced = this.#keys.get(scoped);
      if (replaced !== undefined) this.#checker.takesBack(replaced);
      this.#keys.set(scoped, id);
      // Two inserts under way may arrive in any order, so whichever of them is replaced is not missed.
      this.#checker.takesBack(id);
    }
    const dueAt = { after: `${dice.chance(0.3) ? 0 : dice.between(1, 40_000)}ms` } as const;
    this.trace.add(machine.name, `inserts ${id} for ${destination}, ${dueAt.after}, key ${key}`);
    await engine.timeouts.insert({ id, destination, dueAt, ...(key !== undefined && { key }) });
    if (!machine.isDead) this.#checker.inserted(id);
  }

  async #cancel(engine: Engine, machine: Machine): Promise<void> {
    const number = this.dice.int(this.#made);
    for (const id of [`t${number}`, `t${number}bad`]) {
      this.#checker.takesBack(id);
      const revoked = await engine.timeouts.cancel({ id });
      this.trace.add(machine.name, `cancelled ${id}: ${JSON.stringify(revoked)}`);
      if (!machine.isDead) this.#checker.cancelled(id, revoked);
    }
  }

  async run(): Promise<TimeoutSimReport> {
    const isBroken = () => this.#checker.violations.length > 0;
    await this.scheduler.runUntil(isBroken, EPOCH + this.#calmAt);
    this.network.rates = NO_FAULTS;
    const limit = this.scheduler.now + SETTLES_WITHIN;
    const pending = async () => (await this.memory.timeouts.list({ isDead: false }, null, 1_000)).length;
    while (!isBroken() && this.scheduler.now < limit && (await pending()) > 0)
      await this.scheduler.runUntil(isBroken, this.scheduler.now + SETTLE_STEP);
    if (!isBroken()) this.#checker.checkEnd(await this.memory.timeouts.list({}, null, 1_000));
    return {
      violations: this.#checker.violations,
      trace: this.trace,
      handled: this.#checker.handled,
      events: this.scheduler.happened,
    };
  }
}
