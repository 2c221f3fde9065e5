import { z } from "zod";
import { CurfewError } from "../../../src/core/errors.ts";
import type { SagaContext } from "../../../src/core/saga/saga.ts";
import { defineSaga } from "../../../src/core/saga/saga-definition.ts";
import { processor } from "../../../src/engine/attempt/processor.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import { defineJob } from "../../../src/index.ts";
import type { Store } from "../../../src/ports/store.ts";
import { depthOf } from "../../../src/testing/read-store.ts";
import { Dice, subSeed } from "../dice.ts";
import { MILD, type Place, scatterFaults } from "../fleet.ts";
import { FleetWorld } from "../fleet-world.ts";
import type { Machine } from "../machine.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH } from "../scheduler.ts";
import { runUntilSettled, type WorldOptions, type WorldReport } from "../world.ts";
import { OutboxChecker } from "./outbox-checker.ts";
import { type HomeMutation, SimHomes } from "./sim-homes.ts";

export interface OutboxOptions extends Omit<WorldOptions, "mutate"> {
  readonly mutation?: HomeMutation;
}

export interface OutboxReport extends WorldReport {
  /** Things that a step owed to another home and that came. */
  readonly done: number;
  readonly messages: number;
}

const HOMES = 4;
const SPAN = 25_000;
const SETTLES_WITHIN = 15 * 60_000;
const CONCURRENCY = 2;
const LOOK_EVERY = 250;
const KINDS = ["plain", "limited", "unique", "message"] as const;

interface Owed {
  readonly kind: (typeof KINDS)[number];
  readonly n: number;
  readonly key: string;
}

const Item = z.custom<Owed>();
const Numbered = z.object({ n: z.int(), key: z.string() });
/** Ends a job whose verdict its home forgot. */
const timeouts = { attempt: "20s" } as const;
const plain = defineJob({ type: "sim.plain", payload: Numbered, retention: "0s", timeouts });
const limited = defineJob({
  type: "sim.limited",
  payload: Numbered,
  limit: { key: ({ key }) => key, concurrency: CONCURRENCY },
  retention: "0s",
  timeouts,
});
const unique = defineJob({ type: "sim.unique", payload: Numbered, unique: { payload: ["key"] }, timeouts });

/** One world in which steps of sagas enqueue jobs and send messages into other homes, from its seed to its end. */
export async function simulateOutbox(options: OutboxOptions): Promise<OutboxReport> {
  return new OutboxWorld(options).run();
}

class OutboxWorld extends FleetWorld {
  readonly #checker: OutboxChecker;
  readonly #homes: SimHomes;
  protected override readonly store: Store;
  readonly #places: Place[];
  #numbers = 0;

  constructor({ mutation, ...options }: OutboxOptions) {
    super("outbox", options, MILD);
    const { seed, scheduler, trace, network } = { ...this.world, network: this.network };
    this.#checker = new OutboxChecker(() => scheduler.now, trace);
    this.#homes = new SimHomes({
      count: HOMES,
      scheduler,
      network,
      trace,
      dice: new Dice(subSeed(seed, "homes")),
      mutation: {
        ...mutation,
        home: (store, dice) => this.#checker.watch(mutation?.home?.(store, dice) ?? store),
      },
      report: (rule, says) => this.#checker.report(rule, says),
      forgot: () => this.#checker.forgot(),
    });
    this.store = this.#homes.store;
    this.#places = this.startProcesses([50, 4_000], (engine, machine) => this.#serve(engine, machine), {
      timeoutLease: "10s",
    });
    if (!this.isTroubled) return;
    scatterFaults(this.world, this.#places, { span: SPAN, crashes: 6 });
    // In every other world no home forgets anything, so that nothing is excused.
    this.#homes.scheduleFaults(SPAN, seed % 2 === 0);
  }

  protected override connect(machine: Machine): Store {
    return this.#homes.connect(machine);
  }

  #serve(engine: Engine, machine: Machine): void {
    engine.host([this.#giver(machine), this.#taker(machine)]);
    engine.work({
      queues: { default: { concurrency: 5 } },
      processors: [plain, limited, unique].map((job) =>
        processor(job, async ({ payload }) => {
          await machine.sleep(1 + (payload.n % 9) * 40);
          if (!machine.isDead) this.#checker.didDo(payload.n);
        }),
      ),
    });
    this.trace.add(machine.name, "is up");
  }

  /** Each message makes it owe some jobs and messages. Its state says which, so that the commit names them. */
  #giver(machine: Machine) {
    const taker = this.#taker(machine);
    const give = async (items: readonly Owed[], saga: SagaContext) => {
      await machine.sleep(2);
      for (const { kind, n, key } of items) {
        if (kind === "message") saga.send(taker, "take", { id: key, n });
        else if (kind === "plain") saga.enqueue(plain, { n, key });
        else saga.enqueue(kind === "limited" ? limited : unique, { n, key });
      }
      // A job whose unique key is held is not owed.
      return { given: items.flatMap(({ kind, n }) => (kind === "unique" ? [] : [n])) };
    };
    return defineSaga({
      type: "giver",
      state: z.object({ given: z.array(z.int()) }),
      messages: { give: z.object({ id: z.string(), items: z.array(Item) }) },
      correlate: { give: ({ id }) => id },
      startedBy: "give",
      start: ({ items }, saga) => give(items, saga as unknown as SagaContext),
      on: { give: (_state, { items }, saga) => give(items, saga as unknown as SagaContext) },
    });
  }

  #taker(machine: Machine) {
    const take = ({ n }: { readonly n: number }, got: readonly number[]) => {
      if (got.includes(n) && !this.#checker.excused.has(n))
        this.#checker.report("what a step owes comes once", `message ${n} was handled twice`);
      if (!machine.isDead) this.#checker.didDo(n);
      return { got: [...got, n] };
    };
    return defineSaga({
      type: "taker",
      state: z.object({ got: z.array(z.int()) }),
      messages: { take: z.object({ id: z.string(), n: z.int() }) },
      correlate: { take: ({ id }) => id },
      startedBy: "take",
      start: (message) => take(message, []),
      on: { take: ({ got }, message) => take(message, got) },
    });
  }

  async #operate(engine: Engine, machine: Machine): Promise<void> {
    const dice = this.dice;
    const key = `k${dice.int(5)}`;
    try {
      const job = dice.pick([limited, unique]);
      if (dice.chance(0.2)) await engine.enqueue(job, { n: this.#numbers++, key });
      else await engine.send(this.#giver(machine), "give", { id: `s${dice.int(8)}`, items: this.#items() });
    } catch (error) {
      const isExpected = error instanceof CurfewError && ["store_failed", "closed"].includes(error.code);
      if (!isExpected && !machine.isDead)
        this.#checker.report("calls fail only as documented", String((error as Error)?.stack ?? error));
    }
  }

  #items(): Owed[] {
    return Array.from({ length: 1 + this.dice.int(4) }, () => ({
      kind: this.dice.pick(KINDS),
      n: this.#numbers++,
      key: `k${this.dice.int(5)}`,
    }));
  }

  /** Looks at all homes again and again. */
  #lookLater(): void {
    this.scheduler.after(LOOK_EVERY, null, () => {
      void this.#checker.look(this.#homes.stores, CONCURRENCY);
      this.#lookLater();
    });
  }

  async run(): Promise<OutboxReport> {
    const isOver = () => this.#checker.violations.length > 0;
    this.operateOften(this.#places, SPAN, 25 + this.dice.int(25), (engine, machine) =>
      this.#operate(engine, machine),
    );
    this.#lookLater();
    await this.scheduler.runUntil(isOver, EPOCH + SPAN + 1_000);
    this.network.rates = NO_FAULTS;
    const left = await runUntilSettled(
      this.world,
      isOver,
      SETTLES_WITHIN,
      () => this.#left(),
      () => this.#checker.done,
    );
    if (!isOver()) {
      for (const what of left) this.#checker.report("everything settles", what);
      await this.#homes.checkEnd();
    }
    const { violations, done } = this.#checker;
    const { messages } = this.#homes.rules;
    return { violations, trace: this.trace, events: this.scheduler.happened, done, messages };
  }

  async #left(): Promise<string[]> {
    const depth = await depthOf(this.store);
    const live = depth.available + depth.active + depth.pending + depth.retryable + depth.scheduled;
    const { pending, leased } = await this.store.timeouts.count({ now: Math.floor(this.scheduler.now) });
    return [
      ...this.#checker.left(),
      ...(live > 0 ? [`${live} jobs are live`] : []),
      ...(pending + leased > 0 ? [`${pending + leased} messages wait`] : []),
    ];
  }
}
