import type { Json } from "../schema.ts";

/**
 * An event to record. Many events may share one `event` object: a store writes it once per commit for all that have
 * the same object. `of` has the fields of this event alone; then `event` is an object too, and readers get both
 * merged.
 */
export interface NewEvent {
  readonly event: Json;
  readonly of?: { readonly [key: string]: Json };
}

/** The event as readers get it. */
export function wholeEvent({ event, of }: NewEvent): Json {
  return of === undefined ? event : { ...(event as object), ...of };
}
