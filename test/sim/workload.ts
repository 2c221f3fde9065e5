import { CurfewError } from "../../src/core/errors.ts";
import type { EnqueueOptions } from "../../src/core/job/enqueue/envelope.ts";
import type { QueueOptions } from "../../src/core/limit/queue-settings.ts";
import type { Duration } from "../../src/core/time.ts";
import type { AttemptContext } from "../../src/engine/attempt/processor.ts";
import type { Engine } from "../../src/engine/engine.ts";
import type { JobQuery } from "../../src/engine/find/job-query.ts";
import type { BulkResult } from "../../src/engine/operations/bulk.ts";
import type { Checker } from "./checker.ts";
import { Dice, subSeed } from "./dice.ts";
import type { Machine } from "./machine.ts";
import { expectedOf } from "./oracle.ts";
import { fairness, type Plan, retry, type SimJobType, type SimPayload, timeouts } from "./plan.ts";
import { short, type Trace } from "./trace.ts";

/** What an operation may be refused with; any other error is a fault of the engine. */
const REFUSALS: ReadonlySet<string> = new Set([
  "store_failed",
  "closed",
  "never_runs",
  "timeouts_contradict",
  "not_found",
  "invalid_state",
  "job_failed",
  "result_gone",
  "result_timeout",
  "queue_full",
  // On a store with several homes: a limit and a queue in one home, or an id of the caller's own.
  "two_homes",
]);

type Operation = (engine: Engine, machine: Machine) => Promise<void>;

/** Clients of the engines: they enqueue, cancel, extend, retry, pause and configure, and remember what they were told. */
export class Workload {
  readonly #plan: Plan;
  readonly #checker: Checker;
  readonly #trace: Trace;
  readonly #dice: Dice;
  readonly #limitDice: Dice;
  readonly #fairDice: Dice;
  readonly #ids: string[] = [];
  readonly #known: string[] = [];
  readonly #queues = { areConfigured: false };
  #numbers = 0;

  constructor(plan: Plan, checker: Checker, trace: Trace) {
    this.#plan = plan;
    this.#checker = checker;
    this.#trace = trace;
    this.#dice = new Dice(subSeed(plan.seed, "workload"));
    this.#limitDice = new Dice(subSeed(plan.seed, "limited"));
    this.#fairDice = new Dice(subSeed(plan.seed, "fair jobs"));
  }

  /** Does one random thing; never rejects. */
  async operate(engine: Engine, machine: Machine): Promise<void> {
    const operation = this.#draw();
    await this.#guarded(machine, () => operation(engine, machine));
  }

  async #guarded(machine: Machine, run: () => Promise<void>): Promise<void> {
    try {
      await run();
    } catch (error) {
      const code = error instanceof CurfewError ? error.code : undefined;
      if (machine.isDead || (code !== undefined && REFUSALS.has(code))) return;
      this.#checker.report(
        "calls fail only as documented",
        `${machine.name}: ${(error as Error)?.stack ?? error}`,
      );
    }
  }

  #draw(): Operation {
    const draw = this.#dice.int(100);
    if (draw < 50 || this.#known.length === 0) return (engine, machine) => this.#enqueue(engine, machine);
    if (draw < 58) return (engine, machine) => this.#enqueueMany(engine, machine);
    if (draw < 68) return (engine, machine) => this.#cancel(engine, machine, this.#dice.pick(this.#known));
    if (draw < 70) return (engine, machine) => this.#cancelMany(engine, machine);
    if (draw < 80) return (engine, machine) => this.#extend(engine, machine);
    if (draw < 86) return (engine, machine) => this.#retry(engine, machine);
    if (draw < 88) return (engine, machine) => this.#retryMany(engine, machine);
    if (draw < 93) return (engine, machine) => this.#limitKey(engine, machine, "pause");
    if (draw < 97) return (engine, machine) => this.#limitKey(engine, machine, "resume");
    return (engine, machine) => this.#configure(engine, machine);
  }

  /** Lets everything flow again: a queue that stays paused is not a fault, but nothing in it would ever end. */
  async resumeAll(engine: Engine, machine: Machine): Promise<void> {
    for (const queue of this.#plan.queues) await this.#guarded(machine, () => engine.queues.resume(queue));
  }

  async #limitKey(engine: Engine, machine: Machine, what: "pause" | "resume"): Promise<void> {
    const queue = this.#dice.pick(this.#plan.queues);
    this.#trace.add(machine.name, `queue ${queue}: ${what}`);
    await engine.queues[what](queue);
  }

  async #enqueue(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.#dice;
    const type = dice.pick(this.#plan.types);
    const options = this.#options(engine);
    const payload = this.#payload(type, options);
    const handle = await engine.enqueue(type.definition, payload, options);
    if (machine.isDead) return;
    this.#acknowledge(machine, handle.id);
    if (handle.duplicate && options.id === undefined)
      this.#checker.report("a fresh id is never a duplicate", `job ${short(handle.id)}`);
    if (dice.chance(0.3)) {
      const within = dice.chance(0.5) ? { within: `${dice.between(10, 60_000)}ms` as Duration } : {};
      void this.#guarded(machine, async () => void (await handle.result(within)));
    }
  }

  async #enqueueMany(engine: Engine, machine: Machine): Promise<void> {
    const type = this.#dice.pick(this.#plan.types);
    const { id: _id, ...options } = this.#options(engine);
    const payloads = Array.from({ length: 1 + this.#dice.int(8) }, () => this.#payload(type, options));
    for (const { id } of await engine.enqueueMany(type.definition, payloads, options))
      if (!machine.isDead) this.#acknowledge(machine, id);
  }

  /** Many jobs of one customer, and then some of others; never rejects. */
  async burst(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.#fairDice;
    const type = dice.pick(this.#plan.types);
    const priority = dice.chance(0.5) ? {} : { priority: dice.pick([0, 5]) };
    await this.#guarded(machine, async () => {
      for (const most of [this.#plan.burst, 4, 4]) {
        const options = { fairKey: dice.pick(this.#plan.fairKeys), ...priority };
        const payloads = Array.from({ length: 1 + dice.int(most) }, () => this.#payload(type, options));
        for (const { id } of await engine.enqueueMany(type.definition, payloads, options))
          if (!machine.isDead) this.#acknowledge(machine, id);
      }
    });
  }

  #acknowledge(machine: Machine, id: string): void {
    this.#trace.add(machine.name, `${short(id)} is acknowledged`);
    this.#checker.acknowledged(id);
    this.#known.push(id);
  }

  #payload(type: SimJobType, options: EnqueueOptions): SimPayload {
    const n = this.#numbers++;
    this.#checker.expected.set(n, expectedOf(options, type, this.#queues, this.#checker.now));
    // Few, because each of them takes everything in its process down with it.
    return this.#dice.chance(0.015) ? { n, kills: this.#dice.pick(["at once", "soon"] as const) } : { n };
  }

  #options(engine: Engine): EnqueueOptions {
    const dice = this.#dice;
    const at = engine.now() + dice.between(10, 15_000);
    return {
      ...(dice.chance(0.3) && { timeouts: timeouts(dice, 0.3) }),
      ...(dice.chance(0.1) && { retry: retry(dice) }),
      ...(dice.chance(0.1) && { retention: dice.pick(["0s", "5s", "1d"] as const) }),
      ...(dice.chance(0.2) && { priority: dice.int(201) - 100 }),
      ...(dice.chance(0.1) && { queue: dice.pick(this.#plan.queues) }),
      ...(dice.chance(0.1) && { expiresAt: new Date(at + dice.between(10, 20_000)) }),
      ...(dice.chance(0.2) && { id: this.#givenId() }),
      ...this.#limit(),
      ...this.#fairKey(),
      ...this.#start(at),
    };
  }

  #limit(): Pick<EnqueueOptions, "limit"> {
    const { limits } = this.#plan;
    return limits.length > 0 && this.#limitDice.chance(0.5) ? { limit: this.#limitDice.pick(limits) } : {};
  }

  #fairKey(): Pick<EnqueueOptions, "fairKey"> {
    const { fairKeys } = this.#plan;
    return fairKeys.length > 0 && this.#fairDice.chance(0.9)
      ? { fairKey: this.#fairDice.pick(fairKeys) }
      : {};
  }

  #start(at: number): Pick<EnqueueOptions, "delay" | "at"> {
    const dice = this.#dice;
    if (dice.chance(0.2)) return { delay: `${dice.between(1, 15_000)}ms` };
    return dice.chance(0.1) ? { at: new Date(at) } : {};
  }

  /** An id of the caller's own, sometimes one that was used before. */
  #givenId(): string {
    const dice = this.#dice;
    if (this.#ids.length > 0 && dice.chance(0.5)) return dice.pick(this.#ids);
    const hex = (length: number) => Array.from({ length }, () => dice.int(16).toString(16)).join("");
    const id = `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`;
    this.#ids.push(id);
    return id;
  }

  /** Called by handlers: the child inherits what is left of its parent's total. */
  async enqueueChild(context: AttemptContext, machine: Machine): Promise<void> {
    const type = this.#dice.pick(this.#plan.types);
    const payload = { ...this.#payload(type, {}), parent: context.id };
    await this.#guarded(machine, async () => {
      const handle = await context.enqueue(type.definition, payload);
      if (!machine.isDead) this.#acknowledge(machine, handle.id);
    });
  }

  /** Cancels one job; never rejects. */
  async cancel(engine: Engine, machine: Machine, id: string): Promise<void> {
    await this.#guarded(machine, () => this.#cancel(engine, machine, id));
  }

  async #cancel(engine: Engine, machine: Machine, id: string): Promise<void> {
    this.#trace.add(machine.name, `${short(id)} is to be cancelled`);
    const row = await engine.cancel(id);
    if (row.state !== "cancelled")
      this.#checker.report("a cancel is a verdict", `job ${short(id)} is ${row.state}`);
  }

  /** A few known jobs, or all of one type: what an operator would name. */
  #query(): JobQuery {
    const dice = this.#dice;
    if (dice.chance(0.3)) return { type: dice.pick(this.#plan.types).definition.type };
    return { ids: Array.from({ length: 1 + dice.int(5) }, () => dice.pick(this.#known)) };
  }

  async #cancelMany(engine: Engine, machine: Machine): Promise<void> {
    this.#trace.add(machine.name, "many are to be cancelled");
    this.#account("cancel", await engine.bulk.cancel(this.#query(), { limit: 1 + this.#dice.int(20) }));
  }

  async #retryMany(engine: Engine, machine: Machine): Promise<void> {
    const query = this.#query();
    // Any of them may be retried, so the checker must expect it of all that are meant.
    for (const job of this.#checker.jobs.values())
      if (query.ids?.includes(job.id) ?? true) job.retriesAsked += 1;
    this.#trace.add(machine.name, "many are to be retried by hand");
    this.#account("retry", await engine.bulk.retry(query));
  }

  #account(action: string, { matched, done, skipped, failed }: BulkResult): void {
    if (matched === done + skipped + failed) return;
    const says = `${action}: ${matched} matched, ${done} done, ${skipped} skipped, ${failed} failed`;
    this.#checker.report("a bulk action accounts for every job that it meant", says);
  }

  async #extend(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.#dice;
    const id = dice.pick(this.#known);
    const job = this.#checker.jobs.get(id);
    if (job) job.isExtended = true;
    this.#trace.add(machine.name, `${short(id)} is to be extended`);
    const limit = () => (dice.chance(0.2) ? "none" : (`${dice.between(100, 60_000)}ms` as Duration));
    await engine.extend(id, {
      attempt: limit(),
      ...(dice.chance(0.5) && { total: limit() }),
      ...(dice.chance(0.3) && { heartbeat: limit() }),
    });
  }

  async #retry(engine: Engine, machine: Machine): Promise<void> {
    const id = this.#dice.pick(this.#known);
    const job = this.#checker.jobs.get(id);
    if (job) job.retriesAsked += 1;
    this.#trace.add(machine.name, `${short(id)} is to be retried by hand`);
    await engine.retry(id, this.#dice.chance(0.3) ? { keepDeadline: true } : {});
  }

  /** Only what the checker does not need to know exactly: other processes see it when they next look. */
  async #configure(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.#dice;
    const queue = dice.pick(this.#plan.queues);
    this.#queues.areConfigured = true;
    this.#trace.add(machine.name, `queue ${queue} is configured`);
    await engine.queues.configure(queue, {
      ...this.#plan.settings[queue],
      ...this.#newWeights(queue),
      timeouts: { attempt: `${dice.between(100, 30_000)}ms`, grace: `${dice.between(1, 3_000)}ms` },
    });
  }

  #newWeights(queue: string): Pick<QueueOptions, "fair"> {
    if (!this.#plan.settings[queue]?.fair) return {};
    const fair = fairness(this.#fairDice, this.#plan.fairKeys);
    this.#checker.fair.allow(queue, fair);
    return { fair };
  }
}
