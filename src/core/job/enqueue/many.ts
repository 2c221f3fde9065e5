import { refuse } from "../../errors.ts";

/** Refuses a call of `enqueueMany` whose jobs would share one id, or whose payloads are not a list. */
export function checkMany(payloads: unknown, options: object | undefined): void {
  if (options && "id" in options)
    throw refuse("unknown_option", "options.id", options.id, "many jobs cannot share one id: use enqueue()");
  if (!Array.isArray(payloads)) throw refuse("invalid_option", "payloads", payloads, "pass a list");
}
