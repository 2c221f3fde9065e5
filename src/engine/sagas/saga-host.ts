import { CurfewError, refuse } from "../../core/errors.ts";
import { type AnySaga, planOf, type SagaPlan } from "../../core/saga/saga.ts";
import type { SagaEvent } from "../../core/saga/step.ts";
import type { Instant } from "../../core/time.ts";
import type { TimeoutRow } from "../../core/timeout/timeout.ts";
import { isInstance } from "../../core/user-values.ts";
import type { Delivery, DeliveryLease, Destination } from "../dispatch/destination.ts";
import { isLastTry } from "../dispatch/tries.ts";
import type { Chains } from "../runtime/serial-by-key.ts";
import { announceFailure } from "./announce-saga.ts";
import { compensate, noteFailedUndo } from "./compensate.ts";
import { destinationOf, readRow, type SagaName } from "./saga-addresses.ts";
import { deliver, type StepContext } from "./saga-runner.ts";

/** How long an event waits for a process with the newer definition that wrote its saga's state. */
const NEWER_PAUSE = 5_000;

/** At most this many events of one saga wait in this process; further ones are postponed by CHAIN_PAUSE. */
const CHAIN_LIMIT = 20;
const CHAIN_PAUSE = 100;

/** Delivers the messages and timeouts of one saga type in this process. */
export class SagaDestination implements Destination {
  readonly name: string;
  readonly #context: StepContext;
  readonly #plan: SagaPlan;
  readonly #chains: Chains;
  /** Sagas whose events wait in the store, and until when. Later events must not overtake them. */
  readonly #held = new Map<string, Instant>();

  constructor(context: StepContext, plan: SagaPlan, chains: Chains) {
    this.#context = context;
    this.#plan = plan;
    this.#chains = chains;
    this.name = destinationOf(plan.type);
  }

  /** Runs the events of one saga one after the other: at once, all but one would conflict and run again. */
  async deliver(row: TimeoutRow, lease: DeliveryLease): Promise<Delivery> {
    const key = row.saga?.[1] ?? row.id;
    // A saga with a full mailbox must not take all slots while its messages wait for each other.
    const notBefore = this.#heldUntil(key);
    if (notBefore !== null) return { notBefore };
    return this.#chains.run(key, () => this.#deliver(row, lease));
  }

  #heldUntil(key: string): Instant | null {
    const now = this.#context.clock.now();
    const heldUntil = this.#held.get(key);
    if (heldUntil !== undefined && heldUntil > now) return heldUntil;
    this.#held.delete(key);
    if (this.#chains.length(key) < CHAIN_LIMIT) return null;
    this.#held.set(key, now + CHAIN_PAUSE);
    return now + CHAIN_PAUSE;
  }

  /** The last try has failed. A failed undo is noted in the record; any other event may begin the compensation. */
  async #gaveUp(saga: SagaName, event: SagaEvent, error: unknown): Promise<void> {
    try {
      if (event.kind === "undo") await noteFailedUndo(this.#context, saga, event, error);
      else if (this.#plan.onFailure === "compensate")
        await compensate(this.#context, saga, "failure", this.#plan);
    } catch (failure) {
      this.#context.storeFailed(failure, "compensate");
    }
  }

  async #deliver(row: TimeoutRow, lease: DeliveryLease): Promise<Delivery> {
    try {
      return await deliver(this.#context, this.#plan, row, lease);
    } catch (error) {
      const { saga, event } = readRow(row);
      announceFailure(this.#context, saga, event, error);
      const { logger, clock } = this.#context;
      logger.warn(
        { error, saga: saga.type, id: saga.id, [event.kind]: event.name },
        "a saga handler failed; its event is tried again",
      );
      const isTooNew = isInstance(error, CurfewError) && error.code === "newer_state";
      if (isTooNew) return { again: clock.now() + NEWER_PAUSE };
      if (isLastTry(row)) await this.#gaveUp(saga, event, error);
      throw error;
    }
  }
}

/** Checks the sagas to host and returns their plans. */
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
