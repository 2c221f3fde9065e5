import { refuse } from "../../core/errors.ts";
import type { ListOrder } from "../../ports/store.ts";

/** Refuses an order that is not one. Callers without types may pass anything. */
export function checkOrder(order: ListOrder, field: string): void {
  if (order !== "asc" && order !== "desc")
    throw refuse("invalid_option", field, order, 'use "asc" or "desc", or leave it out');
}
