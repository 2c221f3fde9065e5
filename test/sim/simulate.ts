import { type JournalEvent, journalEvent } from "../../src/core/event/journal-event.ts";
import { homeOf } from "../../src/core/home/cell.ts";
import { cellOfRecord } from "../../src/core/home/cell-of-row.ts";
import { parseQueue } from "../../src/core/limit/queue-settings.ts";
import type { Json } from "../../src/core/schema.ts";
import { GRAINS } from "../../src/core/stats/grains.ts";
import { statsKind } from "../../src/engine/statistics/roll-up.ts";
import type { Store } from "../../src/ports/store.ts";
import { createMemoryStore } from "../../src/stores/memory/memory-store.ts";
import { Checker, type Violation } from "./checker.ts";
import { Dice, subSeed } from "./dice.ts";
import { type HomeMutation, SimHomes } from "./homes/sim-homes.ts";
import type { JobLedger } from "./ledger.ts";
import type { Machine } from "./machine.ts";
import { Network } from "./network.ts";
import { NO_FAULTS, type Plan, planOf, withFairness, withRounds } from "./plan.ts";
import { Process, type Surroundings } from "./process.ts";
import { EPOCH, Scheduler } from "./scheduler.ts";
import { short, Trace } from "./trace.ts";
import { StoreWatch } from "./watched-store.ts";
import { Workload } from "./workload.ts";
import { runUntilSettled } from "./world.ts";

/** A defect planted on purpose, to prove that the checker can see one. */
export interface Mutation {
  readonly store?: (store: Store, dice: Dice) => Store;
  readonly clockRate?: number;
  readonly homes?: HomeMutation;
}

export interface SimOptions {
  readonly seed: number;
  readonly mutation?: Mutation;
  /** Some processes are 50 to 500 ms away from the store. It draws from dice of its own: without it, a seed stays what it is. */
  readonly isDistant?: boolean;
  /** Most queues are fair, and jobs have fair keys. It draws from dice of its own, too. */
  readonly isFair?: boolean;
  /** A process sends a second commit beside the first for any number of writes (ADR 39). In real engines it takes 100. */
  readonly hasTwoCommits?: boolean;
  /** Fair queues are busy early, and take rounds. Implies `isFair`. */
  readonly isBusy?: boolean;
  /** The number of homes of the store. With more than one, each process has a router, and homes have faults of their own. */
  readonly homes?: number;
  /** Keeps the timeline. */
  readonly isTraced?: boolean;
}

export interface SimReport {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly trace: Trace;
  readonly jobs: number;
  readonly runs: number;
  readonly events: number;
  /** Jobs that ended, and how many of them the statistics know of: a killed process takes its last seconds with it. */
  /** How often a waiting key of a fair queue had to let another one go first. */
  readonly passedOver: number;
  /** How often a process sent a commit while another one of it was under way. */
  readonly commitsBeside: number;
  /** How many jobs were taken in rounds. */
  readonly inRounds: number;
  readonly figures: { readonly ended: number; readonly counted: number };
  /** Virtual milliseconds from the start to the last close. */
  readonly duration: number;
}

/** Longest wait for the next job to end once faults have stopped: it may have attempts, backoffs and leases ahead of it. */
const SETTLES_WITHIN = 20 * 60_000;
const CLOSES_WITHIN = 60_000;
const FINAL_DRAIN = 500;
const MOST_EVENTS = 100_000;
const SETTLE_STEP = 2_000;
const RESUME_EVERY = 15;
/** One way, in milliseconds. */
const DISTANCE = [50, 500] as const;
const ENDS = ["completed", "discarded", "cancelled"] as const;

/** Runs one world from its seed to its end. The same seed always gives the same run. */
export async function simulate(options: SimOptions): Promise<SimReport> {
  const world = new World(options);
  const onRejection = (error: unknown) =>
    world.checker.report("no promise is rejected unheard", String((error as Error)?.stack ?? error));
  process.on("unhandledRejection", onRejection);
  try {
    await world.run();
    // Node reports unheard rejections only between turns of its event loop.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("unhandledRejection", onRejection);
  }
  return world.report();
}

/**
 * Every process knows every type. A worker beside the store that does not know a type claims its jobs and gives them back
 * before one far away can claim them (SEMANTICS 3.10).
 */
function withAllTypes(plan: Plan): Plan {
  return { ...plan, processes: plan.processes.map((process) => ({ ...process, types: plan.types })) };
}

function planFor({ seed, isDistant, isFair, isBusy }: SimOptions): Plan {
  const fair = isFair || isBusy ? withFairness(planOf(seed)) : planOf(seed);
  const plan = isBusy ? withRounds(fair) : fair;
  return isDistant ? withAllTypes(plan) : plan;
}

/** How far the machine of each process is away; one that is started again may stand elsewhere. */
function distances(seed: number): (machine: Machine) => number {
  const known = new Map<Machine, number>();
  return (machine) => {
    const before = known.get(machine);
    if (before !== undefined) return before;
    const dice = new Dice(subSeed(seed, `distance ${machine.name}`));
    const distance = dice.chance(0.5) ? dice.between(...DISTANCE) : 0;
    known.set(machine, distance);
    return distance;
  };
}

function sumOf(counts: Iterable<number>): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return sum;
}

class World {
  readonly checker: Checker;
  readonly #plan: Plan;
  readonly #scheduler = new Scheduler();
  readonly #trace: Trace;
  readonly #store: Store;
  readonly #network: Network;
  readonly #workload: Workload;
  readonly #processes: readonly Process[];
  readonly #dice: Dice;
  readonly #homes: SimHomes | undefined;
  #figures = { ended: 0, counted: 0 };

  constructor(options: SimOptions) {
    const {
      seed,
      mutation = {},
      isDistant = false,
      isTraced = false,
      homes = 1,
      hasTwoCommits = false,
    } = options;
    const scheduler = this.#scheduler;
    const now = () => scheduler.now;
    this.#plan = planFor(options);
    this.#dice = new Dice(subSeed(seed, "chaos"));
    this.#trace = new Trace({
      isKept: isTraced,
      now: () => scheduler.now - EPOCH,
    });
    this.checker = new Checker({
      now,
      plan: this.#plan,
      homes,
      trace: this.#trace,
      troubledAt: (machine) => this.#network.troubledAt.get(machine) ?? 0,
    });
    this.#network = new Network({
      rates: this.#plan.rates,
      scheduler,
      dice: new Dice(subSeed(seed, "network")),
      trace: this.#trace,
      observer: this.checker,
      ...(isDistant && { distanceOf: distances(seed) }),
    });
    const memory = createMemoryStore({ clock: () => Math.floor(scheduler.now) });
    const one = mutation.store?.(memory, new Dice(subSeed(seed, "mutation"))) ?? memory;
    this.#homes = homes === 1 ? undefined : this.#openHomes(homes, seed, mutation.homes);
    this.#store = this.#homes?.store ?? one;
    this.#workload = new Workload(this.#plan, this.checker, this.#trace);
    const watch = new StoreWatch(one, this.checker);
    const surroundings: Surroundings = {
      plan: this.#plan,
      scheduler,
      network: this.#network,
      connect: (machine) =>
        this.#homes?.connect(machine) ?? this.#network.connect(machine, watch.view(machine)),
      checker: this.checker,
      trace: this.#trace,
      handlerDice: new Dice(subSeed(seed, "handlers")),
      hostileDice: new Dice(subSeed(seed, "hostile values")),
      clockRate: mutation.clockRate ?? 1,
      ...(hasTwoCommits && { secondCommitFrom: 1 }),
      enqueueChild: (context, machine) => this.#workload.enqueueChild(context, machine),
    };
    this.#processes = this.#plan.processes.map((process) => new Process(process, surroundings));
  }

  #openHomes(count: number, seed: number, mutation: HomeMutation | undefined): SimHomes {
    return new SimHomes({
      count,
      scheduler: this.#scheduler,
      network: this.#network,
      trace: this.#trace,
      dice: new Dice(subSeed(seed, "homes")),
      mutation,
      report: (rule, says) => this.checker.report(rule, says),
      observer: this.checker,
      forgot: (home, changed) => {
        this.checker.forgotWorkers((id) => homeOf(cellOfRecord(["worker", id]), count) === home);
        for (const [id, row] of changed) this.checker.forgot(id, row);
      },
    });
  }

  async run(): Promise<void> {
    const { calmAt } = this.#plan;
    await this.#configure();
    this.#scheduleChaos();
    await this.#until(() => false, EPOCH + calmAt);
    this.#trace.add("world", "faults stop");
    this.#network.rates = NO_FAULTS;
    await this.#settle();
    await this.#close();
    await this.#checkEvents();
    if (this.checker.violations.length === 0) await this.#checkFigures();
    if (this.checker.violations.length === 0) await this.#homes?.checkEnd();
  }

  async #checkEvents(): Promise<void> {
    if (!this.#plan.records || this.checker.violations.length > 0) return;
    for (const problem of this.checker.events.problems(await this.#readEvents()))
      this.checker.report("every commit is told once, and nothing else is", problem);
  }

  /** Until there are none: a store with several homes brings a bounded number of them together in one read. */
  async #readEvents(): Promise<JournalEvent[]> {
    const told: JournalEvent[] = [];
    for (let from: string | null = null; ; ) {
      const { events, cursors, cursor } = await this.#store.inspect.events(from, MOST_EVENTS);
      if (events.length === 0) return told;
      for (const [index, body] of events.entries()) {
        const event = journalEvent(body, cursors[index] as string);
        if (event) told.push(event);
      }
      from = cursor;
    }
  }

  /** A crash may lose figures of its last seconds, and nothing may ever count an end twice. */
  async #checkFigures(): Promise<void> {
    const sums = { completed: 0, discarded: 0, cancelled: 0 };
    for (const grain of GRAINS) {
      for (const { body } of await statsKind(grain).list(this.#store, null, 10_000)) {
        for (const { counts } of body.series) for (const end of ENDS) sums[end] += counts[end] ?? 0;
      }
    }
    for (const end of ENDS) {
      const happened = this.checker.endCounts.get(end) ?? 0;
      if (sums[end] > happened)
        this.checker.report("figures count nothing twice", `${sums[end]} ${end}, ${happened} happened`);
    }
    this.#figures = {
      ended: sumOf(this.checker.endCounts.values()),
      counted: sumOf(Object.values(sums)),
    };
  }

  /** Before any process is up, so that all of them go by the settings from the beginning. */
  async #configure(): Promise<void> {
    const effects = Object.entries(this.#plan.settings).map(([queue, options]) => ({
      put: ["queue", queue] as const,
      body: parseQueue(options, "queue") as unknown as Json,
      wakeAt: null,
    }));
    if (effects.length > 0) await this.#store.commit([{ effects }], { now: Math.floor(EPOCH) });
  }

  /** A violation ends the run: whatever follows from it would only hide the cause. */
  async #until(isDone: () => boolean, limit: number): Promise<boolean> {
    const isOver = () => this.checker.violations.length > 0 || isDone();
    return (await this.#scheduler.runUntil(isOver, limit)) && isDone();
  }

  #scheduleChaos(): void {
    const { operations, crashes, pauses, suspends, wallSteps, deploys, bursts, rates, calmAt } = this.#plan;
    if (rates.drop > 0) this.#homes?.scheduleFaults(calmAt);
    const repeat = (times: number, run: (process: Process) => void) => {
      for (let nth = 0; nth < times; nth++) this.#sometime(run);
    };
    repeat(operations, ({ engine, machine }) => {
      if (engine && !machine.isDead)
        this.#scheduler.after(0, machine, () => void this.#workload.operate(engine, machine));
    });
    repeat(crashes, ({ machine }) => machine.crash("kill -9"));
    repeat(pauses, ({ machine }) => machine.pause(this.#dice.between(200, 25_000), "SIGSTOP"));
    repeat(suspends, ({ machine }) => machine.suspend(this.#dice.between(300, 25_000)));
    repeat(wallSteps, ({ machine }) => machine.stepWall((this.#dice.random() - 0.5) * 7_200_000));
    repeat(deploys, (process) => {
      const drain = this.#dice.int(4) * 500;
      this.#scheduler.after(0, process.machine, () => void process.redeploy(drain));
    });
    repeat(bursts, ({ engine, machine }) => {
      if (engine && !machine.isDead)
        this.#scheduler.after(0, machine, () => void this.#workload.burst(engine, machine));
    });
  }

  #sometime(run: (process: Process) => void): void {
    const process = this.#dice.pick(this.#processes);
    this.#scheduler.after(this.#dice.random() * this.#plan.calmAt, null, () => run(process));
  }

  /**
   * Faults are over, and so is new work; what is there must end. Hundreds of jobs may wait for one slot, and some of them kill
   * the process, so the time begins anew whenever a job has ended.
   */
  async #settle(): Promise<void> {
    let step = 0;
    this.#resumeQueues();
    const left = await runUntilSettled(
      { scheduler: this.#scheduler },
      () => this.checker.violations.length > 0,
      SETTLES_WITHIN,
      async () => {
        this.checker.checkSignals();
        const open = this.#openJobs();
        // More than once: a process that stood still may have paused a queue just after the last time.
        if (open.length > 0 && ++step % RESUME_EVERY === 0) this.#resumeQueues();
        return open;
      },
      () => sumOf(this.checker.endCounts.values()),
      SETTLE_STEP,
    );
    if (this.checker.violations.length > 0) return;
    const workers = this.#processes.map(
      ({ machine, worker }) => `${machine.name} ${JSON.stringify(worker?.status())}`,
    );
    for (const what of left) this.checker.report("everything settles", `${what}; ${workers.join("; ")}`);
  }

  /**
   * The jobs that must still end. An orphan ends when it is cancelled. Then the jobs that were excused because of it must
   * end too, or something else had stopped them.
   */
  #openJobs(): string[] {
    const unsettled = this.checker.unsettled();
    const orphans = this.checker.orphans();
    if (unsettled.length === 0 && this.checker.violations.length === 0) this.#cancel(orphans);
    return [...unsettled, ...orphans].map(
      ({ row, id }) => `job ${short(id)} is still ${row.state} in ${row.queue}, wakeAt ${row.wakeAt}`,
    );
  }

  #cancel(jobs: readonly JobLedger[]): void {
    const { engine, machine } =
      this.#processes.find((process) => process.engine && !process.machine.isDead) ?? {};
    if (!engine || !machine) return;
    for (const { id } of jobs)
      this.#scheduler.after(0, machine, () => void this.#workload.cancel(engine, machine, id));
  }

  #resumeQueues(): void {
    for (const { engine, machine } of this.#processes) {
      if (engine && !machine.isDead)
        this.#scheduler.after(0, machine, () => void this.#workload.resumeAll(engine, machine));
    }
  }

  async #close(): Promise<void> {
    const open = this.#processes.filter(({ engine, machine }) => engine && !machine.isDead);
    for (const process of this.#processes) process.retire();
    for (const process of open)
      this.#scheduler.after(0, process.machine, () => void process.close(FINAL_DRAIN));
    // A handler that runs past its verdict may still take its process down, which ends it as well.
    const isClosed = () => open.every(({ machine }) => machine.isClosed || machine.isDead);
    if (
      (await this.#until(isClosed, this.#scheduler.now + CLOSES_WITHIN)) ||
      this.checker.violations.length > 0
    )
      return;
    for (const { machine } of open)
      if (!machine.isClosed)
        this.checker.report("close() resolves in time", `${machine.name} does not close`);
  }

  report(): SimReport {
    return {
      seed: this.#plan.seed,
      violations: this.checker.violations,
      trace: this.#trace,
      jobs: this.checker.jobs.size,
      runs: this.checker.runs.length,
      events: this.#scheduler.happened,
      figures: this.#figures,
      passedOver: this.checker.fair.passedOver,
      commitsBeside: this.#network.commitsBeside,
      inRounds: this.checker.fair.inRounds,
      duration: this.#scheduler.now - EPOCH,
    };
  }
}
