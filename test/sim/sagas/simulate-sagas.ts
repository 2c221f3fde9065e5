import { CurfewError } from "../../../src/core/errors.ts";
import { decodeRecord, type SagaRecord } from "../../../src/core/saga/saga-record.ts";
import type { Engine } from "../../../src/engine/engine.ts";
import type { Store } from "../../../src/ports/store.ts";
import { Dice, subSeed } from "../dice.ts";
import { MILD, type Place, scatterFaults } from "../fleet.ts";
import { FleetWorld } from "../fleet-world.ts";
import type { Machine } from "../machine.ts";
import { NO_FAULTS } from "../plan.ts";
import { EPOCH } from "../scheduler.ts";
import { runUntilSettled, type WorldOptions, type WorldReport } from "../world.ts";
import { numberOf, SagaChecker } from "./saga-checker.ts";
import { KEYS, Scripts, type SimSaga, simSaga, undoNumber } from "./sim-saga.ts";

export interface SagaSimReport extends WorldReport {
  readonly steps: number;
  readonly timeouts: number;
}

const SAGAS = ["s0", "s1", "s2"];
const LEASE = "10s";
/**
 * Ten tries take eleven minutes at most, and messages of one saga wait for each other. So within this time the next event
 * is handled, dead or taken back, however many are left.
 */
const NEXT_SETTLES_WITHIN = 15 * 60_000;

/** One world of processes that host the same sagas, from its seed to its end. */
export async function simulateSagas(options: WorldOptions): Promise<SagaSimReport> {
  return new SagaWorld(options).run();
}

/** A place in which a process runs; whenever it dies, it is started again as a new process. */
interface SagaPlace extends Place {
  saga?: SimSaga | undefined;
}

class SagaWorld extends FleetWorld {
  readonly #checker: SagaChecker;
  protected override readonly store: Store;
  readonly #scripts: Scripts;
  readonly #places: SagaPlace[];
  readonly #retention: "0s" | "3s" | "1d";
  readonly #onFailure: "keep" | "compensate";
  /** Half of the worlds record what happens in them. */
  readonly #events: "durable" | "off";
  #orders = 0;

  constructor(options: WorldOptions) {
    super("sagas", options, MILD);
    const { seed, scheduler, trace, memory } = this.world;
    this.#events = seed % 2 === 0 ? "durable" : "off";
    this.#checker = new SagaChecker(() => scheduler.now, trace);
    this.store = this.world.mutated(this.#checker.watch(memory));
    this.#scripts = new Scripts(new Dice(subSeed(seed, "scripts")));
    this.#retention = this.dice.pick(["0s", "3s", "1d"] as const);
    this.#onFailure = this.dice.pick(["keep", "compensate"] as const);
    this.#places = this.startProcesses<SagaPlace>(
      [50, 4_000],
      (engine, machine, place) => {
        place.saga = simSaga(machine, this.#checker, this.#retention, this.#onFailure);
        engine.host([place.saga]);
        this.trace.add(machine.name, "is up");
      },
      { timeoutLease: LEASE, events: this.#events },
    );
    if (this.isTroubled) scatterFaults(this.world, this.#places, { span: 30_000, crashes: 4 });
  }

  #schedule(): void {
    const times = 30 + this.dice.int(40);
    this.operateOften(this.#places, 30_000, times, async (engine, machine, { saga }) => {
      if (saga) await this.#operate(engine, machine, saga);
    });
  }

  async #operate(engine: Engine, machine: Machine, saga: SimSaga): Promise<void> {
    const dice = this.dice;
    const id = dice.pick(SAGAS);
    try {
      if (dice.chance(0.07)) await engine.saga(saga, id).revoke(dice.pick(KEYS));
      else if (dice.chance(0.04)) await engine.saga(saga, id).end();
      else if (dice.chance(0.08)) await engine.saga(saga, id).compensate();
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
    const scheduler = this.scheduler;
    const isOver = () => this.#checker.violations.length > 0;
    this.#schedule();
    await scheduler.runUntil(isOver, EPOCH + 31_000);
    this.network.rates = NO_FAULTS;
    const left = await runUntilSettled(
      this.world,
      isOver,
      NEXT_SETTLES_WITHIN,
      () => this.#left(),
      () => this.#checker.settled,
    );
    if (!isOver()) {
      for (const what of left) this.#checker.report("everything settles", what);
      const { events } = await this.memory.inspect.events(null, 100_000);
      if (this.#events === "durable") this.#checker.checkEvents(events);
      else if (events.length > 0)
        this.#checker.report("nothing is recorded unless asked for", `${events.length} events`);
    }
    const { violations, steps, requested } = this.#checker;
    return { violations, steps, trace: this.trace, timeouts: requested.size, events: scheduler.happened };
  }

  async #left(): Promise<string[]> {
    const rows = await this.memory.timeouts.list({ isDead: true }, null, 1_000);
    this.#checker.sawDead(rows);
    const dead = new Set(rows.map(({ payload }) => numberOf(payload as string)));
    const left = this.#checker.unsettled(dead);
    const records = await this.memory.records.list("saga", null, 1_000);
    return [...left, ...records.flatMap(({ key, body }) => stuckOf(key[1], decodeRecord(body), dead))];
  }
}

/** A saga that is being taken back has ended, or the record names the undo that was given up. */
function stuckOf(
  saga: string,
  { completedAt, compensation, undos }: SagaRecord,
  dead: ReadonlySet<number>,
): string[] {
  if (!compensation || completedAt !== null) return [];
  const next = undos?.at(-1);
  if (!next) return [`${saga} has no undo left and has not completed`];
  const { n } = next.payload as { readonly n: number };
  const isNamed = compensation.failed?.undo === next.id;
  return isNamed && dead.has(undoNumber(n))
    ? []
    : [`${saga} is neither taken back nor reported as stuck at ${n}`];
}
