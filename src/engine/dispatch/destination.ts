import type { Instant } from "../../core/time.ts";
import type { Owner, TimeoutRow } from "../../core/timeout/timeout.ts";

/**
 * What became of a due timeout. `sent`: it is over, remove it. `done`: it is over or somebody else's, and there is
 * nothing left to remove. `again`: not now; it is due again then, and no try is spent.
 */
export type Delivery = "sent" | "done" | { readonly again: Instant };

/** Under what a delivery runs. */
export interface DeliveryLease {
  readonly owner: Owner;
  /** Aborts when the lease is lost or the engine closes. */
  readonly signal: AbortSignal;
}

/** Where due timeouts go. A delivery that throws is a failed try. */
export interface Destination {
  deliver(row: TimeoutRow, hold: DeliveryLease): Promise<Delivery>;
}
