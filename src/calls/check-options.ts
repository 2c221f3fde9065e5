import { refuse } from "../core/errors.ts";
import { readKey } from "../core/user-values.ts";

/** Names are kept for counters, so their size is bounded. */
export function checkName(name: unknown, field: string): void {
  if (typeof name !== "string" || name === "" || name.length > 200)
    throw refuse("invalid_name", field, name, "use 1 to 200 characters");
}

/** Signals of other realms and polyfills have another class, so only the methods count. */
export function checkSignal(signal: unknown, field: string): void {
  if (
    typeof readKey(signal, "addEventListener") !== "function" ||
    typeof readKey(signal, "aborted") !== "boolean"
  )
    throw refuse(
      "invalid_option",
      field,
      signal,
      "pass an AbortSignal, such as the signal of an AbortController",
    );
}
