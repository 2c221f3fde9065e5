import type { AttemptContext } from "../../src/engine/attempt/processor.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { Worker } from "../../src/engine/worker/worker.ts";
import type { Logger } from "../../src/ports/log.ts";
import type { Store } from "../../src/ports/store.ts";
import type { Checker } from "./checker.ts";
import { type Dice, subSeed } from "./dice.ts";
import { simProcessor } from "./handlers.ts";
import { Machine } from "./machine.ts";
import type { Network } from "./network.ts";
import type { Plan, ProcessPlan } from "./plan.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Trace } from "./trace.ts";

/** What all processes of a world share. */
export interface Surroundings {
  readonly plan: Plan;
  readonly scheduler: Scheduler;
  readonly network: Network;
  /** The watched store as one process reaches it. */
  connect(machine: Machine): Store;
  readonly checker: Checker;
  readonly trace: Trace;
  readonly handlerDice: Dice;
  readonly hostileDice: Dice;
  readonly clockRate: number;
  readonly secondCommitFrom?: number;
  enqueueChild(context: AttemptContext, machine: Machine): Promise<void>;
}

const TERMINAL_EVENTS = ["job.completed", "job.discarded", "job.cancelled"] as const;
/** Drain, grace of a shutdown, patience of the writer, and what the network takes. */
const CLOSES_WITHIN = 5_000 + 5_000 + 3_000;

/** One place in which a process runs; whenever it dies, it is started again as a new process. */
export class Process {
  machine: Machine;
  engine: Engine | undefined;
  worker: Worker | undefined;
  readonly plan: ProcessPlan;
  readonly #world: Surroundings;
  #starts = 0;
  #isWanted = true;

  constructor(plan: ProcessPlan, world: Surroundings) {
    this.plan = plan;
    this.#world = world;
    this.machine = this.#boot();
  }

  get name(): string {
    return this.plan.name;
  }

  #boot(): Machine {
    const { scheduler, trace, plan, clockRate } = this.#world;
    const name = this.#starts === 0 ? this.name : `${this.name}.${this.#starts}`;
    const machine = new Machine({ name, seed: subSeed(plan.seed, name), scheduler, trace, rate: clockRate });
    this.#starts += 1;
    this.machine = machine;
    this.engine = undefined;
    machine.onDeath = () => this.#restart(machine);
    scheduler.after(1, machine, () => void this.#open(machine));
    return machine;
  }

  #restart(dead: Machine): void {
    if (this.machine !== dead || !this.#isWanted) return;
    const { scheduler, handlerDice } = this.#world;
    this.engine = undefined;
    scheduler.after(handlerDice.between(50, 4_000), null, () => {
      if (this.#isWanted) this.#boot();
    });
  }

  async #open(machine: Machine): Promise<void> {
    const { plan, connect, checker, trace, secondCommitFrom } = this.#world;
    const store = connect(machine);
    try {
      const engine = await Engine.open({
        store,
        system: machine,
        logger: loggerOf(checker, machine),
        events: plan.records ? "durable" : "off",
        ...(secondCommitFrom !== undefined && { secondCommitFrom }),
        roundLimits: plan.roundLimits,
      });
      if (machine.isDead) return;
      for (const name of TERMINAL_EVENTS)
        engine.on(name, ({ id }) => !machine.isDead && checker.told(name, id));
      this.#work(engine, machine);
      this.engine = engine;
      trace.add(machine.name, "is up");
    } catch (error) {
      // As a supervisor does: a process that cannot start is started again.
      if (!machine.isDead) machine.crash(`cannot start: ${(error as Error).message}`);
    }
  }

  #work(engine: Engine, machine: Machine): void {
    const { plan } = this;
    if (!plan.works) return;
    const { checker, trace, handlerDice: dice, hostileDice } = this.#world;
    const enqueueChild = (context: AttemptContext) => this.#world.enqueueChild(context, machine);
    const world = { machine, checker, trace, dice, hostileDice, enqueueChild };
    this.worker = engine.work({
      queues: plan.queues,
      processors: plan.types.map((type) => simProcessor(type, world)),
      ...(plan.maxStuck !== undefined && { maxStuck: plan.maxStuck }),
      ...(dice.chance(0.2) && { middleware: [(_context, next) => next()] }),
    });
  }

  /** A deploy: closed in good order, then started anew. */
  async redeploy(drain: number): Promise<void> {
    await this.close(drain);
    if (!this.machine.isDead && this.#isWanted) this.machine.crash("is replaced");
  }

  /** Closes the engine and checks what a closed engine has promised (SEMANTICS 5.2). */
  async close(drain: number): Promise<void> {
    const { machine, engine } = this;
    if (!engine || machine.isDead) return;
    const { scheduler, checker, network, trace } = this.#world;
    const from = scheduler.now;
    this.engine = undefined;
    trace.add(machine.name, `closes, drain ${drain} ms`);
    await engine.close({ drain: `${drain}ms` });
    if (machine.isDead) return;
    machine.isClosed = true;
    trace.add(machine.name, "is closed");
    const took = scheduler.now - from - machine.pausedWithin(from, scheduler.now);
    const isHealthy = (network.troubledAt.get(machine) ?? 0) < from;
    if (isHealthy && took > drain + CLOSES_WITHIN)
      checker.report("close() resolves in time", `${machine.name} took ${Math.round(took)} ms`);
    if (isHealthy && machine.pendingTimers > 0)
      checker.report("a closed engine leaves no timers", `${machine.name} left ${machine.pendingTimers}`);
    if (isHealthy) this.#checkNothingHeld(machine);
  }

  #checkNothingHeld(machine: Machine): void {
    for (const job of this.#world.checker.jobs.values()) {
      const claim = job.claims.get(job.row.fence);
      if (job.isGone || job.isForgotten) continue;
      if (job.row.state === "active" && claim?.by === machine && claim.isHeard)
        this.#world.checker.report(
          "a closed engine leaves nothing claimed",
          `${machine.name} kept ${job.id}`,
        );
    }
  }

  /** From now on a death is the end. */
  retire(): void {
    this.#isWanted = false;
  }
}

/** The engine logs errors only for what should not happen, apart from a failing store, which the network sees to. */
function loggerOf(checker: Checker, machine: Machine): Logger {
  const silent = () => {};
  return {
    error: (fields, message) => {
      if (machine.isDead || message === "the store failed") return;
      checker.report("the engine logs no errors", `${machine.name}: ${message} ${JSON.stringify(fields)}`);
    },
    warn: silent,
    info: silent,
    debug: silent,
  } as Logger;
}
