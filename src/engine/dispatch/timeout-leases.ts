import { StopError } from "../../core/job/reasons.ts";
import type { Instant } from "../../core/time.ts";
import type { Owner, TimeoutRow } from "../../core/timeout/timeout.ts";
import { BATCH_LIMIT } from "../../ports/store.ts";
import type { System, Timer } from "../../ports/system.ts";
import type { TimeoutStore } from "../../ports/timeouts.ts";

/** A timeout under way to its destination. */
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

interface LeaseParts {
  readonly system: Pick<System, "after">;
  readonly timeouts: Pick<TimeoutStore, "extend">;
  readonly clock: { now(): Instant; upper(): Instant };
  storeFailed(error: unknown, during: string): void;
}

/** Renews the leases of what is under way for long, and tells a delivery whose lease is lost. */
export class Leases {
  readonly #parts: LeaseParts;
  readonly #lease: number;
  readonly #held = new Set<LeasedDelivery>();
  #timer: Timer | undefined;

  constructor(parts: LeaseParts, lease: number) {
    this.#parts = parts;
    this.#lease = lease;
  }

  get held(): Iterable<LeasedDelivery> {
    return this.#held;
  }

  get size(): number {
    return this.#held.size;
  }

  add(delivery: LeasedDelivery): void {
    this.#held.add(delivery);
    this.#arm(this.#lease / 4);
  }

  delete(delivery: LeasedDelivery): void {
    this.#held.delete(delivery);
    if (this.#held.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(delay: number): void {
    this.#timer ??= this.#parts.system.after(delay, () => {
      void this.#renew().then((rest) => {
        this.#timer = undefined;
        if (this.#held.size > 0) this.#arm(rest);
      });
    });
  }

  /** Answers how long to rest; a store that fails is asked again sooner. */
  async #renew(): Promise<number> {
    const { clock, timeouts, storeFailed } = this.#parts;
    const now = clock.now();
    const due: LeasedDelivery[] = [];
    for (const delivery of this.#held) {
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
