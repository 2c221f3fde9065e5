import { refuse } from "../errors.ts";

/** What `enqueueMany` refuses before it looks at any job: an id that all would share, and what is no list. */
export function checkMany(payloads: unknown, options: object | undefined): void {
  if (options && "id" in options)
    throw refuse("unknown_option", "options.id", options.id, "many jobs cannot share one id: use enqueue()");
  if (!Array.isArray(payloads)) throw refuse("invalid_option", "payloads", payloads, "pass a list");
}
