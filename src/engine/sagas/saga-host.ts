import { CurfewError, refuse } from "../../core/errors.ts";
import { type AnySaga, planOf, type SagaPlan } from "../../core/saga/saga.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import type { Delivery, DeliveryLease, Destination } from "../dispatch/destination.ts";
import type { Chains } from "../runtime/serial-by-key.ts";
import { announceFailure } from "./announce-saga.ts";
import { destinationOf, readRow } from "./saga-addresses.ts";
import { deliver, type RunnerParts } from "./saga-runner.ts";

/** How long an event waits for a process that knows the version which its saga was written by. */
const NEWER_PAUSE = 5_000;

/** How many events of one saga may wait for each other in this process, and how long the others stay away. */
const CHAIN_LIMIT = 20;
const CHAIN_PAUSE = 100;

/** Sagas of one type in this process: what is due for one of them is handled here. */
export class SagaDestination implements Destination {
  readonly name: string;
  readonly #parts: RunnerParts;
  readonly #plan: SagaPlan;
  readonly #chains: Chains;

  constructor(parts: RunnerParts, plan: SagaPlan, chains: Chains) {
    this.#parts = parts;
    this.#plan = plan;
    this.#chains = chains;
    this.name = destinationOf(plan.type);
  }

  /** Events of one saga go one after the other: two at once would only take each other's step again. */
  async deliver(row: TimeoutRow, hold: DeliveryLease): Promise<Delivery> {
    const key = row.saga?.[1] ?? row.id;
    // One saga with a full mailbox must not take the places of all the others while its messages wait for each other.
    if (this.#chains.length(key) >= CHAIN_LIMIT) return { again: this.#parts.clock.now() + CHAIN_PAUSE };
    return this.#chains.run(key, () => this.#deliver(row, hold));
  }

  async #deliver(row: TimeoutRow, hold: DeliveryLease): Promise<Delivery> {
    try {
      return await deliver(this.#parts, this.#plan, row, hold);
    } catch (error) {
      const { saga, event } = readRow(row);
      announceFailure(this.#parts, saga, event, error);
      const { logger, clock } = this.#parts;
      logger.warn(
        { error, saga: saga.type, id: saga.id, [event.kind]: event.name },
        "a saga's handler failed",
      );
      const isTooNew = error instanceof CurfewError && error.code === "newer_state";
      if (isTooNew) return { again: clock.now() + NEWER_PAUSE };
      throw error;
    }
  }
}

/** The plans of sagas to host, each type once. */
export function checkSagas(sagas: readonly AnySaga[]): SagaPlan[] {
  if (!Array.isArray(sagas) || sagas.length === 0) {
    throw refuse("invalid_option", "sagas", sagas, "list at least one saga made by defineSaga()");
  }
  const plans = sagas.map((saga, index) => planOf(saga, `sagas[${index}]`));
  const seen = new Set<string>();
  for (const [index, { type }] of plans.entries()) {
    if (seen.has(type)) throw refuse("invalid_option", `sagas[${index}]`, type, "list each type once");
    seen.add(type);
  }
  return plans;
}
