import type { Instant } from "../../core/time.ts";
import type { System } from "../../ports/system.ts";
import { pauseAfter } from "./claim-floors.ts";

/** Rows that are written as due earlier than this before the last sweep wait for a full look. */
const MARGIN = 10_000;

/**
 * Remembers from when on rows may be due, for the reason that `ClaimFloors` has: entries of rows that were due stay in the
 * index until a vacuum. A sweep that left nothing due raises the floor. A transaction may commit a row that was due long
 * before, so everything is looked at again in bounded intervals.
 */
export class WakeFloor {
  readonly #system: Pick<System, "monotonic">;
  #clearAt: Instant = Number.NEGATIVE_INFINITY;
  #fullLookAt = 0;

  constructor(system: Pick<System, "monotonic">) {
    this.#system = system;
  }

  /** Where a look at what is due at an instant begins. Call `end` when it has its answer. */
  begin(now: Instant = Number.POSITIVE_INFINITY): { readonly from: Instant; end(): void } {
    const startedAt = this.#system.monotonic();
    if (startedAt < this.#fullLookAt && now >= this.#clearAt)
      return { from: Math.max(0, this.#clearAt - MARGIN), end: () => {} };
    return {
      from: 0,
      end: () => {
        const endedAt = this.#system.monotonic();
        this.#fullLookAt = endedAt + pauseAfter(endedAt - startedAt);
      },
    };
  }

  /** Nothing was due at this instant. */
  clear(now: Instant): void {
    this.#clearAt = Math.max(this.#clearAt, now);
  }
}
