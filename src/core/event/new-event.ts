import type { Json } from "../schema.ts";

/**
 * Something for whoever reads the stream of events. `event` may be shared by many: a store writes it once for all of a
 * commit that have the very same object. `of` is what this one says of its own; then `event` is an object too, and
 * readers get both as one.
 */
export interface NewEvent {
  readonly event: Json;
  readonly of?: { readonly [key: string]: Json };
}

/** The event as readers get it. */
export function wholeEvent({ event, of }: NewEvent): Json {
  return of === undefined ? event : { ...(event as object), ...of };
}
