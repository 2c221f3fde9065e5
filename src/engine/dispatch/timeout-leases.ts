import { StopError } from "../../core/job/reasons.ts";
import type { Instant } from "../../core/time.ts";
import type { Owner, TimeoutRow } from "../../core/timeout/timeout.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";

/** A timeout that is being delivered. */
export class LeasedDelivery {
  readonly row: TimeoutRow;
  readonly owner: Owner;
  leaseUntil: Instant;
  readonly #controller = new AbortController();

  constructor(row: TimeoutRow, owner: Owner, leaseUntil: Instant) {
    this.row = row;
    this.owner = owner;
    this.leaseUntil = leaseUntil;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(kind: "lost" | "shutdown"): void {
    this.#controller.abort(new StopError(kind, 0, null));
  }
}

interface LeaseDeps {
  readonly system: Pick<System, "after">;
  readonly timeouts: Pick<TimeoutStore, "extend">;
  readonly clock: { now(): Instant; upper(): Instant };
  storeFailed(error: unknown, during: string): void;
}

/** Renews the leases of long deliveries, and aborts deliveries whose lease is lost. */
export class Leases {
  readonly #deps: LeaseDeps;
  readonly #lease: number;
  readonly #deliveries = new Set<LeasedDelivery>();
  #timer: Timer | undefined;

  constructor(deps: LeaseDeps, lease: number) {
    this.#deps = deps;
    this.#lease = lease;
  }

  get deliveries(): Iterable<LeasedDelivery> {
    return this.#deliveries;
  }

  get size(): number {
    return this.#deliveries.size;
  }

  add(delivery: LeasedDelivery): void {
    this.#deliveries.add(delivery);
    this.#arm(this.#lease / 4);
  }

  delete(delivery: LeasedDelivery): void {
    this.#deliveries.delete(delivery);
    if (this.#deliveries.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delay: number): void {
    this.#timer ??= this.#deps.system.after(delay, () => {
      void this.#renew().then((rest) => {
        this.#timer = undefined;
        if (this.#deliveries.size > 0) this.#arm(rest);
      });
    });
  }

  /** Returns the pause until the next renewal; it is shorter after a store failure. */
  async #renew(): Promise<number> {
    const { clock, timeouts, storeFailed } = this.#deps;
    const now = clock.now();
    const due: LeasedDelivery[] = [];
    for (const delivery of this.#deliveries) {
      if (delivery.leaseUntil <= clock.upper()) delivery.abort("lost");
      else if (delivery.leaseUntil - now <= (this.#lease * 3) / 4) due.push(delivery);
    }
    const leaseUntil = now + this.#lease;
    try {
      for (let from = 0; from < due.length; from += BATCH_LIMIT) {
        const batch = due.slice(from, from + BATCH_LIMIT);
        const extended = batch.map(({ row, owner }) => ({ id: row.id, owner, leaseUntil }));
        const answers = await timeouts.extend(extended, { now });
        for (const [index, delivery] of batch.entries()) {
          if (answers[index] === "ok") delivery.leaseUntil = leaseUntil;
          else delivery.abort("lost");
        }
      }
      return this.#lease / 4;
    } catch (error) {
      storeFailed(error, "extend");
      return this.#lease / 20;
    }
  }
}
