import { CurfewError } from "../../../src/core/errors.ts";
import type { Json } from "../../../src/core/schema.ts";
import { processor } from "../../../src/engine/attempt/processor.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { RESULTS } from "../../../src/engine/workflows/workflow-records.ts";
import type { Store } from "../../../src/ports/store.ts";
import { depthOf, jobsOf } from "../../../src/testing/read-store.ts";
import { Dice, subSeed } from "../dice.ts";
import { MILD, type Place, scatterFaults } from "../fleet.ts";
import { FleetWorld } from "../fleet-world.ts";
import type { Machine } from "../machine.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH } from "../scheduler.ts";
import { runUntilSettled, type WorldOptions, type WorldReport } from "../world.ts";
import { built, Specs, simSteps } from "./sim-workflow.ts";
import { type Started, WorkflowChecker } from "./workflow-checker.ts";

export interface WorkflowSimReport extends WorldReport {
  readonly workflows: number;
  readonly ends: Readonly<Record<string, number>>;
  readonly entries: number;
}

/** In which operations are drawn. */
const BUSY = 20_000;
/** Claims of dead processes run out, attempts of theirs stall after a minute, three times over and step after step. */
const SETTLES_WITHIN = 60 * 60_000;
const ENDS = ["workflow.completed", "workflow.failed", "workflow.cancelled"] as const;

/** One world of processes that work on the same workflows, from its seed to its end. */
export async function simulateWorkflows(options: WorldOptions): Promise<WorkflowSimReport> {
  return new WorkflowWorld(options).run();
}

class WorkflowWorld extends FleetWorld {
  readonly #checker: WorkflowChecker;
  protected override readonly store: Store;
  readonly #specs: Specs;
  readonly #places: Place[];

  constructor(options: WorldOptions) {
    super("workflows", options, MILD);
    const { seed, scheduler, trace, memory } = this.world;
    this.#checker = new WorkflowChecker(() => scheduler.now, trace);
    this.store = this.world.mutated(this.#checker.watch(memory));
    this.#specs = new Specs(new Dice(subSeed(seed, "specs")));
    this.#places = this.startProcesses([50, 4_000], (engine, machine) => this.#work(engine, machine));
    if (this.isTroubled) scatterFaults(this.world, this.#places, { span: BUSY, crashes: 6 });
  }

  #work(engine: Engine, machine: Machine): void {
    for (const name of ENDS)
      engine.on(name, ({ workflow }) => !machine.isDead && this.#checker.told(name, workflow));
    engine.work({
      queues: { default: { concurrency: 1 + this.dice.int(8) } },
      processors: simSteps.map((simStep) =>
        processor(simStep, async ({ id, payload, parentResults, attempt }) => {
          if (machine.isDead) return { n: payload.n };
          this.#checker.enters(machine, id, payload, parentResults);
          await machine.sleep(payload.takes);
          if (attempt <= payload.fails) throw new Error(`fails as told: ${payload.n}`);
          return { n: payload.n };
        }),
      ),
    });
    this.trace.add(machine.name, "is up");
  }

  #schedule(): void {
    const times = 12 + this.dice.int(20);
    this.operateOften(this.#places, BUSY, times, (engine, machine) => this.#operate(engine, machine));
  }

  async #operate(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.dice;
    const known = [...this.#checker.workflows.values()];
    try {
      const what = dice.random();
      if (known.length === 0 || what < 0.6) await this.#start(engine, machine);
      else if (what < 0.72) await this.#cancel(engine, machine, dice.pick(known));
      else if (what < 0.9) await this.#cancelJob(engine);
      else await this.#retryJob(engine);
    } catch (error) {
      const isExpected =
        error instanceof CurfewError &&
        ["store_failed", "closed", "invalid_state", "not_found"].includes(error.code);
      if (!isExpected && !machine.isDead)
        this.#checker.report("calls fail only as documented", String((error as Error)?.stack ?? error));
    }
  }

  async #start(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.dice;
    const spec = this.#specs.draw();
    const hasTimeout = dice.chance(0.15);
    const id = `00000000-0000-7000-8000-${String(this.#checker.workflows.size).padStart(12, "0")}`;
    const workflow = this.#checker.add(id, spec, hasTimeout);
    const timeout = `${dice.between(2_500, 20_000)}ms` as const;
    await engine.workflows.start(built(spec), { id, ...(hasTimeout && { timeout }) });
    if (!machine.isDead) workflow.isAcknowledged = true;
  }

  async #cancel(engine: Engine, machine: Machine, workflow: Started): Promise<void> {
    if (workflow.cancelled === "no") workflow.cancelled = "tried";
    await engine.workflows.cancel(workflow.id);
    if (!machine.isDead) workflow.cancelled = "done";
  }

  async #cancelJob(engine: Engine): Promise<void> {
    const jobs = [...this.#checker.jobs];
    if (jobs.length === 0) return;
    const [n, id] = this.dice.pick(jobs);
    this.#checker.cancelledByHand.add(n);
    await engine.cancel(id);
  }

  /** Of steps, only those whose workflow has ended can be retried: they run on their own then. */
  async #retryJob(engine: Engine): Promise<void> {
    const failed = [...this.#checker.ends].filter(([, end]) => end === "discarded");
    if (failed.length === 0) return;
    const [n] = this.dice.pick(failed);
    const id = this.#checker.jobs.get(n) as string;
    if (this.#checker.retried.has(id)) return;
    // From before the call on: its reply may be lost.
    this.#checker.retried.add(id);
    try {
      const { workflow } = await engine.retry(id);
      const state = this.#checker.workflows.get(workflow ?? "")?.record?.state;
      // A callback that was called is a job of its own.
      if (state === "running" && !this.#checker.isCallback(n))
        this.#checker.report("a step of a running workflow is not retried", `${n}`);
    } catch (error) {
      if (error instanceof CurfewError && error.code === "invalid_state") this.#checker.retried.delete(id);
      throw error;
    }
  }

  async run(): Promise<WorkflowSimReport> {
    const scheduler = this.scheduler;
    const isOver = () => this.#checker.violations.length > 0;
    this.#schedule();
    await scheduler.runUntil(isOver, EPOCH + BUSY + 1_000);
    this.network.rates = NO_FAULTS;
    const left = await runUntilSettled(this.world, isOver, SETTLES_WITHIN, async () => [
      ...this.#checker.unsettled(),
      ...(await this.#liveJobs()),
    ]);
    if (!isOver()) {
      for (const what of left) this.#checker.report("everything settles", what);
      await this.#check();
    }
    return this.#report();
  }

  async #liveJobs(): Promise<string[]> {
    const depth = await depthOf(this.memory);
    const live = depth.available + depth.active + depth.pending + depth.retryable + depth.scheduled;
    return live === 0 ? [] : [`${live} jobs are live`];
  }

  async #check(): Promise<void> {
    for (const workflow of this.#checker.workflows.values()) {
      const [row] = await this.memory.records.load([RESULTS.key(workflow.id)]);
      this.#checker.check(workflow, (row?.body as { value: Json } | undefined)?.value);
    }
    for (const row of await jobsOf(this.memory)) {
      if (row.options?.step) this.#checker.report("nothing is held for ever", `${row.id} is ${row.state}`);
      if (row.workflow !== null && !this.#checker.workflows.get(row.workflow)?.record)
        this.#checker.report("a workflow is stored whole", `${row.id} belongs to none`);
    }
  }

  #report(): WorkflowSimReport {
    const { violations, workflows, entered } = this.#checker;
    const ends: Record<string, number> = {};
    for (const { record } of workflows.values()) {
      const name = record?.state ?? "none";
      ends[name] = (ends[name] ?? 0) + 1;
    }
    return {
      violations,
      trace: this.trace,
      workflows: workflows.size,
      ends,
      entries: entered,
      events: this.scheduler.happened,
    };
  }
}
