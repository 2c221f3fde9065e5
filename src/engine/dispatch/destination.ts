import type { Instant } from "../../core/time.ts";
import type { Owner, TimeoutRow } from "../../core/timeout/timeout.ts";

/**
 * The result of a delivery. `sent`: remove the timeout. `done`: the timeout is already removed, or another process has
 * it. `again`: deliver it at that instant; this counts as no try.
 */
export type Delivery = "sent" | "done" | { readonly again: Instant };

/** The lease of one delivery. */
export interface DeliveryLease {
  readonly owner: Owner;
  /** Aborts when the lease is lost or the engine closes. */
  readonly signal: AbortSignal;
}

/** Where due timeouts go. A delivery that throws is a failed try. */
export interface Destination {
  deliver(row: TimeoutRow, hold: DeliveryLease): Promise<Delivery>;
}
