import type { Instant } from "../../core/time.ts";
import type { Owner, TimeoutRow } from "../../core/timeout/timeout.ts";

/**
 * The result of a delivery. `sent`: remove the timeout. `done`: the timeout is already removed, or another process has
 * it. `again`: deliver it at that instant; this counts as no try. `notBefore`: the same, but it keeps its due time, so
 * that it stays in due order.
 */
export type Delivery = "sent" | "done" | { readonly again: Instant } | { readonly notBefore: Instant };

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
